//! The division of memory between plain frames and compressed pages, by marginal cost.
//!
//! A page of memory more for the frames saves a decompression for each touch of the page that left
//! the frames last. A page more for the log saves reads from disk, for each touch of the pages, as
//! many as are compressed into one, that left the log last; a page less costs them for the pages
//! that would leave it next. All three are sampled: touches of the youngest eighth of the log, of
//! what an eighth more of it would have kept, and of its oldest eighth. Memory goes where it saves
//! more. After ARC's adaptation by ghost hits (Megiddo and Modha, FAST 2003), with costs.

use super::log::SEGMENT_PAGES;

/// The cost of bringing a page back from compressed memory, with what follows from it, ...
const DECOMPRESSION_NS: u64 = 25_000;
/// ... and from disk.
const READ_NS: u64 = 90_000;
/// After how many pages brought back the division is looked at again.
const PERIOD: u32 = 1024;
/// The part of its size by which the log grows or shrinks in one step.
const STEP_PART: u32 = 16;

/// The place of a page before it is brought back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Origin {
    /// In memory, in the youngest eighth of the log.
    Young,
    /// In memory, in the oldest eighth.
    Old,
    /// In memory, between the two.
    Middle,
    /// On disk; an eighth more memory would have kept it.
    LeftLately,
    /// On disk.
    Disk,
}

/// The memory that the log may have.
#[derive(Clone, Debug)]
pub struct Division {
    /// All memory, in pages.
    budget: u32,
    rooms_max: u32,
    /// Pages brought back since the division was last looked at, by origin.
    counts: [u32; 5],
}

impl Division {
    /// Divides `budget` pages: half of them for the log at first, if it needs so many.
    pub fn new(budget: u32) -> Division {
        let mut division = Division {
            budget,
            rooms_max: budget / 2 / SEGMENT_PAGES,
            counts: [0; 5],
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

    /// The number of rooms the log may have.
    pub fn rooms_max(&self) -> u32 {
        self.rooms_max
    }

    /// Learns from where a page was brought back.
    pub fn note(&mut self, origin: Origin) {
        self.counts[origin as usize] += 1;
    }

    /// Divides anew when it is time to, given how many `rooms` the log has and how many pages are
    /// in those.
    pub fn adapt(&mut self, rooms: u32, pages: u64) {
        if self.counts.iter().sum::<u32>() < PERIOD || rooms == 0 {
            return;
        }
        let count = |origin: Origin| u64::from(self.counts[origin as usize]);
        // An eighth of the log is as many pages at either end: in memory for them as frames, or in
        // as many times less as they are smaller.
        let memory = u64::from(rooms * SEGMENT_PAGES);
        let frames = count(Origin::Young) * DECOMPRESSION_NS * memory;
        let saved_ns = (READ_NS - DECOMPRESSION_NS) * pages;
        let step = rooms.div_ceil(STEP_PART);
        if count(Origin::LeftLately) * saved_ns > frames {
            self.rooms_max = self.rooms_max.max(rooms) + step;
        } else if count(Origin::Old) * saved_ns < frames {
            self.rooms_max = self.rooms_max.min(rooms).saturating_sub(step);
        }
        self.limit();
        self.counts = [0; 5];
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

    /// Brings back a period's pages from `origin`, with three pages in one of memory.
    fn bring(division: &mut Division, origin: Origin, rooms: u32) {
        (0..PERIOD).for_each(|_| division.note(origin));
        division.adapt(rooms, u64::from(rooms * SEGMENT_PAGES) * 3);
    }

    #[test]
    fn the_log_grows_while_pages_that_left_it_last_are_read_back() {
        let mut division = Division::new(16_000);
        let before = division.rooms_max();
        bring(&mut division, Origin::LeftLately, before);
        assert!(division.rooms_max() > before);
    }

    #[test]
    fn the_log_shrinks_while_pages_that_came_last_are_wanted_back_and_old_ones_are_not() {
        let mut division = Division::new(16_000);
        bring(&mut division, Origin::Young, 100);
        assert_eq!(division.rooms_max(), 93);
        bring(&mut division, Origin::Old, 93);
        assert_eq!(division.rooms_max(), 93);
        // What is neither tells nothing of either end.
        bring(&mut division, Origin::Middle, 93);
        assert_eq!(division.rooms_max(), 93);
    }

    #[test]
    fn pages_that_compress_well_are_worth_more_in_the_log() {
        for (ratio, shrinks) in [(1, true), (4, false)] {
            let mut division = Division::new(16_000);
            for number in 0..PERIOD {
                division.note(if number % 6 == 0 {
                    Origin::Old
                } else {
                    Origin::Young
                });
            }
            division.adapt(100, u64::from(100 * SEGMENT_PAGES) * ratio);
            assert_eq!(division.rooms_max() < 100, shrinks, "{ratio}");
        }
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
