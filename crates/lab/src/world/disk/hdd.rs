//! Rotating disks: an arm that seeks, platters that turn, a cache for writes.
//!
//! Seeks take the time of a square root of the distance, from a track to the next and across all
//! (Ruemmler and Wilkes, "An Introduction to Disk Drive Modeling", Computer 27(3), 1994, which has
//! a linear part for long seeks; left out). The platter's position is known at any time, and so is
//! the wait for the first page to come by. Reading on right behind the last read costs no turn:
//! the drive has read ahead.

use tidemark_core::seams::pager::Direction;

use super::DiskRequest;

/// A rotating disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hdd {
    /// The number of cylinders that the arm moves over.
    pub cylinders: u64,
    /// The number of pages that a track holds: what one turn reads.
    pub track_pages: u64,
    /// The number of tracks that the arm reaches without moving.
    pub heads: u64,
    /// The time of a turn.
    pub turn_ns: u64,
    /// The time to move to the next cylinder.
    pub seek_min_ns: u64,
    /// The time to move across all cylinders.
    pub seek_max_ns: u64,
    /// The controller's time for a request.
    pub overhead_ns: u64,
    /// The number of pages that the write cache holds; 0: writes are over when they are on the
    /// platter.
    pub cache_pages: u32,
    /// The time to move a page into the cache.
    pub cache_page_ns: u64,
}

impl Hdd {
    /// The time of a seek over `cylinders`.
    pub fn seek_ns(&self, distance: u64) -> u64 {
        if distance == 0 {
            return 0;
        }
        let across = self.cylinders.max(2) - 1;
        // The root of the share of the way, in 1024ths.
        let root = (distance.min(across) * (1 << 20) / across).isqrt();
        self.seek_min_ns + (self.seek_max_ns - self.seek_min_ns) * root / 1024
    }

    /// The time in which a page passes under the head.
    pub fn page_ns(&self) -> u64 {
        self.turn_ns / self.track_pages
    }

    fn cylinder_of(&self, address: u64) -> u64 {
        address / (self.track_pages * self.heads) % self.cylinders
    }
}

/// The position of the arm.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Arm {
    /// Just behind the page that was moved last.
    address: u64,
    was_read: bool,
}

impl Arm {
    pub(super) fn address(&self) -> u64 {
        self.address
    }

    /// Serves a request from `now` on, and answers when it is done.
    pub(super) fn serve(&mut self, hdd: &Hdd, now: u64, request: &DiskRequest) -> u64 {
        let is_read = request.direction == Direction::Fetch;
        let start = now + hdd.overhead_ns;
        if is_read && self.was_read && request.address == self.address {
            return self.follow(hdd, start, request);
        }
        let from = hdd.cylinder_of(self.address);
        let distance = hdd.cylinder_of(request.address).abs_diff(from);
        let there = start + hdd.seek_ns(distance);
        let passes_ns = request.address % hdd.track_pages * hdd.page_ns();
        let turned_ns = there % hdd.turn_ns;
        let wait_ns = (passes_ns + hdd.turn_ns - turned_ns) % hdd.turn_ns;
        self.follow(hdd, there + wait_ns, request)
    }

    /// Serves a request whose first page is under the head at `now`.
    pub(super) fn follow(&mut self, hdd: &Hdd, now: u64, request: &DiskRequest) -> u64 {
        self.was_read = request.direction == Direction::Fetch;
        self.address = request.end();
        now + hdd.page_ns() * u64::from(request.pages)
    }
}
