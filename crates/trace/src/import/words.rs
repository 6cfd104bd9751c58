//! Page numbers as words of 32 bits, little-endian, and nothing else.

use std::io::{Read, Write};

use crate::appender::Appender;
use crate::container::fill;
use crate::error::{Error, ErrorKind, Place};
use crate::model::Kinds;

/// The length of a record.
const RECORD_BYTES: usize = 4;

/// Appends what `source` holds.
///
/// # Errors
/// It ends inside a number, or reading or writing fails.
pub fn import<W: Write>(mut source: impl Read, out: &mut Appender<W>) -> Result<(), Error> {
    let mut buffer = vec![0; RECORD_BYTES << 14];
    let mut at = 0_u64;
    loop {
        let filled = fill(&mut source, &mut buffer)?;
        let (records, rest) = buffer[..filled].as_chunks::<RECORD_BYTES>();
        for &record in records {
            let page = u64::from(u32::from_le_bytes(record));
            out.append(0, page, Kinds::default(), 1)?;
        }
        at += filled as u64;
        if !rest.is_empty() {
            return Err(Error::at(
                Place::Byte(at - rest.len() as u64),
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
