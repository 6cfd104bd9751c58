//! Making traces of what other tools write.
//!
//! Each format has a module with an `import` that reads a source to its end and appends what it
//! finds. Input that does not follow its format is an error with the place; none takes more memory
//! than a line or a record does. [`open`] unpacks what is compressed, [`foreign`] knows what a file
//! is that was taken for another. A module's `USED` and `UNUSED` say what of its records becomes
//! part of the trace, and what does not.

pub mod champsim;
pub mod csv;
pub mod damon;
pub mod drmemtrace;
pub mod foreign;
pub mod lackey;
pub mod lcs;
mod lines;
pub mod lis;
pub mod oracle;
pub mod pages;
pub mod perf;
pub mod pinatrace;
pub mod time;
mod unpack;
pub mod vscsi;
pub mod words;

use crate::error::{Error, ErrorKind, Otherwise, Place};
use crate::model::{Granularity, Header, TimeUnit};

pub use unpack::open;

/// The most bytes of a wrong line that an error repeats.
const FOUND_BYTES_MAX: usize = 40;

/// The most pages of one request.
const PAGES_MAX: u64 = 1 << 20;

/// The header of an imported trace whose references have no time but their number.
pub fn header(source: &str, page_bytes: u64) -> Header {
    Header {
        page_bytes,
        granularity: Granularity::Exact,
        time: TimeUnit::References,
        source: format!(
            "{source}, imported by tidemark {}",
            env!("CARGO_PKG_VERSION")
        ),
        command: Vec::new(),
        speed: None,
    }
}

/// Returns true if a line of a text format tells nothing: it is empty, or a remark or end mark
/// (`#eof`, `*`).
fn is_remark(line: &[u8]) -> bool {
    matches!(line.trim_ascii().first(), None | Some(b'#' | b'*'))
}

/// The error in a line or record of another format.
fn malformed(place: Place, expected: &'static str, found: &[u8]) -> Error {
    malformed_but(place, expected, found, None)
}

/// The error in a line or record of a file that can be read in another way.
fn malformed_but(
    place: Place,
    expected: &'static str,
    found: &[u8],
    otherwise: Option<Otherwise>,
) -> Error {
    let found = &found[..found.len().min(FOUND_BYTES_MAX)];
    let found: String = String::from_utf8_lossy(found)
        .chars()
        .map(|c| if c.is_control() { '·' } else { c })
        .collect();
    let kind = ErrorKind::Malformed {
        expected,
        found,
        otherwise,
    };
    Error::at(place, kind)
}

/// Reads a number: decimal, or hexadecimal with `0x` in front or if `is_hexadecimal`.
fn number(text: &[u8], is_hexadecimal: bool) -> Option<u64> {
    let (digits, radix) = match text {
        [b'0', b'x' | b'X', digits @ ..] => (digits, 16),
        digits if is_hexadecimal => (digits, 16),
        digits => (digits, 10),
    };
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0_u64, |value, &digit| {
        let digit = char::from(digit).to_digit(radix)?;
        value
            .checked_mul(radix.into())?
            .checked_add(u64::from(digit))
    })
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_formats;
