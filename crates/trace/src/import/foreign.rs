//! Kinds of files, by their first bytes: so that one of another kind is refused by its name, and
//! does not become a trace of whatever its bytes would mean.

use std::io::{Cursor, Read};

use crate::container::fill;
use crate::error::{Error, ErrorKind};

use super::{lcs, oracle, vscsi};

/// The number of bytes that are looked at.
pub const START_BYTES: usize = 1 << 16;

/// The fewest words that tell numbers of 64 bits from numbers of 32.
const WORDS_MIN: usize = 32;

/// The fewest records by which an oracleGeneral file is known: it has no mark.
const ORACLE_RECORDS_MIN: usize = 8;

/// A kind of file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    /// The format that imports it, by its name; `None` if none does.
    pub from: Option<&'static str>,
    /// Its name.
    pub name: &'static str,
    /// The way to a trace.
    pub remedy: &'static str,
    /// The formats as which that is imported.
    pub formats: &'static [&'static str],
}

impl Known {
    /// The refusal to read it as something else.
    pub fn error(self) -> Error {
        Error::new(ErrorKind::Other {
            name: self.name,
            remedy: self.remedy,
            formats: self.formats,
        })
    }
}

/// Files with a mark at their beginning, and no importer: unpack, convert or print them first.
const MARKED: [(&[u8], &str, &str, &[&str]); 18] = [
    (
        b"\x89TIDE",
        "a trace of tidemark's",
        "it needs no import: use it as it is",
        &[],
    ),
    (
        b"\x7fELF",
        "a program or library",
        "`tidemark record` makes a trace of a program",
        &[],
    ),
    (
        b"PK\x03\x04",
        "a zip archive",
        "unpack it first; of drmemtrace, import what its `view` tool prints",
        &[],
    ),
    (
        b"PK\x05\x06",
        "an empty zip archive",
        "import another file",
        &[],
    ),
    (
        b"BZh",
        "compressed with bzip2",
        "unpack it with `bunzip2`",
        &[],
    ),
    (
        b"7z\xbc\xaf\x27\x1c",
        "a 7-Zip archive",
        "unpack it with `7z x`",
        &[],
    ),
    (
        b"Rar!\x1a\x07",
        "a RAR archive",
        "unpack it with `unrar x`",
        &[],
    ),
    (
        b"\x04\x22\x4d\x18",
        "compressed with LZ4",
        "unpack it with `lz4 -d`",
        &[],
    ),
    (
        b"\xff\x06\0\0sNaPpY",
        "compressed with Snappy",
        "unpack it first",
        &[],
    ),
    (
        b"LZIP",
        "compressed with lzip",
        "unpack it with `lzip -d`",
        &[],
    ),
    (
        b"PAR1",
        "a Parquet file",
        "write it as CSV and import that",
        &[],
    ),
    (
        b"ARROW1\0\0",
        "an Arrow file",
        "write it as CSV and import that",
        &[],
    ),
    (
        b"\x93NUMPY",
        "a NumPy array",
        "write a number a line with `numpy.savetxt(FILE, array, '%d')`, and import that",
        &["pages"],
    ),
    (
        b"PERFILE2",
        "a record of perf's",
        "import what `perf script -F comm,pid,time,event,addr -i FILE` prints,",
        &["perf"],
    ),
    (
        b"SQLite format 3\0",
        "a database of SQLite's",
        "write its table as CSV and import that",
        &[],
    ),
    (
        b"gem5",
        "a packet trace of gem5's",
        "print it with gem5's `decode_packet_trace.py`, and import that",
        &["csv"],
    ),
    (
        b"\x28\xb5\x2f\xfd",
        "compressed twice",
        "unpack it with `zstd -d` first",
        &[],
    ),
    (
        b"\x1f\x8b",
        "compressed twice",
        "unpack it with `gunzip` first",
        &[],
    ),
];

/// The beginning of drmemtrace's records: a header entry, of 12 bytes with a version.
const DRMEMTRACE: &[u8] = &[25, 0, 0, 0];

/// Reads the beginning of `source`. Answers it, and the source with it put back.
///
/// # Errors
/// Reading fails.
pub fn peek<R: Read>(mut source: R) -> Result<(Vec<u8>, impl Read), Error> {
    let mut start = vec![0; START_BYTES];
    let filled = fill(&mut source, &mut start)?;
    start.truncate(filled);
    let again = Cursor::new(start.clone()).chain(source);
    Ok((start, again))
}

/// The kind of file that `start` is the beginning of, where that is sure: it has a mark, or a first
/// line that no other has.
pub fn find_marked(start: &[u8]) -> Option<Known> {
    let marked = MARKED.iter().find(|(mark, ..)| start.starts_with(mark));
    if let Some((_, name, remedy, formats)) = marked {
        return Some(Known {
            from: None,
            name,
            remedy,
            formats,
        });
    }
    if start.starts_with(&lcs::MAGIC) {
        return Some(Known {
            from: Some("lcs"),
            name: "libCacheSim's lcs",
            remedy: "import it",
            formats: &["lcs"],
        });
    }
    let is_version = |bytes: &[u8]| bytes.first().is_some_and(|&version| version < 32);
    let is_header = start
        .get(4..12)
        .is_some_and(|bytes| is_version(bytes) && bytes[1..].iter().all(|&byte| byte == 0));
    (start.starts_with(DRMEMTRACE) && is_header).then_some(Known {
        from: None,
        name: "a binary trace of drmemtrace's",
        remedy: "import what `drrun -t drmemtrace -tool view -indir DIR` prints,",
        formats: &["drmemtrace"],
    })
}

/// The kind of a file that has no mark, by what records at its beginning look like. Numbers may
/// look like this by chance only where there are few.
pub fn find_likely(start: &[u8]) -> Option<Known> {
    let known = |from, name, formats| {
        let remedy = "import it";
        Some(Known {
            from,
            name,
            remedy,
            formats,
        })
    };
    if is_text(start) {
        return known(None, "text", &["csv", "pages"]);
    }
    if vscsi::version_of(start).is_some() {
        return known(Some("vscsi"), "a vscsi trace", &["vscsi"]);
    }
    if is_wide(start) {
        return known(Some("u64"), "numbers of 64 bits", &["u64"]);
    }
    if is_oracle(start) {
        let name = "libCacheSim's oracleGeneral";
        return known(Some("oracleGeneral"), name, &["oracleGeneral"]);
    }
    None
}

/// Returns true if all bytes are those of text, and there are some.
fn is_text(start: &[u8]) -> bool {
    let is_plain = |byte: &u8| matches!(byte, b'\t' | b'\n' | b'\r' | b' '..=b'~');
    let some = &start[..start.len().min(4096)];
    some.len() >= 4 && some.iter().all(is_plain)
}

/// Returns true if the upper half of each number of 64 bits is 0, and the lower halves differ.
fn is_wide(start: &[u8]) -> bool {
    let (words, _) = start.as_chunks::<8>();
    let lower = |word: &[u8; 8]| [word[0], word[1], word[2], word[3]];
    words.len() >= WORDS_MIN / 2
        && words.iter().all(|word| word[4..] == [0; 4])
        && words.iter().any(|word| lower(word) != lower(&words[0]))
}

/// Returns true if the records of an oracleGeneral file could begin so: each names a later request,
/// or none, and times do not go back.
fn is_oracle(start: &[u8]) -> bool {
    let (records, _) = start.as_chunks::<{ oracle::RECORD_BYTES }>();
    let mut time_before = 0;
    let is_next = |(at, record): (usize, &[u8; oracle::RECORD_BYTES])| {
        let (time, next) = (&record[..4], &record[16..]);
        let time = u32::from_le_bytes(time.try_into().expect("four bytes"));
        let next = i64::from_le_bytes(next.try_into().expect("eight bytes"));
        let is_rising = time >= std::mem::replace(&mut time_before, time);
        is_rising && (next == oracle::NEVER || next > at as i64 && next < 1 << 40)
    };
    records.len() >= ORACLE_RECORDS_MIN && records.iter().enumerate().all(is_next)
}

/// Watches numbers of 32 bits for what pages can't be: spread evenly over all that 32 bits hold,
/// and hardly one of them twice.
pub struct Plausibility {
    seen: std::collections::HashSet<u32>,
    count: u64,
    quarters: [u64; 4],
}

/// The number of references that are looked at.
const LOOKED_AT: u64 = 1 << 16;
/// The fewest of them that decide.
const LOOKED_AT_MIN: u64 = 256;

impl Plausibility {
    /// Has seen nothing.
    pub fn new() -> Plausibility {
        Plausibility {
            seen: std::collections::HashSet::new(),
            count: 0,
            quarters: [0; 4],
        }
    }

    /// Sees a number.
    pub fn see(&mut self, page: u32) {
        if self.count < LOOKED_AT {
            self.count += 1;
            self.seen.insert(page);
            self.quarters[(page >> 30) as usize] += 1;
        }
    }

    /// The doubt, if there is one.
    pub fn doubt(&self) -> Option<String> {
        let distinct = self.seen.len() as u64;
        let is_even = self.quarters.iter().all(|&part| part * 5 > self.count);
        let is_doubtful =
            self.count >= LOOKED_AT_MIN && is_even && distinct * 100 > self.count * 95;
        is_doubtful.then(|| {
            format!(
                "{distinct} of the first {} numbers are different, and spread evenly over all of \
                 32 bits: so look compressed, encrypted or other binary data, not numbers of pages",
                self.count
            )
        })
    }
}

impl Default for Plausibility {
    fn default() -> Plausibility {
        Plausibility::new()
    }
}
