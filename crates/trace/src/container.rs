//! The trace file of our own, version 4. `docs/formats/trace-v4.md` has its bytes; versions 1 and
//! 2 are the same with fewer kinds of events.
//!
//! A file is a prelude (what it is, which version) and a sequence of parts, each with its length
//! and checksum: the header, the blocks in order, an index. A trailer says where the index is.
//! Every block can be unpacked alone. A file without index was cut off, or is still being written,
//! and opens up to its last whole block.
//!
//! [`Writer`] makes one, into a file or a pipe. [`Reader`] takes one from its beginning to its
//! end. [`Blocks`] takes blocks by number from several threads. Inside, [`columns`] turns a block
//! into bytes, [`part`] frames and checks them, [`index`] lists them.
//!
//! # Invariants
//! 1. Every byte of a file is covered by a checksum or compared with the one value it can have.
//! 2. No length is believed before it has been compared with its bound, so that no input makes a
//!    reader panic or take more memory than a block needs.
//! 3. What a reader hands out keeps the invariants of [`Block`](crate::Block).

mod blocks;
mod columns;
mod events;
mod index;
mod part;
mod reader;
mod varint;
mod writer;

pub use blocks::{Blocks, Unpacker};
pub use index::{Entry, Index};
pub(crate) use part::fill;
pub use part::{HEADER_BYTES_MAX, VERSION};
pub use reader::{Ending, Reader};
pub use writer::Writer;

/// The part of a file with these contents of a block, whatever they are, and checksums that fit:
/// for tests of what lies behind the checksums.
///
/// - Needs: no more contents than a block can have.
pub fn seal_block(contents: &[u8]) -> Vec<u8> {
    let mut part = vec![0; part::HEAD_BYTES];
    part.extend_from_slice(contents);
    part::seal(&mut part, part::Mark::Block);
    part
}

#[cfg(test)]
mod tests;
