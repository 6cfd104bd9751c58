//! Checks: walking every table to see that they agree. For tests and the lab, after every step.

use alloc::collections::{BTreeMap, BTreeSet};

use crate::id::{FrameId, ObjectId, PageId, SlotId, Ticket};
use crate::kernels::Placement;
use crate::memory::frame::State;
use crate::seams::pager::{Direction, Place};
use crate::vm::Vm;

impl Vm {
    /// Panics if any two tables contradict each other.
    pub fn check(&self) {
        self.memory.frames().check();
        self.policy.check();
        self.check_page_tables();
        self.check_transfers();
        self.check_clusters();
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
                    "frame {number} holds a page nobody names"
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
        self.check_copies();
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

    /// Checks that no other part has what the swap store has of external objects: not in memory,
    /// and not with the pager, which is still to get it.
    fn check_copies(&self) {
        for (id, object) in self
            .memory
            .objects()
            .iter()
            .filter(|(_, one)| one.is_external())
        {
            for (index, entry) in object.collect(0, u64::MAX) {
                if entry.slot().is_none() {
                    continue;
                }
                let state = entry.frame().map(|frame| self.memory.frames().state(frame));
                assert!(
                    matches!(state, None | Some(State::Filling)),
                    "page {index} of object {} is in memory and on the store",
                    id.0
                );
            }
        }
    }

    /// Checks that no request to the store reaches beyond a cluster, where clusters have places.
    fn check_clusters(&self) {
        if self.config.placement == Placement::Together {
            return;
        }
        let cluster_of = |page: &PageId| (page.object, self.cluster_of(*page));
        for transfer in self.transfers.iter() {
            let Place::Swap { first } = transfer.request().place else {
                continue;
            };
            let (pages, last) = (transfer.pages(), first.0 + transfer.request().pages - 1);
            let is_store = transfer.request().direction == Direction::Store;
            assert!(!is_store || self.block_of(first) == self.block_of(SlotId(last)));
            let is_one = pages
                .windows(2)
                .all(|w| cluster_of(&w[0]) == cluster_of(&w[1]));
            assert!(is_one, "{pages:?} in one request");
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
            assert!(counted != (0, 0), "object {} is held by nobody", id.0);
        }
    }

    /// No slot has two uses in this memory.
    fn check_slots(&self) {
        let mut used: BTreeSet<SlotId> = BTreeSet::new();
        self.visit_slots(&mut |slot| assert!(used.insert(slot), "slot {} is used twice", slot.0));
    }
}
