//! CLOCK-Pro: the decisions of LIRS, from a bit a page in place of every use.
//!
//! One list has all pages in the order in which they were last dealt with, the names of some that
//! left among them. A page is hot or cold; a cold one, resident or gone, may be in its test: if it
//! is used in that time, it was used twice in less time than the oldest hot page, and becomes hot.
//! Three hands stand each at the oldest of its kind. The cold hand finds who leaves; the hot hand
//! makes hot pages that were not used cold, and ends the tests it passes; the test hand ends tests
//! when too many names are kept. How many cold pages there should be rises when a page passes its
//! test and falls when one does not.
//!
//! Where the paper says nothing: a page that came back in its test stays cold if the hot hand comes
//! round to it before a hot page gives way; a page that was not asked for is not tested.
//!
//! # Invariants
//! 1. No member of a hand's kind is older than the one the hand stands at.
//! 2. A page that was named to leave counts as gone. If it is in its test it is on the list, else
//!    on none.

use crate::collections::bitmap::Bitmap;
use crate::collections::column::Column;
use crate::collections::queue::Queues;
use crate::id::{FrameId, PageId};
use crate::policies::parts::directory::Directory;
use crate::policies::parts::second_reference::{Fresh, Use};
use crate::policies::settings::Settings;
use crate::seams::policy::{
    Arrival, Cause, Departure, Description, Knob, Policy, Probe, Sees, SimulatedPolicy, SpacePolicy,
};

/// The description of `clock-pro`.
pub static DESCRIPTION: Description = Description {
    name: "clock-pro",
    summary: "lirs by bits: cold pages that are used again in their test become hot",
    lineage: &["Jiang and Zhang 2002 (LIRS)", "Jiang, Chen and Zhang 2005"],
    sees: Sees::Bits,
    knobs: &[
        Knob {
            name: "ghosts",
            meaning: "names kept of pages that left, in thousandths of the frames",
            min: 0,
            max: 4000,
            default: 1000,
        },
        Knob {
            name: "cold-least",
            meaning: "the least share of frames for cold pages, in thousandths, one at least",
            min: 0,
            max: 1000,
            default: 10,
        },
        Knob {
            name: "cold-most",
            meaning: "the greatest such share, in thousandths",
            min: 0,
            max: 1000,
            default: 990,
        },
    ],
};

const LIST: u8 = 0;

/// The kind of a member of the list. The numbers count places in [`ClockPro::counts`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    /// A resident page whose uses lie close together.
    Hot = 0,
    /// Another resident page.
    Cold = 1,
    /// A resident page that is cold and in its test.
    Tested = 2,
    /// The name of a page that left in its test, or a page that is about to.
    Gone = 3,
}

const KINDS: usize = 4;

impl Kind {
    fn is_cold(self) -> bool {
        matches!(self, Kind::Cold | Kind::Tested)
    }

    fn is_in_test(self) -> bool {
        matches!(self, Kind::Tested | Kind::Gone)
    }
}

/// The places of the hands. The cold and the test hand are nowhere if there is nothing for them:
/// only a member that comes to the head can be, and they go there then. The hot hand is nowhere
/// when it is to begin with the oldest member.
#[derive(Clone, Copy, Default)]
struct Hands {
    hot: Option<u32>,
    cold: Option<u32>,
    test: Option<u32>,
}

struct ClockPro {
    /// Frames, and behind them the entries of the directory; the oldest in front.
    list: Queues,
    kinds: Column<Kind>,
    /// The number of members of each kind on the list.
    counts: [u32; KINDS],
    hands: Hands,
    ghosts: Directory,
    fresh: Fresh,
    /// The frames whose pages are known to have been used since they were last moved.
    used: Bitmap,
    frames_max: u32,
    /// The number of pages memory held when one last had to leave; before that, its frames.
    full: u32,
    /// True if no page has had to leave yet.
    is_filling: bool,
    /// The number of pages that should be cold.
    cold_target: u32,
    ghosts_permille: u64,
    cold_least_permille: u64,
    cold_most_permille: u64,
    missed: Option<PageId>,
    /// The missed page, if it will be hot.
    promoted: Option<PageId>,
    /// The page that was named to leave and has not left.
    leaving: Option<FrameId>,
}

/// Makes a `clock-pro`.
pub fn build(settings: Settings) -> impl Policy {
    let frames_max = settings.frames_max;
    let ghosts_permille = settings.knobs[0];
    let ghosts_max = (u64::from(frames_max) * ghosts_permille / 1000 + 1) as u32;
    let members = (frames_max + ghosts_max) as usize;
    let mut policy = ClockPro {
        list: Queues::in_two(1, frames_max, ghosts_max),
        kinds: Column::in_two(Kind::Cold, frames_max as usize, members),
        counts: [0; KINDS],
        hands: Hands::default(),
        ghosts: Directory::new(ghosts_max),
        fresh: Fresh::new(frames_max),
        used: Bitmap::new(frames_max as usize),
        frames_max,
        full: settings.frames,
        is_filling: true,
        cold_target: 0,
        ghosts_permille,
        cold_least_permille: settings.knobs[1],
        cold_most_permille: settings.knobs[2],
        missed: None,
        promoted: None,
        leaving: None,
    };
    policy.cold_target = policy.cold_min();
    policy
}

impl Policy for ClockPro {
    fn describe(&self) -> &'static Description {
        &DESCRIPTION
    }

    fn page_missed(&mut self, page: PageId) {
        self.missed = Some(page);
    }

    fn page_entered(&mut self, frame: FrameId, arrival: &Arrival) {
        if let Some(entry) = self.ghosts.find(arrival.page) {
            self.forget(entry);
        }
        self.missed.take_if(|missed| *missed == arrival.page);
        let is_promoted = self.promoted.take_if(|it| *it == arrival.page).is_some();
        let has_room = self.is_filling && self.count(Kind::Hot) + self.cold_min() < self.full;
        let kind = match arrival.cause {
            _ if is_promoted || has_room => Kind::Hot,
            Cause::Fetched | Cause::ZeroFill | Cause::Copied | Cause::Adopted => Kind::Tested,
            Cause::Prefetched | Cause::ZeroAhead | Cause::Kept | Cause::Cleaned => Kind::Cold,
        };
        self.fresh.enter(frame);
        self.add(frame.0, kind);
        self.settle_hands(None);
    }

    fn page_left(&mut self, frame: FrameId, page: PageId, departure: Departure) {
        let was_named = self.leaving.take_if(|it| *it == frame).is_some();
        let is_listed = self.list.list_of(frame.0).is_some();
        if was_named && is_listed && departure == Departure::Evicted {
            self.remember(frame, page);
        } else if is_listed {
            self.take_off(frame.0);
        }
        self.fresh.leave(frame);
        self.clear_used(frame.0);
    }

    fn choose(&mut self, probe: &mut Probe<'_>) -> Option<FrameId> {
        if let Some(frame) = self.leaving.take() {
            if probe.may_leave(frame) {
                self.leaving = Some(frame);
                return Some(frame);
            }
            self.move_to_head(frame.0, Kind::Cold);
        }
        self.full = self.resident();
        self.is_filling = false;
        self.adjust_target(0);
        let frame = match self.run_cold_hand(probe) {
            Some(frame) => frame,
            None => self.find_any(probe)?,
        };
        self.name(frame, probe);
        self.promoted = self.missed.filter(|&page| {
            let entry = self.ghosts.find(page);
            entry.is_some_and(|entry| self.promote(self.frames_max + entry, probe))
        });
        Some(frame)
    }

    fn resize(&mut self, frames: u32) {
        self.full = frames;
        self.adjust_target(0);
    }

    fn check(&self) {
        self.list.check();
        self.ghosts.check();
        let mut counts = [0; KINDS];
        for member in self.list.iter(LIST) {
            counts[self.kinds[member as usize] as usize] += 1;
        }
        assert_eq!(counts, self.counts, "kinds are miscounted");
        let named = self.leaving.filter(|it| self.list.list_of(it.0).is_some());
        let gone = self.ghosts.len() + u32::from(named.is_some());
        assert_eq!(gone, self.count(Kind::Gone), "a name is off the list");
        self.check_hand(self.hands.hot, |kind| kind == Kind::Hot);
        self.check_hand(self.hands.cold, Kind::is_cold);
        self.check_hand(self.hands.test, Kind::is_in_test);
    }
}

impl SimulatedPolicy for ClockPro {}

impl SpacePolicy for ClockPro {}

/// The hands.
impl ClockPro {
    /// Finds the oldest cold page that was not used and leaves it in its place; those that were
    /// used it moves on.
    fn run_cold_hand(&mut self, probe: &mut Probe<'_>) -> Option<FrameId> {
        for _ in 0..3 * self.resident() {
            if self.count(Kind::Cold) + self.count(Kind::Tested) == 0 {
                self.run_hot_hand(None, probe);
            }
            self.settle_hands(Some(probe));
            let member = self.hands.cold?;
            let kind = self.kinds[member as usize];
            if !probe.may_leave(FrameId(member)) {
                self.move_to_head(member, kind);
                continue;
            }
            match self.look(member, probe) {
                Use::None => return Some(FrameId(member)),
                Use::Unknown => self.move_to_head(member, kind),
                Use::Again if kind == Kind::Tested && self.promote(member, probe) => {
                    self.move_to_head(member, Kind::Hot);
                }
                Use::Again => self.move_to_head(member, Kind::Tested),
            }
        }
        None
    }

    /// Makes the oldest hot page that was not used cold, and ends the tests that are older. Answers
    /// whether there was one before `trigger`, at which the hand stops.
    fn run_hot_hand(&mut self, trigger: Option<u32>, probe: &mut Probe<'_>) -> bool {
        let mut was_demoted = false;
        // Two rounds pass every member, the second with its bit clear.
        for _ in 0..2 * self.list.length(LIST) {
            if self.count(Kind::Hot) == 0 {
                break;
            }
            let Some(member) = self.hands.hot.or(self.list.front(LIST)) else {
                break;
            };
            if Some(member) == trigger {
                break;
            }
            if self.kinds[member as usize] != Kind::Hot {
                self.hands.hot = self.list.next(member);
                self.end_test(member, Some(probe));
            } else if self.look(member, probe) == Use::None {
                self.move_to_head(member, Kind::Cold);
                was_demoted = true;
                break;
            } else {
                self.move_to_head(member, Kind::Hot);
            }
        }
        self.settle_hands(Some(probe));
        was_demoted
    }

    /// Returns true if `member`, which was used in its test, may become hot. Makes room among the
    /// hot.
    fn promote(&mut self, member: u32, probe: &mut Probe<'_>) -> bool {
        if !self.is_in_test(member) {
            return false;
        }
        self.adjust_target(1);
        self.clear_used(member);
        while self.count(Kind::Hot) + self.cold_target >= self.full {
            if !self.is_in_test(member) || !self.run_hot_hand(Some(member), probe) {
                return false;
            }
        }
        true
    }

    /// Ends the test of `member`, if it is in one.
    fn end_test(&mut self, member: u32, probe: Option<&mut Probe<'_>>) {
        let is_used = match self.kinds[member as usize] {
            Kind::Hot | Kind::Cold => return,
            Kind::Tested => {
                self.set_kind(member, Kind::Cold);
                probe.is_some_and(|probe| self.look(member, probe) == Use::Again)
            }
            Kind::Gone => {
                match member.checked_sub(self.frames_max) {
                    Some(entry) => self.forget(entry),
                    None => self.take_off(member),
                }
                false
            }
        };
        self.adjust_target(if is_used { 1 } else { -1 });
    }

    /// Moves each hand on to the oldest of its kind. The hot hand ends the tests it passes.
    fn settle_hands(&mut self, mut probe: Option<&mut Probe<'_>>) {
        self.hands.cold = self.find_next(self.hands.cold, Kind::is_cold);
        if self.count(Kind::Hot) == 0 {
            self.hands.hot = None;
        }
        while self.count(Kind::Hot) > 0 {
            let member = self.hands.hot.or(self.list.front(LIST));
            let member = member.expect("a hot page is on the list");
            self.hands.hot = Some(member);
            if self.kinds[member as usize] == Kind::Hot {
                break;
            }
            self.hands.hot = self.list.next(member);
            self.end_test(member, probe.as_deref_mut());
        }
        self.hands.test = self.find_next(self.hands.test, Kind::is_in_test);
    }

    /// The first of a kind at or behind `from`.
    fn find_next(&self, from: Option<u32>, is_kind: fn(Kind) -> bool) -> Option<u32> {
        let mut at = from;
        while let Some(member) = at
            && !is_kind(self.kinds[member as usize])
        {
            at = self.list.next(member);
        }
        at
    }
}

/// The list and what is on it.
impl ClockPro {
    /// Takes note that `frame` is named to leave.
    fn name(&mut self, frame: FrameId, probe: &mut Probe<'_>) {
        self.leaving = Some(frame);
        if self.kinds[frame.index()] != Kind::Tested {
            self.take_off(frame.0);
            return;
        }
        self.set_kind(frame.0, Kind::Gone);
        let most = u64::from(self.full) * self.ghosts_permille / 1000;
        while u64::from(self.count(Kind::Gone)) > most {
            self.settle_hands(Some(probe));
            let oldest = self.hands.test.expect("names are in their tests");
            self.end_test(oldest, Some(probe));
        }
    }

    /// Puts the name of a page to its place on the list.
    fn remember(&mut self, frame: FrameId, page: PageId) {
        if self.ghosts.is_full() {
            let frames_max = self.frames_max;
            let entry = |member: u32| member.checked_sub(frames_max);
            let oldest = self.list.iter(LIST).find_map(entry);
            self.forget(oldest.expect("names are kept"));
        }
        let member = self.frames_max + self.ghosts.insert(page);
        self.list.replace(frame.0, member);
        self.kinds[member as usize] = Kind::Gone;
        for hand in [
            &mut self.hands.hot,
            &mut self.hands.cold,
            &mut self.hands.test,
        ] {
            if *hand == Some(frame.0) {
                *hand = Some(member);
            }
        }
    }

    fn forget(&mut self, entry: u32) {
        self.take_off(self.frames_max + entry);
        self.ghosts.remove(entry);
    }

    /// Any page that may leave, the oldest first.
    fn find_any(&self, probe: &Probe<'_>) -> Option<FrameId> {
        let frames = self.list.iter(LIST).filter(|&it| it < self.frames_max);
        let mut frames = frames.map(FrameId);
        frames.find(|&frame| probe.may_leave(frame))
    }

    /// Looks whether the page in frame `member` was used since it was last moved.
    fn look(&mut self, member: u32, probe: &mut Probe<'_>) -> Use {
        let answer = self.fresh.take_use(FrameId(member), probe);
        let was_used = self.used.contains(member as usize);
        if answer == Use::Again && !was_used {
            self.used.insert(member as usize);
        }
        if was_used { Use::Again } else { answer }
    }

    fn move_to_head(&mut self, member: u32, kind: Kind) {
        self.take_off(member);
        self.clear_used(member);
        self.add(member, kind);
    }

    fn add(&mut self, member: u32, kind: Kind) {
        self.list.push_back(LIST, member);
        self.kinds[member as usize] = kind;
        self.counts[kind as usize] += 1;
        if kind.is_cold() {
            self.hands.cold.get_or_insert(member);
        }
        if kind.is_in_test() {
            self.hands.test.get_or_insert(member);
        }
    }

    /// Takes `member` off the list, if it is on it. Hands that stand at it move on.
    fn take_off(&mut self, member: u32) {
        if self.list.list_of(member).is_none() {
            return;
        }
        let next = self.list.next(member);
        for hand in [
            &mut self.hands.hot,
            &mut self.hands.cold,
            &mut self.hands.test,
        ] {
            if *hand == Some(member) {
                *hand = next;
            }
        }
        self.list.remove(member);
        self.counts[self.kinds[member as usize] as usize] -= 1;
    }

    fn set_kind(&mut self, member: u32, kind: Kind) {
        let was = core::mem::replace(&mut self.kinds[member as usize], kind);
        self.counts[was as usize] -= 1;
        self.counts[kind as usize] += 1;
    }

    fn clear_used(&mut self, member: u32) {
        if member < self.frames_max && self.used.contains(member as usize) {
            self.used.remove(member as usize);
        }
    }

    fn is_in_test(&self, member: u32) -> bool {
        self.list.list_of(member).is_some() && self.kinds[member as usize].is_in_test()
    }

    fn count(&self, kind: Kind) -> u32 {
        self.counts[kind as usize]
    }

    fn resident(&self) -> u32 {
        self.count(Kind::Hot) + self.count(Kind::Cold) + self.count(Kind::Tested)
    }

    fn cold_min(&self) -> u32 {
        let share = u64::from(self.full) * self.cold_least_permille / 1000;
        (share as u32).max(1)
    }

    fn adjust_target(&mut self, by: i32) {
        let least = self.cold_min();
        let most = u64::from(self.full) * self.cold_most_permille / 1000;
        let most = (most as u32).min(self.full.saturating_sub(1)).max(least);
        self.cold_target = self
            .cold_target
            .saturating_add_signed(by)
            .clamp(least, most);
    }

    fn check_hand(&self, hand: Option<u32>, is_kind: fn(Kind) -> bool) {
        let Some(hand) = hand else { return };
        assert_eq!(
            self.list.list_of(hand),
            Some(LIST),
            "a hand is off the list"
        );
        let mut older = self.list.iter(LIST).take_while(|&member| member != hand);
        let older = older.find(|&member| is_kind(self.kinds[member as usize]));
        assert_eq!(older, None, "a hand has passed one of its kind");
    }
}
