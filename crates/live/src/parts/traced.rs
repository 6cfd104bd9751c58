//! The debuggers of a program, as far as they are known.

use tidemark_core::time::Time;

/// The interval at which it is looked whether there is a debugger.
const LOOK_NS: u64 = 200_000_000;
/// The time for which pages are brought in after a debugger was last seen.
const SEEN_NS: u64 = 60_000_000_000;

/// The state of debuggers.
#[derive(Default)]
pub struct Traced {
    next_look: Time,
    /// Until when pages that are out are brought in.
    until: Option<Time>,
    is_told: bool,
    /// Nothing was out when all was brought in last.
    is_whole: bool,
    /// The ranges that are to be brought in yet.
    runs: Vec<(usize, usize)>,
}

impl Traced {
    /// Returns true if it is time to look whether there is a debugger, and plans the next time.
    pub fn begin_look(&mut self, now: Time) -> bool {
        let is_due = now >= self.next_look;
        if is_due {
            self.next_look = now.after_ns(LOOK_NS);
        }
        is_due
    }

    /// Takes in whether there is one. Returns true if pages are to be brought in for it, and none
    /// are yet.
    pub fn note_tracer(&mut self, is_there: bool, now: Time) -> bool {
        if is_there {
            self.until = Some(now.after_ns(SEEN_NS));
        }
        self.until.is_some_and(|until| now < until) && self.runs.is_empty()
    }

    /// Takes one of the ranges that are to be brought in.
    pub fn take_run(&mut self) -> Option<(usize, usize)> {
        self.runs.pop()
    }

    /// Puts the rest of one back.
    pub fn put_back(&mut self, start: usize, end: usize) {
        self.runs.push((start, end));
    }

    /// Plans to bring the ranges `runs` in. `away` pages are not in memory; if that was zero the
    /// last time and is now, nothing is planned.
    pub fn plan(&mut self, runs: Vec<(usize, usize)>, away: u64) {
        if runs.is_empty() {
            return;
        }
        self.runs = runs;
        if away == 0 && self.is_whole {
            self.runs.clear();
        }
        self.is_whole = away == 0;
    }

    /// Returns true once: to say what would let a debugger see everything.
    pub fn take_word(&mut self) -> bool {
        !std::mem::replace(&mut self.is_told, true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_is_brought_in_once_more_after_nothing_was_out() {
        let mut traced = Traced::default();
        let now = Time(SEEN_NS);
        assert!(!traced.note_tracer(false, now));
        assert!(traced.note_tracer(true, now));
        traced.plan(vec![(0x1000, 0x3000)], 2);
        assert!(!traced.note_tracer(true, now));
        assert_eq!(traced.take_run(), Some((0x1000, 0x3000)));
        // Nothing is out by now: memory that was never touched is brought in once.
        traced.plan(vec![(0x1000, 0x3000)], 0);
        assert_eq!(traced.take_run(), Some((0x1000, 0x3000)));
        traced.plan(vec![(0x1000, 0x3000)], 0);
        assert_eq!(traced.take_run(), None);
        // It is not looked for when the debugger has been gone for long.
        assert!(!traced.note_tracer(false, now.after_ns(SEEN_NS)));
    }
}
