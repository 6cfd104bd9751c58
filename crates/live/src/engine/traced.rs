//! A program that a debugger looks into.
//!
//! The kernel serves no fault for a debugger (`/proc/PID/mem`, `ptrace`): what is out of memory it
//! can't read. (`process_vm_readv` can.) So everything is brought in, as far as the budget has room
//! for all of it, and otherwise a line says how much would do. The engine takes each page for one
//! that a thread has touched. No thread does: if the [hand](crate::hand) did, the engine would wait
//! for it to end the sharing of pages while it waits for the engine.

use super::Engine;
use crate::parts::intake::Arrival;
use crate::parts::trouble::{pid, say};
use crate::parts::units;
use crate::parts::units::{page_of, pages_in};
use crate::sys::{PAGE, program, status};

/// The most faults that wait while more are made.
const PAGES_AT_ONCE: usize = 64;
/// The pause before more faults are made.
const PAUSE_NS: u64 = 200_000;
/// The most pages, used or not, that are gone through for this: a tenth of a second.
const WALKED_PAGES_MAX: u64 = 4 << 20;
/// The part of what is brought in that must be free beside it.
const ROOM_PART: u64 = 16;
/// The least frames that must be free beside them.
const ROOM_PAGES: u64 = 128;

impl Engine {
    /// Looks whether there is a debugger, and what it can't see.
    pub(super) fn look_for_tracer(&mut self) {
        let now = units::now();
        if !self.setup.mode.looks_for_memory() || !self.traced.begin_look(now) {
            return;
        }
        // A leak checker is a process that shares the memory, and sees all.
        let is_other = |tracer: &u32| *tracer != 0 && !program::shares_memory_with(*tracer);
        let tracer = status::tracer().filter(is_other);
        if self.traced.note_tracer(tracer.is_some(), now) {
            self.plan_bringing(tracer);
        }
    }

    /// Makes faults of some of the missing pages. Answers after how long to go on:
    /// `quiet_ns` if there is nothing.
    pub(super) fn bring(&mut self, quiet_ns: u64) -> u64 {
        let Some((start, end)) = self.traced.take_run() else {
            return quiet_ns;
        };
        let pages = PAGES_AT_ONCE.saturating_sub(self.intake.faults().len());
        let next = end.min(start + pages * PAGE);
        for address in (start..next).step_by(PAGE) {
            let frame = self.vm.frame_at(self.space, page_of(address));
            let is_there = frame.is_some_and(|frame| self.machine.is_mapped(frame));
            if !is_there && self.addresses.contains(address) {
                self.intake.faults_mut().arrive(Arrival {
                    address,
                    is_write: false,
                    thread: 0,
                    since: units::now(),
                });
            }
        }
        if next < end {
            self.traced.put_back(next, end);
        }
        PAUSE_NS
    }

    fn plan_bringing(&mut self, tracer: Option<u32>) {
        let others = u64::from(self.task.beside()) + self.line.resident_in_others();
        let wanted = |pages: u64| others + pages + (pages / ROOM_PART).max(ROOM_PAGES);
        let whole: u64 = self
            .addresses
            .managed()
            .iter()
            .map(|(start, end)| pages_in(start, end))
            .sum();
        if whole > WALKED_PAGES_MAX {
            return;
        }
        let (known, away, runs) = self.collect_away();
        let total = self.line.shared().frames_total();
        if wanted(whole) <= total {
            // A debugger can't see what was never touched, either, nor what lies beside it.
            let all = self.addresses.managed().iter().collect();
            self.traced.plan(all, away);
        } else if wanted(known) <= total {
            self.traced.plan(runs, away);
        } else if let Some(tracer) = tracer
            && away > 0
            && self.traced.take_word()
        {
            let pages = if whole <= 2 * known { whole } else { known };
            self.say_what_helps(tracer, away, wanted(pages));
        }
    }

    /// The number of pages that hold something, of those among them that are out of memory, and
    /// where these are.
    fn collect_away(&self) -> (u64, u64, Vec<(usize, usize)>) {
        let (mut runs, mut known, mut away) = (Vec::<(usize, usize)>::new(), 0, 0);
        for (start, end) in self.addresses.managed().iter() {
            for address in (start..end).step_by(PAGE) {
                let at = page_of(address);
                let frame = self.vm.frame_at(self.space, at);
                if frame.is_none() && self.vm.slot_at(self.space, at).is_none() {
                    continue;
                }
                known += 1;
                if frame.is_some_and(|frame| self.machine.is_mapped(frame)) {
                    continue;
                }
                away += 1;
                match runs.last_mut() {
                    Some(run) if run.1 == address => run.1 += PAGE,
                    _ => runs.push((address, address + PAGE)),
                }
            }
        }
        (known, away, runs)
    }

    /// Says what process `tracer` can't see, and that a budget of `wanted` pages helps.
    fn say_what_helps(&self, tracer: u32, away: u64, wanted: u64) {
        let mib = |pages: u64| (pages * PAGE as u64).div_ceil(1 << 20);
        let budget = mib(wanted) + 1;
        let helps = match wanted + 256 <= self.line.shared().frames_max() {
            true => format!("`tidemark ctl budget {budget}M` brings them in within seconds"),
            false => format!(
                "run it with `--memory-max {budget}M`: then `tidemark ctl budget {budget}M` brings \
                 them in"
            ),
        };
        say(&format!(
            "{} ({}): process {tracer} looks into it, and can't see the {} MiB that are out of \
             memory; {helps}",
            self.setup.name,
            pid(),
            mib(away),
        ));
    }
}
