//! Bringing threads that fault at the same time to one processor.
//!
//! One engine serves a process, on one processor. A thread on another is woken there from afar
//! with each page, and the engine from there with each fault: some 25 µs of a soft fault that
//! takes 5 where all are together. Threads that mostly wait are faster on one processor than on
//! several; those that compute between their faults are not. Which they are is measured: faults
//! are counted while threads go where they like, for a *window*, and then while each is brought
//! to one processor as it is woken, for a *series*. If that was clearly better, the next series is
//! twice as long. If not, they are let be for a while.
//!
//! [`place`](super::place) confines threads as they are woken, as it does for
//! [`pull`](super::pull), and gives them back at once what they may use.

use tidemark_core::time::Time;

/// A window is so many faults ...
const WINDOW_FAULTS: u32 = 64;
/// ... in no more than this: what is saved of each, 45 µs at most, is little of 250.
const WINDOW_NS_MOST: u64 = WINDOW_FAULTS as u64 * 250_000;
/// At least this part of them must be another thread's than the one before,
const TURNS_PART: u32 = 8;
/// and at least this part of those that were looked up from another processor than the engine's.
const AWAY_PART: u32 = 4;
/// The length of a series at first ...
const SERIES_NS_LEAST: u64 = 16_000_000;
/// ... which doubles up to this.
const SERIES_NS_MOST: u64 = 256_000_000;
/// Better is so many faults in the time of ten.
const BETTER_FAULTS: u64 = 11;
/// For how long threads are let be at first ...
const PAUSE_NS_LEAST: u64 = SERIES_NS_LEAST;
/// ... which doubles up to this.
const PAUSE_NS_MOST: u64 = 1_000_000_000;

/// The rates at which threads fault, apart and together.
pub(super) struct Gather {
    count: Count,
    series: Option<Series>,
    series_ns: u64,
    pause_ns: u64,
    next: Time,
}

/// Faults of a window or a series.
#[derive(Clone, Copy, Default)]
struct Count {
    since: Time,
    faults: u32,
    /// The thread of the last fault.
    thread: u32,
    /// The number of faults of another thread than the one before.
    turns: u32,
    /// The number of faults that were looked up.
    samples: u32,
    /// The number of those from another processor than the engine's.
    away: u32,
}

/// A time in which each thread is brought to one processor as it is woken.
#[derive(Clone, Copy)]
struct Series {
    processor: u32,
    /// The time of a fault in the window before.
    free_ns: u64,
}

impl Gather {
    /// Nobody has faulted yet.
    pub(super) fn new() -> Gather {
        Gather {
            count: Count::default(),
            series: None,
            series_ns: SERIES_NS_LEAST,
            pause_ns: PAUSE_NS_LEAST,
            next: Time(0),
        }
    }

    /// Learns that `thread` has faulted. If threads are gathered from now on, it is on the
    /// processor that `choose` names.
    pub(super) fn note_fault(
        &mut self,
        thread: u32,
        now: Time,
        choose: impl FnOnce() -> Option<u32>,
    ) {
        let lasted_ns = now.since_ns(self.count.since);
        match self.series {
            Some(series) if lasted_ns >= self.series_ns => {
                let together_ns = lasted_ns / u64::from(self.count.faults);
                self.judge(series.free_ns, together_ns, now);
                self.begin(thread, now, None);
            }
            None if lasted_ns > WINDOW_NS_MOST => self.begin(thread, now, None),
            None if self.count.faults == WINDOW_FAULTS => {
                let free_ns = lasted_ns / u64::from(WINDOW_FAULTS);
                let is_due = now >= self.next && self.count.is_scattered();
                let processor = is_due.then(choose).flatten();
                let series = processor.map(|processor| Series { processor, free_ns });
                self.begin(thread, now, series);
            }
            Some(_) | None => {}
        }
        self.count.faults += 1;
        self.count.turns += u32::from(thread != self.count.thread);
        self.count.thread = thread;
    }

    /// Learns where a thread was when it faulted.
    pub(super) fn note_sample(&mut self, is_away: bool) {
        self.count.samples += 1;
        self.count.away += u32::from(is_away);
    }

    /// The processor to which threads are brought as they are woken, if they are.
    pub(super) fn processor(&self) -> Option<u32> {
        self.series.map(|series| series.processor)
    }

    fn begin(&mut self, thread: u32, since: Time, series: Option<Series>) {
        self.series = series;
        self.count = Count {
            since,
            thread,
            ..Count::default()
        };
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
}

impl Count {
    /// Returns true if several threads fault at the same time, not all of them beside the engine.
    fn is_scattered(&self) -> bool {
        self.turns * TURNS_PART >= self.faults && self.away * AWAY_PART >= self.samples.max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: u64 = 1000;
    const MS: u64 = 1_000_000;

    /// Lets `threads` fault in turn.
    #[derive(Clone, Copy)]
    struct Faults {
        threads: u32,
        apart_ns: u64,
        /// One fault in so many is looked up, and comes from another processor.
        away_every: u32,
        count: u32,
    }

    const TWO_APART: Faults = Faults {
        threads: 2,
        apart_ns: 50 * US,
        away_every: 5,
        count: WINDOW_FAULTS + 1,
    };

    impl Faults {
        /// Lets them fault from a time on. Answers the time of the last one.
        fn note(self, gather: &mut Gather, from: Time) -> Time {
            let mut now = from;
            for number in 0..self.count {
                now = from.after_ns(u64::from(number) * self.apart_ns);
                gather.note_fault(7 + number % self.threads, now, || Some(1));
                if number % 5 == 0 && gather.processor().is_none() {
                    gather.note_sample(number % self.away_every == 0);
                }
            }
            now
        }

        fn are_gathered(self) -> bool {
            let mut gather = Gather::new();
            self.note(&mut gather, Time(1000 * MS));
            gather.processor() == Some(1)
        }
    }

    #[test]
    fn only_several_threads_that_fault_often_elsewhere_are_gathered() {
        let with = |change: fn(&mut Faults)| {
            let mut faults = TWO_APART;
            change(&mut faults);
            faults.are_gathered()
        };
        assert!(TWO_APART.are_gathered());
        assert!(with(|faults| faults.threads = 16));
        assert!(!with(|faults| faults.threads = 1));
        assert!(!with(|faults| faults.apart_ns = 300 * US));
        assert!(!with(|faults| faults.away_every = 1000));
        assert!(!with(|faults| faults.count -= 1));
        let mut gather = Gather::new();
        for number in 0..200 {
            let thread = if number % 20 == 0 { 8 } else { 7 };
            gather.note_fault(thread, Time(1000 * MS), || Some(1));
            gather.note_sample(true);
        }
        assert_eq!(gather.processor(), None, "one of them seldom");
        let mut gather = Gather::new();
        for number in 0..200 {
            gather.note_fault(7 + number % 2, Time(1000 * MS), || None);
            gather.note_sample(true);
        }
        assert_eq!(gather.processor(), None, "nowhere to go");
    }

    #[test]
    fn a_series_that_was_better_is_followed_by_a_longer_one_after_a_window() {
        let mut gather = Gather::new();
        let mut now = TWO_APART.note(&mut gather, Time(1000 * MS));
        for length_ms in [16, 32, 64, 128, 256, 256] {
            assert!(gather.processor().is_some());
            let faster = Faults {
                apart_ns: 25 * US,
                count: (length_ms * MS / (25 * US)) as u32,
                ..TWO_APART
            };
            now = faster.note(&mut gather, now.after_ns(25 * US));
            assert_eq!(gather.processor(), None, "after {length_ms} ms");
            now = TWO_APART.note(&mut gather, now.after_ns(50 * US));
        }
    }

    #[test]
    fn threads_that_are_no_better_off_together_are_let_be_for_longer_and_longer() {
        let mut gather = Gather::new();
        let mut pauses = Vec::new();
        for _ in 0..8 {
            gather.judge(50 * US, 48 * US, Time(0));
            pauses.push(gather.next.0 / MS);
        }
        assert_eq!(pauses, [16, 32, 64, 128, 256, 512, 1000, 1000]);
        TWO_APART.note(&mut gather, Time(990 * MS));
        assert_eq!(gather.processor(), None);
        TWO_APART.note(&mut gather, Time(1000 * MS));
        assert_eq!(gather.processor(), Some(1));
        gather.judge(50 * US, 40 * US, Time(0));
        gather.judge(50 * US, 60 * US, Time(0));
        assert_eq!(gather.next.0 / MS, 16, "a good one makes up for all before");
        assert_eq!(gather.series_ns, SERIES_NS_LEAST);
    }
}
