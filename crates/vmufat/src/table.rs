//! The file allocation table: a word for each block.

use alloc::collections::BTreeSet;
use alloc::vec;
use alloc::vec::Vec;

use crate::device::{BLOCK_BYTES, Block};
use crate::layout::Layout;

/// The word of the last block of a file.
pub(crate) const END: u16 = 0xfffa;
/// The word of a block that belongs to nothing.
pub(crate) const FREE: u16 = 0xfffc;
/// The word of a block that is not to be used.
pub(crate) const DAMAGED: u16 = 0xffff;

/// Words in a block of the table.
pub(crate) const WORDS_PER_BLOCK: usize = BLOCK_BYTES / 2;

/// The word that says that `next` follows.
///
/// Volumes of more than 65,530 blocks have blocks whose numbers are marks. They are the table's
/// own, which is found without its chain: an end stands for the link, and nothing reads as free.
pub(crate) fn link(next: u16) -> u16 {
    match next {
        END | FREE | DAMAGED => END,
        next => next,
    }
}

/// The table of a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Table {
    words: Vec<u16>,
}

impl Table {
    /// The table of a volume without files.
    pub(crate) fn empty(layout: &Layout) -> Table {
        let mut table = Table {
            words: vec![FREE; layout.blocks() as usize],
        };
        layout
            .system_words()
            .for_each(|(block, word)| table.set(block, word));
        table
    }

    /// A table to be filled by [`load`](Self::load), for the blocks of `layout`.
    pub(crate) fn unread(layout: &Layout) -> Table {
        let words = Vec::with_capacity(usize::from(layout.fat_blocks()) * WORDS_PER_BLOCK);
        Table { words }
    }

    /// Takes in the next block of the table on a volume.
    pub(crate) fn load(&mut self, block: &Block) {
        let pairs = block.chunks_exact(2);
        self.words
            .extend(pairs.map(|pair| u16::from_le_bytes([pair[0], pair[1]])));
    }

    /// The block of the table with the word of `number`, as it is to be on the volume.
    pub(crate) fn block_with(&self, number: u16) -> Block {
        let first = usize::from(number) / WORDS_PER_BLOCK * WORDS_PER_BLOCK;
        let mut block = [0; BLOCK_BYTES];
        let words = self.words[first..].iter().take(WORDS_PER_BLOCK);
        for (pair, word) in block.chunks_exact_mut(2).zip(words) {
            pair.copy_from_slice(&word.to_le_bytes());
        }
        block
    }

    /// The word of `block`.
    pub(crate) fn word(&self, block: u16) -> u16 {
        self.words[usize::from(block)]
    }

    /// Sets the word of `block`.
    pub(crate) fn set(&mut self, block: u16, word: u16) {
        self.words[usize::from(block)] = word;
    }

    /// Sets the words of `blocks` to any that make them a file, or to that of free blocks.
    pub(crate) fn chain(&mut self, blocks: &[u16]) {
        for pair in blocks.windows(2) {
            self.set(pair[0], pair[1]);
        }
        if let Some(&last) = blocks.last() {
            self.set(last, END);
        }
    }

    /// Makes `blocks` free.
    pub(crate) fn free(&mut self, blocks: &[u16]) {
        blocks.iter().for_each(|&block| self.set(block, FREE));
    }

    /// The number of free blocks below `limit`.
    pub(crate) fn count_free(&self, limit: u16) -> u32 {
        let words = self.words[..usize::from(limit)].iter();
        words.filter(|&&word| word == FREE).count() as u32
    }

    /// The number of free blocks from block 0 to the first that is not, below `limit`.
    pub(crate) fn count_free_at_start(&self, limit: u16) -> u32 {
        let words = self.words[..usize::from(limit)].iter();
        words.take_while(|&&word| word == FREE).count() as u32
    }

    /// The highest free blocks below `limit`, as many as there are up to `count`, from the top.
    pub(crate) fn find_free(&self, limit: u16, count: usize) -> Vec<u16> {
        let blocks = (0..limit).rev();
        blocks
            .filter(|&block| self.word(block) == FREE)
            .take(count)
            .collect()
    }
}

/// One of `blocks` for each block of the table that has words of them.
pub(crate) fn one_per_table_block(blocks: &[u16]) -> BTreeSet<u16> {
    let firsts = blocks.iter().map(|block| block & !0xff);
    firsts.collect()
}
