//! Lines of text, one at a time, in bounded memory.

use std::io::Read;

use crate::error::{Error, Place};

use super::malformed;

/// The longest line, in bytes.
const LINE_BYTES_MAX: usize = 1 << 16;

/// Reads lines.
pub struct Lines<R> {
    source: R,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    number: u64,
}

impl<R: Read> Lines<R> {
    /// The lines of `source`.
    pub fn new(source: R) -> Lines<R> {
        Lines {
            source,
            buffer: vec![0; 4 * LINE_BYTES_MAX],
            start: 0,
            end: 0,
            number: 0,
        }
    }

    /// The next line, without its end; `None` behind the last.
    pub fn next(&mut self) -> Result<Option<&[u8]>, Error> {
        let mut looked = 0;
        loop {
            let rest = &self.buffer[self.start + looked..self.end];
            if let Some(length) = rest.iter().position(|&byte| byte == b'\n') {
                return Ok(Some(self.take(looked + length, 1)));
            }
            looked = self.end - self.start;
            if looked > LINE_BYTES_MAX {
                let place = Place::Line(self.number + 1);
                let found = &self.buffer[self.start..];
                return Err(malformed(place, "a line of at most 65536 bytes", found));
            }
            if self.fill()? == 0 {
                return Ok((looked > 0).then(|| self.take(looked, 0)));
            }
        }
    }

    /// The place of the line given last.
    pub fn place(&self) -> Place {
        Place::Line(self.number)
    }

    fn take(&mut self, length: usize, end: usize) -> &[u8] {
        let line = &self.buffer[self.start..self.start + length];
        self.start += length + end;
        self.number += 1;
        line.strip_suffix(b"\r").unwrap_or(line)
    }

    fn fill(&mut self) -> Result<usize, Error> {
        if self.end == self.buffer.len() {
            self.buffer.copy_within(self.start.., 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        loop {
            match self.source.read(&mut self.buffer[self.end..]) {
                Ok(count) => {
                    self.end += count;
                    return Ok(count);
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}
