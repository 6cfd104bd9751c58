//! Engines that leave: with their programs, as they should, or without.

use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use tidemark_live::shared::{Counter, ProcessIndex};

use super::{Member, Tree, is_over};
use crate::{connection, swap};

/// The time for which an engine may write nothing that writes what its program has left.
const WRITING_LIMIT: Duration = Duration::from_secs(60);

impl Tree {
    /// Waits until engines have written what programs that have ended have left of mapped files.
    pub fn await_files(&mut self) {
        let mut last = (0, Instant::now());
        while let Some(written) = self.count_written() {
            if written != last.0 {
                last = (written, Instant::now());
            } else if last.1.elapsed() > WRITING_LIMIT {
                let note = "what was changed of mapped files is still being written".into();
                return self.notes.push(note);
            }
            self.wait();
        }
    }

    /// The number of pages that have been written by such engines. `None` if there are none.
    fn count_written(&self) -> Option<u64> {
        let count = |member: &Member, counter| {
            let process = member.record.map(|index| self.shared.process(index));
            process.map_or(0, |process| process.counter(counter).load(Relaxed))
        };
        let writes = |member: &&Member| {
            let has_ended = member.peer.life.as_ref().is_some_and(is_over);
            has_ended && count(member, Counter::FileMappingsWritten) > 0
        };
        let mut writing = self.members.iter().filter(writes).peekable();
        writing.peek()?;
        Some(writing.map(|it| 1 + count(it, Counter::FileOuts)).sum())
    }

    /// Gives back what processes had whose engines have gone by now, after them.
    pub(super) fn release_late(&mut self) {
        let mut late = std::mem::take(&mut self.late);
        late.retain_mut(|(connection, index)| {
            let is_over = connection.hear();
            if is_over {
                self.release(*index);
            }
            !is_over
        });
        self.late = late;
    }

    /// Gives back the slots and frames of a process that is gone, and its engine with it.
    pub(super) fn release(&self, index: ProcessIndex) {
        let process = self.shared.process(index);
        if process.counter(Counter::StoresUnderWay).load(Relaxed) > 0 {
            // Its slots go to no other process until its writes there have ended.
            swap::wait_for_transfers(&self.swap);
        }
        self.shared.release(index);
    }

    /// Ends the program at `place`, whose connection is over, if it still needs its engine.
    pub(super) fn end_abandoned(&mut self, place: usize) {
        let member = &self.members[place];
        if member.connection.end_abandoned(&member.peer) {
            let note = connection::tell_of_abandoned(member.hello.pid);
            self.notes.push(note);
        }
    }
}
