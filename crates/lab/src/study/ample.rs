//! Ample memory: a system that does nothing but read what is not there, for counting.

use tidemark_core::vm::Config;

use crate::world::{Costs, DiskModel, Disks, MachineKind, Program, Scenario, System};

/// Frames beside those for pages.
const FRAMES_SPARE: u64 = 1024;
/// A cache of files that are read and written by system calls is not taken to need more than
/// this many pages, 16 GiB of 4 KiB: a trace may say that a file is of any length.
const COPIED_PAGES_MAX: u64 = 1 << 22;

/// The system: a page at a time, and nothing costs anything.
pub const SYSTEM: System = System {
    name: "ample memory",
    summary: "a page at a time",
    lineage: &[],
    policy: "fifo",
    knobs: &[],
    config: Config::demand,
    costs: Costs::FREE,
    load: "none",
    eyes: MachineKind::Bits,
    is_divided: false,
    swap_ahead_seeking: None,
    tick_ns: 0,
};

/// Programs that use `pages` pages in all, with room for each of them and for the files that their
/// system calls copy, and disks that take no time.
///
/// - Needs: the pages fit a swap store.
pub fn scenario(pages: u64, programs: Vec<Program>) -> Scenario {
    let copied = programs.iter().map(|program| program.script.copied_pages());
    let copied = copied.fold(0, u64::saturating_add).min(COPIED_PAGES_MAX);
    let memory_pages =
        u32::try_from(pages + copied + FRAMES_SPARE).expect("the pages fit a swap store");
    Scenario {
        disks: Disks {
            swap: DiskModel::INSTANT,
            files: None,
        },
        ..Scenario::new(memory_pages, programs)
    }
}
