//! The division of memory between plain frames and compressed pages, by what each would cost.
//!
//! Pages that leave the frames go to the young end of the log, and those at its old end to the
//! disk. A page that is brought back has a *rank*: the number of pages that left the frames after
//! it and are still out. With that many more frames it would not have left. So the ranks of
//! recently returned pages show which pages would have come back, and from where, at every division
//! with more frames (Mattson, Gecsei, Slutz and Traiger 1970: the distances of one run give the
//! misses of all sizes). With fewer frames, as many pages more are assumed to be missed as the same
//! number of additional frames would save. So each division has a cost, and memory moves towards
//! the cheapest, a quarter of the log in a step: the next period shows the cost of fewer frames.
//!
//! Pages that do not compress leave the frames for the disk, and are not in the log. Their rank is
//! the number of pages that left after them, an upper bound of those still out.

use super::log::SEGMENT_PAGES;

/// The cost of bringing a page back from compressed memory, with what follows from it.
const DECOMPRESSION_NS: u64 = 25_000;
/// The cost of bringing a page back from disk.
const READ_NS: u64 = 90_000;
/// The cost of reading a whole segment: its bytes take as long again, and its room.
const WHOLE_READ_NS: u64 = 270_000;
/// The number of pages brought back after which the division is looked at again.
const PERIOD: u32 = 1024;
/// The part of the cost that another division must save.
const GAIN_PART: u64 = 64;
/// The divisions that are compared, as parts of all memory.
const CANDIDATES: u32 = 64;
/// The rooms of the smallest log, where they are no more than an eighth of memory: it tells whether
/// a larger one would pay, and one of few rooms can't be divided finely.
const ROOMS_LEAST: u32 = 8;
/// The part of its size by which the log grows or shrinks in one step.
const STEP_PART: u32 = 4;

/// Compressed pages have at least this part of memory to take.
const CEDED_PART: u32 = 256;
/// The least pages by which the share of compressed pages changes.
const CEDED_STEP_LEAST: u32 = 8;
/// The most pages by which it changes: what a round of reclaim fills.
const CEDED_STEP_MOST: u32 = 128;

/// While memory becomes less, this many frames are given up at a time.
const SHRINKING_STEP: u32 = 4 * SEGMENT_PAGES;
/// The pages that the log has for frames that are given up so.
pub const SHRINKING_ROOM: u32 = 3 * SEGMENT_PAGES;

/// The frames that the log never takes from the core, in pages. With fewer, an instruction that
/// needs several pages at once could wait for them forever, each sending another one away.
const FRAMES_LEAST: u32 = 64;

/// The number of parts that ranks are counted in.
pub const PARTS: usize = 32;

/// The pages of the log by rank, as they were when they were last counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Ranks {
    /// The number of pages in each part, the youngest first.
    pub pages: [u64; PARTS],
    /// The number of them that were in memory.
    pub in_memory: u64,
}

/// The memory that the log may have.
#[derive(Clone, Debug)]
pub struct Division {
    /// All memory, in pages.
    budget: u32,
    rooms_max: u32,
    /// Pages brought back since the division was last looked at, by the parts of their ranks.
    counts: [u32; PARTS],
    /// Reads in that time of pages that were never compressed, by their ranks in parts of a
    /// [candidate's](CANDIDATES) size; the last is of all beyond, and of those that are not known.
    plain_reads: [u32; CANDIDATES as usize],
}

/// The pages that the core leaves to compressed ones, of those that it and they have together. Each
/// change is work for the core, so changes are made in steps.
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

/// The next limit of the core's frames, while it has `in_use` and must shrink to `frames`: a few
/// less each time, so that the log takes them as they become free.
pub fn next_frames(frames: u32, in_use: u32) -> u32 {
    frames.max(in_use.saturating_sub(SHRINKING_STEP))
}

/// The use of reads from disk: `pages` wanted of those that came with `reads`.
#[derive(Clone, Copy, Debug)]
pub struct Yield {
    /// The number of reads from disk.
    pub reads: u32,
    /// The pages.
    pub pages: u32,
}

impl Division {
    /// Divides `budget` pages: half of them for the log at first, if it needs that many.
    pub fn new(budget: u32) -> Division {
        let mut division = Division {
            budget,
            rooms_max: budget / 2 / SEGMENT_PAGES,
            counts: [0; PARTS],
            plain_reads: [0; CANDIDATES as usize],
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

    /// Learns that a page was brought back whose rank is in this part.
    pub fn note(&mut self, part: usize) {
        self.counts[part] += 1;
    }

    /// Learns of a read of pages that were never compressed, with the rank of the first of them if
    /// that is known.
    pub fn note_plain(&mut self, rank: Option<u64>) {
        let last = CANDIDATES as usize - 1;
        let part = rank.map_or(last, |rank| (rank / self.part_pages()) as usize);
        self.plain_reads[part.min(last)] += 1;
    }

    /// The number of pages that two candidates differ by.
    fn part_pages(&self) -> u64 {
        u64::from(self.budget / CANDIDATES).max(1)
    }

    /// The number of frames that the log leaves if it has this many rooms.
    pub fn frames(&self, rooms: u32) -> u32 {
        self.budget.saturating_sub(rooms * SEGMENT_PAGES)
    }

    /// Returns true if it is time to divide anew.
    pub fn is_due(&self) -> bool {
        self.counts.iter().chain(&self.plain_reads).sum::<u32>() >= PERIOD
    }

    /// Divides anew, given how many `rooms` the log has, the ranks of its pages, and what reads of
    /// whole segments have brought of late.
    pub fn adapt(&mut self, rooms: u32, ranks: &Ranks, whole: Yield) {
        let seen = Seen {
            counts: core::mem::take(&mut self.counts),
            ranks,
            held: u64::from(rooms.max(1) * SEGMENT_PAGES),
            read_ns: READ_NS.min(
                DECOMPRESSION_NS
                    + WHOLE_READ_NS * u64::from(whole.reads) / u64::from(whole.pages).max(1),
            ),
            plain_reads: core::mem::replace(&mut self.plain_reads, [0; CANDIDATES as usize]),
            part_pages: self.part_pages(),
        };
        if ranks.in_memory == 0 {
            return;
        }
        let part = (self.budget / CANDIDATES / SEGMENT_PAGES).max(1);
        let candidates = (0..=self.rooms_most() / part).map(|step| step * part);
        let cost = |rooms: u32| seen.cost(u64::from(rooms * SEGMENT_PAGES));
        let now = cost(rooms);
        let best = candidates.min_by_key(|rooms| cost(*rooms)).unwrap_or(rooms);
        if cost(best) + now / GAIN_PART >= now {
            // Another division would save too little.
            return;
        }
        self.rooms_max = match best < rooms {
            true => best.max(rooms - rooms.div_ceil(STEP_PART)),
            // A log that is still being filled keeps the limit that it has.
            false => self
                .rooms_max
                .max(best.min(rooms + rooms.div_ceil(STEP_PART))),
        };
        self.limit();
    }

    /// Keeps the log between a sixty-fourth of memory, or [a few rooms](ROOMS_LEAST), and seven
    /// eighths of it, and leaves the frames at [least they need](FRAMES_LEAST).
    fn limit(&mut self) {
        let most = self.rooms_most();
        let few = ROOMS_LEAST.min(self.budget / 8 / SEGMENT_PAGES);
        let least = (self.budget / CANDIDATES / SEGMENT_PAGES).max(few);
        self.rooms_max = self.rooms_max.clamp(least.min(most), most);
    }
}

/// The pages that were brought back in a period.
struct Seen<'a> {
    counts: [u32; PARTS],
    ranks: &'a Ranks,
    /// The memory that the log has, in pages.
    held: u64,
    /// The cost of a page from disk.
    read_ns: u64,
    /// The reads of pages that were never compressed, by their ranks in parts of this many pages.
    plain_reads: [u32; CANDIDATES as usize],
    part_pages: u64,
}

impl Seen<'_> {
    /// The cost of the pages that were wanted in the period, with this many pages of memory for the
    /// log.
    fn cost(&self, held: u64) -> u64 {
        let (more, fewer) = (
            self.held.saturating_sub(held),
            held.saturating_sub(self.held),
        );
        let kept = held * self.ranks.in_memory / self.held;
        let all = self.below(u64::MAX);
        let hits = self.below(more);
        let not_read = self.below((more + kept).saturating_sub(fewer)).max(hits);
        let from_memory = not_read - hits + self.below(fewer);
        let plain = self.plain_below(u64::MAX) - self.plain_below(more) + self.plain_below(fewer);
        from_memory * DECOMPRESSION_NS + (all - not_read) * self.read_ns + plain * READ_NS
    }

    /// The number of reads of pages that were never compressed, with ranks below `rank`.
    fn plain_below(&self, rank: u64) -> u64 {
        let parts = usize::try_from(rank / self.part_pages).unwrap_or(usize::MAX);
        let within = self.plain_reads.iter().take(parts);
        within.map(|count| u64::from(*count)).sum()
    }

    /// The number of pages brought back with ranks below `rank`.
    fn below(&self, rank: u64) -> u64 {
        let (mut from, mut count) = (0, 0);
        for (counted, pages) in self.counts.iter().zip(self.ranks.pages) {
            if rank <= from {
                break;
            }
            let within = (rank - from).min(pages);
            count += match within == pages {
                true => u64::from(*counted),
                false => u64::from(*counted) * within / pages,
            };
            from += pages;
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE_BY_ONE: Yield = Yield { reads: 1, pages: 1 };

    /// The ranks of a log of `rooms` with `ratio` pages in one of memory, and as many on disk.
    fn ranks(rooms: u32, ratio: u64) -> Ranks {
        let in_memory = u64::from(rooms * SEGMENT_PAGES) * ratio;
        Ranks {
            pages: [2 * in_memory / PARTS as u64; PARTS],
            in_memory,
        }
    }

    /// Brings back a period's pages from these parts, from a log of `rooms` with `ratio` pages in
    /// one of memory.
    fn bring(division: &mut Division, rooms: u32, ratio: u64, parts: core::ops::Range<usize>) {
        (0..PERIOD as usize).for_each(|at| division.note(parts.start + at % parts.len()));
        assert!(division.is_due());
        division.adapt(rooms, &ranks(rooms, ratio), ONE_BY_ONE);
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
        bring(&mut division, before, 3, 16..18);
        assert!((before + 1..=before + before.div_ceil(4)).contains(&division.rooms_max()));
        // Those that left it long ago need more frames than there can be.
        let before = division.rooms_max();
        bring(&mut division, before, 3, 30..32);
        assert_eq!(division.rooms_max(), before);
    }

    #[test]
    fn frames_have_what_they_would_have_kept() {
        // All that is wanted would have stayed in a quarter of the log's memory, in frames.
        let mut division = Division::new(16_000);
        for rooms in [400, 300, 225] {
            bring(&mut division, rooms, 3, 0..1);
            assert_eq!(division.rooms_max(), rooms - rooms.div_ceil(4));
        }
    }

    #[test]
    fn a_walk_beyond_the_youngest_pages_is_seen() {
        // Nothing near either end, and all of it within twice the frames that the log's memory is.
        let mut division = Division::new(16_000);
        bring(&mut division, 400, 3, 4..5);
        assert_eq!(division.rooms_max(), 300);
        // Where it is longer, nothing is saved by what is too little.
        let mut division = Division::new(16_000);
        bring(&mut division, 400, 3, 13..15);
        assert!(division.rooms_max() >= 400);
    }

    #[test]
    fn pages_that_compress_well_are_worth_more_in_the_log() {
        for (ratio, shrinks) in [(1, true), (6, false)] {
            let mut division = Division::new(16_000);
            bring(&mut division, 400, ratio, 0..16);
            assert_eq!(division.rooms_max() < 400, shrinks, "{ratio}");
        }
    }

    #[test]
    fn a_log_of_a_terabyte_is_divided_as_a_small_one() {
        let rooms = ((1_u64 << 40) / u64::from(crate::compressed::log::SEGMENT_BYTES)) as u32;
        for (part, shrinks) in [(0, true), (17, false)] {
            let mut division = Division::new(2 * rooms * SEGMENT_PAGES);
            bring(&mut division, rooms / 2, 4, part..part + 1);
            assert_eq!(division.rooms_max() < rooms / 2, shrinks, "{part}");
        }
    }

    #[test]
    fn pages_that_do_not_compress_and_segments_read_whole_make_frames_worth_more() {
        for (plain, whole, shrinks) in [(0, 1, false), (4000, 1, true), (0, 50, true)] {
            let mut division = Division::new(16_000);
            (0..900).for_each(|at| division.note(at % 16));
            (0..300).for_each(|at| division.note(16 + at % 2));
            (0..plain).for_each(|rank| division.note_plain(Some(rank % 1000)));
            let of_reads = Yield {
                reads: 1,
                pages: whole,
            };
            division.adapt(400, &ranks(400, 4), of_reads);
            assert_eq!(division.rooms_max() < 400, shrinks, "{plain} {whole}");
        }
    }

    #[test]
    fn plain_pages_that_left_long_ago_make_frames_worth_no_more() {
        for (rank, shrinks) in [(Some(100), true), (Some(12_000), false), (None, false)] {
            let mut division = Division::new(16_000);
            (0..100).for_each(|at| division.note(16 + at % 2));
            (0..1000).for_each(|_| division.note_plain(rank));
            division.adapt(400, &ranks(400, 4), ONE_BY_ONE);
            assert_eq!(division.rooms_max() < 400, shrinks, "{rank:?}");
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
