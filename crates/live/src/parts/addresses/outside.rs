//! Pages outside of the account: pinned ones that the core has disowned, as memory was full of
//! them.
//!
//! They stand where the program has them, and the kernel holds them: to let them be is all that can
//! be done. Memory in use is over the budget by as much, which is said once. They are tried again,
//! some at a time, after pauses that grow while none can be moved.
//!
//! # Invariants
//! 1. A page in here is in managed memory, stands there, and is one that the core knows nothing of.
//!    What the program unmaps, empties or moves is taken out.

use tidemark_core::time::Time;

use crate::ranges::Ranges;
use crate::sys::PAGE;

/// Pages that are tried at a time, at first, and at most.
const PAGES_LEAST: usize = 64;
const PAGES_MOST: usize = 4096;
/// The pause before the next are tried, at first, and at most.
const PAUSE_NS_LEAST: u64 = 20_000_000;
const PAUSE_NS_MOST: u64 = 1_000_000_000;
/// The time after the last disowned page at which it is said how many there are.
const SAID_AFTER_NS: u64 = 1_000_000_000;
/// The time after the first disowned page at which it is said at the latest.
const SAID_BEFORE_NS: u64 = 5_000_000_000;

/// The pages outside of the account.
pub struct Outside {
    pages: Ranges,
    /// The place where the next try begins.
    next: usize,
    due: Time,
    pause_ns: u64,
    pages_at_once: usize,
    /// The number of pages that have come in here.
    added: u64,
    word: Word,
    has_told_of_kept: bool,
}

/// The state of the message.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Word {
    Unneeded,
    Due { due: Time, latest: Time },
    Said,
}

impl Outside {
    /// None is.
    pub fn new() -> Outside {
        Outside {
            pages: Ranges::new(),
            next: 0,
            due: Time(0),
            pause_ns: PAUSE_NS_LEAST,
            pages_at_once: PAGES_LEAST,
            added: 0,
            word: Word::Unneeded,
            has_told_of_kept: false,
        }
    }

    /// Forgets what was disowned in a range.
    pub fn remove(&mut self, start: usize, end: usize) {
        self.pages.remove(start, end);
    }

    /// Returns true if the page at an address is one of them.
    pub fn contains(&self, address: usize) -> bool {
        self.pages.contains(address)
    }

    /// The number of pages.
    pub fn len(&self) -> u64 {
        (self.pages.bytes() / PAGE) as u64
    }

    /// Has all tried soon: this is another process, in which they may not be held.
    pub fn hasten(&mut self, now: Time) {
        (self.due, self.pause_ns) = (now, PAUSE_NS_LEAST);
    }

    /// The time at which there is something to do.
    pub fn due(&self) -> Time {
        let next = match self.pages.is_empty() {
            true => Time(u64::MAX),
            false => self.due,
        };
        match self.word {
            Word::Due { due, .. } => next.min(due),
            Word::Unneeded | Word::Said => next,
        }
    }

    /// Takes in that the page at an address is one of them.
    pub fn add(&mut self, address: usize, now: Time) {
        if self.pages.is_empty() {
            self.due = now.after_ns(self.pause_ns);
        }
        let latest = match self.word {
            Word::Unneeded => Some(now.after_ns(SAID_BEFORE_NS)),
            Word::Due { latest, .. } => Some(latest),
            Word::Said => None,
        };
        if let Some(latest) = latest {
            let due = now.after_ns(SAID_AFTER_NS).min(latest);
            self.word = Word::Due { due, latest };
        }
        self.pages.insert(address, address + PAGE);
        self.added += 1;
    }

    /// Takes the next pages out that are to be tried: a run that begins behind the last one.
    pub fn take_next(&mut self) -> Option<(usize, usize)> {
        let behind = self.pages.collect_overlaps(self.next, usize::MAX);
        let range = behind.first().copied().or_else(|| self.pages.iter().next());
        let (start, end) = range?;
        let start = if end > self.next {
            start.max(self.next)
        } else {
            start
        };
        let end = end.min(start + self.pages_at_once * PAGE);
        self.pages.remove(start, end);
        self.next = end;
        Some((start, end))
    }

    /// Sets the pace by whether all of the last try have come back.
    pub fn set_pace(&mut self, has_come_back: bool, now: Time) {
        (self.pages_at_once, self.pause_ns) = match has_come_back {
            true => ((self.pages_at_once * 2).min(PAGES_MOST), PAUSE_NS_LEAST),
            false => (PAGES_LEAST, (self.pause_ns * 2).min(PAUSE_NS_MOST)),
        };
        self.due = now.after_ns(self.pause_ns);
    }

    /// Returns true if some are to be tried now.
    pub fn is_due(&self, now: Time) -> bool {
        !self.pages.is_empty() && self.due <= now
    }

    /// Tries them a little later.
    pub fn put_off(&mut self, now: Time) {
        self.due = now.after_ns(PAUSE_NS_LEAST);
    }

    /// The number of pages that have come in here so far.
    pub fn added(&self) -> u64 {
        self.added
    }

    /// Returns true if it is to be said how many there are, by `now`.
    pub fn is_word_due(&self, now: Time) -> bool {
        matches!(self.word, Word::Due { due, .. } if due <= now)
    }

    /// Returns true if it is to be said how many there are, at the latest when the program ends.
    pub fn is_word_wanted(&self) -> bool {
        matches!(self.word, Word::Due { .. })
    }

    /// Takes in whether it `is_said` now, or need not be.
    pub fn end_word(&mut self, is_said: bool) {
        self.word = match is_said {
            true => Word::Said,
            false => Word::Unneeded,
        };
    }

    /// Returns true once: to say that pages stay which nothing needs.
    pub fn take_word_of_kept(&mut self) -> bool {
        !std::mem::replace(&mut self.has_told_of_kept, true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_has_its_turn_and_those_that_come_back_hasten_the_others() {
        let mut outside = Outside::new();
        for page in 16..16 + 2 * PAGES_LEAST {
            outside.add(page * PAGE, Time(0));
        }
        let first = outside.take_next().unwrap();
        assert_eq!(first, (16 * PAGE, (16 + PAGES_LEAST) * PAGE));
        outside.set_pace(false, Time(0));
        // They stay, and the others are next.
        for page in 16..16 + PAGES_LEAST {
            outside.add(page * PAGE, Time(0));
        }
        let second = outside.take_next().unwrap();
        assert_eq!(second.0, first.1);
        assert_eq!(outside.due(), Time(2 * PAUSE_NS_LEAST));
        outside.set_pace(true, Time(0));
        assert_eq!(outside.due(), Time(PAUSE_NS_LEAST));
        assert_eq!(outside.take_next(), Some(first));
        assert_eq!(outside.len(), 0);
        assert_eq!(outside.take_next(), None);
    }
}
