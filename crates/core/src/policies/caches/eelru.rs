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
//! 2. Behind the axis are resident pages alone.

use alloc::vec::Vec;

use crate::id::{FrameId, PageId};
use crate::policies::parts::directory::Directory;
use crate::policies::parts::recency_segments::Segments;
use crate::policies::settings::Settings;
use crate::seams::policy::{
    Arrival, Cause, Departure, Description, Policy, Probe, Sees, SimulatedPolicy, SpacePolicy,
};

/// The description of `eelru`.
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

/// Memory is cut into this many parts.
const PARTS: u64 = 8;
/// The number of parts of the axis, in memory and behind it.
const PARTS_MOST: u64 = 20;
/// The first cut is nearer than the first part: for loops, the fewer young pages the better.
const FIRST_PART: u64 = 32;
/// The region that ends where memory does.
const MEMORY: usize = PARTS as usize;
/// The regions of the axis: the first, and the parts.
const REGIONS: usize = 1 + PARTS_MOST as usize;
/// The region of pages unused for longer than the axis: resident ones alone.
const BEYOND: usize = REGIONS;
/// The weight of a use, so that halving leaves something of it.
const USE: u64 = 1 << 8;

struct Eelru {
    /// Frames, and behind them the entries of the directory. A region is a segment.
    axis: Segments,
    ghosts: Directory,
    frames_max: u32,
    /// The number of pages memory held when one last had to leave; before that, its frames.
    full: u32,
    /// The number of pages each region takes.
    sizes: [u32; REGIONS],
    /// The end of each region.
    ends: [u32; REGIONS],
    /// The region from which a page left last.
    last_left: usize,
    /// Uses by region.
    uses: [u64; REGIONS],
    /// Uses beyond the first region since the counts were halved.
    counted: u32,
    /// No points promise more than LRU before this many uses have been found behind memory.
    lull: u64,
}

/// Makes an `eelru`.
pub fn build(settings: Settings) -> impl Policy {
    Eelru::new(settings.frames, settings.frames_max)
}

/// The number of pages each region takes in a memory of `frames`.
fn sizes(frames: u32) -> [u32; REGIONS] {
    let mut before = 0;
    ends(frames).map(|end| end - core::mem::replace(&mut before, end))
}

/// The end of each region: how many pages lie on the axis up to there.
fn ends(frames: u32) -> [u32; REGIONS] {
    let frames = u64::from(frames);
    core::array::from_fn(|region| {
        let end = match region {
            0 => frames / FIRST_PART,
            part => frames * part as u64 / PARTS,
        };
        // Of frames there are less than 2^31: see `Config::frames_max`.
        u32::try_from(end).unwrap_or(u32::MAX)
    })
}

/// A product of uses and pages.
fn product(uses: u64, pages: u32) -> u128 {
    u128::from(uses) * u128::from(pages)
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
                self.ghosts.remove(entry);
                self.axis.replace(member, frame.0);
                return;
            }
            (cause, Some((member, entry))) => {
                let region = self.axis.remove(member).expect("a ghost is on the axis");
                self.ghosts.remove(entry);
                if !matches!(cause, Cause::Prefetched | Cause::ZeroAhead) {
                    self.note_use(region);
                }
            }
            (_, None) => {}
        }
        let has_room = |&region: &usize| self.axis.length(region) < self.sizes[region];
        let region = (0..REGIONS).find(has_room).unwrap_or(BEYOND);
        let last = self.axis.push(frame.0, region);
        self.forget_beyond(region, last);
    }

    fn page_left(&mut self, frame: FrameId, page: PageId, departure: Departure) {
        let Some(region) = self.axis.segment_of(frame.0) else {
            return;
        };
        self.last_left = region;
        if departure == Departure::Evicted && region < BEYOND {
            let entry = self.ghosts.insert(page);
            let member = self.ghost_member(entry);
            self.axis.replace(frame.0, member);
        } else {
            self.axis.remove(frame.0);
            self.fill(region);
        }
    }

    fn choose(&mut self, probe: &mut Probe<'_>) -> Option<FrameId> {
        self.set_full(self.axis.frames());
        if let Some((early, late)) = self.find_points() {
            let oldest = (0..=BEYOND).rfind(|&region| self.axis.has_frame(region))?;
            if oldest <= late
                && let Some(frame) = self.pull_any((0..=early).rev(), probe)
            {
                return Some(frame);
            }
        }
        self.pull_any((0..=BEYOND).rev(), probe)
    }

    fn resize(&mut self, frames: u32) {
        self.set_full(frames);
    }

    fn check(&self) {
        self.axis.check();
        self.ghosts.check();
        let mut is_end = false;
        for (region, &size) in self.sizes.iter().enumerate() {
            let length = self.axis.length(region);
            assert!(length <= size, "a region is too long");
            assert!(!is_end || length == 0, "a region has a gap before it");
            is_end |= length < size;
        }
        let beyond = self.axis.length(BEYOND);
        assert!(!is_end || beyond == 0, "the axis has a gap at its end");
        let all: u32 = (0..=BEYOND).map(|region| self.axis.length(region)).sum();
        assert_eq!(all, self.axis.frames() + self.ghosts.len());
        let mut ghosts = self.frames_max..self.axis.members_max();
        assert!(
            ghosts.all(|ghost| self.axis.segment_of(ghost) != Some(BEYOND)),
            "a page that is gone is remembered too long"
        );
    }
}

impl SimulatedPolicy for Eelru {
    fn frames_ahead(&self, count: usize, frames: &mut Vec<FrameId>) {
        // Each page that comes moves all cuts. The next to leave stand at one of them.
        self.axis.bring_near(count);
        frames.extend(self.axis.next_frames(self.last_left, 2 * count).take(count));
    }

    fn pages_ahead(&self, wanted: &[PageId], leaving: &[PageId]) {
        let look = |entry| self.axis.segment_of(self.ghost_member(entry)).is_some();
        self.ghosts.bring_near(wanted, look);
        self.ghosts.bring_near(leaving, |_| true);
        let falling = self.axis.next_to_cross(BEYOND - 1).take(wanted.len());
        let falling = falling.filter_map(|member| member.checked_sub(self.frames_max));
        self.ghosts.bring_entries_near(falling);
    }

    #[inline(always)]
    fn page_referenced(&mut self, frame: FrameId) {
        let Some(region) = self.axis.segment_of(frame.0) else {
            return;
        };
        let last = self.axis.renew(frame);
        if region > 0 {
            self.note_use(region);
            self.forget_beyond(region, last);
        }
    }
}

impl SpacePolicy for Eelru {}

impl Eelru {
    fn new(frames: u32, frames_max: u32) -> Eelru {
        // One page more than the axis takes is there before the oldest falls off it.
        let ghosts_max: u32 = sizes(frames_max).iter().sum::<u32>() + 1;
        Eelru {
            axis: Segments::new(BEYOND + 1, frames_max, frames_max + ghosts_max),
            ghosts: Directory::new(ghosts_max),
            frames_max,
            full: frames,
            sizes: sizes(frames),
            ends: ends(frames),
            last_left: BEYOND,
            uses: [0; REGIONS],
            counted: 0,
            lull: 0,
        }
    }

    fn ghost_member(&self, entry: u32) -> u32 {
        self.frames_max + entry
    }

    /// Counts a use that found its page in `region`.
    #[inline]
    fn note_use(&mut self, region: usize) {
        if region == 0 || region == BEYOND {
            return;
        }
        if region > MEMORY {
            self.lull = self.lull.saturating_sub(1);
        }
        self.uses[region] += USE;
        self.counted += 1;
        if self.counted >= self.full {
            self.counted = 0;
            self.uses.iter_mut().for_each(|uses| *uses /= 2);
            // Half as much is lacking, and what is lost of halves is worth less than a use.
            self.lull = (self.lull / 2).saturating_sub(1);
        }
    }

    /// The regions at whose ends the early and the late point lie that promise most, if any
    /// promises more uses than LRU.
    fn find_points(&mut self) -> Option<(usize, usize)> {
        if self.lull > 0 {
            return None;
        }
        let behind: u64 = self.uses[MEMORY + 1..].iter().sum();
        let (mut best, mut kept) = (0, 0);
        let mut points = None;
        for early in (0..MEMORY).rev() {
            kept += self.uses[early + 1];
            let first = self.ends[early];
            if first == 0 {
                break;
            }
            let frames = self.full - first;
            let most = product(kept + behind, frames);
            let mut all = kept;
            for late in MEMORY + 1..REGIONS {
                all += self.uses[late];
                let pages = self.ends[late] - first;
                let wanted = product(kept + best + 1, pages);
                // Farther points want more, and soon more than all uses would do.
                if most < wanted {
                    break;
                }
                // Few are better than the best so far, and only for those is a division needed.
                let found = product(all, frames);
                if found >= wanted {
                    best = (found / u128::from(pages)) as u64 - kept;
                    points = Some((early, late));
                }
            }
        }
        if points.is_none() {
            self.lull = self.measure_lull();
        }
        points
    }

    /// The least number of uses behind memory that must be added until points promise more than
    /// LRU, if none do now. A use adds to what is found, at most, its share of the frames; one in
    /// memory adds more to what is wanted.
    #[cold]
    fn measure_lull(&self) -> u64 {
        let mut lull = u64::MAX;
        let mut kept = 0;
        for early in (0..MEMORY).rev() {
            kept += self.uses[early + 1];
            let first = self.ends[early];
            if first == 0 {
                break;
            }
            let frames = self.full - first;
            let share = product(USE, frames);
            let mut all = kept;
            for late in MEMORY + 1..REGIONS {
                all += self.uses[late];
                let pages = self.ends[late] - first;
                let lacking = product(kept + 1, pages).saturating_sub(product(all, frames));
                // As above.
                if lacking < share * u128::from(lull) {
                    lull = (lacking / share) as u64;
                }
            }
        }
        lull
    }

    /// Finds the oldest frame that may leave in the first of `regions` that has one.
    fn pull_any(
        &mut self,
        mut regions: impl Iterator<Item = usize>,
        probe: &Probe<'_>,
    ) -> Option<FrameId> {
        let may_leave = |frame| probe.may_leave(frame);
        regions.find_map(|region| self.axis.find_oldest(region, may_leave))
    }

    /// Forgets `member`, which has come to `region`, if it is gone and that is behind the axis.
    #[inline]
    fn forget_beyond(&mut self, region: usize, member: u32) {
        if region == BEYOND && member >= self.frames_max {
            self.axis.remove(member);
            self.ghosts.remove(member - self.frames_max);
        }
    }

    /// Takes into regions, from `first` on, what they have room for, from those behind them.
    fn fill(&mut self, first: usize) {
        for region in first..REGIONS {
            while self.axis.length(region) < self.sizes[region] {
                if self.axis.take_back(region).is_none() {
                    return;
                }
            }
        }
    }

    /// Learns how many pages memory holds.
    fn set_full(&mut self, full: u32) {
        // Where some frames are kept free their number changes all the time: that is no other size.
        if full.abs_diff(self.full) > self.full / 64 {
            self.full = full;
            self.lull = 0;
            self.sizes = sizes(full);
            self.ends = ends(full);
            self.fill(0);
            for region in 0..REGIONS {
                while self.axis.length(region) > self.sizes[region] {
                    let member = self.axis.pass_on(region);
                    self.forget_beyond(region + 1, member);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Finds the points from the definition.
    fn search(of: &Eelru) -> Option<(usize, usize)> {
        let (mut best, mut points) = (0, None);
        for early in (0..MEMORY).rev().filter(|&early| of.ends[early] > 0) {
            let kept: u64 = of.uses[early + 1..=MEMORY].iter().sum();
            for late in MEMORY + 1..REGIONS {
                let all: u64 = of.uses[early + 1..=late].iter().sum();
                let frames = u64::from(of.full - of.ends[early]);
                let found = all * frames / u64::from(of.ends[late] - of.ends[early]);
                if found > kept + best {
                    best = found - kept;
                    points = Some((early, late));
                }
            }
        }
        points
    }

    #[test]
    fn points_are_missed_by_no_shortcut() {
        let mut random = 1_u64;
        for frames in [1, 3, 8, 9, 33, 140, 1000] {
            let mut eelru = Eelru::new(frames, frames);
            let (mut promising, mut lulls) = (0, 0);
            for step in 0..20_000_u64 {
                random = random.wrapping_mul(6_364_136_223_846_793_005) + 1;
                let is_behind = match step / 700 % 3 {
                    0 => false,
                    1 => true,
                    _ => random >> 40 & 1 == 0,
                };
                // Spread over all regions, and at other times next to the end of memory.
                let region = if step / 2100 % 2 == 0 {
                    random >> 50
                } else {
                    0
                } as usize;
                eelru.note_use(match is_behind {
                    true => MEMORY + 1 + region % (REGIONS - MEMORY - 1),
                    false => MEMORY - region % MEMORY,
                });
                let points = eelru.find_points();
                assert_eq!(points, search(&eelru), "{frames} frames, step {step}");
                promising += u32::from(points.is_some());
                lulls += u32::from(eelru.lull > 1);
            }
            if frames >= 140 {
                assert!(promising > 1_000 && lulls > 1_000, "{promising}, {lulls}");
            }
        }
    }
}
