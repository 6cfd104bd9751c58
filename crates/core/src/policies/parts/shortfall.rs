//! Needs: how many pages each space misses that were taken from it while it used them.
//!
//! What is resident shows less than what is needed once memory is too small. So a page that is
//! taken within its window is counted, and one that is fetched is taken off again. What has not
//! come back within a window or two was not needed, and is forgotten.

use alloc::vec::Vec;

use crate::id::SpaceId;

#[derive(Clone, Copy, Default)]
struct Need {
    /// The time at which counting began, in ticks of the space.
    began: u64,
    taken: u32,
    /// The pages taken in the window before that have not come back.
    taken_before: u32,
}

/// The number of pages that each space misses.
pub(crate) struct Needs {
    table: Vec<Need>,
    window: u64,
}

impl Needs {
    /// No page is missed. Counts are kept for `window` ticks at least, and twice as long at
    /// most.
    pub fn new(window: u64) -> Needs {
        let table = Vec::new();
        Needs { table, window }
    }

    /// Notes that a page was taken from `space` that it had used within the window.
    pub fn note_taken(&mut self, space: SpaceId, now: u64) {
        self.at(space, now).taken += 1;
    }

    /// Notes that a page of `space` was fetched.
    pub fn note_fetched(&mut self, space: SpaceId, now: u64) {
        let need = self.at(space, now);
        if need.taken_before > 0 {
            need.taken_before -= 1;
        } else {
            need.taken = need.taken.saturating_sub(1);
        }
    }

    /// Forgets what `space` misses.
    pub fn forget(&mut self, space: SpaceId) {
        if let Some(need) = self.table.get_mut(space.0 as usize) {
            *need = Need::default();
        }
    }

    /// The number of pages `space` misses, as of the last time something was noted.
    pub fn missing(&self, space: SpaceId) -> u32 {
        let need = self.table.get(space.0 as usize);
        need.map_or(0, |need| need.taken + need.taken_before)
    }

    fn at(&mut self, space: SpaceId, now: u64) -> &mut Need {
        let place = space.0 as usize;
        if place >= self.table.len() {
            self.table.resize(place + 1, Need::default());
        }
        let need = &mut self.table[place];
        let age = now.saturating_sub(need.began);
        if age >= self.window {
            let is_next = age < self.window.saturating_mul(2);
            need.taken_before = if is_next { need.taken } else { 0 };
            (need.began, need.taken) = (now, 0);
        }
        need
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_is_missed_until_it_comes_back_or_two_windows_pass() {
        let mut needs = Needs::new(100);
        let space = SpaceId(3);
        assert_eq!(needs.missing(space), 0);
        (0..3).for_each(|_| needs.note_taken(space, 10));
        needs.note_fetched(space, 20);
        assert_eq!(needs.missing(space), 2);
        needs.note_taken(space, 120);
        assert_eq!(needs.missing(space), 3);
        needs.note_fetched(space, 130);
        needs.note_fetched(space, 500);
        assert_eq!(needs.missing(space), 0);
    }
}
