//! The cache: a policy, some frames and a reference string, and nothing else.
//!
//! It asks the policy only when memory is full, moves one page at a time, and never waits: so the
//! published miss counts were made.

use tidemark_core::id::{FrameId, ObjectId, PageId, SpaceId, VirtPage};
use tidemark_core::memory::frame::{Frames, State};
use tidemark_core::memory::reverse_map::ReverseMap;
use tidemark_core::seams::policy::{Arrival, Cause, Departure, Policy, Probe, Sees};
use tidemark_core::time::Time;

use crate::opt::collect_next_uses;
use crate::pages::{PageMap, PageSet};
pub use crate::sampled::MachineKind;
use crate::sampled::Sampled;

/// The only space there is.
const SPACE: SpaceId = SpaceId(0);

/// The outcome of one reference.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Touch {
    /// Not noticed.
    Hit,
    /// The page was resident and unmapped.
    Soft,
    /// The page was not resident.
    Hard,
}

/// The misses of a trace.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Misses {
    /// References to pages that were not resident, the first to each included.
    pub hard: u64,
    /// References to pages that were resident and unmapped.
    pub soft: u64,
    /// Mappings removed to find out about pages.
    pub unmaps: u64,
    /// Choices that named a frame that may not leave.
    pub refusals: u64,
}

/// Runs `trace` through `policy` in a memory of `frames` frames.
pub fn replay(policy: Box<dyn Policy>, frames: u32, kind: MachineKind, trace: &[u64]) -> Misses {
    let mut cache = Cache::new(policy, frames, kind);
    let next_uses = match cache.sees {
        Sees::Future => collect_next_uses(trace),
        Sees::Faults | Sees::Bits | Sees::References => Vec::new(),
    };
    for (at, &page) in trace.iter().enumerate() {
        cache.touch(page);
        if let Some(&next) = next_uses.get(at) {
            cache.foresee(page, next);
        }
    }
    cache.policy.check();
    cache.misses
}

/// A memory in the middle of a trace.
pub struct Cache {
    /// The policy that decides. It learns of everything through the calls below.
    pub policy: Box<dyn Policy>,
    /// The misses so far.
    pub misses: Misses,
    sees: Sees,
    frames: Frames,
    machine: Sampled,
    /// Every page is mapped in one space, at its own number.
    places: ReverseMap,
    free: Vec<u32>,
    pages: Vec<Option<u64>>,
    resident: PageMap<u32>,
    seen: PageSet,
    references: u64,
    questions: u64,
}

impl Cache {
    /// Makes an empty memory of `frames` frames.
    pub fn new(policy: Box<dyn Policy>, frames: u32, kind: MachineKind) -> Cache {
        let count = frames as usize;
        let mut places = ReverseMap::new(count);
        if policy.walks() {
            places.keep_standing();
        }
        Cache {
            sees: policy.describe().sees,
            policy,
            misses: Misses::default(),
            frames: Frames::new(frames, frames),
            machine: Sampled::new(kind, frames),
            places,
            free: (0..frames).rev().collect(),
            pages: vec![None; count],
            resident: PageMap::default(),
            seen: PageSet::default(),
            references: 0,
            questions: 0,
        }
    }

    /// Uses `page` once, for writing.
    pub fn touch(&mut self, page: u64) -> Touch {
        self.policy.clock_moved(SPACE, self.references);
        self.references += 1;
        let touch = self.refer(page);
        let frame = self.resident[&page];
        self.machine.modify(FrameId(frame));
        if touch != Touch::Hit {
            // The program has not run since: its page stays.
            let was_wired = !self.frames.may_leave(FrameId(frame));
            self.set_wired(page, true);
            self.trim();
            self.set_wired(page, was_wired);
        }
        touch
    }

    fn refer(&mut self, page: u64) -> Touch {
        let Some(&frame) = self.resident.get(&page) else {
            self.policy.page_missed(page_id(page));
            if self.free.is_empty() {
                self.evict()
                    .expect("a full memory holds a page that may leave");
            }
            let is_first = self.seen.insert(page);
            let cause = if is_first {
                Cause::ZeroFill
            } else {
                Cause::Fetched
            };
            self.load(page, cause);
            self.misses.hard += 1;
            return Touch::Hard;
        };
        let is_mapped = self.machine.refer(FrameId(frame));
        if !is_mapped {
            self.places.insert(FrameId(frame), SPACE, VirtPage(page));
            self.policy.page_rescued(FrameId(frame));
            self.misses.soft += 1;
        }
        if self.sees >= Sees::References {
            self.policy.page_referenced(FrameId(frame));
        }
        if is_mapped { Touch::Hit } else { Touch::Soft }
    }

    /// Tells the policy that `page`, which has just been used, is used next at reference `next`.
    pub fn foresee(&mut self, page: u64, next: u64) {
        self.policy
            .page_foreseen(FrameId(self.resident[&page]), next);
    }

    /// The information that the policy must be shown.
    pub fn sees(&self) -> Sees {
        self.sees
    }

    /// Throws out what the policy no longer wants, and writes at once what it wants clean.
    fn trim(&mut self) {
        while let Some(frame) = self.ask(|policy, probe| policy.trim(probe)) {
            assert!(self.frames.may_leave(frame), "{frame:?} may not leave");
            self.drop_frame(frame, Departure::Evicted);
        }
        // None is back before the last is named, and what need not be written is back first.
        let mut washing = Vec::new();
        while let Some(frame) = self.ask(|policy, probe| policy.clean(probe)) {
            assert!(self.frames.may_leave(frame), "{frame:?} may not leave");
            let is_modified = self.machine.is_modified(frame) || self.frames.is_dirty(frame);
            let page = self.drop_frame(frame, Departure::Evicted);
            self.frames.force(frame, State::Leaving, false);
            self.frames.force_cleaning(frame, true);
            washing.push((is_modified.then_some(page), page, frame));
        }
        washing.sort_by_key(|&(written, _, _)| written);
        for (_, page, frame) in washing {
            self.free.retain(|&free| free != frame.0);
            self.frames.force_cleaning(frame, false);
            self.load_at(frame, page, Cause::Cleaned);
        }
    }

    /// Brings `page`, which is not resident, to a free frame.
    pub fn load(&mut self, page: u64, cause: Cause) -> FrameId {
        let frame = FrameId(self.free.pop().expect("a frame is free"));
        self.load_at(frame, page, cause);
        frame
    }

    fn load_at(&mut self, frame: FrameId, page: u64, cause: Cause) {
        let place = frame.index();
        assert!(
            self.resident.insert(page, frame.0).is_none(),
            "{page} is resident already"
        );
        self.pages[place] = Some(page);
        let is_mapped = !matches!(cause, Cause::Prefetched | Cause::Cleaned);
        let is_modified = cause == Cause::Kept && self.machine.is_modified(frame);
        self.machine.bring(frame, is_mapped, is_modified);
        if is_mapped {
            self.places.insert(frame, SPACE, VirtPage(page));
        }
        self.frames.force(frame, State::Resident, false);
        let arrival = Arrival {
            page: page_id(page),
            cause,
            space: SPACE,
            is_external: page_id(page).object.0 % 2 == 1,
        };
        self.policy.page_entered(frame, &arrival);
    }

    /// Lets the policy choose a page and throws it out. `None` if the policy names none.
    pub fn evict(&mut self) -> Option<u64> {
        let frame = loop {
            let frame = self.choose()?;
            if self.frames.may_leave(frame) {
                break frame;
            }
            self.misses.refusals += 1;
            assert!(
                self.misses.refusals < 1000,
                "the policy insists on frames that may not leave"
            );
        };
        Some(self.drop_frame(frame, Departure::Evicted))
    }

    /// Drops `page`, which is resident, because its owner gave it up.
    pub fn discard(&mut self, page: u64) {
        let frame = FrameId(self.resident[&page]);
        self.drop_frame(frame, Departure::Discarded);
    }

    /// Asks the policy for a frame, and leaves it at that.
    pub fn choose(&mut self) -> Option<FrameId> {
        self.ask(|policy, probe| policy.choose(probe))
    }

    /// Makes `page`, which is resident, one that may not leave, or one that may.
    pub fn set_wired(&mut self, page: u64, is_wired: bool) {
        self.frames
            .force(FrameId(self.resident[&page]), State::Resident, is_wired);
    }

    /// Returns true if `frame` holds a page that may leave.
    pub fn may_leave(&self, frame: FrameId) -> bool {
        self.frames.may_leave(frame)
    }

    /// The frame of `page`, if it is resident.
    pub fn frame_of(&self, page: u64) -> Option<FrameId> {
        self.resident.get(&page).copied().map(FrameId)
    }

    /// The pages that are resident, in order.
    pub fn collect_resident(&self) -> Vec<u64> {
        let mut pages: Vec<u64> = self.pages.iter().copied().flatten().collect();
        pages.sort_unstable();
        pages
    }

    /// The number of frames that hold nothing.
    pub fn frames_free(&self) -> usize {
        self.free.len()
    }

    /// The number of questions that the policy has asked.
    pub fn questions(&self) -> u64 {
        self.questions
    }

    fn ask(
        &mut self,
        ask: fn(&mut dyn Policy, &mut Probe<'_>) -> Option<FrameId>,
    ) -> Option<FrameId> {
        let now = Time(self.references * 1000);
        let unmaps = self.machine.unmaps;
        let mut probe = Probe::new(
            now,
            &mut self.frames,
            &mut self.machine,
            &mut self.questions,
            0,
        )
        .with_places(&mut self.places);
        let frame = ask(&mut *self.policy, &mut probe);
        self.misses.unmaps += self.machine.unmaps - unmaps;
        frame
    }

    fn drop_frame(&mut self, frame: FrameId, departure: Departure) -> u64 {
        let page = self.pages[frame.index()]
            .take()
            .expect("the frame holds a page");
        self.resident.remove(&page);
        self.frames.force(frame, State::Free, false);
        self.machine.part(frame);
        self.places.clear(frame);
        self.free.push(frame.0);
        self.policy.page_left(frame, page_id(page), departure);
        page
    }
}

/// The low half of a page number is a place in an object, the high half is the object. Those with
/// odd numbers are external.
fn page_id(page: u64) -> PageId {
    PageId {
        object: ObjectId((page >> 32) as u32),
        index: page & 0xffff_ffff,
    }
}
