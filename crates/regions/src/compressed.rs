//! Compressed memory in front of the store: its share of the limit, and of the store's slots.
//!
//! # Invariants
//! 1. Frames and compressed pages together have at most the limit, less what counts beside them.
//! 2. Segments that leave take at most the slots that no page of a region can need.

use tidemark_core::id::SlotId;
use tidemark_core::memory::swap_slots::{LocalSlots, Slots};
use tidemark_live::store::SwapStore;
use tidemark_live::sys::Errno;
use tidemark_tasks::TaskMemory;

use crate::settings::Compression;
use crate::worker::Worker;

/// The part of the slots, as a divisor, that is kept for segments of compressed pages.
const HOMES_PART: u32 = 4;

/// Compressed memory of an engine.
pub(crate) struct Tier {
    is_alone: bool,
    homes: Homes,
}

/// The slots whose space segments have.
struct Homes {
    taken: u32,
    most: u32,
}

/// The slots as compressed memory sees them.
struct Lent<'a> {
    slots: &'a mut dyn Slots,
    homes: &'a mut Homes,
}

impl Compression {
    /// The slots, of `slots`, that pages of regions may have.
    pub(crate) fn slots_of_pages(self, slots: u32) -> u32 {
        slots - self.slots_of_segments(slots)
    }

    fn slots_of_segments(self, slots: u32) -> u32 {
        match self {
            Compression::Without | Compression::Alone => 0,
            Compression::First => slots / HOMES_PART,
        }
    }

    /// The store's slots.
    pub(crate) fn slots(self, slots: u32) -> Box<dyn Slots> {
        let made = LocalSlots::new(slots);
        match self {
            Compression::Without => Box::new(made),
            Compression::First | Compression::Alone => Box::new(made.note_released()),
        }
    }

    /// The store with compressed memory in front, for `frames` of both together.
    pub(crate) fn in_front(self, store: SwapStore, frames: u32) -> Result<SwapStore, Errno> {
        match self {
            Compression::Without => Ok(store),
            Compression::First => store.compress(frames, true),
            Compression::Alone => store.compress(frames, false),
        }
    }

    /// The memory of an engine that may use `frames`.
    pub(crate) fn task(self, frames: u32) -> TaskMemory {
        TaskMemory::new(frames, 0, self != Compression::Without)
    }

    /// Compressed memory of an engine that has `slots`.
    pub(crate) fn tier(self, slots: u32) -> Option<Tier> {
        (self != Compression::Without).then(|| Tier {
            is_alone: self == Compression::Alone,
            homes: Homes {
                taken: 0,
                most: self.slots_of_segments(slots),
            },
        })
    }
}

impl Worker {
    /// Lets compressed pages take what no frame has, before more of them come.
    pub(crate) fn allow_compressed(&mut self) {
        let Some(tier) = &self.tier else {
            return;
        };
        // Slots that were let go of may be those of what is stored next.
        self.store.forget_released(self.vm.slots_mut());
        let held = self.store.pages_held();
        let (most, is_shrinking) = self.task.log_pages(&self.vm, held, tier.is_alone);
        self.store.allow(most, is_shrinking);
    }

    /// Keeps house in compressed memory, and has the core use what that leaves. Answers whether
    /// anything follows from it.
    pub(crate) fn tend_compressed(&mut self) -> bool {
        self.allow_compressed();
        let Some(tier) = &mut self.tier else {
            return false;
        };
        let mut lent = Lent {
            slots: self.vm.slots_mut(),
            homes: &mut tier.homes,
        };
        let has_started = self.store.tend(&mut lent, self.task.shared_pages());
        let held = self.store.pages_held();
        let (vm, machine) = (&mut self.vm, &mut self.machine);
        self.task.handle_held(self.now, held, vm, machine) || has_started
    }
}

impl Slots for Lent<'_> {
    fn allocate(&mut self, want: u32) -> Option<(SlotId, u32)> {
        if self.homes.most - self.homes.taken < want {
            return None;
        }
        let (first, count) = self.slots.allocate(want)?;
        self.homes.taken += count;
        Some((first, count))
    }

    fn share(&mut self, slot: SlotId) {
        self.slots.share(slot);
    }

    fn release(&mut self, slot: SlotId) {
        self.homes.taken -= 1;
        self.slots.release(slot);
    }

    fn free(&self) -> u32 {
        self.slots.free().min(self.homes.most - self.homes.taken)
    }
}
