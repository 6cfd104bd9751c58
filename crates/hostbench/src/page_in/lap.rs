//! The loop that touches pages, under an engine and under the bare loop alike.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tidemark_core::random::mix;
use tidemark_live::sys::thread;

use crate::workload::heap::{PAGE_WORDS, word};

/// The step of a walk over all pages: a prime, so that neighbours do not follow each other.
const STRIDE: u64 = 7919;
/// The number of touches between two looks at the clock.
const LOOK_EVERY: u32 = 1024;

/// Memory by page and word.
pub trait Pages {
    /// A word, which may be a fault.
    fn word(&self, page: u32, place: usize) -> u64;
    /// Writes a word, which may be a fault.
    fn set_word(&mut self, page: u32, place: usize, value: u64);
}

/// Words that any program could have: on the heap, from a page boundary on.
pub struct Heap {
    words: Vec<u64>,
    first: usize,
}

impl Heap {
    /// `pages` of zeros.
    pub fn new(pages: u32) -> Heap {
        let words = vec![0u64; (pages as usize + 1) * PAGE_WORDS];
        let first = words.as_ptr().align_offset(PAGE_WORDS * size_of::<u64>());
        Heap { words, first }
    }

    /// Fills all of them with [records](crate::workload::heap).
    pub fn fill(&mut self, pages: u32) {
        for page in 0..pages {
            (0..PAGE_WORDS).for_each(|place| self.set_word(page, place, word(page, place)));
        }
    }
}

impl Pages for Heap {
    fn word(&self, page: u32, place: usize) -> u64 {
        black_box(self.words[self.first + page as usize * PAGE_WORDS + place])
    }

    fn set_word(&mut self, page: u32, place: usize, value: u64) {
        self.words[self.first + page as usize * PAGE_WORDS + place] = black_box(value);
    }
}

/// The order in which pages are touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// At random, by this seed.
    Random(u64),
    /// Each once, far from the one before.
    EachOnce,
    /// Each once, upwards.
    Upwards,
}

/// The things that a touch may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Touch {
    /// Reads a word; every second one is written back.
    ReadAndWrite,
    /// Reads a word.
    Read,
    /// Reads all words.
    ReadAll,
    /// Writes to a page that is new.
    First,
    /// Writes to a page that is resident.
    Again,
}

/// A number of touches, one after the other.
#[derive(Clone, Copy, Debug)]
pub struct Lap {
    /// The number of pages.
    pub pages: u32,
    /// The number of touches.
    pub touches: u32,
    /// The order of the touches.
    pub order: Order,
    /// The kind of access of each touch.
    pub touch: Touch,
    /// The time that all touches may take.
    pub limit: Duration,
}

impl Lap {
    /// Goes through it, and checks all that is read.
    ///
    /// # Errors
    /// The line that says which page was wrong, or that it took too long.
    pub fn follow(&self, memory: &mut impl Pages) -> Result<(), String> {
        let begin = Instant::now();
        for touch in 0..self.touches {
            let page = self.page(touch);
            if !self.is_right(memory, page, touch) {
                return Err(format!("page {page} came back with other contents"));
            }
            if touch % LOOK_EVERY == 0 && begin.elapsed() > self.limit {
                let limit = self.limit.as_secs();
                return Err(format!("it took longer than {limit} s"));
            }
        }
        Ok(())
    }

    /// A lap of the same touches over pages that this one was the first to touch.
    pub fn again(&self) -> Lap {
        assert_eq!(self.touch, Touch::First);
        Lap {
            touch: Touch::Again,
            ..*self
        }
    }

    fn page(&self, touch: u32) -> u32 {
        let number = match self.order {
            Order::Random(seed) => mix(seed ^ ((u64::from(touch) + 1) << 8)) >> 8,
            Order::EachOnce => u64::from(touch) * STRIDE,
            Order::Upwards => u64::from(touch),
        };
        (number % u64::from(self.pages)) as u32
    }

    fn is_right(&self, memory: &mut impl Pages, page: u32, touch: u32) -> bool {
        let place = touch as usize % PAGE_WORDS;
        match self.touch {
            Touch::First | Touch::Again => {
                memory.set_word(page, place, 1);
                memory.word(page, (place + 1) % PAGE_WORDS) == 0
            }
            Touch::ReadAll => {
                let mut places = 0..PAGE_WORDS;
                places.all(|place| memory.word(page, place) == word(page, place))
            }
            Touch::Read => memory.word(page, place) == word(page, place),
            Touch::ReadAndWrite => {
                let found = memory.word(page, place);
                if touch % 2 == 1 {
                    memory.set_word(page, place, found);
                }
                found == word(page, place)
            }
        }
    }
}

/// A second thread that computes until it is dropped.
pub struct Busy {
    shared: std::sync::Arc<(AtomicBool, AtomicU64)>,
    thread: Option<std::thread::JoinHandle<()>>,
    number: u32,
}

impl Busy {
    /// Starts it; `prepare` is called by it first.
    pub fn start(prepare: impl FnOnce() + Send + 'static) -> Busy {
        let shared = std::sync::Arc::new((AtomicBool::new(false), AtomicU64::new(0)));
        let theirs = std::sync::Arc::clone(&shared);
        let (sender, number) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            prepare();
            // It is waited for.
            let _ = sender.send(thread::current());
            while !theirs.0.load(Ordering::Relaxed) {
                theirs.1.fetch_add(1, Ordering::Relaxed);
            }
        });
        Busy {
            shared,
            thread: Some(thread),
            number: number.recv().unwrap_or_default(),
        }
    }

    /// Its number.
    pub fn number(&self) -> u32 {
        self.number
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.shared.0.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // It only counts, and does not panic.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lap(order: Order, touch: Touch) -> Lap {
        Lap {
            pages: 40,
            touches: 40,
            order,
            touch,
            limit: Duration::from_secs(60),
        }
    }

    #[test]
    fn a_walk_touches_each_page_once_and_random_ones_repeat() {
        let pages_of = |order| {
            let lap = lap(order, Touch::Read);
            let pages: std::collections::BTreeSet<u32> =
                (0..lap.touches).map(|touch| lap.page(touch)).collect();
            pages.len()
        };
        assert_eq!(pages_of(Order::EachOnce), 40);
        assert_eq!(pages_of(Order::Upwards), 40);
        assert!((15..40).contains(&pages_of(Order::Random(1))));
    }

    #[test]
    fn a_wrong_byte_is_told_and_right_ones_are_not() {
        let mut memory = Heap::new(40);
        lap(Order::EachOnce, Touch::First)
            .follow(&mut memory)
            .unwrap();
        memory.fill(40);
        for touch in [Touch::Read, Touch::ReadAndWrite, Touch::ReadAll] {
            lap(Order::Random(3), touch).follow(&mut memory).unwrap();
        }
        memory.set_word(7, 400, word(7, 400) ^ (1 << 60));
        let whole = lap(Order::EachOnce, Touch::ReadAll);
        let told = whole.follow(&mut memory).unwrap_err();
        assert_eq!(told, "page 7 came back with other contents");
    }

    #[test]
    fn a_lap_has_a_limit() {
        let mut memory = Heap::new(40);
        memory.fill(40);
        let lap = Lap {
            limit: Duration::ZERO,
            ..lap(Order::EachOnce, Touch::Read)
        };
        assert!(lap.follow(&mut memory).unwrap_err().contains("longer than"));
    }
}
