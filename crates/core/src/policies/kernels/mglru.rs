//! MGLRU: Linux's multi-generational lists.
//!
//! Pages stand in generations, numbered as time goes on, internal and external ones apart. A page
//! that a fault brings belongs to the youngest; the oldest of a kind gives up its pages. When few
//! generations are left, or the young ones have come to hold too little or the old ones too much,
//! all pages are asked at once whether they were used, and those that were become a new
//! generation. A page that turns out to have been used when it is its turn to leave becomes one of
//! the youngest.
//!
//! Which kind gives up pages follows their refaults: the kind whose pages come back more often for
//! each that left is spared, as weighed by `swappiness`. Within a kind pages stand in two tiers,
//! those that have come back before and the others, and the former are passed on to the next
//! generation while they come back more often.
//!
//! # Departures
//! Ageing asks every resident page, where the kernel walks page tables and skips what its filters
//! say is not worth it. The kernel's looking around a used page for others is left out: the next
//! ageing finds them. Uses through file descriptors, which make up the other tiers, do not occur.
//! There is no killing for want of old pages (`min_ttl_ms`).

use alloc::vec::Vec;

use crate::collections::column::Column;
use crate::collections::queue::Queues;
use crate::id::{FrameId, PageId};
use crate::policies::parts::ghost_list::{Ghost, Ghosts};
use crate::policies::parts::lists::pull_any;
use crate::policies::settings::Settings;
use crate::seams::policy::{
    Arrival, Cause, Departure, Description, KernelUse, Knob, Policy, Probe, Sees, SimulatedPolicy,
    SpacePolicy,
};

/// The description of `mglru`.
pub static DESCRIPTION: Description = Description {
    name: "mglru",
    summary: "pages are sorted into generations; a new one gets the pages used since the last",
    lineage: &["Yu Zhao 2021-2022 (lru_gen)", "Linux 6.12 (mm/vmscan.c)"],
    sees: Sees::Bits,
    knobs: &[Knob {
        name: "swappiness",
        meaning: "how readily internal pages leave: 0 only if they must, 200 first",
        min: 0,
        max: 200,
        default: 60,
    }],
};

/// MAX_NR_GENS and MIN_NR_GENS.
const GENERATIONS_MAX: u64 = 4;
const GENERATIONS_MIN: u64 = 2;
const LISTS: u8 = 8;
const ANON: usize = 0;
const FILE: usize = 1;
const KINDS: usize = 2;
/// Pages that came back never and were used once by system calls, and others.
const TIERS: usize = 2;
/// MIN_LRU_BATCH: fewer refaults than that say nothing.
const REFAULTS_LEAST: u64 = 64;

#[derive(Clone, Copy, Default)]
struct Page {
    is_file: bool,
    /// Is of the second tier.
    has_refaulted: bool,
}

impl Page {
    fn kind(self) -> usize {
        usize::from(self.is_file)
    }
}

/// The counts of a tier in the oldest generation, and on average of those before.
#[derive(Clone, Copy, Default)]
struct Tally {
    refaulted: u64,
    /// Pages that left, or were passed on.
    total: u64,
    average_refaulted: u64,
    average_total: u64,
}

/// A tally with its weight, to be compared with another.
#[derive(Clone, Copy)]
struct Position {
    refaulted: u64,
    total: u64,
    gain: u64,
}

struct Mglru {
    queues: Queues,
    pages: Column<Page>,
    ghosts: Ghosts,
    youngest: u64,
    oldest: [u64; KINDS],
    tallies: [[Tally; TIERS]; KINDS],
    swappiness: u64,
    frames: u32,
}

/// Makes an `mglru`.
pub fn build(settings: Settings) -> impl Policy {
    Mglru::new(&settings)
}

impl Mglru {
    fn new(settings: &Settings) -> Mglru {
        Mglru {
            queues: Queues::new(LISTS, settings.frames_max),
            pages: Column::new(Page::default(), settings.frames_max as usize),
            ghosts: Ghosts::new(settings.frames_max.max(1)),
            youngest: GENERATIONS_MIN,
            oldest: [0; KINDS],
            tallies: [[Tally::default(); TIERS]; KINDS],
            swappiness: settings.knobs[0],
            frames: settings.frames,
        }
    }
}

impl Policy for Mglru {
    fn describe(&self) -> &'static Description {
        &DESCRIPTION
    }

    fn page_entered(&mut self, frame: FrameId, arrival: &Arrival) {
        let mut page = Page {
            is_file: arrival.is_external,
            has_refaulted: false,
        };
        let kind = page.kind();
        if let Some(found) = self.ghosts.take(arrival.page) {
            let tier = usize::from(found.ghost.was_hot);
            // Only pages that left from the generation that is still the oldest count for it.
            if found.ghost.seen == self.oldest[kind] && arrival.cause != Cause::Kept {
                self.tallies[kind][tier].refaulted += 1;
                page.has_refaulted = arrival.cause == Cause::Fetched;
            }
        }
        let generation = match arrival.cause {
            Cause::ZeroAhead | Cause::Prefetched | Cause::Cleaned => {
                let is_wide = self.youngest - self.oldest[kind] > GENERATIONS_MIN;
                self.oldest[kind] + u64::from(is_wide)
            }
            Cause::ZeroFill | Cause::Fetched | Cause::Copied | Cause::Adopted | Cause::Kept => {
                self.youngest
            }
        };
        self.pages[frame.index()] = page;
        self.place(frame, generation);
    }

    fn page_left(&mut self, frame: FrameId, page: PageId, departure: Departure) {
        self.queues.remove(frame.0);
        let known = self.pages[frame.index()];
        let (kind, has_refaulted) = (known.kind(), known.has_refaulted);
        if departure == Departure::Evicted {
            self.tallies[kind][usize::from(has_refaulted)].total += 1;
            let ghost = Ghost {
                page,
                seen: self.oldest[kind],
                was_hot: has_refaulted,
            };
            self.ghosts.remember(ghost, self.frames);
        }
    }

    fn page_rescued(&mut self, frame: FrameId) {
        self.place(frame, self.youngest);
    }

    fn page_copied(&mut self, frame: FrameId, kernel_use: KernelUse) -> bool {
        // Uses through descriptors make a tier, not a generation.
        self.pages[frame.index()].has_refaulted |= kernel_use == KernelUse::Again;
        true
    }

    fn choose(&mut self, probe: &mut Probe<'_>) -> Option<FrameId> {
        for _ in 0..GENERATIONS_MAX {
            self.drop_empty_generations();
            if self.needs_ageing() {
                self.age(probe);
            }
            let kind = self.find_kind();
            let found = self.find_in(kind, probe);
            let found = found.or_else(|| self.find_in(1 - kind, probe));
            if found.is_some() {
                return found;
            }
        }
        let lists: Vec<u8> = (self.oldest[ANON].min(self.oldest[FILE])..=self.youngest)
            .flat_map(|generation| [list_of(FILE, generation), list_of(ANON, generation)])
            .collect();
        pull_any(&mut self.queues, &lists, probe)
    }

    fn resize(&mut self, frames: u32) {
        self.frames = frames;
    }

    fn check(&self) {
        self.queues.check();
        self.ghosts.check();
        for kind in [ANON, FILE] {
            let count = self.youngest - self.oldest[kind] + 1;
            assert!((GENERATIONS_MIN..=GENERATIONS_MAX).contains(&count));
            for generation in self.youngest + 1..self.oldest[kind] + GENERATIONS_MAX {
                let length = self.queues.length(list_of(kind, generation));
                assert_eq!(length, 0, "a page of no generation");
            }
            for generation in 0..GENERATIONS_MAX {
                for frame in self.queues.iter(list_of(kind, generation)) {
                    assert_eq!(self.pages[frame as usize].kind(), kind);
                }
            }
        }
    }
}

impl SimulatedPolicy for Mglru {
    fn pages_ahead(&self, wanted: &[PageId], leaving: &[PageId]) {
        self.ghosts.bring_near(wanted, leaving);
    }
}

impl SpacePolicy for Mglru {}

impl Mglru {
    /// Looks through the oldest generation of a kind for a page to give up. Pages that were used
    /// join the youngest; those of a tier that comes back too often are passed on.
    fn find_in(&mut self, kind: usize, probe: &mut Probe<'_>) -> Option<FrameId> {
        let is_protected = self.protects_refaulted(kind);
        let oldest = self.oldest[kind];
        let list = list_of(kind, oldest);
        for _ in 0..self.queues.length(list) {
            let frame = FrameId(self.queues.front(list)?);
            let page = self.pages[frame.index()];
            if page.has_refaulted && is_protected {
                self.tallies[kind][1].total += 1;
                self.place(frame, oldest + 1);
            } else if !probe.may_leave(frame) {
                self.queues.move_to_back(list, frame.0);
            } else if probe.take_referenced(frame) {
                self.place(frame, self.youngest);
            } else {
                return Some(frame);
            }
        }
        // What is left may not leave, and must not hold up the generations behind it.
        if self.queues.length(list) > 0 && self.youngest - oldest >= GENERATIONS_MIN {
            self.pass_on(kind);
        }
        None
    }

    /// Returns true if a new generation is due.
    fn needs_ageing(&self) -> bool {
        let oldest = match self.swappiness {
            0 => self.oldest[FILE],
            _ => self.oldest[ANON].min(self.oldest[FILE]),
        };
        if oldest + GENERATIONS_MIN > self.youngest {
            return true;
        }
        if oldest + GENERATIONS_MIN < self.youngest {
            return false;
        }
        let count = |generation: u64| -> u64 {
            let lists = [ANON, FILE].map(|kind| list_of(kind, generation));
            lists
                .map(|list| u64::from(self.queues.length(list)))
                .iter()
                .sum()
        };
        let total = u64::from(self.queues.total());
        let (young, old) = (count(self.youngest), count(self.youngest - GENERATIONS_MIN));
        young * 2 > total || old * 4 < total
    }

    /// Makes a generation of all pages that were used since the last was made.
    fn age(&mut self, probe: &mut Probe<'_>) {
        for kind in [ANON, FILE] {
            if self.youngest - self.oldest[kind] + 1 == GENERATIONS_MAX {
                self.pass_on(kind);
            }
        }
        self.youngest += 1;
        for kind in [ANON, FILE] {
            for generation in self.oldest[kind]..self.youngest {
                let list = list_of(kind, generation);
                for _ in 0..self.queues.length(list) {
                    let Some(frame) = self.queues.front(list).map(FrameId) else {
                        break;
                    };
                    let was_used = probe.take_referenced(frame);
                    let now = if was_used { self.youngest } else { generation };
                    self.place(frame, now);
                }
            }
        }
    }

    /// Ends the oldest generation of a kind: its pages become the first of the next.
    fn pass_on(&mut self, kind: usize) {
        let from = list_of(kind, self.oldest[kind]);
        let next = self.oldest[kind] + 1;
        while let Some(frame) = self.queues.back(from) {
            self.queues.remove(frame);
            self.queues.push_front(list_of(kind, next), frame);
        }
        self.end_oldest(kind);
    }

    fn drop_empty_generations(&mut self) {
        let is_empty = |policy: &Mglru, kind: usize, generation: u64| {
            policy.queues.length(list_of(kind, generation)) == 0
        };
        let mut ends = self.oldest;
        for kind in [ANON, FILE] {
            while ends[kind] + GENERATIONS_MIN <= self.youngest && is_empty(self, kind, ends[kind])
            {
                ends[kind] += 1;
            }
        }
        if self.swappiness > 0 {
            // The kinds go on together, so that their refaults can be compared.
            ends[ANON] = ends[ANON].min(ends[FILE]);
            ends[FILE] = ends[ANON].max(self.oldest[FILE]);
        }
        for kind in [ANON, FILE] {
            while self.oldest[kind] < ends[kind] {
                self.end_oldest(kind);
            }
        }
    }

    /// Counts what the oldest generation has shown into the averages, and goes on to the next.
    fn end_oldest(&mut self, kind: usize) {
        self.oldest[kind] += 1;
        for tally in &mut self.tallies[kind] {
            *tally = Tally {
                average_refaulted: (tally.average_refaulted + tally.refaulted) / 2,
                average_total: (tally.average_total + tally.total) / 2,
                ..Tally::default()
            };
        }
    }

    /// The kind that gives up a page.
    fn find_kind(&self) -> usize {
        match self.swappiness {
            0 => FILE,
            _ if self.oldest[ANON] < self.oldest[FILE] => ANON,
            1 => FILE,
            200 => ANON,
            swappiness => {
                let anon = self.position(ANON, 0, swappiness);
                let file = self.position(FILE, 0, 200 - swappiness);
                if file.is_better_than(anon) {
                    FILE
                } else {
                    ANON
                }
            }
        }
    }

    /// Returns true if pages that have come back before are passed on instead of given up.
    fn protects_refaulted(&self, kind: usize) -> bool {
        let first = self.position(kind, 0, 1);
        !self.position(kind, 1, 2).is_better_than(first)
    }

    fn position(&self, kind: usize, tier: usize, gain: u64) -> Position {
        let tally = self.tallies[kind][tier];
        Position {
            refaulted: tally.average_refaulted + tally.refaulted,
            total: tally.average_total + tally.total,
            gain,
        }
    }

    fn place(&mut self, frame: FrameId, generation: u64) {
        let list = list_of(self.pages[frame.index()].kind(), generation);
        self.queues.move_to_back(list, frame.0);
    }
}

impl Position {
    /// Returns true if pages here come back no more often than there, for each that left.
    fn is_better_than(self, other: Position) -> bool {
        let here = self.refaulted * (other.total + REFAULTS_LEAST) * other.gain;
        let there = (other.refaulted + 1) * self.total * self.gain;
        self.refaulted < REFAULTS_LEAST || here <= there
    }
}

fn list_of(kind: usize, generation: u64) -> u8 {
    (generation % GENERATIONS_MAX) as u8 + kind as u8 * GENERATIONS_MAX as u8
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policies::parts::bench::{Bench, settings};

    fn policy(frames: u32) -> (Mglru, Bench) {
        let mut bench = Bench::new(frames);
        let mut policy = Mglru::new(&settings(frames, &[60]));
        (0..frames).for_each(|number| bench.bring(&mut policy, number, Cause::ZeroFill));
        (policy, bench)
    }

    fn generation(policy: &Mglru, frame: u32) -> u64 {
        let list = policy.queues.list_of(frame);
        let kind = policy.pages[frame as usize].kind();
        let mut known = policy.oldest[kind]..=policy.youngest;
        let found = known.find(|&generation| Some(list_of(kind, generation)) == list);
        found.unwrap()
    }

    fn generations(policy: &Mglru) -> Vec<u64> {
        let frames = 0..policy.pages.len() as u32;
        frames.map(|frame| generation(policy, frame)).collect()
    }

    #[test]
    fn what_was_used_becomes_a_generation_of_its_own() {
        let (mut policy, mut bench) = policy(4);
        assert_eq!(generations(&policy), [2, 2, 2, 2]);
        bench.touch(&[1, 3]);
        policy.age(&mut bench.probe());
        assert_eq!(generations(&policy), [2, 3, 2, 3]);
        bench.touch(&[1]);
        policy.age(&mut bench.probe());
        assert_eq!(generations(&policy), [2, 4, 2, 3]);
        policy.check();
    }

    #[test]
    fn there_are_two_to_four_generations() {
        let (mut policy, mut bench) = policy(4);
        for round in 0..10 {
            bench.touch(&[round % 4]);
            policy.age(&mut bench.probe());
            policy.check();
        }
        // A page unused for long is in the oldest of four.
        assert_eq!(policy.youngest - policy.oldest[ANON], 3);
        assert_eq!(policy.youngest, 12);
    }

    #[test]
    fn the_oldest_generation_gives_up_its_pages_but_for_those_in_use() {
        let (mut policy, mut bench) = policy(6);
        bench.touch(&[0, 1]);
        policy.age(&mut bench.probe());
        bench.touch(&[2]);
        assert_eq!(bench.evict_one(&mut policy), Some(3));
        assert_eq!(generation(&policy, 2), policy.youngest);
        assert_eq!(bench.evict_one(&mut policy), Some(4));
    }

    #[test]
    fn what_is_read_ahead_is_not_young() {
        let (mut policy, mut bench) = policy(4);
        bench.evict(&mut policy, 3);
        bench.bring(&mut policy, 3, Cause::Prefetched);
        assert_eq!(generation(&policy, 3), policy.oldest[ANON]);
        policy.page_rescued(FrameId(3));
        assert_eq!(generation(&policy, 3), policy.youngest);
    }

    #[test]
    fn the_kind_that_comes_back_more_often_is_spared() {
        let (mut policy, _) = policy(4);
        // Fewer than 64 refaults say nothing, and files go first.
        policy.tallies[FILE][0].refaulted = 63;
        policy.tallies[FILE][0].total = 64;
        assert_eq!(policy.find_kind(), FILE);
        policy.tallies[FILE][0].refaulted = 640;
        policy.tallies[FILE][0].total = 1000;
        assert_eq!(policy.find_kind(), ANON);
        policy.tallies[ANON][0].refaulted = 900;
        policy.tallies[ANON][0].total = 1000;
        assert_eq!(policy.find_kind(), FILE);
        // Half of what a generation has shown is forgotten with each that follows.
        policy.end_oldest(ANON);
        policy.end_oldest(ANON);
        let tally = policy.tallies[ANON][0];
        assert_eq!((tally.average_refaulted, tally.average_total), (225, 250));
    }
}
