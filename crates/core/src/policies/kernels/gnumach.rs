//! The pager of GNU Mach, in the three forms that were measured against each other.
//!
//! Active and inactive pages are kept apart by who keeps their contents: internal pages belong to
//! the default pager, external ones to a file's. All forms refill the inactive lists alike, take
//! external pages first to do so, and look at reference bits on inactive pages alone. They differ
//! in which of the four lists gives up its oldest page:
//!
//! - `gnumach` (as released until 2025): external pages, active ones included, before any
//!   internal one.
//! - `gnumach-activity` (as merged in December 2025): inactive pages of both kinds before active
//!   ones.
//! - `gnumach-balanced` (as proposed, and not merged): external pages while they are a 25th of
//!   memory, and else internal ones.
//!
//! The original works in passes of five evictions and refills at the start of each; so does this.
//! Its waits for the laundry are the core's business, and segments by address are left out: there
//! is one.

use crate::collections::column::Column;
use crate::collections::queue::Queues;
use crate::id::{FrameId, PageId};
use crate::policies::parts::lists::pull;
use crate::policies::parts::sequential::DropBehind;
use crate::policies::settings::Settings;
use crate::seams::policy::{
    Arrival, Cause, Departure, Description, Knob, Policy, Probe, Sees, SimulatedPolicy, SpacePolicy,
};

const PASS: Knob = Knob {
    name: "pass",
    meaning: "evictions from one refill of the inactive lists to the next",
    min: 1,
    max: 1000,
    default: 5,
};

const ACTIVE_SHARE: Knob = Knob {
    name: "active",
    meaning: "the most pages that stay active, in thousandths",
    min: 0,
    max: 1000,
    default: 333,
};

const BEHIND: Knob = Knob {
    name: "deactivate-behind",
    meaning: "1: a page is inactive as soon as the next of its object comes; 0: it is not",
    min: 0,
    max: 1,
    default: 1,
};

const DIVISOR: Knob = Knob {
    name: "divisor",
    meaning: "external pages leave first while they are at least 1/N of all",
    min: 1,
    max: 1000,
    default: 25,
};

/// The description of `gnumach`.
pub static RELEASED: Description = Description {
    name: "gnumach",
    summary: "external pages leave before any internal one does",
    lineage: &[
        "Mach 3.0, 1991 (vm_pageout)",
        "GNU Mach 2016-2025 (vm_page)",
    ],
    sees: Sees::Bits,
    knobs: &[PASS, ACTIVE_SHARE, BEHIND],
};

/// The description of `gnumach-activity`.
pub static ACTIVITY: Description = Description {
    name: "gnumach-activity",
    summary: "inactive pages leave before active ones, and among them external ones first",
    lineage: &[
        "Mach 3.0, 1991 (vm_pageout)",
        "GNU Mach, December 2025 (vm_page)",
    ],
    sees: Sees::Bits,
    knobs: &[PASS, ACTIVE_SHARE, BEHIND],
};

/// The description of `gnumach-balanced`.
pub static BALANCED: Description = Description {
    name: "gnumach-balanced",
    summary: "external pages leave while they are a 25th of memory, and else internal ones",
    lineage: &["Mach 3.0, 1991 (vm_pageout)", "Kelly 2025 (bug-hurd)"],
    sees: Sees::Bits,
    knobs: &[PASS, ACTIVE_SHARE, BEHIND, DIVISOR],
};

const ACTIVE_EXTERNAL: u8 = 0;
const ACTIVE_INTERNAL: u8 = 1;
const INACTIVE_EXTERNAL: u8 = 2;
const INACTIVE_INTERNAL: u8 = 3;
/// Pages a sequential reader has passed: inactive as soon as their bits can be cleared, which
/// needs a probe.
const PASSED: u8 = 4;
const LISTS: u8 = 5;

#[derive(Clone, Copy)]
enum Order {
    Released,
    Activity,
    Balanced { divisor: u64 },
}

struct GnuMach {
    description: &'static Description,
    order: Order,
    queues: Queues,
    external: Column<bool>,
    drop_behind: DropBehind,
    pass: u64,
    active_permille: u64,
    is_deactivating_behind: bool,
    /// Evictions until the next refill.
    pass_left: u64,
}

/// Makes a `gnumach`.
pub fn build_released(settings: Settings) -> impl Policy {
    build(&RELEASED, Order::Released, &settings)
}

/// Makes a `gnumach-activity`.
pub fn build_activity(settings: Settings) -> impl Policy {
    build(&ACTIVITY, Order::Activity, &settings)
}

/// Makes a `gnumach-balanced`.
pub fn build_balanced(settings: Settings) -> impl Policy {
    build(
        &BALANCED,
        Order::Balanced {
            divisor: settings.knobs[3],
        },
        &settings,
    )
}

fn build(description: &'static Description, order: Order, settings: &Settings) -> GnuMach {
    GnuMach {
        description,
        order,
        queues: Queues::new(LISTS, settings.frames_max),
        external: Column::new(false, settings.frames_max as usize),
        drop_behind: DropBehind::new(settings.frames_max),
        pass: settings.knobs[0],
        active_permille: settings.knobs[1],
        is_deactivating_behind: settings.knobs[2] == 1,
        pass_left: 0,
    }
}

impl Policy for GnuMach {
    fn describe(&self) -> &'static Description {
        self.description
    }

    fn page_entered(&mut self, frame: FrameId, arrival: &Arrival) {
        self.external[frame.index()] = arrival.is_external;
        // What a pager supplies without being asked has yet to show its use.
        let list = match arrival.cause {
            Cause::Prefetched | Cause::ZeroAhead | Cause::Cleaned => self.inactive_list(frame),
            Cause::ZeroFill | Cause::Fetched | Cause::Copied | Cause::Adopted | Cause::Kept => {
                self.active_list(frame)
            }
        };
        self.queues.push_back(list, frame.0);
        let passed = self.drop_behind.enter(frame, arrival.page);
        if let Some(passed) = passed.filter(|_| self.is_deactivating_behind) {
            self.queues.move_to_back(PASSED, passed.0);
        }
    }

    fn page_left(&mut self, frame: FrameId, _page: PageId, _departure: Departure) {
        self.queues.remove(frame.0);
        self.drop_behind.leave(frame);
    }

    fn page_rescued(&mut self, frame: FrameId) {
        // Every fault queues the page anew, wherever it stood.
        self.queues.move_to_back(self.active_list(frame), frame.0);
    }

    fn choose(&mut self, probe: &mut Probe<'_>) -> Option<FrameId> {
        self.clear_passed(probe);
        if self.pass_left == 0 {
            self.refill(probe);
            self.pass_left = self.pass;
        }
        self.pass_left -= 1;
        match self.order {
            Order::Released => self.find_in_order(RELEASED_ORDER, probe),
            Order::Activity => self.find_in_order(ACTIVITY_ORDER, probe),
            Order::Balanced { divisor } => {
                let external = self.length(&[ACTIVE_EXTERNAL, INACTIVE_EXTERNAL]);
                let order = match external * divisor >= self.length(&RELEASED_ORDER) {
                    true => RELEASED_ORDER,
                    false => INTERNAL_FIRST,
                };
                self.find_in_order(order, probe)
            }
        }
    }

    fn check(&self) {
        self.queues.check();
        for list in 0..LISTS {
            for frame in self.queues.iter(list) {
                let is_external = self.external[frame as usize];
                let is_listed_so = match list {
                    ACTIVE_EXTERNAL | INACTIVE_EXTERNAL => is_external,
                    ACTIVE_INTERNAL | INACTIVE_INTERNAL => !is_external,
                    _ => true,
                };
                assert!(is_listed_so, "frame {frame} is on a list of the other kind");
            }
        }
    }
}

impl SimulatedPolicy for GnuMach {}

impl SpacePolicy for GnuMach {}

const RELEASED_ORDER: [u8; 4] = [
    INACTIVE_EXTERNAL,
    ACTIVE_EXTERNAL,
    INACTIVE_INTERNAL,
    ACTIVE_INTERNAL,
];
const ACTIVITY_ORDER: [u8; 4] = [
    INACTIVE_EXTERNAL,
    INACTIVE_INTERNAL,
    ACTIVE_EXTERNAL,
    ACTIVE_INTERNAL,
];
const INTERNAL_FIRST: [u8; 4] = [
    INACTIVE_INTERNAL,
    ACTIVE_INTERNAL,
    INACTIVE_EXTERNAL,
    ACTIVE_EXTERNAL,
];

impl GnuMach {
    /// Clears the bits of the pages that sequential readers have passed.
    fn clear_passed(&mut self, probe: &mut Probe<'_>) {
        while let Some(frame) = self.queues.front(PASSED) {
            let frame = FrameId(frame);
            probe.take_referenced(frame);
            self.queues.move_to_back(self.inactive_list(frame), frame.0);
        }
    }

    /// Makes the oldest active pages inactive until the active ones are down to their share:
    /// internal ones only when no external one can be had, and none is asked about its use.
    fn refill(&mut self, probe: &mut Probe<'_>) {
        let total = self.length(&RELEASED_ORDER);
        while self.length(&[ACTIVE_EXTERNAL, ACTIVE_INTERNAL]) * 1000 > total * self.active_permille
        {
            let frame = pull(&mut self.queues, ACTIVE_EXTERNAL, probe)
                .or_else(|| pull(&mut self.queues, ACTIVE_INTERNAL, probe));
            let Some(frame) = frame else { break };
            probe.take_referenced(frame);
            self.queues.move_to_back(self.inactive_list(frame), frame.0);
        }
    }

    /// Finds the oldest page that may leave on the first list that has one. Inactive pages that
    /// were used become active; active ones are taken without a question.
    fn find_in_order(&mut self, order: [u8; 4], probe: &mut Probe<'_>) -> Option<FrameId> {
        for list in order {
            let is_active = matches!(list, ACTIVE_EXTERNAL | ACTIVE_INTERNAL);
            while let Some(frame) = pull(&mut self.queues, list, probe) {
                if is_active || !probe.take_referenced(frame) {
                    return Some(frame);
                }
                self.queues.move_to_back(self.active_list(frame), frame.0);
            }
        }
        None
    }

    fn active_list(&self, frame: FrameId) -> u8 {
        if self.external[frame.index()] {
            ACTIVE_EXTERNAL
        } else {
            ACTIVE_INTERNAL
        }
    }

    fn inactive_list(&self, frame: FrameId) -> u8 {
        if self.external[frame.index()] {
            INACTIVE_EXTERNAL
        } else {
            INACTIVE_INTERNAL
        }
    }

    fn length(&self, lists: &[u8]) -> u64 {
        lists
            .iter()
            .map(|&list| u64::from(self.queues.length(list)))
            .sum()
    }
}
