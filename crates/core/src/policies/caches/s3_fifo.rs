//! S3-FIFO: a small queue that most pages leave soon, a main one for those that were used, and the
//! names of those that left the small one unused.
//!
//! A page that comes goes through the small queue. If it was used often enough by its end it moves
//! to the main queue, else it leaves and its name is kept for a while; a page that comes back in
//! that time goes to the main queue at once. There a page that was used goes round again.
//!
//! `s3-fifo` is the published one, which counts uses up to three, and asks for two in the small
//! queue. `s3-fifo-bits` sees one bit a page: uses that follow each other closely are one, and one
//! is enough.

use crate::collections::column::Column;
use crate::collections::queue::Queues;
use crate::id::{FrameId, PageId};
use crate::policies::parts::ghost_list::Names;
use crate::policies::parts::lists::pull;
use crate::policies::parts::second_reference::{Fresh, Use};
use crate::policies::settings::Settings;
use crate::seams::policy::{
    Arrival, Cause, Departure, Description, Knob, Policy, Probe, Sees, SimulatedPolicy, SpacePolicy,
};

/// The description of `s3-fifo`.
pub static DESCRIPTION: Description = Description {
    name: "s3-fifo",
    summary: "a small queue to prove oneself in, a main one, and the names of those that failed",
    lineage: &["Yang, Zhang, Qiu, Yue and Rashmi 2023"],
    sees: Sees::References,
    knobs: KNOBS,
};

/// The description of `s3-fifo-bits`.
pub static BITS: Description = Description {
    name: "s3-fifo-bits",
    summary: "s3-fifo that sees a bit a page: one use between two looks is enough",
    lineage: &["Yang, Zhang, Qiu, Yue and Rashmi 2023"],
    sees: Sees::Bits,
    knobs: KNOBS,
};

const KNOBS: &[Knob] = &[
    Knob {
        name: "small",
        meaning: "frames for pages that came and were not known, in thousandths",
        min: 1,
        max: 1000,
        default: 100,
    },
    Knob {
        name: "ghost",
        meaning: "names kept of pages that left, in thousandths of the frames",
        min: 0,
        max: 4000,
        default: 900,
    },
];

const SMALL: u8 = 0;
const MAIN: u8 = 1;

/// Uses are counted up to here.
const USES_MAX: u8 = 3;
/// This many uses take a page from the small queue to the main one.
const USES_ENOUGH: u8 = 2;

/// Lists and names; who was used is the affair of [`Uses`].
struct S3Fifo<U> {
    description: &'static Description,
    queues: Queues,
    ghosts: Names,
    uses: U,
    frames: u64,
    small_permille: u64,
    ghost_permille: u64,
}

/// The counts of pages' uses.
trait Uses: Send {
    /// A page has come to `frame`.
    fn enter(&mut self, frame: FrameId);
    /// The page in `frame` has left.
    fn leave(&mut self, frame: FrameId);
    /// The page in `frame` was used; told if every reference is seen.
    fn count(&mut self, frame: FrameId);
    /// Tells whether the page in `frame`, at the end of the small queue, goes on to the main one.
    /// If so its uses are forgotten.
    fn take_proof(&mut self, frame: FrameId, probe: &mut Probe<'_>) -> Use;
    /// Returns true if the page in `frame`, at the end of the main queue, was used. If so it is
    /// held one use less.
    fn take_use(&mut self, frame: FrameId, probe: &mut Probe<'_>) -> bool;
}

/// The number of uses of each frame's page.
struct Counts(Column<u8>);

impl Uses for Counts {
    fn enter(&mut self, frame: FrameId) {
        self.0[frame.index()] = 0;
    }

    fn leave(&mut self, _frame: FrameId) {}

    fn count(&mut self, frame: FrameId) {
        let uses = &mut self.0[frame.index()];
        *uses = (*uses + 1).min(USES_MAX);
    }

    fn take_proof(&mut self, frame: FrameId, _probe: &mut Probe<'_>) -> Use {
        let uses = &mut self.0[frame.index()];
        if *uses < USES_ENOUGH {
            return Use::None;
        }
        *uses = 0;
        Use::Again
    }

    fn take_use(&mut self, frame: FrameId, _probe: &mut Probe<'_>) -> bool {
        let uses = &mut self.0[frame.index()];
        let is_used = *uses > 0;
        *uses = uses.saturating_sub(1);
        is_used
    }
}

impl Uses for Fresh {
    fn enter(&mut self, frame: FrameId) {
        Fresh::enter(self, frame);
    }

    fn leave(&mut self, frame: FrameId) {
        Fresh::leave(self, frame);
    }

    fn count(&mut self, _frame: FrameId) {}

    fn take_proof(&mut self, frame: FrameId, probe: &mut Probe<'_>) -> Use {
        Fresh::take_use(self, frame, probe)
    }

    fn take_use(&mut self, frame: FrameId, probe: &mut Probe<'_>) -> bool {
        Fresh::take_use(self, frame, probe) != Use::None
    }
}

/// Makes an `s3-fifo`.
pub fn build(settings: Settings) -> impl Policy {
    let counts = Counts(Column::new(0, settings.frames_max as usize));
    make(&DESCRIPTION, counts, &settings)
}

/// Makes an `s3-fifo-bits`.
pub fn build_bits(settings: Settings) -> impl Policy {
    let fresh = Fresh::new(settings.frames_max);
    make(&BITS, fresh, &settings)
}

fn make<U: Uses>(description: &'static Description, uses: U, settings: &Settings) -> S3Fifo<U> {
    let (small_permille, ghost_permille) = (settings.knobs[0], settings.knobs[1]);
    // One more than is kept: a page leaves before the name of the one that comes is taken out.
    let ghosts_max = u64::from(settings.frames_max) * ghost_permille / 1000 + 1;
    S3Fifo {
        description,
        queues: Queues::new(2, settings.frames_max),
        ghosts: Names::new(ghosts_max as u32),
        uses,
        frames: settings.frames.into(),
        small_permille,
        ghost_permille,
    }
}

impl<U: Uses> Policy for S3Fifo<U> {
    fn describe(&self) -> &'static Description {
        self.description
    }

    fn page_entered(&mut self, frame: FrameId, arrival: &Arrival) {
        let is_known = self.ghosts.take(arrival.page).is_some();
        self.ghosts.trim(self.frames * self.ghost_permille / 1000);
        let is_wanted_back = match arrival.cause {
            Cause::Fetched | Cause::ZeroFill | Cause::Copied | Cause::Adopted => is_known,
            // Not asked for again.
            Cause::Prefetched | Cause::ZeroAhead | Cause::Kept | Cause::Cleaned => false,
        };
        self.uses.enter(frame);
        let list = if is_wanted_back { MAIN } else { SMALL };
        self.queues.push_back(list, frame.0);
    }

    fn page_left(&mut self, frame: FrameId, page: PageId, departure: Departure) {
        self.uses.leave(frame);
        let list = self.queues.remove(frame.0);
        if list == Some(SMALL) && departure == Departure::Evicted {
            self.ghosts.push_name(page);
        }
    }

    fn choose(&mut self, probe: &mut Probe<'_>) -> Option<FrameId> {
        let chosen = self.choose_small(probe);
        let chosen = chosen.or_else(|| self.choose_main(probe));
        chosen.or_else(|| pull(&mut self.queues, SMALL, probe))
    }

    fn resize(&mut self, frames: u32) {
        self.frames = frames.into();
    }

    fn check(&self) {
        self.queues.check();
        self.ghosts.check();
    }
}

impl<U: Uses> SimulatedPolicy for S3Fifo<U> {
    fn pages_ahead(&self, wanted: &[PageId], leaving: &[PageId]) {
        self.ghosts.bring_near(wanted, leaving);
    }

    #[inline]
    fn page_referenced(&mut self, frame: FrameId) {
        self.uses.count(frame);
    }
}

impl<U: Uses> SpacePolicy for S3Fifo<U> {}

impl<U: Uses> S3Fifo<U> {
    /// Looks through the small queue, if it has its share: the first page that was not used enough,
    /// or one of the main queue if that has more than its share when one was.
    fn choose_small(&mut self, probe: &mut Probe<'_>) -> Option<FrameId> {
        let share = (self.frames * self.small_permille / 1000).max(1);
        let has_share = u64::from(self.queues.length(SMALL)) >= share;
        if !has_share && self.queues.length(MAIN) > 0 {
            return None;
        }
        // A page whose first answer says nothing is asked twice.
        for _ in 0..2 * self.queues.length(SMALL) {
            let frame = pull(&mut self.queues, SMALL, probe)?;
            match self.uses.take_proof(frame, probe) {
                Use::None => return Some(frame),
                Use::Unknown => self.queues.move_to_back(SMALL, frame.0),
                Use::Again => {
                    self.queues.move_to_back(MAIN, frame.0);
                    if u64::from(self.queues.length(MAIN)) + share > self.frames {
                        return self.choose_main(probe);
                    }
                }
            }
        }
        None
    }

    /// The first page of the main queue that is held by no use.
    fn choose_main(&mut self, probe: &mut Probe<'_>) -> Option<FrameId> {
        // Each round takes a use from every page.
        for _ in 0..=u64::from(USES_MAX) * u64::from(self.queues.length(MAIN)) {
            let frame = pull(&mut self.queues, MAIN, probe)?;
            if !self.uses.take_use(frame, probe) {
                return Some(frame);
            }
            self.queues.move_to_back(MAIN, frame.0);
        }
        None
    }
}
