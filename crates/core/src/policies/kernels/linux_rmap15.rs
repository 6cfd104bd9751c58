//! Linux 2.4 with the later reverse map (rmap 15, Red Hat Enterprise Linux 3): ageing for free.
//!
//! Active pages stand on a list for each age, internal ones and cache apart. Pages become inactive
//! from the list of age 0; when that is empty all others become younger by one, which takes no
//! more than giving the lists other names. Pages get older, by 4, when they turn out to be used:
//! at age 0, or when a daemon looks through all lists, which it does more or less often as pages
//! get young quickly or slowly. How many of each kind become inactive keeps the cache at 15 of 100
//! active pages. Inactive pages are written ahead, so that a third of them is clean or about to be.
//!
//! # Departures
//! There is one zone, no process has a limit, and all external pages are cache: the kernel counts
//! what is mapped as internal once it has been used while inactive. What is done at a time is at
//! most a sixteenth of memory. A write that lasts for 30 seconds is waited for all the same.

use alloc::vec::Vec;

use crate::collections::column::Column;
use crate::collections::queue::Queues;
use crate::id::{FrameId, PageId};
use crate::policies::kernels::linux_rmap13b::high_mark;
use crate::policies::parts::lists::{pull, pull_any};
use crate::policies::settings::Settings;
use crate::seams::policy::{
    Arrival, Cause, Departure, Description, Knob, Policy, Probe, Sees, SimulatedPolicy, SpacePolicy,
};
use crate::time::Time;

/// The description of `linux-rmap15`.
pub static DESCRIPTION: Description = Description {
    name: "linux-rmap15",
    summary: "a list for each age: pages leave from age 0, and get older when they were used",
    lineage: &[
        "van Riel 2001-2002 (rmap VM)",
        "van de Ven 2002 (O(1) rmap, patch 15)",
        "Red Hat Enterprise Linux 3 (mm/vmscan.c)",
    ],
    sees: Sees::Bits,
    knobs: &[
        cache(
            "cache-min",
            "cache spared up to, in hundredths of active pages",
            1,
        ),
        cache(
            "cache-borrow",
            "cache aimed at, in hundredths of active pages",
            15,
        ),
        cache(
            "cache-max",
            "cache not spared beyond, in hundredths of active pages",
            30,
        ),
        cache("inactive", "pages inactive or free, in hundredths", 25),
    ],
};

const fn cache(name: &'static str, meaning: &'static str, default: u64) -> Knob {
    Knob {
        name,
        meaning,
        min: 0,
        max: 100,
        default,
    }
}

/// MAX_AGE and INITIAL_AGE, and how much older a use makes a page.
const AGE_MAX: u8 = 15;
const AGE_START: u8 = 3;
const AGE_UP: u8 = 4;
const AGES: u8 = AGE_MAX + 1;
const ANON: usize = 0;
const CACHE: usize = 1;
const INACTIVE: u8 = 2 * AGES;
/// Pages that are written, or had no need to be.
const CLEAN: u8 = INACTIVE + 1;
const LISTS: u8 = CLEAN + 1;

/// BATCH_WORK_AMOUNT: pages made inactive at a time, four times as many when they are short.
const BATCH: u64 = 64;
/// inactive_clean_percent: inactive pages that are to be clean or being written.
const CLEAN_PERCENT: u64 = 30;
/// The interval at which the daemon looks through the lists, in nanoseconds.
const INTERVAL_NS_MIN: u64 = 500_000_000;
const INTERVAL_NS_MAX: u64 = 300_000_000_000;
const INTERVAL_NS_START: u64 = 1_000_000_000;

#[derive(Clone, Copy)]
struct Limits {
    min: u64,
    borrow: u64,
    max: u64,
}

struct Rmap15 {
    queues: Queues,
    kinds: Column<usize>,
    /// The list of each kind that has age 0 now.
    zeros: [u8; 2],
    limits: Limits,
    inactive_percent: u64,
    /// The number of times that pages have become younger since the daemon last looked.
    slides: u64,
    next_scan: Time,
    interval_ns: u64,
    frames: u64,
}

/// Makes a `linux-rmap15`.
pub fn build(settings: Settings) -> impl Policy {
    Rmap15::new(&settings)
}

impl Rmap15 {
    fn new(settings: &Settings) -> Rmap15 {
        Rmap15 {
            queues: Queues::new(LISTS, settings.frames_max),
            kinds: Column::new(ANON, settings.frames_max as usize),
            zeros: [0; 2],
            limits: Limits {
                min: settings.knobs[0],
                borrow: settings.knobs[1],
                max: settings.knobs[2],
            },
            inactive_percent: settings.knobs[3],
            slides: 0,
            next_scan: Time(0),
            interval_ns: INTERVAL_NS_START,
            frames: settings.frames.into(),
        }
    }
}

impl Policy for Rmap15 {
    fn describe(&self) -> &'static Description {
        &DESCRIPTION
    }

    fn page_entered(&mut self, frame: FrameId, arrival: &Arrival) {
        self.kinds[frame.index()] = usize::from(arrival.is_external);
        match arrival.cause {
            Cause::Cleaned => self.queues.push_back(CLEAN, frame.0),
            Cause::ZeroFill
            | Cause::ZeroAhead
            | Cause::Fetched
            | Cause::Prefetched
            | Cause::Copied
            | Cause::Adopted
            | Cause::Kept => self.activate(frame, AGE_START),
        }
    }

    fn page_left(&mut self, frame: FrameId, _page: PageId, _departure: Departure) {
        self.queues.remove(frame.0);
    }

    fn page_rescued(&mut self, frame: FrameId) {
        // Clean pages are unmapped: one that is used again has to be looked at again.
        if self.queues.list_of(frame.0) == Some(CLEAN) {
            self.queues.move_to_back(INACTIVE, frame.0);
        }
    }

    fn clean(&mut self, probe: &mut Probe<'_>) -> Option<FrameId> {
        let clean = self.length(CLEAN);
        let washing = u64::from(probe.cleaning());
        let is_short = self.length(INACTIVE) * CLEAN_PERCENT / 100 > washing + clean;
        let ready = washing / 2 + clean + u64::from(probe.frames_free());
        if !is_short && ready >= high_mark(self.frames) {
            return None;
        }
        self.find_inactive(probe)
    }

    fn choose(&mut self, probe: &mut Probe<'_>) -> Option<FrameId> {
        if let Some(frame) = pull(&mut self.queues, CLEAN, probe) {
            return Some(frame);
        }
        let batch = BATCH.min(self.frames / 16).max(1);
        let free = u64::from(probe.frames_free());
        let idle = self.length(INACTIVE) + self.length(CLEAN) + free;
        if idle * 100 < (u64::from(self.queues.total()) + free) * self.inactive_percent {
            self.refill(4 * batch, probe);
        }
        for _ in 0..=2 * AGES {
            if let Some(frame) = self.find_inactive(probe) {
                return Some(frame);
            }
            self.refill(batch, probe);
        }
        let lists: Vec<u8> = (0..AGES)
            .flat_map(|age| [self.list_of(CACHE, age), self.list_of(ANON, age)])
            .collect();
        pull_any(&mut self.queues, &[INACTIVE], probe)
            .or_else(|| pull_any(&mut self.queues, &lists, probe))
    }

    fn tick(&mut self, probe: &mut Probe<'_>) {
        let now = probe.now();
        if now < self.next_scan {
            return;
        }
        for kind in [ANON, CACHE] {
            if self.is_young(kind) {
                self.scan(kind, probe);
            }
        }
        // Ageing should be neither so slow that all pages get to age 0, nor so quick that none do.
        self.interval_ns = match self.slides {
            0 => (self.interval_ns * 3 / 2).min(INTERVAL_NS_MAX),
            1 => self.interval_ns,
            _ => (self.interval_ns / 2).max(INTERVAL_NS_MIN),
        };
        self.slides = 0;
        self.next_scan = Time(now.0 + self.interval_ns);
    }

    fn resize(&mut self, frames: u32) {
        self.frames = frames.into();
    }

    fn check(&self) {
        self.queues.check();
        for kind in [ANON, CACHE] {
            for age in 0..AGES {
                let mut members = self.queues.iter(self.list_of(kind, age));
                assert!(members.all(|frame| self.kinds[frame as usize] == kind));
            }
        }
    }
}

impl SimulatedPolicy for Rmap15 {}

impl SpacePolicy for Rmap15 {}

impl Rmap15 {
    /// Finds the oldest inactive page that was not used. Used ones become active, and so do
    /// internal ones while there is too much cache.
    fn find_inactive(&mut self, probe: &mut Probe<'_>) -> Option<FrameId> {
        let (anon, cache) = (self.count_active(ANON), self.count_active(CACHE));
        let is_cache_over = 100 * cache / (cache + anon + 1) > self.limits.max;
        let is_spared = is_cache_over && u64::from(probe.frames_free()) > self.frames / 128;
        for _ in 0..self.queues.length(INACTIVE) {
            let frame = FrameId(self.queues.front(INACTIVE)?);
            let is_anon = self.kinds[frame.index()] == ANON;
            if !probe.may_leave(frame) {
                self.queues.move_to_back(INACTIVE, frame.0);
            } else if (is_spared && is_anon) || probe.take_referenced(frame) {
                self.activate(frame, AGE_START);
            } else {
                return Some(frame);
            }
        }
        None
    }

    /// Makes up to `target` pages inactive, of either kind as many as keep the cache in bounds.
    fn refill(&mut self, target: u64, probe: &mut Probe<'_>) {
        let (anon, cache) = (self.count_active(ANON), self.count_active(CACHE));
        let total = anon + cache;
        let part = |percent: u64| total * percent / 100;
        let Limits { min, borrow, max } = self.limits;
        let goal = part(borrow).min(part(max)).max(part(min));
        let percent = match cache >= goal {
            true => 50 + (cache - goal) * 50 / (total - goal + 1),
            false => 50_u64.saturating_sub((goal - cache) * 50 / goal + 1),
        };
        let work = match cache {
            _ if cache < part(min) => 0,
            _ if cache > part(max) => target,
            _ => percent * target / 100,
        };
        self.deactivate(ANON, target - work, probe);
        self.deactivate(CACHE, work, probe);
    }

    /// Makes up to `work` pages of a kind inactive from age 0, looking no further than there are
    /// pages.
    fn deactivate(&mut self, kind: usize, work: u64, probe: &mut Probe<'_>) {
        let mut left = work;
        let mut scans = self.count_active(kind);
        while scans > 0 && left > 0 {
            scans -= 1;
            let youngest = self.list_of(kind, 0);
            let Some(frame) = self.queues.front(youngest).map(FrameId) else {
                self.slide(kind);
                continue;
            };
            if !probe.may_leave(frame) {
                self.activate(frame, AGE_START);
            } else if probe.take_referenced(frame) {
                self.activate(frame, AGE_UP);
            } else {
                self.queues.move_to_back(INACTIVE, frame.0);
                left -= 1;
            }
        }
    }

    /// Makes all pages of a kind younger by one. Needs: none has age 0.
    fn slide(&mut self, kind: usize) {
        self.zeros[kind] = (self.zeros[kind] + 1) % AGES;
        self.slides += 1;
    }

    /// Returns true if fewer pages of a kind are in the older half of ages than in the other.
    fn is_young(&self, kind: usize) -> bool {
        let count = |ages: core::ops::Range<u8>| -> u64 {
            ages.map(|age| self.length(self.list_of(kind, age))).sum()
        };
        count(AGE_MAX / 2..AGES) < count(0..AGE_MAX / 2)
    }

    /// Asks all pages of a kind but the oldest whether they were used.
    fn scan(&mut self, kind: usize, probe: &mut Probe<'_>) {
        for age in (0..AGE_MAX).rev() {
            let list = self.list_of(kind, age);
            for _ in 0..self.queues.length(list) {
                let Some(frame) = self.queues.front(list).map(FrameId) else {
                    break;
                };
                let was_used = probe.take_referenced(frame);
                let now = if was_used { age + AGE_UP } else { age };
                self.activate(frame, now.min(AGE_MAX));
            }
        }
    }

    fn activate(&mut self, frame: FrameId, age: u8) {
        let list = self.list_of(self.kinds[frame.index()], age);
        self.queues.move_to_back(list, frame.0);
    }

    fn list_of(&self, kind: usize, age: u8) -> u8 {
        kind as u8 * AGES + (self.zeros[kind] + age) % AGES
    }

    fn count_active(&self, kind: usize) -> u64 {
        (0..AGES)
            .map(|age| self.length(self.list_of(kind, age)))
            .sum()
    }

    fn length(&self, list: u8) -> u64 {
        self.queues.length(list).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policies::parts::bench::{Bench, settings};

    /// A memory of pages of which the first are cache.
    fn policy(frames: u32, cache: u32) -> (Rmap15, Bench) {
        let mut bench = Bench::new(frames);
        let mut policy = Rmap15::new(&settings(frames, &[1, 15, 30, 25]));
        for number in 0..frames {
            bench.bring_of(&mut policy, number, Cause::Fetched, number < cache);
        }
        (policy, bench)
    }

    #[test]
    fn all_pages_get_younger_without_being_touched() {
        let (mut policy, _) = policy(6, 2);
        let list = policy.list_of(ANON, AGE_START);
        (0..3).for_each(|_| policy.slide(ANON));
        assert_eq!(policy.list_of(ANON, 0), list);
        assert_eq!(policy.queues.length(list), 4);
        // The other kind keeps its age.
        assert_eq!(policy.queues.length(policy.list_of(CACHE, AGE_START)), 2);
        policy.check();
    }

    #[test]
    fn a_page_in_use_at_age_zero_gets_four_older_and_the_others_inactive() {
        let (mut policy, mut bench) = policy(4, 0);
        (0..3).for_each(|_| policy.slide(ANON));
        bench.touch(&[1]);
        policy.deactivate(ANON, 2, &mut bench.probe());
        assert_eq!(policy.queues.list_of(1), Some(policy.list_of(ANON, 4)));
        let inactive: Vec<u32> = policy.queues.iter(INACTIVE).collect();
        assert_eq!(inactive, [0, 2]);
    }

    #[test]
    fn cache_beyond_its_limit_does_all_the_work() {
        let (mut policy, mut bench) = policy(100, 40);
        (0..3).for_each(|_| policy.slide(ANON));
        (0..3).for_each(|_| policy.slide(CACHE));
        policy.refill(10, &mut bench.probe());
        assert_eq!(
            (policy.count_active(ANON), policy.count_active(CACHE)),
            (60, 30)
        );
        // Between what is aimed at and the limit, more than half: 50 and 17 * 50 / 78 percent.
        policy.limits.max = 50;
        policy.refill(10, &mut bench.probe());
        assert_eq!(
            (policy.count_active(ANON), policy.count_active(CACHE)),
            (56, 24)
        );
    }

    #[test]
    fn pages_given_up_while_they_are_written_count_no_more() {
        let (mut policy, mut bench) = policy(100, 0);
        (0..40).for_each(|number| policy.queues.move_to_back(INACTIVE, number));
        let launder = |policy: &mut Rmap15, bench: &mut Bench| -> Vec<u32> {
            core::iter::from_fn(|| {
                let FrameId(number) = policy.clean(&mut bench.probe())?;
                bench.start_cleaning(policy, number);
                Some(number)
            })
            .collect()
        };
        // Half of those that are being written count as free, of which there should be twelve.
        let written = launder(&mut policy, &mut bench);
        assert_eq!(written.len(), 24);
        written.iter().for_each(|&number| bench.give_up(number));
        // Of the 16 that are left, 30 in a hundred.
        assert_eq!(launder(&mut policy, &mut bench).len(), 3);
    }

    #[test]
    fn the_daemon_looks_more_often_when_pages_get_young_quickly() {
        let (mut policy, mut bench) = policy(4, 0);
        policy.tick(&mut bench.probe());
        assert_eq!(policy.interval_ns, 1_500_000_000);
        bench.now = policy.next_scan;
        bench.touch(&[2]);
        (0..2).for_each(|_| policy.slide(ANON));
        policy.tick(&mut bench.probe());
        assert_eq!(policy.interval_ns, 750_000_000);
        // A page in use gets older by four: it had age 1.
        assert_eq!(policy.queues.list_of(2), Some(policy.list_of(ANON, 5)));
    }
}
