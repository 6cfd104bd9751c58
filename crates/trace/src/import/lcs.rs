//! libCacheSim's `lcs`: a header of 8192 bytes, then packed records, all little-endian.
//!
//! The header begins and ends with [`MAGIC`]; behind the first is the version, 1 to 8, which says
//! how long records are. A record begins with its time in seconds (4 bytes) and the object's number
//! (8); then come its size (4, from version 3 on 8), from version 2 on the operation (1) and the
//! tenant (3), from version 3 on the time to live (4), and the number of the object's next request
//! (8). From version 4 on features of 4 bytes each follow: 1, 2, 4, 8, 16 of them.
//!
//! The object is the page; the operation says whether it is read or written. The rest is left out:
//! objects are pages of one size here.

use std::io::{Read, Write};

use crate::appender::Appender;
use crate::container::fill;
use crate::error::{Error, ErrorKind, Place};
use crate::model::Kinds;

use super::malformed;

/// The bytes that the header begins and ends with.
pub const MAGIC: [u8; 8] = 0x1234_5678_9abc_def0_u64.to_le_bytes();

/// The parts of a file that become part of the trace.
pub const USED: &str = "page from the object, kinds from the operation where there is one";
/// The parts that do not.
pub const UNUSED: &str = "time, size, tenant, time to live, next request, features";

/// The length of the header.
const HEADER_BYTES: usize = 8192;

/// The length of a record, by version from 1 on.
const RECORD_BYTES: [usize; 8] = [24, 28, 36, 40, 44, 52, 68, 100];

/// Appends what `source` holds.
///
/// # Errors
/// It has no such header, ends inside a record, or reading or writing fails.
pub fn import<W: Write>(mut source: impl Read, out: &mut Appender<W>) -> Result<(), Error> {
    let mut header = vec![0; HEADER_BYTES];
    let filled = fill(&mut source, &mut header)?;
    let version = version_of(&header[..filled])?;
    let whole = RECORD_BYTES[version - 1];
    // The operation stands behind the size.
    let operation_at = match version {
        1 => None,
        2 => Some(16),
        _ => Some(20),
    };
    let mut buffer = vec![0; whole << 12];
    let mut at = HEADER_BYTES as u64;
    loop {
        let filled = fill(&mut source, &mut buffer)?;
        let records = buffer[..filled].chunks_exact(whole);
        let rest = records.remainder().len();
        for record in records {
            let page = u64::from_le_bytes(record[4..12].try_into().expect("eight bytes"));
            let kinds = operation_at.map_or(Kinds::default(), |at| kinds(record[at]));
            out.append(0, page, kinds, 1)?;
        }
        at += (filled - rest) as u64;
        if rest > 0 {
            let kind = ErrorKind::CutInRecord {
                bytes: rest as u64,
                whole_bytes: whole as u64,
            };
            return Err(Error::at(Place::Byte(at), kind));
        }
        if filled < buffer.len() {
            return Ok(());
        }
    }
}

/// The version that the header names.
fn version_of(header: &[u8]) -> Result<usize, Error> {
    let place = Place::Byte(0);
    if !header.starts_with(&MAGIC) {
        let expected = "the mark of an lcs file; is it oracleGeneral?";
        let found = header.first_chunk::<8>().copied().unwrap_or_default();
        let found = format!("{:#x}", u64::from_le_bytes(found));
        return Err(malformed(place, expected, found.as_bytes()));
    }
    if header.len() < HEADER_BYTES || !header.ends_with(&MAGIC) {
        let found = format!("{} bytes", header.len());
        let expected = "a header of 8192 bytes with its mark at both ends; an older lcs has one of \
                        1024, write it anew with libCacheSim";
        return Err(malformed(place, expected, found.as_bytes()));
    }
    let version = u64::from_le_bytes(header[8..16].try_into().expect("eight bytes"));
    let known = usize::try_from(version).ok();
    known
        .filter(|version| (1..=RECORD_BYTES.len()).contains(version))
        .ok_or_else(|| {
            let expected = "an lcs file of version 1 to 8";
            malformed(Place::Byte(8), expected, version.to_string().as_bytes())
        })
}

/// The kinds of access of an operation: numbers of libCacheSim's.
fn kinds(operation: u8) -> Kinds {
    match operation {
        // Get, gets, read.
        1 | 2 | 12 => Kinds::LOAD,
        // Set, add, cas, replace, append, prepend, delete, incr, decr, write, update.
        3..=11 | 13 | 14 => Kinds::STORE,
        _ => Kinds::default(),
    }
}
