//! Intel Pin's example `pinatrace`: a line for each load and store, and `#eof` behind the last.
//!
//! ```text
//! 0x7f205266c2b3: W 0x7ffd3b00e188
//! ```
//! The instruction's address, the kind of access, the address accessed; some versions print the
//! length and the value behind it. Instructions that access no memory are not in such a trace, so
//! that addresses of instructions are left out.

use std::io::{Read, Write};

use crate::appender::Appender;
use crate::error::Error;
use crate::model::Kinds;

use super::lines::Lines;
use super::{is_remark, malformed, number};

/// The parts of a file that become part of the trace.
pub const USED: &str = "pages from the addresses accessed, kinds from R and W";
/// The parts that do not.
pub const UNUSED: &str = "addresses of instructions, and what follows the address accessed";

/// Appends what `source` holds.
///
/// # Errors
/// A line is none of pinatrace's, or reading or writing fails.
pub fn import<W: Write>(
    source: impl Read,
    page_bytes: u64,
    out: &mut Appender<W>,
) -> Result<(), Error> {
    let shift = page_bytes.trailing_zeros();
    let mut lines = Lines::new(source);
    while let Some(line) = lines.next()? {
        if is_remark(line) {
            continue;
        }
        let Some((kinds, address)) = access(line) else {
            let found = line.to_vec();
            let expected = "a line of pinatrace, like `0x7f205266c2b3: W 0x7ffd3b00e188`";
            return Err(malformed(lines.place(), expected, &found));
        };
        out.append(0, address >> shift, kinds, 1)?;
    }
    Ok(())
}

/// The kind of access of a line, and its address.
fn access(line: &[u8]) -> Option<(Kinds, u64)> {
    let mut words = line
        .split(u8::is_ascii_whitespace)
        .filter(|word| !word.is_empty());
    let instruction = words.next()?.strip_suffix(b":")?;
    number(instruction, true)?;
    let kinds = match words.next()? {
        b"R" => Kinds::LOAD,
        b"W" => Kinds::STORE,
        _ => return None,
    };
    Some((kinds, number(words.next()?, true)?))
}
