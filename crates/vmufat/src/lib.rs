//! VMUFAT: the file system of the Dreamcast's memory cards, in volumes of 256 to 65,536 blocks.
//!
//! A [`Volume`] lies on a [`BlockDevice`]: a disk, or an [`Image`] in memory. Its [`Layout`] says
//! where root block, file allocation table and directory are. There are no folders; a [`File`] has
//! a [`Name`] of at most 12 bytes, a [`Kind`], a [`Timestamp`], and whole blocks of contents.
//! `docs/formats/vmufat.md` has the bytes.
//!
//! # Invariants
//! 1. A change is ordered so that a volume cut off at any write has every file as it was before the
//!    change or after it. Blocks may be lost and a record may be there twice; [`check`](mod@check)
//!    finds both, and [`Volume::repair`] mends them.
//! 2. No bytes on a device make this crate panic or run without end.
//! 3. Nothing is changed on a volume where a change could damage a file.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod check;
mod device;
mod error;
mod image;
mod layout;
mod name;
mod record;
mod repair;
mod table;
mod time;
mod volume;

pub use check::{Fault, Finding};
pub use device::{BLOCK_BYTES, Block, BlockDevice};
pub use error::Error;
pub use image::Image;
pub use layout::{BLOCKS_MAX, BLOCKS_MIN, Flaw, Layout};
pub use name::{NAME_BYTES_MAX, Name};
pub use record::{Copying, File, Kind};
pub use time::{Civil, Timestamp};
pub use volume::{NewFile, Volume};
