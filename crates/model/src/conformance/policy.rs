//! Rules that every policy must keep, whatever it believes in.

use std::collections::BTreeSet;

use tidemark_core::seams::policy::{Cause, Policy, Sees};

use crate::cache::{Cache, MachineKind, Touch};
use crate::traces::SplitMix64;

/// The way to make a policy under test.
#[derive(Clone, Copy)]
pub struct Candidate<'a> {
    /// The name to report where it fails.
    pub name: &'a str,
    /// Makes one for that many frames, with random numbers from that seed.
    pub build: &'a dyn Fn(u32, u64) -> Box<dyn Policy>,
}

/// A named test of policies.
type PolicyTest = (&'static str, fn(Candidate<'_>));

/// Every test, by name.
const POLICY: &[PolicyTest] = &[
    (
        "an_empty_memory_has_nothing_to_give",
        an_empty_memory_has_nothing_to_give,
    ),
    (
        "wired_pages_stay_and_the_one_that_may_leave_is_found",
        wired_pages_stay_and_the_one_that_may_leave_is_found,
    ),
    ("choosing_removes_nothing", choosing_removes_nothing),
    (
        "a_page_that_was_kept_after_all_can_be_chosen_again",
        a_page_that_was_kept_after_all_can_be_chosen_again,
    ),
    (
        "discarding_everything_leaves_a_policy_as_good_as_new",
        discarding_everything_leaves_a_policy_as_good_as_new,
    ),
    (
        "no_storm_makes_a_policy_lose_its_way",
        no_storm_makes_a_policy_lose_its_way,
    ),
    (
        "the_same_seed_gives_the_same_choices",
        the_same_seed_gives_the_same_choices,
    ),
];

const FRAMES: u32 = 24;
const STEPS: u32 = 4000;
const KINDS: [MachineKind; 2] = [MachineKind::Bits, MachineKind::SoftFaults];

impl Candidate<'_> {
    /// Puts it to every test, each of which it names before.
    ///
    /// # Panics
    /// If it fails one.
    pub fn check(self) {
        for (test, run) in POLICY {
            println!("{}: {test}", self.name);
            run(self);
        }
    }

    fn policy(self, seed: u64) -> Box<dyn Policy> {
        (self.build)(FRAMES, seed)
    }
}

fn an_empty_memory_has_nothing_to_give(candidate: Candidate<'_>) {
    let name = candidate.name;
    let mut cache = Cache::new(candidate.policy(1), FRAMES, MachineKind::Bits);
    assert_eq!(cache.choose(), None, "{name}");
    cache.touch(7);
    cache.discard(7);
    assert_eq!(cache.choose(), None, "{name}");
    cache.policy.check();
}

fn wired_pages_stay_and_the_one_that_may_leave_is_found(candidate: Candidate<'_>) {
    let name = candidate.name;
    for kind in KINDS {
        let mut cache = Cache::new(candidate.policy(1), FRAMES, kind);
        (0..u64::from(FRAMES)).for_each(|page| {
            cache.touch(page);
            cache.set_wired(page, true);
        });
        assert_eq!(cache.choose(), None, "{name}");
        for page in [11, 0, 23] {
            cache.set_wired(page, false);
            assert_eq!(cache.choose(), cache.frame_of(page), "{name} {kind:?}");
            cache.set_wired(page, true);
        }
        cache.policy.check();
    }
}

fn choosing_removes_nothing(candidate: Candidate<'_>) {
    let name = candidate.name;
    let mut cache = Cache::new(candidate.policy(1), FRAMES, MachineKind::SoftFaults);
    (0..u64::from(FRAMES)).for_each(|page| _ = cache.touch(page));
    for _ in 0..200 {
        let frame = cache.choose().expect("every page may leave");
        assert!(cache.may_leave(frame), "{name}");
        cache.policy.check();
    }
    (0..u64::from(FRAMES)).for_each(|_| _ = cache.evict().expect("every page may leave"));
    assert_eq!(cache.choose(), None, "{name}");
}

fn a_page_that_was_kept_after_all_can_be_chosen_again(candidate: Candidate<'_>) {
    let mut cache = Cache::new(candidate.policy(1), 4, MachineKind::SoftFaults);
    (0..4).for_each(|page| _ = cache.touch(page));
    for _ in 0..50 {
        let page = cache.evict().expect("every page may leave");
        cache.load(page, Cause::Kept);
        cache.policy.check();
    }
    (0..4).for_each(|_| _ = cache.evict().expect("every page may leave"));
}

fn discarding_everything_leaves_a_policy_as_good_as_new(candidate: Candidate<'_>) {
    let name = candidate.name;
    let mut cache = Cache::new(candidate.policy(1), FRAMES, MachineKind::SoftFaults);
    for round in 0..20 {
        (0..60).for_each(|page| _ = cache.touch(round * 100 + page));
        cache
            .collect_resident()
            .into_iter()
            .for_each(|page| cache.discard(page));
        cache.policy.check();
        assert_eq!(cache.choose(), None, "{name}");
    }
}

/// A memory whose size changes, in which everything that can happen does.
struct Storm<'a> {
    name: &'a str,
    cache: Cache,
    random: SplitMix64,
    wired: BTreeSet<u64>,
    limit: u32,
    log: Vec<(u32, u64)>,
}

impl Storm<'_> {
    fn new(candidate: Candidate<'_>, kind: MachineKind, seed: u64) -> Storm<'_> {
        Storm {
            name: candidate.name,
            cache: Cache::new(candidate.policy(seed), FRAMES, kind),
            random: SplitMix64::new(seed),
            wired: BTreeSet::new(),
            limit: FRAMES,
            log: Vec::new(),
        }
    }

    fn step(&mut self, step: u32) {
        let page = self.draw_page();
        let is_resident = self.cache.frame_of(page).is_some();
        match self.random.below(100) {
            0..4 if is_resident && !self.wired.contains(&page) => self.cache.discard(page),
            4..8 if is_resident && self.wired.len() < self.limit as usize / 2 => {
                self.cache.set_wired(page, true);
                self.wired.insert(page);
            }
            8..14 => {
                if let Some(page) = self.wired.pop_first() {
                    self.cache.set_wired(page, false);
                }
            }
            14..16 => {
                self.limit = self.random.below(u64::from(FRAMES)) as u32 + 1;
                self.cache.policy.resize(self.limit);
                self.shrink(step, self.limit);
            }
            16..30 if !is_resident => {
                self.shrink(step, self.limit - 1);
                if self.has_room() {
                    self.cache.load(page, Cause::Prefetched);
                }
            }
            30..33 => {
                if let Some(page) = self.evict(step) {
                    self.cache.load(page, Cause::Kept);
                }
            }
            _ if is_resident => assert_ne!(self.touch(page), Touch::Hard),
            _ => {
                self.shrink(step, self.limit - 1);
                if self.has_room() {
                    assert_eq!(self.touch(page), Touch::Hard);
                }
            }
        }
        self.cache.policy.check();
    }

    /// Uses `page`, and makes up when it is used next for a policy that must know.
    fn touch(&mut self, page: u64) -> Touch {
        let touch = self.cache.touch(page);
        if self.cache.sees() == Sees::Future {
            let next = self.random.draw();
            self.cache.foresee(page, next);
        }
        touch
    }

    /// Evicts until no more than `most` pages are resident or none of them may leave.
    fn shrink(&mut self, step: u32, most: u32) {
        while self.resident() > most {
            if self.evict(step).is_none() {
                break;
            }
        }
    }

    fn evict(&mut self, step: u32) -> Option<u64> {
        let asked = self.cache.questions();
        let free = self.resident() as usize - self.wired.len();
        let chosen = self.cache.choose();
        let questions = self.cache.questions() - asked;
        assert!(
            questions <= 4 * u64::from(FRAMES),
            "{} asked {questions} times",
            self.name
        );
        assert_eq!(chosen.is_some(), free > 0, "{} at step {step}", self.name);
        assert!(
            chosen.is_none_or(|frame| self.cache.may_leave(frame)),
            "{} {step}",
            self.name
        );
        let page = self.cache.evict()?;
        self.log.push((step, page));
        Some(page)
    }

    fn draw_page(&mut self) -> u64 {
        // Four objects, two of them external; runs of neighbours; some pages far more often.
        let object = self.random.below(4);
        let index = match self.random.below(3) {
            0 => self.random.skewed_below(20),
            1 => self.random.below(40),
            _ => u64::from(self.log.len() as u32 / 2 % 40),
        };
        object << 32 | index
    }

    fn resident(&self) -> u32 {
        FRAMES - self.cache.frames_free() as u32
    }

    fn has_room(&self) -> bool {
        self.resident() < self.limit
    }
}

fn no_storm_makes_a_policy_lose_its_way(candidate: Candidate<'_>) {
    let name = candidate.name;
    for kind in KINDS {
        for seed in 0..8 {
            let mut storm = Storm::new(candidate, kind, seed);
            (0..STEPS).for_each(|step| storm.step(step));
            assert_eq!(storm.cache.misses.refusals, 0, "{name} {kind:?} {seed}");
            assert!(
                storm.log.len() > STEPS as usize / 10,
                "{name}: hardly anything left"
            );
        }
    }
}

fn the_same_seed_gives_the_same_choices(candidate: Candidate<'_>) {
    let name = candidate.name;
    for kind in KINDS {
        let run = |seed| {
            let mut storm = Storm::new(candidate, kind, seed);
            (0..STEPS).for_each(|step| storm.step(step));
            storm.log
        };
        assert_eq!(run(3), run(3), "{name} {kind:?}");
    }
}
