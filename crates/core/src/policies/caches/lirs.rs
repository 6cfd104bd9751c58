//! LIRS: pages with short times between uses keep the memory, however recent the others are.
//!
//! Most frames hold such pages, called hot here; a few hold the others, which leave in the order
//! they came. A stack has every page in the order of last use, down to the hot page used longest
//! ago, the names of pages that left among them. A page that is used while it is on the stack was
//! used twice in less time than that hot page, and takes its place.
//!
//! The paper's names are LIR for hot, resident HIR for cold, and non-resident HIR for a name. It
//! lets the stack grow without bound; here the names are bounded, and the page that left longest
//! ago is forgotten first.
//!
//! # Invariants
//! 1. A hot page is on the stack and not among the cold; a page at the bottom of the stack is hot.
//! 2. Every name is on the stack.

use crate::collections::queue::Queues;
use crate::id::{FrameId, PageId};
use crate::policies::parts::directory::Directory;
use crate::policies::parts::lists::pull;
use crate::policies::settings::Settings;
use crate::seams::policy::{
    Arrival, Cause, Departure, Description, Knob, Policy, Probe, Sees, SimulatedPolicy, SpacePolicy,
};

/// The description of `lirs`.
pub static DESCRIPTION: Description = Description {
    name: "lirs",
    summary: "pages whose last two uses lie close together keep the memory",
    lineage: &["Jiang and Zhang 2002"],
    sees: Sees::References,
    knobs: &[
        Knob {
            name: "hir",
            meaning: "frames for pages whose uses lie far apart, in thousandths, one at least",
            min: 0,
            max: 1000,
            default: 10,
        },
        Knob {
            name: "ghosts",
            meaning: "names kept of pages that left, in thousandths of the frames",
            min: 0,
            max: 100_000,
            default: 1000,
        },
    ],
};

/// The list of the stack, the oldest in front.
const STACK: u8 = 0;
/// The resident pages that are cold, the next to leave in front.
const COLD: u8 = 0;
/// The resident pages that are hot, in no order that matters.
const HOT: u8 = 1;

struct Lirs {
    /// Frames, and behind them the entries of the directory.
    stack: Queues,
    resident: Queues,
    ghosts: Directory,
    /// The entries, the page that left longest ago in front.
    left: Queues,
    frames_max: u32,
    /// The number of pages memory held when one last had to leave; before that, its frames.
    full: u32,
    hir_permille: u64,
    ghosts_permille: u64,
}

/// Makes a `lirs`.
pub fn build(settings: Settings) -> impl Policy {
    let frames_max = settings.frames_max;
    let (hir_permille, ghosts_permille) = (settings.knobs[0], settings.knobs[1]);
    // One more than is kept: the oldest goes when a new one has come.
    let ghosts_max = (u64::from(frames_max) * ghosts_permille / 1000 + 1) as u32;
    Lirs {
        stack: Queues::in_two(1, frames_max, ghosts_max),
        resident: Queues::new(2, frames_max),
        ghosts: Directory::new(ghosts_max),
        left: Queues::new(1, ghosts_max),
        frames_max,
        full: settings.frames,
        hir_permille,
        ghosts_permille,
    }
}

impl Policy for Lirs {
    fn describe(&self) -> &'static Description {
        &DESCRIPTION
    }

    fn page_entered(&mut self, frame: FrameId, arrival: &Arrival) {
        let entry = self.ghosts.find(arrival.page);
        if let Some(entry) = entry {
            self.forget(entry);
        }
        let is_used = match arrival.cause {
            Cause::Fetched | Cause::ZeroFill | Cause::Copied | Cause::Adopted => true,
            // Not used since it was named to leave, or at all.
            Cause::Prefetched | Cause::ZeroAhead | Cause::Kept | Cause::Cleaned => false,
        };
        if self.resident.length(HOT) < self.hot_most() || (is_used && entry.is_some()) {
            self.stack.push_back(STACK, frame.0);
            self.resident.push_back(HOT, frame.0);
            self.demote();
        } else {
            if is_used {
                self.stack.push_back(STACK, frame.0);
            }
            self.resident.push_back(COLD, frame.0);
        }
        self.prune();
    }

    fn page_left(&mut self, frame: FrameId, page: PageId, departure: Departure) {
        self.resident.remove(frame.0);
        if self.stack.list_of(frame.0).is_none() {
            return;
        }
        match departure {
            Departure::Evicted => {
                let entry = self.ghosts.insert(page);
                self.left.push_back(0, entry);
                self.stack.replace(frame.0, self.frames_max + entry);
                self.trim();
            }
            Departure::Discarded => _ = self.stack.remove(frame.0),
        }
        self.prune();
    }

    fn choose(&mut self, probe: &mut Probe<'_>) -> Option<FrameId> {
        self.full = self.resident.length(COLD) + self.resident.length(HOT);
        self.demote();
        self.prune();
        if let Some(frame) = pull(&mut self.resident, COLD, probe) {
            return Some(frame);
        }
        // Every cold page must stay: the hot page used longest ago goes.
        let frames = self.stack.iter(STACK).filter(|&it| it < self.frames_max);
        let mut frames = frames.map(FrameId);
        frames.find(|&frame| probe.may_leave(frame))
    }

    fn resize(&mut self, frames: u32) {
        self.full = frames;
    }

    fn check(&self) {
        self.stack.check();
        self.resident.check();
        self.ghosts.check();
        self.left.check();
        assert_eq!(self.left.length(0), self.ghosts.len());
        for entry in self.left.iter(0) {
            let member = self.frames_max + entry;
            assert_eq!(
                self.stack.list_of(member),
                Some(STACK),
                "a name is off the stack"
            );
        }
        for frame in self.resident.iter(HOT) {
            assert_eq!(
                self.stack.list_of(frame),
                Some(STACK),
                "a hot page is off the stack"
            );
        }
        let bottom = self.stack.front(STACK);
        assert!(
            bottom.is_none_or(|member| self.is_hot(member)),
            "the stack is not pruned"
        );
    }
}

impl SimulatedPolicy for Lirs {
    #[inline]
    fn page_referenced(&mut self, frame: FrameId) {
        if self.resident.list_of(frame.0) == Some(HOT) {
            let was_bottom = self.stack.front(STACK) == Some(frame.0);
            self.stack.move_to_back(STACK, frame.0);
            if was_bottom {
                self.prune();
            }
            return;
        }
        let was_on_stack = self.stack.list_of(frame.0).is_some();
        self.stack.move_to_back(STACK, frame.0);
        let list = if was_on_stack { HOT } else { COLD };
        self.resident.move_to_back(list, frame.0);
        self.demote();
        self.prune();
    }
}

impl SpacePolicy for Lirs {}

impl Lirs {
    /// The number of pages that may be hot.
    fn hot_most(&self) -> u32 {
        let cold = u64::from(self.full) * self.hir_permille / 1000;
        self.full - (cold as u32).clamp(1.min(self.full), self.full)
    }

    fn is_hot(&self, member: u32) -> bool {
        member < self.frames_max && self.resident.list_of(member) == Some(HOT)
    }

    /// Makes the hot pages used longest ago cold until there are no more than may be.
    fn demote(&mut self) {
        while self.resident.length(HOT) > self.hot_most() {
            self.prune();
            let bottom = self.stack.front(STACK).expect("hot pages are on the stack");
            self.stack.remove(bottom);
            self.resident.move_to_back(COLD, bottom);
        }
    }

    /// Takes what is not hot off the bottom of the stack.
    fn prune(&mut self) {
        while let Some(bottom) = self.stack.front(STACK) {
            if self.is_hot(bottom) {
                break;
            }
            match bottom.checked_sub(self.frames_max) {
                Some(entry) => self.forget(entry),
                None => _ = self.stack.remove(bottom),
            }
        }
    }

    /// Forgets the pages that left longest ago until no more names are kept than may be.
    fn trim(&mut self) {
        let most = u64::from(self.full) * self.ghosts_permille / 1000;
        while u64::from(self.ghosts.len()) > most {
            let oldest = self.left.front(0).expect("names are kept");
            self.forget(oldest);
        }
    }

    fn forget(&mut self, entry: u32) {
        self.ghosts.remove(entry);
        self.left.remove(entry);
        self.stack.remove(self.frames_max + entry);
    }
}
