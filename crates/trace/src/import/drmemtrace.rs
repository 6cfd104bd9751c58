//! DynamoRIO's drmemtrace, as its tool `view` prints it: a line for each record.
//!
//! ```text
//!           16           1:        1443 ifetch       3 byte(s) @ 0x00007f8a3c001290 48 89 e7  mov
//!           17           1:        1443 write        8 byte(s) @ 0x00007ffd3b00e188 by PC 0x…
//! ```
//! The record, the instruction, the thread, the kind of record. Time counts the instructions.
//! Markers, flushes and prefetches are left out, and the lines before the first record.

use std::io::{Read, Write};

use crate::appender::Appender;
use crate::error::Error;
use crate::model::{Header, Kinds, TimeUnit};

use super::lines::Lines;
use super::{malformed, number};

/// The parts of a file that become part of the trace.
pub const USED: &str = "pages from addresses and lengths, kinds, instructions as time";
/// The parts that do not.
pub const UNUSED: &str = "threads (they share their process's pages), markers, flushes, prefetches";

/// The longest access, in bytes.
const ACCESS_BYTES_MAX: u64 = 1 << 20;

/// The contents of a line.
enum Line {
    /// Fetch, load or store of bytes.
    Access {
        kinds: Kinds,
        address: u64,
        bytes: u64,
    },
    /// Nothing that touches a page.
    Other,
}

/// The header of such a trace.
pub fn header(page_bytes: u64) -> Header {
    Header {
        time: TimeUnit::Instructions,
        ..super::header("drmemtrace view", page_bytes)
    }
}

/// Appends what `source` holds.
///
/// # Errors
/// A line among the records is none of the tool's, or reading or writing fails.
pub fn import<W: Write>(
    source: impl Read,
    page_bytes: u64,
    out: &mut Appender<W>,
) -> Result<(), Error> {
    let shift = page_bytes.trailing_zeros();
    let mut lines = Lines::new(source);
    let mut instructions = 0;
    // What the program itself printed comes before and behind.
    let mut has_begun = false;
    let mut has_ended = false;
    while let Some(line) = lines.next()? {
        has_ended |= line.starts_with(b"View tool results:");
        let Some(record) = record(line) else {
            let is_rule = line.iter().all(|&byte| byte == b'-');
            if !has_begun || has_ended || is_rule {
                continue;
            }
            let found = line.to_vec();
            let expected = "a line of drmemtrace's view tool, like `16 1: 1443 write 8 byte(s) @ \
                            0x7ffd3b00e188 …`";
            return Err(malformed(lines.place(), expected, &found));
        };
        has_begun = true;
        if let Line::Access {
            kinds,
            address,
            bytes,
        } = record
        {
            instructions += u64::from(kinds == Kinds::FETCH);
            let last = address.saturating_add(bytes.saturating_sub(1)) >> shift;
            for page in address >> shift..=last {
                out.append(0, page, kinds, std::mem::take(&mut instructions))?;
            }
        }
    }
    Ok(())
}

/// Reads a line: `RECORD INSTRUCTION: THREAD WHAT …`.
fn record(line: &[u8]) -> Option<Line> {
    let mut words = line
        .split(u8::is_ascii_whitespace)
        .filter(|word| !word.is_empty());
    number(words.next()?, false)?;
    number(words.next()?.strip_suffix(b":")?, false)?;
    number(words.next()?, false)?;
    let kinds = match words.next()? {
        b"ifetch" => Kinds::FETCH,
        b"read" => Kinds::LOAD,
        b"write" => Kinds::STORE,
        // `<marker: …>`, `<thread 1443 exited>`, flushes, prefetches; more bytes of an instruction.
        _ => return Some(Line::Other),
    };
    let bytes = number(words.next()?, false)?;
    let is_plain = words.next()? == b"byte(s)" && words.next()? == b"@";
    let address = number(words.next()?, true)?;
    let is_sane = is_plain && bytes <= ACCESS_BYTES_MAX;
    is_sane.then_some(Line::Access {
        kinds,
        address,
        bytes,
    })
}
