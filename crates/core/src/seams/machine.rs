//! The first seam: the translation hardware, or its replacement.
//!
//! The core calls a [`Machine`]; every call returns at once. In the lab it is a set of simulated
//! tables, on a live process it is userfaultfd, on bare metal the page tables. A hit never reaches
//! the core: the machine sets a bit, or does nothing at all.

use crate::id::{FrameId, SpaceId, VirtPage};

/// The accesses that a mapping allows.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Rights {
    /// Nothing: there is no mapping.
    None,
    /// Reading only: a write faults.
    Read,
    /// Reading and writing.
    Write,
}

/// The reason for which the machine could not carry out a change as told.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Setback {
    /// The frame is held by someone else (pinned for input or output): it is mapped still.
    Busy,
    /// No frame can be unmapped just now, whichever it is: this one is mapped still.
    Later,
    /// The page had already been taken away by its owner: frame and contents are gone.
    Gone,
}

/// The answer to the question whether a page was modified.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Modification {
    /// The page need not be written: its pager holds the same contents.
    None,
    /// The page has to be written, whether or not its program has modified it: its pager may not
    /// hold these contents, or this machine can't tell.
    Possible,
    /// The page was written to by its program since it came to its frame.
    Written,
}

/// The translation hardware, or its replacement. Every call returns at once, and
/// its effect may be held back until [`settle`](Self::settle).
pub trait Machine: PageBits {
    /// Makes `at` in `space` reach `frame`, with `rights`. Entering an existing mapping replaces
    /// its rights, and wakes the threads that wait there.
    fn enter(&mut self, space: SpaceId, at: VirtPage, frame: FrameId, rights: Rights);

    /// Lowers every mapping of `frame` to at most `rights`. `Rights::None` removes them.
    fn restrict(&mut self, frame: FrameId, rights: Rights);

    /// Removes the mapping of `frame` at `at` in `space`, and no other. The space's owner wants it
    /// so: who holds the page otherwise does not matter.
    fn leave(&mut self, space: SpaceId, at: VirtPage, frame: FrameId);

    /// Removes every mapping of `frame` and lets its contents go: the page's owner gave it up.
    fn discard(&mut self, frame: FrameId);

    /// Fills `frame` with zeros.
    fn zero(&mut self, frame: FrameId);

    /// Copies the contents of `from` to `to`.
    fn copy(&mut self, from: FrameId, to: FrameId);

    /// Takes over the page that already stands at `at` in `space` as the contents of `frame`,
    /// mapped for writing.
    fn adopt(&mut self, space: SpaceId, at: VirtPage, frame: FrameId);

    /// Forgets `frame`, which is mapped at one place. Its page stays there, for its program to use:
    /// the reverse of [`adopt`](Self::adopt). Answers false, and changes nothing, if it is not
    /// mapped after all. Told only of pages that were [busy](Setback::Busy).
    fn disown(&mut self, _frame: FrameId) -> bool {
        unreachable!("this machine unmaps every page");
    }

    /// Learns that the page in `frame`, mapped at `from` in `space` or not mapped at all, belongs
    /// at `to` now. On a live process the host has moved the mapping already.
    fn relocate(&mut self, space: SpaceId, from: VirtPage, to: VirtPage, frame: FrameId);

    /// Gives the memory of `frame`, which is free, back to its lender.
    fn retire(&mut self, frame: FrameId);

    /// Makes every change above visible to running programs.
    fn settle(&mut self);

    /// Hands over the next change that could not be carried out by the last
    /// [`settle`](Self::settle). The core asks until it gets `None`.
    fn take_setback(&mut self) -> Option<(FrameId, Setback)> {
        None
    }
}

/// The part of a machine that shows whether pages were referenced, and modified.
pub trait PageBits {
    /// Reports whether `frame` was used since this was last asked, and forgets it.
    ///
    /// A machine without reference bits answers yes for a mapped frame and unmaps it, so that the
    /// next use is a soft fault; and no for an unmapped one.
    fn take_referenced(&mut self, frame: FrameId) -> bool;

    /// Reports whether `frame` was used through the mapping at `at` in `space`, and forgets it.
    ///
    /// A machine that does not tell mappings apart answers for all of the frame's at once.
    fn take_referenced_at(&mut self, _space: SpaceId, _at: VirtPage, frame: FrameId) -> bool {
        self.take_referenced(frame)
    }

    /// Forgets at once which frames were used: the next answers are about uses from now on. Answers
    /// whether it did; a machine that cannot changes nothing.
    fn forget_references(&mut self) -> bool {
        false
    }

    /// Returns true if the first answer of [`take_referenced`](Self::take_referenced) after a page
    /// has come to a frame includes the use that brought it, and so says nothing of a second one.
    fn answers_arrival(&self) -> bool {
        false
    }

    /// Reports whether the contents of `frame` may differ from what its pager holds (from zeros,
    /// if the pager holds nothing), and forgets it. Asked of unmapped frames only.
    fn take_modified(&mut self, frame: FrameId) -> bool;

    /// Reports, as [`take_modified`](Self::take_modified), whether `frame` may have been modified,
    /// with the reason where the machine knows it.
    fn take_modification(&mut self, frame: FrameId) -> Modification {
        match self.take_modified(frame) {
            true => Modification::Possible,
            false => Modification::None,
        }
    }

    /// Returns true if the contents of `frame`, mapped or not, may differ from what its pager
    /// holds. A machine that can't tell while a frame is mapped says that they may.
    fn may_be_modified(&self, _frame: FrameId) -> bool {
        true
    }
}
