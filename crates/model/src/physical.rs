//! Physical memory: what each frame holds, as the machine and the pagers both see it.
//!
//! Contents are [`Stamp`]s: one number stands for the 4096 bytes of a page. The frames are shared
//! between the machine, whose programs read and write them, and the pagers, whose transfers do.
//!
//! # Invariants
//! 1. A frame has no transfer into it while it has any other transfer.
//! 2. Frames in transfer are neither zeroed, copied onto, adopted nor retired.

use std::cell::RefCell;
use std::rc::Rc;

use tidemark_core::id::FrameId;

/// The contents of a page: a number in place of its bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Stamp(pub u64);

impl Stamp {
    /// A page of zeros.
    pub const ZEROS: Stamp = Stamp(0);
    /// The contents that no program wrote: the contents of frames and slots that promise nothing.
    /// No program may ever read it.
    pub const NOISE: Stamp = Stamp(u64::MAX);
}

/// The marks that hardware keeps of a frame.
#[derive(Clone, Copy, Default, Debug)]
pub struct Marks {
    /// True if the frame was used.
    pub is_referenced: bool,
    /// True if the frame was written.
    pub is_modified: bool,
    /// Something outside the core holds it in place.
    pub is_pinned: bool,
}

#[derive(Clone, Copy)]
struct Cell {
    contents: Stamp,
    /// The contents that the pager is known to hold for the page in this frame.
    saved: Stamp,
    marks: Marks,
    is_filling: bool,
    /// Stores under way: the core may start one more before it has handled the last reply.
    outgoing: u32,
}

/// The frames' contents. Clones share them.
#[derive(Clone)]
pub struct Physical {
    cells: Rc<RefCell<Vec<Cell>>>,
}

impl Physical {
    /// Makes `frames` frames full of noise.
    pub fn new(frames: u32) -> Physical {
        let noise = Cell {
            contents: Stamp::NOISE,
            saved: Stamp::ZEROS,
            marks: Marks::default(),
            is_filling: false,
            outgoing: 0,
        };
        Physical {
            cells: Rc::new(RefCell::new(vec![noise; frames as usize])),
        }
    }

    /// Overwrites `frame` as a program does.
    pub fn write(&self, frame: FrameId, stamp: Stamp) {
        self.with(frame, |cell| cell.contents = stamp);
    }

    /// Gives `frame` new contents, whose pager holds nothing. Not while in transfer.
    pub fn replace(&self, frame: FrameId, contents: Stamp) {
        self.with(frame, |cell| {
            assert!(
                !cell.is_filling,
                "{frame:?} is replaced while it is being filled"
            );
            assert_eq!(
                cell.outgoing, 0,
                "{frame:?} is replaced while it is being stored"
            );
            cell.contents = contents;
            cell.saved = Stamp::ZEROS;
            let is_modified = contents != Stamp::ZEROS;
            cell.marks = Marks {
                is_modified,
                ..Marks::default()
            };
        });
    }

    /// Lets the contents of `frame` go. A store under way reads noise from now on.
    pub fn spoil(&self, frame: FrameId) {
        self.with(frame, |cell| cell.contents = Stamp::NOISE);
    }

    /// Reports whether the contents of `frame` differ from what its pager holds, and takes what
    /// it holds now as what the pager will.
    pub fn take_difference(&self, frame: FrameId) -> bool {
        self.with(frame, |cell| {
            let is_different = cell.contents != cell.saved;
            cell.saved = cell.contents;
            is_different
        })
    }

    /// Starts a transfer into `frame`, which holds noise until its end.
    pub fn begin_fill(&self, frame: FrameId) {
        self.with(frame, |cell| {
            assert!(!cell.is_filling, "{frame:?} is being filled twice");
            assert_eq!(
                cell.outgoing, 0,
                "{frame:?} is filled while it is being stored"
            );
            cell.is_filling = true;
            cell.contents = Stamp::NOISE;
        });
    }

    /// Ends a transfer into `frame`; noise if it failed.
    pub fn end_fill(&self, frame: FrameId, stamp: Stamp) {
        self.with(frame, |cell| {
            assert!(cell.is_filling, "{frame:?} is not being filled");
            cell.is_filling = false;
            cell.contents = stamp;
            cell.saved = stamp;
            cell.marks = Marks::default();
        });
    }

    /// Starts a transfer out of `frame`.
    pub fn begin_store(&self, frame: FrameId) -> Stamp {
        self.with(frame, |cell| {
            assert!(
                !cell.is_filling,
                "{frame:?} is stored while it is being filled"
            );
            cell.outgoing += 1;
            cell.contents
        })
    }

    /// Ends a transfer out of `frame`.
    pub fn end_store(&self, frame: FrameId) -> Stamp {
        self.with(frame, |cell| {
            assert!(cell.outgoing > 0, "{frame:?} is not being stored");
            cell.outgoing -= 1;
            cell.contents
        })
    }

    /// The contents of `frame`.
    pub fn contents(&self, frame: FrameId) -> Stamp {
        self.with(frame, |cell| cell.contents)
    }

    /// Changes the marks of `frame` and returns what they were.
    pub fn mark(&self, frame: FrameId, change: impl FnOnce(&mut Marks)) -> Marks {
        self.with(frame, |cell| {
            let before = cell.marks;
            change(&mut cell.marks);
            before
        })
    }

    /// Returns true if a transfer into `frame` is under way.
    pub fn is_filling(&self, frame: FrameId) -> bool {
        self.with(frame, |cell| cell.is_filling)
    }

    /// The number of frames.
    pub fn frames(&self) -> u32 {
        u32::try_from(self.cells.borrow().len()).expect("made from a u32")
    }

    fn with<T>(&self, frame: FrameId, act: impl FnOnce(&mut Cell) -> T) -> T {
        act(&mut self.cells.borrow_mut()[frame.index()])
    }
}
