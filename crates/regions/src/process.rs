//! The private memory of the whole process, as far as it is no page of an engine.

use std::sync::atomic::{AtomicU64, Ordering};

use tidemark_live::sys::Errno;
use tidemark_live::sys::sizes::OwnSizes;

/// The step of pages in which memory beside is counted: a limit that changes costs some work.
const STEP: u64 = 32;

/// The pages that all engines of the process have in memory.
static HELD: AtomicU64 = AtomicU64::new(0);

/// An engine's part of [`HELD`].
#[derive(Default)]
pub(crate) struct Held(u64);

/// The private memory that the process has got since a moment, beside the pages of engines.
pub(crate) struct Beside {
    sizes: OwnSizes,
    /// Below zero in a forked child, which has none of the pages that engines had.
    first: i64,
}

impl Held {
    /// Notes that the engine has `pages` now.
    pub(crate) fn set(&mut self, pages: u64) {
        // Each engine takes away what it has added: the sum stays at zero or above.
        HELD.fetch_add(pages.wrapping_sub(self.0), Ordering::Relaxed);
        self.0 = pages;
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.set(0);
    }
}

impl Beside {
    /// Counts from now on.
    pub(crate) fn begin() -> Result<Beside, Errno> {
        let mut begun = Beside {
            sizes: OwnSizes::open()?,
            first: 0,
        };
        begun.first = begun.count();
        Ok(begun)
    }

    /// The pages that have come since it began.
    pub(crate) fn pages(&self) -> u32 {
        let more = (self.count() - self.first).max(0) as u64;
        u32::try_from(more.next_multiple_of(STEP)).unwrap_or(u32::MAX)
    }

    fn count(&self) -> i64 {
        let all = self.sizes.read().unwrap_or_default().anonymous_pages;
        all as i64 - HELD.load(Ordering::Relaxed) as i64
    }
}
