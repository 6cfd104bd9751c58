//! Encryption of what leaves memory: AES-128 in XTS mode, a page at a time.
//!
//! The key is made when the store is, and is nowhere but in the memory of its process and of forked
//! children, which read the same swap file. A page is encrypted on its way out, in a bounce buffer,
//! since the program may want the frame back meanwhile. It is decrypted in place as it comes; the
//! sum that is compared then is that of the plain page.
//!
//! The tweak of a page is the number of its slot. The file shows which slots have changed, and
//! where a slot has what it had before, and nothing else of the contents.
//!
//! Source: IEEE Std 1619-2018; XTS is the mode that disks are encrypted in. The blocks of a page
//! are handed to the cipher together, which takes a twelfth of the time of one after the other.
//!
//! Bounce buffers are memory of the engine, which the budget bounds: there are [few](BOUNCES_MAX),
//! writes wait for one, and one that has rested gives its memory back.
//!
//! # Invariants
//! 1. A part of a transfer that is under way to the swap file has one bounce buffer, by its tag.

use std::collections::BTreeMap;

use aes::cipher::{BlockCipherDecrypt, BlockCipherEncrypt, KeyInit};
use aes::{Aes128, Block};
use rustix::rand::{GetRandomFlags, getrandom};

use crate::sys::memory::Mapping;
use crate::sys::pool::TRANSFER_MAX;
use crate::sys::{Errno, PAGE};

const BLOCK: usize = 16;
/// The bytes of the two keys: that of the contents, and that of the tweaks.
const KEY_BYTES: usize = 32;
/// The polynomial by which tweaks are multiplied: x^128 + x^7 + x^2 + x + 1.
const POLYNOMIAL: u128 = 0x87;

/// The most bounce buffers. Each has room for the largest write, and these few keep a disk busy.
const BOUNCES_MAX: usize = 4;

/// A cipher with its key, which is overwritten when it is dropped.
pub(super) struct Cipher {
    contents: Aes128,
    tweaks: Aes128,
}

/// The cipher of a store, and its bounce buffers.
pub(super) struct Encryption {
    cipher: Cipher,
    bounces: Vec<Bounce>,
    unused: Vec<usize>,
    /// The buffers under way, by the tags of their parts.
    used: BTreeMap<u64, usize>,
}

/// A buffer for the encrypted pages of one write.
struct Bounce {
    room: Mapping,
    /// True if it was written to since its memory was given back.
    has_memory: bool,
}

impl Cipher {
    /// A cipher with a key of the kernel's random numbers.
    pub(super) fn new() -> Result<Cipher, Errno> {
        let mut key = [0; KEY_BYTES];
        let mut filled = 0;
        while filled < KEY_BYTES {
            match getrandom(&mut key[filled..], GetRandomFlags::empty()) {
                Ok(bytes) => filled += bytes,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
        }
        let cipher = Cipher::of_key(&key);
        zeroize::Zeroize::zeroize(&mut key);
        Ok(cipher)
    }

    fn of_key(key: &[u8; KEY_BYTES]) -> Cipher {
        let (contents, tweaks) = key.split_at(KEY_BYTES / 2);
        let cipher = |key| Aes128::new_from_slice(key).expect("16 bytes are a key");
        Cipher {
            contents: cipher(contents),
            tweaks: cipher(tweaks),
        }
    }

    /// Encrypts a page in place, or a part of whole blocks.
    pub(super) fn encrypt(&self, slot: u64, page: &mut [u8]) {
        self.apply(slot, page, |blocks| self.contents.encrypt_blocks(blocks));
    }

    /// Decrypts a page in place.
    pub(super) fn decrypt(&self, slot: u64, page: &mut [u8]) {
        self.apply(slot, page, |blocks| self.contents.decrypt_blocks(blocks));
    }

    fn apply(&self, slot: u64, page: &mut [u8], cipher: impl FnOnce(&mut [Block])) {
        let mut first = Block::from(u128::from(slot).to_le_bytes());
        self.tweaks.encrypt_block(&mut first);
        let mut next = u128::from_le_bytes(first.into());
        let mut tweaks = [0; PAGE / BLOCK];
        for tweak in &mut tweaks {
            *tweak = next;
            next = next << 1 ^ (POLYNOMIAL & (next >> 127).wrapping_neg());
        }
        mix(page, &tweaks);
        let (blocks, rest) = page.as_chunks_mut::<BLOCK>();
        assert!(rest.is_empty(), "whole blocks");
        cipher(Block::cast_slice_from_core_mut(blocks));
        mix(page, &tweaks);
    }
}

/// Adds its tweak to each block.
fn mix(page: &mut [u8], tweaks: &[u128; PAGE / BLOCK]) {
    let (blocks, _) = page.as_chunks_mut::<BLOCK>();
    for (block, tweak) in blocks.iter_mut().zip(tweaks) {
        *block = (u128::from_le_bytes(*block) ^ tweak).to_le_bytes();
    }
}

impl Encryption {
    /// A cipher with a fresh key, and no buffers.
    pub(super) fn new() -> Result<Encryption, Errno> {
        Ok(Encryption {
            cipher: Cipher::new()?,
            bounces: Vec::new(),
            unused: Vec::new(),
            used: BTreeMap::new(),
        })
    }

    /// The cipher.
    pub(super) fn cipher(&self) -> &Cipher {
        &self.cipher
    }

    /// Returns true if a write could be encrypted now.
    pub(super) fn has_room(&self) -> bool {
        !self.unused.is_empty() || self.bounces.len() < BOUNCES_MAX
    }

    /// Takes a buffer for a part, by its tag. The caller has seen that [there is
    /// room](Self::has_room).
    pub(super) fn take(&mut self, tag: u64) -> Result<usize, Errno> {
        let index = match self.unused.pop() {
            Some(index) => index,
            None => {
                assert!(self.bounces.len() < BOUNCES_MAX, "a write waits for room");
                self.bounces.push(Bounce {
                    room: Mapping::anonymous(TRANSFER_MAX * PAGE)?,
                    has_memory: false,
                });
                self.bounces.len() - 1
            }
        };
        self.bounces[index].has_memory = true;
        self.used.insert(tag, index);
        Ok(index)
    }

    /// Encrypts a page of a slot into a buffer, as the page `at` there.
    pub(super) fn encrypt(&mut self, slot: u64, page: &[u8], (index, at): (usize, usize)) {
        let into = self.bounces[index].room.part_mut(at * PAGE, PAGE);
        into.copy_from_slice(page);
        self.cipher.encrypt(slot, into);
    }

    /// The memory of a buffer.
    pub(super) fn room(&self, index: usize) -> &Mapping {
        &self.bounces[index].room
    }

    /// Has the buffer of a part unused again.
    pub(super) fn release(&mut self, tag: u64) {
        self.unused.extend(self.used.remove(&tag));
    }

    /// Gives the memory of unused buffers back to the host.
    pub(super) fn rest(&mut self) {
        for index in &self.unused {
            let bounce = &mut self.bounces[*index];
            // What can't be given back is used again, or given back the next time.
            if bounce.has_memory && bounce.room.drop_contents().is_ok() {
                bounce.has_memory = false;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tidemark_core::id::FrameId;
    use tidemark_core::seams::pager::{Direction, Outcome};

    use super::*;
    use crate::store::tests::Swapping;
    use crate::store::{Means, SwapStore};

    fn bytes(hex: &str) -> Vec<u8> {
        let digits = hex.as_bytes().chunks(2);
        digits
            .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
            .collect()
    }

    /// IEEE Std 1619-2018, annex B, vectors 1 and 2.
    #[test]
    fn the_vectors_of_the_standard_are_met() {
        for (keys, slot, plain, encrypted) in [
            (
                [0x00, 0x00],
                0,
                0x00,
                "917cf69ebd68b2ec9b9fe9a3eadda692cd43d2f59598ed858c02c2652fbf922e",
            ),
            (
                [0x11, 0x22],
                0x33_3333_3333,
                0x44,
                "c454185e6a16936e39334038acef838bfb186fff7480adc4289382ecd6d394f0",
            ),
        ] {
            let mut key = [keys[0]; KEY_BYTES];
            key[KEY_BYTES / 2..].fill(keys[1]);
            let cipher = Cipher::of_key(&key);
            let mut page = [plain; 2 * BLOCK];
            cipher.encrypt(slot, &mut page);
            assert_eq!(page[..], bytes(encrypted)[..]);
            cipher.decrypt(slot, &mut page);
            assert_eq!(page, [plain; 2 * BLOCK]);
        }
    }

    #[test]
    fn the_file_has_nothing_of_what_was_stored() {
        let frames: Vec<FrameId> = (0..4).map(FrameId).collect();
        for means in [Means::Ring, Means::Threads, Means::AtOnce] {
            for is_encrypted in [true, false] {
                let Some(mut swapping) = Swapping::new(4, means, "") else {
                    return;
                };
                if !is_encrypted {
                    swapping.store.encryption = None;
                }
                let stored = swapping.transfer(Direction::Store, 7, &frames);
                assert_eq!(stored, Outcome::Done);
                let mut room = Mapping::anonymous(4 * PAGE).unwrap();
                let file = room.part_mut(0, 4 * PAGE);
                let swap = swapping.store.file.as_file();
                rustix::io::pread(swap, &mut *file, 7 * PAGE as u64).unwrap();
                for page in file.chunks(PAGE) {
                    // Most bytes that were stored are zeros, and of those at random one in 256.
                    let zeros = page.iter().filter(|byte| **byte == 0).count();
                    let is_plain = zeros > PAGE / 2;
                    assert_eq!(is_plain, !is_encrypted, "{means:?} {zeros}");
                    assert!(is_plain || zeros < PAGE / 32, "{means:?} {zeros}");
                }
                for frame in &frames {
                    swapping.world.machine.pool_mut().clear(*frame);
                }
                let fetched = swapping.transfer(Direction::Fetch, 7, &frames);
                assert_eq!(fetched, Outcome::Done);
                for frame in &frames {
                    assert_eq!(swapping.byte(*frame), frame.0 as u8 + 1);
                }
            }
        }
    }

    #[test]
    fn writes_wait_for_one_of_few_buffers_which_keep_no_memory_when_they_rest() {
        for means in [Means::Ring, Means::Threads, Means::AtOnce] {
            let Some(mut swapping) = Swapping::new(16, means, "") else {
                return;
            };
            let frames: Vec<FrameId> = (0..16).map(FrameId).collect();
            for frame in &frames {
                swapping.start(Direction::Store, 2 * frame.0, &[*frame]);
            }
            swapping.store.submit(&swapping.world.machine).unwrap();
            let bounces = |store: &SwapStore| {
                let encryption = store.encryption.as_ref().expect("it is encrypted");
                let backed = encryption.bounces.iter().filter(|it| it.has_memory);
                (encryption.bounces.len(), backed.count())
            };
            assert_eq!(bounces(&swapping.store), (BOUNCES_MAX, BOUNCES_MAX));
            // One that is under way keeps its memory.
            swapping.store.rest();
            let replies = swapping.collect(16);
            assert!(replies.iter().all(|reply| reply.outcome == Outcome::Done));
            assert_eq!(bounces(&swapping.store), (BOUNCES_MAX, BOUNCES_MAX));
            swapping.store.rest();
            assert_eq!(bounces(&swapping.store), (BOUNCES_MAX, 0));
            for frame in &frames {
                swapping.world.machine.pool_mut().clear(*frame);
                let fetched = swapping.transfer(Direction::Fetch, 2 * frame.0, &[*frame]);
                assert_eq!(
                    (fetched, swapping.byte(*frame)),
                    (Outcome::Done, frame.0 as u8 + 1)
                );
            }
        }
    }

    #[test]
    fn a_page_is_decrypted_by_its_own_slot_and_key_alone() {
        let (cipher, other) = (Cipher::new().unwrap(), Cipher::new().unwrap());
        let page: Vec<u8> = (0..PAGE).map(|at| (at / 7) as u8).collect();
        let mut encrypted = page.clone();
        cipher.encrypt(5, &mut encrypted);
        for (cipher, slot, is_right) in
            [(&cipher, 5, true), (&cipher, 6, false), (&other, 5, false)]
        {
            let mut decrypted = encrypted.clone();
            cipher.decrypt(slot, &mut decrypted);
            assert_eq!(decrypted == page, is_right, "{slot}");
        }
    }
}
