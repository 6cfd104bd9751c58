//! Systems of one idea: the oldest policies with nothing around them, and our own.

use tidemark_core::vm::Config;

use super::machines;
use crate::world::{Costs, MachineKind, System};

const SECOND_NS: u64 = 1_000_000_000;

/// First in, first out, and nothing else.
pub const FIFO: System = System {
    name: "fifo",
    summary: "the oldest page leaves for each that comes, one at a time",
    lineage: &["Belady, IBM Systems Journal 5(2), 1966"],
    policy: "fifo",
    knobs: &[],
    config: Config::demand,
    costs: machines::PRESENT,
    load: "none",
    eyes: MachineKind::Bits,
    is_divided: false,
    swap_ahead_seeking: None,
    tick_ns: SECOND_NS,
};

/// One hand and one bit, and nothing else.
pub const CLOCK: System = System {
    name: "clock",
    summary: "the oldest page not used since it was last looked at leaves for each that comes",
    lineage: &["Corbato, MIT Project MAC, 1968 (Multics)"],
    policy: "clock",
    ..FIFO
};

/// Our own, as it runs live: in user space, by soft faults, in clusters.
pub const TIDEMARK: System = System {
    name: "tidemark",
    summary: "in user space: soft faults for reference bits, clusters of 256 KiB, read-ahead",
    lineage: &[
        "Mach 1986 (soft faults)",
        "UVM, 1999 (clusters by age)",
        "Tidemark",
    ],
    // It asks no page whether it is used: a page that was evicted wrongly comes back for little
    // more than the question costs.
    policy: "2q-faults",
    knobs: &[],
    config: |frames| Config::clustered(frames, frames),
    costs: Costs {
        // Measured on Linux 6.18: a fault handed to a thread, and a page moved, alone. In runs of
        // 64 a page takes 90 ns; most of what is moved at once is not in runs.
        fault_ns: 18_000,
        page_table_ns: 400,
        reverse_map_ns: 0,
        // A question unmaps the page, which is counted as such.
        question_ns: 0,
        swap_request_ns: 6_000,
        ..machines::PRESENT
    },
    load: "none",
    eyes: MachineKind::SoftFaults,
    is_divided: true,
    swap_ahead_seeking: None,
    tick_ns: SECOND_NS,
};
