//! The division of memory between plain frames and compressed pages, by marginal cost.
//!
//! A page of memory more for the frames saves a decompression for each touch of the page that left
//! the frames last; a page more for the log saves reads from disk for each touch of the pages, as
//! many as are compressed into one, that left the log last. Both are sampled: touches of the
//! youngest eighth of the log, and of what an eighth more of it would have kept. Whichever saves
//! more grows. After ARC's adaptation by ghost hits (Megiddo and Modha, FAST 2003), with costs.

use super::log::SEGMENT_PAGES;

/// What it costs to bring a page back from compressed memory, ...
const DECOMPRESSION_NS: u64 = 12_000;
/// ... and from disk.
const READ_NS: u64 = 90_000;
/// After how many pages brought back the division is looked at again.
const PERIOD: u32 = 1024;
/// The part of its size by which the log grows or shrinks in one step.
const STEP_PART: u32 = 16;

/// How much memory the log may have.
#[derive(Clone, Debug)]
pub struct Division {
    /// All memory, in pages.
    budget: u32,
    rooms_max: u32,
    /// Pages brought back since the division was last looked at.
    count: u32,
    young: u32,
    lately: u32,
}

impl Division {
    /// Divides `budget` pages: half of them for the log at first, if it needs so many.
    pub fn new(budget: u32) -> Division {
        let mut division = Division {
            budget,
            rooms_max: budget / 2 / SEGMENT_PAGES,
            count: 0,
            young: 0,
            lately: 0,
        };
        division.limit();
        division
    }

    /// Learns of another budget.
    pub fn set_budget(&mut self, budget: u32) {
        if budget != self.budget {
            let share = u64::from(self.rooms_max) * u64::from(budget);
            self.rooms_max = (share / u64::from(self.budget.max(1))) as u32;
            self.budget = budget;
            self.limit();
        }
    }

    /// How many rooms the log may have.
    pub fn rooms_max(&self) -> u32 {
        self.rooms_max
    }

    /// Learns that a page was brought back from the log in memory. `is_young`: it was among the
    /// youngest eighth.
    pub fn note_decompressed(&mut self, is_young: bool) {
        self.count += 1;
        self.young += u32::from(is_young);
    }

    /// Learns that a page was brought back from the log on disk. `is_late`: an eighth more memory
    /// would have kept it.
    pub fn note_read(&mut self, is_late: bool) {
        self.count += 1;
        self.lately += u32::from(is_late);
    }

    /// Divides anew when it is time to, given how many `rooms` the log has and how many pages are
    /// in a room.
    pub fn adapt(&mut self, rooms: u32) {
        if self.count < PERIOD {
            return;
        }
        let is_binding = rooms + 2 * rooms.div_ceil(STEP_PART) >= self.rooms_max;
        if is_binding {
            // An eighth of the log has as many pages on either side of its two ends, so that the
            // counts compare as they are, per page of memory.
            let frames = u64::from(self.young) * DECOMPRESSION_NS;
            let log = u64::from(self.lately) * (READ_NS - DECOMPRESSION_NS);
            let step = self.rooms_max.div_ceil(STEP_PART);
            if log > frames {
                self.rooms_max += step;
            } else {
                self.rooms_max = self.rooms_max.saturating_sub(step);
            }
            self.limit();
        }
        (self.count, self.young, self.lately) = (0, 0, 0);
    }

    /// Keeps the log between a sixteenth and seven eighths of memory, and leaves the frames at
    /// least 64 pages.
    fn limit(&mut self) {
        let most = (self.budget - self.budget / 8).min(self.budget.saturating_sub(64));
        let least = self.budget / 16;
        self.rooms_max = self
            .rooms_max
            .clamp(least.min(most) / SEGMENT_PAGES, most / SEGMENT_PAGES);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_grows_while_pages_that_left_it_last_are_read_back() {
        let mut division = Division::new(16_000);
        let before = division.rooms_max();
        for _ in 0..PERIOD {
            division.note_read(true);
        }
        division.adapt(before);
        assert!(division.rooms_max() > before);
        for _ in 0..2 * PERIOD {
            division.note_decompressed(true);
        }
        let rooms = division.rooms_max();
        division.adapt(rooms);
        assert!(division.rooms_max() < rooms);
    }

    #[test]
    fn the_division_stays_where_the_log_needs_less() {
        let mut division = Division::new(16_000);
        let before = division.rooms_max();
        for _ in 0..10 * PERIOD {
            division.note_decompressed(true);
            division.adapt(before / 2);
        }
        assert_eq!(division.rooms_max(), before);
    }

    #[test]
    fn a_budget_moves_the_division_with_it() {
        let mut division = Division::new(16_000);
        let before = division.rooms_max();
        division.set_budget(8_000);
        assert_eq!(division.rooms_max(), before / 2);
        for budget in [0, 1, 63, 64, 65, 100] {
            division.set_budget(budget);
            assert!(division.rooms_max() * SEGMENT_PAGES <= budget.saturating_sub(64));
        }
    }
}
