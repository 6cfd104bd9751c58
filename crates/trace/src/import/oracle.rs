//! libCacheSim's `oracleGeneral`: records of 24 bytes, little-endian and packed.
//!
//! | bytes | what | here |
//! | --- | --- | --- |
//! | 4 | time of the request in seconds | left out |
//! | 8 | number of the object | the page |
//! | 4 | size of the object in bytes | left out |
//! | 8 | number of the object's next request, from 1; -1 if there is none | checked, left out |

use std::io::{Read, Write};

use crate::appender::Appender;
use crate::container::fill;
use crate::error::{Error, ErrorKind, Place};
use crate::model::Kinds;

use super::malformed;

/// The parts of a file that become part of the trace.
pub const USED: &str = "page from the object";
/// The parts that do not.
pub const UNUSED: &str = "time, size, next request (checked)";

/// The length of a record.
pub const RECORD_BYTES: usize = 24;

/// The number in place of a next request if there is none.
pub const NEVER: i64 = -1;

/// Appends what `source` holds.
///
/// # Errors
/// It ends inside a record, a record's next request is not later, or reading or writing fails.
pub fn import<W: Write>(mut source: impl Read, out: &mut Appender<W>) -> Result<(), Error> {
    let mut buffer = vec![0; RECORD_BYTES << 12];
    let mut count = 0_u64;
    loop {
        let filled = fill(&mut source, &mut buffer)?;
        let (records, rest) = buffer[..filled].as_chunks::<RECORD_BYTES>();
        for record in records {
            count += 1;
            let (page, next) = (&record[4..12], &record[16..24]);
            let page = u64::from_le_bytes(page.try_into().expect("eight bytes"));
            let next = i64::from_le_bytes(next.try_into().expect("eight bytes"));
            // Some writers count from 0.
            if next != NEVER && u64::try_from(next).is_ok_and(|next| next < count) || next < NEVER {
                let expected = "the number of a later request in its last 8 bytes; \
                    is it an oracleGeneral file?";
                let found = next.to_string();
                return Err(malformed(Place::Record(count), expected, found.as_bytes()));
            }
            out.append(0, page, Kinds::default(), 1)?;
        }
        if !rest.is_empty() {
            return Err(Error::at(
                Place::Byte(count * RECORD_BYTES as u64),
                ErrorKind::CutInRecord {
                    bytes: rest.len() as u64,
                    whole_bytes: RECORD_BYTES as u64,
                },
            ));
        }
        if filled < buffer.len() {
            return Ok(());
        }
    }
}
