//! Bench: what the policies' own tests ask their questions of.
//!
//! Frames with a bit each, set and read by hand. A whole memory around a policy is in the `model`
//! crate; here a test can look at what the policy keeps to itself.

use alloc::vec;
use alloc::vec::Vec;

use crate::id::{FrameId, ObjectId, PageId, SpaceId, VirtPage};
use crate::memory::frame::{Frames, State};
use crate::memory::reverse_map::ReverseMap;
use crate::policies::settings::Settings;
use crate::seams::machine::{Machine, PageBits, Rights};
use crate::seams::policy::{Arrival, Cause, Departure, Policy, Probe};
use crate::time::Time;

/// Frames without contents.
pub(crate) struct Bench {
    /// The reference bits.
    pub bits: Bits,
    /// The time that probes tell.
    pub now: Time,
    frames: Frames,
    places: ReverseMap,
    questions: u64,
}

/// A machine that knows bits and nothing else.
pub(crate) struct Bits {
    /// True for each frame that was used.
    pub used: Vec<bool>,
    /// True for each frame that was written.
    pub modified: Vec<bool>,
    /// True if all can be forgotten at once.
    pub forgets: bool,
}

impl Bench {
    /// `count` frames, all of them free.
    pub fn new(count: u32) -> Bench {
        let used = vec![false; count as usize];
        let modified = used.clone();
        let mut places = ReverseMap::new(count as usize);
        places.keep_standing();
        Bench {
            places,
            bits: Bits {
                used,
                modified,
                forgets: false,
            },
            now: Time(0),
            frames: Frames::new(count, count),
            questions: 0,
        }
    }

    /// The probe of this bench.
    pub fn probe(&mut self) -> Probe<'_> {
        let Bench { bits, frames, .. } = self;
        Probe::new(self.now, frames, bits, &mut self.questions, 0).with_places(&mut self.places)
    }

    /// The number of questions asked.
    pub fn questions(&self) -> u64 {
        self.questions
    }

    /// Brings page `number` of an internal object to the frame of that number, mapped there in
    /// the first space.
    pub fn bring(&mut self, policy: &mut dyn Policy, number: u32, cause: Cause) {
        self.bring_of(policy, number, cause, false);
    }

    /// Brings page `number` of an internal or an external object to the frame of that number.
    pub fn bring_of(
        &mut self,
        policy: &mut dyn Policy,
        number: u32,
        cause: Cause,
        is_external: bool,
    ) {
        self.frames.force_cleaning(FrameId(number), false);
        self.frames.force(FrameId(number), State::Resident, false);
        let arrival = Arrival {
            page: page(number),
            cause,
            space: SpaceId(0),
            is_external,
        };
        policy.page_entered(FrameId(number), &arrival);
        self.map(number, 0);
        policy.check();
    }

    /// Maps the page in the frame of that number in a space, at that number.
    pub fn map(&mut self, number: u32, space: u32) {
        let at = VirtPage(number.into());
        self.places.insert(FrameId(number), SpaceId(space), at);
    }

    /// Throws out the page in the frame of that number.
    pub fn evict(&mut self, policy: &mut dyn Policy, number: u32) {
        self.frames.force(FrameId(number), State::Free, false);
        self.places.clear(FrameId(number));
        policy.page_left(FrameId(number), page(number), Departure::Evicted);
        policy.check();
    }

    /// Takes the page in the frame of that number away for as long as it is being written.
    pub fn start_cleaning(&mut self, policy: &mut dyn Policy, number: u32) {
        self.frames.force(FrameId(number), State::Leaving, false);
        self.frames.force_cleaning(FrameId(number), true);
        policy.page_left(FrameId(number), page(number), Departure::Evicted);
    }

    /// Frees the frame of that number, whose page was given up while it was being written.
    pub fn give_up(&mut self, number: u32) {
        self.frames.force_cleaning(FrameId(number), false);
        self.frames.force(FrameId(number), State::Free, false);
    }

    /// Marks the frames as used.
    pub fn touch(&mut self, numbers: &[u32]) {
        for &number in numbers {
            self.bits.used[number as usize] = true;
        }
    }

    /// Asks for a frame and empties it.
    pub fn evict_one(&mut self, policy: &mut dyn Policy) -> Option<u32> {
        let FrameId(number) = policy.choose(&mut self.probe())?;
        self.evict(policy, number);
        Some(number)
    }
}

/// The settings of a policy for `frames` frames.
pub(crate) fn settings(frames: u32, knobs: &[u64]) -> Settings {
    Settings {
        frames_max: frames,
        frames,
        seed: 1,
        knobs: knobs.to_vec(),
    }
}

fn page(number: u32) -> PageId {
    PageId {
        object: ObjectId(1),
        // No page is next to another.
        index: 2 * u64::from(number),
    }
}

impl Machine for Bits {
    fn enter(&mut self, _: SpaceId, _: VirtPage, _: FrameId, _: Rights) {}
    fn restrict(&mut self, _: FrameId, _: Rights) {}
    fn leave(&mut self, _: SpaceId, _: VirtPage, _: FrameId) {}
    fn discard(&mut self, _: FrameId) {}
    fn zero(&mut self, _: FrameId) {}
    fn copy(&mut self, _: FrameId, _: FrameId) {}
    fn adopt(&mut self, _: SpaceId, _: VirtPage, _: FrameId) {}
    fn relocate(&mut self, _: SpaceId, _: VirtPage, _: VirtPage, _: FrameId) {}
    fn retire(&mut self, _: FrameId) {}
    fn settle(&mut self) {}
}

impl PageBits for Bits {
    fn take_referenced(&mut self, frame: FrameId) -> bool {
        core::mem::take(&mut self.used[frame.index()])
    }

    fn forget_references(&mut self) -> bool {
        if self.forgets {
            self.used.fill(false);
        }
        self.forgets
    }

    fn take_modified(&mut self, frame: FrameId) -> bool {
        core::mem::take(&mut self.modified[frame.index()])
    }

    fn may_be_modified(&self, frame: FrameId) -> bool {
        self.modified[frame.index()]
    }
}
