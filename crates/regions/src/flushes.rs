//! Flushes: see [`tidemark_live::flush`].

use std::sync::mpsc::SyncSender;

use tidemark_core::driver::Driver;
use tidemark_live::flush::Flush;

use crate::command::{FlushError, Span};
use crate::worker::{Worker, answer};

/// A flush that a thread waits for.
pub(crate) struct Awaited {
    span: Span,
    reply: SyncSender<Result<(), FlushError>>,
    /// The number of writes to its file that had failed before.
    failures: u64,
    flush: Flush,
}

impl Worker {
    /// Begins to write the modified pages of a part of a region.
    pub(crate) fn begin_flush(&mut self, span: Span, reply: SyncSender<Result<(), FlushError>>) {
        let Some(file) = self.files.iter().find(|file| file.has(span.at)) else {
            // It has been dropped by another thread, and written before.
            return answer(&reply, Ok(()));
        };
        self.flushes.push(Awaited {
            span,
            reply,
            failures: file.write_failures(),
            flush: Flush::new(span.range()),
        });
        self.go_on_flushing();
    }

    /// Writes more of the pages that flushes wait for, and answers flushes that are over.
    pub(crate) fn go_on_flushing(&mut self) {
        if self.flushes.is_empty() {
            return;
        }
        for mut awaited in std::mem::take(&mut self.flushes) {
            match self.go_on_with(&mut awaited) {
                Some(outcome) => answer(&awaited.reply, outcome),
                None => self.flushes.push(awaited),
            }
        }
    }

    /// The outcome of a flush, if it is over.
    fn go_on_with(&mut self, awaited: &mut Awaited) -> Option<Result<(), FlushError>> {
        let at = awaited.span.at;
        let find = |worker: &Worker| worker.files.iter().position(|file| file.has(at));
        let flush = &mut awaited.flush;
        while flush.look(self.now, (&mut self.vm, &mut self.machine), self.space) {
            self.conclude();
            flush.note_writes(find(self).and_then(|n| self.store.writes_of(self.files[n].pager)));
        }
        let Some(number) = find(self) else {
            return Some(Ok(()));
        };
        let writes = self.store.writes_of(self.files[number].pager);
        let held = flush.held(self.now, writes)?;
        let outcome = self.files[number].outcome(awaited.failures, held);
        if matches!(outcome, Err(FlushError::Held(_))) && flush.begin_again(self.now) {
            return None;
        }
        Some(outcome)
    }
}
