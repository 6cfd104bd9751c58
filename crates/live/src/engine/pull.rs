//! Bringing a program that waits for its disk to the processor that hears from it.
//!
//! See [`disk`](crate::disk) for what it costs to wait elsewhere. A thread is pulled over as it is
//! woken: [`place`](super::place) confines it while it sleeps.
//!
//! Where processors share a cache the scheduler wakes a thread on one that is idle, and the disk's
//! is not: the engine is there, waking it. So a thread is pulled at each page-in, in a series. If
//! it did not stay by itself after one, the next begins. If it had to wait for that processor,
//! others need it, and the thread is let be for a while.

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

    /// Learns that `thread` waits for the disk, and ran on `cpu` when that was last looked at.
    pub(super) fn note_wait(&mut self, thread: u32, cpu: u32, now: Time) {
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
    }

    /// The processor to which `thread` is to be pulled as it is woken, if it is.
    pub(super) fn processor_for(&self, thread: u32) -> Option<u32> {
        self.disk
            .filter(|_| self.series.is_some() && self.thread == thread)
    }

    /// Begins a series after a row, or ends one.
    fn end_row(&mut self, cpu: u32, now: Time) {
        let is_close = now.since_ns(self.row_since) <= ROW_NS_MOST;
        let is_over = |series: Series| now.since_ns(series.since) > SERIES_NS;
        if !is_close || self.series.is_some_and(is_over) {
            self.end_series(now);
        } else if self.series.is_none() && now >= self.next && self.is_away(cpu) {
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

    fn is_away(&self, cpu: u32) -> bool {
        self.disk.is_some_and(|disk| disk != cpu)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Whether a thread is pulled after a wait on processor 0, ...
    fn wait(pull: &mut Pull, thread: u32, now: Time) -> bool {
        pull.note_wait(thread, 0, now);
        pull.processor_for(thread).is_some()
    }

    /// ... and after a row of them.
    fn wait_in_a_row(pull: &mut Pull, thread: u32, from: Time, apart_ns: u64) -> bool {
        (1..=u64::from(ROW_LEAST)).fold(false, |_, number| {
            wait(pull, thread, from.after_ns(number * apart_ns))
        })
    }

    #[test]
    fn only_a_thread_that_does_little_else_elsewhere_is_pulled() {
        let mut pull = Pull::new(Some(1));
        assert!(wait_in_a_row(&mut pull, 7, Time(0), MS / 10));
        pull.note_wait(7, 1, Time(MS));
        assert_eq!(pull.processor_for(7), Some(1), "each time, in a series");
        assert!(!wait(&mut pull, 8, Time(MS)));
        let mut pull = Pull::new(Some(1));
        assert!(!wait_in_a_row(&mut pull, 7, Time(0), 2 * MS));
        let taking_turns = |number: u64| wait(&mut pull, 7 + number as u32 % 2, Time(number));
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
}
