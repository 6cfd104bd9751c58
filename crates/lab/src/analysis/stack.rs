//! LRU stack distances, exactly, at a cost that hardly grows with the number of pages.
//!
//! Each reference takes the next place on a time line, and a bit at that place says that the page
//! there has not been referenced since (Bennett and Kruskal 1975). A page's depth in the LRU stack
//! is the number of such bits from its place on. Three things make this quick:
//!
//! - The newest 64 places are one word in a register. A page found there is counted with one
//!   instruction; in programs that is nearly every page.
//! - Older places are counted by lines of 512 bits, and lines by a tree of sums with 16 children
//!   a node: a node is one line of the processor's cache, and a depth takes one line a level.
//! - When the time line is full, each page's place becomes its rank among the bits, which the same
//!   sums give. No list of the pages in order is kept.
//!
//! A page that departs leaves a *hole* in the stack: a memory that reaches down to it has a free
//! frame. The next page that comes from below, or for the first time, takes the frame in memories
//! that had it free, and pushes the pages above down in those that had not. So the topmost hole
//! closes, and where the page was there is one now (as for invalidated lines of a cache: Thompson
//! and Smith 1989, "Efficient (stack) algorithms for analysis of write-back and sector memories").
//!
//! # Invariants
//! 1. Exactly the last place of each page that is in, and each hole, has its bit, in `lines` or in
//!    `newest`.
//! 2. Each sum is the number of bits below it in `lines`; those in `newest` are in no sum.
//! 3. No bit stands at or after `now`.

use std::collections::BinaryHeap;

use prefetch_index::prefetch_index;

use super::depths::Depths;
use super::reference_string::{ReferenceString, Stretch};

/// The place of a page that was not seen.
const NEVER: u32 = u32::MAX;
/// Places in a word.
const WORD: u32 = 64;
/// Places in a line.
const LINE: u32 = 512;
/// Children of a node.
const FAN: usize = 16;
/// The shortest time line. One node sums it.
const PLACES_MIN: u32 = LINE * FAN as u32;
/// Tables of this many pages don't fit into a processor's nearest caches.
const FAR_MIN: usize = 1 << 15;
/// The number of references before that for whose turn a page's place is asked, and the line it is
/// in; and how many after it its depth is counted. Memory answers within the time of some ten
/// references.
const PLACE_AHEAD: usize = 64;
const LINE_AHEAD: usize = 32;
const COUNT_BEHIND: usize = 32;
/// The most pages a stack holds.
const PAGES_MAX: u32 = 1 << 30;

/// All ones for the words of a line that come after one of them. Masks need no jumps, which the
/// processor could not foresee.
static WORDS_AFTER: [[u64; 8]; 8] = {
    let mut masks = [[0; 8]; 8];
    let mut at = 0;
    while at < 64 {
        masks[at / 8][at % 8] = if at % 8 > at / 8 { u64::MAX } else { 0 };
        at += 1;
    }
    masks
};

/// All ones for the children of a node that come after one of them.
static CHILDREN_AFTER: [[u32; FAN]; FAN] = {
    let mut masks = [[0; FAN]; FAN];
    let mut at = 0;
    while at < FAN * FAN {
        masks[at / FAN][at % FAN] = if at % FAN > at / FAN { u32::MAX } else { 0 };
        at += 1;
    }
    masks
};

/// The LRU stack, with a largest number of pages.
pub struct Stack {
    /// The place of each page's last reference.
    last: Vec<u32>,
    /// The places of holes.
    holes: BinaryHeap<u32>,
    lines: Vec<[u64; 8]>,
    /// Sums of lines, sums of those, and so on, up to a single node.
    sums: Vec<Vec<[u32; FAN]>>,
    /// The place of the next reference.
    now: u32,
    /// The bits of the word `now` is in.
    newest: u64,
}

impl Stack {
    /// An empty stack for pages numbered below `page_count`.
    ///
    /// # Panics
    /// If `page_count` is over 2^30.
    pub fn new(page_count: u32) -> Stack {
        assert!(page_count <= PAGES_MAX, "`page_count` is {page_count}");
        let places = page_count.saturating_mul(4).clamp(PLACES_MIN, 1 << 31);
        let lines = places.div_ceil(LINE) as usize;
        let mut sums = vec![vec![[0; FAN]; lines.div_ceil(FAN)]];
        while sums[sums.len() - 1].len() > 1 {
            let nodes = sums[sums.len() - 1].len();
            sums.push(vec![[0; FAN]; nodes.div_ceil(FAN)]);
        }
        Stack {
            last: vec![NEVER; page_count as usize],
            holes: BinaryHeap::new(),
            lines: vec![[0; 8]; lines],
            sums,
            now: 0,
            newest: 0,
        }
    }

    /// Moves each of `pages` to the top, in their order, and counts in `depths` where it was.
    ///
    /// # Panics
    /// If a page's number is not below the `page_count` of either.
    pub fn refer(&mut self, pages: &[u32], depths: &mut Depths) {
        let mut pages = pages;
        while !self.holes.is_empty() {
            let Some((&page, rest)) = pages.split_first() else {
                return;
            };
            pages = rest;
            match self.refer_one(page) {
                Some(depth) => depths.found[depth as usize] += 1,
                None => depths.cold += 1,
            }
        }
        let stack = self;
        pulp::Arch::new().dispatch(Refer {
            stack,
            pages,
            depths,
        });
    }

    /// Moves `page` to the top, and tells the depth where it was, if it was anywhere.
    ///
    /// # Panics
    /// If there is no room for the page's number.
    pub fn refer_one(&mut self, page: u32) -> Option<u32> {
        let place = std::mem::replace(&mut self.last[page as usize], self.now);
        let depth = match self.holes.peek() {
            Some(&hole) if place == NEVER || place < hole => {
                let depth = (place != NEVER).then(|| self.open_hole(place));
                self.close_hole(hole);
                depth
            }
            _ => (place != NEVER).then(|| self.take(place)),
        };
        self.newest |= 1 << (self.now % WORD);
        self.now += 1;
        if self.now.is_multiple_of(WORD) {
            self.close_word();
        }
        depth
    }

    /// Lets `page` go for good: its frame is free in every memory that had it.
    ///
    /// # Panics
    /// If there is no room for the page's number.
    pub fn depart(&mut self, page: u32) {
        let place = std::mem::replace(&mut self.last[page as usize], NEVER);
        if place != NEVER {
            self.holes.push(place);
        }
    }

    /// Makes a hole of the page at `place`, and tells its depth.
    fn open_hole(&mut self, place: u32) -> u32 {
        let depth = self.take(place);
        self.put(place);
        self.holes.push(place);
        depth
    }

    /// Closes the hole at `place`, which is the topmost one.
    fn close_hole(&mut self, place: u32) {
        let topmost = self.holes.pop();
        debug_assert_eq!(topmost, Some(place));
        self.take(place);
    }

    /// Takes `page` out, if it is in.
    ///
    /// # Panics
    /// If there is no room for the page's number.
    pub fn forget(&mut self, page: u32) {
        let place = std::mem::replace(&mut self.last[page as usize], NEVER);
        if place != NEVER {
            self.take(place);
        }
    }

    /// Makes room for a page of that number, and some more.
    ///
    /// # Panics
    /// If `page` is not below 2^30.
    pub fn make_room(&mut self, page: u32) {
        if (page as usize) < self.last.len() {
            return;
        }
        let page_count = page.saturating_add(page / 2).clamp(page + 1, PAGES_MAX);
        let mut larger = Stack::new(page_count);
        self.put_word(self.now & !(WORD - 1));
        self.renumber();
        larger.last[..self.last.len()].copy_from_slice(&self.last);
        larger.holes = std::mem::take(&mut self.holes);
        larger.now = self.now;
        larger.fill();
        *self = larger;
    }

    /// As [`refer`](Self::refer), for a stretch of a string, among which pages may depart.
    ///
    /// # Panics
    /// If there is no room for the number of a page.
    pub fn follow(&mut self, stretch: Stretch<'_>, depths: &mut Depths) {
        for run in stretch.runs() {
            run.departed.iter().for_each(|&page| self.depart(page));
            self.refer(run.references.pages, depths);
        }
    }

    #[inline(always)]
    fn refer_all(&mut self, pages: &[u32], depths: &mut Depths) {
        if self.last.len() >= FAR_MIN {
            self.refer_words::<true>(pages, depths);
        } else {
            self.refer_words::<false>(pages, depths);
        }
    }

    #[inline(always)]
    fn refer_words<const FAR: bool>(&mut self, pages: &[u32], depths: &mut Depths) {
        let mut near = [[0_u64; WORD as usize]; 4];
        let mut deep = Deep::new();
        let mut rest = pages;
        while !rest.is_empty() {
            let room = (WORD - self.now % WORD) as usize;
            let count = room.min(rest.len());
            self.refer_in_word::<FAR>(rest, count, &mut near, &mut deep, depths);
            rest = &rest[count..];
        }
        deep.count_rest(&mut depths.found);
        for near in near {
            for (found, near) in depths.found[1..].iter_mut().zip(near) {
                *found += near;
            }
        }
    }

    /// As [`refer`](Self::refer), for the first `count` of `pages`, which fit into the newest word.
    /// `FAR` says that the tables are too large for the nearest caches: then what later pages will
    /// need is asked for in time.
    #[inline(always)]
    fn refer_in_word<const FAR: bool>(
        &mut self,
        pages: &[u32],
        count: usize,
        near: &mut [[u64; 64]; 4],
        deep: &mut Deep,
        depths: &mut Depths,
    ) {
        let base = self.now & !(WORD - 1);
        let mut newest = self.newest;
        let mut now = self.now;
        for (at, &page) in pages[..count].iter().enumerate() {
            if FAR {
                self.fetch(&pages[at..]);
            }
            let place = std::mem::replace(&mut self.last[page as usize], now);
            let bit = place.wrapping_sub(base);
            if bit < WORD {
                let depth = (newest >> bit).count_ones() as usize;
                near[now as usize & 3][(depth - 1) & 63] += 1;
                newest &= !(1 << bit);
            } else if place != NEVER {
                let depth = newest.count_ones() + self.take_older(place);
                if FAR {
                    deep.put(depth, &mut depths.found);
                } else {
                    depths.found[depth as usize] += 1;
                }
            } else {
                depths.cold += 1;
            }
            newest |= 1 << (now % WORD);
            now += 1;
        }
        self.newest = newest;
        self.now = now;
        if now.is_multiple_of(WORD) {
            self.close_word();
        }
    }

    /// Asks for the place of a page that comes later, and, once that is there, for the line it is
    /// in, so that both are in the processor's caches when their turn comes.
    #[inline(always)]
    fn fetch(&self, pages: &[u32]) {
        if let Some(&page) = pages.get(PLACE_AHEAD) {
            prefetch_index(&self.last, page as usize);
        }
        if let Some(&page) = pages.get(LINE_AHEAD) {
            prefetch_index(&self.lines, (self.last[page as usize] / LINE) as usize);
        }
    }

    /// The number of bits from `place` on. Clears the bit at `place`.
    fn take(&mut self, place: u32) -> u32 {
        let bit = place.wrapping_sub(self.now & !(WORD - 1));
        if bit < WORD {
            let count = (self.newest >> bit).count_ones();
            self.newest &= !(1 << bit);
            count
        } else {
            self.newest.count_ones() + self.take_older(place)
        }
    }

    /// Sets the bit at `place` again.
    fn put(&mut self, place: u32) {
        let bit = place.wrapping_sub(self.now & !(WORD - 1));
        if bit < WORD {
            self.newest |= 1 << bit;
            return;
        }
        let mut at = (place / LINE) as usize;
        self.lines[at][(place % LINE / WORD) as usize] |= 1 << (place % WORD);
        for sums in &mut self.sums {
            sums[at / FAN][at % FAN] += 1;
            at /= FAN;
        }
    }

    /// The number of bits from `place` to the newest word, which is not counted. Clears the
    /// bit at `place`.
    #[inline(always)]
    fn take_older(&mut self, place: u32) -> u32 {
        let mut at = (place / LINE) as usize;
        let line = &mut self.lines[at];
        let word = (place % LINE / WORD) as usize;
        let bit = place % WORD;
        let mut count = (line[word] >> bit).count_ones();
        for (bits, mask) in line.iter().zip(&WORDS_AFTER[word]) {
            count += (bits & mask).count_ones();
        }
        line[word] &= !(1 << bit);
        for sums in &mut self.sums {
            let node = &mut sums[at / FAN];
            let child = at % FAN;
            for (sum, mask) in node.iter().zip(&CHILDREN_AFTER[child]) {
                count += sum & mask;
            }
            node[child] -= 1;
            at /= FAN;
        }
        count
    }

    /// Puts the newest word, which is full, to the others, and makes room if that was the last.
    #[inline(always)]
    fn close_word(&mut self) {
        self.put_word(self.now - WORD);
        if self.now as usize == self.lines.len() * LINE as usize {
            self.renumber();
        }
    }

    /// Puts the newest word, which starts at `place`, to the others.
    #[inline(always)]
    fn put_word(&mut self, place: u32) {
        let bits = std::mem::take(&mut self.newest);
        let mut at = (place / LINE) as usize;
        self.lines[at][(place % LINE / WORD) as usize] = bits;
        for sums in &mut self.sums {
            sums[at / FAN][at % FAN] += bits.count_ones();
            at /= FAN;
        }
    }

    /// Moves every page's place to its rank, so that the time line's end is free again.
    #[inline(always)]
    fn renumber(&mut self) {
        let mut rank = 0;
        let ranks: Vec<u32> = self
            .lines
            .iter()
            .flatten()
            .map(|word| {
                let before = rank;
                rank += word.count_ones();
                before
            })
            .collect();
        let rank_of = |place: u32| {
            let word = self.lines[(place / LINE) as usize][(place % LINE / WORD) as usize];
            let below = word & ((1 << (place % WORD)) - 1);
            ranks[(place / WORD) as usize] + below.count_ones()
        };
        for place in self.last.iter_mut().filter(|place| **place != NEVER) {
            *place = rank_of(*place);
        }
        self.holes = self.holes.drain().map(rank_of).collect();
        self.now = rank;
        self.fill();
    }

    /// Gives every place before `now` its bit, and no other.
    #[inline(always)]
    fn fill(&mut self) {
        let mut left = self.now;
        for word in self.lines.iter_mut().flatten() {
            let some = left.min(WORD);
            *word = if some == WORD { u64::MAX } else { 0 };
            if some < WORD && some > 0 {
                self.newest = (1 << some) - 1;
            }
            left -= some;
        }
        let counts = self
            .lines
            .iter()
            .map(|line| line.iter().map(|word| word.count_ones()).sum());
        let mut counts: Vec<u32> = counts.collect();
        for sums in &mut self.sums {
            sums.as_flattened_mut().fill(0);
            sums.as_flattened_mut()[..counts.len()].copy_from_slice(&counts);
            counts = sums.iter().map(|node| node.iter().sum()).collect();
        }
    }
}

/// Depths that are still to be counted: each waits until its counter is in the processor's caches.
/// A depth of 0, which no page has, stands for none.
struct Deep {
    depths: [u32; COUNT_BEHIND],
    next: usize,
}

impl Deep {
    fn new() -> Deep {
        Deep {
            depths: [0; COUNT_BEHIND],
            next: 0,
        }
    }

    /// Lets `depth` wait, and counts the one that has waited longest.
    #[inline(always)]
    fn put(&mut self, depth: u32, found: &mut [u64]) {
        prefetch_index(&found, depth as usize);
        let waited = &mut self.depths[self.next % COUNT_BEHIND];
        found[std::mem::replace(waited, depth) as usize] += 1;
        self.next += 1;
    }

    /// Counts those that wait.
    #[inline(always)]
    fn count_rest(&mut self, found: &mut [u64]) {
        for depth in self.depths {
            found[depth as usize] += 1;
        }
        found[0] = 0;
    }
}

/// A call of [`Stack::refer`], compiled once for any processor and once for those that count bits
/// and add eight sums at a time: twice as quick.
struct Refer<'a> {
    stack: &'a mut Stack,
    pages: &'a [u32],
    depths: &'a mut Depths,
}

impl pulp::NullaryFnOnce for Refer<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        self.stack.refer_all(self.pages, self.depths);
    }
}

/// The depths at which an LRU stack finds each of `pages`, which are numbered below `page_count`.
///
/// # Panics
/// If a page's number is too large, or `page_count` over 2^30.
pub fn count_depths(pages: &[u32], page_count: u32) -> Depths {
    let mut depths = Depths::new(page_count);
    Stack::new(page_count).refer(pages, &mut depths);
    depths
}

/// As [`count_depths`], of a string among whose references pages may depart.
///
/// # Panics
/// As [`count_depths`].
pub fn count_depths_of(string: ReferenceString<'_>) -> Depths {
    let mut depths = Depths::new(string.page_count());
    Stack::new(string.page_count()).follow(string.stretch(), &mut depths);
    depths
}

#[cfg(test)]
mod tests {
    use super::super::references::Departure;
    use super::*;
    use proptest::prelude::*;
    use tidemark_model::traces::SplitMix64;

    /// A list of pages, the last used first: slow, and obviously right.
    fn count_by_list(pages: &[u32], page_count: u32) -> Depths {
        let mut depths = Depths::new(page_count);
        let mut list = Vec::new();
        for page in pages {
            match list.iter().position(|other| other == page) {
                Some(place) => {
                    depths.found[place + 1] += 1;
                    list.remove(place);
                }
                None => depths.cold += 1,
            }
            list.insert(0, *page);
        }
        depths
    }

    /// Memories of every size, each with a list of its pages, the last used first.
    fn misses_by_lists(pages: &[u32], page_count: u32, departures: &[Departure]) -> Vec<u64> {
        let misses = |size: usize| {
            let mut list: Vec<u32> = Vec::new();
            let mut departures = departures.iter().peekable();
            let mut misses = 0;
            for (place, page) in pages.iter().enumerate() {
                while let Some(gone) = departures.next_if(|next| next.before <= place as u64) {
                    list.retain(|page| !gone.pages.contains(page));
                }
                let found = list.iter().position(|other| other == page);
                misses += u64::from(found.is_none());
                found.map(|place| list.remove(place));
                list.insert(0, *page);
                list.truncate(size);
            }
            misses
        };
        (0..=page_count as usize).map(misses).collect()
    }

    /// Strings in which many pages are used for a while and depart then, by turns in small parts.
    fn departing_strings() -> impl Strategy<Value = (Vec<u32>, u32, Vec<Departure>)> {
        (1..40_u32, 0..3000_usize, 1..400_u32, any::<u64>()).prop_map(
            |(width, length, life, seed)| {
                let mut random = SplitMix64::new(seed);
                let mut pages = Vec::new();
                let mut departures: Vec<Departure> = Vec::new();
                // Processes with `width` pages each, two at a time; one ends now and then.
                let (mut alive, mut born) = ([0, 1], 2);
                for place in 0..length {
                    let turn = random.below(2) as usize;
                    if random.below(life.into()) == 0 {
                        let dead = alive[turn] * width..(alive[turn] + 1) * width;
                        let used = dead.filter(|page| pages.contains(page)).collect();
                        departures.push(Departure {
                            before: place as u64,
                            pages: used,
                        });
                        (alive[turn], born) = (born, born + 1);
                    }
                    let limit = 1 + random.below(width.into());
                    pages.push(alive[turn] * width + random.below(limit) as u32);
                }
                (pages, born * width, departures)
            },
        )
    }

    /// References near, far and to the same page, to up to `page_count` pages.
    fn strings() -> impl Strategy<Value = (Vec<u32>, u32)> {
        (1..400_u32, 0..5_000_usize, any::<u64>()).prop_map(|(page_count, length, seed)| {
            let mut random = SplitMix64::new(seed);
            let pages = (0..length).map(|_| {
                let limit = match random.below(4) {
                    0 => 1 + u64::from(page_count - 1) / 50,
                    1 => 1 + u64::from(page_count - 1) / 5,
                    _ => u64::from(page_count),
                };
                random.below(limit) as u32
            });
            (pages.collect(), page_count)
        })
    }

    proptest! {
        #[test]
        fn found_m4_frames_of_pages_that_depart_are_free(
            (pages, page_count, departures) in departing_strings(),
            cut in 1..700_usize,
        ) {
            let string = ReferenceString::new(&pages, page_count).departing(&departures);
            let depths = count_depths_of(string);
            let expected = misses_by_lists(&pages, page_count.min(60), &departures);
            prop_assert_eq!(&depths.misses()[..expected.len()], &expected[..]);
            let (mut stack, mut parts) = (Stack::new(0), Depths::new(page_count));
            for part in string.stretch().parts(cut) {
                part.pages.iter().for_each(|&page| stack.make_room(page));
                stack.follow(part, &mut parts);
            }
            prop_assert_eq!(parts, depths);
        }

        #[test]
        fn the_tree_and_the_list_agree((pages, page_count) in strings()) {
            let depths = count_depths(&pages, page_count);
            prop_assert_eq!(&depths, &count_by_list(&pages, page_count));
        }

        #[test]
        fn the_curve_never_rises_and_ends_at_the_first_references(
            (pages, page_count) in strings()
        ) {
            let depths = count_depths(&pages, page_count);
            let misses = depths.misses();
            prop_assert!(misses.windows(2).all(|pair| pair[0] >= pair[1]));
            prop_assert_eq!(misses[0], pages.len() as u64);
            prop_assert_eq!(misses[page_count as usize], depths.cold);
        }

        #[test]
        fn pages_come_one_by_one_and_are_forgotten(
            steps in prop::collection::vec((0..1500_u32, 0..8_u8), 0..3000)
        ) {
            let mut stack = Stack::new(1);
            let mut list: Vec<u32> = Vec::new();
            for (page, what) in steps {
                stack.make_room(page);
                let place = list.iter().position(|&other| other == page);
                place.map(|place| list.remove(place));
                if what == 0 {
                    stack.forget(page);
                } else {
                    let depth = place.map(|place| place as u32 + 1);
                    prop_assert_eq!(stack.refer_one(page), depth);
                    list.insert(0, page);
                }
            }
        }
    }

    #[test]
    fn a_time_line_that_is_used_up_many_times_loses_no_page() {
        // 5000 pages need three levels of sums; each tenth reference is to any of them.
        let mut random = SplitMix64::new(9);
        let pages: Vec<u32> = (0..200_000)
            .map(|at| match at % 10 {
                0 => random.below(5000) as u32,
                _ => random.below(70) as u32,
            })
            .collect();
        assert_eq!(count_depths(&pages, 5000), count_by_list(&pages, 5000));
    }

    #[test]
    fn a_loop_over_many_pages_is_always_found_at_the_bottom() {
        let pages: Vec<u32> = (0..3).flat_map(|_| 0..300_000).collect();
        let depths = count_depths(&pages, 300_000);
        assert_eq!((depths.cold, depths.found[300_000]), (300_000, 600_000));
    }

    #[test]
    fn no_reference_makes_no_depth() {
        assert_eq!(count_depths(&[], 0), Depths::new(0));
        assert_eq!(count_depths(&[], 3), Depths::new(3));
    }
}
