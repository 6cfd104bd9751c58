//! ChampSim's traces: a record of 64 bytes for each instruction, little-endian.
//!
//! | bytes | what | here |
//! | --- | --- | --- |
//! | 8 | address of the instruction | a fetch |
//! | 1, 1 | is it a branch, was it taken | checked, left out |
//! | 2, 4 | registers written, registers read | left out |
//! | 2 × 8 | addresses stored to; 0 if none | stores |
//! | 4 × 8 | addresses loaded from; 0 if none | loads |
//!
//! Time counts the instructions.

use std::io::{Read, Write};

use crate::appender::Appender;
use crate::container::fill;
use crate::error::{Error, ErrorKind, Place};
use crate::model::{Header, Kinds, TimeUnit};

use super::malformed;

/// The parts of a file that become part of the trace.
pub const USED: &str = "pages of instructions, loads and stores, instructions as time";
/// The parts that do not.
pub const UNUSED: &str = "branches, registers";

/// The length of a record.
const RECORD_BYTES: usize = 64;
/// The fewest records by which such a file is known: it has no mark.
const RECORDS_MIN: usize = 16;

/// The header of such a trace.
pub fn header(page_bytes: u64) -> Header {
    Header {
        time: TimeUnit::Instructions,
        ..super::header("ChampSim", page_bytes)
    }
}

/// Returns true if so much of a file can't be anything else by chance.
pub fn is_likely(start: &[u8]) -> bool {
    let (records, _) = start.as_chunks::<RECORD_BYTES>();
    records.len() >= RECORDS_MIN && records.iter().all(is_instruction)
}

fn is_instruction(record: &[u8; RECORD_BYTES]) -> bool {
    record[8] <= 1 && record[9] <= 1 && record[..8] != [0; 8]
}

/// Appends what `source` holds.
///
/// # Errors
/// A record can't be ChampSim's, it ends inside one, or reading or writing fails.
pub fn import<W: Write>(
    mut source: impl Read,
    page_bytes: u64,
    out: &mut Appender<W>,
) -> Result<(), Error> {
    let shift = page_bytes.trailing_zeros();
    let mut buffer = vec![0; RECORD_BYTES << 12];
    let mut count = 0;
    loop {
        let filled = fill(&mut source, &mut buffer)?;
        let (records, rest) = buffer[..filled].as_chunks::<RECORD_BYTES>();
        for record in records {
            count += 1;
            let word = |at: usize| {
                let bytes = record[at..at + 8].try_into().expect("eight bytes");
                u64::from_le_bytes(bytes)
            };
            if !is_instruction(record) {
                let expected = "an instruction's address and whether it is a branch (0 or 1); is \
                                it a ChampSim trace of 64 bytes an instruction?";
                return Err(malformed(Place::Record(count), expected, &record[..10]));
            }
            out.append(0, word(0) >> shift, Kinds::FETCH, 1)?;
            for at in (32..64).step_by(8).filter(|&at| word(at) != 0) {
                out.append(0, word(at) >> shift, Kinds::LOAD, 0)?;
            }
            for at in (16..32).step_by(8).filter(|&at| word(at) != 0) {
                out.append(0, word(at) >> shift, Kinds::STORE, 0)?;
            }
        }
        if !rest.is_empty() {
            let kind = ErrorKind::CutInRecord {
                bytes: rest.len() as u64,
                whole_bytes: RECORD_BYTES as u64,
            };
            return Err(Error::at(Place::Byte(count * RECORD_BYTES as u64), kind));
        }
        if filled < buffer.len() {
            return Ok(());
        }
    }
}
