//! Children on their way: forked processes that have a record, and have not said hello.

use std::time::{Duration, Instant};

use tidemark_live::shared::{ProcessIndex, State};

use super::{Member, Tree};

/// The time that a record claimed for a forked child waits for its hello. A child that was killed
/// before it could say it would keep its swap slots otherwise.
const ORPHAN_LIMIT: Duration = Duration::from_secs(60);

impl Tree {
    /// Finds the children that have a record and have not come.
    pub(super) fn find_children(&mut self) {
        let is_awaited = |&index: &ProcessIndex| {
            let is_member =
                |member: &Member| [member.record, member.hello.record].contains(&Some(index));
            !self.members.iter().any(is_member)
        };
        let reserved = self
            .shared
            .processes()
            .filter(|(_, process)| process.state() == State::Reserved);
        let now: Vec<ProcessIndex> = reserved
            .map(|(index, _)| index)
            .filter(is_awaited)
            .collect();
        self.awaited.retain(|(index, _)| now.contains(index));
        for index in now {
            if !self.awaited.iter().any(|(known, _)| *known == index) {
                self.awaited.push((index, Instant::now()));
            }
        }
    }

    /// Frees records whose process never came.
    pub(super) fn release_orphans(&mut self) {
        let shared = &self.shared;
        self.awaited.retain(|(index, since)| {
            let is_due = since.elapsed() <= ORPHAN_LIMIT;
            if !is_due {
                shared.release(*index);
            }
            is_due
        });
    }
}
