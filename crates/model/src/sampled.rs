//! The least machine a policy can be asked on: mappings and bits, and no memory behind them.
//!
//! What [`cache`](crate::cache) and the laboratory's simulations answer a policy's questions from.
//! Whoever owns it maps pages and sets bits itself; the policy reaches it through its probe alone.

use tidemark_core::id::{FrameId, SpaceId, VirtPage};
use tidemark_core::machine::{Machine, Rights};

/// What the policy's questions are answered from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MachineKind {
    /// One reference bit a frame: a hit sets it, and it is clear when a page comes.
    Bits,
    /// No bits, as on the live machine: asking about a mapped frame unmaps it and says yes. The
    /// page's next use is a soft fault.
    SoftFaults,
}

/// A machine that knows about mappings and bits, and has no memory behind them.
pub struct Sampled {
    kind: MachineKind,
    /// Whether a use of the page in each frame goes unnoticed.
    pub is_mapped: Vec<bool>,
    /// The reference bit of each frame.
    pub referenced: ReferenceBits,
    /// Whether the page in each frame must be written before it may be dropped.
    pub is_modified: Vec<bool>,
    /// How many mappings were removed to answer questions.
    pub unmaps: u64,
}

impl Sampled {
    /// Makes one whose `frames` frames are not mapped.
    pub fn new(kind: MachineKind, frames: u32) -> Sampled {
        Sampled {
            kind,
            is_mapped: vec![false; frames as usize],
            referenced: ReferenceBits::new(frames),
            is_modified: vec![false; frames as usize],
            unmaps: 0,
        }
    }

    fn unmap(&mut self, frame: FrameId) -> bool {
        let was_mapped = std::mem::replace(&mut self.is_mapped[frame.index()], false);
        self.unmaps += u64::from(was_mapped);
        was_mapped
    }
}

/// One bit a frame. All are cleared in one step, for policies that do so at each fault: a bit is
/// set while its stamp is that of the round, and another round begins.
pub struct ReferenceBits {
    stamps: Vec<u8>,
    round: u8,
}

/// A stamp of no round.
const CLEAR: u8 = 0;

impl ReferenceBits {
    fn new(frames: u32) -> ReferenceBits {
        ReferenceBits {
            stamps: vec![CLEAR; frames as usize],
            round: CLEAR + 1,
        }
    }

    /// Sets the bit of `frame`.
    #[inline]
    pub fn set(&mut self, frame: FrameId) {
        self.stamps[frame.index()] = self.round;
    }

    /// Clears the bit of `frame`, and says whether it was set.
    #[inline]
    pub fn take(&mut self, frame: FrameId) -> bool {
        std::mem::replace(&mut self.stamps[frame.index()], CLEAR) == self.round
    }

    fn clear_all(&mut self) {
        self.round = self.round.wrapping_add(1);
        // What bears a stamp from so long ago would seem to be set again.
        if self.round == CLEAR {
            self.stamps.fill(CLEAR);
            self.round = CLEAR + 1;
        }
    }
}

impl Machine for Sampled {
    fn restrict(&mut self, frame: FrameId, rights: Rights) {
        assert_eq!(rights, Rights::None, "policies ask for no other rights");
        self.unmap(frame);
    }

    fn take_referenced(&mut self, frame: FrameId) -> bool {
        match self.kind {
            MachineKind::Bits => self.referenced.take(frame),
            MachineKind::SoftFaults => self.unmap(frame),
        }
    }

    fn forget_references(&mut self) -> bool {
        let has_bits = self.kind == MachineKind::Bits;
        if has_bits {
            self.referenced.clear_all();
        }
        has_bits
    }

    fn enter(&mut self, _: SpaceId, _: VirtPage, _: FrameId, _: Rights) {
        unreachable!("the memory maps pages itself")
    }

    fn leave(&mut self, _: SpaceId, _: VirtPage, _: FrameId) {
        unreachable!("a page has one mapping here")
    }

    fn discard(&mut self, _: FrameId) {
        unreachable!("policies own no pages")
    }

    fn answers_arrival(&self) -> bool {
        self.kind == MachineKind::SoftFaults
    }

    fn take_modified(&mut self, frame: FrameId) -> bool {
        assert!(!self.is_mapped[frame.index()], "nobody can tell yet");
        std::mem::take(&mut self.is_modified[frame.index()])
    }

    fn zero(&mut self, _: FrameId) {
        unreachable!("policies fill no frames")
    }

    fn copy(&mut self, _: FrameId, _: FrameId) {
        unreachable!("policies fill no frames")
    }

    fn adopt(&mut self, _: SpaceId, _: VirtPage, _: FrameId) {
        unreachable!("policies adopt no pages")
    }

    fn relocate(&mut self, _: SpaceId, _: VirtPage, _: VirtPage, _: FrameId) {
        unreachable!("policies move no pages")
    }

    fn retire(&mut self, _: FrameId) {
        unreachable!("policies hold no frames")
    }

    fn settle(&mut self) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_that_were_cleared_together_stay_clear_however_long() {
        let mut bits = ReferenceBits::new(1);
        for rounds in 1..600 {
            bits.set(FrameId(0));
            (0..rounds).for_each(|_| bits.clear_all());
            assert!(!bits.take(FrameId(0)), "it is set again after {rounds}");
            bits.set(FrameId(0));
            assert!(bits.take(FrameId(0)));
        }
    }
}
