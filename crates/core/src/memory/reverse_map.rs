//! The reverse map: from a frame to the places where programs may reach it.
//!
//! A single mapping is stored directly in the frame's entry, one word; only a page that several
//! programs share gets a chain, or one whose numbers need more bits. (Linux 2.5.4x
//! `mm/rmap.c`, the direct-pointer optimisation: without it, reverse maps were feared to triple the
//! memory of page tables.) The memory of chains is counted.
//!
//! An entry says where a frame *may* be mapped: the machine, or a policy that unmapped a page to
//! see whether it is used, is free to have removed the translation itself.
//!
//! For policies that walk the page tables of programs in the order of addresses, as kernels
//! without a reverse map did, the same entries are kept in that order too, apart from those that
//! such a policy has removed: the *standing* ones. Other policies do not pay for them.

use alloc::vec::Vec;

use crate::collections::column::Column;
use crate::id::{FrameId, SpaceId, VirtPage};
pub use crate::memory::page_tables::Mapping;
use crate::memory::page_tables::Standing;

const NONE: u32 = u32::MAX;

/// Bits of a packed entry for the page of a direct mapping, and for its space behind them.
const PAGE_BITS: u32 = 51;
const SPACE_BITS: u32 = 12;
/// The highest bit of a packed entry says that a chain begins there.
const IS_CHAIN: u64 = 1 << 63;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Head {
    Unmapped,
    Direct(SpaceId, VirtPage),
    Chain(u32),
}

/// A head in one word: there is one for each frame.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Packed(u64);

impl Packed {
    const UNMAPPED: Packed = Packed(u64::MAX);

    /// The packed head, unless it is a direct mapping whose numbers are too large.
    fn pack(head: Head) -> Option<Packed> {
        match head {
            Head::Unmapped => Some(Packed::UNMAPPED),
            Head::Direct(space, at) => {
                let fits = space.0 < 1 << SPACE_BITS && at.0 < 1 << PAGE_BITS;
                fits.then_some(Packed(u64::from(space.0) << PAGE_BITS | at.0))
            }
            Head::Chain(first) => Some(Packed(IS_CHAIN | u64::from(first))),
        }
    }

    fn unpack(self) -> Head {
        if self == Packed::UNMAPPED {
            Head::Unmapped
        } else if self.0 & IS_CHAIN != 0 {
            Head::Chain(self.0 as u32)
        } else {
            let page = self.0 & ((1 << PAGE_BITS) - 1);
            Head::Direct(SpaceId((self.0 >> PAGE_BITS) as u32), VirtPage(page))
        }
    }
}

#[derive(Clone, Copy)]
struct Link {
    space: SpaceId,
    at: VirtPage,
    next: u32,
}

/// The mappings of each frame.
pub struct ReverseMap {
    heads: Column<Packed>,
    links: Vec<Link>,
    spare: u32,
    links_used: u32,
    links_used_max: u32,
    standing: Option<Standing>,
}

impl ReverseMap {
    /// An empty map for `frames` frames.
    pub fn new(frames: usize) -> ReverseMap {
        let heads = Column::new(Packed::UNMAPPED, frames);
        ReverseMap {
            heads,
            links: Vec::new(),
            spare: NONE,
            links_used: 0,
            links_used_max: 0,
            standing: None,
        }
    }

    /// Keeps the mappings in the order of addresses too, from now on. Needs an empty map.
    pub fn keep_standing(&mut self) {
        assert!(self.heads.iter().all(|&head| head == Packed::UNMAPPED));
        self.standing = Some(Standing::new(self.heads.len()));
    }

    /// Adds a mapping, if it is not there yet.
    pub fn insert(&mut self, frame: FrameId, space: SpaceId, at: VirtPage) {
        if let Some(standing) = &mut self.standing {
            standing.insert(frame, space, at);
        }
        match self.head(frame) {
            Head::Unmapped => self.set_head(frame, Head::Direct(space, at)),
            Head::Direct(other, place) if (other, place) == (space, at) => {}
            Head::Direct(other, place) => {
                let tail = self.take_link(other, place, NONE);
                let chain = Head::Chain(self.take_link(space, at, tail));
                self.set_head(frame, chain);
            }
            Head::Chain(first) => {
                if !self.iter(frame).any(|mapping| mapping == (space, at)) {
                    let chain = Head::Chain(self.take_link(space, at, first));
                    self.set_head(frame, chain);
                }
            }
        }
    }

    /// Removes one mapping. Says whether it was there.
    pub fn remove(&mut self, frame: FrameId, space: SpaceId, at: VirtPage) -> bool {
        self.fell(frame, space, at);
        match self.head(frame) {
            Head::Direct(other, place) if (other, place) == (space, at) => {
                self.set_head(frame, Head::Unmapped);
                true
            }
            Head::Unmapped | Head::Direct(..) => false,
            Head::Chain(first) => self.remove_link(frame, first, space, at),
        }
    }

    /// Forgets all mappings of `frame`.
    pub fn clear(&mut self, frame: FrameId) {
        // Before its page leaves a policy has mostly taken down what stood.
        if self.is_standing(frame)
            && let Some(mut standing) = self.standing.take()
        {
            for (space, at) in self.iter(frame) {
                standing.remove(frame, space, at);
            }
            self.standing = Some(standing);
        }
        if let Head::Chain(first) = self.head(frame) {
            let mut at = first;
            while at != NONE {
                let next = self.links[at as usize].next;
                self.give_link(at);
                at = next;
            }
        }
        self.set_head(frame, Head::Unmapped);
    }

    /// Takes one mapping from those that stand: a policy has removed it, and the next touch enters
    /// it again.
    pub fn fell(&mut self, frame: FrameId, space: SpaceId, at: VirtPage) {
        if let Some(standing) = &mut self.standing {
            standing.remove(frame, space, at);
        }
    }

    /// The first standing mapping behind `after`, in order of space and address; the first of all
    /// if there is no `after`. `None` if none is left, or they are not kept.
    pub fn next_standing(&mut self, after: Option<(SpaceId, VirtPage)>) -> Option<Mapping> {
        self.standing.as_mut()?.next(after)
    }

    /// Returns true if a mapping of `frame` stands; none does if they are not kept.
    pub fn is_standing(&self, frame: FrameId) -> bool {
        let standing = self.standing.as_ref();
        standing.is_some_and(|standing| standing.is_mapped(frame))
    }

    /// The places where `frame` may be mapped.
    pub fn iter(&self, frame: FrameId) -> impl Iterator<Item = (SpaceId, VirtPage)> + '_ {
        let (direct, mut at) = match self.head(frame) {
            Head::Unmapped => (None, NONE),
            Head::Direct(space, place) => (Some((space, place)), NONE),
            Head::Chain(first) => (None, first),
        };
        let chain = core::iter::from_fn(move || {
            let link = self.links.get(at as usize)?;
            at = link.next;
            Some((link.space, link.at))
        });
        direct.into_iter().chain(chain)
    }

    /// Bytes that chains hold now, and have held at most.
    pub fn chain_bytes(&self) -> (u64, u64) {
        let each = size_of::<Link>() as u64;
        (
            u64::from(self.links_used) * each,
            u64::from(self.links_used_max) * each,
        )
    }

    fn remove_link(&mut self, frame: FrameId, first: u32, space: SpaceId, at: VirtPage) -> bool {
        let (mut before, mut here) = (NONE, first);
        while here != NONE {
            let link = self.links[here as usize];
            if (link.space, link.at) == (space, at) {
                match before {
                    NONE => self.set_head(frame, Head::Chain(link.next)),
                    before => self.links[before as usize].next = link.next,
                }
                self.give_link(here);
                self.shorten(frame);
                return true;
            }
            (before, here) = (here, link.next);
        }
        false
    }

    /// Turns a chain of one back into a direct entry.
    fn shorten(&mut self, frame: FrameId) {
        let Head::Chain(first) = self.head(frame) else {
            return;
        };
        if first == NONE {
            self.set_head(frame, Head::Unmapped);
        } else if self.links[first as usize].next == NONE {
            let Link { space, at, .. } = self.links[first as usize];
            self.give_link(first);
            self.set_head(frame, Head::Direct(space, at));
        }
    }

    fn head(&self, frame: FrameId) -> Head {
        self.heads[frame.index()].unpack()
    }

    fn set_head(&mut self, frame: FrameId, head: Head) {
        let packed = Packed::pack(head).unwrap_or_else(|| {
            let Head::Direct(space, at) = head else {
                unreachable!("a chain's number fits");
            };
            Packed(IS_CHAIN | u64::from(self.take_link(space, at, NONE)))
        });
        self.heads[frame.index()] = packed;
    }

    fn take_link(&mut self, space: SpaceId, at: VirtPage, next: u32) -> u32 {
        self.links_used += 1;
        self.links_used_max = self.links_used_max.max(self.links_used);
        let link = Link { space, at, next };
        if self.spare == NONE {
            self.links.push(link);
            return self.links.len() as u32 - 1;
        }
        let found = self.spare;
        self.spare = self.links[found as usize].next;
        self.links[found as usize] = link;
        found
    }

    fn give_link(&mut self, link: u32) {
        self.links[link as usize].next = self.spare;
        self.spare = link;
        self.links_used -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mapping_of_any_number_is_found_and_removed() {
        let mut map = ReverseMap::new(1);
        let frame = FrameId(0);
        for space in [0, 1, (1 << SPACE_BITS) - 1, 1 << SPACE_BITS, u32::MAX] {
            for at in [0, (1 << PAGE_BITS) - 1, 1 << PAGE_BITS, u64::MAX] {
                let place = (SpaceId(space), VirtPage(at));
                map.insert(frame, place.0, place.1);
                assert_eq!(map.iter(frame).collect::<Vec<_>>(), [place]);
                map.insert(frame, SpaceId(7), VirtPage(7));
                assert_eq!(map.iter(frame).count(), 2);
                assert!(map.remove(frame, SpaceId(7), VirtPage(7)));
                assert!(map.remove(frame, place.0, place.1));
                assert_eq!((map.iter(frame).count(), map.chain_bytes().0), (0, 0));
            }
        }
    }

    #[test]
    fn a_chain_grows_from_a_direct_entry_and_shrinks_back() {
        let mut map = ReverseMap::new(1);
        let frame = FrameId(0);
        for space in 0..3 {
            map.insert(frame, SpaceId(space), VirtPage(9));
            map.insert(frame, SpaceId(space), VirtPage(9));
        }
        assert_eq!(map.iter(frame).count(), 3);
        assert!(map.chain_bytes().0 > 0);
        assert!(map.remove(frame, SpaceId(1), VirtPage(9)));
        assert!(map.remove(frame, SpaceId(0), VirtPage(9)));
        assert!(!map.remove(frame, SpaceId(0), VirtPage(9)));
        assert_eq!(map.chain_bytes().0, 0);
        assert_eq!(map.iter(frame).next(), Some((SpaceId(2), VirtPage(9))));
        map.clear(frame);
        assert_eq!(map.iter(frame).count(), 0);
    }

    #[test]
    fn standing_mappings_come_in_the_order_of_addresses_until_they_fall() {
        let mut map = ReverseMap::new(2);
        map.keep_standing();
        for (frame, space, at) in [(0, 1, 5), (1, 0, 9), (0, 0, 7)] {
            map.insert(FrameId(frame), SpaceId(space), VirtPage(at));
        }
        let walk = |map: &mut ReverseMap| {
            let mut places = Vec::new();
            let mut after = None;
            while let Some(Mapping { space, at, frame }) = map.next_standing(after) {
                places.push((space.0, at.0, frame.0));
                after = Some((space, at));
            }
            places
        };
        assert_eq!(walk(&mut map), [(0, 7, 0), (0, 9, 1), (1, 5, 0)]);
        map.fell(FrameId(0), SpaceId(0), VirtPage(7));
        assert!(map.is_standing(FrameId(0)));
        assert_eq!(walk(&mut map), [(0, 9, 1), (1, 5, 0)]);
        // It may be mapped there all the same, and a touch makes it stand again.
        assert_eq!(map.iter(FrameId(0)).count(), 2);
        map.insert(FrameId(0), SpaceId(0), VirtPage(7));
        assert_eq!(walk(&mut map), [(0, 7, 0), (0, 9, 1), (1, 5, 0)]);
        map.clear(FrameId(0));
        assert_eq!(walk(&mut map), [(0, 9, 1)]);
        map.remove(FrameId(1), SpaceId(0), VirtPage(9));
        assert_eq!(map.next_standing(None), None);
        assert!(!map.is_standing(FrameId(1)));
    }
}
