//! Flushes: what is modified of a file's pages is written while the engine goes on serving.
//!
//! # Invariants
//! 1. A flush is over when all of its range has been looked at since it began, and the writes that
//!    had begun by then are over.

use std::ops::Range;
use std::sync::mpsc::SyncSender;

use tidemark_core::driver::Driver;
use tidemark_core::id::Ticket;
use tidemark_core::time::Time;

use crate::command::{FlushError, Span};
use crate::worker::{Worker, answer};

/// The time after which pages that the kernel holds are looked at again.
const PAUSE_NS: u64 = 10_000_000;
/// The most pauses of a flush that waits for pages that the kernel holds.
const TRIES_MAX: u32 = 100;

/// A flush that is not over.
pub(crate) struct Flush {
    span: Span,
    reply: SyncSender<Result<(), FlushError>>,
    /// The number of writes to its file that had failed before.
    failures: u64,
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

impl Worker {
    /// Begins to write what is modified of a part of a region.
    pub(crate) fn begin_flush(&mut self, span: Span, reply: SyncSender<Result<(), FlushError>>) {
        let Some(file) = self.files.iter().find(|file| file.has(span.at)) else {
            // It has been dropped by another thread, and written before.
            return answer(&reply, Ok(()));
        };
        self.flushes.push(Flush {
            span,
            reply,
            failures: file.write_failures(),
            due: span.range(),
            held: 0,
            tries: 0,
            last: None,
            paused_to: self.now,
        });
        self.go_on_flushing();
    }

    /// Writes more of the pages that flushes wait for, and answers flushes that are over.
    pub(crate) fn go_on_flushing(&mut self) {
        if self.flushes.is_empty() {
            return;
        }
        for mut flush in std::mem::take(&mut self.flushes) {
            match self.go_on_with(&mut flush) {
                Some(outcome) => answer(&flush.reply, outcome),
                None => self.flushes.push(flush),
            }
        }
    }

    /// The outcome of a flush, if it is over.
    fn go_on_with(&mut self, flush: &mut Flush) -> Option<Result<(), FlushError>> {
        if self.now < flush.paused_to {
            return None;
        }
        let at = flush.span.at;
        let find = |worker: &Worker| worker.files.iter().position(|file| file.has(at));
        while !flush.due.is_empty() {
            let first = flush.due.start;
            let (vm, machine) = (&mut self.vm, &mut self.machine);
            flush.held += vm.handle_flush(self.now, machine, self.space, &mut flush.due);
            self.conclude();
            if flush.due.start == first {
                return None;
            }
            if flush.due.is_empty() {
                let writes = find(self).and_then(|n| self.store.writes_of(self.files[n].pager));
                flush.last = writes.map(|(_, last)| last);
            }
        }
        let Some(number) = find(self) else {
            return Some(Ok(()));
        };
        let first = self.store.writes_of(self.files[number].pager);
        let is_written = match (first, flush.last) {
            (Some((first, _)), Some(last)) => first > last,
            (Some(_) | None, None) | (None, Some(_)) => true,
        };
        if !is_written {
            return None;
        }
        let outcome = self.files[number].outcome(flush.failures, flush.held);
        if matches!(outcome, Err(FlushError::Held(_))) && flush.tries < TRIES_MAX {
            flush.tries += 1;
            (flush.held, flush.due) = (0, flush.span.range());
            flush.paused_to = self.now.after_ns(PAUSE_NS);
            return None;
        }
        Some(outcome)
    }
}
