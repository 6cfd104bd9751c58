//! Linux 2.5 with the full reverse map (rmap 13b): pages age one by one, on three lists.
//!
//! A page comes to the active list at age 2. When pages get short, active ones are asked about
//! their use in turn: used ones get older by 3, up to 64, others younger by 1, and at age 0 a page
//! becomes inactive. The inactive ones are *dirty* until they have been looked at: what was used
//! becomes active again, what must be written is written, and what need not be is *clean* and may
//! go at any moment. So pages leave in the order of their ages, and their mappings are found from
//! the page.
//!
//! A page of a file that no program has mapped has no age: it becomes inactive as soon as it is
//! looked at, and no use makes it active again.
//!
//! While fewer pages are free or clean than there should be, dirty ones are written, all there
//! are: what is on its way does not count. That is why this writes far more than it frees, and
//! reads hardly anything again.
//!
//! # Departures
//! There is one zone, and no process has a limit of its own. The marks that depend on memory are
//! at most an eighth of it: the kernel never ran in so little that they were more. The daemon runs
//! once for each 32 pages and not each time that an allocation wakes it. Where it would go round
//! again and again until some page has become old enough, the ages are counted down at once.

use crate::collections::column::Column;
use crate::collections::queue::Queues;
use crate::id::{FrameId, PageId};
use crate::policies::parts::aging::count_down;
use crate::policies::parts::lists::pull_any;
use crate::policies::settings::Settings;
use crate::seams::policy::{
    Arrival, Cause, Departure, Description, Knob, Policy, Probe, Sees, SimulatedPolicy, SpacePolicy,
};
use crate::time::Time;

/// The description of `linux-rmap13b`.
pub static DESCRIPTION: Description = Description {
    name: "linux-rmap13b",
    summary: "pages get older with each use and younger without; at age 0 they may leave",
    lineage: &[
        "FreeBSD 1990s (act_count)",
        "van Riel 2001-2002 (rmap VM, patch 13b)",
    ],
    sees: Sees::Bits,
    knobs: &[
        age("age-start", "the age of a new page, in ageing steps", 2),
        age("age-up", "how much older a page gets when it was used", 3),
        age(
            "age-down",
            "how much younger a page gets when it was not",
            1,
        ),
        age("age-max", "the greatest age", 64),
    ],
};

const fn age(name: &'static str, meaning: &'static str, default: u64) -> Knob {
    Knob {
        name,
        meaning,
        min: 1,
        max: 64,
        default,
    }
}

const ACTIVE: u8 = 0;
const DIRTY: u8 = 1;
const CLEAN: u8 = 2;
const LISTS: u8 = 3;
/// The longest time between two ageings of pages.
const PERIOD_NS: u64 = 1_000_000_000;

/// INACTIVE_FACTOR: a fifth of the pages is to be inactive.
const INACTIVE_FACTOR: u64 = 5;
/// The daemon looks at a 64th of a list at a time, and 64 times at most.
const ROUNDS: u32 = 64;
const ROUND_SHIFT: u32 = 6;
/// Pages that leave from one run of the daemon to the next.
const BATCH: u32 = 32;

struct Rmap13b {
    queues: Queues,
    ages: Column<u8>,
    start: u8,
    up: u8,
    down: u8,
    most: u8,
    /// Pages that may leave until the daemon runs again.
    batch_left: u32,
    frames: u64,
    /// The time at which pages were last aged without need of a frame.
    aged: Option<Time>,
}

/// Makes a `linux-rmap13b`.
pub fn build(settings: Settings) -> impl Policy {
    Rmap13b::new(&settings)
}

impl Rmap13b {
    fn new(settings: &Settings) -> Rmap13b {
        let [start, up, down, most] = [0, 1, 2, 3].map(|knob| settings.knobs[knob] as u8);
        Rmap13b {
            queues: Queues::new(LISTS, settings.frames_max),
            ages: Column::new(0, settings.frames_max as usize),
            start: start.min(most),
            up,
            down,
            most,
            batch_left: 0,
            frames: settings.frames.into(),
            aged: None,
        }
    }
}

impl Policy for Rmap13b {
    fn describe(&self) -> &'static Description {
        &DESCRIPTION
    }

    fn page_entered(&mut self, frame: FrameId, arrival: &Arrival) {
        self.ages[frame.index()] = self.start;
        let list = match arrival.cause {
            Cause::Cleaned => CLEAN,
            Cause::ZeroFill
            | Cause::ZeroAhead
            | Cause::Fetched
            | Cause::Prefetched
            | Cause::Copied
            | Cause::Adopted
            | Cause::Kept => ACTIVE,
        };
        self.queues.push_back(list, frame.0);
    }

    fn page_left(&mut self, frame: FrameId, _page: PageId, _departure: Departure) {
        self.queues.remove(frame.0);
    }

    fn page_rescued(&mut self, frame: FrameId) {
        // Clean pages are unmapped: one that is used again has to be looked at again.
        if self.queues.list_of(frame.0) == Some(CLEAN) {
            self.queues.move_to_back(DIRTY, frame.0);
        }
    }

    fn choose(&mut self, probe: &mut Probe<'_>) -> Option<FrameId> {
        if self.batch_left == 0 {
            self.refill(probe);
            self.batch_left = BATCH;
        }
        self.batch_left -= 1;
        let found = self.reclaim(probe).or_else(|| self.find_inactive(probe));
        if found.is_some() {
            return found;
        }
        self.age_all(self.queues.length(ACTIVE).into(), probe);
        if self.queues.length(DIRTY) == 0 {
            self.count_down(probe);
        }
        self.find_inactive(probe)
            .or_else(|| pull_any(&mut self.queues, &[DIRTY, ACTIVE], probe))
    }

    fn clean(&mut self, probe: &mut Probe<'_>) -> Option<FrameId> {
        // What is being written counts for nothing yet, so that more is written, and more.
        let clean = probe.frames_free() + self.queues.length(CLEAN);
        if u64::from(clean) > Marks::new(self.frames).high {
            return None;
        }
        self.find_inactive(probe)
    }

    fn tick(&mut self, probe: &mut Probe<'_>) {
        let now = probe.now();
        if self.aged.is_some_and(|last| now.since_ns(last) < PERIOD_NS) {
            return;
        }
        self.aged = Some(now);
        // Once a second, so that ages mean something when pages get short.
        let marks = Marks::new(self.frames);
        if self.inactive_short(marks.inactive_high(self), probe) > 0 {
            self.age_all(self.round(), probe);
        }
    }

    fn resize(&mut self, frames: u32) {
        self.frames = frames.into();
    }

    fn check(&self) {
        self.queues.check();
        let mut actives = self.queues.iter(ACTIVE);
        assert!(actives.all(|frame| self.ages[frame as usize] <= self.most));
    }
}

impl SimulatedPolicy for Rmap13b {}

impl SpacePolicy for Rmap13b {}

impl Rmap13b {
    /// Takes the oldest clean page.
    fn reclaim(&mut self, probe: &Probe<'_>) -> Option<FrameId> {
        for _ in 0..self.queues.length(CLEAN) {
            let frame = FrameId(self.queues.front(CLEAN)?);
            if probe.may_leave(frame) {
                return Some(frame);
            }
            self.queues.move_to_back(DIRTY, frame.0);
        }
        None
    }

    /// Launders: looks through the inactive pages for one that was not used.
    fn find_inactive(&mut self, probe: &mut Probe<'_>) -> Option<FrameId> {
        for _ in 0..self.queues.length(DIRTY) {
            let frame = FrameId(self.queues.front(DIRTY)?);
            if !probe.may_leave(frame) {
                self.queues.move_to_back(DIRTY, frame.0);
            } else if probe.take_referenced(frame) && probe.is_in_use(frame) {
                self.ages[frame.index()] = self.start;
                self.queues.move_to_back(ACTIVE, frame.0);
            } else {
                return Some(frame);
            }
        }
        None
    }

    /// Ages active pages until enough are inactive.
    fn refill(&mut self, probe: &mut Probe<'_>) {
        let marks = Marks::new(self.frames);
        for _ in 0..ROUNDS {
            if self.inactive_short(marks.inactive_low(self), probe) < 0 {
                return;
            }
            self.age_all(self.round(), probe);
        }
        if self.inactive_short(marks.inactive_min(self), probe) >= 0 {
            self.age_all(self.queues.length(ACTIVE).into(), probe);
        }
    }

    /// Asks `count` active pages, the oldest of the list first, whether they were used.
    fn age_all(&mut self, count: u64, probe: &mut Probe<'_>) {
        for _ in 0..count {
            let Some(frame) = self.queues.front(ACTIVE).map(FrameId) else {
                return;
            };
            let age = &mut self.ages[frame.index()];
            // `page_mapping_inuse`: an unmapped page does not age, it goes.
            *age = match probe.is_in_use(frame).then(|| probe.take_referenced(frame)) {
                None => 0,
                Some(true) => age.saturating_add(self.up).min(self.most),
                Some(false) => age.saturating_sub(self.down),
            };
            self.settle_age(frame, probe);
        }
    }

    /// Goes round the active pages until one becomes inactive, while none is used.
    fn count_down(&mut self, probe: &Probe<'_>) {
        if !count_down(&self.queues, ACTIVE, &mut self.ages, probe) {
            return;
        }
        for _ in 0..self.queues.length(ACTIVE) {
            let Some(frame) = self.queues.front(ACTIVE).map(FrameId) else {
                return;
            };
            self.settle_age(frame, probe);
        }
    }

    /// Puts an active page that was looked at behind the others, or makes it inactive.
    fn settle_age(&mut self, frame: FrameId, probe: &Probe<'_>) {
        let is_old = self.ages[frame.index()] == 0 && probe.may_leave(frame);
        let list = if is_old { DIRTY } else { ACTIVE };
        self.queues.move_to_back(list, frame.0);
    }

    /// The number by which the pages that are free or inactive fall short of `target`.
    fn inactive_short(&self, target: u64, probe: &Probe<'_>) -> i64 {
        let inactive = self.queues.length(DIRTY) + self.queues.length(CLEAN);
        target as i64 - i64::from(probe.frames_free()) - i64::from(inactive)
    }

    /// The number of active pages aged in one round.
    fn round(&self) -> u64 {
        u64::from(self.queues.length(ACTIVE) >> ROUND_SHIFT)
    }
}

/// The numbers of pages that the daemon keeps free or inactive, from the size of memory.
struct Marks {
    high: u64,
}

/// The number of pages that the daemon keeps free or clean in a memory of that many.
pub(crate) fn high_mark(frames: u64) -> u64 {
    let mask = (frames / 128).max(20).min(frames / 24);
    let extra = Some(frames / 512).filter(|&extra| extra >= 255);
    extra.map_or(0, |extra| extra.min(1024)) + 3 * mask
}

impl Marks {
    fn new(frames: u64) -> Marks {
        let high = high_mark(frames);
        Marks { high }
    }

    fn inactive_min(&self, policy: &Rmap13b) -> u64 {
        self.high + self.base(policy) / 2
    }

    fn inactive_low(&self, policy: &Rmap13b) -> u64 {
        self.high + self.base(policy)
    }

    fn inactive_high(&self, policy: &Rmap13b) -> u64 {
        self.high + 2 * self.base(policy)
    }

    fn base(&self, policy: &Rmap13b) -> u64 {
        let pages = policy.queues.length(ACTIVE) + policy.queues.length(DIRTY);
        u64::from(pages) / INACTIVE_FACTOR
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::policies::parts::bench::{Bench, settings};

    fn policy(frames: u32) -> (Rmap13b, Bench) {
        let mut bench = Bench::new(frames);
        let mut policy = Rmap13b::new(&settings(frames, &[2, 3, 1, 64]));
        (0..frames).for_each(|number| bench.bring(&mut policy, number, Cause::ZeroFill));
        (policy, bench)
    }

    #[test]
    fn a_use_adds_three_up_to_sixty_four_and_a_look_without_takes_one() {
        let (mut policy, mut bench) = policy(4);
        assert_eq!(policy.ages, [2, 2, 2, 2]);
        bench.touch(&[1]);
        policy.age_all(4, &mut bench.probe());
        assert_eq!(policy.ages, [1, 5, 1, 1]);
        policy.age_all(4, &mut bench.probe());
        assert_eq!(policy.ages, [0, 4, 0, 0]);
        for _ in 0..30 {
            bench.touch(&[1]);
            policy.age_all(1, &mut bench.probe());
        }
        assert_eq!(policy.ages, [0, 64, 0, 0]);
        policy.age_all(1, &mut bench.probe());
        assert_eq!(policy.ages[1], 63);
    }

    #[test]
    fn age_zero_makes_a_page_inactive_and_a_use_there_active_again() {
        let (mut policy, mut bench) = policy(4);
        for _ in 0..2 {
            bench.touch(&[1]);
            policy.age_all(4, &mut bench.probe());
        }
        let inactive: Vec<u32> = policy.queues.iter(DIRTY).collect();
        assert_eq!(inactive, [0, 2, 3]);
        bench.touch(&[0]);
        assert_eq!(policy.find_inactive(&mut bench.probe()), Some(FrameId(2)));
        assert_eq!(policy.queues.list_of(0), Some(ACTIVE));
        assert_eq!(policy.ages[0], 2);
    }

    #[test]
    fn the_youngest_page_leaves_when_the_daemon_would_go_round_for_long() {
        let (mut policy, mut bench) = policy(4);
        for (frame, age) in [40, 33, 64, 50].into_iter().enumerate() {
            policy.ages[frame] = age;
        }
        assert_eq!(bench.evict_one(&mut policy), Some(1));
        // Two looks, and what was counted down.
        assert_eq!(policy.ages, [7, 0, 31, 17]);
    }

    #[test]
    fn everything_dirty_is_written_while_little_is_clean() {
        let (mut policy, mut bench) = policy(100);
        (0..20).for_each(|number| policy.queues.move_to_back(DIRTY, number));
        bench.touch(&[1]);
        let mut written = Vec::new();
        while let Some(FrameId(number)) = policy.clean(&mut bench.probe()) {
            bench.start_cleaning(&mut policy, number);
            written.push(number);
        }
        assert_eq!(written.len(), 19);
        assert!(!written.contains(&1));
        // Twelve clean ones are enough, and go in the order in which they became so.
        let frames = written.clone();
        frames
            .iter()
            .for_each(|&number| bench.bring(&mut policy, number, Cause::Cleaned));
        policy.queues.move_to_back(DIRTY, 50);
        assert_eq!(policy.clean(&mut bench.probe()), None);
        assert_eq!(policy.choose(&mut bench.probe()), Some(FrameId(0)));
        // One that was touched meanwhile has to be looked at again.
        policy.page_rescued(FrameId(0));
        assert_eq!(policy.choose(&mut bench.probe()), Some(FrameId(2)));
    }
}
