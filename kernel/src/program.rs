//! Programs: what an executable file (ELF, 64 bits, static) says of itself.
//!
//! Only the first page of the file is looked at. Its segments begin pages, in the file as in
//! memory, so that each page of a program is a page of its file or none.

use alloc::vec::Vec;
use core::fmt;

use tidemark_core::id::{PAGE_BYTES, VirtPage};
use tidemark_core::seams::machine::Rights;

/// Programs lie between these addresses.
const LEAST: u64 = 0x10000;
/// The address from which on programs map memory.
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
    /// The number of its pages that are in the file.
    pub file_pages: u64,
    /// The first of those pages in the file.
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

/// The reason why a file is no program that this kernel runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unfit {
    /// The file is no static executable (ELF, 64 bits) for this processor.
    NoExecutable,
    /// The headers of its segments are not all in its first page.
    NoHeaders,
    /// A segment, by its number from 0, can't be loaded.
    Segment(u64, Fault),
    /// Its segments can't be mapped beside each other.
    Unmappable,
}

/// A fault of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// The segment does not begin a page, in the file and in memory.
    Place { offset: u64, address: u64 },
    /// The segment lies outside of the addresses of programs.
    Address { address: u64, bytes: u64 },
    /// The file ends before it.
    Cut { offset: u64, bytes: u64 },
    /// The bytes behind its own in the file, on their last page, are not zeros.
    Tail { in_file: u64, in_memory: u64 },
}

impl fmt::Display for Unfit {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unfit::NoExecutable => write!(out, "it is no static ELF executable for x86-64"),
            Unfit::NoHeaders => {
                write!(out, "the headers of its segments end behind its first page")
            }
            Unfit::Segment(number, fault) => write!(out, "its segment {number} {fault}"),
            Unfit::Unmappable => write!(out, "its segments overlap"),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Place { offset, address } => write!(
                out,
                "is at {address:#x}, from byte {offset} of the file on; both must begin a page \
                 (link it with `kernel/user/program.ld`)"
            ),
            Fault::Address { address, bytes } => write!(
                out,
                "has {bytes} bytes at {address:#x}; programs lie from {LEAST:#x} to {MAPPED:#x}"
            ),
            Fault::Cut { offset, bytes } => {
                write!(
                    out,
                    "has {bytes} bytes from byte {offset} on; the file ends before"
                )
            }
            Fault::Tail { in_file, in_memory } => write!(
                out,
                "has {in_memory} bytes, and {in_file} of them in the file; zeros must begin a page"
            ),
        }
    }
}

/// Reads the first page of an executable of `file_bytes` bytes.
pub fn parse(page: &[u8], file_bytes: u64) -> Result<Program, Unfit> {
    let (entry, table, count) = executable(page).ok_or(Unfit::NoExecutable)?;
    let mut segments = Vec::new();
    for number in 0..u64::from(count) {
        let header = header(page, table, number).ok_or(Unfit::NoHeaders)?;
        if header.is_loaded() {
            let segment = header.segment(file_bytes);
            segments.push(segment.map_err(|fault| Unfit::Segment(number, fault))?);
        }
    }
    Ok(Program { entry, segments })
}

/// The entry of an executable, the place of its headers, and their number.
fn executable(page: &[u8]) -> Option<(u64, u64, u16)> {
    let is_executable = page.get(..7)? == b"\x7fELF\x02\x01\x01"
        && half(page, 16)? == 2
        && half(page, 18)? == 62
        && half(page, 54)? == 56;
    let found = (word(page, 24)?, word(page, 32)?, half(page, 56)?);
    is_executable.then_some(found)
}

/// The header of a segment.
struct Header {
    kind: u32,
    flags: u32,
    offset: u64,
    address: u64,
    in_file: u64,
    in_memory: u64,
}

fn header(page: &[u8], table: u64, number: u64) -> Option<Header> {
    let at = table.checked_add(56 * number)?;
    let bytes = page.get(usize::try_from(at).ok()?..)?;
    let first = word(bytes, 0)?;
    Some(Header {
        kind: first as u32,
        flags: (first >> 32) as u32,
        offset: word(bytes, 8)?,
        address: word(bytes, 16)?,
        in_file: word(bytes, 32)?,
        in_memory: word(bytes, 40)?,
    })
}

impl Header {
    /// True if the segment is to be loaded. One without bytes is nothing to be mapped, wherever it
    /// is said to be: linkers leave such of sections that turned out empty.
    fn is_loaded(&self) -> bool {
        self.kind == 1 && (self.in_memory, self.in_file) != (0, 0)
    }

    fn segment(&self, file_bytes: u64) -> Result<Segment, Fault> {
        let Header {
            offset,
            address,
            in_file,
            in_memory,
            ..
        } = *self;
        if !address.is_multiple_of(PAGE_BYTES) || !offset.is_multiple_of(PAGE_BYTES) {
            return Err(Fault::Place { offset, address });
        }
        let end = address.checked_add(in_memory);
        if address < LEAST || end.is_none_or(|end| end > MAPPED) {
            let bytes = in_memory;
            return Err(Fault::Address { address, bytes });
        }
        if offset
            .checked_add(in_file)
            .is_none_or(|end| end > file_bytes)
        {
            let bytes = in_file;
            return Err(Fault::Cut { offset, bytes });
        }
        // Behind the last byte in the file come others of the file, unless the page ends there.
        if in_memory < in_file || in_memory > in_file && in_file % PAGE_BYTES != 0 {
            return Err(Fault::Tail { in_file, in_memory });
        }
        Ok(Segment {
            at: VirtPage(address / PAGE_BYTES),
            file_pages: in_file.div_ceil(PAGE_BYTES),
            file_first: offset / PAGE_BYTES,
            pages: in_memory.div_ceil(PAGE_BYTES),
            rights: match self.flags & 2 {
                0 => Rights::Read,
                _ => Rights::Write,
            },
            is_text: self.flags & 3 == 1,
        })
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u64> {
    let word = bytes.get(at..at.checked_add(8)?)?;
    Some(u64::from_le_bytes(word.try_into().expect("eight bytes")))
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    let half = bytes.get(at..at.checked_add(2)?)?;
    Some(u16::from_le_bytes(half.try_into().expect("two bytes")))
}
