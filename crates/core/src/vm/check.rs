//! Checks: walking every table to see that they agree. For tests and the lab, after every step.

use alloc::collections::{BTreeMap, BTreeSet};

use crate::id::{FrameId, ObjectId, SlotId, Ticket};
use crate::memory::frame::State;
use crate::seams::pager::Direction;
use crate::vm::Vm;

impl Vm {
    /// Panics if any two tables contradict each other.
    pub fn check(&self) {
        self.memory.frames().check();
        self.policy.check();
        self.check_page_tables();
        self.check_transfers();
        self.check_kernel();
        self.check_holders();
        self.check_slots();
        self.check_pins();
        let suspended = self
            .memory
            .spaces()
            .iter()
            .filter(|(_, space)| space.is_suspended);
        assert_eq!(suspended.count(), self.suspended.len());
        assert!(
            self.memory.frames().usable() >= self.memory.frames().limit()
                || self.memory.frames().limit() == 0
        );
    }

    /// Every resident page is named by its object, and no frame twice.
    fn check_page_tables(&self) {
        let mut named = BTreeSet::new();
        for (id, object) in self.memory.objects().iter() {
            for (index, entry) in object.collect(0, u64::MAX) {
                let Some(frame) = entry.frame() else { continue };
                assert!(named.insert(frame), "frame {} is named twice", frame.0);
                let page = self
                    .memory
                    .frames()
                    .page(frame)
                    .expect("a named frame has a page");
                assert_eq!((page.object, page.index), (id, index));
            }
        }
        for number in 0..self.memory.frames().len() {
            let frame = FrameId(number as u32);
            if self.memory.frames().state(frame) == State::Resident {
                assert!(
                    named.contains(&frame),
                    "frame {number} holds a page that no object has"
                );
            }
        }
    }

    /// Frames in transit belong to one transfer each, and the laundry is what is being stored.
    fn check_transfers(&self) {
        let mut moving = BTreeSet::new();
        let mut laundry = 0;
        for transfer in self.transfers.iter() {
            let ticket = transfer.request().ticket;
            let state = match transfer.request().direction {
                Direction::Fetch => State::Filling,
                Direction::Store => State::Leaving,
            };
            if state == State::Leaving {
                laundry += transfer.request().pages;
            }
            for &frame in transfer.frames() {
                assert!(moving.insert(frame));
                assert_eq!(self.memory.frames().state(frame), state);
                assert_eq!(self.memory.frames().ticket(frame), ticket);
            }
        }
        assert_eq!(laundry, self.transfers.laundry());
        for number in 0..self.memory.frames().len() {
            let frame = FrameId(number as u32);
            if matches!(
                self.memory.frames().state(frame),
                State::Filling | State::Leaving
            ) {
                assert!(self.memory.frames().ticket(frame) != Ticket(0));
                assert!(moving.contains(&frame), "frame {number} waits for nothing");
            }
        }
    }

    /// Objects are held by exactly the regions and shadows that name them.
    fn check_holders(&self) {
        let mut holders: BTreeMap<ObjectId, (u32, u32)> = BTreeMap::new();
        for (_, space) in self.memory.spaces().iter() {
            let mut end = 0;
            for region in space.regions() {
                let start = region.start;
                assert!(region.pages > 0 && start >= end);
                end = region.end();
                holders.entry(region.object).or_default().0 += 1;
            }
        }
        for (_, object) in self.memory.objects().iter() {
            if let Some((below, _)) = object.shadow() {
                holders.entry(below).or_default().1 += 1;
            }
        }
        for (id, object) in self.memory.objects().iter() {
            let counted = holders.get(&id).copied().unwrap_or_default();
            assert_eq!(
                counted,
                object.holders(),
                "object {} is held otherwise",
                id.0
            );
            assert!(counted != (0, 0), "object {} has no holder", id.0);
        }
    }

    /// No slot has two uses in this memory.
    fn check_slots(&self) {
        let mut used: BTreeSet<SlotId> = BTreeSet::new();
        self.visit_slots(&mut |slot| assert!(used.insert(slot), "slot {} is used twice", slot.0));
    }
}
