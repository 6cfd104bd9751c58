//! The frames of user memory: a run of pages behind the kernel's heap.

use core::ops::Range;

use tidemark_core::id::FrameId;

use super::paging::{PAGE_BYTES, direct};

/// All frames. There is one value of this type, so who borrows it borrows their contents.
pub struct Frames {
    base: u64,
    count: u32,
}

impl Frames {
    /// Takes over the physical addresses of `area`.
    ///
    /// # Safety
    /// The area is mapped for writing, begins a page, and has no other owner.
    pub(super) unsafe fn new(area: Range<u64>) -> Frames {
        Frames {
            base: area.start,
            count: ((area.end - area.start) / PAGE_BYTES as u64) as u32,
        }
    }

    /// The number of frames.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// The contents of `frame`. Not to be asked while a disk fills it: the core does not.
    pub fn bytes(&self, frame: FrameId) -> &[u8; PAGE_BYTES] {
        // SAFETY: the frame is inside the area, which belongs to this value; programs, which may
        // write to it as well, do not run while the kernel does.
        unsafe { &*(direct(self.physical(frame)) as *const [u8; PAGE_BYTES]) }
    }

    /// The contents of `frame`, to be changed.
    pub fn bytes_mut(&mut self, frame: FrameId) -> &mut [u8; PAGE_BYTES] {
        // SAFETY: as for reading; the borrow of this value keeps other readers away.
        unsafe { &mut *(direct(self.physical(frame)) as *mut [u8; PAGE_BYTES]) }
    }

    /// Copies one frame to another.
    pub fn copy(&mut self, from: FrameId, to: FrameId) {
        assert_ne!(from, to);
        let (from, to) = (direct(self.physical(from)), direct(self.physical(to)));
        // SAFETY: two frames of the area, which do not overlap.
        unsafe { core::ptr::copy_nonoverlapping(from as *const u8, to as *mut u8, PAGE_BYTES) };
    }

    /// The frame at a physical address, if there is one.
    pub(super) fn frame_at(&self, address: u64) -> Option<FrameId> {
        let number = address.checked_sub(self.base)? / PAGE_BYTES as u64;
        (number < u64::from(self.count)).then_some(FrameId(number as u32))
    }

    pub(super) fn physical(&self, frame: FrameId) -> u64 {
        assert!(frame.0 < self.count, "frame {} of {}", frame.0, self.count);
        self.base + u64::from(frame.0) * PAGE_BYTES as u64
    }
}
