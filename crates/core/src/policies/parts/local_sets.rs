//! Local sets over a common cache: what VMS and Windows NT share.
//!
//! Each space has a set of its own, and what leaves it keeps its frame for a while: unmodified
//! pages on a list of pages as good as free, modified ones on a list of those to be written, from
//! which they go to the former. A touch of a page on either list is a soft fault that brings it
//! back to its set. So a first in, first out order in each set is enough, and no page has to be
//! asked whether it was used.
//!
//! # Invariants
//! 1. Pages in sets may be mapped; those on the other lists were unmapped, or written.
//! 2. A page is on the removed list only until the event after the one that unmapped it.

use crate::collections::column::Column;
use crate::id::{FrameId, SpaceId};
use crate::policies::parts::per_space::Sets;
use crate::seams::policy::{Arrival, Cause, Probe};

/// Pages as good as free, to be taken from the front.
const FREE: u32 = 0;
/// Pages to be written.
const MODIFIED: u32 = 1;
/// Pages unmapped so lately that it is not known whether they are modified.
const REMOVED: u32 = 2;
const OTHERS: u32 = 3;

/// Sets, and the pages that have left them.
pub(crate) struct Local {
    /// The pages of each space, oldest first.
    pub sets: Sets,
    owners: Column<SpaceId>,
    frames: u32,
    is_writing: bool,
}

impl Local {
    /// Nothing is resident; there are `frames` frames, and there may be `frames_max`.
    pub fn new(frames_max: u32, frames: u32) -> Local {
        Local {
            sets: Sets::new(OTHERS, frames_max),
            owners: Column::new(SpaceId(0), frames_max as usize),
            frames,
            is_writing: false,
        }
    }

    /// Learns that memory now has `frames` frames.
    pub fn resize(&mut self, frames: u32) {
        self.frames = frames;
    }

    /// Puts a page that has come where it belongs. Answers whether a program has faulted for it.
    pub fn enter(&mut self, frame: FrameId, arrival: &Arrival) -> bool {
        self.owners[frame.index()] = arrival.space;
        match arrival.cause {
            Cause::Cleaned => {
                self.sets.push_other(FREE, frame);
                return false;
            }
            Cause::ZeroFill
            | Cause::ZeroAhead
            | Cause::Fetched
            | Cause::Prefetched
            | Cause::Copied
            | Cause::Adopted
            | Cause::Kept => self.sets.push(arrival.space, frame),
        }
        matches!(
            arrival.cause,
            Cause::ZeroFill | Cause::Fetched | Cause::Copied
        )
    }

    /// Takes a page that was touched back to its set, if it had left that. Answers whether it had.
    pub fn rescue(&mut self, frame: FrameId) -> bool {
        let had_left = self.sets.other_of(frame).is_some();
        if had_left {
            self.sets.push(self.owners[frame.index()], frame);
        }
        had_left
    }

    /// The space whose page is in `frame`.
    pub fn owner(&self, frame: FrameId) -> SpaceId {
        self.owners[frame.index()]
    }

    /// Removes a page from its set: it stays in memory, unmapped.
    pub fn remove(&mut self, frame: FrameId, probe: &mut Probe<'_>) {
        probe.unmap(frame);
        self.sets.push_other(REMOVED, frame);
    }

    /// Sorts the pages that earlier events have removed by whether they must be written.
    pub fn judge(&mut self, probe: &mut Probe<'_>) {
        for _ in 0..self.sets.length_other(REMOVED) {
            let Some(frame) = self.sets.front_of(REMOVED) else {
                return;
            };
            // Of a held page it is not known: that shows when it is written.
            let is_free = probe.is_modified(frame) == Some(false);
            let list = if is_free { FREE } else { MODIFIED };
            self.sets.push_other(list, frame);
        }
    }

    /// The next page to leave, of those that have left their sets.
    pub fn choose(&self, probe: &Probe<'_>) -> Option<FrameId> {
        let lists = [FREE, MODIFIED, REMOVED];
        lists
            .into_iter()
            .find_map(|list| self.sets.front_other(list, probe))
    }

    /// The next page to be written: when `high` are modified, until `low` are.
    pub fn clean(&mut self, high: u32, low: u32, probe: &Probe<'_>) -> Option<FrameId> {
        let modified = self.sets.length_other(MODIFIED);
        self.is_writing = modified >= high.max(1) || (self.is_writing && modified > low);
        if self.is_writing {
            self.sets.front_other(MODIFIED, probe)
        } else {
            None
        }
    }

    /// The number of frames that hold nothing that a set or the store needs.
    pub fn free(&self) -> u32 {
        let held = self.sets.resident()
            + self.sets.length_other(MODIFIED)
            + self.sets.length_other(REMOVED);
        self.frames.saturating_sub(held)
    }

    /// The number of pages that have been removed from their sets, and not judged yet.
    pub fn removed(&self) -> u32 {
        self.sets.length_other(REMOVED)
    }

    /// The number of pages that wait to be taken, without a write.
    pub fn spare(&self) -> u32 {
        self.sets.length_other(FREE)
    }

    /// This many thousandths of the frames.
    pub fn share(&self, permille: u64) -> u32 {
        (u64::from(self.frames) * permille / 1000) as u32
    }

    /// Panics if the lists contradict each other.
    pub fn check(&self) {
        self.sets.check();
        for space in self.sets.spaces() {
            let is_owned = |frame: FrameId| self.owners[frame.index()] == space;
            assert!(self.sets.iter(space).all(is_owned));
        }
    }
}
