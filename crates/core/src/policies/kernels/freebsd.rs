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
//! system's business; a scan of the active queue comes after a fixed number of pages that leave.
//! What is kept free counts for a quarter of memory at most: FreeBSD does not run in so little that
//! it would be more.

use crate::collections::column::Column;
use crate::collections::queue::Queues;
use crate::id::{FrameId, PageId};
use crate::policies::parts::aging::count_down;
use crate::policies::parts::lists::pull_any;
use crate::policies::settings::Settings;
use crate::seams::policy::{
    Arrival, Cause, Departure, Description, Knob, Policy, Probe, Sees, SimulatedPolicy, SpacePolicy,
};
use crate::time::Time;

/// The description of `freebsd`.
pub static DESCRIPTION: Description = Description {
    name: "freebsd",
    summary: "pages whose use counts are gone may leave; modified ones wait in a laundry",
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
/// The head of the inactive queue: pages from the laundry, whose time was over before they were
/// written.
const HEAD: u8 = 3;
const LISTS: u8 = 4;

/// The weights of a clean and a modified page made inactive, against a shortage.
const CLEAN_WORTH: i64 = 3;
const LAUNDRY_WORTH: i64 = 1;
/// Pages that leave from one scan of the active queue to the next.
const PASS: u64 = 32;
/// The whole active queue is looked through in ten minutes if no page is short.
const ROUND_NS: u64 = 600_000_000_000;

/// The numbers of pages kept free and inactive, from the size of memory.
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
    counts: Column<u8>,
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
pub fn build(settings: Settings) -> impl Policy {
    Freebsd::new(&settings)
}

impl Freebsd {
    fn new(settings: &Settings) -> Freebsd {
        let [init, advance, decline, most] = [0, 1, 2, 3].map(|knob| settings.knobs[knob] as u8);
        let frames = u64::from(settings.frames);
        Freebsd {
            queues: Queues::new(LISTS, settings.frames_max),
            counts: Column::new(0, settings.frames_max as usize),
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
        }
    }
}

impl Policy for Freebsd {
    fn describe(&self) -> &'static Description {
        &DESCRIPTION
    }

    fn page_entered(&mut self, frame: FrameId, arrival: &Arrival) {
        self.counts[frame.index()] = self.init;
        let list = match arrival.cause {
            Cause::Prefetched | Cause::ZeroAhead => INACTIVE,
            Cause::Cleaned => HEAD,
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
        self.freed += 1;
        let found = self.find(probe).or_else(|| {
            self.find_by_force(probe);
            self.find(probe)
        });
        found.or_else(|| pull_any(&mut self.queues, &[HEAD, INACTIVE, LAUNDRY, ACTIVE], probe))
    }

    fn clean(&mut self, probe: &mut Probe<'_>) -> Option<FrameId> {
        if self.launder_left == 0 && self.must_launder(probe) {
            self.launder_left = ((self.targets.free - self.targets.free_min) / 10).max(1);
            self.freed = 0;
        }
        if self.launder_left == 0 {
            return None;
        }
        self.launder_left -= 1;
        self.find_laundry(probe)
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

impl SimulatedPolicy for Freebsd {}

impl SpacePolicy for Freebsd {}

impl Freebsd {
    /// Finds a page that may go: a clean inactive one, or one of the laundry if none is left.
    fn find(&mut self, probe: &mut Probe<'_>) -> Option<FrameId> {
        self.find_inactive(probe)
            .or_else(|| self.find_laundry(probe))
    }

    /// Finds a clean inactive page that was not used, and puts modified ones into the laundry.
    ///
    /// A page from the laundry is clean and unmapped: a use since would have been a fault, and made
    /// it active. So it is not asked about. A machine that can't tell would say that it may be
    /// modified, and all that was laundered would be laundered again for each page that leaves.
    fn find_inactive(&mut self, probe: &mut Probe<'_>) -> Option<FrameId> {
        for _ in 0..self.count_inactive() {
            let cleaned = self.queues.front(HEAD);
            let frame = FrameId(cleaned.or(self.queues.front(INACTIVE))?);
            if !probe.may_leave(frame) {
                self.queues.move_to_back(INACTIVE, frame.0);
            } else if probe.take_referenced(frame) {
                self.reactivate(frame);
            } else if cleaned.is_none() && probe.may_be_modified(frame) {
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

    /// Returns true if the laundry is to be emptied in the background: it is large against what is
    /// clean, the more readily the more was freed since it was.
    fn must_launder(&self, probe: &Probe<'_>) -> bool {
        let clean = u64::from(probe.frames_free()) + self.count_inactive();
        let band = (self.targets.free - self.targets.free_min).max(1);
        let dirty = self.length(LAUNDRY);
        // The urge is the root of what was freed, in bands. Asked at each fault, so the other way
        // round: how large it would have to be.
        let urge_least = match dirty {
            0 => return false,
            dirty => clean.div_ceil(dirty),
        };
        urge_least == 0 || self.freed >= (urge_least * urge_least - 1).saturating_mul(band)
    }

    /// Goes round the active queue until one of its pages becomes inactive, while none is used.
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

    /// The number of pages the inactive queue is short of, each worth three.
    fn inactive_short(&self, probe: &Probe<'_>) -> i64 {
        let wanted = (self.targets.inactive + self.targets.free) as i64;
        let free = i64::from(probe.frames_free());
        let there = (self.count_inactive() + self.length(LAUNDRY) / 3) as i64;
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

    fn count_inactive(&self) -> u64 {
        self.length(HEAD) + self.length(INACTIVE)
    }

    fn length(&self, list: u8) -> u64 {
        self.queues.length(list).into()
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::policies::parts::bench::{Bench, settings};

    fn policy(frames: u32) -> (Freebsd, Bench) {
        let mut bench = Bench::new(frames);
        let mut policy = Freebsd::new(&settings(frames, &[5, 3, 1, 64]));
        (0..frames).for_each(|number| bench.bring(&mut policy, number, Cause::ZeroFill));
        (policy, bench)
    }

    #[test]
    fn counts_go_up_by_use_and_down_without() {
        let (mut policy, mut bench) = policy(4);
        bench.touch(&[2]);
        policy.scan_active(4, 0, &mut bench.probe());
        assert_eq!(policy.counts, [4, 4, 9, 4]);
        (0..4).for_each(|_| policy.scan_active(4, 0, &mut bench.probe()));
        let inactive: Vec<u32> = policy.queues.iter(INACTIVE).collect();
        assert_eq!(inactive, [0, 1, 3]);
        for _ in 0..20 {
            bench.touch(&[2]);
            policy.scan_active(1, 0, &mut bench.probe());
        }
        assert_eq!(policy.counts[2], 64);
    }

    #[test]
    fn the_hand_goes_on_where_it_was_and_past_pages_that_leave() {
        let (mut policy, mut bench) = policy(4);
        policy.scan_active(2, 0, &mut bench.probe());
        assert_eq!(policy.counts, [4, 4, 5, 5]);
        bench.evict(&mut policy, 2);
        policy.scan_active(2, 0, &mut bench.probe());
        assert_eq!(policy.counts, [3, 4, 5, 4]);
    }

    #[test]
    fn clean_pages_leave_before_modified_ones_that_were_inactive_for_longer() {
        let (mut policy, mut bench) = policy(64);
        (0..16).for_each(|number| policy.queues.move_to_back(INACTIVE, number));
        (0..4).for_each(|number| bench.bits.modified[number] = true);
        bench.touch(&[4]);
        policy.pass_left = 10;
        policy.hand = None;
        assert_eq!(bench.evict_one(&mut policy), Some(5));
        let laundry: Vec<u32> = policy.queues.iter(LAUNDRY).collect();
        assert_eq!(laundry, [0, 1, 2, 3]);
        assert_eq!(
            (policy.queues.list_of(4), policy.counts[4]),
            (Some(ACTIVE), 9)
        );
        assert_eq!(bench.evict_one(&mut policy), Some(6));
        // Nothing else is left.
        (7..16).for_each(|number| bench.bits.modified[number] = true);
        assert_eq!(bench.evict_one(&mut policy), Some(0));
    }

    #[test]
    fn what_was_laundered_is_clean_even_where_a_machine_cannot_tell() {
        let (mut policy, mut bench) = policy(64);
        bench.bits.modified.fill(true);
        (0..8).for_each(|number| {
            bench.start_cleaning(&mut policy, number);
            bench.bring(&mut policy, number, Cause::Cleaned);
        });
        policy.pass_left = 10;
        for number in 0..8 {
            assert_eq!(bench.evict_one(&mut policy), Some(number));
            assert_eq!(policy.length(LAUNDRY), 0);
        }
    }

    #[test]
    fn a_laundry_that_has_grown_is_written_though_clean_pages_are_left() {
        let (mut policy, mut bench) = policy(64);
        (0..8).for_each(|number| policy.queues.move_to_back(LAUNDRY, number));
        (8..16).for_each(|number| policy.queues.move_to_back(INACTIVE, number));
        policy.pass_left = 10;
        assert_eq!(policy.clean(&mut bench.probe()), Some(FrameId(0)));
        bench.start_cleaning(&mut policy, 0);
        // Seven are fewer than the eight that are clean.
        assert_eq!(policy.clean(&mut bench.probe()), None);
        bench.bring(&mut policy, 0, Cause::Cleaned);
        assert_eq!(bench.evict_one(&mut policy), Some(0));
        assert_eq!(bench.evict_one(&mut policy), Some(8));
        // Much was freed since.
        policy.freed = 4 * (policy.targets.free - policy.targets.free_min).max(1) + 1;
        assert_eq!(policy.clean(&mut bench.probe()), Some(FrameId(1)));
    }
}
