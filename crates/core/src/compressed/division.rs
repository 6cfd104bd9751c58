//! The division of memory between plain frames and compressed pages, by marginal cost.
//!
//! A page of memory more for the frames saves a decompression for each touch of the page that left
//! the frames last. A page more for the log saves reads from disk, for each touch of the pages, as
//! many as are compressed into one, that left the log last; a page less costs them for the pages
//! that would leave it next. How often a page of each kind is touched is sampled: in the youngest
//! eighth of the log, in its oldest, and among the pages that an eighth more of it would have kept.
//! Memory goes where it saves more. After ARC's adaptation by ghost hits (Megiddo and Modha, FAST
//! 2003), with costs.
//!
//! Pages that do not compress leave the frames for the disk. They are taken to be touched again as
//! soon as those in the log, so that as many of a page of memory more would save a read as there
//! are of them. Where one read brings many wanted pages, what is old costs a part of one each.

use super::log::SEGMENT_PAGES;

/// The cost of bringing a page back from compressed memory, with what follows from it, ...
const DECOMPRESSION_NS: u64 = 25_000;
/// ... and from disk.
const READ_NS: u64 = 90_000;
/// After how many pages brought back the division is looked at again.
const PERIOD: u32 = 1024;
/// So many reads from disk in that time cost too little to be avoided.
const READS_IGNORED: u128 = 4;
/// The part of its size by which the log grows or shrinks in one step.
const STEP_PART: u32 = 16;

/// Compressed pages have at least this part of memory to take, ...
const CEDED_PART: u32 = 256;
/// ... and at least so many pages ...
const CEDED_STEP_LEAST: u32 = 8;
/// ... and no more than a round of reclaim fills.
const CEDED_STEP_MOST: u32 = 128;

/// While memory becomes less, so many frames are given up at a time, ...
const SHRINKING_STEP: u32 = 4 * SEGMENT_PAGES;
/// ... for which the log has so many pages.
pub const SHRINKING_ROOM: u32 = 3 * SEGMENT_PAGES;

/// The frames that the log never takes from the core, in pages. With fewer, an instruction that
/// needs several pages at once could wait for them forever, each sending another one away.
const FRAMES_LEAST: u32 = 64;

/// The number of origins.
pub const ORIGINS: usize = 5;

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
    counts: [u32; ORIGINS],
    /// Pages read in that time that were never compressed.
    plain: u32,
}

/// The pages that the core leaves to compressed ones, of those that it and they have together. The
/// core has work with each change, so that it is told of them in steps.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Ceded {
    pages: u32,
}

impl Ceded {
    /// The pages left, as the core was last told.
    pub fn pages(self) -> u32 {
        self.pages
    }

    /// Follows what compressed pages have, `held` of `budget` pages. Answers whether the core is to
    /// be told: it leaves room for what is stored next, too, once something has left
    /// (`has_stored`).
    pub fn follow(&mut self, held: u32, budget: u32, has_stored: bool) -> bool {
        // A process that has sent nothing away needs no room for it.
        if held == 0 && !has_stored {
            return false;
        }
        let step = (budget / CEDED_PART).clamp(CEDED_STEP_LEAST, CEDED_STEP_MOST);
        if (held + step..=held + 3 * step).contains(&self.pages) {
            return false;
        }
        self.pages = held + 2 * step;
        true
    }
}

/// The pages that the log may have, where it has `held` and the core has `frames` in use, of
/// `budget` that the two may have together.
///
/// Where they have more than that, as the budget was lowered, the log may have
/// [so much](SHRINKING_ROOM) more than it has: what leaves the frames for it frees more than it
/// takes. Else all of it would go to the disk. Where there is no disk (`is_alone`), it may have
/// what the frames have, but for the [least](FRAMES_LEAST) that the core needs to go on.
pub fn log_pages_max(budget: u32, frames: u32, held: u32, is_alone: bool) -> u32 {
    match frames + held > budget {
        true if is_alone => held + frames.saturating_sub(FRAMES_LEAST),
        true => held + SHRINKING_ROOM,
        false => budget - frames,
    }
}

/// The frames that the core is told it may use, where it has `in_use` and is to come down to
/// `frames`: a few less each time, so that the log takes them as they become free.
pub fn next_frames(frames: u32, in_use: u32) -> u32 {
    frames.max(in_use.saturating_sub(SHRINKING_STEP))
}

/// The use of reads from disk: `pages` wanted of those that came with `reads`.
#[derive(Clone, Copy, Debug)]
pub struct Yield {
    /// The reads.
    pub reads: u32,
    /// The pages.
    pub pages: u32,
}

impl Division {
    /// Divides `budget` pages: half of them for the log at first, if it needs so many.
    pub fn new(budget: u32) -> Division {
        let mut division = Division {
            budget,
            rooms_max: budget / 2 / SEGMENT_PAGES,
            counts: [0; ORIGINS],
            plain: 0,
        };
        division.limit();
        division
    }

    /// Learns of another budget. Of a larger one the log may have the same part; of a smaller one
    /// as much as before, as far as it suffices, so that what leaves the frames stays in memory.
    pub fn set_budget(&mut self, budget: u32) {
        if budget > self.budget {
            let share = u64::from(self.rooms_max) * u64::from(budget);
            self.rooms_max = (share / u64::from(self.budget.max(1))) as u32;
        }
        self.budget = budget;
        self.limit();
    }

    /// The number of rooms the log may have.
    pub fn rooms_max(&self) -> u32 {
        self.rooms_max
    }

    /// The number of rooms the log could have: all of memory but an eighth of it, and what the
    /// [frames need](FRAMES_LEAST).
    pub fn rooms_most(&self) -> u32 {
        let most = self.budget - self.budget / 8;
        most.min(self.budget.saturating_sub(FRAMES_LEAST)) / SEGMENT_PAGES
    }

    /// Learns from where a page was brought back.
    pub fn note(&mut self, origin: Origin) {
        self.counts[origin as usize] += 1;
    }

    /// Learns that `pages` are read that were never compressed.
    pub fn note_plain(&mut self, pages: u32) {
        self.plain += pages;
    }

    /// Returns true if it is time to divide anew.
    pub fn is_due(&self) -> bool {
        self.counts.iter().sum::<u32>() >= PERIOD
    }

    /// Divides anew, given how many `rooms` the log has, how many `pages` there are of each origin,
    /// and what reads of whole segments have brought of late.
    pub fn adapt(&mut self, rooms: u32, pages: [u64; ORIGINS], whole: Yield) {
        let counts = core::mem::replace(&mut self.counts, [0; ORIGINS]);
        let plain = u64::from(core::mem::replace(&mut self.plain, 0));
        let all = plain + counts.iter().map(|count| u64::from(*count)).sum::<u64>();
        let saved_by_frame_ns =
            DECOMPRESSION_NS + (READ_NS - DECOMPRESSION_NS) * plain / all.max(1);
        // The products below are of more bits than 64 where there are gigabytes.
        let of = |origin: Origin| {
            let index = origin as usize;
            (u128::from(counts[index]), u128::from(pages[index].max(1)))
        };
        let in_memory = u128::from(pages[..ORIGINS - 2].iter().sum::<u64>());
        // What a page of memory saves, by cross-multiplication: touches of a page, times the cost
        // of one, times the pages in one of memory.
        let memory = u128::from(rooms) * u128::from(SEGMENT_PAGES);
        let (young, young_pages) = of(Origin::Young);
        let is_worth_more = |origin, read_ns: u64| {
            let (touches, its_pages) = of(origin);
            touches * u128::from(read_ns) * in_memory * young_pages
                > young * u128::from(saved_by_frame_ns) * memory * its_pages
        };
        let read_ns = READ_NS - DECOMPRESSION_NS;
        let of_whole_ns = read_ns * u64::from(whole.reads) / u64::from(whole.pages).max(1);
        let step = rooms.div_ceil(STEP_PART);
        let is_missed = of(Origin::LeftLately).0 > READS_IGNORED;
        if is_missed && is_worth_more(Origin::LeftLately, read_ns) {
            self.rooms_max = self.rooms_max.max(rooms) + step;
        } else if young > 0 && !is_worth_more(Origin::Old, of_whole_ns.min(read_ns)) {
            self.rooms_max = self.rooms_max.min(rooms).saturating_sub(step);
        }
        self.limit();
    }

    /// Keeps the log between a sixteenth and seven eighths of memory, and leaves the frames at
    /// [least they need](FRAMES_LEAST).
    fn limit(&mut self) {
        let most = self.rooms_most();
        let least = self.budget / 16 / SEGMENT_PAGES;
        self.rooms_max = self.rooms_max.clamp(least.min(most), most);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE_BY_ONE: Yield = Yield { reads: 1, pages: 1 };

    /// The pages of a log of `rooms`, with `ratio` pages in one of memory, by origin.
    fn pages(rooms: u32, ratio: u64) -> [u64; ORIGINS] {
        let eighth = u64::from(rooms * SEGMENT_PAGES) * ratio / 8;
        [eighth, eighth, 6 * eighth, eighth, 8 * eighth]
    }

    /// Brings back a period's pages from `origin`, with three pages in one of memory.
    fn bring(division: &mut Division, origin: Origin, rooms: u32) {
        (0..PERIOD).for_each(|_| division.note(origin));
        assert!(division.is_due());
        division.adapt(rooms, pages(rooms, 3), ONE_BY_ONE);
        assert!(!division.is_due());
    }

    #[test]
    fn what_is_ceded_follows_what_is_held_in_steps() {
        let mut ceded = Ceded::default();
        assert!(!ceded.follow(0, 4096, false));
        assert!(ceded.follow(0, 4096, true));
        assert_eq!(ceded.pages(), 32);
        assert!(!ceded.follow(16, 4096, true));
        assert!(ceded.follow(17, 4096, true));
        assert_eq!(ceded.pages(), 49);
        assert!(ceded.follow(0, 4096, true));
        assert_eq!(ceded.pages(), 32);
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
            division.adapt(100, pages(100, ratio), ONE_BY_ONE);
            assert_eq!(division.rooms_max() < 100, shrinks, "{ratio}");
        }
    }

    #[test]
    fn few_touches_of_few_old_pages_are_as_many_as_many_of_many_young_ones() {
        for (old_pages, shrinks) in [(20, false), (4000, true)] {
            let mut division = Division::new(16_000);
            (0..1000).for_each(|_| division.note(Origin::Young));
            (0..24).for_each(|_| division.note(Origin::Old));
            division.adapt(100, [800, old_pages, 5600, 0, 0], ONE_BY_ONE);
            assert_eq!(division.rooms_max() < 100, shrinks, "{old_pages}");
        }
    }

    #[test]
    fn a_log_of_a_terabyte_is_divided_as_a_small_one() {
        let rooms = (1 << 40) / crate::compressed::log::SEGMENT_BYTES as u64;
        for (old, shrinks) in [(20, true), (300, false)] {
            let mut division = Division::new(u32::MAX);
            (0..PERIOD - old).for_each(|_| division.note(Origin::Young));
            (0..old).for_each(|_| division.note(Origin::Old));
            division.adapt(rooms as u32, pages(rooms as u32, 4), ONE_BY_ONE);
            let has_shrunk = u64::from(division.rooms_max()) < rooms;
            assert_eq!(has_shrunk, shrinks, "{old}");
        }
    }

    #[test]
    fn pages_that_do_not_compress_and_segments_read_whole_make_frames_worth_more() {
        for (plain, whole, shrinks) in [(0, 1, false), (9000, 1, true), (0, 50, true)] {
            let mut division = Division::new(16_000);
            (0..900).for_each(|_| division.note(Origin::Young));
            (0..124).for_each(|_| division.note(Origin::Old));
            division.note_plain(plain);
            let of_reads = Yield {
                reads: 1,
                pages: whole,
            };
            division.adapt(100, pages(100, 4), of_reads);
            assert_eq!(division.rooms_max() < 100, shrinks, "{plain} {whole}");
        }
    }

    #[test]
    fn while_memory_becomes_less_the_log_takes_what_leaves_the_frames() {
        // 4,000 pages that compress to a quarter are to do with half as many.
        let (mut frames, budget) = (4000, 2000);
        let held = |frames: u32| (4000 - frames) / 4;
        assert_eq!(log_pages_max(budget, 1500, 100, false), 500);
        while frames + held(frames) > budget {
            let room = log_pages_max(budget, frames, held(frames), false) - held(frames);
            let next = next_frames(budget - held(frames), frames);
            assert!(next < frames && held(next) - held(frames) <= room);
            frames = next;
        }
        assert!(
            frames + held(frames) > budget - 64,
            "no more leaves than must"
        );
    }

    #[test]
    fn a_budget_moves_the_division_with_it() {
        let mut division = Division::new(16_000);
        let before = division.rooms_max();
        division.set_budget(32_000);
        assert_eq!(division.rooms_max(), before * 2);
        // Less memory is the frames' loss.
        division.set_budget(16_000);
        assert_eq!(division.rooms_max(), division.rooms_most());
        for budget in [0, 1, 63, 64, 65, 100] {
            division.set_budget(budget);
            assert!(division.rooms_max() * SEGMENT_PAGES <= budget.saturating_sub(64));
        }
    }
}
