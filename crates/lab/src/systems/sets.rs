//! Systems that give each program the memory it needs: working sets, fault frequency, VMS.

use tidemark_core::vm::Config;

use super::marks::Marks;
use super::plain::FIFO;
use crate::world::System;

/// The interval at which sets are looked at, with reference bits.
const SAMPLE_NS: u64 = 10_000_000;

/// Denning's.
pub const WORKING_SET: System = System {
    name: "working-set",
    summary: "pages not used for a window of a program's own time leave; whole programs wait",
    lineage: &["Denning, CACM 11(5), 1968", "Denning, IEEE TSE 6(1), 1980"],
    policy: "working-set",
    load: "medium-term",
    tick_ns: SAMPLE_NS,
    ..FIFO
};

/// Chu and Opderbeck's.
pub const PFF: System = System {
    name: "pff",
    summary: "who faults rarely gives up what it has not used since; whole programs wait",
    lineage: &["Chu and Opderbeck, IEEE Computer 9(11), 1976"],
    policy: "pff",
    ..WORKING_SET
};

/// VMS.
pub const VMS: System = System {
    name: "vms",
    summary: "first in, first out in each program; what leaves waits on lists of free and modified",
    lineage: &[
        "Levy and Lipman, IEEE Computer 15(3), 1982",
        "VAX/VMS 4, 1984",
    ],
    policy: "vms",
    config: |frames| Config {
        // Page-ins of up to 16 pages, page-outs of up to 96 with neighbours in the lists.
        cluster_pages: 64,
        default_cluster_pages: 16,
        ..Marks {
            reserve: 0,
            low: (frames / 100).max(2),
            high: (frames / 50).max(4),
        }
        .config(frames)
    },
    load: "none",
    ..FIFO
};
