//! Making traces of what other tools write.
//!
//! Each format has a module with an `import` that reads a source to its end and appends what it
//! finds. Input that does not follow its format is an error with the place; none takes more memory
//! than a line or a record does. [`open`] unpacks what is compressed with zstd.

pub mod csv;
pub mod lackey;
mod lines;
pub mod oracle;
pub mod pages;
pub mod words;

use std::io::{self, BufRead, BufReader, Read};

use crate::error::{Error, ErrorKind, Place};
use crate::model::{Granularity, Header, TimeUnit};

/// The first bytes of what is compressed with zstd.
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// The most memory unpacking takes, as a power of two of bytes: what `zstd --long` uses.
const WINDOW_LOG_MAX: u32 = 27;

/// The most bytes of a wrong line that an error repeats.
const FOUND_BYTES_MAX: usize = 40;

/// An import, unpacked.
enum Unpacked<R: BufRead> {
    Plain(R),
    Zstd(Box<zstd::stream::read::Decoder<'static, R>>),
}

/// Unpacks `source` if it is compressed with zstd.
///
/// # Errors
/// It can't be read.
pub fn open(source: impl Read) -> Result<impl Read, Error> {
    let mut source = BufReader::with_capacity(1 << 16, source);
    let start = source.fill_buf()?;
    if !start.starts_with(&ZSTD_MAGIC) {
        return Ok(Unpacked::Plain(source));
    }
    let mut decoder = zstd::stream::read::Decoder::with_buffer(source)?;
    decoder.window_log_max(WINDOW_LOG_MAX)?;
    Ok(Unpacked::Zstd(Box::new(decoder)))
}

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

impl<R: BufRead> Read for Unpacked<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match self {
            Unpacked::Plain(source) => source.read(bytes),
            Unpacked::Zstd(decoder) => decoder.read(bytes).map_err(|error| {
                let text = format!("compressed with zstd, and damaged or cut off ({error})");
                io::Error::new(io::ErrorKind::InvalidData, text)
            }),
        }
    }
}

/// The error in a line or record of another format.
fn malformed(place: Place, expected: &'static str, found: &[u8]) -> Error {
    let found = &found[..found.len().min(FOUND_BYTES_MAX)];
    let found: String = String::from_utf8_lossy(found)
        .chars()
        .map(|c| if c.is_control() { '·' } else { c })
        .collect();
    Error::at(place, ErrorKind::Malformed { expected, found })
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
