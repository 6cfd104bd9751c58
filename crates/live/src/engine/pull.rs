//! Bringing a program that waits for its disk to the processor that hears from it.
//!
//! See [`disk`](crate::disk) for what it costs to wait elsewhere. The kernel lets a thread wake
//! where it slept if that processor is idle, so one that has begun on the wrong one stays. A
//! thread is pulled over by one wake-up: while it sleeps, or is in our hands, it is confined to
//! the disk's processor, and given back all it may use as soon as it has been woken, before it
//! has come to run. From then on it goes where the scheduler puts it. If it is put elsewhere again
//! soon, there was a reason, and the next pull waits longer.
//!
//! Should the program change what that thread may use from another of its threads in the very
//! microseconds between, that is undone.

use rustix::thread::CpuSet;

use tidemark_core::time::Time;

use crate::sys::thread;

/// So many page-ins in a row must be one thread's ...
const ROW_LEAST: u32 = 8;
/// ... and take no longer than this: 30 us each are a thirtieth of it.
const ROW_NS_MOST: u64 = ROW_LEAST as u64 * 1_000_000;
/// The pause after a first pull ...
const PAUSE_NS_LEAST: u64 = 1_000_000;
/// ... which doubles up to this ...
const PAUSE_NS_MOST: u64 = 1_000_000_000;
/// ... unless the thread has stayed so many times as long.
const PAUSES_STAYED: u64 = 2;

/// Who waits for pages, and when it may be pulled.
pub(super) struct Pull {
    disk: Option<u32>,
    /// Whose the row is.
    thread: u32,
    row: u32,
    row_since: Time,
    next: Time,
    pause_ns: u64,
}

/// A thread that is confined to a processor, and what it may use otherwise.
pub(super) struct Held {
    thread: u32,
    allowed: CpuSet,
}

impl Pull {
    /// Nobody waits yet. The number is of the processor that hears from the disk, if one does.
    pub(super) fn new(disk: Option<u32>) -> Pull {
        Pull {
            disk,
            thread: 0,
            row: 0,
            row_since: Time(0),
            next: Time(0),
            pause_ns: PAUSE_NS_LEAST,
        }
    }

    /// The processor that hears from the disk, if it is not `cpu`.
    pub(super) fn away_from(&self, cpu: u32) -> Option<u32> {
        self.disk.filter(|disk| *disk != cpu)
    }

    /// Learns that `thread` waits for the disk. Answers whether it may be pulled now, should it be
    /// on another processor.
    pub(super) fn note_wait(&mut self, thread: u32, now: Time) -> bool {
        if self.thread != thread || self.row == 0 {
            (self.thread, self.row, self.row_since) = (thread, 0, now);
        }
        self.row += 1;
        if self.row < ROW_LEAST {
            return false;
        }
        let is_close = now.since_ns(self.row_since) <= ROW_NS_MOST;
        self.row = 0;
        self.disk.is_some() && is_close && now >= self.next
    }

    /// Confines the thread that waits, which sleeps or is the caller, to `disk`. `None` if it may
    /// not be there.
    pub(super) fn begin(&mut self, disk: u32, now: Time) -> Option<Held> {
        let thread = self.thread;
        let allowed = thread::allowed_to(thread).ok()?;
        let only = thread::only(disk).filter(|_| allowed.is_set(disk as usize))?;
        let has_stayed = now.since_ns(self.next) > PAUSES_STAYED * self.pause_ns;
        self.pause_ns = match has_stayed {
            true => PAUSE_NS_LEAST,
            false => (self.pause_ns * 2).min(PAUSE_NS_MOST),
        };
        self.next = now.after_ns(self.pause_ns);
        thread::allow(thread, &only).ok()?;
        Some(Held { thread, allowed })
    }
}

impl Held {
    /// Gives the thread back what it may use.
    pub(super) fn release(self) {
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

    const MS: u64 = 1_000_000;

    fn wait_in_a_row(pull: &mut Pull, thread: u32, from: Time, apart_ns: u64) -> bool {
        (1..=u64::from(ROW_LEAST)).fold(false, |_, wait| {
            pull.note_wait(thread, from.after_ns(wait * apart_ns))
        })
    }

    #[test]
    fn only_a_thread_that_does_little_else_is_pulled() {
        let mut pull = Pull::new(Some(1));
        assert!(wait_in_a_row(&mut pull, 7, Time(0), MS / 10));
        assert!(!wait_in_a_row(&mut pull, 7, Time(0), 2 * MS));
        let taking_turns = |wait: u64| pull.note_wait(7 + wait as u32 % 2, Time(wait));
        assert!(!(0..200).any(taking_turns));
        assert!(!wait_in_a_row(&mut Pull::new(None), 7, Time(0), MS / 10));
    }

    #[test]
    fn one_that_does_not_stay_is_pulled_less_and_less() {
        let me = thread::current();
        let Some(disk) = thread::allowed().ok().and_then(first_of) else {
            return skip("the right to ask where a thread may run");
        };
        let mut pull = Pull::new(Some(disk));
        let (mut now, mut pauses) = (Time(1_000 * MS), Vec::new());
        pull.note_wait(me, now);
        for _ in 0..12 {
            pull.begin(disk, now).unwrap().release();
            pauses.push(pull.next.since_ns(now) / MS);
            assert!(!wait_in_a_row(&mut pull, me, now, MS / 100));
            now = pull.next;
        }
        assert_eq!(pauses[0], 1, "the first comes after a long time without");
        assert_eq!((pauses[1], pauses[2], pauses[11]), (2, 4, 1000));
        let later = now.after_ns(PAUSES_STAYED * PAUSE_NS_MOST + 1);
        pull.begin(disk, later).unwrap().release();
        assert_eq!(pull.next.since_ns(later) / MS, 1);
    }

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
        // Until it sleeps.
        std::thread::sleep(Duration::from_millis(50));
        let mut pull = Pull::new(Some(disk));
        pull.note_wait(number, Time(0));
        let held = pull.begin(disk, Time(0)).unwrap();
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
