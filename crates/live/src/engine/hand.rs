//! The hand: a second thread that may fault where the engine must not.
//!
//! After a fork, pages are shared with the other process and can't be moved until they are written
//! to. Asking the kernel to write-populate them breaks the sharing and changes nothing; but a page
//! that is missing meanwhile makes that call a fault, which the engine serves.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;

use crate::sys::{PAGE, futex, memory};

const PLACES: usize = 256;

/// What the hand is to do: pages, by address, in a ring without order.
pub struct Hand {
    pages: [AtomicUsize; PLACES],
    posted: AtomicU32,
}

impl Hand {
    /// A hand with nothing to do.
    pub const fn new() -> Hand {
        Hand {
            pages: [const { AtomicUsize::new(0) }; PLACES],
            posted: AtomicU32::new(0),
        }
    }

    /// Has the page at `address` made this process's own. False if there is too much to do already.
    pub fn push(&self, address: usize) -> bool {
        for page in &self.pages {
            if page
                .compare_exchange(0, address, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok()
            {
                self.posted.fetch_add(1, Ordering::Release);
                futex::wake(&self.posted, 1);
                return true;
            }
        }
        false
    }

    /// Forgets everything: for a forked child.
    pub fn clear(&self) {
        self.pages
            .iter()
            .for_each(|page| page.store(0, Ordering::Release));
    }

    /// Works for ever. Runs on a thread of its own.
    pub fn run(&self) -> ! {
        loop {
            let posted = self.posted.load(Ordering::Acquire);
            for page in &self.pages {
                let address = page.load(Ordering::Acquire);
                if address != 0 {
                    // A page that is gone by now needs nothing.
                    let _ = memory::populate_for_writing(address, PAGE);
                    page.store(0, Ordering::Release);
                }
            }
            futex::wait(&self.posted, posted, Duration::from_secs(60));
        }
    }
}

impl Default for Hand {
    fn default() -> Self {
        Hand::new()
    }
}
