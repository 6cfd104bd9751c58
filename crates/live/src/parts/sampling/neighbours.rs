//! Neighbours of a page that is written for the first time, while references are recorded.
//!
//! A first touch costs a fault through this engine, many times what the kernel takes for one by
//! itself. So the *block* around a page that is written gets the kernel's shared page of zeros
//! wherever there is nothing yet. Who writes to such a *blank* page is served by the kernel
//! alone, with a page of its own. Which ones those are the kernel tells when it is asked: many
//! times a second, at the end of a window, before a fork, and before the process leaves its memory.
//! They are adopted then, like any page that is found.
//!
//! A program that reads a blank page leaves no trace; so only writes bring blank pages. One that is
//! unmapped before it is looked at leaves none either: so blocks are small in small mappings, and
//! the latest ones are looked at when the next is made.
//!
//! # Invariants
//! 1. A blank page is one that the core knows nothing of. What the program unmaps, empties or
//!    moves is taken out of the set before anything else can stand there.
//! 2. For each blank page there is a frame, as far as frames go: its write needs no room made.

use std::collections::VecDeque;

use tidemark_core::time::Time;

use crate::ranges::Ranges;
use crate::sys::PAGE;
use crate::sys::pagemap::{Pagemap, RUNS_MAX};

/// The number of blocks that count as the latest.
const LATEST: usize = 4;
/// The pause between two looks is at least this.
const LOOK_NS: u64 = 20_000_000;
/// The least pause between two looks, as a multiple of the last one's duration.
const LOOK_SHARE: u64 = 16;

/// The blank pages of a process.
pub struct Neighbours {
    blank: Ranges,
    latest: VecDeque<(usize, usize)>,
    next_look: Time,
    /// The program's time at the last look: while that stands still, nothing is written.
    looked_at: u64,
    /// True if the program is about to end: what is touched from now on is found at once.
    is_ending: bool,
    runs: Runs,
}

/// The result of a look.
pub struct Runs {
    /// Pages that are blank still.
    pub blank: Vec<(usize, usize)>,
    /// Pages that have been written to.
    pub written: Vec<(usize, usize)>,
}

impl Neighbours {
    /// None yet.
    pub fn new() -> Neighbours {
        Neighbours {
            blank: Ranges::new(),
            latest: VecDeque::with_capacity(LATEST),
            next_look: Time(0),
            looked_at: 0,
            is_ending: false,
            runs: Runs {
                blank: Vec::with_capacity(RUNS_MAX),
                written: Vec::with_capacity(RUNS_MAX),
            },
        }
    }

    /// Takes in that a range is blank.
    pub fn insert(&mut self, start: usize, end: usize) {
        self.blank.insert(start, end);
    }

    /// Forgets what is blank of a range.
    pub fn remove(&mut self, start: usize, end: usize) {
        self.blank.remove(start, end);
    }

    /// Brings what is blank of a range to where that has moved.
    pub fn lay_down(&mut self, start: usize, parts: &[(usize, usize)]) {
        for (from, to) in parts {
            self.blank.insert(start + from, start + to);
        }
    }

    /// Takes in that of `before`, which were blank, those of `blank` are so still.
    pub fn replace(&mut self, before: &[(usize, usize)], blank: &[(usize, usize)]) {
        for &(start, end) in before {
            self.blank.remove(start, end);
        }
        for &(start, end) in blank {
            self.blank.insert(start, end);
        }
    }

    /// Returns true if the page at an address is blank.
    pub fn contains(&self, address: usize) -> bool {
        self.blank.contains(address)
    }

    /// The number of blank pages.
    pub fn pages(&self) -> u64 {
        (self.blank.bytes() / PAGE) as u64
    }

    /// All that is blank.
    pub fn collect(&self) -> Vec<(usize, usize)> {
        self.blank.iter().collect()
    }

    /// The blank ranges that reach into a range.
    pub fn collect_overlaps(&self, start: usize, end: usize) -> Vec<(usize, usize)> {
        self.blank.collect_overlaps(start, end)
    }

    /// The blank parts of the latest blocks.
    pub fn collect_latest(&self) -> Vec<(usize, usize)> {
        let blank = self.latest.iter().flat_map(|&(start, end)| {
            let parts = self.blank.collect_overlaps(start, end).into_iter();
            parts.map(move |(from, to)| (from.max(start), to.min(end)))
        });
        blank.collect()
    }

    /// Remembers a block as the latest.
    pub fn note_block(&mut self, start: usize, end: usize) {
        self.latest.truncate(LATEST - 1);
        self.latest.push_front((start, end));
    }

    /// Makes no more blank pages: the program is about to end.
    pub fn end(&mut self) {
        self.is_ending = true;
    }

    /// Returns true if no more are made.
    pub fn is_ending(&self) -> bool {
        self.is_ending
    }

    /// The time of the next look.
    pub fn due(&self) -> Time {
        match self.blank.is_empty() {
            true => Time(u64::MAX),
            false => self.next_look,
        }
    }

    /// Returns true if something may have been written since the last look, at which the program's
    /// time was another than `time`.
    pub fn begin_look(&mut self, time: u64, now: Time) -> bool {
        if time == self.looked_at {
            self.next_look = now.after_ns(LOOK_NS);
            return false;
        }
        self.looked_at = time;
        true
    }

    /// Plans the next look, after one that took from `began` to `now`.
    pub fn end_look(&mut self, began: Time, now: Time) {
        let pause = (now.since_ns(began) * LOOK_SHARE).max(LOOK_NS);
        self.next_look = now.after_ns(pause);
    }

    /// Lends the memory for a look.
    pub fn take_runs(&mut self) -> Runs {
        let mut runs = std::mem::replace(&mut self.runs, Runs::none());
        runs.blank.clear();
        runs.written.clear();
        runs
    }

    /// Takes that memory back.
    pub fn return_runs(&mut self, runs: Runs) {
        self.runs = runs;
    }
}

impl Runs {
    /// Without memory, to stand in for one that is at work.
    pub fn none() -> Runs {
        Runs {
            blank: Vec::new(),
            written: Vec::new(),
        }
    }

    /// Looks at all of a range.
    pub fn look_in(&mut self, pages: &Pagemap, mut start: usize, end: usize) {
        while start < end {
            let walked = pages.find_own(start, end, &mut self.blank, &mut self.written);
            start = walked.expect("the kernel answers about this process's own pages");
        }
    }
}
