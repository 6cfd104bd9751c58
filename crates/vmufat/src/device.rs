//! The device a volume lies on: blocks that are read and written by number.

/// The size of a block.
pub const BLOCK_BYTES: usize = 512;

/// The contents of a block.
pub type Block = [u8; BLOCK_BYTES];

/// Blocks that are read and written by number.
///
/// A write of one block is taken to happen as a whole or not at all, as disks promise of a sector.
/// Writes may reach the device in any order between two calls of [`settle`](Self::settle).
pub trait BlockDevice {
    /// The error of a device that fails.
    type Error;

    /// The number of blocks.
    fn blocks(&self) -> u32;

    /// Reads the block called `number`, which is below [`blocks`](Self::blocks).
    fn read(&mut self, number: u16, block: &mut Block) -> Result<(), Self::Error>;

    /// Writes the block called `number`, which is below [`blocks`](Self::blocks).
    fn write(&mut self, number: u16, block: &Block) -> Result<(), Self::Error>;

    /// Returns when everything written before is on the device for good.
    fn settle(&mut self) -> Result<(), Self::Error>;
}

impl<D: BlockDevice + ?Sized> BlockDevice for &mut D {
    type Error = D::Error;

    fn blocks(&self) -> u32 {
        (**self).blocks()
    }

    fn read(&mut self, number: u16, block: &mut Block) -> Result<(), Self::Error> {
        (**self).read(number, block)
    }

    fn write(&mut self, number: u16, block: &Block) -> Result<(), Self::Error> {
        (**self).write(number, block)
    }

    fn settle(&mut self) -> Result<(), Self::Error> {
        (**self).settle()
    }
}
