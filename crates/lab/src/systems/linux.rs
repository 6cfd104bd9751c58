//! Linux: from the virtual scan of 2.4 to two generations of the present.
//!
//! What wakes the daemon and where it stops is computed as the kernels do. Below `min` a task makes
//! room itself; so it does here, at once. Requests that follow each other on the disk are merged
//! in its queue, and page-outs are made clusters of in the first place: one is as good as the
//! other.

use tidemark_core::kernels::{Kernel, SwapAhead};
use tidemark_core::vm::Config;

use super::marks::Marks;
use super::plain::FIFO;
use crate::world::System;

/// Linux 2.4 and 2.5 without a reverse map.
pub const CLASSZONE: System = System {
    name: "linux-classzone",
    summary: "no reverse map: programs' page tables are walked for pages to unmap",
    lineage: &["Linux 2.4.10-2.4.22 and 2.5.23 (mm/vmscan.c)"],
    policy: "linux-classzone",
    config: classzone,
    ..FIFO
};

/// Linux 2.4 and 2.5 with the smallest reverse map that suffices.
pub const RMAP: System = System {
    name: "linux-rmap",
    summary: "the virtual scan's lists, with a reverse map in place of the scan",
    lineage: &["Linux 2.5.23 with minimal rmap, 2002", "Linux 2.5.25"],
    policy: "linux-rmap",
    ..CLASSZONE
};

/// The full patch.
pub const RMAP13B: System = System {
    name: "linux-rmap13b",
    summary: "reverse map, three lists, ages, and as many writes as there are dirty pages",
    lineage: &["Linux 2.4 with rmap 13b, 2002"],
    policy: "linux-rmap13b",
    config: rmap13b,
    ..FIFO
};

/// Ageing without a walk.
pub const RMAP15: System = System {
    name: "linux-rmap15",
    summary: "rmap with a list for each age, so that all pages age at once",
    lineage: &["Linux 2.4 with rmap 15", "Red Hat Enterprise Linux 3, 2003"],
    policy: "linux-rmap15",
    ..RMAP13B
};

/// Linux of the present, with its two lists a kind.
pub const MODERN: System = System {
    name: "linux-modern",
    summary: "two lists for each kind, refault distances, and the cost of either kind in balance",
    lineage: &["Linux 6.12 (mm/vmscan.c, mm/workingset.c)"],
    policy: "linux-modern",
    config: modern,
    swap_ahead_seeking: Some(SwapAhead::Slots(AROUND)),
    ..FIFO
};

/// Linux of the present, with generations.
pub const MGLRU: System = System {
    name: "linux-mglru",
    summary: "four generations of pages, aged by walks of page tables",
    lineage: &["Linux 6.1-6.12 (lru_gen)"],
    policy: "mglru",
    ..MODERN
};

/// Read with a page that is wanted: 2^3 slots, and around a page of a file as many.
const AROUND: u32 = 8;
/// Swap read-ahead, and file read-ahead, of 2.4: a block, and up to 31 pages.
const OLD_AHEAD: (SwapAhead, u32) = (SwapAhead::Block(AROUND), 31);
/// Of the present: by address, but on disks that seek by slot, and 128 KiB of a file.
const NEW_AHEAD: (SwapAhead, u32) = (SwapAhead::Addresses(AROUND), 32);

fn clustered(config: Config, (swap_ahead, ahead): (SwapAhead, u32), laundry_max: u32) -> Config {
    Config {
        cluster_pages: 32,
        default_cluster_pages: AROUND,
        ahead_pages_max: ahead,
        laundry_max,
        kernel: Kernel {
            swap_ahead,
            ..Kernel::NONE
        },
        ..config
    }
}

fn classzone(frames: u32) -> Config {
    let mask = (frames / 128).clamp(20, 255);
    let marks = Marks {
        reserve: mask,
        low: 2 * mask,
        high: 3 * mask,
    };
    // A queue of 128 requests.
    clustered(marks.config(frames), OLD_AHEAD, 128)
}

fn rmap13b(frames: u32) -> Config {
    let mask = (frames / 128).max(20);
    let extra = match (frames / 512).min(1024) {
        extra if extra < 255 => 0,
        extra => extra,
    };
    let marks = Marks {
        reserve: extra + mask.min(255),
        low: extra + 2 * mask,
        high: extra + 3 * mask,
    };
    clustered(marks.config(frames), OLD_AHEAD, u32::MAX)
}

fn modern(frames: u32) -> Config {
    let memory_kib = u64::from(frames) * 4;
    let min_kib = (16 * memory_kib).isqrt().clamp(128, 262_144);
    let min = (min_kib / 4) as u32;
    let step = (min / 4).max((u64::from(frames) * 10 / 10_000) as u32);
    let marks = Marks {
        reserve: min,
        low: min + step,
        high: min + 2 * step,
    };
    // A queue of 256 requests.
    clustered(marks.config(frames), NEW_AHEAD, 256)
}
