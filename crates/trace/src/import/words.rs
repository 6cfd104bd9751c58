//! Page numbers as words of 32 or 64 bits, little-endian, and nothing else.

use std::io::{Read, Write};

use crate::appender::Appender;
use crate::container::fill;
use crate::error::{Error, ErrorKind, Place};
use crate::model::Kinds;

use super::foreign::Plausibility;

/// Appends what `source` holds: words of 32 bits. Returns a warning if they do not look like page
/// numbers.
///
/// # Errors
/// It ends inside a number, or reading or writing fails.
pub fn import<W: Write>(source: impl Read, out: &mut Appender<W>) -> Result<Option<String>, Error> {
    let mut plausibility = Plausibility::new();
    each(source, |word: [u8; 4]| {
        let page = u32::from_le_bytes(word);
        plausibility.see(page);
        out.append(0, page.into(), Kinds::default(), 1)
    })?;
    Ok(plausibility.doubt())
}

/// Appends what `source` holds: words of 64 bits.
///
/// # Errors
/// It ends inside a number, or reading or writing fails.
pub fn import_wide<W: Write>(source: impl Read, out: &mut Appender<W>) -> Result<(), Error> {
    each(source, |word: [u8; 8]| {
        out.append(0, u64::from_le_bytes(word), Kinds::default(), 1)
    })
}

/// Calls `take` for each word of `N` bytes.
fn each<const N: usize>(
    mut source: impl Read,
    mut take: impl FnMut([u8; N]) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut buffer = vec![0; N << 14];
    let mut at = 0_u64;
    loop {
        let filled = fill(&mut source, &mut buffer)?;
        let (records, rest) = buffer[..filled].as_chunks::<N>();
        for &record in records {
            take(record)?;
        }
        at += filled as u64;
        if !rest.is_empty() {
            return Err(Error::at(
                Place::Byte(at - rest.len() as u64),
                ErrorKind::CutInRecord {
                    bytes: rest.len() as u64,
                    whole_bytes: N as u64,
                },
            ));
        }
        if filled < buffer.len() {
            return Ok(());
        }
    }
}
