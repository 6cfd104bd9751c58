//! Finding memory: a live engine hears at once of large mappings, and of a heap's growth by
//! looking.
//!
//! It looks after 2 ms while the program's mappings change, and after twice as long each time they
//! do not, up to 64 ms (`Engine::look_at_size`). What a program touches of its heap before that is
//! filled by the host, which takes no fault of the engine's, and is adopted when it is found: page
//! by page, with nothing zeroed ahead. A lab that gave all of a heap to the engine at once would
//! foretell several times as many zero fills, and other page-ins: adopted pages come in another
//! order, and count as used when they are found.
//!
//! # Invariants
//! 1. A standing page's entry in the page table names no frame, and the core knows nothing of it.

use std::collections::BTreeSet;

use tidemark_core::id::{SpaceId, VirtPage};
use tidemark_core::policy::Sees;
use tidemark_core::time::Time;

use super::engine::{Alarm, World};

/// The pauses between looks, at the least and at the most.
const PAUSE_NS_LEAST: u64 = 2_000_000;
const PAUSE_NS_MOST: u64 = 64_000_000;
/// How soon adoption goes on when there was no frame.
const RETRY_NS: u64 = 1_000_000;
/// What the host takes to fill a page by itself.
const HOST_FILL_NS: u64 = 700;

/// What of a process's memory has not been found, and when it is looked for.
#[derive(Default)]
pub(super) struct Finding {
    /// Pieces of the heap: from this page to before that one.
    unfound: Vec<(u64, u64)>,
    /// Pages that the host has filled, and nobody has adopted.
    standing: BTreeSet<u64>,
    has_changed: bool,
    pause_ns: u64,
    next_look: u64,
}

impl Finding {
    /// Notes that something has been mapped or unmapped.
    pub(super) fn note_change(&mut self) {
        self.has_changed = true;
    }

    /// Whether the engine does not know yet that there is memory at `page`.
    pub(super) fn is_unfound(&self, page: u64) -> bool {
        let mut unfound = self.unfound.iter();
        unfound.any(|&(start, end)| (start..end).contains(&page))
    }

    fn grow(&mut self, start: u64, end: u64) {
        match self.unfound.iter_mut().find(|(_, last)| *last == start) {
            Some((_, last)) => *last = end,
            None => self.unfound.push((start, end)),
        }
    }

    /// Takes pages out that are unmapped. Answers those that stand.
    fn cut(&mut self, start: u64, end: u64) -> Vec<u64> {
        for (first, last) in std::mem::take(&mut self.unfound) {
            let parts = [(first, last.min(start)), (first.max(end), last)];
            let left = parts.into_iter().filter(|(first, last)| first < last);
            self.unfound.extend(left);
        }
        let gone: Vec<u64> = self.standing.range(start..end).copied().collect();
        for page in &gone {
            self.standing.remove(page);
        }
        gone
    }
}

impl World<'_> {
    /// Whether heaps are found by looking, as live. Not in step; and a policy that sees every
    /// reference would see some to pages that it has not been told of.
    pub(super) fn finds_late(&self) -> bool {
        let is_live = self.scenario.is_divided && !self.scenario.is_in_step;
        is_live && self.sees <= Sees::Bits
    }

    /// Begins to look for the memory of a process that has just got a space.
    pub(super) fn begin_looking(&mut self, process: usize, now: u64) {
        if self.finds_late() {
            self.processes[process].finding = Finding {
                pause_ns: PAUSE_NS_LEAST,
                ..Finding::default()
            };
            self.look_next(process, now + PAUSE_NS_LEAST);
        }
    }

    /// Grows a heap that the engine is still to find.
    pub(super) fn grow_unseen(&mut self, process: usize, start: u64, end: u64) {
        self.processes[process].finding.grow(start, end);
    }

    /// Forgets what stands in pages that a process has given up.
    pub(super) fn cut_unseen(&mut self, process: usize, space: SpaceId, start: u64, end: u64) {
        for page in self.processes[process].finding.cut(start, end) {
            self.memory.tables.remove_standing(space, VirtPage(page));
        }
    }

    /// Has the host fill the page that a thread wants, if the engine has not found that memory.
    pub(super) fn fill_unseen(&mut self, number: usize, running: usize) -> bool {
        let thread = &mut self.threads[running];
        let process = &mut self.processes[thread.process];
        let record = process.course.records[thread.next_record];
        let page = process.course.page_at(record.place());
        if !process.finding.is_unfound(page) {
            return false;
        }
        let space = process.space.expect("a running process has a space");
        process.finding.standing.insert(page);
        (thread.is_faulting, thread.after_fault) = (false, Some(false));
        self.memory.tables.let_stand(space, VirtPage(page));
        self.charge(number, HOST_FILL_NS);
        true
    }

    /// Looks for a process's memory, if it is time, and adopts what stands there.
    pub(super) fn sound_look(&mut self, process: usize, now: u64) {
        if self.processes[process].finding.next_look == now {
            self.find_memory(process, now);
        }
    }

    /// The same, whatever the time.
    pub(super) fn find_memory(&mut self, process: usize, now: u64) {
        let found = &mut self.processes[process];
        let Some(space) = found.space else { return };
        let memory = found.memory;
        let finding = &mut found.finding;
        finding.pause_ns = match std::mem::take(&mut finding.has_changed) {
            true => PAUSE_NS_LEAST,
            false => (finding.pause_ns * 2).min(PAUSE_NS_MOST),
        };
        let (unfound, pause_ns) = (std::mem::take(&mut finding.unfound), finding.pause_ns);
        self.turn_to(memory);
        for (start, end) in unfound {
            self.map_anonymous(space, start, end - start);
        }
        let is_all = self.adopt_standing(process, space, now);
        let pause_ns = if is_all { pause_ns } else { RETRY_NS };
        self.look_next(process, now + pause_ns);
    }

    fn adopt_standing(&mut self, process: usize, space: SpaceId, now: u64) -> bool {
        let finding = &mut self.processes[process].finding;
        let mut standing = std::mem::take(&mut finding.standing);
        if standing.is_empty() {
            return true;
        }
        while let Some(&page) = standing.first() {
            let memory = &mut self.memory;
            let (time, at) = (Time(now), VirtPage(page));
            if !memory
                .vm
                .handle_present(time, &mut memory.tables, space, at)
            {
                break;
            }
            standing.pop_first();
        }
        let is_all = standing.is_empty();
        self.processes[process].finding.standing = standing;
        let cost_ns = self.conclude(now);
        self.charge_nobody(now, cost_ns);
        is_all
    }

    fn look_next(&mut self, process: usize, at: u64) {
        self.processes[process].finding.next_look = at;
        self.set_alarm(at, Alarm::Look(process));
    }
}
