//! The other Unix kernels: OSF's Mach, NetBSD, FreeBSD.

use tidemark_core::kernels::{GAINS, Kernel, Pacing, Passes, Placement};
use tidemark_core::vm::Config;

use super::mach::{MACH3, paced};
use super::marks::Marks;
use super::plain::FIFO;
use crate::world::System;

/// OSF's Mach, with clusters that have their places on the store, and a task swapper.
///
/// Neighbours that are written along are unmapped for it, and mapped again for reading when they
/// are touched; the original takes the right to write from them.
pub const OSF_MK: System = System {
    name: "osf-mk",
    summary: "Mach 3 with clusters of 4 pages, one page read ahead, and a task swapper",
    lineage: &["OSF Mach MK6/MK7, 1993-1996", "Barbou des Places 1996"],
    policy: "osf-mk",
    config: osf,
    load: "task-swapper",
    ..MACH3
};

/// NetBSD.
pub const NETBSD: System = System {
    name: "netbsd",
    summary: "two queues with shares for programs, files and text; 64 KiB to the swap at a time",
    lineage: &[
        "Cranor and Parulkar, USENIX 1999 (UVM)",
        "NetBSD 9 (uvm_pdaemon.c)",
    ],
    policy: "netbsd",
    config: netbsd,
    ..FIFO
};

/// NetBSD with the other policy in its sources.
pub const NETBSD_CLOCK_PRO: System = System {
    name: "netbsd-clock-pro",
    summary: "NetBSD with CLOCK-Pro for its policy",
    lineage: &[
        "Jiang, Chen and Zhang, USENIX 2005",
        "NetBSD 9 (uvm_pdpolicy_clockpro.c)",
    ],
    policy: "netbsd-clock-pro",
    ..NETBSD
};

/// FreeBSD.
pub const FREEBSD: System = System {
    name: "freebsd",
    summary: "use counts on active pages, a laundry for dirty ones, clusters of 32",
    lineage: &["FreeBSD 12 (vm_pageout.c)"],
    policy: "freebsd",
    config: freebsd,
    ..FIFO
};

fn osf(frames: u32) -> Config {
    // Twice the most clusters on their way, one processor, and the daemon's own five.
    let reserved = 2 * 10 + 1 + 5;
    let low = reserved + 10 + frames / 100;
    let marks = Marks {
        reserve: reserved,
        low,
        high: (reserved + 15 + frames / 80).max(low + 5),
    };
    Config {
        cluster_pages: 4,
        default_cluster_pages: 2,
        kernel: Kernel {
            placement: Placement::InPlace,
            ..paced(Passes {
                pass_pages: 1,
                // Ten clusters, of one page each that leaves; it goes on at five.
                wait_laundry: 10,
                resume_laundry: 5,
                wait_ns: 0,
                wait_page_ns: 30_000_000,
                is_pausing: false,
                is_double_paging: false,
            })
        },
        ..marks.config(frames)
    }
}

fn netbsd(frames: u32) -> Config {
    let least = (frames / 200).clamp(32, 256);
    let target = least * 4 / 3;
    let marks = Marks {
        // Four pages for the daemon, and as many more for the kernel's own.
        reserve: 12,
        low: least,
        // What is free and what is on its way together.
        high: 4 * target,
    };
    Config {
        cluster_pages: 16,
        ahead_pages_max: 128,
        ..marks.config(frames)
    }
}

fn freebsd(frames: u32) -> Config {
    let share = 4 + frames.saturating_sub(1024) / 200;
    let reserved = 32 + 2 * 16 + 2 + frames / 768;
    let target = 4 * share + reserved;
    let marks = Marks {
        reserve: share / 2 + reserved,
        low: (u64::from(target) * 9 / 10) as u32,
        high: target,
    };
    Config {
        cluster_pages: 32,
        default_cluster_pages: 8,
        ahead_pages_max: 32,
        kernel: Kernel {
            pacing: Some(Pacing::Controlled(GAINS)),
            ..Kernel::NONE
        },
        ..marks.config(frames)
    }
}
