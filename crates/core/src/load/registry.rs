//! The load controls there are: one line each.

use alloc::boxed::Box;

use super::{clock_pressure, medium_term, swap_token, task_swapper, unlimited, working_set};
use crate::policies::settings::{BuildError, resolve_knobs};
use crate::seams::load_control::{Description, LoadControl};

/// Every load control: what it says of itself, and how it is made.
static ENTRIES: &[Entry] = &[
    Entry {
        description: &unlimited::DESCRIPTION,
        build: unlimited::build,
    },
    Entry {
        description: &medium_term::DESCRIPTION,
        build: medium_term::build,
    },
    Entry {
        description: &medium_term::VMS,
        build: medium_term::build_vms,
    },
    Entry {
        description: &task_swapper::DESCRIPTION,
        build: task_swapper::build,
    },
    Entry {
        description: &swap_token::ORIGINAL,
        build: swap_token::build_original,
    },
    Entry {
        description: &swap_token::PREEMPTING,
        build: swap_token::build_preempting,
    },
    Entry {
        description: &clock_pressure::DESCRIPTION,
        build: clock_pressure::build,
    },
    Entry {
        description: &working_set::DESCRIPTION,
        build: working_set::build,
    },
];

/// One load control of the registry.
#[derive(Debug)]
pub struct Entry {
    /// The load control's own description.
    pub description: &'static Description,
    build: fn(&[u64]) -> Box<dyn LoadControl>,
}

impl Entry {
    /// Makes it. Knobs that are not named keep their defaults.
    pub fn build<'a>(
        &self,
        knobs: &[(&'a str, u64)],
    ) -> Result<Box<dyn LoadControl>, BuildError<'a>> {
        resolve_knobs(self.description.knobs, knobs).map(|values| (self.build)(&values))
    }
}

/// All load controls, in the order of their history.
pub fn entries() -> &'static [Entry] {
    ENTRIES
}

/// The load control of that name.
pub fn find(name: &str) -> Option<&'static Entry> {
    ENTRIES.iter().find(|entry| entry.description.name == name)
}
