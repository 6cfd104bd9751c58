//! Finding memory: a live engine hears at once of large mappings that the program asks for, and of
//! its heap's growth and of what the C library maps for itself by looking.
//!
//! It looks after 2 ms while the program's mappings change, and after twice as long each time they
//! do not, up to 64 ms (`Engine::look_at_size`). What a program touches of such memory before that
//! is filled by the host, which takes no fault of the engine's, and is adopted when it is found:
//! page by page, with nothing zeroed ahead. A lab that gave all of it to the engine at once would
//! foretell several times as many zero fills, and other page-ins: adopted pages come in another
//! order, and count as used when they are found.
//!
//! Where a recorded heap could not grow, the C library has mapped large pieces in its place. A live
//! heap goes on growing by little, and so do they here: as far as they are touched.
//!
//! # Invariants
//! 1. A standing page's entry in the page table names no frame, and the core knows nothing of it.

use std::collections::BTreeSet;

use tidemark_core::id::{SpaceId, VirtPage};
use tidemark_core::seams::machine::Rights;
use tidemark_core::seams::policy::Sees;
use tidemark_core::time::Time;

use super::engine::{Alarm, World};

/// The pauses between looks, at the least and at the most.
const PAUSE_NS_LEAST: u64 = 2_000_000;
const PAUSE_NS_MOST: u64 = 64_000_000;
/// The delays of looks, each as often as the others: as was measured of a live engine on a
/// machine with two processors. Without that, the looks of a lab keep step with a heap that grows
/// at a steady pace: at some speeds of the program all come right after it has grown, at others
/// right before, and zero fills are two and a half times as many.
const LATE_NS: [u64; 10] = [
    10_000, 10_000, 20_000, 20_000, 30_000, 50_000, 100_000, 200_000, 400_000, 800_000,
];
/// The time after which adoption goes on when there was no frame.
const RETRY_NS: u64 = 1_000_000;
/// The time in which the host fills a page by itself.
const HOST_FILL_NS: u64 = 700;
/// The step by which a heap grows: the C library's 128 KiB, and the page that the request at hand
/// ends on.
const HEAP_STEP_PAGES: u64 = 33;

/// The memory of a process that has not been found, and the time at which it is looked for.
#[derive(Default)]
pub(super) struct Finding {
    unfound: Vec<Unfound>,
    /// The part that stands for more of the heap, and the heap has not grown to yet: from this page
    /// to before that one.
    ungrown: Vec<(u64, u64)>,
    /// Pages that the host has filled, and that are not adopted.
    standing: BTreeSet<u64>,
    has_changed: bool,
    pause_ns: u64,
    next_look: u64,
}

/// Memory that has not been found: from this page to before that one.
#[derive(Clone, Copy)]
struct Unfound {
    start: u64,
    end: u64,
    /// A mapping of its own, rather than more of the one below it.
    is_apart: bool,
}

impl Finding {
    /// Notes that something has been mapped or unmapped.
    pub(super) fn note_change(&mut self) {
        self.has_changed = true;
    }

    /// Returns true if the engine does not know that there is memory at `page`, which is being
    /// touched.
    fn meet(&mut self, page: u64) -> bool {
        let holds = |&(start, end): &(u64, u64)| (start..end).contains(&page);
        if let Some(place) = self.ungrown.iter().position(holds) {
            let (start, end) = self.ungrown[place];
            let steps = (page - start) / HEAP_STEP_PAGES + 1;
            let grown = end.min(start + steps * HEAP_STEP_PAGES);
            self.ungrown[place].0 = grown;
            self.ungrown.retain(|(start, end)| start < end);
            self.grow(start, grown);
            self.has_changed = true;
        }
        self.is_unfound(page)
    }

    fn is_unfound(&self, page: u64) -> bool {
        let mut unfound = self.unfound.iter();
        unfound.any(|part| (part.start..part.end).contains(&page))
    }

    fn grow(&mut self, start: u64, end: u64) {
        let mut unfound = self.unfound.iter_mut();
        match unfound.find(|part| part.end == start && !part.is_apart) {
            Some(part) => part.end = end,
            None => self.unfound.push(Unfound {
                start,
                end,
                is_apart: false,
            }),
        }
    }

    /// Takes pages out that are unmapped. Answers those that stand.
    fn cut(&mut self, start: u64, end: u64) -> Vec<u64> {
        let parts = |first: u64, last: u64| {
            let parts = [(first, last.min(start)), (first.max(end), last)];
            parts.into_iter().filter(|(first, last)| first < last)
        };
        for part in std::mem::take(&mut self.unfound) {
            let left = parts(part.start, part.end);
            self.unfound
                .extend(left.map(|(start, end)| Unfound { start, end, ..part }));
        }
        for (first, last) in std::mem::take(&mut self.ungrown) {
            self.ungrown.extend(parts(first, last));
        }
        let gone: Vec<u64> = self.standing.range(start..end).copied().collect();
        for page in &gone {
            self.standing.remove(page);
        }
        gone
    }
}

impl World<'_> {
    /// Returns true if memory is found by looking, as live. Not in step; and a policy that sees
    /// every reference would see some to pages that it has not been told of.
    pub(super) fn finds_late(&self) -> bool {
        let is_live = self.scenario.is_divided && !self.scenario.is_in_step;
        is_live && self.sees <= Sees::Bits
    }

    /// Begins to look for the memory of a process that has just got a space.
    pub(super) fn begin_looking(&mut self, process: usize, now: u64) {
        if self.finds_late() {
            let finding = &mut self.processes[process].finding;
            *finding = Finding {
                pause_ns: PAUSE_NS_LEAST,
                ungrown: std::mem::take(&mut finding.ungrown),
                ..Finding::default()
            };
            self.look_next(process, now + PAUSE_NS_LEAST);
        }
    }

    /// Grows a heap that the engine is still to find.
    pub(super) fn grow_unseen(&mut self, process: usize, start: u64, end: u64) {
        self.processes[process].finding.grow(start, end);
    }

    /// Lets a heap grow into these pages as they are touched.
    pub(super) fn let_grow(&mut self, process: usize, start: u64, end: u64) {
        self.processes[process].finding.ungrown.push((start, end));
    }

    /// A forked child's heap goes on growing where its parent's would.
    pub(super) fn inherit_growth(&mut self, child: usize, parent: usize) {
        let ungrown = self.processes[parent].finding.ungrown.clone();
        self.processes[child].finding.ungrown = ungrown;
    }

    /// Makes a mapping that the engine is still to find.
    pub(super) fn map_unseen(&mut self, process: usize, start: u64, end: u64) {
        self.processes[process].finding.unfound.push(Unfound {
            start,
            end,
            is_apart: true,
        });
    }

    /// Moves a mapping that the engine is still to find, and answers whether it is one.
    pub(super) fn move_unseen(
        &mut self,
        process: usize,
        space: SpaceId,
        (from, from_pages): (u64, u64),
        (to, to_pages): (u64, u64),
    ) -> bool {
        if !self.processes[process].finding.is_unfound(from) {
            return false;
        }
        let stood = self.processes[process].finding.cut(from, from + from_pages);
        for page in &stood {
            self.memory.tables.remove_standing(space, VirtPage(*page));
        }
        self.unmap(space, to, to_pages);
        self.map_unseen(process, to, to + to_pages);
        for page in stood.iter().map(|page| page - from) {
            if page < to_pages {
                self.processes[process].finding.standing.insert(to + page);
                self.memory.tables.let_stand(space, VirtPage(to + page));
            }
        }
        true
    }

    /// Forgets the contents of pages that a process has given up.
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
        if !process.finding.meet(page) {
            return false;
        }
        let space = process.space.expect("a running process has a space");
        (thread.is_faulting, thread.after_fault) = (false, Some(false));
        // Of two threads that fault on a page at a time, one finds it filled.
        if process.finding.standing.insert(page) {
            self.memory.tables.let_stand(space, VirtPage(page));
            self.charge(number, HOST_FILL_NS);
        }
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
        for Unfound {
            start,
            end,
            is_apart,
        } in unfound
        {
            match is_apart {
                true => self.map_new(space, start, end - start, Rights::Write),
                false => self.map_anonymous(space, start, end - start),
            }
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

    fn look_next(&mut self, process: usize, due: u64) {
        let draw = self.delays.draw() % LATE_NS.len() as u64;
        let at = due + LATE_NS[draw as usize];
        self.processes[process].finding.next_look = at;
        self.set_alarm(at, Alarm::Look(process));
    }
}
