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
    first: u64,
}

impl Held {
    /// Notes that the engine has `pages` now.
    pub(crate) fn set(&mut self, pages: u64) {
        // Each engine adds and takes away what it has added: the sum never wraps for long.
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
        let more = self
            .count()
            .saturating_sub(self.first)
            .next_multiple_of(STEP);
        u32::try_from(more).unwrap_or(u32::MAX)
    }

    fn count(&self) -> u64 {
        let all = self.sizes.read().unwrap_or_default().anonymous_pages;
        all.saturating_sub(HELD.load(Ordering::Relaxed))
    }
}
