//! Flushes: the modified pages of a part of a file are written while the engine goes on serving.
//!
//! # Invariants
//! 1. A flush is over when all of its range has been looked at since it began, and the writes that
//!    had begun by then are over.

use std::ops::Range;

use tidemark_core::id::{SpaceId, Ticket};
use tidemark_core::time::Time;
use tidemark_core::vm::Vm;

use crate::machine::LiveMachine;

/// The time after which pages that the kernel holds are looked at again.
const PAUSE_NS: u64 = 10_000_000;
/// The most pauses of a flush that waits for pages that the kernel holds.
const TRIES_MAX: u32 = 100;

/// A flush that is not over, of pages of one file.
#[derive(Debug)]
pub struct Flush {
    range: Range<u64>,
    /// The pages that have not been looked at.
    due: Range<u64>,
    /// The number of pages that the kernel held, and that of the tries before.
    held: u32,
    tries: u32,
    /// The last of the writes that it waits for, when nothing is due.
    last: Option<Ticket>,
    /// The time before which nothing is looked at.
    paused_to: Time,
}

impl Flush {
    /// A flush of these pages of a space, none of which have been looked at.
    pub fn new(range: Range<u64>) -> Flush {
        Flush {
            due: range.clone(),
            range,
            held: 0,
            tries: 0,
            last: None,
            paused_to: Time(0),
        }
    }

    /// The pages that it writes.
    pub fn range(&self) -> Range<u64> {
        self.range.clone()
    }

    /// Starts writing more modified pages. False if no page can be looked at for now. The writes
    /// that have begun are to be carried out, and [noted](Self::note_writes).
    pub fn look(
        &mut self,
        now: Time,
        (vm, machine): (&mut Vm, &mut LiveMachine),
        space: SpaceId,
    ) -> bool {
        if self.due.is_empty() || now < self.paused_to {
            return false;
        }
        let first = self.due.start;
        self.held += vm.handle_flush(now, machine, space, &mut self.due);
        self.due.start != first
    }

    /// Learns of the first and the last of its file's writes that are not over.
    pub fn note_writes(&mut self, writes: Option<(Ticket, Ticket)>) {
        if self.due.is_empty() {
            self.last = writes.map(|(_, last)| last);
        }
    }

    /// The number of pages that the kernel held, if it is over. `writes` are as above.
    pub fn held(&self, now: Time, writes: Option<(Ticket, Ticket)>) -> Option<u32> {
        let is_written = match (writes, self.last) {
            (Some((first, _)), Some(last)) => first > last,
            (Some(_) | None, None) | (None, Some(_)) => true,
        };
        let is_over = is_written && self.due.is_empty() && now >= self.paused_to;
        is_over.then_some(self.held)
    }

    /// Begins again after a pause, since the kernel held some pages. False if it has done so for
    /// long enough.
    pub fn begin_again(&mut self, now: Time) -> bool {
        if self.tries == TRIES_MAX {
            return false;
        }
        self.tries += 1;
        (self.held, self.due) = (0, self.range());
        self.paused_to = now.after_ns(PAUSE_NS);
        true
    }
}
