//! Drop-behind: the page that a sequential reader has just passed, as the Mach pagers knew it.
//!
//! A page that comes right after the last one to come to its object says that this last one has
//! been read.

use alloc::vec;
use alloc::vec::Vec;

use crate::collections::column::Column;
use crate::id::{FrameId, ObjectId, PageId};

/// The number of objects remembered. Objects whose numbers differ by a multiple of it disturb each
/// other.
const LAST_PAGES: usize = 256;

/// The page that came last to an object.
#[derive(Clone, Copy)]
struct LastPage {
    page: PageId,
    frame: FrameId,
}

/// The pages that came last to objects.
pub(crate) struct DropBehind {
    last_pages: Vec<Option<LastPage>>,
    /// The object each page came to: it may have moved to another by the time it leaves.
    came_to: Column<ObjectId>,
}

impl DropBehind {
    /// Knows of no page yet.
    pub fn new(frames_max: u32) -> DropBehind {
        DropBehind {
            last_pages: vec![None; LAST_PAGES],
            came_to: Column::new(ObjectId(0), frames_max as usize),
        }
    }

    /// Learns that `page` has come to `frame`. Answers the frame of the page before it, if that
    /// was the last to come to the object.
    pub fn enter(&mut self, frame: FrameId, page: PageId) -> Option<FrameId> {
        self.came_to[frame.index()] = page.object;
        let place = place_of(page.object);
        let last = self.last_pages[place].replace(LastPage { page, frame })?;
        // The last page that there can be has none after it.
        let next = last.page.index.checked_add(1);
        let is_next = last.page.object == page.object && next == Some(page.index);
        (is_next && last.frame != frame).then_some(last.frame)
    }

    /// Learns that `frame` has become empty.
    pub fn leave(&mut self, frame: FrameId) {
        let last = &mut self.last_pages[place_of(self.came_to[frame.index()])];
        if last.is_some_and(|last| last.frame == frame) {
            *last = None;
        }
    }
}

fn place_of(object: ObjectId) -> usize {
    object.0 as usize % LAST_PAGES
}
