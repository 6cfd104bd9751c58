//! A room: frames for all, several programs with separate clocks, and a policy that is asked what
//! to give up without need.
//!
//! Where [`cache`](crate::cache) shows how often a policy misses in a memory that is full, this
//! shows how much memory it takes when there is enough. Writes take no time.

use std::collections::{BTreeMap, BTreeSet};

use tidemark_core::id::{FrameId, ObjectId, PageId, SpaceId};
use tidemark_core::memory::frame::{Frames, State};
use tidemark_core::seams::policy::{Arrival, Cause, Departure, Policy, Probe};
use tidemark_core::time::Time;

use crate::cache::Touch;
use crate::opt::collect_next_uses;
use crate::sampled::{MachineKind, Sampled};

/// A page of a program: its object has the number of the space.
pub type Name = (SpaceId, u64);

/// The cost of a trace.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Cost {
    /// References to pages that were not resident, the first to each included.
    pub faults: u64,
    /// The resident pages after each reference, added up.
    pub page_time: u128,
}

/// Runs `trace` with a tick a reference, each of which is shown to the policy, with its future.
/// Before each the policy gives up what it no longer wants.
pub fn replay_exactly(policy: Box<dyn Policy>, frames: u32, trace: &[u64]) -> Cost {
    let mut room = Room::new(policy, frames, MachineKind::Bits);
    let mut cost = Cost::default();
    let space = SpaceId(0);
    for (at, next) in collect_next_uses(trace).into_iter().enumerate() {
        room.clock(space, at as u64);
        room.trim();
        let touch = room.touch(space, trace[at]);
        let frame = room.frame_of(space, trace[at]).expect("just used");
        room.policy.page_referenced(frame);
        room.policy.page_foreseen(frame, next);
        cost.faults += u64::from(touch == Touch::Hard);
        cost.page_time += room.resident.len() as u128;
    }
    room.policy.check();
    cost
}

/// A memory with several programs in it.
pub struct Room {
    /// The policy that decides.
    pub policy: Box<dyn Policy>,
    frames: Frames,
    machine: Sampled,
    free: Vec<u32>,
    pages: Vec<Option<Name>>,
    resident: BTreeMap<Name, FrameId>,
    seen: BTreeSet<Name>,
    now: Time,
    questions: u64,
    cleaned: Vec<Name>,
}

impl Room {
    /// Makes an empty memory of `frames` frames.
    pub fn new(policy: Box<dyn Policy>, frames: u32, kind: MachineKind) -> Room {
        Room {
            policy,
            frames: Frames::new(frames, frames),
            machine: Sampled::new(kind, frames),
            free: (0..frames).rev().collect(),
            pages: vec![None; frames as usize],
            resident: BTreeMap::new(),
            seen: BTreeSet::new(),
            now: Time(0),
            questions: 0,
            cleaned: Vec::new(),
        }
    }

    /// Sets the time of the programs in `space`.
    pub fn clock(&mut self, space: SpaceId, ticks: u64) {
        self.policy.clock_moved(space, ticks);
    }

    /// Reads a page. If memory is full, the policy makes room. What faulted is followed by a
    /// trimming that spares the page.
    pub fn touch(&mut self, space: SpaceId, page: u64) -> Touch {
        let name = (space, page);
        let touch = match self.resident.get(&name) {
            Some(&frame) => {
                let was_mapped = self.machine.refer(frame);
                if was_mapped {
                    return Touch::Hit;
                }
                self.policy.page_rescued(frame);
                Touch::Soft
            }
            None => {
                if self.free.is_empty() {
                    self.evict()
                        .expect("a full memory holds a page that may leave");
                }
                let is_first = self.seen.insert(name);
                let cause = match is_first {
                    true => Cause::ZeroFill,
                    false => Cause::Fetched,
                };
                self.load(name, cause);
                Touch::Hard
            }
        };
        let frame = self.resident[&name];
        self.frames.force(frame, State::Resident, true);
        self.trim();
        self.frames.force(frame, State::Resident, false);
        touch
    }

    /// Writes to a page.
    pub fn write(&mut self, space: SpaceId, page: u64) -> Touch {
        let touch = self.touch(space, page);
        let frame = self.resident[&(space, page)];
        self.machine.modify(frame);
        touch
    }

    /// Lets the policy give up what it no longer wants, and write what it wants clean. Answers what
    /// left.
    pub fn trim(&mut self) -> Vec<Name> {
        let mut left = Vec::new();
        while let Some(frame) = self.ask(|policy, probe| policy.trim(probe)) {
            left.push(self.drop_frame(frame));
        }
        let (mut unclean, mut written) = (Vec::new(), Vec::new());
        while let Some(frame) = self.ask(|policy, probe| policy.clean(probe)) {
            unclean.push(self.drop_frame(frame));
            self.frames.force(frame, State::Leaving, false);
            self.frames.force_cleaning(frame, true);
            written.push(frame);
        }
        // They come back to the same frames, in another order.
        for frame in written {
            self.frames.force_cleaning(frame, false);
        }
        // What is written together is written in order.
        unclean.sort_unstable();
        // To check takes as long as there are pages, and most references move none.
        let has_moved = !left.is_empty() || !unclean.is_empty();
        for name in unclean {
            self.cleaned.push(name);
            self.load(name, Cause::Cleaned);
        }
        if has_moved {
            self.policy.check();
        }
        left
    }

    /// Lets `ns` nanoseconds pass.
    pub fn tick(&mut self, ns: u64) {
        self.now = self.now.after_ns(ns);
        self.ask(|policy, probe| {
            policy.tick(probe);
            None
        });
        self.trim();
    }

    /// Asks the policy for a frame, and throws its page out.
    pub fn evict(&mut self) -> Option<Name> {
        let frame = self.ask(|policy, probe| policy.choose(probe))?;
        assert!(self.frames.may_leave(frame), "{frame:?} may not leave");
        Some(self.drop_frame(frame))
    }

    /// Hands over what was written since this was last asked.
    pub fn take_cleaned(&mut self) -> Vec<Name> {
        std::mem::take(&mut self.cleaned)
    }

    /// The frame of a page, if it is resident.
    pub fn frame_of(&self, space: SpaceId, page: u64) -> Option<FrameId> {
        self.resident.get(&(space, page)).copied()
    }

    /// The resident pages of `space`, in order.
    pub fn collect_resident(&self, space: SpaceId) -> Vec<u64> {
        let names = self.resident.keys();
        names.filter(|it| it.0 == space).map(|it| it.1).collect()
    }

    fn load(&mut self, name: Name, cause: Cause) {
        let frame = FrameId(self.free.pop().expect("a frame is free"));
        self.pages[frame.index()] = Some(name);
        self.resident.insert(name, frame);
        self.machine.bring(frame, cause != Cause::Cleaned, false);
        self.frames.force(frame, State::Resident, false);
        let arrival = Arrival {
            page: page_id(name),
            cause,
            space: name.0,
            is_external: false,
        };
        self.policy.page_entered(frame, &arrival);
    }

    fn drop_frame(&mut self, frame: FrameId) -> Name {
        let name = self.pages[frame.index()].take().expect("a page is there");
        self.resident.remove(&name);
        self.frames.force(frame, State::Free, false);
        self.machine.part(frame);
        self.free.push(frame.0);
        self.policy
            .page_left(frame, page_id(name), Departure::Evicted);
        name
    }

    fn ask(
        &mut self,
        ask: fn(&mut dyn Policy, &mut Probe<'_>) -> Option<FrameId>,
    ) -> Option<FrameId> {
        let mut probe = Probe::new(
            self.now,
            &mut self.frames,
            &mut self.machine,
            &mut self.questions,
            0,
        );
        ask(&mut *self.policy, &mut probe)
    }
}

fn page_id(name: Name) -> PageId {
    PageId {
        object: ObjectId(name.0.0),
        index: name.1,
    }
}
