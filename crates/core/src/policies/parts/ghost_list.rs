//! Ghosts: what is remembered of pages that have left.
//!
//! Pages by number, in the order in which they left. When there is room for no more the oldest
//! memory goes. The newest ones are counted apart.
//!
//! Memories stand side by side as they come, in blocks of places. One that is taken leaves a hole
//! behind, so that nothing is linked: a memory is written behind the last and forgotten at the
//! front, where the processor expects it, and those before and behind it are not looked at. A block
//! that the front has passed is the next that the back goes on in, so that only as many places are
//! in memory as memories and holes need.
//!
//! There are half as many places more than memories. When half of those that the memories there are
//! have are holes, a gap goes from the back to the front: each memory that it comes to moves to its
//! other end, and each hole makes it larger, until it is before all of them. It goes a few places
//! with each memory that is added, so that no call takes long. From n memories with n/4 holes the
//! gap takes 5n/4/8 additions, and as many holes can be left behind it: places do not run out
//! before it has been round again.
//!
//! # Invariants
//! 1. Memories and holes stand at positions side by side: `span` of them, the first at `front`,
//!    which is no hole. All other places are empty.
//! 2. Memories in the first `old_span` positions are old, the others recent.
//! 3. The gap, while it is on its way, is `gap` holes side by side, of which `gap_at` positions are
//!    before the first. Where there is none on its way both are 0.
//! 4. Each block is spare, or was never used, or holds the positions of one block's length that
//!    `turns` and `blocks` both name; and then at least one of those is in the span.

use alloc::vec::Vec;

use crate::collections::column::Column;
use crate::id::PageId;
use crate::policies::parts::page_hash::Chains;

/// The number of places a gap goes at a time.
const GAP_STEPS: u32 = 8;
/// Fewer holes than this are not worth a gap.
const HOLES_LEAST: u32 = 64;
/// The number of places a block has.
const BLOCK: u32 = 128;

/// The state kept for one page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Ghost {
    /// The page.
    pub page: PageId,
    /// The time at which it was last known to be used.
    pub seen: u64,
    /// True if it was thought to be in use when it left.
    pub was_hot: bool,
}

/// The word kept with a page's name: when it was seen, twice, and one more if it was hot. A word
/// takes eight bytes less than the two apart, and times are far from filling one.
#[derive(Clone, Copy, Default)]
pub(crate) struct Known(u64);

/// The knowledge kept with a page's name.
pub(crate) trait Remembered: Copy + Default {
    /// The part of these two that is kept.
    fn new(seen: u64, was_hot: bool) -> Self;

    /// The time at which the page was last known to be used; zero where that is not kept.
    fn seen(self) -> u64;

    /// Returns true if it was thought to be in use when it left, and that is kept.
    fn was_hot(self) -> bool;
}

/// Nothing is kept but the name, which takes a third less memory.
impl Remembered for () {
    fn new(_: u64, _: bool) {}

    fn seen(self) -> u64 {
        0
    }

    fn was_hot(self) -> bool {
        false
    }
}

impl Remembered for Known {
    fn new(seen: u64, was_hot: bool) -> Known {
        assert!(seen <= u64::MAX >> 1);
        Known(seen << 1 | u64::from(was_hot))
    }

    fn seen(self) -> u64 {
        self.0 >> 1
    }

    fn was_hot(self) -> bool {
        self.0 & 1 != 0
    }
}

/// A memory that was asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Found {
    /// The state that was kept.
    pub ghost: Ghost,
    /// True if it was among the newest.
    pub is_recent: bool,
}

/// Memories of pages that have left, oldest first.
pub(crate) struct Ghosts<Data = Known> {
    chains: Chains<Data>,
    blocks: Blocks,
    /// The position of the first memory. Positions are given out in order, and never again.
    front: u64,
    span: u32,
    old_span: u32,
    gap_at: u32,
    gap: u32,
    old: u32,
    recent: u32,
    /// The number of recent pages that were hot.
    recent_hot: u32,
    ghosts_max: u32,
}

/// The names of pages that have left, oldest first, and nothing else.
pub(crate) type Names = Ghosts<()>;

impl<Data: Remembered> Ghosts<Data> {
    /// Makes room for `ghosts_max` memories.
    pub fn new(ghosts_max: u32) -> Self {
        // Holes stay up to a bound, and while a gap closes them some more appear.
        let span = ghosts_max.checked_add((ghosts_max / 4).max(HOLES_LEAST) + 1);
        let places = span.and_then(|span| span.checked_add(span / 4));
        let places = places.expect("frames are far fewer than their numbers allow");
        let blocks = Blocks::new(places);
        Ghosts {
            chains: Chains::new(blocks.places(), ghosts_max),
            blocks,
            front: 0,
            span: 0,
            old_span: 0,
            gap_at: 0,
            gap: 0,
            old: 0,
            recent: 0,
            recent_hot: 0,
            ghosts_max,
        }
    }

    /// Remembers a page as the newest of at most `recent_max`, one at least. Needs room: see
    /// [`drop_oldest`](Self::drop_oldest).
    pub fn push(&mut self, ghost: Ghost, recent_max: u32) {
        self.take(ghost.page);
        self.push_new(ghost, recent_max);
    }

    /// Remembers a page that is not remembered yet as the newest of at most `recent_max`.
    fn push_new(&mut self, ghost: Ghost, recent_max: u32) {
        assert!(self.len() < self.ghosts_max, "the caller has made room");
        self.close_holes();
        self.blocks.open(self.front + u64::from(self.span));
        let place = self.place(self.span);
        let known = Data::new(ghost.seen, ghost.was_hot);
        self.chains.link(place, ghost.page, known);
        self.span += 1;
        self.recent += 1;
        self.recent_hot += u32::from(ghost.was_hot);
        while self.recent > recent_max {
            self.age_one();
        }
    }

    /// Makes the oldest of the recent memories an old one.
    fn age_one(&mut self) {
        let mut place = self.place(self.old_span);
        while !self.chains.holds_page(place) {
            self.old_span += 1;
            place = self.place(self.old_span);
        }
        self.old_span += 1;
        self.old += 1;
        self.recent -= 1;
        self.recent_hot -= u32::from(self.chains.data(place).was_hot());
    }

    /// Moves the gap on, if there are enough holes for one. There is a place for one more memory
    /// then.
    fn close_holes(&mut self) {
        let holes = self.span - self.len();
        if self.gap_at == 0 && holes <= (self.len() / 4).max(HOLES_LEAST) {
            return;
        }
        for _ in 0..GAP_STEPS {
            self.move_gap();
        }
    }

    /// Moves the gap by one place. If there is none on its way, one starts behind the last memory.
    fn move_gap(&mut self) {
        if self.gap_at == 0 {
            self.gap_at = self.span;
        }
        self.gap_at -= 1;
        let to = self.gap_at + self.gap;
        if !self.chains.holds_page(self.place(self.gap_at)) {
            self.gap += 1;
        } else if self.gap > 0 {
            self.chains
                .relocate(self.place(self.gap_at), self.place(to));
            if self.gap_at < self.old_span {
                self.old_span = self.old_span.max(to + 1);
            }
        }
        if self.gap_at == 0 {
            self.go_on(self.gap);
            self.old_span = self.old_span.saturating_sub(self.gap);
            self.gap = 0;
        }
    }

    /// Remembers a page as the newest of at most `most`; the oldest make room.
    pub fn remember(&mut self, ghost: Ghost, most: u32) {
        self.take(ghost.page);
        let most = most.clamp(1, self.ghosts_max);
        while self.len() >= most {
            self.drop_oldest();
        }
        self.push_new(ghost, most);
    }

    /// Remembers the name of a page and nothing else. The oldest name goes if there is no room.
    pub fn push_name(&mut self, page: PageId) {
        let (seen, was_hot) = (0, false);
        let ghost = Ghost {
            page,
            seen,
            was_hot,
        };
        self.remember(ghost, u32::MAX);
    }

    /// Forgets the oldest until no more than `most` are remembered.
    pub fn trim(&mut self, most: u64) {
        while u64::from(self.len()) > most {
            self.drop_oldest();
        }
    }

    /// Looks for what is remembered of `wanted`, where `leaving` will be remembered, and for as
    /// many of the oldest memories as pages are wanted, which make room: so that all is found
    /// sooner afterwards.
    pub fn bring_near(&self, wanted: &[PageId], leaving: &[PageId]) {
        for pages in [wanted, leaving] {
            self.chains.bring_near(pages.iter().copied(), |_| true);
        }
        let count = self.span.min(wanted.len() as u32);
        let oldest = (0..count).map(|offset| self.chains.page(self.place(offset)));
        self.chains.bring_near(oldest, |_| true);
    }

    /// Forgets `page`, and says what was remembered of it.
    pub fn take(&mut self, page: PageId) -> Option<Found> {
        self.chains.find(page).map(|place| self.take_place(place))
    }

    fn take_place(&mut self, place: u32) -> Found {
        let (page, known) = (self.chains.page(place), self.chains.data(place));
        self.chains.unlink(place);
        let offset = self.offset(place);
        let is_recent = offset >= self.old_span;
        if is_recent {
            self.recent -= 1;
            self.recent_hot -= u32::from(known.was_hot());
        } else {
            self.old -= 1;
        }
        if offset == 0 {
            self.pass_holes();
        }
        let ghost = Ghost {
            page,
            seen: known.seen(),
            was_hot: known.was_hot(),
        };
        Found { ghost, is_recent }
    }

    /// Goes on from the front, which has become a hole, to the oldest memory.
    fn pass_holes(&mut self) {
        while self.span > 0 && !self.chains.holds_page(self.place(0)) {
            self.go_on(1);
            self.old_span = self.old_span.saturating_sub(1);
            match self.gap_at {
                0 => self.gap = self.gap.saturating_sub(1),
                _ => self.gap_at -= 1,
            }
        }
    }

    /// Moves the front over `holes`.
    fn go_on(&mut self, holes: u32) {
        let before = self.front;
        self.front += u64::from(holes);
        self.span -= holes;
        self.blocks.pass(before, self.front);
    }

    /// Forgets the page that left longest ago.
    pub fn drop_oldest(&mut self) -> Option<Ghost> {
        (self.span > 0).then(|| self.take_place(self.place(0)).ghost)
    }

    /// The number of pages remembered.
    pub fn len(&self) -> u32 {
        self.old + self.recent
    }

    /// The number of recent pages that were hot, or cold.
    pub fn recent(&self, were_hot: bool) -> u64 {
        u64::from(match were_hot {
            true => self.recent_hot,
            false => self.recent - self.recent_hot,
        })
    }

    /// Panics if the places and the counts contradict each other.
    pub fn check(&self) {
        self.chains.check();
        let (mut old, mut recent, mut recent_hot) = (0, 0, 0);
        self.blocks.check(self.front, self.span);
        let held = (0..self.chains.len()).filter(|&place| self.chains.holds_page(place));
        assert_eq!(
            held.count() as u32,
            self.len(),
            "a memory is out of its order"
        );
        for offset in 0..self.span {
            let place = self.place(offset);
            assert_eq!(self.offset(place), offset, "a place is elsewhere");
            if !self.chains.holds_page(place) {
                assert!(offset > 0, "a hole is in front");
                continue;
            }
            let is_recent = offset >= self.old_span;
            old += u32::from(!is_recent);
            recent += u32::from(is_recent);
            recent_hot += u32::from(is_recent && self.chains.data(place).was_hot());
        }
        assert!(self.old_span <= self.span);
        assert!(self.gap_at > 0 || self.gap == 0, "a gap is nowhere");
        let mut gap = self.gap_at..self.gap_at + self.gap;
        assert!(gap.end <= self.span, "the gap is behind the last");
        assert!(
            gap.all(|offset| !self.chains.holds_page(self.place(offset))),
            "a memory is in the gap"
        );
        assert_eq!((old, recent), (self.old, self.recent));
        assert_eq!(recent_hot, self.recent_hot, "hot ones are miscounted");
    }

    /// The place that many behind the front, of those in the span.
    fn place(&self, offset: u32) -> u32 {
        self.blocks.place(self.front + u64::from(offset))
    }

    /// The distance of `place`, which is one of the span, behind the front.
    fn offset(&self, place: u32) -> u32 {
        (self.blocks.position(place) - self.front) as u32
    }
}

/// The map from positions to places: those of a block side by side for side by side.
struct Blocks {
    /// The block of each block's length of positions, round and round.
    blocks: Column<u32>,
    /// The length of positions, counted from the first of all, each block holds.
    turns: Column<u64>,
    /// Blocks that were used and hold nothing.
    spare: Vec<u32>,
    /// The number of blocks that were ever used: those below.
    opened: u32,
    /// A power of two less one, so that a position is found without a division.
    mask: u64,
}

impl Blocks {
    /// Makes blocks for at least `places`, wherever in a block the first may be.
    fn new(places: u32) -> Blocks {
        let count = places.div_ceil(BLOCK) + 1;
        let round = count.next_power_of_two();
        Blocks {
            blocks: Column::new(0, round as usize),
            turns: Column::new(0, count as usize),
            spare: Vec::new(),
            opened: 0,
            mask: u64::from(round) - 1,
        }
    }

    /// Finds a block for `position`, behind all that have one, if it is the first of its length.
    fn open(&mut self, position: u64) {
        if !position.is_multiple_of(u64::from(BLOCK)) {
            return;
        }
        let turn = position / u64::from(BLOCK);
        let block = self.spare.pop().unwrap_or_else(|| {
            self.opened += 1;
            self.opened - 1
        });
        self.blocks[(turn & self.mask) as usize] = block;
        self.turns[block as usize] = turn;
    }

    /// Takes back the blocks of which all positions were before `to`, now that the front goes there
    /// from `from`.
    fn pass(&mut self, from: u64, to: u64) {
        for turn in from / u64::from(BLOCK)..to / u64::from(BLOCK) {
            self.spare.push(self.blocks[(turn & self.mask) as usize]);
        }
    }

    /// The place of a position.
    #[inline]
    fn place(&self, position: u64) -> u32 {
        let turn = position / u64::from(BLOCK);
        let blocks = self.blocks.written();
        blocks[(turn & self.mask) as usize] * BLOCK + (position % u64::from(BLOCK)) as u32
    }

    /// The position of a place.
    #[inline]
    fn position(&self, place: u32) -> u64 {
        let turn = self.turns.written()[(place / BLOCK) as usize];
        turn * u64::from(BLOCK) + u64::from(place % BLOCK)
    }

    /// The number of places.
    fn places(&self) -> u32 {
        self.turns.len() as u32 * BLOCK
    }

    /// Panics if blocks are lost, for a span of positions from `front` on.
    fn check(&self, front: u64, span: u32) {
        let end = (front + u64::from(span)).div_ceil(u64::from(BLOCK));
        let held = end.saturating_sub(front / u64::from(BLOCK)) as usize;
        assert_eq!(
            held + self.spare.len(),
            self.opened as usize,
            "a block is lost"
        );
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::id::ObjectId;

    fn ghost(index: u64, seen: u64) -> Ghost {
        Ghost {
            page: PageId {
                object: ObjectId(1),
                index,
            },
            seen,
            was_hot: false,
        }
    }

    #[test]
    fn the_page_that_left_first_is_forgotten_first() {
        let mut ghosts: Ghosts = Ghosts::new(8);
        (0..8).for_each(|index| ghosts.push(ghost(index, index), 3));
        ghosts.check();
        let found = ghosts.take(ghost(3, 0).page).unwrap();
        assert_eq!((found.ghost, found.is_recent), (ghost(3, 3), false));
        assert_eq!(ghosts.take(ghost(3, 0).page), None);
        let order: Vec<u64> = core::iter::from_fn(|| ghosts.drop_oldest())
            .map(|it| it.seen)
            .collect();
        assert_eq!(order, [0, 1, 2, 4, 5, 6, 7]);
        ghosts.check();
    }

    #[test]
    fn found_f3_memories_of_any_size_find_a_block_however_many_holes_there_are() {
        for ghosts_max in [1, 2, 3, 40, 63, 64, 65, 100, 150, 300] {
            let mut ghosts: Ghosts = Ghosts::new(ghosts_max);
            let mut random = 1_u64;
            for time in 0..20_000 {
                random = random
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                let index = (random >> 33) % (u64::from(ghosts_max) * 2);
                match random >> 62 {
                    0 => _ = ghosts.take(ghost(index, 0).page),
                    _ => ghosts.remember(ghost(index, time), ghosts_max),
                }
            }
            ghosts.check();
        }
    }

    #[test]
    fn a_page_that_leaves_again_is_remembered_once_and_anew() {
        let mut ghosts: Ghosts = Ghosts::new(3);
        for it in [ghost(5, 1), ghost(6, 2), ghost(5, 3)] {
            ghosts.push(it, 2);
        }
        assert_eq!(ghosts.len(), 2);
        assert_eq!(ghosts.drop_oldest(), Some(ghost(6, 2)));
        assert_eq!(ghosts.drop_oldest(), Some(ghost(5, 3)));
        ghosts.check();
    }

    #[test]
    fn the_newest_are_counted_by_what_they_were() {
        let mut ghosts: Ghosts = Ghosts::new(8);
        for index in 0..5 {
            let was_hot = index % 2 == 0;
            ghosts.push(
                Ghost {
                    was_hot,
                    ..ghost(index, index)
                },
                3,
            );
            ghosts.check();
        }
        // The pages 2, 3 and 4.
        assert_eq!((ghosts.recent(true), ghosts.recent(false)), (2, 1));
        assert!(ghosts.take(ghost(4, 0).page).unwrap().is_recent);
        assert!(!ghosts.take(ghost(1, 0).page).unwrap().is_recent);
        assert_eq!((ghosts.recent(true), ghosts.recent(false)), (1, 1));
        ghosts.check();
    }

    /// Memories, oldest first, and whether each is recent.
    struct List(Vec<(Ghost, bool)>);

    impl List {
        fn push(&mut self, ghost: Ghost, recent_max: usize) {
            self.0.push((ghost, true));
            let recent = self.0.iter().filter(|(_, is_recent)| *is_recent).count();
            let aging = self.0.iter_mut().filter(|(_, is_recent)| *is_recent);
            let aging = aging.take(recent.saturating_sub(recent_max));
            aging.for_each(|(_, is_recent)| *is_recent = false);
        }

        fn take(&mut self, page: PageId) -> Option<Found> {
            let at = self.0.iter().position(|(ghost, _)| ghost.page == page)?;
            let (ghost, is_recent) = self.0.remove(at);
            Some(Found { ghost, is_recent })
        }
    }

    #[test]
    fn all_is_as_in_a_list_that_is_searched() {
        for most in [1, 2, 7, 40, 300] {
            let mut ghosts: Ghosts = Ghosts::new(most);
            let mut list = List(Vec::new());
            let mut state = u64::from(most);
            for seen in 0..6000 {
                // Knuth's multiplier; the high bits are good enough.
                state = state.wrapping_mul(6_364_136_223_846_793_005) + 1;
                let it = ghost((state >> 33) % (u64::from(most) * 3 / 2 + 2), seen);
                let known = list.take(it.page);
                assert_eq!(ghosts.take(it.page), known);
                // Sometimes nearly all that leave are taken again, and there are many holes.
                if (state >> 20) % 8 >= if seen / 500 % 2 == 0 { 2 } else { 4 } {
                    while ghosts.len() >= most {
                        assert_eq!(ghosts.drop_oldest(), Some(list.0.remove(0).0));
                    }
                    ghosts.push(it, most / 3 + 1);
                    list.push(it, most as usize / 3 + 1);
                }
                assert_eq!(ghosts.len() as usize, list.0.len());
                ghosts.check();
            }
            let order: Vec<Ghost> = core::iter::from_fn(|| ghosts.drop_oldest()).collect();
            assert!(order.iter().eq(list.0.iter().map(|(ghost, _)| ghost)));
        }
    }

    #[test]
    fn places_last_until_the_gap_has_been_round() {
        let most = 1000;
        for taken in 1..12 {
            let mut ghosts: Ghosts = Ghosts::new(most);
            (0..1000).for_each(|index| ghosts.push(ghost(index, 0), most));
            for index in 1000..20_000 {
                // The newest but one goes, so that the holes are where the gap has been.
                if index % 12 < taken {
                    ghosts.take(ghost(index - 2, 0).page);
                } else {
                    ghosts.take(ghost(index * 7 % 1000, 0).page);
                }
                ghosts.remember(ghost(index, 0), most);
                assert!(ghosts.span <= most + most / 2, "{taken} {index}");
            }
            ghosts.check();
        }
    }
}
