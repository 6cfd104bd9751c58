//! Engines that leave: with their programs, as they should, or without.

use super::Tree;
use crate::connection;

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

    /// Ends the program at `place`, whose connection is over, if it still needs its engine.
    pub(super) fn end_abandoned(&mut self, place: usize) {
        let member = &self.members[place];
        if member.connection.end_abandoned(&member.peer) {
            let note = connection::tell_of_abandoned(member.hello.pid);
            self.notes.push(note);
        }
    }
}
