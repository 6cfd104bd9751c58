//! Page numbers as text, one a line: decimal, or hexadecimal after `0x`. Empty lines and what
//! follows a `#` are left out, and lines that begin with `*`: the end mark of traces of the LIRS
//! paper (`.trc`).

use std::io::{Read, Write};

use crate::appender::Appender;
use crate::error::Error;
use crate::model::Kinds;

use super::lines::Lines;
use super::{is_remark, malformed, number};

/// Appends what `source` holds.
///
/// # Errors
/// A line is no number, or reading or writing fails.
pub fn import<W: Write>(source: impl Read, out: &mut Appender<W>) -> Result<(), Error> {
    let mut lines = Lines::new(source);
    while let Some(line) = lines.next()? {
        let text = line.split(|&byte| byte == b'#').next().unwrap_or(line);
        let text = text.trim_ascii();
        if is_remark(text) {
            continue;
        }
        let Some(page) = number(text, false) else {
            let found = text.to_vec();
            let expected = "a page number of at most 64 bits, like `42` or `0x2a`";
            return Err(malformed(lines.place(), expected, &found));
        };
        out.append(0, page, Kinds::default(), 1)?;
    }
    Ok(())
}
