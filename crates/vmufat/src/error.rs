//! The errors of a volume.

use core::fmt;

use crate::check::Finding;
use crate::layout::{BLOCKS_MAX, BLOCKS_MIN, Flaw};
use crate::name::Name;

/// A reason why a volume, or a file of it, can't be used. `E` is the error of its device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error<E> {
    /// The device failed.
    Device(E),
    /// No volume has this many blocks.
    Size {
        /// The blocks of the device.
        blocks: u32,
    },
    /// The device is not formatted.
    Unformatted {
        /// The block that should be the root block.
        root: u16,
    },
    /// The root block has a number that can't be right.
    Layout(Flaw),
    /// The volume contradicts itself, so that nothing may be changed, or this file not be read.
    Damaged(Finding),
    /// There is no file of this name.
    NoFile(Name),
    /// There are not enough free blocks.
    Full {
        /// The blocks it takes.
        needed: u64,
        /// The blocks there are.
        free: u32,
    },
    /// There are not enough free blocks in one piece from block 0 on.
    NoPlaceForGame {
        /// The blocks it takes.
        needed: u64,
        /// The blocks there are.
        free: u32,
    },
    /// The directory has no free record.
    DirectoryFull {
        /// The records it has.
        records: usize,
    },
}

impl<E: fmt::Display> fmt::Display for Error<E> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Device(error) => write!(out, "{error}"),
            Error::Size { blocks } => write!(
                out,
                "is {blocks} blocks long; a volume has {BLOCKS_MIN} to {BLOCKS_MAX}"
            ),
            Error::Unformatted { root } => write!(
                out,
                "is no VMUFAT volume: its last block, {root}, does not begin with 16 bytes 0x55"
            ),
            Error::Layout(flaw) => write!(out, "has a broken root block: {flaw}"),
            Error::Damaged(finding) => write!(out, "is damaged: {finding}"),
            Error::NoFile(name) => write!(out, "has no file `{name}`"),
            Error::Full { needed, free } => {
                write!(out, "is full: {needed} blocks are needed, {free} are free")
            }
            Error::NoPlaceForGame { needed, free } => write!(
                out,
                "has no place for the game: it needs {needed} blocks from block 0 on, and {free} \
                 are free there"
            ),
            Error::DirectoryFull { records } => {
                write!(
                    out,
                    "is full: all {records} records of its directory are used"
                )
            }
        }
    }
}

impl<E: fmt::Debug + fmt::Display> core::error::Error for Error<E> {}
