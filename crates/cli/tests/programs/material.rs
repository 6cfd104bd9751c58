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

/// Writes lines of 56 bytes, words and numbers, of which a sort needs as much memory again for its
/// table.
pub fn write_short_lines(path: &Path, bytes: u64) {
    const WORDS: [&str; 4] = ["alpha", "tides", "marks", "frame"];
    let mut numbers = Numbers::new(1989);
    write_until(path, bytes, |out| {
        for _ in 0..5 {
            let number = numbers.next();
            let word = WORDS[(number >> 62) as usize];
            write!(out, "{word}{:05} ", (number >> 20) % 100_000)?;
        }
        writeln!(out)?;
        Ok(56)
    });
}

/// Writes the nightly copies of a tree of texts, one behind the other, as an archive of backups
/// holds them: a copy is 12 MiB, and every night one line in 250 is another.
pub fn write_backups(path: &Path, bytes: u64) {
    const COPY_BYTES: usize = 12 << 20;
    const NIGHTLY_PART: usize = 250;
    let mut numbers = Numbers::new(1986);
    let words: Vec<String> = (0..4000)
        .map(|_| format!("{:x}", numbers.next() >> 40))
        .collect();
    let write_line = |numbers: &mut Numbers| {
        let length = 4 + numbers.next() as usize % 12;
        let chosen = (0..length).map(|_| words[numbers.next() as usize % words.len()].as_str());
        chosen.collect::<Vec<_>>().join(" ")
    };
    let mut lines = Vec::new();
    let mut size = 0;
    while size < COPY_BYTES {
        lines.push(write_line(&mut numbers));
        size += lines[lines.len() - 1].len() + 1;
    }
    let mut next = 0;
    write_until(path, bytes, |out| {
        if next == lines.len() {
            for _ in 0..lines.len() / NIGHTLY_PART {
                let changed = numbers.next() as usize % lines.len();
                lines[changed] = write_line(&mut numbers);
            }
            next = 0;
        }
        writeln!(out, "{}", lines[next])?;
        next += 1;
        Ok(lines[next - 1].len() as u64 + 1)
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
