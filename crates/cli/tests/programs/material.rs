//! Inputs: the same bytes every time.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

/// A source of numbers that look random and are the same in every run (xorshift64*, Vigna 2016).
pub struct Numbers(u64);

impl Numbers {
    /// Starts at `seed`, which is not zero.
    pub fn new(seed: u64) -> Self {
        assert_ne!(seed, 0);
        Self(seed)
    }

    /// The next number.
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }
}

/// Writes lines of 400 bytes in random order, about `bytes` in all.
pub fn write_lines(path: &Path, bytes: u64) {
    let mut numbers = Numbers::new(1983);
    write_until(path, bytes, |out| {
        for _ in 0..25 {
            write!(out, "{:015x} ", numbers.next() >> 4)?;
        }
        writeln!(out)?;
        Ok(401)
    });
}

/// Writes text that compressors find something in: phrases that come again near and far.
pub fn write_prose(path: &Path, bytes: u64) {
    let mut numbers = Numbers::new(1986);
    let words: Vec<String> = (0..4000)
        .map(|_| format!("{:x}", numbers.next() >> 40))
        .collect();
    let mut phrase = Vec::new();
    write_until(path, bytes, |out| {
        if phrase.is_empty() || numbers.next().is_multiple_of(3) {
            phrase = (0..12)
                .map(|_| numbers.next() as usize % words.len())
                .collect();
        }
        let mut written = 1;
        for word in &phrase {
            write!(out, "{} ", words[*word])?;
            written += words[*word].len() as u64 + 1;
        }
        writeln!(out, "{}", numbers.next() % 1000)?;
        Ok(written + 3)
    });
}

fn write_until(
    path: &Path,
    bytes: u64,
    mut piece: impl FnMut(&mut BufWriter<File>) -> std::io::Result<u64>,
) {
    let file = File::create(path).expect("the test may make files");
    let mut out = BufWriter::with_capacity(1 << 20, file);
    let mut written = 0;
    while written < bytes {
        written += piece(&mut out).expect("the disk has room for the input");
    }
    out.flush().expect("the disk has room for the input");
}
