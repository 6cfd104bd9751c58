//! The volume of programs and files: VMUFAT on a disk, mounted by [`tidemark_vmufat`].
//!
//! The rest of the kernel sees names, and the sector of each block. The directory stays as it is;
//! what programs write to mapped files goes into the blocks that the files have.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use tidemark_vmufat::{BLOCK_BYTES, Block, BlockDevice, Error, Volume};

use crate::arch::virtio::{Disk, SECTOR_BYTES};
use crate::say;
use crate::store::read_now;

/// The most findings of a volume that are printed.
const FINDINGS_TOLD: usize = 4;

const _: () = assert!(BLOCK_BYTES as u64 == SECTOR_BYTES);

/// A file of the volume.
#[derive(Clone, Debug)]
pub struct File {
    /// Its name, of bytes that may be no text.
    pub name: Vec<u8>,
    blocks: Vec<u16>,
}

impl File {
    /// Its length: whole blocks.
    pub fn bytes(&self) -> u64 {
        self.blocks.len() as u64 * SECTOR_BYTES
    }

    /// The sector that holds its block `block`.
    pub fn sector(&self, block: u64) -> u64 {
        u64::from(self.blocks[block as usize])
    }
}

/// The files of a volume, in the order of their records.
pub struct Files(Vec<File>);

impl Files {
    /// The file of that number.
    pub fn get(&self, number: usize) -> Option<&File> {
        self.0.get(number)
    }

    /// The number of the file of that name.
    pub fn find(&self, name: &[u8]) -> Option<usize> {
        self.0.iter().position(|file| file.name == name)
    }
}

impl core::ops::Index<usize> for Files {
    type Output = File;

    fn index(&self, number: usize) -> &File {
        &self.0[number]
    }
}

/// The contents of a file without what fills its last block. Nothing on a volume says how much of
/// that block is meant: zeros at its end are taken for filling.
pub fn without_filling(contents: &[u8]) -> &[u8] {
    let least = contents.len().saturating_sub(BLOCK_BYTES);
    let last = contents.iter().rposition(|&byte| byte != 0);
    &contents[..last.map_or(0, |last| last + 1).max(least)]
}

/// The reason why the disk does not do what mounting asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Failure {
    /// The disk fails to read a block.
    Unreadable(u16),
    /// Files are neither made nor deleted here.
    ReadOnly,
}

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Unreadable(number) => write!(out, "fails to read its block {number}"),
            Failure::ReadOnly => write!(out, "is mounted without the right to change files"),
        }
    }
}

/// The disk as a device of blocks.
struct Blocks<'a>(&'a mut Disk);

impl BlockDevice for Blocks<'_> {
    type Error = Failure;

    fn blocks(&self) -> u32 {
        u32::try_from(self.0.sectors()).unwrap_or(u32::MAX)
    }

    fn read(&mut self, number: u16, block: &mut Block) -> Result<(), Failure> {
        let pages = read_now(self.0, u64::from(number), 1);
        let pages = pages.ok_or(Failure::Unreadable(number))?;
        block.copy_from_slice(&pages[0].0[..BLOCK_BYTES]);
        Ok(())
    }

    fn write(&mut self, _number: u16, _block: &Block) -> Result<(), Failure> {
        Err(Failure::ReadOnly)
    }

    fn settle(&mut self) -> Result<(), Failure> {
        Ok(())
    }
}

/// Mounts the volume on `disk`, and says what is wrong with it. Files that are damaged are left
/// out.
pub fn mount(disk: &mut Disk) -> Result<Files, Error<Failure>> {
    let volume = Volume::mount(Blocks(disk))?;
    let findings = volume.findings();
    for finding in findings.iter().take(FINDINGS_TOLD) {
        say!("kernel: volume: {finding}");
    }
    if findings.len() > FINDINGS_TOLD {
        say!(
            "kernel: volume: and {} more",
            findings.len() - FINDINGS_TOLD
        );
    }
    let mut files = Vec::new();
    for file in volume.files() {
        match volume.blocks_of(&file.name) {
            Ok(blocks) => files.push(File {
                name: file.name.as_bytes().to_vec(),
                blocks,
            }),
            Err(_) => say!("kernel: volume: `{}` is left out", file.name),
        }
    }
    Ok(Files(files))
}

/// The name as text, for lines of the console.
pub fn shown(name: &[u8]) -> String {
    String::from_utf8_lossy(name).into_owned()
}
