//! The store's part in encryption and in bounce buffers: which pages, by way of which buffer.

use tidemark_core::seams::pager::Direction;

use super::bounces::Bounces;
use super::cipher::Cipher;
use super::{Part, SwapStore, Transfer, Work};
use crate::machine::LiveMachine;
use crate::sys::ring::Buffers;
use crate::sys::{Errno, PAGE};

/// The least budget, in frames, for which a huge page of buffers is worth its memory: 32 MiB.
const READS_BUDGET_LEAST: u32 = 8192;

impl SwapStore {
    /// Encrypts what is written to the swap file from now on: before anything is.
    ///
    /// # Errors
    /// The kernel has no random numbers for a key.
    pub fn encrypt(mut self) -> Result<SwapStore, Errno> {
        self.cipher = Some(Cipher::new()?);
        self.bounces.keep_for_writes();
        Ok(self)
    }

    /// Lets reads of many pages come in one piece of memory, a huge page of the engine's, and be
    /// copied to their pages; or does not any more. It is worth that memory where the `budget` has
    /// 32 MiB or more.
    pub fn read_in_one_piece(&mut self, budget: u32) {
        self.bounces.allow_reads(budget >= READS_BUDGET_LEAST);
    }

    /// Leaves buffers out of forked children, which have no engine then.
    pub fn hide_from_children(&mut self) {
        self.bounces.hide_from_children();
    }

    /// The cipher, if there is one, of what is not a file of the program's.
    pub(super) fn cipher_of(&self, work: Work) -> Option<&Cipher> {
        self.cipher.as_ref().filter(|_| work.file().is_none())
    }

    /// The buffer of a part, if it has one: filled, if it is written.
    pub(super) fn bounce(
        &mut self,
        part: Part,
        machine: &LiveMachine,
    ) -> Result<Option<Buffers>, Errno> {
        let transfer = self.transfers[part.transfer as usize];
        let index = match transfer.direction {
            Direction::Fetch => self.bounces.take_for_read(part.tag(), part.pages),
            Direction::Store => self.encrypt_part(&transfer, part, machine)?,
        };
        Ok(index.map(|index| {
            let (room, start) = self.bounces.place(index);
            Buffers::of_mapping(room, start, usize::from(part.pages) * PAGE)
        }))
    }

    /// Encrypts the pages of a part of a transfer to the swap file, in the buffer that it answers.
    /// `None`: it goes as it is.
    fn encrypt_part(
        &mut self,
        transfer: &Transfer,
        part: Part,
        machine: &LiveMachine,
    ) -> Result<Option<usize>, Errno> {
        if self.cipher_of(transfer.work).is_none() {
            return Ok(None);
        }
        let index = self.bounces.take_for_write(part.tag())?;
        let mut bounces = std::mem::replace(&mut self.bounces, Bounces::none());
        for (at, page) in part.range().enumerate() {
            let slot = self.home_of(transfer, page as u8);
            let into = bounces.page_mut(index, at);
            into.copy_from_slice(self.page_of(transfer, page, machine));
            let cipher = self.cipher_of(transfer.work).expect("it is encrypted");
            cipher.encrypt(slot.0.into(), into);
        }
        self.bounces = bounces;
        Ok(Some(index))
    }

    /// Returns true if there is room to encrypt a write, or none is encrypted.
    pub(super) fn may_write(&self) -> bool {
        self.cipher.is_none() || self.bounces.has_room()
    }

    /// Gives memory back that the store needs again only to move more.
    pub fn rest(&mut self) {
        self.bounces.rest();
    }

    /// Puts the pages of a part, of which `bytes` have been read, where they belong: copied from
    /// its buffer, if it has one, and decrypted.
    pub(super) fn take_in(
        &mut self,
        part: Part,
        (bounce, bytes): (Option<usize>, usize),
        machine: &mut LiveMachine,
    ) {
        let transfer = self.transfers[part.transfer as usize];
        if bounce.is_none() && self.cipher_of(transfer.work).is_none() {
            return;
        }
        let bounces = std::mem::replace(&mut self.bounces, Bounces::none());
        let cipher = self.cipher.take();
        for (at, page) in part.range().enumerate() {
            let slot = self.home_of(&transfer, page as u8);
            let into = self.page_of_mut(&transfer, page, machine);
            if let Some(index) = bounce {
                let count = bytes.saturating_sub(at * PAGE).min(PAGE);
                into[..count].copy_from_slice(&bounces.page(index, at)[..count]);
            }
            if let Some(cipher) = cipher.as_ref().filter(|_| transfer.work.file().is_none()) {
                cipher.decrypt(slot.0.into(), into);
            }
        }
        (self.bounces, self.cipher) = (bounces, cipher);
    }
}
