//! The recorder's log (`docs/formats/recorder-log-v2.md`): its layout, and its reader.
//!
//! A log is a ring in a file that a recorded process has mapped. Two write it: the Valgrind tool in
//! `recorder/`, in C, and the engine of `tidemark record --live`. One reads it: [`Log`]. The
//! constants here are the layout's only home in Rust; a test compares the tool's header with them.

#![forbid(unsafe_code)]

mod reader;

pub use reader::{Collected, Log, Publication, Words, text_at, word_at};

/// The first word of a log.
pub const MAGIC: u64 = u64::from_le_bytes(*b"&tidlog2");
/// The bytes before the ring.
pub const HEADER_BYTES: usize = 12 * 4096;
/// The offset at which publications begin.
pub const PUBLISHED_AT: usize = 256;
/// The number of publications that there is room for.
pub const PUBLISHED_MAX: u64 = 2048;

/// The most memory that one entry says the touched share of.
pub const SHARE_BYTES_MAX: u64 = 1 << 28;

/// The words of the head that change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Head {
    /// The process that writes.
    Pid = 1,
    /// Words in a chunk.
    ChunkWords = 2,
    /// Chunks in the ring.
    Chunks = 3,
    /// The address of the ring in the process.
    Ring = 4,
    /// The address of the next entry.
    Next = 5,
    /// The chunk that is written, counted from the first.
    Chunk = 6,
    /// Publications made.
    Publications = 7,
    /// Not 0 once the process has closed its log.
    Closed = 8,
    /// Chunks that have been read: they may be written again.
    ChunksRead = 9,
    /// Publications that have been read.
    PublicationsRead = 10,
    /// Not 0 once the reader has stopped.
    Dismissed = 11,
    /// The process that forked this one, or 0.
    Parent = 12,
}

/// Kinds of entries, in the top byte of their first word.
pub mod kind {
    #![allow(missing_docs)]
    pub const RUN: u8 = 0;
    pub const PAD: u8 = 1;
    pub const DEFINE: u8 = 2;
    pub const HELLO: u8 = 3;
    pub const MAP: u8 = 4;
    pub const UNMAP: u8 = 5;
    pub const REMAP: u8 = 6;
    pub const PROTECT: u8 = 7;
    pub const BREAK: u8 = 8;
    pub const THREAD_START: u8 = 9;
    pub const THREAD_EXIT: u8 = 10;
    pub const THREAD_SWITCH: u8 = 11;
    pub const FORK: u8 = 12;
    pub const EXEC: u8 = 13;
    pub const EXEC_FAILED: u8 = 14;
    pub const WAIT: u8 = 15;
    pub const MARK: u8 = 16;
    pub const EXIT: u8 = 17;
    pub const FATAL: u8 = 18;
    pub const KERNEL: u8 = 19;
    pub const CUT: u8 = 20;
    pub const CLOCK: u8 = 21;
    pub const TOUCH: u8 = 22;
    pub const WINDOW: u8 = 23;
    pub const FILE: u8 = 24;
    pub const WINDOW_LENGTH: u8 = 25;
    pub const TOUCH_SHARE: u8 = 26;
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = include_str!("../../../recorder/log.h");
    const SOURCE: &str = include_str!("../../../recorder/log.c");

    /// The value after `name` in a text of C, without what is around a number.
    fn value_of<'a>(text: &'a str, name: &str) -> &'a str {
        let found = text.lines().find_map(|line| {
            let rest = line.trim().strip_prefix(name)?;
            let rest = rest.trim_start_matches([' ', '=']);
            Some(rest.split("/*").next()?.trim_end_matches([',', ' ']))
        });
        found.unwrap_or_else(|| panic!("the recorder has no `{name}`"))
    }

    #[test]
    fn kinds_are_those_of_the_valgrind_tool() {
        let of_both = [
            ("RUN", kind::RUN),
            ("PAD", kind::PAD),
            ("DEFINE", kind::DEFINE),
            ("HELLO", kind::HELLO),
            ("MAP", kind::MAP),
            ("UNMAP", kind::UNMAP),
            ("REMAP", kind::REMAP),
            ("PROTECT", kind::PROTECT),
            ("BREAK", kind::BREAK),
            ("THREAD_START", kind::THREAD_START),
            ("THREAD_EXIT", kind::THREAD_EXIT),
            ("THREAD_SWITCH", kind::THREAD_SWITCH),
            ("FORK", kind::FORK),
            ("EXEC", kind::EXEC),
            ("EXEC_FAILED", kind::EXEC_FAILED),
            ("WAIT", kind::WAIT),
            ("MARK", kind::MARK),
            ("EXIT", kind::EXIT),
            ("FATAL", kind::FATAL),
            ("KERNEL", kind::KERNEL),
            ("CUT", kind::CUT),
            ("FILE", kind::FILE),
        ];
        for (name, number) in of_both {
            let value = value_of(HEADER, &format!("LOG_{name} "));
            assert_eq!(value, number.to_string(), "{name}");
        }
        let numbered = HEADER.lines().filter(|line| {
            let line = line.trim();
            line.starts_with("LOG_") && line.contains(" = ")
        });
        assert_eq!(numbered.count(), of_both.len());
    }

    #[test]
    fn the_head_is_that_of_the_valgrind_tool() {
        let magic = value_of(SOURCE, "#define FILE_MAGIC").trim_start_matches("0x");
        let magic = magic.trim_end_matches("ULL");
        assert_eq!(u64::from_str_radix(magic, 16), Ok(MAGIC));
        let published = value_of(SOURCE, "#define PUBLISHED_MAX");
        assert_eq!(published, PUBLISHED_MAX.to_string());
        let (pages, page_bytes) = (HEADER_BYTES / 4096, 4096);
        let bytes = value_of(SOURCE, "#define HEADER_BYTES");
        assert_eq!(bytes, format!("({pages} * {page_bytes})"));
        let fields = [
            ("ULong pid;", Head::Pid),
            ("ULong chunk_words;", Head::ChunkWords),
            ("ULong chunks;", Head::Chunks),
            ("ULong ring_address;", Head::Ring),
            ("ULong* next;", Head::Next),
            ("ULong chunk;", Head::Chunk),
            ("ULong publications;", Head::Publications),
            ("ULong is_closed;", Head::Closed),
            ("ULong chunks_consumed;", Head::ChunksRead),
            ("ULong publications_consumed;", Head::PublicationsRead),
            ("ULong is_dismissed;", Head::Dismissed),
            ("ULong parent;", Head::Parent),
        ];
        let (_, head) = SOURCE.split_once("ULong magic;").expect("the head begins");
        let lines: Vec<&str> = head.lines().skip(1).map(str::trim).collect();
        for (field, word) in fields {
            assert!(lines[word as usize - 1].starts_with(field), "{word:?}");
        }
    }
}
