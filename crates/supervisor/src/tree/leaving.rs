//! Engines that leave: with their programs, as they should, or without.

use std::sync::atomic::Ordering::Relaxed;

use tidemark_live::shared::{Counter, ProcessIndex};

use super::Tree;
use crate::{connection, swap};

impl Tree {
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
