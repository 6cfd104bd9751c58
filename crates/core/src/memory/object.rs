//! Memory objects: sequences of pages with a pager behind them, and the shadows that copy-on-write
//! makes.
//!
//! An object's page table says of each page which frame holds it and which slot of the swap store
//! backs it; a page with neither reads as zeros (internal objects), shows through from the object
//! this one *shadows*, or must be asked for (external objects, and copies of what a pager outside
//! has).
//!
//! After a fork both sides keep the old object and write into new objects that shadow it (Mach:
//! `vm/vm_object.c`; Rashid et al., "Machine-Independent Virtual Memory Management for Paged
//! Uniprocessor and Multiprocessor Architectures", ASPLOS 1987, section 3.4). When only one shadow
//! is left, the two are merged.
//!
//! # Invariants
//! 1. An object's holders are its regions, counted per space, and the objects that shadow it. It
//!    lives exactly as long as it has a holder.
//! 2. A leaf of the page table has at least one entry in use.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::id::{FrameId, ObjectId, PageId, PagerId, SlotId, SpaceId};

/// Pages of a leaf: most objects' pages are in stretches that are not much longer.
const LEAF: u64 = 128;
const NONE: u32 = u32::MAX;

/// The part that keeps an object's contents when they are not in memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Backing {
    /// The swap store: the object is internal (anonymous memory).
    Swap,
    /// A pager outside: a file, or a user's own.
    External(PagerId),
    /// Both: what a pager outside has is copied, and pages that are modified go to the swap store.
    Copy(PagerId),
}

/// The place of a page. Frame and slot may both be there: a clean copy is kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Entry {
    frame: u32,
    slot: u32,
}

impl Entry {
    const EMPTY: Entry = Entry {
        frame: NONE,
        slot: NONE,
    };

    pub(crate) fn frame(self) -> Option<FrameId> {
        (self.frame != NONE).then_some(FrameId(self.frame))
    }

    pub(crate) fn slot(self) -> Option<SlotId> {
        (self.slot != NONE).then_some(SlotId(self.slot))
    }
}

struct Leaf {
    entries: [Entry; LEAF as usize],
    used: u32,
}

pub(crate) struct Object {
    backing: Backing,
    /// The object that shows through where this one has nothing: an object, and this one's offset
    /// in it.
    shadow: Option<(ObjectId, u64)>,
    /// The number of pages of the shadowed object that can show through this one.
    pub(super) size: u64,
    /// The number of regions of each space that map it.
    regions: BTreeMap<SpaceId, u32>,
    /// The number of those that are windows, through which no program sees it.
    pub(super) windows: u32,
    /// The number of objects that shadow it.
    shadowers: u32,
    leaves: BTreeMap<u64, Box<Leaf>>,
}

impl Object {
    /// The part that keeps its contents.
    pub(crate) fn backing(&self) -> Backing {
        self.backing
    }

    /// The object that shows through where this one has nothing: an object, and this one's offset
    /// in it.
    pub(crate) fn shadow(&self) -> Option<(ObjectId, u64)> {
        self.shadow
    }

    /// The number of pages of the shadowed object that can show through this one.
    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    pub(crate) fn is_external(&self) -> bool {
        matches!(self.backing, Backing::External(_))
    }

    /// Returns true if a page that is neither in memory nor on the swap store is with a pager
    /// outside.
    pub(crate) fn has_pager(&self) -> bool {
        matches!(self.backing, Backing::External(_) | Backing::Copy(_))
    }

    /// Returns true if the contents of page `index`, where they are not in memory, are with a pager
    /// outside.
    pub(crate) fn is_outside(&self, index: u64) -> bool {
        match self.backing {
            Backing::Swap => false,
            Backing::External(_) => true,
            Backing::Copy(_) => self.entry(index).slot().is_none(),
        }
    }

    pub(crate) fn entry(&self, index: u64) -> Entry {
        match self.leaves.get(&(index / LEAF)) {
            Some(leaf) => leaf.entries[(index % LEAF) as usize],
            None => Entry::EMPTY,
        }
    }

    pub(super) fn set_frame(&mut self, index: u64, frame: Option<FrameId>) {
        self.update(index, |entry| {
            entry.frame = frame.map_or(NONE, |frame| frame.0)
        });
    }

    pub(super) fn set_slot(&mut self, index: u64, slot: Option<SlotId>) {
        self.update(index, |entry| entry.slot = slot.map_or(NONE, |slot| slot.0));
    }

    /// The entries in use with `first <= index < end`, in order.
    pub(crate) fn collect(&self, first: u64, end: u64) -> Vec<(u64, Entry)> {
        let mut found = Vec::new();
        if first >= end {
            return found;
        }
        for (&chunk, leaf) in self.leaves.range(first / LEAF..=(end - 1) / LEAF) {
            for (offset, &entry) in leaf.entries.iter().enumerate() {
                let index = chunk * LEAF + offset as u64;
                if entry != Entry::EMPTY && (first..end).contains(&index) {
                    found.push((index, entry));
                }
            }
        }
        found
    }

    /// Returns true if no other space and no other object can see this one's pages.
    pub(crate) fn is_exclusive(&self) -> bool {
        self.shadowers == 0 && self.regions.len() <= 1
    }

    /// Returns true if exactly one region maps it and nothing shadows it.
    pub(crate) fn has_one_region(&self) -> bool {
        self.shadowers == 0 && self.regions.values().sum::<u32>() == 1
    }

    /// Returns true if a program maps it, or a private copy of it.
    pub(crate) fn is_mapped(&self) -> bool {
        let spaces = self.regions.len() as u32;
        let is_held = || self.regions.values().sum::<u32>() > self.windows;
        self.shadowers > 0 || spaces > self.windows || is_held()
    }

    /// Returns true if it has neither a frame nor a slot for its page `index`.
    pub(crate) fn is_absent(&self, index: u64) -> bool {
        self.entry(index) == Entry::EMPTY
    }

    /// The number of regions that map it, and of objects that shadow it.
    pub(crate) fn holders(&self) -> (u32, u32) {
        (self.regions.values().sum(), self.shadowers)
    }

    fn has_holder(&self) -> bool {
        self.shadowers > 0 || !self.regions.is_empty()
    }

    fn update(&mut self, index: u64, change: impl FnOnce(&mut Entry)) {
        let chunk = index / LEAF;
        let blank = || {
            Box::new(Leaf {
                entries: [Entry::EMPTY; LEAF as usize],
                used: 0,
            })
        };
        let leaf = self.leaves.entry(chunk).or_insert_with(blank);
        let entry = &mut leaf.entries[(index % LEAF) as usize];
        let was_used = *entry != Entry::EMPTY;
        change(entry);
        let is_used = *entry != Entry::EMPTY;
        leaf.used = leaf.used + u32::from(is_used) - u32::from(was_used);
        if leaf.used == 0 {
            self.leaves.remove(&chunk);
        }
    }
}

/// All objects, by number.
pub(crate) struct Objects {
    table: Vec<Option<Object>>,
    spare: Vec<u32>,
}

impl Objects {
    pub(crate) fn new() -> Objects {
        Objects {
            table: Vec::new(),
            spare: Vec::new(),
        }
    }

    /// Makes an object without holders; the caller gives it one.
    pub(super) fn create(&mut self, backing: Backing) -> ObjectId {
        let object = Object {
            backing,
            shadow: None,
            size: u64::MAX,
            regions: BTreeMap::new(),
            windows: 0,
            shadowers: 0,
            leaves: BTreeMap::new(),
        };
        match self.spare.pop() {
            Some(number) => {
                self.table[number as usize] = Some(object);
                ObjectId(number)
            }
            None => {
                self.table.push(Some(object));
                ObjectId(self.table.len() as u32 - 1)
            }
        }
    }

    pub(super) fn hold(&mut self, id: ObjectId, space: SpaceId) {
        *self.get_mut(id).regions.entry(space).or_insert(0) += 1;
    }

    /// Takes one region of `space` from the holders. Says whether the object is unheld now.
    pub(super) fn let_go(&mut self, id: ObjectId, space: SpaceId) -> bool {
        let object = self.get_mut(id);
        let count = object
            .regions
            .get_mut(&space)
            .expect("a region holds its object");
        *count -= 1;
        if *count == 0 {
            object.regions.remove(&space);
        }
        !object.has_holder()
    }

    /// Makes `id` a shadow of `below`.
    pub(super) fn cast_shadow(&mut self, id: ObjectId, below: ObjectId, offset: u64) {
        self.get_mut(below).shadowers += 1;
        self.get_mut(id).shadow = Some((below, offset));
    }

    /// Ends `id`'s shadowing. Says which object it shadowed and whether that is unheld now.
    pub(super) fn end_shadow(&mut self, id: ObjectId) -> Option<(ObjectId, bool)> {
        let (below, _) = self.get_mut(id).shadow.take()?;
        let object = self.get_mut(below);
        object.shadowers -= 1;
        Some((below, !object.has_holder()))
    }

    /// Returns true if `id` is held by one object that shadows it, and by nothing else.
    pub(crate) fn has_one_shadow_only(&self, id: ObjectId) -> bool {
        let object = self.get(id);
        object.shadowers == 1 && object.regions.is_empty()
    }

    pub(super) fn destroy(&mut self, id: ObjectId) {
        let object = self.table[id.0 as usize]
            .take()
            .expect("an object is destroyed once");
        assert!(!object.has_holder() && object.leaves.is_empty() && object.shadow.is_none());
        self.spare.push(id.0);
    }

    pub(crate) fn get(&self, id: ObjectId) -> &Object {
        self.table[id.0 as usize]
            .as_ref()
            .expect("an object in use exists")
    }

    pub(super) fn get_mut(&mut self, id: ObjectId) -> &mut Object {
        self.table[id.0 as usize]
            .as_mut()
            .expect("an object in use exists")
    }

    /// The place of `page`; empty if its object is gone.
    pub(crate) fn entry(&self, page: PageId) -> Entry {
        match self.table.get(page.object.0 as usize) {
            Some(Some(object)) => object.entry(page.index),
            _ => Entry::EMPTY,
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (ObjectId, &Object)> {
        let numbered = self.table.iter().enumerate();
        numbered.filter_map(|(number, o)| Some((ObjectId(number as u32), o.as_ref()?)))
    }
}
