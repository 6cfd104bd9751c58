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

use tidemark_core::id::{SpaceId, VirtPage};
use tidemark_core::seams::machine::Rights;
use tidemark_core::seams::policy::Sees;
use tidemark_core::time::Time;

use super::engine::{Alarm, World};
use super::unfound::{PAUSE_NS_LEAST, Part};

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
            self.processes[process].unfound.begin();
            self.look_next(process, now + PAUSE_NS_LEAST);
        }
    }

    /// Grows a heap that the engine is still to find.
    pub(super) fn grow_unseen(&mut self, process: usize, start: u64, end: u64) {
        self.processes[process].unfound.grow(start, end);
    }

    /// Lets a heap grow into these pages as they are touched.
    pub(super) fn let_grow(&mut self, process: usize, start: u64, end: u64) {
        self.processes[process].unfound.ungrown.push((start, end));
    }

    /// A forked child's heap goes on growing where its parent's would.
    pub(super) fn inherit_growth(&mut self, child: usize, parent: usize) {
        let ungrown = self.processes[parent].unfound.ungrown.clone();
        self.processes[child].unfound.ungrown = ungrown;
    }

    /// Makes a mapping that the engine is still to find.
    pub(super) fn map_unseen(&mut self, process: usize, start: u64, end: u64) {
        self.processes[process].unfound.map(start, end);
    }

    /// Moves a mapping that the engine is still to find, and answers whether it is one.
    pub(super) fn move_unseen(
        &mut self,
        process: usize,
        space: SpaceId,
        (from, from_pages): (u64, u64),
        (to, to_pages): (u64, u64),
    ) -> bool {
        if !self.processes[process].unfound.is_unfound(from) {
            return false;
        }
        let stood = self.processes[process].unfound.cut(from, from + from_pages);
        for page in &stood {
            self.memory.tables.remove_standing(space, VirtPage(*page));
        }
        self.unmap(space, to, to_pages);
        self.map_unseen(process, to, to + to_pages);
        for page in stood.iter().map(|page| page - from) {
            if page < to_pages {
                self.processes[process].unfound.standing.insert(to + page);
                self.memory.tables.let_stand(space, VirtPage(to + page));
            }
        }
        true
    }

    /// Forgets the contents of pages that a process has given up.
    pub(super) fn cut_unseen(&mut self, process: usize, space: SpaceId, start: u64, end: u64) {
        for page in self.processes[process].unfound.cut(start, end) {
            self.memory.tables.remove_standing(space, VirtPage(page));
        }
    }

    /// Has the host fill the page that a thread wants, if the engine has not found that memory.
    pub(super) fn fill_unseen(&mut self, number: usize, running: usize) -> bool {
        let thread = &mut self.threads[running];
        let process = &mut self.processes[thread.process];
        let record = process.course.records[thread.next_record];
        let page = process.course.page_at(record.place());
        if !process.unfound.meet(page) {
            return false;
        }
        let space = process.space.expect("a running process has a space");
        (thread.is_faulting, thread.after_fault) = (false, Some(false));
        // Of two threads that fault on a page at a time, one finds it filled.
        if process.unfound.standing.insert(page) {
            self.memory.tables.let_stand(space, VirtPage(page));
            self.charge(number, HOST_FILL_NS);
        }
        true
    }

    /// Looks for a process's memory, if it is time, and adopts what stands there.
    pub(super) fn sound_look(&mut self, process: usize, now: u64) {
        if self.processes[process].unfound.next_look == now {
            self.find_memory(process, now);
        }
    }

    /// Looks for a process's memory at once, and adopts the pages that it finds.
    pub(super) fn find_memory(&mut self, process: usize, now: u64) {
        let found = &mut self.processes[process];
        let Some(space) = found.space else { return };
        let memory = found.memory;
        let (parts, pause_ns) = found.unfound.take();
        self.turn_to(memory);
        for Part {
            start,
            end,
            is_apart,
        } in parts
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
        let unfound = &mut self.processes[process].unfound;
        let mut standing = std::mem::take(&mut unfound.standing);
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
        self.processes[process].unfound.standing = standing;
        let cost_ns = self.conclude(now);
        self.charge_nobody(now, cost_ns);
        is_all
    }

    fn look_next(&mut self, process: usize, due: u64) {
        let draw = self.delays.draw() % LATE_NS.len() as u64;
        let at = due + LATE_NS[draw as usize];
        self.processes[process].unfound.next_look = at;
        self.set_alarm(at, Alarm::Look(process));
    }
}
