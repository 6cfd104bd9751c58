//! Programs: what an executable file (ELF, 64 bits, static) says of itself.
//!
//! Only the first page of the file is looked at. Its segments begin pages, in the file as in
//! memory, so that each page of a program is a page of its file or none.

use alloc::vec::Vec;

use tidemark_core::id::{PAGE_BYTES, VirtPage};
use tidemark_core::machine::Rights;

/// Programs lie between these addresses, ...
const LEAST: u64 = 0x10000;
/// ... and what they map from here on.
pub const MAPPED: u64 = 0x10_0000_0000;
/// The page behind the stack.
pub const STACK_END: VirtPage = VirtPage(0x0007_ffff_ffff);
/// The most the stack grows to.
pub const STACK_PAGES: u64 = 64;

/// A part of a program that is mapped as a whole.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Segment {
    /// The page at which it begins.
    pub at: VirtPage,
    /// The number of its pages that are in the file, ...
    pub file_pages: u64,
    /// ... from which page of the file on.
    pub file_first: u64,
    /// The number of its pages in all; what is not in the file reads as zeros.
    pub pages: u64,
    /// The rights of the program there.
    pub rights: Rights,
    /// True if it may execute it.
    pub is_text: bool,
}

/// The contents of an executable.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Program {
    /// The address at which it begins to run.
    pub entry: u64,
    /// Its parts.
    pub segments: Vec<Segment>,
}

/// Reads the first page of an executable of `file_bytes` bytes; `None` if it is none, or none that
/// this kernel runs.
pub fn parse(page: &[u8], file_bytes: u64) -> Option<Program> {
    let is_executable = page.get(..7)? == b"\x7fELF\x02\x01\x01"
        && half(page, 16)? == 2
        && half(page, 18)? == 62
        && half(page, 54)? == 56;
    if !is_executable {
        return None;
    }
    let (table, count) = (word(page, 32)?, half(page, 56)?);
    let mut segments = Vec::new();
    for number in 0..u64::from(count) {
        let header = table.checked_add(56 * number)?;
        let header = page.get(usize::try_from(header).ok()?..)?;
        if word(header, 0)? as u32 == 1 {
            segments.extend(parse_segment(header, file_bytes)?);
        }
    }
    Some(Program {
        entry: word(page, 24)?,
        segments,
    })
}

/// Reads the header of a segment that is to be loaded. An empty one is nothing to be mapped.
fn parse_segment(header: &[u8], file_bytes: u64) -> Option<Option<Segment>> {
    let flags = (word(header, 0)? >> 32) as u32;
    let (offset, address) = (word(header, 8)?, word(header, 16)?);
    let (in_file, in_memory) = (word(header, 32)?, word(header, 40)?);
    let end = address.checked_add(in_memory)?;
    let is_placed = address.is_multiple_of(PAGE_BYTES) && offset.is_multiple_of(PAGE_BYTES);
    let is_inside = address >= LEAST && end <= MAPPED && offset.checked_add(in_file)? <= file_bytes;
    // Behind the last byte in the file come others of the file, unless the page ends there.
    let is_clean = in_memory == in_file || in_memory > in_file && in_file % PAGE_BYTES == 0;
    if !is_placed || !is_inside || !is_clean {
        return None;
    }
    if in_memory == 0 {
        return Some(None);
    }
    Some(Some(Segment {
        at: VirtPage(address / PAGE_BYTES),
        file_pages: in_file.div_ceil(PAGE_BYTES),
        file_first: offset / PAGE_BYTES,
        pages: in_memory.div_ceil(PAGE_BYTES),
        rights: if flags & 2 != 0 {
            Rights::Write
        } else {
            Rights::Read
        },
        is_text: flags & 3 == 1,
    }))
}

fn word(bytes: &[u8], at: usize) -> Option<u64> {
    let word = bytes.get(at..at.checked_add(8)?)?;
    Some(u64::from_le_bytes(word.try_into().expect("eight bytes")))
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    let half = bytes.get(at..at.checked_add(2)?)?;
    Some(u16::from_le_bytes(half.try_into().expect("two bytes")))
}
