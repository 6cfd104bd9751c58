//! The log of references that an engine writes for `tidemark record --live`.
//!
//! It is the recorder's log (`docs/formats/recorder-log-v2.md`): a ring in a file that outlives the
//! process, and that the command reads while it is written. Here it is a memfd that came with the
//! grant, so that a process needs no path to it, whatever it has given up.
//!
//! # Invariants
//! 1. An entry is whole before `next` moves past it: what a killed process has written is good.
//! 2. The writer waits for the reader where the ring is full, and for nothing else. A reader that
//!    is gone is not waited for.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::Duration;

use rustix::net::RecvFlags;
use tidemark_log::{HEADER_BYTES, Head, MAGIC, PUBLISHED_AT, PUBLISHED_MAX, SHARE_BYTES_MAX, kind};

use crate::sys::Errno;
use crate::sys::shm::Shared as Area;

const WORD: usize = 8;
/// The number of words in a chunk, and the number of chunks.
const CHUNK_WORDS: u64 = 8 << 10;
const CHUNKS: u64 = 64;
/// The time for which the writer sleeps before it looks again whether there is room.
const PAUSE: Duration = Duration::from_micros(500);

/// The file of a log with nothing in it yet: for the writer to open, and the reader.
pub fn create_file() -> Result<OwnedFd, Errno> {
    let file = rustix::fs::memfd_create("tidemark-log", rustix::fs::MemfdFlags::CLOEXEC)?;
    let bytes = HEADER_BYTES as u64 + CHUNKS * CHUNK_WORDS * WORD as u64;
    rustix::fs::ftruncate(&file, bytes)?;
    let ring = HEADER_BYTES as u64;
    let mut head = [0u8; 6 * WORD];
    for (at, value) in [
        (0, MAGIC),
        (2, CHUNK_WORDS),
        (3, CHUNKS),
        (4, ring),
        (5, ring),
    ] {
        head[at * WORD..][..WORD].copy_from_slice(&value.to_le_bytes());
    }
    rustix::io::pwrite(&file, &head, 0)?;
    Ok(file)
}

/// A log, as its process writes it.
pub struct LogWriter {
    area: Area,
    /// The connection to the supervisor, to see whether it is still there.
    reader: OwnedFd,
    /// Words written since the beginning.
    position: u64,
    publications: u64,
    /// The time of the last entry.
    time: u64,
    is_lost: bool,
}

impl LogWriter {
    /// Begins the log in `file`. `reader` is the connection to the process that reads it.
    pub fn begin(file: OwnedFd, reader: OwnedFd, pid: u32, parent: u32) -> io::Result<LogWriter> {
        let mut area = Area::open(file)?;
        area.close_fd();
        let ring_bytes = (CHUNKS * CHUNK_WORDS) as usize * WORD;
        if area.bytes() < HEADER_BYTES + ring_bytes {
            return Err(io::ErrorKind::InvalidData.into());
        }
        area.reach(0, area.bytes())?;
        let writer = LogWriter {
            area,
            reader,
            position: 0,
            publications: 0,
            time: 0,
            is_lost: false,
        };
        writer.set(Head::Pid, u64::from(pid));
        writer.set(Head::Parent, u64::from(parent));
        Ok(writer)
    }

    /// Lets go of the parent's log in a forked child, where the connection's number means nothing.
    pub fn abandon(self) {
        std::mem::forget(self.reader);
    }

    /// Writes that the page at `address` was touched at `time`, by accesses of `kinds`.
    pub fn touch(&mut self, address: usize, kinds: u8, time: u64) {
        self.tell_time(time);
        self.put(kind::TOUCH, u32::from(kinds), &[address as u64], None);
    }

    /// Writes that of the pages in `bytes` from `start` on a share, in 256, is taken to have been
    /// touched.
    pub fn touch_share(&mut self, start: usize, bytes: usize, share: u32, time: u64) {
        self.tell_time(time);
        let end = start as u64 + bytes as u64;
        for from in (start as u64..end).step_by(SHARE_BYTES_MAX as usize) {
            let words = [from, SHARE_BYTES_MAX.min(end - from)];
            self.put(kind::TOUCH_SHARE, share, &words, None);
        }
    }

    /// Writes an entry that happened at `time`.
    pub fn event(
        &mut self,
        entry: u8,
        argument: u32,
        words: &[u64],
        text: Option<&str>,
        time: u64,
    ) {
        self.tell_time(time);
        self.put(entry, argument, words, text);
    }

    /// Says that all so far was written before this moment, `stamp_ns` on the monotonic clock.
    pub fn publish(&mut self, stamp_ns: u64) {
        if self.publications - self.get(Head::PublicationsRead) >= PUBLISHED_MAX {
            // The next one will say so, too.
            return;
        }
        let at = PUBLISHED_AT + (self.publications % PUBLISHED_MAX) as usize * 2 * WORD;
        let words = self.area.slice::<AtomicU64>(at, 2);
        words[0].store(self.position, Relaxed);
        words[1].store(stamp_ns, Relaxed);
        self.publications += 1;
        self.set(Head::Publications, self.publications);
    }

    /// Returns true if there is no reader any more: what is written from now on is for nothing.
    pub fn is_over(&self) -> bool {
        self.is_lost || self.get(Head::Dismissed) != 0
    }

    fn tell_time(&mut self, time: u64) {
        if time > self.time {
            self.time = time;
            self.put(kind::CLOCK, 0, &[time], None);
        }
    }

    fn put(&mut self, entry: u8, argument: u32, words: &[u64], text: Option<&str>) {
        let text_words = text.map_or(0, |text| 1 + text.len().div_ceil(WORD));
        let length = (1 + words.len() + text_words) as u64;
        assert!(length <= CHUNK_WORDS);
        let left = CHUNK_WORDS - self.position % CHUNK_WORDS;
        if left < length {
            self.slot(self.position)
                .store(head(kind::PAD, left, 0), Relaxed);
            self.advance(left);
        }
        if self.is_lost {
            return;
        }
        let mut at = self.position;
        let mut write = |word: u64| {
            self.slot(at).store(word, Relaxed);
            at += 1;
        };
        write(head(entry, length, argument));
        words.iter().for_each(|&word| write(word));
        if let Some(text) = text {
            write(text.len() as u64);
            for part in text.as_bytes().chunks(WORD) {
                let mut word = [0; WORD];
                word[..part.len()].copy_from_slice(part);
                write(u64::from_le_bytes(word));
            }
        }
        self.advance(length);
    }

    /// Counts words that have been written, and makes sure that the chunk they end in is free.
    fn advance(&mut self, words: u64) {
        let chunk = self.position / CHUNK_WORDS;
        self.position += words;
        let next = self.position / CHUNK_WORDS;
        if next != chunk {
            self.set(Head::Chunk, next);
        }
        let place = HEADER_BYTES + self.place(self.position) * WORD;
        self.set(Head::Next, place as u64);
        if next != chunk {
            self.publish(monotonic_ns());
            self.await_room(next);
        }
    }

    /// Waits until the reader has left the place of `chunk`.
    fn await_room(&mut self, chunk: u64) {
        while chunk >= self.get(Head::ChunksRead) + CHUNKS {
            if self.is_over() || self.has_reader_left() {
                self.is_lost = true;
                return;
            }
            std::thread::sleep(PAUSE);
        }
    }

    fn has_reader_left(&self) -> bool {
        let flags = RecvFlags::DONTWAIT | RecvFlags::PEEK;
        match rustix::net::recv(&self.reader, &mut [0u8], flags) {
            Err(Errno::AGAIN | Errno::INTR) => false,
            Ok((count, _)) => count == 0,
            Err(_) => true,
        }
    }

    fn place(&self, position: u64) -> usize {
        (position % (CHUNKS * CHUNK_WORDS)) as usize
    }

    fn slot(&self, position: u64) -> &AtomicU64 {
        self.area.at(HEADER_BYTES + self.place(position) * WORD)
    }

    fn set(&self, field: Head, value: u64) {
        self.area
            .at::<AtomicU64>(field as usize * WORD)
            .store(value, Release);
    }

    fn get(&self, field: Head) -> u64 {
        self.area
            .at::<AtomicU64>(field as usize * WORD)
            .load(Acquire)
    }
}

fn head(entry: u8, length: u64, argument: u32) -> u64 {
    u64::from(entry) << 56 | length << 32 | u64::from(argument)
}

/// Nanoseconds on the clock that publications bear.
pub fn monotonic_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;

    fn open() -> (LogWriter, std::fs::File, UnixStream) {
        let file = create_file().unwrap();
        let copy = std::fs::File::from(file.try_clone().unwrap());
        let (mine, other) = UnixStream::pair().unwrap();
        let writer = LogWriter::begin(file, mine.into(), 7, 3).unwrap();
        (writer, copy, other)
    }

    fn words(file: &std::fs::File, at: usize, count: usize) -> Vec<u64> {
        use std::os::unix::fs::FileExt;
        let mut bytes = vec![0; count * WORD];
        file.read_exact_at(&mut bytes, at as u64).unwrap();
        let words = bytes.as_chunks::<8>().0.iter();
        words.map(|&word| u64::from_le_bytes(word)).collect()
    }

    #[test]
    fn entries_and_publications_are_where_the_format_says() {
        let (mut writer, file, _other) = open();
        writer.touch(0x5000, 4, 100);
        writer.touch(0x6000, 2, 100);
        writer.publish(55);
        let ring = words(&file, HEADER_BYTES, 6);
        let touch = |kinds| head(kind::TOUCH, 2, kinds);
        let clock = [head(kind::CLOCK, 2, 0), 100];
        assert_eq!(ring[..2], clock);
        assert_eq!(ring[2..], [touch(4), 0x5000, touch(2), 0x6000]);
        assert_eq!(words(&file, PUBLISHED_AT, 2), [6, 55]);
        let head = words(&file, 0, 13);
        assert_eq!((head[0], head[1], head[12]), (MAGIC, 7, 3));
        assert_eq!(head[5] - head[4], 6 * WORD as u64);
    }

    #[test]
    fn an_entry_never_crosses_the_end_of_a_chunk() {
        let (mut writer, file, _other) = open();
        let long = "x".repeat(4096);
        for _ in 0..20 {
            writer.event(kind::MARK, 0, &[], Some(&long), 0);
        }
        let length = 2 + 4096 / WORD as u64;
        let fit = CHUNK_WORDS / length;
        let pad = words(&file, HEADER_BYTES + (fit * length) as usize * WORD, 1)[0];
        assert_eq!(pad, head(kind::PAD, CHUNK_WORDS - fit * length, 0));
        assert_eq!(words(&file, Head::Chunk as usize * WORD, 1), [1]);
    }

    #[test]
    fn a_full_ring_is_over_once_its_reader_has_left() {
        let (mut writer, _file, other) = open();
        let entries = CHUNKS * CHUNK_WORDS / 2;
        (1..entries).for_each(|entry| writer.touch(entry as usize * 4096, 4, 0));
        assert!(!writer.is_over());
        drop(other);
        writer.touch(4096, 4, 0);
        assert!(writer.is_over());
        writer.touch(4096, 4, 0);
    }

    #[test]
    fn a_writer_waits_for_room() {
        use std::os::unix::fs::FileExt;
        let (mut writer, file, _other) = open();
        let entries = CHUNKS * CHUNK_WORDS / 2;
        (1..entries).for_each(|entry| writer.touch(entry as usize * 4096, 4, 0));
        let reader = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(50));
            let at = Head::ChunksRead as u64 * WORD as u64;
            file.write_all_at(&1u64.to_le_bytes(), at).unwrap();
        });
        writer.touch(4096, 4, 0);
        assert!(!writer.is_over());
        assert_eq!(writer.position, CHUNKS * CHUNK_WORDS);
        reader.join().unwrap();
    }
}
