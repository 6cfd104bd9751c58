//! Heaps: blocks of an engine's memory by address, for allocators that others call.
//!
//! One region has room for all blocks. Its addresses are divided into blocks and free places; a
//! place that is given back is made one with its neighbours, so that a program that runs for long
//! does not run out of addresses. The memory and swap that a block may need is reserved when it is
//! taken, as for a region.
//!
//! # Invariants
//! 1. Blocks and free places do not overlap, and no two free places touch each other. What is in
//!    neither is being given back.
//! 2. What lies at a free place reads as zeros, and has no slot in the swap file.
//!
//! # Locks
//! The lock of the places is held to look one up or to change the table, and nothing else is taken
//! meanwhile.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex};

use tidemark_live::sys::PAGE;

use crate::command::{Handle, lock};
use crate::error::Error;
use crate::region::Region;

/// The addresses of a heap, in multiples of what all blocks may have together: enough that blocks
/// of different sizes find places beside each other.
const ROOM: u64 = 4;
/// The addresses of a heap, in the same multiples, where the system limits addresses.
const ROOM_LEAST: u64 = 1;

/// The part of an engine's memory that is given back at once.
const PIECE_SHARE: usize = 64;
/// The least bytes that are given back at once.
const PIECE_BYTES_LEAST: usize = 1 << 20;

/// Memory of an [`Engine`](crate::Engine) in blocks, for an allocator: a block is known by its
/// address alone. A user of blocks keeps the heap.
#[derive(Debug)]
pub struct Heap {
    region: Region,
    places: Mutex<Places>,
    handle: Arc<Handle>,
}

/// The places of blocks and those that are free: each with its bytes, by its offset.
#[derive(Debug, Default)]
struct Places {
    blocks: BTreeMap<usize, usize>,
    free: BTreeMap<usize, usize>,
}

impl Heap {
    pub(crate) fn new(handle: Arc<Handle>) -> Result<Heap, Error> {
        let most = handle.left_most;
        let room = |times| Region::room(Arc::clone(&handle), most.saturating_mul(times));
        let region = match room(ROOM) {
            Err(Error::System(_)) => room(ROOM_LEAST)?,
            other => other?,
        };
        let bytes = region.len();
        handle.add_unused(bytes as u64);
        let places = Places {
            blocks: BTreeMap::new(),
            free: BTreeMap::from([(0, bytes)]),
        };
        Ok(Heap {
            region,
            places: Mutex::new(places),
            handle,
        })
    }

    /// Takes a block of `bytes` zeros, and returns its address, that of a page. It takes no memory
    /// before it is touched.
    ///
    /// # Errors
    /// Zero bytes; more than the engine's memory and swap file can hold beside all else; or in a
    /// forked child.
    pub fn take(&self, bytes: usize) -> Result<usize, Error> {
        if self.handle.is_forked() {
            return Err(Error::Forked);
        }
        let whole = whole(bytes)?;
        self.handle.take(whole as u64)?;
        let place = lock(&self.places).take(whole);
        let Some(place) = place else {
            // There is as much, and it is in pieces.
            self.handle.give(whole as u64);
            return Err(too_large(bytes));
        };
        self.handle.take_unused(whole as u64);
        Ok(self.region.address() + place)
    }

    /// Resizes the block at `address` to `bytes`, without moving it, and returns whether it could.
    /// New bytes are zeros. A block that shrinks stays as it is.
    pub fn stretch(&self, address: usize, bytes: usize) -> bool {
        let (Some(offset), Ok(whole)) = (self.offset_of(address), whole(bytes)) else {
            return false;
        };
        let Some(had) = self.bytes_of(address) else {
            return false;
        };
        let Some(more) = whole.checked_sub(had).filter(|&more| more > 0) else {
            return true;
        };
        if self.handle.is_forked() || self.handle.take(more as u64).is_err() {
            return false;
        }
        let is_stretched = lock(&self.places).stretch(offset, more);
        match is_stretched {
            true => self.handle.take_unused(more as u64),
            false => self.handle.give(more as u64),
        }
        is_stretched
    }

    /// Gives the block at `address` back, with its memory and swap space. Returns whether there is
    /// one. It must not be touched any more.
    ///
    /// A forked child has no blocks, and this forgets the address.
    pub fn give(&self, address: usize) -> bool {
        let Some(offset) = self.offset_of(address) else {
            return false;
        };
        if self.handle.is_forked() {
            return self.forget(offset);
        }
        let Some(bytes) = lock(&self.places).blocks.remove(&offset) else {
            return false;
        };
        // An engine ends later than its heaps. A place that can't be emptied is not used again.
        if self.empty(offset..offset + bytes).is_ok() {
            lock(&self.places).give(offset, bytes);
        }
        self.handle.add_unused(bytes as u64);
        self.handle.give(bytes as u64);
        true
    }

    /// The bytes of the block at `address`, or `None` if there is none.
    pub fn bytes_of(&self, address: usize) -> Option<usize> {
        let offset = self.offset_of(address)?;
        if self.handle.is_forked() {
            return None;
        }
        lock(&self.places).blocks.get(&offset).copied()
    }

    /// Makes a range zeros. Its frames are free before its pages have gone, so that much of it at a
    /// time would be memory beyond the limit, and others' faults would wait for it.
    fn empty(&self, range: Range<usize>) -> Result<(), Error> {
        let share = self.handle.memory_bytes as usize / PIECE_SHARE;
        let piece = share.max(PIECE_BYTES_LEAST).next_multiple_of(PAGE);
        range.clone().step_by(piece).try_for_each(|start| {
            let end = range.end.min(start + piece);
            self.region.empty(start..end)
        })
    }

    /// Forgets a block in a forked child, where addresses of the heap may be those of other memory
    /// by now. A lock that another thread held during the fork is held for ever.
    fn forget(&self, offset: usize) -> bool {
        match self.places.try_lock() {
            Ok(mut places) => places.blocks.remove(&offset).is_some(),
            // What is not given back to anyone does no harm.
            Err(_) => true,
        }
    }

    /// The offset of an address at which a block can be.
    fn offset_of(&self, address: usize) -> Option<usize> {
        let offset = address.checked_sub(self.region.address())?;
        (offset < self.region.len() && offset.is_multiple_of(PAGE)).then_some(offset)
    }
}

impl Drop for Heap {
    fn drop(&mut self) {
        if !self.handle.is_forked() {
            let free = lock(&self.places);
            let blocks: usize = free.blocks.values().sum();
            self.handle.give(blocks as u64);
            self.handle.take_unused((self.region.len() - blocks) as u64);
        }
    }
}

impl Places {
    /// Makes a block of the smallest free place that has `bytes`.
    fn take(&mut self, bytes: usize) -> Option<usize> {
        let fits = self.free.iter().filter(|&(_, &size)| size >= bytes);
        let (&offset, &size) = fits.min_by_key(|&(_, &size)| size)?;
        self.free.remove(&offset);
        if size > bytes {
            self.free.insert(offset + bytes, size - bytes);
        }
        self.blocks.insert(offset, bytes);
        Some(offset)
    }

    /// Gives the block at `offset` so much `more` of the free place behind it.
    fn stretch(&mut self, offset: usize, more: usize) -> bool {
        let Some(bytes) = self.blocks.get_mut(&offset) else {
            return false;
        };
        let end = offset + *bytes;
        let Some(size) = self.free.get(&end).copied().filter(|&size| size >= more) else {
            return false;
        };
        *bytes += more;
        self.free.remove(&end);
        if size > more {
            self.free.insert(end + more, size - more);
        }
        true
    }

    /// Makes a place free, with the free places beside it.
    fn give(&mut self, offset: usize, bytes: usize) {
        let (mut start, mut end) = (offset, offset + bytes);
        if let Some(size) = self.free.remove(&end) {
            end += size;
        }
        if let Some((&before, &size)) = self.free.range(..offset).next_back()
            && before + size == offset
        {
            start = before;
        }
        self.free.insert(start, end - start);
    }
}

/// The bytes of whole pages.
fn whole(bytes: usize) -> Result<usize, Error> {
    match bytes.checked_next_multiple_of(PAGE) {
        Some(0) => Err(Error::Empty),
        Some(whole) => Ok(whole),
        None => Err(too_large(bytes)),
    }
}

fn too_large(bytes: usize) -> Error {
    Error::TooLarge {
        bytes: bytes as u64,
        left: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidemark_core::random::SplitMix64;

    const ROOM: usize = 1 << 20;

    fn places() -> Places {
        Places {
            blocks: BTreeMap::new(),
            free: BTreeMap::from([(0, ROOM)]),
        }
    }

    /// Walks the first invariant; all that was taken was given.
    fn check(places: &Places) {
        let blocks = places.blocks.iter().map(|(&at, &size)| (at, size, true));
        let free = places.free.iter().map(|(&at, &size)| (at, size, false));
        let mut all: Vec<_> = blocks.chain(free).collect();
        all.sort_unstable();
        let mut next = 0;
        let mut was_block = true;
        for (at, size, is_block) in all {
            assert_eq!(at, next);
            assert!(was_block || is_block, "two free places touch at {at}");
            (next, was_block) = (at + size, is_block);
        }
        assert_eq!(next, ROOM);
    }

    #[test]
    fn places_become_one_again_whatever_the_order() {
        for seed in 0..20 {
            let mut random = SplitMix64::new(seed);
            let mut places = places();
            let mut taken = Vec::new();
            for _ in 0..500 {
                let pick = random.below(taken.len() as u64 + 1) as usize;
                match random.below(3) {
                    0 => taken.extend(places.take((random.below(20) as usize + 1) * PAGE)),
                    1 if pick < taken.len() => {
                        places.stretch(taken[pick], PAGE);
                    }
                    _ if pick < taken.len() => {
                        let offset = taken.swap_remove(pick);
                        let bytes = places.blocks.remove(&offset).unwrap();
                        places.give(offset, bytes);
                    }
                    _ => {}
                }
                check(&places);
            }
            for offset in taken {
                let bytes = places.blocks.remove(&offset).unwrap();
                places.give(offset, bytes);
            }
            assert_eq!(places.free, BTreeMap::from([(0, ROOM)]), "seed {seed}");
        }
    }

    #[test]
    fn a_block_goes_where_it_fits_best() {
        let mut places = places();
        let [first, hole, _, other, _] = [1, 8, 1, 4, 1].map(|n| places.take(n * PAGE).unwrap());
        for (offset, pages) in [(hole, 8), (other, 4)] {
            places.blocks.remove(&offset);
            places.give(offset, pages * PAGE);
        }
        assert_eq!(places.take(3 * PAGE), Some(other));
        assert_eq!(places.take(5 * PAGE), Some(hole));
        assert!(!places.stretch(hole, 4 * PAGE) && places.stretch(hole, 3 * PAGE));
        assert!(!places.stretch(first, PAGE));
        check(&places);
    }
}
