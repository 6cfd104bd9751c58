//! Keeping a program that waits for its disk on the processor that hears from it.
//!
//! See [`disk`](crate::disk) for what it costs to wait elsewhere. A thread that does little else is
//! kept there in series: [`place`](super::place) confines it while it sleeps, so that it is woken
//! there, and has the engine wait for short reads awake. Where processors share a cache the
//! scheduler would wake the thread on one that is idle, and the disk's is not: the engine is there,
//! waking it. If the thread had to wait for that processor in a series, others need it, and it is
//! let be for a while.

use tidemark_core::time::Time;

use crate::sys::thread;

/// So many page-ins in a row must be one thread's ...
const ROW_LEAST: u32 = 8;
/// ... after so many since another thread has faulted, ...
const ALONE_LEAST: u32 = 64;
/// ... and take no longer than this: 30 us each are a thirtieth of it.
const ROW_NS_MOST: u64 = ROW_LEAST as u64 * 1_000_000;
/// The length of a series at first: some 250 page-ins of a fast disk ...
const SERIES_NS_LEAST: u64 = 16_000_000;
/// ... which doubles up to this while all goes well.
const SERIES_NS_MOST: u64 = 256_000_000;
/// The thread is let be if it waits for the processor for more than this part of a series. After
/// each page it waits for the engine to go to sleep: a twentieth.
const WAITED_PART: u64 = 4;
/// For how long it is let be at first ...
const PAUSE_NS_LEAST: u64 = 16_000_000;
/// ... which doubles up to this.
const PAUSE_NS_MOST: u64 = 1_000_000_000;

/// The thread that waits for pages, and the times when it is kept where the disk is heard from.
pub(super) struct Pull {
    disk: Option<u32>,
    /// The thread of the row.
    thread: u32,
    /// Its page-ins since another thread has faulted.
    alone: u32,
    row: u32,
    row_since: Time,
    series: Option<Series>,
    length_ns: u64,
    next: Time,
    pause_ns: u64,
}

/// A time in which a thread is kept on the disk's processor.
#[derive(Clone, Copy)]
struct Series {
    since: Time,
    /// The time that the thread had waited for a processor by then, if the kernel counts that.
    waited_ns: Option<u64>,
}

impl Pull {
    /// Nobody waits yet. The number is of the processor that hears from the disk, if one does.
    pub(super) fn new(disk: Option<u32>) -> Pull {
        Pull {
            disk,
            thread: 0,
            alone: 0,
            row: 0,
            row_since: Time(0),
            series: None,
            length_ns: SERIES_NS_LEAST,
            next: Time(0),
            pause_ns: PAUSE_NS_LEAST,
        }
    }

    /// Learns that `thread` has faulted: another one's row and series end.
    pub(super) fn note_fault(&mut self, thread: u32, now: Time) {
        if self.thread != thread {
            self.end_series(now);
            (self.thread, self.alone, self.row) = (thread, 0, 0);
        }
    }

    /// Learns that `thread` waits for the disk.
    pub(super) fn note_wait(&mut self, thread: u32, now: Time) {
        if self.disk.is_none() {
            return;
        }
        self.note_fault(thread, now);
        if self.row == 0 {
            self.row_since = now;
        }
        self.alone = self.alone.saturating_add(1);
        self.row += 1;
        if self.row == ROW_LEAST {
            self.row = 0;
            self.end_row(now);
        }
    }

    /// The processor on which `thread` is to be woken, in a series of its own.
    pub(super) fn processor_for(&self, thread: u32) -> Option<u32> {
        self.disk
            .filter(|_| self.series.is_some() && self.thread == thread)
    }

    /// Returns true if there is a series.
    pub(super) fn is_keeping(&self) -> bool {
        self.series.is_some()
    }

    /// Ends a series that is over, and begins one after a row that is close.
    fn end_row(&mut self, now: Time) {
        let is_close = now.since_ns(self.row_since) <= ROW_NS_MOST;
        let is_over = |series: Series| now.since_ns(series.since) >= self.length_ns;
        if !is_close || self.series.is_some_and(is_over) {
            self.end_series(now);
        }
        let is_alone = self.alone >= ALONE_LEAST;
        if is_close && is_alone && self.series.is_none() && now >= self.next {
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
    /// waited so many for the processor, and how long it lasts.
    fn judge(&mut self, lasted_ns: u64, waited_ns: Option<u64>, now: Time) {
        if waited_ns.is_some_and(|waited_ns| waited_ns <= lasted_ns / WAITED_PART) {
            (self.next, self.pause_ns) = (now, PAUSE_NS_LEAST);
            if lasted_ns >= self.length_ns {
                self.length_ns = (self.length_ns * 2).min(SERIES_NS_MOST);
            }
        } else {
            self.next = now.after_ns(self.pause_ns);
            self.pause_ns = (self.pause_ns * 2).min(PAUSE_NS_MOST);
            self.length_ns = SERIES_NS_LEAST;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Returns true if a thread is kept after a wait, ...
    fn wait(pull: &mut Pull, thread: u32, now: Time) -> bool {
        pull.note_wait(thread, now);
        pull.processor_for(thread).is_some()
    }

    /// ... and after a row of them.
    fn wait_in_a_row(pull: &mut Pull, thread: u32, from: Time, apart_ns: u64) -> bool {
        (1..=u64::from(ROW_LEAST)).fold(false, |_, number| {
            wait(pull, thread, from.after_ns(number * apart_ns))
        })
    }

    /// The state after a thread was kept for the first time.
    fn kept(thread: u32) -> Pull {
        let mut pull = Pull::new(Some(1));
        let count = u64::from(ALONE_LEAST);
        let is_kept = |number: u64| wait(&mut pull, thread, Time(number * 1000));
        assert_eq!(
            (1..=count).map(is_kept).filter(|is_kept| *is_kept).count(),
            1
        );
        pull
    }

    #[test]
    fn only_a_thread_that_does_little_else_is_kept() {
        let mut pull = kept(7);
        assert!(wait(&mut pull, 7, Time(MS)), "each time, in a series");
        assert_eq!(pull.processor_for(8), None);
        pull.note_fault(8, Time(MS));
        assert!(!pull.is_keeping(), "it is not alone");
        assert!(!wait_in_a_row(&mut pull, 7, Time(MS), MS / 10));
        let mut pull = Pull::new(Some(1));
        assert!(!wait_in_a_row(&mut pull, 7, Time(0), 2 * MS));
        let taking_turns = |number: u64| wait(&mut pull, 7 + number as u32 % 2, Time(number));
        assert!(!(0..200).any(taking_turns));
        let mut pull = Pull::new(None);
        assert!(!(0..200).any(|number| wait(&mut pull, 7, Time(number))));
    }

    #[test]
    fn a_series_ends_after_its_time_and_when_waits_come_apart() {
        let mut pull = kept(7);
        assert!(wait_in_a_row(&mut pull, 7, Time(MS), MS / 10));
        // Nobody has a thread of that number: how long it waited is not known.
        assert!(!wait_in_a_row(
            &mut pull,
            7,
            Time(2 * SERIES_NS_LEAST),
            MS / 2
        ));
        assert!(!wait_in_a_row(&mut kept(7), 7, Time(MS), 5 * MS / 3));
    }

    #[test]
    fn one_that_has_to_wait_for_the_processor_is_let_be_for_longer_and_longer() {
        let mut pull = kept(7);
        pull.series = None;
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
            pull.judge(SERIES_NS_LEAST, waited_ns, Time(0));
            pauses.push(pull.next.0 / MS);
        }
        assert_eq!(pauses, [0, 16, 32, 64, 128, 256, 512, 1000, 1000]);
        assert!(!wait_in_a_row(&mut pull, 7, Time(MS), MS / 10));
        assert!(wait_in_a_row(&mut pull, 7, Time(1000 * MS), MS / 10));
        pull.judge(SERIES_NS_LEAST, Some(0), Time(0));
        pull.judge(SERIES_NS_LEAST, None, Time(0));
        assert_eq!(pull.next.0 / MS, 16, "a good one makes up for all before");
    }

    #[test]
    fn series_that_go_well_grow_longer_until_one_does_not() {
        let mut pull = Pull::new(Some(1));
        let mut lengths = Vec::new();
        for _ in 0..6 {
            pull.judge(pull.length_ns, Some(0), Time(0));
            lengths.push(pull.length_ns / MS);
        }
        assert_eq!(lengths, [32, 64, 128, 256, 256, 256]);
        pull.judge(MS, Some(0), Time(0));
        assert_eq!(
            pull.length_ns / MS,
            256,
            "one that was cut short says nothing of that"
        );
        pull.judge(256 * MS, Some(100 * MS), Time(0));
        assert_eq!(pull.length_ns, SERIES_NS_LEAST);
    }
}
