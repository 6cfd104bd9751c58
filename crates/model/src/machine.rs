//! The simulated machine: page tables over [`Physical`] memory.
//!
//! It is as unkind as [`Machine`] allows. Contents without a promise to be kept turn into noise,
//! pinned pages refuse to be unmapped, pages vanish before the core learns of it, and a program may
//! not run while a change waits for [`settle`](Machine::settle).
//!
//! # Invariants
//! 1. An address reaches at most one frame.
//! 2. A frame that is being filled is not mapped.
//! 3. Programs run only when every change is settled and every setback has been taken.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use tidemark_core::id::{FrameId, SpaceId, VirtPage};
use tidemark_core::seams::machine::{Machine, Modification, PageBits, Rights, Setback};

use crate::conformance::ProgramSide;
use crate::physical::{Physical, Stamp};

/// The information that the machine has on the use of pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Reference and modify bits, set by the hardware.
    Bits,
    /// No bits. Being mapped counts as being used, and asking unmaps; modification is found by
    /// comparing contents with what the pager holds.
    SoftFaults,
}

#[derive(Clone, Copy, Debug)]
struct Mapping {
    frame: FrameId,
    rights: Rights,
    /// The page's owner has taken it away; the core does not know yet.
    is_gone: bool,
}

/// A page of which the core does not know.
#[derive(Clone, Copy, Debug)]
struct Wild {
    stamp: Stamp,
    is_pinned: bool,
}

/// Simulated translation hardware.
pub struct SimMachine {
    kind: Kind,
    physical: Physical,
    tables: BTreeMap<(SpaceId, VirtPage), Mapping>,
    /// Pages that stand in a space though the core has never heard of them, or not any more.
    wild: BTreeMap<(SpaceId, VirtPage), Wild>,
    unsettled: BTreeSet<FrameId>,
    is_unsettled: bool,
    /// Nothing can be unmapped.
    is_halted: bool,
    setbacks_coming: Vec<(FrameId, Setback)>,
    setbacks: VecDeque<(FrameId, Setback)>,
}

impl SimMachine {
    /// Makes a machine over `physical` with empty tables.
    pub fn new(kind: Kind, physical: Physical) -> SimMachine {
        SimMachine {
            kind,
            physical,
            tables: BTreeMap::new(),
            wild: BTreeMap::new(),
            unsettled: BTreeSet::new(),
            is_unsettled: false,
            is_halted: false,
            setbacks_coming: Vec::new(),
            setbacks: VecDeque::new(),
        }
    }

    /// Takes the page at `at` away, as its owner may at any time without asking. Its mapping is
    /// gone and so are its contents; the core believes in both until the machine reports it.
    ///
    /// Reports whether there was one that could be taken: a pinned page stays.
    pub fn vanish(&mut self, space: SpaceId, at: VirtPage) -> bool {
        self.wild.remove(&(space, at));
        let Some(mapping) = self.tables.get_mut(&(space, at)) else {
            return false;
        };
        if mapping.is_gone || is_pinned(&self.physical, mapping.frame) {
            return false;
        }
        mapping.is_gone = true;
        self.physical.spoil(mapping.frame);
        true
    }

    /// Holds the page at `at`, if it is mapped, so that it cannot be unmapped.
    pub fn pin(&mut self, space: SpaceId, at: VirtPage) {
        if let Some(wild) = self.wild.get_mut(&(space, at)) {
            wild.is_pinned = true;
        }
        if let Some(mapping) = self.tables.get(&(space, at)) {
            self.physical
                .mark(mapping.frame, |marks| marks.is_pinned = true);
        }
    }

    /// Lets go of every pinned page.
    pub fn unpin_all(&mut self) {
        for wild in self.wild.values_mut() {
            wild.is_pinned = false;
        }
        for frame in 0..self.physical.frames() {
            self.physical
                .mark(FrameId(frame), |marks| marks.is_pinned = false);
        }
    }

    /// Refuses to unmap any page until the next call.
    pub fn halt(&mut self, is_halted: bool) {
        self.is_halted = is_halted;
    }

    /// Moves the wild pages of a range, as the host does when it moves the range.
    pub fn move_wild(&mut self, space: SpaceId, from: VirtPage, to: VirtPage, pages: u64) {
        for offset in 0..pages {
            if let Some(wild) = self.wild.remove(&(space, from.plus(offset))) {
                self.wild.insert((space, to.plus(offset)), wild);
            }
        }
    }

    /// Lets the wild pages of a range go, as the host does when it is unmapped or discarded.
    pub fn drop_wild(&mut self, space: SpaceId, at: VirtPage, pages: u64) {
        self.wild
            .retain(|key, _| key.0 != space || !(at..at.plus(pages)).contains(&key.1));
    }

    /// The pages of `space` that the core has not heard of, in order.
    pub fn wild_pages(&self, space: SpaceId) -> Vec<VirtPage> {
        self.wild
            .keys()
            .filter(|key| key.0 == space)
            .map(|key| key.1)
            .collect()
    }

    /// Every mapping, in order of space and page.
    pub fn mappings(&self) -> impl Iterator<Item = (SpaceId, VirtPage, FrameId, Rights)> {
        self.tables
            .iter()
            .map(|(key, mapping)| (key.0, key.1, mapping.frame, mapping.rights))
    }

    /// Returns true if a page stands at `at` that the core has not heard of.
    pub fn is_wild(&self, space: SpaceId, at: VirtPage) -> bool {
        self.wild.contains_key(&(space, at))
    }

    /// Returns true if `at` reaches a frame.
    pub fn is_mapped_at(&self, space: SpaceId, at: VirtPage) -> bool {
        self.tables.contains_key(&(space, at))
    }

    /// The frames' contents.
    pub fn physical(&self) -> &Physical {
        &self.physical
    }

    /// Panics if the tables contradict each other.
    pub fn check(&self) {
        for (key, mapping) in &self.tables {
            assert_ne!(mapping.rights, Rights::None, "an empty mapping at {key:?}");
            assert!(
                !self.physical.is_filling(mapping.frame),
                "{key:?} reaches a filling frame"
            );
            assert!(!self.wild.contains_key(key), "two pages stand at {key:?}");
        }
    }

    fn reach(&mut self, space: SpaceId, at: VirtPage, needed: Rights) -> Option<FrameId> {
        assert!(
            !self.is_unsettled,
            "a program runs before the machine has settled"
        );
        assert!(
            self.setbacks.is_empty(),
            "a program runs before setbacks have been taken"
        );
        let mapping = self.tables.get(&(space, at))?;
        if mapping.rights < needed || mapping.is_gone {
            return None;
        }
        let frame = mapping.frame;
        self.physical.mark(frame, |marks| {
            marks.is_referenced = true;
            marks.is_modified |= needed == Rights::Write;
        });
        Some(frame)
    }

    fn is_mapped(&self, frame: FrameId) -> bool {
        self.tables.values().any(|mapping| mapping.frame == frame)
    }

    /// Removes every mapping of `frame`, or records why not.
    fn unmap_all(&mut self, frame: FrameId) {
        if !self.is_mapped(frame) {
            return;
        }
        if self.is_halted {
            self.setbacks_coming.push((frame, Setback::Later));
            return;
        }
        if is_pinned(&self.physical, frame) {
            self.setbacks_coming.push((frame, Setback::Busy));
            return;
        }
        let of_frame = |mapping: &&Mapping| mapping.frame == frame;
        if self
            .tables
            .values()
            .filter(of_frame)
            .any(|mapping| mapping.is_gone)
        {
            self.setbacks_coming.push((frame, Setback::Gone));
        }
        self.tables.retain(|_, mapping| mapping.frame != frame);
    }

    fn mark_unsettled(&mut self, frame: FrameId) {
        self.unsettled.insert(frame);
        self.is_unsettled = true;
    }

    fn assert_vacant(&self, space: SpaceId, at: VirtPage, frame: FrameId) {
        if let Some(mapping) = self.tables.get(&(space, at)) {
            assert_eq!(
                mapping.frame, frame,
                "{at:?} of {space:?} reaches another frame"
            );
        }
    }
}

fn is_pinned(physical: &Physical, frame: FrameId) -> bool {
    physical.mark(frame, |_| ()).is_pinned
}

impl Machine for SimMachine {
    fn enter(&mut self, space: SpaceId, at: VirtPage, frame: FrameId, rights: Rights) {
        assert_ne!(rights, Rights::None, "a mapping that allows nothing");
        assert!(
            !self.physical.is_filling(frame),
            "{frame:?} is entered while it is being filled"
        );
        self.assert_vacant(space, at, frame);
        if let Some(wild) = self.wild.remove(&(space, at)) {
            // The host refuses to put a page where one stands, and the one that stands was there
            // first: the core knew of nothing there, so its own can only be zeros.
            assert_eq!(
                self.physical.contents(frame),
                Stamp::ZEROS,
                "two pages at {at:?}"
            );
            self.physical.replace(frame, wild.stamp);
            self.physical
                .mark(frame, |marks| marks.is_pinned = wild.is_pinned);
        }
        self.tables.insert(
            (space, at),
            Mapping {
                frame,
                rights,
                is_gone: false,
            },
        );
        self.mark_unsettled(frame);
    }

    fn restrict(&mut self, frame: FrameId, rights: Rights) {
        self.mark_unsettled(frame);
        if rights == Rights::None {
            self.unmap_all(frame);
            return;
        }
        for mapping in self
            .tables
            .values_mut()
            .filter(|mapping| mapping.frame == frame)
        {
            mapping.rights = mapping.rights.min(rights);
        }
    }

    fn leave(&mut self, space: SpaceId, at: VirtPage, frame: FrameId) {
        self.assert_vacant(space, at, frame);
        self.tables.remove(&(space, at));
        if !self.is_mapped(frame) {
            // What is pinned is the page, and it goes with its owner.
            self.physical.mark(frame, |marks| marks.is_pinned = false);
        }
        self.mark_unsettled(frame);
    }

    fn discard(&mut self, frame: FrameId) {
        self.tables.retain(|_, mapping| mapping.frame != frame);
        self.physical.mark(frame, |marks| marks.is_pinned = false);
        self.physical.spoil(frame);
        self.mark_unsettled(frame);
    }

    fn zero(&mut self, frame: FrameId) {
        assert!(
            !self.is_mapped(frame),
            "{frame:?} is zeroed under its users"
        );
        self.physical.replace(frame, Stamp::ZEROS);
    }

    fn copy(&mut self, from: FrameId, to: FrameId) {
        assert!(!self.is_mapped(to), "{to:?} is copied onto under its users");
        assert!(
            !self.physical.is_filling(from),
            "{from:?} is copied while it is being filled"
        );
        self.physical.replace(to, self.physical.contents(from));
    }

    fn adopt(&mut self, space: SpaceId, at: VirtPage, frame: FrameId) {
        let wild = self
            .wild
            .remove(&(space, at))
            .expect("a page to adopt stands there");
        assert!(
            !self.is_mapped(frame),
            "{frame:?} has users and adopts a page"
        );
        self.assert_vacant(space, at, frame);
        self.physical.replace(frame, wild.stamp);
        self.physical
            .mark(frame, |marks| marks.is_pinned = wild.is_pinned);
        let mapping = Mapping {
            frame,
            rights: Rights::Write,
            is_gone: false,
        };
        self.tables.insert((space, at), mapping);
        self.mark_unsettled(frame);
    }

    fn disown(&mut self, frame: FrameId) -> bool {
        let of_frame = |(&place, mapping): (&(SpaceId, VirtPage), &Mapping)| {
            (mapping.frame == frame).then_some(place)
        };
        let mut places = self.tables.iter().filter_map(of_frame);
        let Some(place) = places.next() else {
            return false;
        };
        assert_eq!(places.next(), None, "a disowned page is mapped once");
        drop(places);
        self.tables.remove(&place);
        let wild = Wild {
            stamp: self.physical.contents(frame),
            is_pinned: is_pinned(&self.physical, frame),
        };
        self.wild.insert(place, wild);
        self.physical.mark(frame, |marks| marks.is_pinned = false);
        self.physical.spoil(frame);
        self.mark_unsettled(frame);
        true
    }

    fn relocate(&mut self, space: SpaceId, from: VirtPage, to: VirtPage, frame: FrameId) {
        let Some(mapping) = self.tables.remove(&(space, from)) else {
            return;
        };
        assert_eq!(
            mapping.frame, frame,
            "{from:?} reaches another frame than the one relocated"
        );
        self.assert_vacant(space, to, frame);
        self.tables.insert((space, to), mapping);
        self.mark_unsettled(frame);
    }

    fn retire(&mut self, frame: FrameId) {
        assert!(
            !self.is_mapped(frame),
            "{frame:?} is retired under its users"
        );
        self.physical.replace(frame, Stamp::NOISE);
    }

    fn settle(&mut self) {
        self.unsettled.clear();
        self.is_unsettled = false;
        self.setbacks.extend(self.setbacks_coming.drain(..));
    }

    fn take_setback(&mut self) -> Option<(FrameId, Setback)> {
        self.setbacks.pop_front()
    }
}

impl PageBits for SimMachine {
    fn take_referenced(&mut self, frame: FrameId) -> bool {
        match self.kind {
            Kind::Bits => {
                self.physical
                    .mark(frame, |marks| marks.is_referenced = false)
                    .is_referenced
            }
            Kind::SoftFaults => {
                let is_mapped = self.is_mapped(frame);
                self.mark_unsettled(frame);
                self.unmap_all(frame);
                is_mapped
            }
        }
    }

    fn answers_arrival(&self) -> bool {
        self.kind == Kind::SoftFaults
    }

    fn take_modified(&mut self, frame: FrameId) -> bool {
        self.take_modification(frame) != Modification::None
    }

    fn take_modification(&mut self, frame: FrameId) -> Modification {
        assert!(
            !self.is_mapped(frame),
            "{frame:?} is asked whether it changed while it can"
        );
        assert!(
            !self.unsettled.contains(&frame),
            "{frame:?} is asked before it has settled"
        );
        let is_different = self.physical.take_difference(frame);
        let bit = self
            .physical
            .mark(frame, |marks| marks.is_modified = false)
            .is_modified;
        let is_written = match self.kind {
            Kind::Bits => bit,
            Kind::SoftFaults => is_different,
        };
        match is_written {
            true => Modification::Written,
            false => Modification::None,
        }
    }

    fn may_be_modified(&self, frame: FrameId) -> bool {
        match self.kind {
            Kind::Bits => self.physical.mark(frame, |_| ()).is_modified,
            Kind::SoftFaults => true,
        }
    }
}

impl ProgramSide for SimMachine {
    fn read(&mut self, space: SpaceId, at: VirtPage) -> Option<Stamp> {
        if let Some(wild) = self.wild.get(&(space, at)) {
            return Some(wild.stamp);
        }
        self.reach(space, at, Rights::Read)
            .map(|frame| self.physical.contents(frame))
    }

    fn write(&mut self, space: SpaceId, at: VirtPage, stamp: Stamp) -> bool {
        if let Some(standing) = self.wild.get_mut(&(space, at)) {
            standing.stamp = stamp;
            return true;
        }
        let reached = self.reach(space, at, Rights::Write);
        if let Some(frame) = reached {
            self.physical.write(frame, stamp);
        }
        reached.is_some()
    }

    fn place(&mut self, space: SpaceId, at: VirtPage, stamp: Stamp) {
        assert!(
            !self.tables.contains_key(&(space, at)),
            "{at:?} of {space:?} is known already"
        );
        let is_pinned = false;
        self.wild.insert((space, at), Wild { stamp, is_pinned });
    }
}
