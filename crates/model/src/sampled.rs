//! The least machine a policy can be asked on: mappings and bits, and no memory behind them.
//!
//! The mappings and bits from which [`cache`](crate::cache) and the laboratory's simulations answer
//! a policy's questions. Its owner maps pages and sets bits; the policy reaches it through its
//! probe alone.

use tidemark_core::id::{FrameId, SpaceId, VirtPage};
use tidemark_core::seams::machine::{Machine, PageBits, Rights};

/// The source of the answers to the policy's questions.
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
    marks: Vec<Mark>,
    /// The stamp of reference bits that are set.
    round: u8,
    /// The number of mappings removed to answer questions.
    pub unmaps: u64,
}

/// The state of a frame, together: a use looks at all of it.
#[derive(Clone, Copy)]
struct Mark {
    /// True if a use of the page goes unnoticed.
    is_mapped: bool,
    /// True if the page must be written before it may be dropped.
    is_modified: bool,
    /// The reference bit: set while this is the round's. So all are cleared in one step, when
    /// another round begins, for policies that do so at each fault.
    stamp: u8,
}

/// A stamp of no round.
const CLEAR: u8 = 0;

impl Sampled {
    /// Makes one whose `frames` frames are not mapped.
    pub fn new(kind: MachineKind, frames: u32) -> Sampled {
        let mark = Mark {
            is_mapped: false,
            is_modified: false,
            stamp: CLEAR,
        };
        Sampled {
            kind,
            marks: vec![mark; frames as usize],
            round: CLEAR + 1,
            unmaps: 0,
        }
    }

    /// Has the page in `frame` used, and maps it. Says whether it was mapped already.
    #[inline]
    pub fn refer(&mut self, frame: FrameId) -> bool {
        let mark = &mut self.marks[frame.index()];
        mark.stamp = self.round;
        let was_mapped = mark.is_mapped;
        // Nearly all are, and what is not written need not be waited for.
        if !was_mapped {
            mark.is_mapped = true;
        }
        was_mapped
    }

    /// Puts a page into `frame`, not used since.
    #[inline]
    pub fn bring(&mut self, frame: FrameId, is_mapped: bool, is_modified: bool) {
        self.marks[frame.index()] = Mark {
            is_mapped,
            is_modified,
            stamp: CLEAR,
        };
    }

    /// Has the page in `frame` changed.
    #[inline]
    pub fn modify(&mut self, frame: FrameId) {
        self.marks[frame.index()].is_modified = true;
    }

    /// Removes the mapping of `frame`, whose page leaves: this is no question.
    #[inline]
    pub fn part(&mut self, frame: FrameId) {
        self.marks[frame.index()].is_mapped = false;
    }

    /// Returns true if the page in `frame` must be written before it may be dropped.
    pub fn is_modified(&self, frame: FrameId) -> bool {
        self.marks[frame.index()].is_modified
    }

    fn unmap(&mut self, frame: FrameId) -> bool {
        let is_mapped = &mut self.marks[frame.index()].is_mapped;
        let was_mapped = std::mem::replace(is_mapped, false);
        self.unmaps += u64::from(was_mapped);
        was_mapped
    }

    fn take_bit(&mut self, frame: FrameId) -> bool {
        let stamp = &mut self.marks[frame.index()].stamp;
        std::mem::replace(stamp, CLEAR) == self.round
    }

    fn clear_bits(&mut self) {
        self.round = self.round.wrapping_add(1);
        // What bears a stamp from so long ago would seem to be set again.
        if self.round == CLEAR {
            self.marks.iter_mut().for_each(|mark| mark.stamp = CLEAR);
            self.round = CLEAR + 1;
        }
    }
}

impl Machine for Sampled {
    fn restrict(&mut self, frame: FrameId, rights: Rights) {
        assert_eq!(rights, Rights::None, "policies ask for no other rights");
        self.unmap(frame);
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

impl PageBits for Sampled {
    fn take_referenced(&mut self, frame: FrameId) -> bool {
        match self.kind {
            MachineKind::Bits => self.take_bit(frame),
            MachineKind::SoftFaults => self.unmap(frame),
        }
    }

    fn forget_references(&mut self) -> bool {
        let has_bits = self.kind == MachineKind::Bits;
        if has_bits {
            self.clear_bits();
        }
        has_bits
    }

    fn answers_arrival(&self) -> bool {
        self.kind == MachineKind::SoftFaults
    }

    fn take_modified(&mut self, frame: FrameId) -> bool {
        let mark = &mut self.marks[frame.index()];
        assert!(!mark.is_mapped, "it is not known yet");
        std::mem::take(&mut mark.is_modified)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_that_were_cleared_together_stay_clear_however_long() {
        let mut machine = Sampled::new(MachineKind::Bits, 1);
        for rounds in 1..600 {
            machine.refer(FrameId(0));
            (0..rounds).for_each(|_| assert!(machine.forget_references()));
            assert!(
                !machine.take_referenced(FrameId(0)),
                "set again after {rounds}"
            );
            machine.refer(FrameId(0));
            assert!(machine.take_referenced(FrameId(0)));
        }
    }
}
