//! Following the program: a fault served on the processor of the thread that waits costs a small
//! part of one that wakes another processor (measured on virtual machines: 7 against 50 µs).
//!
//! The engine goes where most faults come from. Where that is not enough, threads come to it as
//! they are woken: one that waits for the disk is [pulled](Pull), several are [gathered](Gather).
//! For a thread that is pulled the engine waits awake: to fall asleep and be woken takes 20 us on
//! such a machine, and a page comes from its disk in 40. By itself that would be a load that the
//! scheduler evens out, by moving the program away.

use rustix::thread::CpuSet;

use tidemark_core::time::Time;

use super::gather::Gather;
use super::publish::Gauges;
use super::pull::Pull;
use crate::ranges::Ranges;
use crate::shared::Counter;
use crate::sys::thread::{self, CpuFinder};

/// One fault in so many is looked at: to ask where a thread runs costs three system calls. An odd
/// number: two threads that take turns are looked at in turn, too.
const SAMPLE_EVERY: u32 = 5;
/// The engine moves when so many samples in a row came from the same other processor.
const SAMPLES_AGREEING: u32 = 2;
/// The time for which a thread waits awake for a page from the disk. Falling asleep and being woken
/// takes 5 us, and much longer on a virtual machine whose processor halts meanwhile; a page comes
/// from a fast disk in 40 to 100 us.
pub const AWAKE_NS: u64 = 150_000;
/// The engine goes with the others again when nobody was held for so long.
const FIRST_NS_MOST: u64 = 10_000_000;
/// So many threads wait for one transfer at most, usually.
const HELD_USUALLY: usize = 8;

/// The processors of the engine and of faults.
pub(super) struct Place {
    finder: Option<CpuFinder>,
    allowed: Option<CpuSet>,
    faults: u32,
    /// The thread whose processor is to be looked up.
    sample: Option<u32>,
    last_cpu: u32,
    agreeing: u32,
    own_cpu: Option<u32>,
    disk: Option<u32>,
    pull: Pull,
    gather: Gather,
    held: Vec<Held>,
    /// True if the last thread that was to be held on a processor could be.
    could_hold: bool,
    /// True if the last page that was waited for came within [`AWAKE_NS`].
    came_soon: bool,
    /// The time at which a thread was held last.
    held_at: Time,
    /// The engine runs before all others, and has not been told that it may not.
    is_first: bool,
    may_go_first: bool,
}

/// A thread that is confined to one processor while it sleeps, or is the caller, so that it is
/// woken there. It is given back what it may use otherwise as soon as it has been woken, before it
/// has come to run.
///
/// Should the program change that from another of its threads in the very microseconds between,
/// the change is undone.
struct Held {
    thread: u32,
    allowed: CpuSet,
}

impl Place {
    /// `disk` is the processor that hears from the disk of the swap store, if one does.
    pub(super) fn new(finder: Option<CpuFinder>, disk: Option<u32>) -> Place {
        // Without the right to go first the engine goes with the others.
        let _ = thread::set_nice(-10);
        let allowed = thread::allowed().ok();
        Place {
            finder,
            allowed,
            faults: 0,
            sample: None,
            last_cpu: u32::MAX,
            agreeing: 0,
            own_cpu: None,
            disk,
            pull: Pull::new(disk),
            gather: Gather::new(),
            held: Vec::with_capacity(HELD_USUALLY),
            could_hold: false,
            came_soon: false,
            held_at: Time(0),
            is_first: false,
            may_go_first: true,
        }
    }

    /// Learns that `thread` waits for the disk, in thread mode.
    pub(super) fn note_wait(&mut self, thread: u32, now: Time) {
        self.pull.note_wait(thread, now);
    }

    /// Learns how long a thread has waited for a page from the disk, in thread mode.
    pub(super) fn note_waited(&mut self, waited_ns: u64) {
        self.came_soon = waited_ns <= AWAKE_NS;
    }

    /// Returns true if the engine is to wait awake for the page of the one thread that waits: it
    /// will come soon, the thread does little else, and stays here; and who else would run here
    /// meanwhile can go elsewhere.
    pub(super) fn stays_awake(&self) -> bool {
        let has_others = || self.allowed.is_some_and(|allowed| allowed.count() > 1);
        self.came_soon && self.could_hold && self.pull.is_keeping() && has_others()
    }

    /// Learns that the calling thread waits for the disk, in in-thread mode, and brings it to the
    /// disk's processor if it is to be pulled.
    pub(super) fn wait_here(&mut self, now: Time) {
        let (thread, cpu) = (thread::current(), thread::current_cpu());
        self.pull.note_wait(thread, now);
        let to = self.pull.processor_for(thread).filter(|to| *to != cpu);
        if let Some(held) = to.and_then(|to| Held::confine(thread, to)) {
            held.release();
        }
    }

    /// Learns that `thread` has faulted, in thread mode: with others it may be gathered. Then the
    /// engine goes there at once: who is woken beside it does not run before it sleeps.
    pub(super) fn note_company(&mut self, thread: u32, now: Time, gauges: &mut Gauges) {
        let was_gathering = self.is_gathering();
        self.gather.note_fault(thread, now, || {
            let is_allowed = |cpu: &u32| self.allowed.is_some_and(|set| set.is_set(*cpu as usize));
            self.disk.filter(is_allowed).or(self.own_cpu)
        });
        let to = self.gather.processor().filter(|_| !was_gathering);
        if let Some(to) = to.filter(|to| self.own_cpu != Some(*to)) {
            self.go_to(to, gauges);
        }
    }

    /// The processor on which `thread` is to be woken, if there is one.
    pub(super) fn wanted_on(&self, thread: u32) -> Option<u32> {
        let gathered = self.gather.processor();
        gathered.or_else(|| self.pull.processor_for(thread))
    }

    /// Returns true if every thread is to be on one processor.
    pub(super) fn is_gathering(&self) -> bool {
        self.gather.processor().is_some()
    }

    /// Confines `thread`, which sleeps and is about to be woken, to the processor where it is
    /// wanted, if it is, until [`let_go`](Self::let_go). The engine [follows](Self::follow). One
    /// that the kernel has no number for is left alone.
    pub(super) fn hold(&mut self, thread: u32, now: Time) {
        // What is read of one that is held already is not what it may use.
        if thread == 0 || self.held.iter().any(|held| held.thread == thread) {
            return;
        }
        let Some(to) = self.wanted_on(thread) else {
            return;
        };
        let held = match self.goes_first() {
            true => Held::confine(thread, to),
            false => None,
        };
        self.could_hold = held.is_some();
        let Some(held) = held else {
            return;
        };
        self.held.push(held);
        self.held_at = now;
        self.last_cpu = to;
        self.agreeing = SAMPLES_AGREEING;
    }

    /// Gives those that are held back what they may use.
    ///
    /// In a series the engine goes on going first. It would have to again for the next fault; and
    /// as soon as it does not, others run before it sleeps, and before it serves who faults next.
    pub(super) fn let_go(&mut self) {
        self.held.drain(..).for_each(Held::release);
        if !self.pull.is_keeping() && !self.is_gathering() {
            self.go_with_others();
        }
    }

    fn go_with_others(&mut self) {
        if std::mem::take(&mut self.is_first) {
            // Who was allowed to go first is allowed not to.
            let _ = thread::go_with_others();
        }
    }

    /// Has the engine run before all others until [`let_go`](Self::let_go), or to the end of a
    /// series, so that nobody whom it wakes runs with what it is confined to, sees that, or starts
    /// a thread that keeps it. False if that is not permitted: then nobody is held.
    fn goes_first(&mut self) -> bool {
        if self.may_go_first && !self.is_first {
            self.is_first = thread::go_first().is_ok();
            self.may_go_first = self.is_first;
        }
        self.is_first
    }

    /// Learns that `thread` has faulted. What follows from it has time until the fault is served.
    pub(super) fn note_fault(&mut self, thread: u32, now: Time) {
        self.pull.note_fault(thread, now);
        self.faults = self.faults.wrapping_add(1);
        if self.faults.is_multiple_of(SAMPLE_EVERY) && !self.is_gathering() {
            self.sample = Some(thread);
        }
    }

    /// Looks up on which processor the thread of a sample runs.
    fn look_up(&mut self, number: u32, managed: &Ranges) {
        let Some(finder) = self.finder else { return };
        let address = finder.address_for(number);
        // What is in managed memory must not be read from here: it may be missing.
        let address = address.filter(|address| !managed.contains(*address));
        let Some(cpu) = address.and_then(|address| finder.read(address)) else {
            return;
        };
        self.agreeing = if cpu == self.last_cpu {
            self.agreeing + 1
        } else {
            1
        };
        self.last_cpu = cpu;
        let own_cpu = self.own_cpu.unwrap_or_else(thread::current_cpu);
        self.gather.note_sample(cpu != own_cpu);
    }

    /// Moves to where the faults come from.
    pub(super) fn follow(&mut self, managed: &Ranges, now: Time, gauges: &mut Gauges) {
        if now.since_ns(self.held_at) > FIRST_NS_MOST {
            self.go_with_others();
        }
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
}

impl Held {
    /// Confines `thread` to one processor. `None` if it may not be there.
    fn confine(thread: u32, cpu: u32) -> Option<Held> {
        let allowed = thread::allowed_to(thread).ok()?;
        let only = thread::only(cpu).filter(|_| allowed.is_set(cpu as usize))?;
        thread::allow(thread, &only).ok()?;
        Some(Held { thread, allowed })
    }

    /// Gives the thread back what it may use.
    fn release(self) {
        // A thread that has ended meanwhile needs nothing.
        let _ = thread::allow(self.thread, &self.allowed);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use super::*;
    use crate::sys::socket;
    use crate::sys::testing::skip;

    #[test]
    fn a_sleeping_thread_wakes_there_and_may_go_anywhere() {
        let allowed = thread::allowed().unwrap();
        let Some(disk) = last_of(allowed).filter(|last| first_of(allowed) != Some(*last)) else {
            return skip("a second processor");
        };
        let (ours, theirs) = socket::pair().unwrap();
        let (sender, receiver) = channel();
        let sleeper = std::thread::spawn(move || {
            thread::stay_on(first_of(allowed).unwrap()).unwrap();
            thread::stay_anywhere(&allowed).unwrap();
            sender.send((thread::current(), 0)).unwrap();
            rustix::io::read(&theirs, &mut [0; 1]).unwrap();
            sender.send((0, thread::current_cpu())).unwrap();
            rustix::io::read(&theirs, &mut [0; 1]).unwrap();
        });
        let patience = Duration::from_secs(10);
        let (number, _) = receiver.recv_timeout(patience).unwrap();
        let end = std::time::Instant::now() + patience;
        while !is_asleep(number) {
            assert!(std::time::Instant::now() < end, "it never sleeps");
            std::thread::yield_now();
        }
        let held = Held::confine(number, disk).unwrap();
        let first_now = || first_of(thread::allowed_to(number).unwrap());
        assert_eq!(first_now(), Some(disk));
        socket::send(&ours, b"!", &[]).unwrap();
        let (_, woken_on) = receiver.recv_timeout(patience).unwrap();
        assert_eq!(woken_on, disk);
        held.release();
        assert_eq!(first_now(), first_of(allowed));
        drop(ours);
        sleeper.join().unwrap();
    }

    fn is_asleep(thread: u32) -> bool {
        let state = std::fs::read_to_string(format!("/proc/self/task/{thread}/stat")).unwrap();
        state.rsplit_once(')').unwrap().1.starts_with(" S")
    }

    fn first_of(set: CpuSet) -> Option<u32> {
        (0..CpuSet::MAX_CPU)
            .find(|cpu| set.is_set(*cpu))
            .map(|cpu| cpu as u32)
    }

    fn last_of(set: CpuSet) -> Option<u32> {
        (0..CpuSet::MAX_CPU)
            .rfind(|cpu| set.is_set(*cpu))
            .map(|cpu| cpu as u32)
    }
}
