//! Again: whether a page was used again after it came, asked of bits.
//!
//! On a machine without reference bits the first answer about a page counts the use that brought
//! it: see [`PageBits::answers_arrival`](crate::seams::machine::PageBits::answers_arrival). A
//! policy that took it for a second use would take every page for one that is used again.

use crate::collections::bitmap::Bitmap;
use crate::id::FrameId;
use crate::seams::probe::Probe;

/// The meaning of a bit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Use {
    /// The page was not used since it was last asked about.
    None,
    /// Nothing: the page has just been asked about for the first time.
    Unknown,
    /// The page was used since.
    Again,
}

/// The frames whose pages have not been asked about yet.
pub(crate) struct Fresh {
    frames: Bitmap,
}

impl Fresh {
    /// Makes one for `frames_max` frames.
    pub fn new(frames_max: u32) -> Fresh {
        Fresh {
            frames: Bitmap::new(frames_max as usize),
        }
    }

    /// Notes that a page has come to `frame`.
    pub fn enter(&mut self, frame: FrameId) {
        self.frames.insert(frame.index());
    }

    /// Notes that the page in `frame` has left.
    pub fn leave(&mut self, frame: FrameId) {
        if self.frames.contains(frame.index()) {
            self.frames.remove(frame.index());
        }
    }

    /// Asks whether `frame` was used again since it was last asked about.
    pub fn take_use(&mut self, frame: FrameId, probe: &mut Probe<'_>) -> Use {
        let is_used = probe.take_referenced(frame);
        let is_fresh = self.frames.contains(frame.index());
        self.leave(frame);
        match (is_used, is_fresh && probe.answers_arrival()) {
            (false, _) => Use::None,
            (true, true) => Use::Unknown,
            (true, false) => Use::Again,
        }
    }
}
