//! The mappings of this process.
//!
//! `/proc/self/maps` is read whole, through one buffer of own memory, because the list can change
//! between two reads.

use std::os::fd::OwnedFd;

use linux_raw_sys::general as raw;
use linux_raw_sys::general::procmap_query_flags as Flag;
use rustix::fs::{Mode, OFlags};
use rustix::ioctl::{Opcode, Updater, opcode};

use super::Errno;
use super::memory::Table;

const BUFFER_BYTES: usize = 64 * 1024;
const NAME_BYTES: usize = 64;
const QUERY: Opcode = opcode::read_write::<raw::procmap_query>(b'f', 17);

/// The kind of a mapping, as far as its name tells.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// No name: anonymous.
    Anonymous,
    /// `[heap]`.
    Heap,
    /// `[stack]`.
    Stack,
    /// `[anon:…]`: anonymous, named by the program.
    Named,
    /// Another name in brackets: the kernel's own (vdso, vvar, …).
    Special,
    /// A file, or shared memory.
    File,
}

/// One mapping.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Area {
    /// First address.
    pub start: usize,
    /// Just past the last address.
    pub end: usize,
    /// True if it may be read.
    pub is_readable: bool,
    /// True if it may be written.
    pub is_writable: bool,
    /// True if it may be executed.
    pub is_executable: bool,
    /// True if changes are seen by others.
    pub is_shared: bool,
    /// The kind.
    pub kind: Kind,
}

/// The reader of mappings of this process. Keeps its file open and its buffer mapped.
pub struct Maps {
    maps: OwnedFd,
    buffer: Table<u8>,
}

impl Maps {
    /// Opens the file of this process. A forked child needs its own.
    pub fn open() -> Result<Maps, Errno> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        Ok(Maps {
            maps: rustix::fs::open("/proc/self/maps", flags, Mode::empty())?,
            buffer: Table::new(BUFFER_BYTES)?,
        })
    }

    /// Shows every mapping to `visit`, in the order of addresses.
    pub fn visit_areas(&mut self, mut visit: impl FnMut(Area)) -> Result<(), Errno> {
        rustix::fs::seek(&self.maps, rustix::fs::SeekFrom::Start(0))?;
        let mut filled = 0;
        loop {
            let count = match rustix::io::read(&self.maps, &mut self.buffer[filled..]) {
                Ok(count) => count,
                Err(Errno::INTR) => continue,
                Err(error) => return Err(error),
            };
            if count == 0 {
                return Ok(());
            }
            filled += count;
            let whole = self.buffer[..filled]
                .iter()
                .rposition(|byte| *byte == b'\n');
            let Some(end) = whole.map(|at| at + 1) else {
                // A line longer than the buffer cannot be: a path has at most 4096 bytes.
                return Err(Errno::NOBUFS);
            };
            for line in self.buffer[..end].split(|byte| *byte == b'\n') {
                if let Some(area) = parse_line(line) {
                    visit(area);
                }
            }
            self.buffer.copy_within(end..filled, 0);
            filled -= end;
        }
    }

    /// The mapping that holds `at`, or the next one above it, by one question to the kernel
    /// (Linux 6.11). `Err(NOTTY)` if it has none; `Ok(None)` if nothing is mapped from there on.
    pub fn find_area(&self, at: usize) -> Result<Option<Area>, Errno> {
        let mut name = [0u8; NAME_BYTES];
        let (query, error) = self.query(at, &mut []);
        match error {
            None if query.inode != 0 => return Ok(Some(area_of(&query, Kind::File))),
            None => {}
            Some(Errno::NOENT) => return Ok(None),
            Some(error) => return Err(error),
        }
        // Names are asked for apart, since a file's may be longer than any buffer here.
        match self.query(at, &mut name) {
            (query, None) => {
                let len = (query.vma_name_size as usize)
                    .saturating_sub(1)
                    .min(NAME_BYTES);
                Ok(Some(area_of(
                    &query,
                    kind_of(&name[..len], query.inode != 0),
                )))
            }
            (_, Some(Errno::NAMETOOLONG)) => Ok(Some(area_of(&query, Kind::Named))),
            (_, Some(Errno::NOENT)) => Ok(None),
            (_, Some(error)) => Err(error),
        }
    }
}

/// Shows every mapping in `start..end`, cut to that range, in the order of addresses, until `visit`
/// answers an error. What is no file's is said to be anonymous, whatever its name. It opens a file
/// in the calling thread's table for that time, and takes no memory. `Err(NOTTY)` before Linux
/// 6.11.
pub fn visit_within(
    start: usize,
    end: usize,
    mut visit: impl FnMut(Area) -> Result<(), Errno>,
) -> Result<(), Errno> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let maps = rustix::fs::open("/proc/self/maps", flags, Mode::empty())?;
    let mut at = start;
    while at < end {
        let (found, error) = query(&maps, at, &mut []);
        match error {
            None => {}
            Some(Errno::NOENT) => break,
            Some(error) => return Err(error),
        }
        let kind = match found.inode {
            0 => Kind::Anonymous,
            _ => Kind::File,
        };
        let area = area_of(&found, kind);
        if area.start >= end {
            break;
        }
        visit(Area {
            start: area.start.max(at),
            end: area.end.min(end),
            ..area
        })?;
        at = area.end;
    }
    Ok(())
}

impl Maps {
    fn query(&self, at: usize, name: &mut [u8]) -> (raw::procmap_query, Option<Errno>) {
        query(&self.maps, at, name)
    }
}

/// Asks about the mapping that holds `at`, or the next one above it.
fn query(maps: &OwnedFd, at: usize, name: &mut [u8]) -> (raw::procmap_query, Option<Errno>) {
    // SAFETY: a C struct of integers, for which zeros are a value.
    let mut query: raw::procmap_query = unsafe { std::mem::zeroed() };
    query.size = size_of::<raw::procmap_query>() as u64;
    query.query_flags = Flag::PROCMAP_QUERY_COVERING_OR_NEXT_VMA as u64;
    query.query_addr = at as u64;
    if !name.is_empty() {
        query.vma_name_size = u32::try_from(name.len()).unwrap_or(0);
        query.vma_name_addr = name.as_mut_ptr() as u64;
    }
    // SAFETY: opcode and argument belong together; the name's buffer is as long as it says.
    let answer = unsafe { rustix::ioctl::ioctl(maps, Updater::<QUERY, _>::new(&mut query)) };
    (query, answer.err())
}

fn area_of(query: &raw::procmap_query, kind: Kind) -> Area {
    let has = |flag: Flag| query.vma_flags & flag as u64 != 0;
    Area {
        start: query.vma_start as usize,
        end: query.vma_end as usize,
        is_readable: has(Flag::PROCMAP_QUERY_VMA_READABLE),
        is_writable: has(Flag::PROCMAP_QUERY_VMA_WRITABLE),
        is_executable: has(Flag::PROCMAP_QUERY_VMA_EXECUTABLE),
        is_shared: has(Flag::PROCMAP_QUERY_VMA_SHARED),
        kind,
    }
}

/// Reads one line: `start-end rwxp offset device inode   name`.
fn parse_line(line: &[u8]) -> Option<Area> {
    let mut words = line
        .split(|byte| *byte == b' ')
        .filter(|word| !word.is_empty());
    let mut bounds = words.next()?.split(|byte| *byte == b'-');
    let start = parse_hex(bounds.next()?)?;
    let end = parse_hex(bounds.next()?)?;
    let rights = words.next()?;
    let inode = words.nth(2)?;
    let name = words.next().unwrap_or(b"");
    let has = |at: usize, letter: u8| rights.get(at) == Some(&letter);
    Some(Area {
        start,
        end,
        is_readable: has(0, b'r'),
        is_writable: has(1, b'w'),
        is_executable: has(2, b'x'),
        is_shared: has(3, b's'),
        kind: kind_of(name, inode != b"0"),
    })
}

fn kind_of(name: &[u8], has_inode: bool) -> Kind {
    match name {
        _ if has_inode => Kind::File,
        b"" => Kind::Anonymous,
        b"[heap]" => Kind::Heap,
        b"[stack]" => Kind::Stack,
        _ if name.starts_with(b"[anon:") => Kind::Named,
        _ if name.starts_with(b"[") => Kind::Special,
        _ => Kind::File,
    }
}

fn parse_hex(digits: &[u8]) -> Option<usize> {
    usize::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_maps_is_read_whole() {
        let line = b"7f6e2d000000-7f6e2d021000 rw-p 00000000 00:00 0 ";
        let area = parse_line(line).unwrap();
        assert_eq!((area.start, area.end), (0x7f6e_2d00_0000, 0x7f6e_2d02_1000));
        assert!(area.is_readable && area.is_writable && !area.is_executable && !area.is_shared);
        assert_eq!(area.kind, Kind::Anonymous);
        let line = b"5581e0a00000-5581e0a21000 r--s 00000000 fd:00 131 /a file (deleted)";
        let area = parse_line(line).unwrap();
        assert!(area.is_shared && !area.is_writable);
        assert_eq!(area.kind, Kind::File);
        assert_eq!(kind_of(b"[anon: glibc: malloc]", false), Kind::Named);
        assert_eq!(kind_of(b"[vdso]", false), Kind::Special);
        assert_eq!(kind_of(b"/dev/zero", false), Kind::File);
        assert!(parse_line(b"no mapping at all").is_none());
    }

    #[test]
    fn own_mappings_are_found() {
        let own = super::super::memory::Mapping::anonymous(64 * crate::sys::PAGE).unwrap();
        let mut maps = Maps::open().unwrap();
        let mut seen = 0;
        maps.visit_areas(|area| {
            seen += usize::from(area.start <= own.start() && own.start() + own.bytes() <= area.end);
        })
        .unwrap();
        assert_eq!(seen, 1);
        assert!(super::super::memory::overlaps_own(
            own.start() + 5,
            own.start() + 6
        ));
        match maps.find_area(own.start()) {
            Ok(area) => assert!(area.unwrap().start <= own.start()),
            Err(error) => assert_eq!(error, Errno::NOTTY, "only an old kernel may lack the call"),
        }
    }
}
