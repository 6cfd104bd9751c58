//! EELRU: LRU, until more uses are seen of pages that are gone than of those that are kept longest;
//! then younger pages leave early, so that older ones stay for those uses.
//!
//! All pages, those that left among them, lie on an axis in the order of their last uses. Uses are
//! counted by how far along the axis they find their page. An early point lies before the size of
//! memory, a late point behind it. Evicting at the early point keeps as many pages between the two
//! as there are frames for; each of the uses between them then finds its page with that
//! probability. When that is more uses than LRU finds between the early point and the size of
//! memory, pages leave at the early point, and only those that pass the late point leave as under
//! LRU.
//!
//! The paper leaves the points open. Here the axis is cut at a 32nd of memory and at every eighth
//! up to two and a half times memory: every cut below memory may be the early point, and every one
//! above the late one. Counts are halved whenever as many uses beyond the first cut have been
//! counted as memory has frames.
//!
//! # Invariants
//! 1. A region of the axis that is not full has nothing behind it.
//! 2. A frame is on the list of the resident pages of the region it is in on the axis.

use super::directory::Directory;
use super::pull::{pull, pull_any};
use super::registry::Settings;
use super::{Arrival, Cause, Departure, Description, Policy, Probe, Sees};
use crate::id::{FrameId, PageId};
use crate::queue::Queues;

/// What `eelru` says of itself.
pub static DESCRIPTION: Description = Description {
    name: "eelru",
    summary: "LRU, but younger pages leave early while older ones are used more",
    lineage: &[
        "Smaragdakis, Kaplan and Wilson 1999",
        "Smaragdakis, Kaplan and Wilson 2003 (bounds)",
    ],
    sees: Sees::References,
    knobs: &[],
};

/// Memory is cut in so many parts, ...
const PARTS: u64 = 8;
/// ... and the axis ends after so many of them.
const PARTS_MOST: u64 = 20;
/// The first cut is nearer than the first part: for loops, the fewer young pages the better.
const FIRST_PART: u64 = 32;
/// The region that ends where memory does.
const MEMORY: usize = PARTS as usize;
/// The regions of the axis: the first, and the parts.
const REGIONS: usize = 1 + PARTS_MOST as usize;
/// Where pages are that nobody has used for longer than the axis: resident ones alone.
const BEYOND: usize = REGIONS;
/// What a use counts, so that halving leaves something of it.
const USE: u64 = 1 << 8;

struct Eelru {
    /// Frames, and behind them the entries of the directory, by region, the last used last.
    axis: Queues,
    /// The frames, by region, in the same order but for those that could not leave.
    resident: Queues,
    ghosts: Directory,
    frames_max: u32,
    /// How many pages memory held when one last had to leave; before that, its frames.
    full: u32,
    /// How many pages each region takes.
    sizes: [u32; REGIONS],
    /// Uses by region.
    uses: [u64; REGIONS],
    /// Uses beyond the first region since the counts were halved.
    counted: u32,
}

/// Makes an `eelru`.
pub fn build(settings: Settings) -> impl Policy {
    let frames_max = settings.frames_max;
    // One page more than the axis takes is there before the oldest falls off it.
    let ghosts_max: u32 = sizes(frames_max).iter().sum::<u32>() + 1;
    let lists = BEYOND as u8 + 1;
    Eelru {
        axis: Queues::new(lists, frames_max + ghosts_max),
        resident: Queues::new(lists, frames_max),
        ghosts: Directory::new(ghosts_max),
        frames_max,
        full: settings.frames,
        sizes: sizes(settings.frames),
        uses: [0; REGIONS],
        counted: 0,
    }
}

/// How many pages the regions take in a memory of so many frames.
fn sizes(frames: u32) -> [u32; REGIONS] {
    let mut before = 0;
    core::array::from_fn(|region| {
        let end = end_of(region, frames);
        end - core::mem::replace(&mut before, end)
    })
}

/// Where a region ends: how many pages lie on the axis up to there.
fn end_of(region: usize, frames: u32) -> u32 {
    let frames = u64::from(frames);
    let end = match region {
        0 => frames / FIRST_PART,
        part => frames * part as u64 / PARTS,
    };
    // Of frames there are less than 2^31: see `Config::frames_max`.
    u32::try_from(end).unwrap_or(u32::MAX)
}

impl Policy for Eelru {
    fn describe(&self) -> &'static Description {
        &DESCRIPTION
    }

    fn page_entered(&mut self, frame: FrameId, arrival: &Arrival) {
        let ghost = self.ghosts.find(arrival.page);
        let ghost = ghost.map(|entry| (self.ghost_member(entry), entry));
        match (arrival.cause, ghost) {
            // It was only away to be written.
            (Cause::Kept | Cause::Cleaned, Some((member, entry))) => {
                let region = self.region_of(member).expect("a ghost is on the axis");
                self.ghosts.remove(entry);
                self.axis.replace(member, frame.0);
                self.resident.push_back(region as u8, frame.0);
                return;
            }
            (cause, Some((member, entry))) => {
                let region = self.axis.remove(member).expect("a ghost is on the axis");
                self.ghosts.remove(entry);
                if !matches!(cause, Cause::Prefetched | Cause::ZeroAhead) {
                    self.note_use(usize::from(region));
                }
            }
            (_, None) => {}
        }
        self.put_first(frame);
    }

    fn page_left(&mut self, frame: FrameId, page: PageId, departure: Departure) {
        let Some(region) = self.resident.remove(frame.0).map(usize::from) else {
            return;
        };
        if departure == Departure::Evicted && region < BEYOND {
            let entry = self.ghosts.insert(page);
            let member = self.ghost_member(entry);
            self.axis.replace(frame.0, member);
        } else {
            self.axis.remove(frame.0);
            self.fill(region);
        }
    }

    fn page_referenced(&mut self, frame: FrameId) {
        let Some(region) = self.region_of(frame.0) else {
            return;
        };
        self.note_use(region);
        self.axis.move_to_back(0, frame.0);
        self.resident.move_to_back(0, frame.0);
        self.spill(0);
    }

    fn choose(&mut self, probe: &mut Probe<'_>) -> Option<FrameId> {
        self.set_full(self.resident.total());
        if let Some((early, late)) = self.find_points() {
            let oldest = (0..=BEYOND).rfind(|&region| self.resident.length(region as u8) > 0)?;
            if oldest <= late {
                let younger = (0..=early).rev();
                let mut found = younger.filter_map(|at| pull(&mut self.resident, at as u8, probe));
                if let Some(frame) = found.next() {
                    return Some(frame);
                }
            }
        }
        let lists: [u8; BEYOND + 1] = core::array::from_fn(|at| (BEYOND - at) as u8);
        pull_any(&mut self.resident, &lists, probe)
    }

    fn resize(&mut self, frames: u32) {
        self.set_full(frames);
    }

    fn check(&self) {
        self.axis.check();
        self.resident.check();
        self.ghosts.check();
        let mut is_end = false;
        for (region, &size) in self.sizes.iter().enumerate() {
            let length = self.axis.length(region as u8);
            assert!(length <= size, "a region is too long");
            assert!(!is_end || length == 0, "a region has a gap before it");
            is_end |= length < size;
        }
        let beyond = self.axis.length(BEYOND as u8);
        assert!(!is_end || beyond == 0, "the axis has a gap at its end");
        assert_eq!(beyond, self.resident.length(BEYOND as u8));
        assert_eq!(self.axis.total(), self.resident.total() + self.ghosts.len());
        for frame in 0..self.frames_max {
            assert_eq!(
                self.axis.list_of(frame),
                self.resident.list_of(frame),
                "a frame is in two regions"
            );
        }
    }
}

impl Eelru {
    fn ghost_member(&self, entry: u32) -> u32 {
        self.frames_max + entry
    }

    fn region_of(&self, member: u32) -> Option<usize> {
        self.axis.list_of(member).map(usize::from)
    }

    /// Counts a use that found its page in `region`.
    fn note_use(&mut self, region: usize) {
        if region == 0 || region == BEYOND {
            return;
        }
        self.uses[region] += USE;
        self.counted += 1;
        if self.counted >= self.full {
            self.counted = 0;
            self.uses.iter_mut().for_each(|uses| *uses /= 2);
        }
    }

    /// The regions at whose ends the early and the late point lie that promise most, if any
    /// promises more uses than LRU.
    fn find_points(&self) -> Option<(usize, usize)> {
        let mut best = 0;
        let mut points = None;
        let mut kept = 0_u128;
        for early in (0..MEMORY).rev() {
            kept += u128::from(self.uses[early + 1]);
            let first = end_of(early, self.full);
            if first == 0 {
                continue;
            }
            let mut all = kept;
            for late in MEMORY + 1..REGIONS {
                all += u128::from(self.uses[late]);
                let frames = u128::from(self.full - first);
                let pages = u128::from(end_of(late, self.full) - first).max(1);
                // Few are better than the best so far, and only for those is a division needed.
                let found = all * frames;
                if found >= (kept + best + 1) * pages {
                    best = found / pages - kept;
                    points = Some((early, late));
                }
            }
        }
        points
    }

    /// Puts a frame to the front of the axis. Each region that is too long then gives its oldest
    /// page to the next.
    fn put_first(&mut self, frame: FrameId) {
        self.axis.push_back(0, frame.0);
        self.resident.push_back(0, frame.0);
        self.spill(0);
    }

    /// Hands on what regions have too much, from `first` on, until one has no more than it takes.
    fn spill(&mut self, first: usize) {
        for region in first..REGIONS {
            if self.axis.length(region as u8) <= self.sizes[region] {
                break;
            }
            while self.axis.length(region as u8) > self.sizes[region] {
                let oldest = self.axis.front(region as u8).expect("it is too long");
                let next = region as u8 + 1;
                self.axis.move_to_back(next, oldest);
                if oldest < self.frames_max {
                    self.resident.move_to_back(next, oldest);
                } else if usize::from(next) == BEYOND {
                    self.axis.remove(oldest);
                    self.ghosts.remove(oldest - self.frames_max);
                }
            }
        }
    }

    /// Takes into regions, from `first` on, what they have room for, from those behind them.
    fn fill(&mut self, first: usize) {
        for region in first..REGIONS {
            while self.axis.length(region as u8) < self.sizes[region] {
                let behind = region as u8 + 1..=BEYOND as u8;
                let Some(member) = behind.filter_map(|at| self.axis.back(at)).next() else {
                    return;
                };
                self.axis.remove(member);
                self.axis.push_front(region as u8, member);
                if member < self.frames_max {
                    self.resident.remove(member);
                    self.resident.push_front(region as u8, member);
                }
            }
        }
    }

    /// Learns how many pages memory holds.
    fn set_full(&mut self, full: u32) {
        // Where some frames are kept free their number changes all the time: that is no other size.
        if full.abs_diff(self.full) > self.full / 64 {
            self.full = full;
            self.sizes = sizes(full);
            self.fill(0);
            for region in 0..REGIONS {
                self.spill(region);
            }
        }
    }
}
