//! The store's part in encryption: which pages, by way of which buffer.

use tidemark_core::seams::pager::Direction;

use super::cipher::{Cipher, Encryption};
use super::{Part, SwapStore, Work};
use crate::machine::LiveMachine;
use crate::sys::ring::Buffers;
use crate::sys::{Errno, PAGE};

impl SwapStore {
    /// Encrypts what is written to the swap file from now on: before anything is.
    ///
    /// # Errors
    /// The kernel has no random numbers for a key.
    pub fn encrypt(mut self) -> Result<SwapStore, Errno> {
        self.encryption = Some(Encryption::new()?);
        Ok(self)
    }

    /// The cipher, if there is one, of what is not a file of the program's.
    pub(super) fn cipher_of(&self, work: Work) -> Option<&Cipher> {
        let encryption = self.encryption.as_ref();
        encryption
            .filter(|_| work.file().is_none())
            .map(Encryption::cipher)
    }

    /// Encrypts the pages of a part of a transfer to the swap file. `None`: it goes as it is.
    pub(super) fn encrypt_part(
        &mut self,
        part: Part,
        machine: &LiveMachine,
    ) -> Result<Option<Buffers>, Errno> {
        let transfer = self.transfers[part.transfer as usize];
        if transfer.direction == Direction::Fetch || transfer.work.file().is_some() {
            return Ok(None);
        }
        let Some(mut encryption) = self.encryption.take() else {
            return Ok(None);
        };
        let taken = encryption.take(part.tag());
        if let Ok(index) = taken {
            for (at, page) in part.range().enumerate() {
                let slot = self.home_of(&transfer, page as u8);
                let from = self.page_of(&transfer, page, machine);
                encryption.encrypt(slot.0.into(), from, (index, at));
            }
        }
        let buffers = taken.map(|index| {
            let bytes = usize::from(part.pages) * PAGE;
            Some(Buffers::of_mapping(encryption.room(index), 0, bytes))
        });
        self.encryption = Some(encryption);
        buffers
    }

    /// Returns true if there is room to encrypt a write, or none is encrypted.
    pub(super) fn may_write(&self) -> bool {
        let encryption = self.encryption.as_ref();
        encryption.is_none_or(Encryption::has_room)
    }

    /// Gives memory back that the store needs again only to write more.
    pub fn rest(&mut self) {
        self.encryption.iter_mut().for_each(Encryption::rest);
    }

    /// A part is not under way any more.
    pub(super) fn release_bounce(&mut self, part: Part) {
        if let Some(encryption) = &mut self.encryption {
            encryption.release(part.tag());
        }
    }

    /// Decrypts the pages of a part that have been read.
    pub(super) fn decrypt_part(&mut self, part: Part, machine: &mut LiveMachine) {
        let transfer = self.transfers[part.transfer as usize];
        if transfer.direction == Direction::Store || transfer.work.file().is_some() {
            return;
        }
        let Some(encryption) = self.encryption.take() else {
            return;
        };
        for page in part.range() {
            let slot = self.home_of(&transfer, page as u8);
            let bytes = self.page_of_mut(&transfer, page, machine);
            encryption.cipher().decrypt(slot.0.into(), bytes);
        }
        self.encryption = Some(encryption);
    }
}
