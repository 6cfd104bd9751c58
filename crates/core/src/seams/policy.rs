//! The third seam: who decides which resident page leaves next.
//!
//! A policy holds opinions, not frames. The core checks each choice, so a wrong policy can make a
//! program slow and cannot make it wrong. Each policy has a file of its own and is listed in
//! [`policies`](crate::policies).

use alloc::vec::Vec;

use crate::id::{FrameId, PageId, SpaceId};

pub use super::arrival::{Arrival, Cause, Departure, KernelUse};
pub use super::description::{Description, Knob, Sees};
pub use super::probe::Probe;

/// Decides which resident page leaves next.
pub trait Policy: SimulatedPolicy + SpacePolicy + Send {
    /// Describes the policy, once, for help texts, reports, bindings and tests.
    fn describe(&self) -> &'static Description;

    /// Learns that a page has come to `frame`.
    fn page_entered(&mut self, frame: FrameId, arrival: &Arrival);

    /// Learns that `page` has left `frame`. A page on its way out to the store has left already.
    /// It may have come under another name: merging objects after a fork moves pages from one to
    /// the other.
    fn page_left(&mut self, frame: FrameId, page: PageId, departure: Departure);

    /// Learns that a program touched the page in `frame` while it was resident but unmapped: a
    /// soft fault. The page is mapped again when this is called.
    fn page_rescued(&mut self, _frame: FrameId) {}

    /// Learns that a system call copied bytes to or from the page in `frame`, which no program need
    /// map: a page of a file in the kernel's cache. Answers whether that is all it wants to know;
    /// if not, its next question about the frame is answered yes, unless this was the
    /// [first](KernelUse::First) use. For most it is a touch like any other.
    fn page_copied(&mut self, frame: FrameId, kernel_use: KernelUse) -> bool {
        if kernel_use == KernelUse::Again {
            self.page_rescued(frame);
        }
        false
    }

    /// Learns that a program wants `page`, which is not resident, before room is made for it. It
    /// may be told again before the page comes, and the page may never come.
    fn page_missed(&mut self, _page: PageId) {}

    /// Names the frame to give up, or `None` if nothing it knows of may go.
    ///
    /// Choosing removes nothing: `page_left` follows if the core agrees.
    fn choose(&mut self, probe: &mut Probe<'_>) -> Option<FrameId>;

    /// Names a frame to give up although it is not needed, or `None` if all stay for now.
    ///
    /// Asked at each tick, and when a fault that brought or mapped a page is over, again and again
    /// until it answers `None` or a round is full. One call does a bounded amount of work; what is
    /// left over can wait for the next event. `page_left` follows each answer that the core agrees
    /// with.
    fn trim(&mut self, _probe: &mut Probe<'_>) -> Option<FrameId> {
        None
    }

    /// Names a frame whose page is to be written and to stay, or `None`. Asked after
    /// [`trim`](Self::trim), in the same way.
    ///
    /// The page leaves for the time of the write, and enters again: as [`Cause::Cleaned`] when it
    /// has been written or had no need to be, as [`Cause::Kept`] if it was touched meanwhile.
    fn clean(&mut self, _probe: &mut Probe<'_>) -> Option<FrameId> {
        None
    }

    /// Learns that time has passed.
    fn tick(&mut self, _probe: &mut Probe<'_>) {}

    /// Learns that memory now has `frames` frames.
    fn resize(&mut self, _frames: u32) {}

    /// Panics if the policy's own records contradict each other.
    fn check(&self) {}
}

/// The calls that simulations alone make to a policy. Most policies keep what stands here.
pub trait SimulatedPolicy {
    /// Adds to `frames` up to `count` frames that may be chosen next, the first of them first.
    /// Asked by simulations alone, which read ahead in their traces: their look-ups of those frames
    /// then overlap, and do not wait for memory at each choice. The answer binds no later choice.
    fn frames_ahead(&self, _count: usize, _frames: &mut Vec<FrameId>) {}

    /// Learns that `wanted` may be missed soon, and that those of
    /// [`frames_ahead`](Self::frames_ahead) hold `leaving`. It changes nothing and tells nothing. A
    /// policy that remembers pages which have left may look here where they are or will be
    /// remembered, all at once, so that it need not wait for memory at each miss.
    fn pages_ahead(&self, _wanted: &[PageId], _leaving: &[PageId]) {}

    /// Learns of one reference to a page that was resident; called by the lab alone, if `sees`
    /// asks for it. `page_entered` reports the reference that brings a page.
    fn page_referenced(&mut self, _frame: FrameId) {}

    /// Learns when the page in `frame` is used next, in the ticks of its program: `u64::MAX` if
    /// never. Called by the lab alone after each reference, if `sees` asks for the future.
    fn page_foreseen(&mut self, _frame: FrameId, _next: u64) {}
}

/// The state that a policy keeps for each program: its own time, what it needs, and its page
/// tables. Most policies keep what stands here.
pub trait SpacePolicy {
    /// Learns how far the programs of `space` have come in their own time, in ticks: a microsecond
    /// of processor time each, or a reference in a simulation without a clock. Told before
    /// anything else that happened at that time.
    fn clock_moved(&mut self, _space: SpaceId, _ticks: u64) {}

    /// Learns that `space` is no more. Another may get its number. Pages it shared may stay.
    fn space_ended(&mut self, _space: SpaceId) {}

    /// The number of frames the programs of `space` need, if the policy measures that.
    fn demand(&self, _space: SpaceId) -> Option<u32> {
        None
    }

    /// The number of resident pages the policy holds as good as free.
    fn frames_spare(&self) -> u32 {
        0
    }

    /// Returns true if it walks the page tables of programs: its driver then keeps the standing
    /// mappings (see [`crate::memory::reverse_map`]) and lends them to its probes.
    fn walks(&self) -> bool {
        false
    }
}
