//! FreeBSD: use counts on the active queue, and a laundry for pages that must be written.
//!
//! A page's count starts at 5, goes up with each use that is seen and down without, and at 0 it
//! becomes inactive. A clock's hand goes round the active queue and does that, as far as inactive
//! pages are short. An inactive page that was used becomes active again; of the others those that
//! need no writing leave, and those that do are put into the laundry. The laundry is emptied when
//! nothing else is left, or, in the background, when it has grown against what is clean and much
//! has been freed since.
//!
//! # Departures
//! How many pages are to be freed, which FreeBSD asks of a controller ten times a second, is the
//! system's business; a scan of the active queue comes with every so many pages that leave. What
//! is kept free counts for a quarter of memory at most: FreeBSD does not run in so little that it
//! would be more. A page from the laundry is gone when it has been written, and does not return to
//! the inactive queue's head first.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use super::ages::count_down;
use super::pull::pull_any;
use super::registry::Settings;
use super::{Arrival, Cause, Departure, Description, Knob, Policy, Probe, Sees};
use crate::id::{FrameId, PageId};
use crate::queue::Queues;
use crate::time::Time;

/// What `freebsd` says of itself.
pub static DESCRIPTION: Description = Description {
    name: "freebsd",
    summary: "pages become inactive when their use counts are gone; dirty ones wait in a laundry",
    lineage: &[
        "Mach 3.0, 1991 (vm_pageout)",
        "Dyson and Greenman 1995 (act_count)",
        "FreeBSD 13 (vm_pageout)",
    ],
    sees: Sees::Bits,
    knobs: &[
        count("act-init", "the use count of a new page", 5),
        count("act-advance", "what a use adds to the count", 3),
        count("act-decline", "what a look without a use takes from it", 1),
        count("act-max", "the greatest count", 64),
    ],
};

const fn count(name: &'static str, meaning: &'static str, default: u64) -> Knob {
    Knob {
        name,
        meaning,
        min: 1,
        max: 64,
        default,
    }
}

const ACTIVE: u8 = 0;
const INACTIVE: u8 = 1;
const LAUNDRY: u8 = 2;
const LISTS: u8 = 3;

/// What a clean and a modified page made inactive count for against a shortage.
const CLEAN_WORTH: i64 = 3;
const LAUNDRY_WORTH: i64 = 1;
/// Pages that leave from one scan of the active queue to the next.
const PASS: u64 = 32;
/// The whole active queue is looked through in ten minutes if no page is short.
const ROUND_NS: u64 = 600_000_000_000;

/// What is kept free and inactive, from the size of memory.
#[derive(Clone, Copy)]
struct Targets {
    free_min: u64,
    free: u64,
    inactive: u64,
}

impl Targets {
    fn new(frames: u64) -> Targets {
        let least = 4 + frames.saturating_sub(1024) / 200;
        // A cluster of page-outs, two of the largest buffers, and a little for large memories.
        let reserved = 32 + 2 * 16 + 2 + frames / 768;
        let free = (4 * least + reserved).min(frames / 4);
        Targets {
            free_min: (least + reserved).min(free),
            free,
            inactive: (free * 3 / 2).min(frames / 3),
        }
    }
}

struct Freebsd {
    queues: Queues,
    counts: Vec<u8>,
    init: u8,
    advance: u8,
    decline: u8,
    most: u8,
    /// The next active page to be looked at.
    hand: Option<u32>,
    targets: Targets,
    /// Pages that may leave until the active queue is scanned again.
    pass_left: u64,
    /// Pages freed since the laundry was last emptied in the background, and those of it that are
    /// still to go.
    freed: u64,
    launder_left: u64,
    last_tick: Time,
    frames: u64,
}

/// Makes a `freebsd`.
pub fn build(settings: &Settings<'_>) -> Box<dyn Policy> {
    let [init, advance, decline, most] = [0, 1, 2, 3].map(|knob| settings.knobs[knob] as u8);
    let frames = u64::from(settings.frames);
    Box::new(Freebsd {
        queues: Queues::new(LISTS, settings.frames_max),
        counts: vec![0; settings.frames_max as usize],
        init: init.min(most),
        advance,
        decline,
        most,
        hand: None,
        targets: Targets::new(frames),
        pass_left: 0,
        freed: 0,
        launder_left: 0,
        last_tick: Time(0),
        frames,
    })
}

impl Policy for Freebsd {
    fn describe(&self) -> &'static Description {
        &DESCRIPTION
    }

    fn page_entered(&mut self, frame: FrameId, arrival: &Arrival) {
        self.counts[frame.index()] = self.init;
        let list = match arrival.cause {
            Cause::Prefetched | Cause::ZeroAhead | Cause::Cleaned => INACTIVE,
            Cause::ZeroFill | Cause::Fetched | Cause::Copied | Cause::Adopted | Cause::Kept => {
                ACTIVE
            }
        };
        self.queues.push_back(list, frame.0);
    }

    fn page_left(&mut self, frame: FrameId, _page: PageId, _departure: Departure) {
        self.lift_hand(frame);
        self.queues.remove(frame.0);
    }

    fn page_rescued(&mut self, frame: FrameId) {
        // A fault makes its page active; on an active one it changes nothing.
        if self.queues.list_of(frame.0) != Some(ACTIVE) {
            let count = &mut self.counts[frame.index()];
            *count = (*count).max(self.init);
            self.queues.move_to_back(ACTIVE, frame.0);
        }
    }

    fn choose(&mut self, probe: &mut Probe<'_>) -> Option<FrameId> {
        if self.pass_left == 0 {
            self.pass_left = PASS.min(self.frames / 16).max(1);
            let shortage = self.inactive_short(probe);
            self.scan_active(self.length(ACTIVE), shortage, probe);
        }
        self.pass_left -= 1;
        let found = self.find(probe).or_else(|| {
            self.find_by_force(probe);
            self.find(probe)
        });
        self.freed += 1;
        found.or_else(|| pull_any(&mut self.queues, &[INACTIVE, LAUNDRY, ACTIVE], probe))
    }

    fn tick(&mut self, probe: &mut Probe<'_>) {
        let now = probe.now();
        let passed_ns = now.0.saturating_sub(self.last_tick.0).min(ROUND_NS);
        let count = u128::from(self.length(ACTIVE)) * u128::from(passed_ns);
        let count = (count / u128::from(ROUND_NS)) as u64;
        if count > 0 {
            self.last_tick = now;
            let shortage = self.inactive_short(probe).min(0);
            self.scan_active(count, shortage, probe);
        }
    }

    fn resize(&mut self, frames: u32) {
        self.frames = frames.into();
        self.targets = Targets::new(self.frames);
    }

    fn check(&self) {
        self.queues.check();
        let is_active = |frame: u32| self.queues.list_of(frame) == Some(ACTIVE);
        assert!(self.hand.is_none_or(is_active), "the hand is elsewhere");
    }
}

impl Freebsd {
    /// Finds a page that may go: a clean inactive one, or one of the laundry if that has grown too
    /// large or nothing else is left.
    fn find(&mut self, probe: &mut Probe<'_>) -> Option<FrameId> {
        if self.launder_left == 0 && self.must_launder(probe) {
            self.launder_left = ((self.targets.free - self.targets.free_min) / 10).max(1);
            self.freed = 0;
        }
        if self.launder_left > 0 {
            self.launder_left -= 1;
            if let Some(frame) = self.find_laundry(probe) {
                return Some(frame);
            }
        }
        self.find_inactive(probe)
            .or_else(|| self.find_laundry(probe))
    }

    fn find_inactive(&mut self, probe: &mut Probe<'_>) -> Option<FrameId> {
        for _ in 0..self.queues.length(INACTIVE) {
            let frame = FrameId(self.queues.front(INACTIVE)?);
            if !probe.may_leave(frame) {
                self.queues.move_to_back(INACTIVE, frame.0);
            } else if probe.take_referenced(frame) {
                self.reactivate(frame);
            } else if probe.may_be_modified(frame) {
                self.queues.move_to_back(LAUNDRY, frame.0);
            } else {
                return Some(frame);
            }
        }
        None
    }

    fn find_laundry(&mut self, probe: &mut Probe<'_>) -> Option<FrameId> {
        for _ in 0..self.queues.length(LAUNDRY) {
            let frame = FrameId(self.queues.front(LAUNDRY)?);
            if !probe.may_leave(frame) {
                self.queues.move_to_back(LAUNDRY, frame.0);
            } else if probe.take_referenced(frame) {
                self.reactivate(frame);
            } else {
                return Some(frame);
            }
        }
        None
    }

    /// Whether the laundry is to be emptied in the background: it is large against what is clean,
    /// the more readily the more was freed since it was.
    fn must_launder(&self, probe: &Probe<'_>) -> bool {
        let clean = u64::from(probe.frames_free()) + self.length(INACTIVE);
        let band = (self.targets.free - self.targets.free_min).max(1);
        let urge = (self.freed + 1).div_ceil(band).isqrt();
        let dirty = self.length(LAUNDRY);
        dirty > 0 && dirty * urge >= clean
    }

    /// Goes round the active queue until one of its pages becomes inactive, with nobody using any.
    fn find_by_force(&mut self, probe: &mut Probe<'_>) {
        if !count_down(&self.queues, ACTIVE, &mut self.counts, probe) {
            return;
        }
        let mut next = self.queues.front(ACTIVE);
        while let Some(frame) = next {
            next = self.queues.next(frame);
            if self.counts[frame as usize] == 0 && probe.may_leave(FrameId(frame)) {
                self.lift_hand(FrameId(frame));
                self.queues.move_to_back(INACTIVE, frame);
            }
        }
    }

    /// Looks at up to `count` active pages from the hand on, or until `shortage`, if there is
    /// one, is made good.
    fn scan_active(&mut self, count: u64, shortage: i64, probe: &mut Probe<'_>) {
        let is_short = shortage > 0;
        let mut shortage = shortage;
        for _ in 0..count {
            if is_short && shortage <= 0 {
                return;
            }
            let Some(frame) = self.hand.or(self.queues.front(ACTIVE)).map(FrameId) else {
                return;
            };
            self.hand = self.queues.next(frame.0);
            if !probe.may_leave(frame) {
                continue;
            }
            let uses = &mut self.counts[frame.index()];
            if probe.take_referenced(frame) {
                // The use itself, and the advance for it.
                *uses = uses.saturating_add(self.advance + 1).min(self.most);
                continue;
            }
            *uses = uses.saturating_sub(self.decline);
            if *uses > 0 {
                continue;
            }
            if is_short && probe.may_be_modified(frame) {
                self.queues.move_to_back(LAUNDRY, frame.0);
                shortage -= LAUNDRY_WORTH;
            } else {
                self.queues.move_to_back(INACTIVE, frame.0);
                shortage -= CLEAN_WORTH;
            }
        }
    }

    /// How many pages the inactive queue is short of, each worth three.
    fn inactive_short(&self, probe: &Probe<'_>) -> i64 {
        let wanted = (self.targets.inactive + self.targets.free) as i64;
        let free = i64::from(probe.frames_free());
        let there = (self.length(INACTIVE) + self.length(LAUNDRY) / 3) as i64;
        (wanted - free - there) * CLEAN_WORTH
    }

    fn reactivate(&mut self, frame: FrameId) {
        let count = &mut self.counts[frame.index()];
        *count = count.saturating_add(self.advance + 1).min(self.most);
        self.queues.move_to_back(ACTIVE, frame.0);
    }

    /// Moves the hand on if it stands at `frame`.
    fn lift_hand(&mut self, frame: FrameId) {
        if self.hand == Some(frame.0) {
            self.hand = self.queues.next(frame.0);
        }
    }

    fn length(&self, list: u8) -> u64 {
        self.queues.length(list).into()
    }
}
