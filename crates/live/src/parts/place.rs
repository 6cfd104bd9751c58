//! Keeping the engine and the threads whose faults it serves on one processor.
//!
//! A fault served on the processor of the thread that waits costs a small part of one that wakes
//! another processor, and each page that is moved while the program runs elsewhere interrupts it
//! there (measured on virtual machines with two processors: 17 to 25 against 50 to 100 µs for a
//! fault and what follows it). So the engine goes where most faults come from. Where that is not
//! enough, because the scheduler wakes a thread on a processor that is idle, threads that fault are
//! *confined* to the engine's for a series. Threads that mostly wait for pages are faster so; those
//! that compute between their faults are not. Which they are is measured: faults are counted while
//! threads go where they like, for a *window*, and then for the series. If that was clearly better,
//! the next is twice as long; if not, they are left alone for a while.
//!
//! # Invariants
//! 1. A thread is confined while it waits for a page. What it could use before is restored at the
//!    end of the series, unless it has been changed meanwhile.
//! 2. What a thread starts in a series is confined as well: other threads of the process are
//!    released with it, a fork waits for the end of the series, and another program that is
//!    executed by a child finds out by itself, from its parent's record.

use rustix::thread::CpuSet;

use tidemark_core::time::Time;

use super::gauges::Gauges;
use crate::ranges::Ranges;
use crate::shared::{Counter, Process, Shared};
use crate::sys::tasks;
use crate::sys::thread::{self, CpuFinder};

/// One fault in this many is looked at: to ask where a thread runs costs three system calls. An odd
/// number: two threads that take turns are looked at in turn, too.
const SAMPLE_EVERY: u32 = 5;
/// While faults come from where the engine is, the number doubles up to this.
const SAMPLE_EVERY_MOST: u32 = 47;
/// One look in this many is made where the answer has to come from the kernel as text.
const DEAR_EVERY: u32 = 3;
/// The engine moves when this many samples in a row came from the same other processor.
const SAMPLES_AGREEING: u32 = 2;
/// The time for which a thread waits awake for a page from the disk, in in-thread mode. Falling
/// asleep and being woken takes 5 us, and much longer on a virtual machine whose processor halts
/// meanwhile; a page comes from a fast disk in 40 to 100 us.
pub const AWAKE_NS: u64 = 150_000;
/// A window is this many faults.
const WINDOW_FAULTS: u32 = 64;
/// A window counts only if it is no longer than this: a gain of 45 µs a fault, at most, is little
/// of 250.
const WINDOW_NS_MOST: u64 = WINDOW_FAULTS as u64 * 250_000;
/// At least this part of those that were looked up must come from another processor.
const AWAY_PART: u32 = 4;
/// The length of a series at first.
const SERIES_NS_LEAST: u64 = 16_000_000;
/// The longest such time: it doubles up to this.
const SERIES_NS_MOST: u64 = 256_000_000;
/// Better is this many faults in the time of ten.
const BETTER_FAULTS: u64 = 11;
/// The time for which threads are left alone at first.
const PAUSE_NS_LEAST: u64 = SERIES_NS_LEAST;
/// The longest such time: it doubles up to this.
const PAUSE_NS_MOST: u64 = 1_000_000_000;
/// With more threads than this none is confined: to look after them would take too long.
const THREADS_MAX: usize = 64;

/// The processors on which the engine runs, and from which faults come.
pub struct Place {
    finder: Option<CpuFinder>,
    allowed: Option<CpuSet>,
    disk: Option<u32>,
    /// One fault in this many is looked at now.
    sample_every: u32,
    /// The number of faults before the next one that is looked at.
    until_sample: u32,
    /// The number of looks so far.
    looks: u32,
    /// The thread whose place is to be looked up.
    sample: Option<u32>,
    last_cpu: u32,
    agreeing: u32,
    own_cpu: Option<u32>,
    count: Count,
    series: Option<Series>,
    series_ns: u64,
    pause_ns: u64,
    next: Time,
    /// The processor of the last series, and what a thread could use before: children that were
    /// made in it may be confined.
    last: Option<(u32, CpuSet)>,
}

/// Faults of a window or a series.
#[derive(Clone, Copy, Default)]
struct Count {
    since: Time,
    faults: u32,
    /// The number that were looked up.
    samples: u32,
    /// The number of those that came from another processor than the engine's.
    away: u32,
}

/// A time in which threads that fault are confined to one processor.
struct Series {
    processor: u32,
    /// The time a fault took in the window before.
    free_ns: u64,
    /// The confined threads, with what they could use before.
    confined: Vec<(u32, CpuSet)>,
    /// The threads there were at the beginning.
    threads: Vec<u32>,
}

impl Place {
    /// `disk` is the processor that hears from the disk of the swap store, if one does.
    pub fn new(finder: Option<CpuFinder>, disk: Option<u32>) -> Place {
        // Without the right to go first the engine goes with the others.
        let _ = thread::set_nice(-10);
        Place {
            finder,
            allowed: thread::allowed().ok(),
            disk,
            sample_every: SAMPLE_EVERY,
            until_sample: SAMPLE_EVERY,
            looks: 0,
            sample: None,
            last_cpu: u32::MAX,
            agreeing: 0,
            own_cpu: None,
            count: Count::default(),
            series: None,
            series_ns: SERIES_NS_LEAST,
            pause_ns: PAUSE_NS_LEAST,
            next: Time(0),
            last: None,
        }
    }

    /// Learns that `thread` has faulted. What follows from it has time until the fault is served.
    pub fn note_fault(&mut self, thread: u32) {
        self.sample_if_due(|| Some(thread));
        self.count.faults += 1;
    }

    /// Learns that the program has changed its memory. A thread waits for the engine then; it is
    /// known which one where there is one alone.
    pub fn note_change(&mut self) {
        self.sample_if_due(tasks::only);
    }

    /// Has the place of a thread looked up, if it is time.
    fn sample_if_due(&mut self, thread: impl FnOnce() -> Option<u32>) {
        self.until_sample = self.until_sample.saturating_sub(1);
        if self.until_sample == 0 && self.series.is_none() {
            self.sample = thread();
            self.until_sample = self.sample_every;
        }
    }

    /// Decides whether threads are confined, and confines `thread`, which waits for a page, if they
    /// are. One that the kernel has no number for is left alone.
    pub fn keep_near(&mut self, thread: u32, now: Time, gauges: &mut Gauges) {
        let lasted_ns = now.since_ns(self.count.since);
        if self.series.is_some() {
            self.end_if_over(now);
        } else if lasted_ns > WINDOW_NS_MOST {
            self.begin_window(now);
        } else if self.count.faults >= WINDOW_FAULTS {
            let free_ns = lasted_ns / u64::from(self.count.faults);
            let is_scattered = self.count.away * AWAY_PART >= self.count.samples.max(1);
            self.begin_window(now);
            if now >= self.next && is_scattered {
                self.begin_series(free_ns, gauges);
            }
        }
        if let Some(series) = &mut self.series
            && thread != 0
        {
            series.confine(thread);
        }
    }

    fn begin_window(&mut self, since: Time) {
        self.count = Count {
            since,
            ..Count::default()
        };
    }

    fn begin_series(&mut self, free_ns: u64, gauges: &mut Gauges) {
        let is_allowed = |cpu: &u32| self.allowed.is_some_and(|set| set.is_set(*cpu as usize));
        let own = self.own_cpu.unwrap_or_else(thread::current_cpu);
        let processor = self.disk.filter(is_allowed).unwrap_or(own);
        let mut threads = Vec::new();
        let is_known = thread::collect_threads(&mut threads).is_ok();
        if !is_known || threads.len() > THREADS_MAX {
            return;
        }
        if self.own_cpu != Some(processor) {
            self.go_to(processor, gauges);
        }
        if self.own_cpu != Some(processor) {
            return;
        }
        self.series = Some(Series {
            processor,
            free_ns,
            confined: Vec::new(),
            threads,
        });
    }

    /// Returns true if there is a series.
    pub fn is_confining(&self) -> bool {
        self.series.is_some()
    }

    /// The end of the series, if there is one.
    pub fn due(&self) -> Option<Time> {
        let end = self.count.since.after_ns(self.series_ns);
        self.series.is_some().then_some(end)
    }

    /// Ends a series that has lasted long enough.
    pub fn end_if_over(&mut self, now: Time) {
        if self.due().is_none_or(|due| now < due) {
            return;
        }
        let lasted_ns = now.since_ns(self.count.since);
        let together_ns = lasted_ns / u64::from(self.count.faults.max(1));
        if let Some(series) = self.release() {
            self.judge(series.free_ns, together_ns, now);
        }
        self.begin_window(now);
    }

    /// Ends a series before its time, and begins none for a while: threads or programs are about to
    /// be started.
    pub fn let_go(&mut self, now: Time) {
        self.release();
        self.next = self.next.max(now.after_ns(self.pause_ns));
        self.begin_window(now);
    }

    fn release(&mut self) -> Option<Series> {
        let series = self.series.take()?;
        series.release();
        let confined = series.confined.first();
        self.last = confined.map(|(_, allowed)| (series.processor, *allowed));
        Some(series)
    }

    /// Ends a series, and lets the engine go anywhere: a child that is confined to the same
    /// processor would run only while the engine sleeps.
    pub fn roam(&mut self, now: Time) {
        self.let_go(now);
        if let Some(allowed) = &self.allowed {
            // If it may not any more, it stays where it is.
            let _ = thread::stay_anywhere(allowed);
            self.own_cpu = None;
        }
    }

    /// Lets children of this process that were made in the last series go where they may.
    pub fn release_children(&self) {
        let Some((processor, allowed)) = self.last else {
            return;
        };
        let only = thread::only(processor);
        for child in thread::children() {
            if thread::allowed_to(child).ok() == only {
                let _ = thread::allow(child, &allowed);
            }
        }
    }

    /// Decides how soon the next series may begin, and how long it is, after one in which a fault
    /// took so long, and so long in the window before.
    fn judge(&mut self, free_ns: u64, together_ns: u64, now: Time) {
        if together_ns * BETTER_FAULTS < free_ns * 10 {
            self.series_ns = (self.series_ns * 2).min(SERIES_NS_MOST);
            (self.next, self.pause_ns) = (now, PAUSE_NS_LEAST);
        } else {
            self.series_ns = SERIES_NS_LEAST;
            self.next = now.after_ns(self.pause_ns);
            self.pause_ns = (self.pause_ns * 2).min(PAUSE_NS_MOST);
        }
    }

    /// Looks up on which processor the thread of a sample runs.
    fn look_up(&mut self, number: u32, managed: &Ranges) {
        self.looks = self.looks.wrapping_add(1);
        let finder = self.finder;
        let address = finder.and_then(|finder| finder.address_for(number));
        // What is in managed memory must not be read from here: it may be missing.
        let address = address.filter(|address| !managed.contains(*address));
        let found = address.zip(finder);
        let cpu = match found.and_then(|(address, finder)| finder.read(address)) {
            Some(cpu) => Some(cpu),
            None if self.looks.is_multiple_of(DEAR_EVERY) => thread::last_cpu(number),
            None => None,
        };
        let Some(cpu) = cpu else { return };
        self.agreeing = if cpu == self.last_cpu {
            self.agreeing + 1
        } else {
            1
        };
        self.last_cpu = cpu;
        let own_cpu = self.own_cpu.unwrap_or_else(thread::current_cpu);
        let is_away = cpu != own_cpu;
        self.count.samples += 1;
        self.count.away += u32::from(is_away);
        self.sample_every = match is_away {
            true => SAMPLE_EVERY,
            false => (self.sample_every * 2 + 1).min(SAMPLE_EVERY_MOST),
        };
    }

    /// Moves to where the faults come from, and ends what is over.
    pub fn follow(&mut self, managed: &Ranges, now: Time, gauges: &mut Gauges) {
        self.end_if_over(now);
        if let Some(thread) = self.sample.take() {
            self.look_up(thread, managed);
        }
        if self.agreeing >= SAMPLES_AGREEING && self.own_cpu != Some(self.last_cpu) {
            self.go_to(self.last_cpu, gauges);
            self.agreeing = 0;
        }
    }

    fn go_to(&mut self, cpu: u32, gauges: &mut Gauges) {
        if thread::stay_on(cpu).is_ok() {
            self.own_cpu = Some(cpu);
            gauges.add(Counter::EngineMoves, 1);
        } else if let Some(allowed) = &self.allowed {
            // Not permitted there: anywhere is better than the wrong place.
            let _ = thread::stay_anywhere(allowed);
            self.own_cpu = None;
        }
    }

    /// Tells programs that are executed by children from now on to what processor threads are
    /// confined, and from what, in this process's `record`.
    pub fn tell_confinement(&self, record: &Process<'_>) {
        // It is never taken back: a child may have been made in a series that is over.
        if let Some((cpu, allowed)) = self.confinement() {
            record.set_confined(cpu, first_of(&allowed));
        }
    }

    /// The processor that threads are confined to, and what one of them could use before, if there
    /// is a series.
    fn confinement(&self) -> Option<(u32, CpuSet)> {
        let series = self.series.as_ref()?;
        let (_, allowed) = series.confined.first()?;
        Some((series.processor, *allowed))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.release();
    }
}

impl Series {
    /// Confines a thread that is not yet, if it may be on the processor and on another.
    fn confine(&mut self, thread: u32) {
        if self.confined.iter().any(|(known, _)| *known == thread) {
            return;
        }
        let Ok(allowed) = thread::allowed_to(thread) else {
            return;
        };
        let only = thread::only(self.processor);
        let only = only.filter(|_| allowed.is_set(self.processor as usize) && allowed.count() > 1);
        if only.is_some_and(|only| thread::allow(thread, &only).is_ok()) {
            self.confined.push((thread, allowed));
        }
    }

    /// Gives all that are confined back what they could use, and what they have started since.
    fn release(&self) {
        let Some((_, allowed)) = self.confined.first() else {
            return;
        };
        let only = thread::only(self.processor);
        // A thread that has changed it itself keeps that; one that has ended meanwhile needs
        // nothing.
        let restore = |thread: u32, allowed: &CpuSet| {
            if thread::allowed_to(thread).ok() == only {
                let _ = thread::allow(thread, allowed);
            }
        };
        for (thread, allowed) in &self.confined {
            restore(*thread, allowed);
        }
        let mut threads = Vec::new();
        // If they can't be listed they stay where they are, which is slow and no more.
        let _ = thread::collect_threads(&mut threads);
        for thread in threads {
            if !self.threads.contains(&thread) {
                restore(thread, allowed);
            }
        }
    }
}

/// Lets the first thread of this program, which its parent has executed, use what its parent could
/// before its threads were confined. `pid` is this process, `parent` its parent.
pub fn undo_inherited(shared: &Shared, pid: u32, parent: u32) {
    let Ok(own) = thread::allowed_to(pid) else {
        return;
    };
    let mut records = shared.processes();
    let parents = records.find(|(_, process)| process.pid() == parent);
    let confined = parents.and_then(|(_, process)| process.confined());
    if let Some((cpu, bits)) = confined
        && own.count() == 1
        && own.is_set(cpu as usize)
    {
        let mut allowed = CpuSet::new();
        (0..64).for_each(|cpu| {
            if bits >> cpu & 1 > 0 {
                allowed.set(cpu);
            }
        });
        // If it may not any more, it stays where it is.
        let _ = thread::allow(pid, &allowed);
        let _ = thread::stay_anywhere(&allowed);
    }
}

/// The first 64 processors of a set, a bit each.
fn first_of(set: &CpuSet) -> u64 {
    let bits = (0..64).filter(|cpu| set.is_set(*cpu));
    bits.fold(0, |bits, cpu| bits | 1 << cpu)
}

#[cfg(test)]
mod tests;
