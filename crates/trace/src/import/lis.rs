//! Traces of the ARC paper (`.lis`): a line for each request, of four numbers, decimal.
//!
//! ```text
//! 103 8 0 7
//! ```
//! The first block, the number of blocks, a field that is not used, and the number of the request.
//! Each block is a page.

use std::io::{Read, Write};

use crate::appender::Appender;
use crate::error::Error;
use crate::model::Kinds;

use super::lines::Lines;
use super::{PAGES_MAX, is_remark, malformed, number};

/// The parts of a file that become part of the trace.
pub const USED: &str = "pages from the first block and the number of blocks";
/// The parts that do not.
pub const UNUSED: &str = "columns 3 and 4";

/// Appends what `source` holds.
///
/// # Errors
/// A line is none of four numbers, or reading or writing fails.
pub fn import<W: Write>(source: impl Read, out: &mut Appender<W>) -> Result<(), Error> {
    let mut lines = Lines::new(source);
    while let Some(line) = lines.next()? {
        if is_remark(line) {
            continue;
        }
        let Some((first, count)) = request(line) else {
            let found = line.to_vec();
            let expected = "four numbers: first block, 1 to 1048576 blocks, and two more";
            return Err(malformed(lines.place(), expected, &found));
        };
        for page in first..first + count {
            out.append(0, page, Kinds::default(), 1)?;
        }
    }
    Ok(())
}

/// The first block of a line and the number of blocks.
fn request(line: &[u8]) -> Option<(u64, u64)> {
    let mut fields = line
        .split(u8::is_ascii_whitespace)
        .filter(|field| !field.is_empty())
        .map(|field| number(field, false));
    let fields = [
        fields.next()??,
        fields.next()??,
        fields.next()??,
        fields.next()??,
        u64::from(fields.next().is_some()),
    ];
    let [first, count, _, _, more] = fields;
    let is_sane = more == 0 && (1..=PAGES_MAX).contains(&count) && first < u64::MAX - PAGES_MAX;
    is_sane.then_some((first, count))
}
