//! vscsi traces: SCSI commands of virtual disks, in records of 32 (version 1) or 40 bytes (2).
//!
//! | version 1 | version 2 | what | here |
//! | --- | --- | --- | --- |
//! | 4 at 0 | 4 at 4 | serial number | left out |
//! | 4 at 4 | 4 at 8 | length in bytes | the pages |
//! | 4 at 8 | 4 at 12 | segments of the buffer | left out |
//! | 2 at 12 | 2 at 0 | command | the kinds of access |
//! | 2 at 14 | 2 at 2 | version, in the upper byte | tells records apart |
//! | 8 at 16 | 8 at 16 | first block, of 512 bytes | the pages |
//! | 8 at 24 | 8 at 24 | time in microseconds | the time |
//! | | 8 at 32 | response time | left out |

use std::io::{Read, Write};

use crate::appender::Appender;
use crate::container::fill;
use crate::error::{Error, ErrorKind, Place};
use crate::model::{Header, Kinds, TimeUnit};

use super::malformed;

/// The parts of a file that become part of the trace.
pub const USED: &str = "pages from the first block and the length, kinds from the command, time";
/// The parts that do not.
pub const UNUSED: &str = "serial number, segments, response time";

/// The size of a block of a disk.
const BLOCK_BYTES: u64 = 512;

/// The longest command, in bytes.
const LENGTH_BYTES_MAX: u32 = 1 << 30;

/// The records that have to agree on a version.
const RECORDS_LOOKED_AT: usize = 8;

/// The version of the records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// Records of 32 bytes.
    One,
    /// Records of 40 bytes.
    Two,
}

/// The fields of a record that are used.
struct Command {
    length: u32,
    code: u16,
    version: u16,
    block: u64,
    time_us: u64,
}

/// The header of such a trace.
pub fn header(page_bytes: u64) -> Header {
    Header {
        time: TimeUnit::Nanoseconds,
        ..super::header("vscsi", page_bytes)
    }
}

/// The version of a trace that begins with `start`, if it looks like one.
pub fn version_of(start: &[u8]) -> Option<Version> {
    [Version::Two, Version::One].into_iter().find(|version| {
        let records = start.chunks_exact(version.record_bytes());
        let mut count = 0;
        let are_all = records.take(RECORDS_LOOKED_AT).all(|record| {
            count += 1;
            version.read(record).is_some()
        });
        are_all && count >= 2
    })
}

/// Appends what `source` holds. Says how many commands have a time before their predecessor's; they
/// count as at the same time.
///
/// # Errors
/// It is no such trace, ends inside a record, or reading or writing fails.
pub fn import<W: Write>(
    mut source: impl Read,
    page_bytes: u64,
    out: &mut Appender<W>,
) -> Result<u64, Error> {
    let mut start = vec![0; Version::Two.record_bytes() * RECORDS_LOOKED_AT];
    let filled = fill(&mut source, &mut start)?;
    start.truncate(filled);
    let Some(version) = version_of(&start) else {
        let expected = "two or more records of a vscsi trace, of version 1 or 2";
        return Err(malformed(Place::Record(1), expected, &start));
    };
    let whole = version.record_bytes();
    let mut source = std::io::Cursor::new(start).chain(source);
    let mut buffer = vec![0; whole << 12];
    let (mut count, mut backward, mut time_last) = (0_u64, 0, None);
    let shift = page_bytes.trailing_zeros();
    loop {
        let filled = fill(&mut source, &mut buffer)?;
        let records = buffer[..filled].chunks_exact(whole);
        let rest = records.remainder().len();
        for record in records {
            count += 1;
            let Some(command) = version.read(record) else {
                let expected = "a record of the same version as those before it";
                return Err(malformed(Place::Record(count), expected, record));
            };
            let time = command.time_us.saturating_mul(1000);
            let last = match time_last {
                Some(last) => last,
                None => {
                    out.begin(0, time)?;
                    time
                }
            };
            backward += u64::from(time < last);
            time_last = Some(time.max(last));
            let first = command.block.saturating_mul(BLOCK_BYTES);
            let end = first.saturating_add(u64::from(command.length).saturating_sub(1));
            let mut gap = time.saturating_sub(last);
            for page in first >> shift..=end >> shift {
                out.append(0, page, kinds(command.code), std::mem::take(&mut gap))?;
            }
        }
        if rest > 0 {
            let kind = ErrorKind::CutInRecord {
                bytes: rest as u64,
                whole_bytes: whole as u64,
            };
            return Err(Error::at(Place::Byte(count * whole as u64), kind));
        }
        if filled < buffer.len() {
            return Ok(backward);
        }
    }
}

/// The kinds of access of a SCSI command.
fn kinds(code: u16) -> Kinds {
    match code {
        0x08 | 0x28 | 0xa8 | 0x88 => Kinds::LOAD,
        0x0a | 0x2a | 0xaa | 0x8a | 0x2e | 0xae | 0x8e => Kinds::STORE,
        _ => Kinds::default(),
    }
}

impl Version {
    const fn record_bytes(self) -> usize {
        match self {
            Version::One => 32,
            Version::Two => 40,
        }
    }

    /// The fields of a record; `None` if it is none of this version.
    fn read(self, record: &[u8]) -> Option<Command> {
        let two = |at: usize| Some(u16::from_le_bytes(*record.get(at..)?.first_chunk()?));
        let four = |at: usize| Some(u32::from_le_bytes(*record.get(at..)?.first_chunk()?));
        let eight = |at: usize| Some(u64::from_le_bytes(*record.get(at..)?.first_chunk()?));
        let (length_at, code_at, version_at, mark) = match self {
            Version::One => (4, 12, 14, 1),
            Version::Two => (8, 0, 2, 2),
        };
        let command = Command {
            length: four(length_at)?,
            code: two(code_at)?,
            version: two(version_at)?,
            block: eight(16)?,
            time_us: eight(24)?,
        };
        let is_sane = command.version >> 8 == mark
            && command.code <= 0xff
            && command.length <= LENGTH_BYTES_MAX
            && command.block < 1 << 48
            && command.time_us < u64::MAX / 1000;
        is_sane.then_some(command)
    }
}
