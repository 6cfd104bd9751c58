//! Reads a log while it is written.
//!
//! It is read and acknowledged through ordinary reads and writes of its file, so that nothing here
//! depends on the process being well, or alive.

use std::fs::File;
use std::io::{Error, ErrorKind, Result};
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::{HEADER_BYTES, Head, MAGIC, PUBLISHED_AT, PUBLISHED_MAX};

const WORD: u64 = 8;
/// Words of the header, and of those how many change from `Head::Next` on.
const HEAD_WORDS: usize = 13;
const STATE_WORDS: usize = 4;

/// Words of a log, as they are in memory.
pub type Words = [[u8; WORD as usize]];

/// A log that is open for reading.
#[derive(Debug)]
pub struct Log {
    file: File,
    /// The process that forked the log's, or 0.
    pub parent: u32,
    chunk_words: u64,
    chunks: u64,
    ring_address: u64,
    publications_read: u64,
    publications_consumed: u64,
    /// Words read so far, since the beginning of the log.
    position: u64,
    bytes: Vec<u8>,
}

/// A publication: all words before `position` were written before `stamp_ns`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Publication {
    /// Words since the beginning of the log.
    pub position: u64,
    /// On the monotonic clock.
    pub stamp_ns: u64,
}

/// The part of a log's publications that was collected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Collected {
    /// Not all of them: others bear a later stamp.
    Some,
    /// All that there are so far.
    All,
    /// All that there will ever be.
    Last,
}

/// The progress of the writer.
#[derive(Clone, Copy, Debug)]
struct State {
    next: u64,
    chunk: u64,
    publications: u64,
    is_closed: bool,
}

impl Log {
    /// Opens the log at `path`.
    pub fn open(path: &Path) -> Result<Log> {
        Log::new(File::options().read(true).write(true).open(path)?)
    }

    /// The log in `file`.
    pub fn new(file: File) -> Result<Log> {
        let head = read_words(&file, 0, HEAD_WORDS)?;
        let at = |word: Head| head[word as usize];
        let (chunk_words, chunks) = (at(Head::ChunkWords), at(Head::Chunks));
        let is_sane = head[0] == MAGIC
            && (1 << 10..=1 << 24).contains(&chunk_words)
            && (2..=1 << 10).contains(&chunks);
        if !is_sane {
            return Err(Error::new(
                ErrorKind::InvalidData,
                "not a log of this version",
            ));
        }
        Ok(Log {
            file,
            parent: at(Head::Parent) as u32,
            chunk_words,
            chunks,
            ring_address: at(Head::Ring),
            publications_read: 0,
            publications_consumed: 0,
            position: 0,
            bytes: Vec::new(),
        })
    }

    /// Adds to `found` what has been published since this was last called and bears a stamp of
    /// `until_ns` at most.
    pub fn collect_publications(
        &mut self,
        until_ns: u64,
        found: &mut Vec<Publication>,
    ) -> Result<Collected> {
        let state = self.read_state()?;
        let fresh = state.publications.wrapping_sub(self.publications_read);
        for number in self.publications_read..self.publications_read + fresh.min(PUBLISHED_MAX) {
            let at = PUBLISHED_AT as u64 + number % PUBLISHED_MAX * 2 * WORD;
            let words = read_words(&self.file, at, 2)?;
            if words[1] > until_ns {
                self.publications_read = number;
                return Ok(Collected::Some);
            }
            found.push(Publication {
                position: words[0],
                stamp_ns: words[1],
            });
        }
        self.publications_read = state.publications;
        Ok(match state.is_closed {
            true => Collected::Last,
            false => Collected::All,
        })
    }

    /// Finds the place that a writer that is no more had reached: its last entry may be unfinished.
    pub fn find_end(&self) -> Result<u64> {
        let state = self.read_state()?;
        let in_ring = state.next.wrapping_sub(self.ring_address) / WORD;
        let in_chunk = in_ring.wrapping_sub(state.chunk % self.chunks * self.chunk_words);
        // Killed while going on to the next chunk: all of the one before is there.
        let in_chunk = if in_chunk > self.chunk_words {
            0
        } else {
            in_chunk
        };
        Ok((state.chunk * self.chunk_words + in_chunk).max(self.position))
    }

    /// Reads the words up to `position`, or up to the end of a chunk if that comes first. None if
    /// there are none.
    pub fn read_chunk(&mut self, position: u64) -> Result<Option<&Words>> {
        let chunk_end = (self.position / self.chunk_words + 1) * self.chunk_words;
        let count = position.min(chunk_end).saturating_sub(self.position);
        if count == 0 {
            return Ok(None);
        }
        let at = HEADER_BYTES as u64 + self.position % (self.chunks * self.chunk_words) * WORD;
        let length = (count * WORD) as usize;
        if self.bytes.len() < length {
            self.bytes.resize(length, 0);
        }
        self.file.read_exact_at(&mut self.bytes[..length], at)?;
        let chunk_before = self.position / self.chunk_words;
        self.position += count;
        if self.position / self.chunk_words != chunk_before {
            // The words are copied: the writer may have the chunk again.
            self.put(Head::ChunksRead, self.position / self.chunk_words)?;
        }
        Ok(Some(self.bytes[..length].as_chunks().0))
    }

    /// Lets the writer use the places of `publications` again.
    pub fn acknowledge(&mut self, publications: u64) -> Result<()> {
        self.publications_consumed += publications;
        self.put(Head::PublicationsRead, self.publications_consumed)
    }

    /// Tells the writer that reading has stopped, and that all is well.
    pub fn dismiss(&self) {
        // If it can't be told, it finds out by itself.
        let _ = self.put(Head::Dismissed, 1);
    }

    fn read_state(&self) -> Result<State> {
        let words = read_words(&self.file, offset(Head::Next), STATE_WORDS)?;
        Ok(State {
            next: words[0],
            chunk: words[1],
            publications: words[2],
            is_closed: words[3] != 0,
        })
    }

    fn put(&self, word: Head, value: u64) -> Result<()> {
        self.file.write_all_at(&value.to_le_bytes(), offset(word))
    }
}

fn offset(word: Head) -> u64 {
    word as u64 * WORD
}

fn read_words(file: &File, at: u64, count: usize) -> Result<Vec<u64>> {
    let mut bytes = vec![0; count * WORD as usize];
    file.read_exact_at(&mut bytes, at)?;
    Ok(bytes.chunks_exact(8).map(word).collect())
}

fn word(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes.try_into().expect("chunks have eight bytes"))
}

/// The word at `index` of an entry; 0 beyond its end.
pub fn word_at(words: &Words, index: usize) -> u64 {
    words.get(index).map_or(0, |&word| u64::from_le_bytes(word))
}

/// The text at `index` of an entry: a word with its length, then its bytes. What is longer than
/// `bytes_max` is cut off there.
pub fn text_at(words: &Words, index: usize, bytes_max: usize) -> String {
    let length = usize::try_from(word_at(words, index)).unwrap_or(0);
    let bytes = words.get(index + 1..).unwrap_or_default().as_flattened();
    let bytes = &bytes[..length.min(bytes.len())];
    let mut text = String::from_utf8_lossy(bytes).into_owned();
    text.truncate(text.floor_char_boundary(bytes_max));
    text
}
