//! Encryption of what leaves memory: AES-128 in XTS mode, a page at a time.
//!
//! The key is made when the store is, and is nowhere but in the memory of its process and of forked
//! children, which read the same swap file. A page is encrypted on its way out, in a [bounce
//! buffer](super::bounces), since the program may want the frame back meanwhile. It is decrypted in
//! place as it comes; the sum that is compared then is that of the plain page.
//!
//! The tweak of a page is the number of its slot. The file shows which slots have changed, and
//! where a slot has what it had before, and nothing else of the contents.
//!
//! Source: IEEE Std 1619-2018; XTS is the mode that disks are encrypted in. The blocks of a page
//! are handed to the cipher together, which takes a twelfth of the time of one after the other.

use aes::cipher::{BlockCipherDecrypt, BlockCipherEncrypt, KeyInit};
use aes::{Aes128, Block};
use rustix::rand::{GetRandomFlags, getrandom};

use crate::sys::{Errno, PAGE};

const BLOCK: usize = 16;
/// The bytes of the two keys: that of the contents, and that of the tweaks.
const KEY_BYTES: usize = 32;
/// The polynomial by which tweaks are multiplied: x^128 + x^7 + x^2 + x + 1.
const POLYNOMIAL: u128 = 0x87;

/// A cipher with its key, which is overwritten when it is dropped.
pub(super) struct Cipher {
    contents: Aes128,
    tweaks: Aes128,
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

#[cfg(test)]
mod tests {
    use tidemark_core::id::FrameId;
    use tidemark_core::seams::pager::{Direction, Outcome};

    use super::*;
    use crate::store::Means;
    use crate::store::tests::Swapping;
    use crate::sys::memory::Mapping;

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
                    swapping.store.cipher = None;
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
