//! Sets: the resident pages of each space, each in an order of the policy's choosing.
//!
//! A list a space, and in front of them any number of lists that belong to no space. Lists are
//! added as spaces appear.

use alloc::vec::Vec;

use crate::collections::queue::Queues;
use crate::id::{FrameId, SpaceId};
use crate::seams::probe::Probe;

/// A list of frames a space, and some others.
pub(crate) struct Sets {
    queues: Queues<u32>,
    others: u32,
}

impl Sets {
    /// Makes `others` lists of no space, and none yet of any.
    pub fn new(others: u32, frames_max: u32) -> Sets {
        Sets {
            queues: Queues::new(others, frames_max),
            others,
        }
    }

    /// Puts `frame` behind all others of `space`, wherever it was.
    pub fn push(&mut self, space: SpaceId, frame: FrameId) {
        let list = self.others + space.0;
        self.queues.add_list(list);
        self.queues.move_to_back(list, frame.0);
    }

    /// Puts `frame` behind all on the list `other` of no space, wherever it was.
    pub fn push_other(&mut self, other: u32, frame: FrameId) {
        assert!(other < self.others);
        self.queues.move_to_back(other, frame.0);
    }

    /// Puts `frame` behind all others of its list.
    pub fn move_to_back(&mut self, frame: FrameId) {
        if let Some(list) = self.queues.list_of(frame.0) {
            self.queues.move_to_back(list, frame.0);
        }
    }

    /// Puts the first `count` of `space` behind all others of it, in their order. Takes a step for
    /// each of the others.
    pub fn turn(&mut self, space: SpaceId, count: u32) {
        let list = self.others + space.0;
        let mut first = None;
        for _ in count..self.length(space) {
            first = match first {
                None => self.queues.back(list),
                Some(member) => self.queues.previous(member),
            };
        }
        if let Some(member) = first {
            self.queues.turn_to(member);
        }
    }

    /// Takes `frame` off its list.
    pub fn remove(&mut self, frame: FrameId) {
        self.queues.remove(frame.0);
    }

    /// The space on whose list `frame` is.
    pub fn space_of(&self, frame: FrameId) -> Option<SpaceId> {
        let list = self.queues.list_of(frame.0)?;
        list.checked_sub(self.others).map(SpaceId)
    }

    /// The list of no space on which `frame` is.
    pub fn other_of(&self, frame: FrameId) -> Option<u32> {
        let list = self.queues.list_of(frame.0)?;
        (list < self.others).then_some(list)
    }

    /// Every space that has ever had a page.
    pub fn spaces(&self) -> impl Iterator<Item = SpaceId> + use<> {
        (0..self.queues.lists() as u32 - self.others).map(SpaceId)
    }

    /// The number of pages `space` has.
    pub fn length(&self, space: SpaceId) -> u32 {
        let list = self.others + space.0;
        if (list as usize) < self.queues.lists() {
            self.queues.length(list)
        } else {
            0
        }
    }

    /// The number of pages on the list `other` of no space.
    pub fn length_other(&self, other: u32) -> u32 {
        self.queues.length(other)
    }

    /// The number of pages the spaces have in all.
    pub fn resident(&self) -> u32 {
        self.spaces().map(|space| self.length(space)).sum()
    }

    /// The spaces that have pages, the one with the most first; of several alike, in order.
    pub fn collect_largest_first(&self) -> Vec<SpaceId> {
        let spaces = self.spaces().filter(|&space| self.length(space) > 0);
        let mut spaces: Vec<SpaceId> = spaces.collect();
        spaces.sort_by_key(|&space| core::cmp::Reverse(self.length(space)));
        spaces
    }

    /// The first of `space` that may leave, among its first `looks`.
    pub fn front(&self, space: SpaceId, looks: usize, probe: &Probe<'_>) -> Option<FrameId> {
        self.find(self.others + space.0, looks, probe)
    }

    /// The first that may leave on the list `other` of no space.
    pub fn front_other(&self, other: u32, probe: &Probe<'_>) -> Option<FrameId> {
        self.find(other, usize::MAX, probe)
    }

    /// The pages of `space`, in order.
    pub fn iter(&self, space: SpaceId) -> impl Iterator<Item = FrameId> + '_ {
        let list = self.others + space.0;
        let is_there = (list as usize) < self.queues.lists();
        let frames = is_there.then(|| self.queues.iter(list));
        frames.into_iter().flatten().map(FrameId)
    }

    /// The first of `space`, whether it may leave or not.
    pub fn first(&self, space: SpaceId) -> Option<FrameId> {
        self.iter(space).next()
    }

    /// The member behind `frame` on its list.
    pub fn next(&self, frame: FrameId) -> Option<FrameId> {
        self.queues.next(frame.0).map(FrameId)
    }

    /// The first on the list `other` of no space, whether it may leave or not.
    pub fn front_of(&self, other: u32) -> Option<FrameId> {
        self.queues.front(other).map(FrameId)
    }

    /// Panics if the lists contradict each other.
    pub fn check(&self) {
        self.queues.check();
    }

    fn find(&self, list: u32, looks: usize, probe: &Probe<'_>) -> Option<FrameId> {
        let frames = self.queues.iter(list).map(FrameId);
        frames.take(looks).find(|&frame| probe.may_leave(frame))
    }
}
