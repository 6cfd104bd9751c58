//! Mach: from the first pager of 1986 to the three of GNU Mach.

use tidemark_core::kernels::{Kernel, Pacing, Passes};
use tidemark_core::vm::Config;

use super::machines;
use super::marks::Marks;
use super::plain::FIFO;
use crate::world::{Costs, System};

/// A page goes to the default pager and from there to the disk, in a message and an answer each.
/// Files' pagers are programs too.
const MESSAGES: Costs = Costs {
    messages_per_swap_request: 4,
    messages_per_file_request: 4,
    ..machines::PRESENT
};

/// The first pager of Mach.
pub const MACH86: System = System {
    name: "mach86",
    summary: "pages about to leave are unmapped and wait on a second queue to be touched again",
    lineage: &["Mach, 1986 (vm_pageout)"],
    policy: "mach86",
    config: |frames| {
        let low = (frames / 40).max(3);
        Marks {
            reserve: 0,
            low,
            high: (frames / 20).max(low + 1),
        }
        .config(frames)
    },
    costs: MESSAGES,
    ..FIFO
};

/// The pager of Mach 3.0, before clusters.
pub const MACH3: System = System {
    name: "mach3",
    summary: "two queues, reference bits on the inactive two thirds, 30 ms for each page sent",
    lineage: &["Mach 2.5 and 3.0, 1987-1991 (vm_pageout)"],
    policy: "mach3",
    config: |frames| Config {
        kernel: paced(Passes {
            pass_pages: 1,
            wait_laundry: 10,
            resume_laundry: 5,
            wait_ns: 0,
            wait_page_ns: 30_000_000,
            is_pausing: false,
            is_double_paging: false,
        }),
        ..Marks {
            reserve: 15,
            low: 25 + frames / 100,
            high: 30 + frames / 80,
        }
        .config(frames)
    },
    costs: MESSAGES,
    ..FIFO
};

/// GNU Mach as released until 2025.
pub const GNUMACH: System = System {
    name: "gnumach",
    summary: "files' pages leave before any other; five at a time, and 50 ms for what is dirty",
    lineage: &["Mach 3.0, 1991", "GNU Mach 2016-2025 (vm_page, vm_pageout)"],
    policy: "gnumach",
    config: gnumach,
    costs: MESSAGES,
    ..FIFO
};

/// GNU Mach as merged in December 2025.
pub const GNUMACH_ACTIVITY: System = System {
    name: "gnumach-activity",
    summary: "inactive pages of both kinds leave before active ones; else as gnumach",
    lineage: &["Mach 3.0, 1991", "GNU Mach, December 2025 (vm_page)"],
    policy: "gnumach-activity",
    ..GNUMACH
};

/// GNU Mach as proposed in 2025.
pub const GNUMACH_BALANCED: System = System {
    name: "gnumach-balanced",
    summary: "files' pages leave while they are a 25th of memory; else as gnumach",
    lineage: &["Mach 3.0, 1991", "Kelly 2025 (bug-hurd)"],
    policy: "gnumach-balanced",
    ..GNUMACH
};

/// A segment smaller than this is not pageable in the original: its least numbers of free pages
/// do not hold here then.
const SEGMENT_MIN: u32 = 2000;

fn gnumach(frames: u32) -> Config {
    let mark = |percent: u64, least: u32| {
        let share = (u64::from(frames) * percent / 100) as u32;
        match frames >= SEGMENT_MIN {
            true => share.max(least),
            false => share,
        }
    };
    Config {
        laundry_max: 5,
        kernel: paced(Passes {
            pass_pages: 5,
            wait_laundry: 1,
            resume_laundry: 0,
            wait_ns: 50_000_000,
            wait_page_ns: 0,
            is_pausing: true,
            is_double_paging: true,
        }),
        ..Marks {
            reserve: mark(5, 500),
            low: mark(6, 600),
            high: mark(10, 1000),
        }
        .config(frames)
    }
}

/// A page daemon that goes on in passes.
pub(super) fn paced(passes: Passes) -> Kernel {
    Kernel {
        pacing: Some(Pacing::Passes(passes)),
        ..Kernel::NONE
    }
}
