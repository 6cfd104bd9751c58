//! Reading at once: for an engine in the midst of a fork, which can't wait for replies.

use std::os::fd::OwnedFd;

use tidemark_core::id::{PagerId, SlotId};

use super::{Cause, SwapStore, Work, offset_of};
use crate::machine::ZERO_SUM;
use crate::sys::memory::Mapping;
use crate::sys::{Errno, PAGE};

impl SwapStore {
    /// Reads one slot at once, into the first page of `into`: see
    /// [`read_run_now`](Self::read_run_now).
    pub fn read_now(&mut self, slot: SlotId, into: &mut Mapping) -> Result<(), Cause> {
        self.read_run_now(slot, 1, into)
    }

    /// Reads `count` slots from `first` on at once, into the first pages of `into`. It waits for
    /// the disk, and takes no memory: only for an engine in the midst of a fork.
    pub fn read_run_now(
        &mut self,
        first: SlotId,
        count: usize,
        into: &mut Mapping,
    ) -> Result<(), Cause> {
        let bytes = into.first_pages(count);
        for (start, pages) in self.runs_of(first, count, SwapStore::is_plain) {
            let slot = SlotId(first.0 + start as u32);
            let bytes = &mut bytes[start * PAGE..(start + pages) * PAGE];
            read_fully(self.file.as_file(), slot, bytes)?;
            if let Some(cipher) = self.cipher_of(Work::Pages) {
                let slots = u64::from(slot.0)..;
                let pages = slots.zip(bytes.chunks_mut(PAGE));
                pages.for_each(|(slot, page)| cipher.decrypt(slot, page));
            }
        }
        for (page, slot) in bytes.chunks_mut(PAGE).zip(first.0..) {
            let sum = self.sums.get(slot as usize);
            if sum == ZERO_SUM {
                page.fill(0);
                continue;
            }
            if let Some(compressed) = &mut self.compressed
                && let Some(found) = compressed.find(SlotId(slot))
            {
                let cipher = self.cipher.as_ref();
                let read = |home: SlotId, block: &mut [u8]| {
                    read_fully(self.file.as_file(), home, block)?;
                    if let Some(cipher) = cipher {
                        cipher.decrypt(home.0.into(), block);
                    }
                    Ok::<(), Cause>(())
                };
                compressed.copy_out(found, sum, page, read)?;
            } else if xxhash_rust::xxh3::xxh3_128(page) != sum {
                return Err(Cause::Differs);
            }
        }
        Ok(())
    }

    /// Reads `count` pages of a file from `first` on at once, into the first pages of `into`: see
    /// [`read_run_now`](Self::read_run_now). What lies beyond its end reads as zeros.
    pub fn read_file_now(
        &mut self,
        (file, first): (PagerId, u64),
        count: usize,
        into: &mut Mapping,
    ) -> Result<(), Cause> {
        let (source, slot) = (self.files.get(file), SlotId(first as u32));
        let left = source.bytes.saturating_sub(offset_of(slot));
        let bytes = into.first_pages(count);
        let due = left.min(bytes.len() as u64) as usize;
        read_until(source.file.as_file(), slot, bytes, due)?;
        bytes[due..].fill(0);
        Ok(())
    }
}

/// Reads what is stored from `slot` on, until `into` is full.
fn read_fully(file: &OwnedFd, slot: SlotId, into: &mut [u8]) -> Result<(), Cause> {
    let due = into.len();
    read_until(file, slot, into, due)
}

/// Reads what is stored from `slot` on, until the first `due` bytes of `into` are there. Whole
/// pages are asked for.
fn read_until(file: &OwnedFd, slot: SlotId, into: &mut [u8], due: usize) -> Result<(), Cause> {
    let mut filled = 0;
    while filled < due {
        let offset = offset_of(slot) + filled as u64;
        match rustix::io::pread(file, &mut into[filled..], offset) {
            Ok(0) => return Err(Cause::Short),
            Ok(count) => filled += count,
            Err(Errno::INTR) => {}
            Err(error) => return Err(Cause::File(error)),
        }
    }
    Ok(())
}
