//! A device in memory.

use alloc::vec;
use alloc::vec::Vec;
use core::convert::Infallible;

use crate::device::{BLOCK_BYTES, Block, BlockDevice};
use crate::layout::{BLOCKS_MAX, BLOCKS_MIN};

/// The blocks of a volume in memory, as a file of an image has them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    bytes: Vec<u8>,
}

impl Image {
    /// The bytes of the largest image.
    pub const BYTES_MAX: usize = BLOCKS_MAX as usize * BLOCK_BYTES;

    /// An image of `blocks` of zeros, if a volume can have as many.
    pub fn zeroed(blocks: u32) -> Option<Image> {
        let is_possible = (BLOCKS_MIN..=BLOCKS_MAX).contains(&blocks);
        is_possible.then(|| Image {
            bytes: vec![0; blocks as usize * BLOCK_BYTES],
        })
    }

    /// An image with these bytes, if a volume can have as many.
    pub fn new(bytes: Vec<u8>) -> Option<Image> {
        let blocks = bytes.len() / BLOCK_BYTES;
        let is_possible = bytes.len().is_multiple_of(BLOCK_BYTES)
            && (BLOCKS_MIN as usize..=BLOCKS_MAX as usize).contains(&blocks);
        is_possible.then_some(Image { bytes })
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The bytes, in place of the image.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    fn place(number: u16) -> core::ops::Range<usize> {
        let start = usize::from(number) * BLOCK_BYTES;
        start..start + BLOCK_BYTES
    }
}

impl BlockDevice for Image {
    type Error = Infallible;

    fn blocks(&self) -> u32 {
        (self.bytes.len() / BLOCK_BYTES) as u32
    }

    fn read(&mut self, number: u16, block: &mut Block) -> Result<(), Infallible> {
        block.copy_from_slice(&self.bytes[Self::place(number)]);
        Ok(())
    }

    fn write(&mut self, number: u16, block: &Block) -> Result<(), Infallible> {
        self.bytes[Self::place(number)].copy_from_slice(block);
        Ok(())
    }

    fn settle(&mut self) -> Result<(), Infallible> {
        Ok(())
    }
}
