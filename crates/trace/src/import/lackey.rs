//! Valgrind's `lackey --trace-mem=yes`: a line for each instruction, load, store and modification.
//!
//! ```text
//! I  04000c20,3
//!  L 1ffeffe7e,8
//! ```
//! An access that crosses into another page is a reference to each. Time counts the instructions.
//! Valgrind's own lines (`==1234== …`) are left out.

use std::io::{Read, Write};

use crate::appender::Appender;
use crate::error::Error;
use crate::model::{Header, Kinds, TimeUnit};

use super::lines::Lines;
use super::{malformed, number};

/// The largest access: no instruction moves more bytes at a time than a whole state of registers.
const ACCESS_BYTES_MAX: u64 = 1 << 14;

/// The expected form of a line.
const EXPECTED: &str = "a line of lackey, like ` L 1ffeffe7e,8`; keep its output apart from the \
    program's with `--log-file`";

/// The header of such a trace.
pub fn header(page_bytes: u64) -> Header {
    Header {
        time: TimeUnit::Instructions,
        ..super::header("lackey text", page_bytes)
    }
}

/// Appends what `source` holds.
///
/// - Needs: `page_bytes` is a power of two.
///
/// # Errors
/// A line is none of lackey's, or reading or writing fails.
pub fn import<W: Write>(
    source: impl Read,
    page_bytes: u64,
    out: &mut Appender<W>,
) -> Result<(), Error> {
    let shift = page_bytes.trailing_zeros();
    let mut lines = Lines::new(source);
    let mut instructions = 0;
    while let Some(line) = lines.next()? {
        let Some((kinds, address, bytes)) = access(line) else {
            if is_valgrinds(line) {
                continue;
            }
            let found = line.to_vec();
            return Err(malformed(lines.place(), EXPECTED, &found));
        };
        instructions += u64::from(kinds == Kinds::FETCH);
        let last = address.saturating_add(bytes - 1) >> shift;
        for page in address >> shift..=last {
            out.append(0, page, kinds, std::mem::take(&mut instructions))?;
        }
    }
    Ok(())
}

/// The access that a line tells: the kind of access, its address, its length in bytes.
fn access(line: &[u8]) -> Option<(Kinds, u64, u64)> {
    let (kinds, rest) = match line {
        [b'I', b' ', b' ', rest @ ..] => (Kinds::FETCH, rest),
        [b' ', b'L', b' ', rest @ ..] => (Kinds::LOAD, rest),
        [b' ', b'S', b' ', rest @ ..] => (Kinds::STORE, rest),
        [b' ', b'M', b' ', rest @ ..] => (Kinds::LOAD.with(Kinds::STORE), rest),
        _ => return None,
    };
    let comma = rest.iter().position(|&byte| byte == b',')?;
    let address = number(rest[..comma].trim_ascii(), true)?;
    let bytes = number(rest[comma + 1..].trim_ascii(), false)?;
    (1..=ACCESS_BYTES_MAX)
        .contains(&bytes)
        .then_some((kinds, address, bytes))
}

/// Returns true if Valgrind says something that is not about an access.
fn is_valgrinds(line: &[u8]) -> bool {
    let is_marked = |mark: &[u8]| {
        let number = line
            .strip_prefix(mark)
            .and_then(|rest| rest.split(|byte| !byte.is_ascii_digit()).next());
        number
            .is_some_and(|digits| !digits.is_empty() && line[2 + digits.len()..].starts_with(mark))
    };
    line.is_empty()
        || [b"==", b"--", b"**"]
            .into_iter()
            .any(|mark| is_marked(mark))
}
