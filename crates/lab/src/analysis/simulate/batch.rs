//! Batches: policies where several objects are wanted at once.
//!
//! What is wanted and not there is a miss, and comes beside all that is there: the memory has room
//! for the visit beyond its own, as a machine computes on what it has just fetched. When the visit
//! is over, the policy names objects until the others fit. So nothing that a visit wants leaves
//! before its end, whatever the policy says, and a visit that wants more than the memory holds
//! leaves a part of it there (event-atomic replay: Zhang 2026). The time that policies see is in
//! wants, and all of a visit come at the time of its first.
//!
//! The parent module has the memory; this one lends it a frame for each object there is.

use rayon::prelude::*;
use tidemark_core::id::{FrameId, PageId};
use tidemark_core::policies::{BuildError, Visitor};
use tidemark_core::seams::policy::{Policy, Sees};

use super::{Job, Memory, NEVER, Run};
use crate::analysis::visits::Visits;

/// The wants that miss under the policy of `job` in each of these `rooms`, side by side: sums of
/// sizes, in the unit of the visits'. `ids` are those of the objects, and `job.frames` is of no
/// account.
///
/// A policy that counts frames gets the number of objects of the mean size that fit.
///
/// # Errors
/// If the policy or a knob is not known, or a knob's value is out of its range.
///
/// # Panics
/// If there are more or fewer ids than objects, or the policy names no frame though memory is
/// over-full.
pub fn count_batch_misses<'a>(
    job: &Job<'a>,
    visits: &Visits,
    ids: &[PageId],
    rooms: &[u64],
) -> Result<Vec<u64>, BuildError<'a>> {
    assert_eq!(ids.len(), visits.sizes().len());
    let next = visits.collect_next();
    let count = u32::try_from(ids.len().max(1)).expect("objects have numbers of 32 bits");
    let misses = rooms.par_iter().map(|&room| {
        let fitting = u128::from(room) * u128::from(count) / u128::from(visits.whole().max(1));
        let frames = fitting.clamp(1, u128::from(count)) as u32;
        let batch = Batch {
            memory: Run {
                frames: count,
                eyes: job.eyes,
                pages: &[],
                ids,
                departures: &[],
            },
            visits,
            next: &next,
            room,
        };
        tidemark_plugin::visit(job.policy, count, frames, job.seed, &job.knobs, batch)
    });
    misses.collect()
}

/// A job, but for its policy.
struct Batch<'a> {
    /// The memory: a frame for each object.
    memory: Run<'a>,
    visits: &'a Visits,
    /// The place of the next want of the object of each want.
    next: &'a [u64],
    /// The room between visits.
    room: u64,
}

impl Visitor for Batch<'_> {
    type Output = u64;

    fn visit<P: Policy + 'static>(self, policy: P) -> u64 {
        let sees = policy.describe().sees;
        let sizes = self.visits.sizes();
        let mut memory = Memory::new(policy, &self.memory);
        let mut held = 0;
        for (from, wanted) in self.visits.iter() {
            memory.ticks = from as u64 + 1;
            for (&object, &next) in wanted.iter().zip(&self.next[from..]) {
                held += memory.want(object, sees, sizes);
                if sees == Sees::Future {
                    let frame = FrameId(memory.frame_of[object as usize]);
                    memory.policy.page_foreseen(frame, next);
                }
            }
            held = memory.end_visit(wanted, held, self.room, sizes);
        }
        memory.policy.check();
        memory.cost.misses
    }
}

impl<P: Policy> Memory<'_, P> {
    /// Has `object` used, or brought. Tells the size of what came.
    fn want(&mut self, object: u32, sees: Sees, sizes: &[u64]) -> u64 {
        self.pass_clock();
        let frame = self.frame_of[object as usize];
        if frame >= NEVER {
            self.bring(object);
            return sizes[object as usize];
        }
        if !self.translation.refer(FrameId(frame)) {
            self.map_again(FrameId(frame));
        }
        if sees >= Sees::References {
            self.policy.page_referenced(FrameId(frame));
        }
        0
    }

    /// Has objects leave until what is held, `held` together, fits into `room`; then whatever else
    /// the policy wants to be rid of. Tells what is held then.
    fn end_visit(&mut self, wanted: &[u32], mut held: u64, room: u64, sizes: &[u64]) -> u64 {
        // An object larger than the memory passes through, and drives nothing out.
        for &object in wanted {
            if sizes[object as usize] > room {
                held -= self.let_go(FrameId(self.frame_of[object as usize]), sizes);
            }
        }
        while held > room {
            let frame = self.choose_victim();
            held -= self.let_go(frame, sizes);
        }
        while let Some(frame) = self.ask(None, P::trim) {
            held -= self.let_go(frame, sizes);
        }
        self.clean(None);
        held
    }

    /// Has the object in `frame` leave. Tells its size.
    fn let_go(&mut self, frame: FrameId, sizes: &[u64]) -> u64 {
        let object = self.held[frame.index()].page;
        self.set_free(frame);
        sizes[object as usize]
    }
}

#[cfg(test)]
mod tests;
