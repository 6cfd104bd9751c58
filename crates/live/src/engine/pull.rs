//! Bringing a program that waits for its disk to the processor that hears from it.
//!
//! See [`disk`](crate::disk) for what it costs to wait elsewhere. A thread is pulled over as it is
//! woken: while it sleeps, or is in our hands, it is confined to the disk's processor, and given
//! back all it may use as soon as it has been woken, before it has come to run.
//!
//! Where processors share a cache the scheduler wakes a thread on one that is idle, and the disk's
//! is not: the engine is there, waking it. So a thread is pulled at each page-in, in a series. If
//! it did not stay by itself after one, the next begins. If it had to wait for that processor,
//! others need it, and the thread is let be for a while.
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
/// How long a series lasts: some 250 page-ins of a fast disk.
const SERIES_NS: u64 = 16_000_000;
/// The thread is let be if it waits for the processor for more than this part of a series. After
/// each page it waits for the engine to go to sleep: a twentieth.
const WAITED_PART: u64 = 4;
/// For how long it is let be at first ...
const PAUSE_NS_LEAST: u64 = SERIES_NS;
/// ... which doubles up to this.
const PAUSE_NS_MOST: u64 = 1_000_000_000;

/// Who waits for pages, and when it may be pulled.
pub(super) struct Pull {
    disk: Option<u32>,
    /// Whose the row is.
    thread: u32,
    row: u32,
    row_since: Time,
    series: Option<Series>,
    next: Time,
    pause_ns: u64,
}

/// Page-ins at each of which a thread is pulled.
#[derive(Clone, Copy)]
struct Series {
    since: Time,
    /// How long the thread had waited for a processor by then, if the kernel counts that.
    waited_ns: Option<u64>,
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
            series: None,
            next: Time(0),
            pause_ns: PAUSE_NS_LEAST,
        }
    }

    /// The processor that hears from the disk, if it is not `cpu`.
    pub(super) fn away_from(&self, cpu: u32) -> Option<u32> {
        self.disk.filter(|disk| *disk != cpu)
    }

    /// Learns that `thread` waits for the disk, and ran on `cpu` when that was last looked at.
    /// Answers whether it is to be pulled as it is woken.
    pub(super) fn note_wait(&mut self, thread: u32, cpu: u32, now: Time) -> bool {
        if self.thread != thread {
            self.end_series(now);
            (self.thread, self.row) = (thread, 0);
        }
        if self.row == 0 {
            self.row_since = now;
        }
        self.row += 1;
        if self.row == ROW_LEAST {
            self.row = 0;
            self.end_row(cpu, now);
        }
        self.series.is_some()
    }

    /// Begins a series after a row, or ends one.
    fn end_row(&mut self, cpu: u32, now: Time) {
        let is_close = now.since_ns(self.row_since) <= ROW_NS_MOST;
        let is_over = |series: Series| now.since_ns(series.since) > SERIES_NS;
        if !is_close || self.series.is_some_and(is_over) {
            self.end_series(now);
        } else if self.series.is_none() && now >= self.next && self.away_from(cpu).is_some() {
            self.series = Some(Series {
                since: now,
                waited_ns: thread::waited_ns(self.thread),
            });
        }
    }

    fn end_series(&mut self, now: Time) {
        let Some(series) = self.series.take() else {
            return;
        };
        let waited = thread::waited_ns(self.thread).zip(series.waited_ns);
        let waited_ns = waited.map(|(after, before)| after.saturating_sub(before));
        self.judge(now.since_ns(series.since), waited_ns, now);
    }

    /// Decides when the next series may begin after one of so many nanoseconds, of which the thread
    /// waited so many for the processor.
    fn judge(&mut self, lasted_ns: u64, waited_ns: Option<u64>, now: Time) {
        if waited_ns.is_some_and(|waited_ns| waited_ns <= lasted_ns / WAITED_PART) {
            (self.next, self.pause_ns) = (now, PAUSE_NS_LEAST);
        } else {
            self.next = now.after_ns(self.pause_ns);
            self.pause_ns = (self.pause_ns * 2).min(PAUSE_NS_MOST);
        }
    }

    /// Confines the thread that waits, which sleeps or is the caller, to the disk's processor, and
    /// says which that is. `None` if it may not be there.
    pub(super) fn begin(&mut self) -> Option<(u32, Held)> {
        let (disk, thread) = (self.disk?, self.thread);
        let allowed = thread::allowed_to(thread).ok()?;
        let only = thread::only(disk).filter(|_| allowed.is_set(disk as usize))?;
        thread::allow(thread, &only).ok()?;
        Some((disk, Held { thread, allowed }))
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

    /// The last answer of a row of waits on processor 0.
    fn wait_in_a_row(pull: &mut Pull, thread: u32, from: Time, apart_ns: u64) -> bool {
        (1..=u64::from(ROW_LEAST)).fold(false, |_, wait| {
            pull.note_wait(thread, 0, from.after_ns(wait * apart_ns))
        })
    }

    #[test]
    fn only_a_thread_that_does_little_else_elsewhere_is_pulled() {
        let mut pull = Pull::new(Some(1));
        assert!(wait_in_a_row(&mut pull, 7, Time(0), MS / 10));
        assert!(pull.note_wait(7, 1, Time(MS)), "each time, in a series");
        assert!(!pull.note_wait(8, 0, Time(MS)));
        let mut pull = Pull::new(Some(1));
        assert!(!wait_in_a_row(&mut pull, 7, Time(0), 2 * MS));
        let taking_turns = |wait: u64| pull.note_wait(7 + wait as u32 % 2, 0, Time(wait));
        assert!(!(0..200).any(taking_turns));
        assert!(!wait_in_a_row(&mut Pull::new(None), 7, Time(0), MS / 10));
        assert!(!wait_in_a_row(&mut Pull::new(Some(0)), 7, Time(0), MS / 10));
    }

    #[test]
    fn a_series_ends_after_its_time_and_when_waits_come_apart() {
        let mut pull = Pull::new(Some(1));
        assert!(wait_in_a_row(&mut pull, 7, Time(0), MS / 10));
        assert!(wait_in_a_row(&mut pull, 7, Time(MS), MS / 10));
        assert!(!wait_in_a_row(&mut pull, 7, Time(SERIES_NS), MS / 2));
        let mut pull = Pull::new(Some(1));
        assert!(wait_in_a_row(&mut pull, 7, Time(0), MS / 10));
        assert!(!wait_in_a_row(&mut pull, 7, Time(MS), 5 * MS / 3));
    }

    #[test]
    fn one_that_has_to_wait_for_the_processor_is_let_be_for_longer_and_longer() {
        let mut pull = Pull::new(Some(1));
        let mut pauses = Vec::new();
        for waited_ns in [
            Some(MS),
            Some(5 * MS),
            None,
            None,
            None,
            None,
            None,
            None,
            None,
        ] {
            pull.judge(SERIES_NS, waited_ns, Time(0));
            pauses.push(pull.next.0 / MS);
        }
        assert_eq!(pauses, [0, 16, 32, 64, 128, 256, 512, 1000, 1000]);
        assert!(!wait_in_a_row(&mut pull, 7, Time(MS), MS / 10));
        assert!(wait_in_a_row(&mut pull, 7, Time(1000 * MS), MS / 10));
        pull.judge(SERIES_NS, Some(0), Time(0));
        pull.judge(SERIES_NS, None, Time(0));
        assert_eq!(pull.next.0 / MS, 16, "a good one makes up for all before");
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
        pull.note_wait(number, 0, Time(0));
        let (to, held) = pull.begin().unwrap();
        assert_eq!(to, disk);
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
