//! The layout of a volume: where its root block, file allocation table and directory are.
//!
//! From the top down: the root block is the last of the volume, in front of it the table, in front
//! of that the directory. Everything below is for files, but for a hidden area on strict cards.

use core::fmt;

use crate::device::{BLOCK_BYTES, Block};
use crate::table::{END, WORDS_PER_BLOCK, link};
use crate::time::Timestamp;

/// The blocks of the smallest volume, which is what cards have.
pub const BLOCKS_MIN: u32 = 256;

/// The blocks of the largest volume: numbers of blocks have 16 bits.
pub const BLOCKS_MAX: u32 = 65_536;

/// Records in a block of the directory.
pub(crate) const RECORDS_PER_BLOCK: usize = BLOCK_BYTES / 32;

/// Blocks of a card that its directory takes.
const CARD_DIRECTORY_BLOCKS: u32 = 13;
/// Blocks of a card that files may use.
const CARD_USER_BLOCKS: u16 = 200;
/// The size of the hidden area that a card names, though there are ten more blocks behind it.
const CARD_HIDDEN_BLOCKS: u16 = 31;
/// The size of the largest game that a card names.
const CARD_GAME_BLOCKS: u16 = 128;

/// The bytes a formatted volume's root block begins with.
const MAGIC: [u8; 16] = [0x55; 16];
/// Places in the root block.
const FORMATTED_AT: usize = 0x30;
const LAST_BLOCK_AT: usize = 0x40;
const ROOT_AT: usize = 0x44;
const FAT_AT: usize = 0x46;
const FAT_BLOCKS_AT: usize = 0x48;
const DIRECTORY_AT: usize = 0x4a;
const DIRECTORY_BLOCKS_AT: usize = 0x4c;
const USER_BLOCKS_AT: usize = 0x50;
const HIDDEN_BLOCKS_AT: usize = 0x52;
const GAME_BLOCKS_AT: usize = 0x56;

/// The places of things on a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    blocks: u32,
    fat_last: u16,
    fat_blocks: u16,
    directory_last: u16,
    directory_blocks: u16,
    user_blocks: u16,
    hidden_blocks: u16,
}

/// A number in the root block that can't be right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flaw {
    /// The field's name.
    pub field: &'static str,
    /// The value of the field.
    pub value: u16,
    /// The least it may say.
    pub least: u16,
    /// The most it may say.
    pub most: u16,
}

impl Layout {
    /// The layout of a new volume of `blocks`, if there can be one: that of a card for 256
    /// blocks, with a directory in proportion and no hidden area for more.
    pub fn new(blocks: u32) -> Option<Layout> {
        if !(BLOCKS_MIN..=BLOCKS_MAX).contains(&blocks) {
            return None;
        }
        let is_card = blocks == BLOCKS_MIN;
        let fat_blocks = fat_blocks(blocks);
        // A block of directory for 16 others.
        let directory_blocks = match is_card {
            true => CARD_DIRECTORY_BLOCKS,
            false => (blocks - 1 - u32::from(fat_blocks)) / 17,
        } as u16;
        let fat_last = (blocks - 2) as u16;
        let directory_last = fat_last - fat_blocks;
        let layout = Layout {
            blocks,
            fat_last,
            fat_blocks,
            directory_last,
            directory_blocks,
            user_blocks: directory_last + 1 - directory_blocks,
            hidden_blocks: 0,
        };
        Some(match is_card {
            true => Layout {
                user_blocks: CARD_USER_BLOCKS,
                hidden_blocks: CARD_HIDDEN_BLOCKS,
                ..layout
            },
            false => layout,
        })
    }

    /// This layout without a hidden area: files may use every block below the directory.
    pub fn without_hidden(self) -> Layout {
        Layout {
            user_blocks: self.directory_first(),
            hidden_blocks: 0,
            ..self
        }
    }

    /// The blocks of the volume.
    pub fn blocks(&self) -> u32 {
        self.blocks
    }

    /// The root block.
    pub fn root(&self) -> u16 {
        (self.blocks - 1) as u16
    }

    /// The last block of the file allocation table, which is where the root block says it is.
    pub fn fat_last(&self) -> u16 {
        self.fat_last
    }

    /// The blocks of the file allocation table.
    pub fn fat_blocks(&self) -> u16 {
        self.fat_blocks
    }

    /// The last block of the directory, which has its first records.
    pub fn directory_last(&self) -> u16 {
        self.directory_last
    }

    /// The blocks of the directory.
    pub fn directory_blocks(&self) -> u16 {
        self.directory_blocks
    }

    /// The first block of the directory, and the number of blocks below it.
    pub fn directory_first(&self) -> u16 {
        self.directory_last + 1 - self.directory_blocks
    }

    /// The blocks that new files may use, from block 0 on.
    pub fn user_blocks(&self) -> u16 {
        self.user_blocks
    }

    /// The most files there can be.
    pub fn records(&self) -> usize {
        usize::from(self.directory_blocks) * RECORDS_PER_BLOCK
    }

    /// The block of the table with the word of `block`.
    pub(crate) fn fat_block_of(&self, block: u16) -> u16 {
        self.fat_last + 1 - self.fat_blocks + block / WORDS_PER_BLOCK as u16
    }

    /// The block of the directory with the record `slot`.
    pub(crate) fn directory_block_of(&self, slot: usize) -> u16 {
        self.directory_last - (slot / RECORDS_PER_BLOCK) as u16
    }

    /// Every block that is part of the volume itself, with its word in the table: root block, table
    /// and directory, the latter two as chains that run downwards.
    pub(crate) fn system_words(&self) -> impl Iterator<Item = (u16, u16)> {
        let chain = |last: u16, blocks: u16| {
            let first = last + 1 - blocks;
            (first..=last).map(move |block| match block == first {
                true => (block, END),
                false => (block, link(block - 1)),
            })
        };
        chain(self.directory_last, self.directory_blocks)
            .chain(chain(self.fat_last, self.fat_blocks))
            .chain([(self.root(), END)])
    }

    /// The root block of a volume that is formatted at this moment.
    pub(crate) fn root_block(&self, formatted: Timestamp) -> Block {
        let mut root = [0; BLOCK_BYTES];
        root[..MAGIC.len()].copy_from_slice(&MAGIC);
        root[FORMATTED_AT..FORMATTED_AT + 8].copy_from_slice(&formatted.0);
        let game_blocks = match self.blocks == BLOCKS_MIN {
            true => CARD_GAME_BLOCKS,
            false => 0,
        };
        for (at, word) in [
            (LAST_BLOCK_AT, self.root()),
            (ROOT_AT, self.root()),
            (FAT_AT, self.fat_last),
            (FAT_BLOCKS_AT, self.fat_blocks),
            (DIRECTORY_AT, self.directory_last),
            (DIRECTORY_BLOCKS_AT, self.directory_blocks),
            (USER_BLOCKS_AT, self.user_blocks),
            (HIDDEN_BLOCKS_AT, self.hidden_blocks),
            (GAME_BLOCKS_AT, game_blocks),
        ] {
            root[at..at + 2].copy_from_slice(&word.to_le_bytes());
        }
        root
    }

    /// Reports whether a root block begins as that of a formatted volume does.
    pub(crate) fn is_formatted(root: &Block) -> bool {
        root.starts_with(&MAGIC)
    }

    /// Reads the layout of a volume of `blocks` from its root block.
    pub(crate) fn parse(root: &Block, blocks: u32) -> Result<Layout, Flaw> {
        let word = |at: usize| u16::from_le_bytes([root[at], root[at + 1]]);
        let checked = |field, at, least, most| match word(at) {
            value if (least..=most).contains(&value) => Ok(value),
            value => Err(Flaw {
                field,
                value,
                least,
                most,
            }),
        };
        let last = (blocks - 1) as u16;
        checked("the root block's number", ROOT_AT, last, last)?;
        let fat_blocks = fat_blocks(blocks);
        checked("the size of the FAT", FAT_BLOCKS_AT, fat_blocks, fat_blocks)?;
        let named_by_first = names_first_blocks(root, last, fat_blocks);
        let fat_last = match named_by_first {
            Some(_) => last - 1,
            None => checked("the place of the FAT", FAT_AT, fat_blocks + 1, last - 1)?,
        };
        let directory_last = match named_by_first {
            Some(directory_last) => directory_last,
            None => checked(
                "the place of the directory",
                DIRECTORY_AT,
                1,
                fat_last - fat_blocks,
            )?,
        };
        let directory_blocks = checked(
            "the size of the directory",
            DIRECTORY_BLOCKS_AT,
            1,
            directory_last,
        )?;
        let directory_first = directory_last + 1 - directory_blocks;
        // Formatters that know of no hidden area leave this at 0.
        let user_blocks = match checked(
            "the number of blocks for files",
            USER_BLOCKS_AT,
            0,
            directory_first,
        )? {
            0 => directory_first,
            named => named,
        };
        Ok(Layout {
            blocks,
            fat_last,
            fat_blocks,
            directory_last,
            directory_blocks,
            user_blocks,
            hidden_blocks: word(HIDDEN_BLOCKS_AT),
        })
    }

    /// The moment at which a volume with this root block was formatted.
    pub(crate) fn formatted(root: &Block) -> Timestamp {
        let mut stamp = Timestamp::default();
        stamp
            .0
            .copy_from_slice(&root[FORMATTED_AT..FORMATTED_AT + 8]);
        stamp
    }
}

impl fmt::Display for Flaw {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} is {}; ", self.field, self.value)?;
        match self.least == self.most {
            true => write!(out, "needs {}", self.least),
            false => write!(out, "needs {} to {}", self.least, self.most),
        }
    }
}

/// The last block of the directory where a root block names the *first* blocks of table and
/// directory, as `mkfs.vmufat` does since 2026: the two then end where the root block begins.
fn names_first_blocks(root: &Block, last: u16, fat_blocks: u16) -> Option<u16> {
    let word = |at: usize| u16::from_le_bytes([root[at], root[at + 1]]);
    let fat_first = last - fat_blocks;
    let directory_end = word(DIRECTORY_AT).checked_add(word(DIRECTORY_BLOCKS_AT));
    let is_so = word(FAT_AT) == fat_first && directory_end == Some(fat_first);
    (is_so && word(DIRECTORY_BLOCKS_AT) > 1).then(|| fat_first - 1)
}

/// The blocks of a table with a word for each of `blocks`.
fn fat_blocks(blocks: u32) -> u16 {
    blocks.div_ceil(WORDS_PER_BLOCK as u32) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_volume_of_256_blocks_is_a_card() {
        let layout = Layout::new(256).unwrap();
        assert_eq!((layout.root(), layout.fat_last()), (255, 254));
        assert_eq!(
            (layout.directory_first(), layout.directory_last()),
            (241, 253)
        );
        assert_eq!((layout.user_blocks(), layout.hidden_blocks), (200, 31));
        assert_eq!(layout.records(), 208);
        assert_eq!(layout.without_hidden().user_blocks(), 241);
    }

    #[test]
    fn a_root_block_that_names_first_blocks_is_read_as_one_that_names_last_ones() {
        for blocks in [256, 512, 1024, 8192] {
            let layout = Layout::new(blocks).unwrap().without_hidden();
            let mut root = layout.root_block(Timestamp::from_unix(0));
            let fat_first = layout.fat_last() + 1 - layout.fat_blocks();
            for (at, word) in [
                (FAT_AT, fat_first),
                (DIRECTORY_AT, layout.directory_first()),
            ] {
                root[at..at + 2].copy_from_slice(&word.to_le_bytes());
            }
            assert_eq!(Layout::parse(&root, blocks), Ok(layout));
        }
    }

    #[test]
    fn every_size_is_read_as_it_was_laid_out() {
        for blocks in BLOCKS_MIN..=BLOCKS_MAX {
            for layout in [
                Layout::new(blocks),
                Layout::new(blocks).map(Layout::without_hidden),
            ] {
                let layout = layout.unwrap();
                let root = layout.root_block(Timestamp::from_unix(0));
                assert_eq!(Layout::parse(&root, blocks), Ok(layout));
                assert_eq!(layout.fat_block_of(0), layout.directory_last() + 1);
                assert_eq!(layout.fat_block_of(layout.root()), layout.fat_last());
                let last = layout.records() - 1;
                assert_eq!(layout.directory_block_of(last), layout.directory_first());
            }
        }
        assert!(Layout::new(255).is_none() && Layout::new(65_537).is_none());
    }

    #[test]
    fn no_link_reads_as_a_free_block_on_the_largest_volumes() {
        for blocks in 65_520..=BLOCKS_MAX {
            let layout = Layout::new(blocks).unwrap();
            let words: alloc::vec::Vec<_> = layout.system_words().collect();
            let system = layout.blocks() - u32::from(layout.directory_first());
            assert_eq!(words.len() as u32, system);
            for (block, word) in words {
                assert!(word == END || (word == block - 1 && word != crate::table::FREE));
            }
        }
    }

    #[test]
    fn each_number_out_of_place_is_named() {
        let layout = Layout::new(256).unwrap();
        let good = layout.root_block(Timestamp::from_unix(0));
        for (at, value, told) in [
            (ROOT_AT, 254, "the root block's number is 254; needs 255"),
            (FAT_BLOCKS_AT, 0, "the size of the FAT is 0; needs 1"),
            (FAT_AT, 255, "the place of the FAT is 255; needs 2 to 254"),
            (
                DIRECTORY_AT,
                254,
                "the place of the directory is 254; needs 1 to 253",
            ),
            (
                DIRECTORY_BLOCKS_AT,
                254,
                "the size of the directory is 254; needs 1 to 253",
            ),
            (
                USER_BLOCKS_AT,
                242,
                "the number of blocks for files is 242; needs 0 to 241",
            ),
        ] {
            let mut root = good;
            root[at..at + 2].copy_from_slice(&u16::to_le_bytes(value));
            let flaw = Layout::parse(&root, 256).unwrap_err();
            assert_eq!(alloc::string::ToString::to_string(&flaw), told);
        }
    }
}
