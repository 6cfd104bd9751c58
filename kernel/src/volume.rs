//! The volume of programs and files: a tape archive (POSIX `ustar`) on a disk.
//!
//! The rest of the kernel sees a [`Volume`]: names, sizes, and where each block of a file stands.

use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::arch::virtio::{Disk, SECTOR_BYTES};
use crate::store::read_now;

/// A file of a volume.
#[derive(Clone, Debug)]
pub struct File {
    /// Its name.
    pub name: String,
    /// Its length.
    pub bytes: u64,
}

/// The place of files.
pub trait Volume {
    /// All files, in the order in which they stand there.
    fn files(&self) -> &[File];

    /// The sector that holds block `block` of a file, each of 512 bytes.
    fn sector(&self, file: usize, block: u64) -> u64;

    /// The file of that name.
    fn find(&self, name: &str) -> Option<usize> {
        self.files().iter().position(|file| file.name == name)
    }
}

/// The reason why there is no volume.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unreadable {
    /// The disk fails to read.
    Disk,
    /// The sector holds no header of a file.
    Header {
        /// The sector.
        sector: u64,
    },
    /// A file is longer than the disk.
    Truncated {
        /// The sector of its header.
        sector: u64,
    },
}

/// A volume in the form of a tape archive: each file's header, then its blocks.
struct Archive {
    files: Vec<File>,
    starts: Vec<u64>,
}

impl Volume for Archive {
    fn files(&self) -> &[File] {
        &self.files
    }

    fn sector(&self, file: usize, block: u64) -> u64 {
        self.starts[file] + block
    }
}

/// Reads the headers of the archive on `disk`.
pub fn open(disk: &mut Disk) -> Result<Box<dyn Volume>, Unreadable> {
    let mut archive = Archive {
        files: Vec::new(),
        starts: Vec::new(),
    };
    let mut sector = 0;
    while sector + 8 <= disk.sectors() {
        let page = read_now(disk, sector).ok_or(Unreadable::Disk)?;
        let header = &page.0[..SECTOR_BYTES as usize];
        if header.iter().all(|&byte| byte == 0) {
            break;
        }
        let file = parse(header).ok_or(Unreadable::Header { sector })?;
        let blocks = file.bytes.div_ceil(SECTOR_BYTES);
        if blocks > disk.sectors() - sector - 1 {
            return Err(Unreadable::Truncated { sector });
        }
        archive.starts.push(sector + 1);
        archive.files.push(file);
        sector += 1 + blocks;
    }
    Ok(Box::new(archive))
}

/// Reads a header: the name, the length in octal digits, the sum of its bytes and the magic word.
fn parse(header: &[u8]) -> Option<File> {
    let sum: u64 = (header.iter().enumerate())
        .map(|(at, &byte)| match at {
            148..156 => u64::from(b' '),
            _ => u64::from(byte),
        })
        .sum();
    if &header[257..262] != b"ustar" || octal(&header[148..156])? != sum {
        return None;
    }
    let name = header[..100].split(|&byte| byte == 0).next()?;
    Some(File {
        name: core::str::from_utf8(name).ok()?.to_string(),
        bytes: octal(&header[124..136])?,
    })
}

fn octal(digits: &[u8]) -> Option<u64> {
    let text = core::str::from_utf8(digits).ok()?;
    u64::from_str_radix(text.trim_matches([' ', '\0']), 8).ok()
}
