//! The optimum (Belady 1966): misses where the page leaves whose next use is farthest away, for one
//! size of memory or for all sizes at once, exactly.
//!
//! # All sizes
//! The optimum is a stack policy (Mattson and others 1970): a referenced page goes to the top, and
//! the page it displaces moves down; at each place the page with the nearer next use stays and the
//! other moves on, until the place is reached that the referenced page left. Read for one place, a
//! stack of m pages is a row of m machines. Each holds one page, takes in at most one page a step,
//! keeps the nearer and passes on the other. So k machines in a row are together the optimum of k
//! frames for the pages that reach the first of them, and what they pass on is what that optimum
//! throws out, at the moment it does so.
//!
//! Hence the curve by halving: one run of the optimum at half the size tells which references are
//! found in the upper half of the stack and hands the others to the lower half; pages that are
//! thrown out have no influence on the order above. The two halves are then looked at alone, in
//! the same way. That takes log2(m) runs over ever shorter strings, whatever the string, where
//! moving pages down one by one takes m steps a reference on strings such as a loop. Rows of a few
//! machines are run as they are, as is the top of the stack, where most references of programs are
//! found.

use super::depths::Depths;

/// No next use.
const NEVER: u32 = u32::MAX;
/// Rows of up to this many machines are run one by one.
const ROW: usize = 64;
/// The longest string: places in it, and twice as many events, fit into 31 bits.
pub const REFERENCES_MAX: usize = 1 << 30;
/// Strings of more events than this are shared among processors.
const SHARED_MIN: usize = 1 << 16;

/// For each reference, the place of the next to the same page, or `u32::MAX` if there is none.
///
/// # Panics
/// If there are more than 2^30 references, or a page's number is not below `page_count`.
pub fn collect_next_uses(pages: &[u32], page_count: u32) -> Vec<u32> {
    assert!(pages.len() <= REFERENCES_MAX, "{} references", pages.len());
    let mut later = vec![NEVER; page_count as usize];
    // Each is set below, so that they need not be filled first.
    let mut next_uses = vec![0; pages.len()];
    for (at, (&page, next)) in pages.iter().zip(&mut next_uses).enumerate().rev() {
        *next = std::mem::replace(&mut later[page as usize], at as u32);
    }
    next_uses
}

/// The number of references that miss in a memory of `frames` frames that knows the future.
/// `next_uses` is what [`collect_next_uses`] tells.
///
/// # Panics
/// If `frames` is 0.
pub fn count_misses(next_uses: &[u32], frames: u32) -> u64 {
    assert!(frames > 0, "`frames` is 0; needs 1");
    let mut wanted = Wanted::new(next_uses.len());
    // Resident pages that will be used, and those that won't.
    let (mut used, mut idle) = (0, 0);
    let mut misses = 0;
    for (at, &next) in next_uses.iter().enumerate() {
        if wanted.take(at as u32) {
            used -= 1;
        } else {
            misses += 1;
            if used + idle == frames && idle > 0 {
                idle -= 1;
            } else if used == frames {
                wanted.take_last();
                used -= 1;
            }
        }
        if next == NEVER {
            idle += 1;
        } else {
            wanted.insert(next);
            used += 1;
        }
    }
    misses
}

/// The page-ins of the optimum in a memory of `frames` frames: what misses beside the first
/// references, which are zero fills.
///
/// # Panics
/// If `frames` is 0, there are more than 2^30 references, or a page's number is not below
/// `page_count`.
pub fn count_page_ins(pages: &[u32], page_count: u32, frames: u32) -> u64 {
    let misses = count_misses(&collect_next_uses(pages, page_count), frames);
    let mut is_touched = vec![false; page_count as usize];
    pages
        .iter()
        .for_each(|&page| is_touched[page as usize] = true);
    misses - is_touched.iter().filter(|&&is_touched| is_touched).count() as u64
}

/// The depths at which the optimum's stack finds each of `pages`, which are numbered below
/// `page_count`.
///
/// # Panics
/// If there are more than 2^30 references, or a page's number is not below `page_count`.
pub fn count_depths(pages: &[u32], page_count: u32) -> Depths {
    let mut next_uses = collect_next_uses(pages, page_count);
    let mut depths = Depths::new(page_count);
    depths.cold = pages.len() as u64;
    if page_count > 0 {
        let events = run_top(&mut next_uses, &mut depths.found[1..]);
        drop(next_uses);
        let below = (1 + ROW).min(page_count as usize);
        share_out(events, below, &mut depths.found[1 + below..]);
        depths.cold -= depths.found.iter().sum::<u64>();
    }
    depths
}

/// Marks the event of a reference, in a string of events. Any other word is the event of a page's
/// coming, and is the place of the reference it comes for.
const REFERENCE: u32 = u32::MAX;
/// Marks the place of a reference that was found, in the upper half's string.
const FOUND: u32 = 1 << 31;

/// Runs the top of the stack, and tells what it passes on to the rest as a string of events.
/// `next_uses` is used up.
fn run_top(next_uses: &mut [u32], found: &mut [u64]) -> Vec<u32> {
    let (first, found) = found.split_first_mut().expect("there is a page");
    let mut row = Row::new(found.len().min(ROW));
    let mut is_passed = vec![0_u64; next_uses.len().div_ceil(64)];
    let mut passed = 0;
    // The word of the reference before makes room for what the row passes on at this one.
    for now in 1..next_uses.len() {
        let next = next_uses[now - 1];
        let at = now as u32;
        if next == at {
            *first += 1;
            next_uses[now - 1] = NEVER;
            continue;
        }
        let is_within = is_passed[now / 64] >> (now % 64) & 1 == 0;
        if is_within && let Some(place) = row.take(at) {
            found[place] += 1;
        }
        let out = row.insert(next);
        next_uses[now - 1] = out;
        if out != NEVER {
            is_passed[out as usize / 64] |= 1 << (out % 64);
            passed += 1;
        }
    }
    let mut events = vec![REFERENCE; 2 * passed];
    let mut free = events.len();
    for now in (1..next_uses.len()).rev() {
        // Later references have left the place of their event in their word.
        let out = next_uses[now - 1];
        if out != NEVER {
            free -= 1;
            events[free] = next_uses[out as usize - 1];
        }
        if is_passed[now / 64] >> (now % 64) & 1 == 1 {
            free -= 1;
            next_uses[now - 1] = free as u32;
        }
    }
    assert_eq!(free, 0);
    events
}

/// Finds out where in the stack below its topmost `above` pages each reference of `events` is
/// found, and counts it in `found`, which has a place for each of the stack's further pages.
fn share_out(events: Vec<u32>, above: usize, found: &mut [u64]) {
    if events.is_empty() {
        return;
    }
    let most = found.len().min(events.len() / 2);
    if most <= ROW {
        run_row(&events, &mut found[..most]);
        return;
    }
    // Most references are found near the top, so that the first parts are small.
    let upper = (most / 2).min(3 * above);
    let is_shared = events.len() >= SHARED_MIN;
    let (near, far) = halve(events, upper as u32);
    let (found_near, found_far) = found.split_at_mut(upper);
    let first = || share_out(near, above, found_near);
    let second = || share_out(far, above + upper, found_far);
    if is_shared {
        rayon::join(first, second);
    } else {
        first();
        second();
    }
}

/// Runs the optimum of `frames` frames over `events`. Tells the events of the references it finds,
/// and what it passes on.
fn halve(mut events: Vec<u32>, frames: u32) -> (Vec<u32>, Vec<u32>) {
    let mut wanted = Wanted::new(events.len());
    let mut thrown_out = Vec::with_capacity(events.len() / 2);
    let mut resident = 0;
    let mut found = 0;
    for (at, event) in events.iter_mut().enumerate() {
        if *event != REFERENCE {
            wanted.insert(*event);
            resident += 1;
            thrown_out.push(if resident > frames {
                resident -= 1;
                wanted.take_last()
            } else {
                NEVER
            });
        } else if wanted.take(at as u32) {
            resident -= 1;
            found += 1;
            *event = FOUND;
        }
    }
    let mut near = vec![REFERENCE; 2 * found];
    let mut far = vec![REFERENCE; events.len() - 2 * found];
    let (mut near_free, mut far_free) = (near.len(), far.len());
    for at in (0..events.len()).rev() {
        match events[at] {
            FOUND => {
                near_free -= 1;
                events[at] = near_free as u32 | FOUND;
            }
            REFERENCE => {
                far_free -= 1;
                events[at] = far_free as u32;
            }
            reference => {
                let place = events[reference as usize];
                if place & FOUND != 0 {
                    near_free -= 1;
                    near[near_free] = place & !FOUND;
                }
                let out = thrown_out.pop().expect("one for each page that comes");
                if out != NEVER {
                    far_free -= 1;
                    far[far_free] = events[out as usize];
                }
            }
        }
    }
    assert_eq!((near_free, far_free), (0, 0));
    (near, far)
}

/// Runs one machine for each place of `found` over `events`, of which they pass nothing on.
fn run_row(events: &[u32], found: &mut [u64]) {
    let mut row = Row::new(found.len());
    for (at, &event) in events.iter().enumerate() {
        if event == REFERENCE {
            if let Some(place) = row.take(at as u32) {
                found[place] += 1;
            }
        } else {
            row.insert(event);
        }
    }
}

/// Some places of the stack: for each the next use of the page there.
struct Row {
    next: [u32; ROW],
    length: usize,
}

impl Row {
    fn new(length: usize) -> Row {
        Row {
            next: [NEVER; ROW],
            length,
        }
    }

    /// Takes out the page whose next use is `now`, and tells its place.
    #[inline(always)]
    fn take(&mut self, now: u32) -> Option<usize> {
        let row = &mut self.next[..self.length];
        let place = row.iter().position(|&next| next == now)?;
        row[place] = NEVER;
        Some(place)
    }

    /// Puts in a page with that next use. Each place keeps the nearer; what the last one passes on
    /// is the answer.
    #[inline(always)]
    fn insert(&mut self, next: u32) -> u32 {
        let mut carried = next;
        for kept in &mut self.next[..self.length] {
            if carried == NEVER {
                break;
            }
            (*kept, carried) = ((*kept).min(carried), (*kept).max(carried));
        }
        carried
    }
}

/// A set of places, of which the last is quickly found: bits, bits for words of those that are not
/// zero, and so on.
struct Wanted {
    levels: Vec<Vec<u64>>,
}

impl Wanted {
    fn new(places: usize) -> Wanted {
        let mut levels = vec![vec![0; places.div_ceil(64).max(1)]];
        while levels[levels.len() - 1].len() > 1 {
            let words = levels[levels.len() - 1].len();
            levels.push(vec![0; words.div_ceil(64)]);
        }
        Wanted { levels }
    }

    #[inline(always)]
    fn insert(&mut self, place: u32) {
        let mut at = place as usize;
        for level in &mut self.levels {
            let word = &mut level[at / 64];
            let was = *word;
            *word |= 1 << (at % 64);
            if was != 0 {
                break;
            }
            at /= 64;
        }
    }

    /// Removes `place`, and tells whether it was in.
    #[inline(always)]
    fn take(&mut self, place: u32) -> bool {
        let mut at = place as usize;
        if self.levels[0][at / 64] >> (at % 64) & 1 == 0 {
            return false;
        }
        for level in &mut self.levels {
            let word = &mut level[at / 64];
            *word &= !(1 << (at % 64));
            if *word != 0 {
                break;
            }
            at /= 64;
        }
        true
    }

    /// Removes the last place. There must be one.
    #[inline(always)]
    fn take_last(&mut self) -> u32 {
        let mut at = 0;
        for level in self.levels.iter().rev() {
            at = at * 64 + 63 - level[at].leading_zeros() as usize;
        }
        self.take(at as u32);
        at as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tidemark_model::opt;
    use tidemark_model::traces::SplitMix64;

    /// Loops, pages once used, and any of some pages.
    fn strings(length: usize, most: u32) -> impl Strategy<Value = (Vec<u32>, u32)> {
        (1..most, 0..length, any::<u64>()).prop_map(|(page_count, length, seed)| {
            let mut random = SplitMix64::new(seed);
            let mut step = 0;
            let pages = (0..length).map(|_| {
                step += 1;
                let limit = match random.below(4) {
                    0 => return step / 2 % page_count,
                    1 => 1 + u64::from(page_count - 1) / 10,
                    _ => u64::from(page_count),
                };
                random.below(limit) as u32
            });
            (pages.collect(), page_count)
        })
    }

    #[test]
    fn first_references_are_no_page_ins() {
        // Belady's own example: seven and six faults in the literature, five of them first touches.
        let pages = [1, 2, 3, 4, 1, 2, 5, 1, 2, 3, 4, 5];
        assert_eq!(count_page_ins(&pages, 6, 3), 2);
        assert_eq!(count_page_ins(&pages, 6, 4), 1);
        assert_eq!(count_page_ins(&pages, 6, 5), 0);
    }

    fn words(pages: &[u32]) -> Vec<u64> {
        pages.iter().map(|&page| u64::from(page)).collect()
    }

    proptest! {
        #[test]
        fn all_sizes_are_the_optimum_of_each((pages, page_count) in strings(400, 24)) {
            let misses = count_depths(&pages, page_count).misses();
            for frames in 1..=page_count {
                let expected = opt::count_misses(frames as usize, &words(&pages));
                prop_assert_eq!(misses[frames as usize], expected, "{} frames", frames);
            }
        }

        #[test]
        fn deep_stacks_are_halved_rightly((pages, page_count) in strings(6000, 1500)) {
            let misses = count_depths(&pages, page_count).misses();
            let next_uses = collect_next_uses(&pages, page_count);
            let sizes = [1, 2, 60, 64, 65, 66, 67, 100, 128, 130, 259, 260, 261, 300, 700, 1499];
            for frames in sizes {
                let expected = opt::count_misses(frames as usize, &words(&pages));
                let at_all = misses[frames.min(page_count) as usize];
                prop_assert_eq!(at_all, expected, "{} frames", frames);
                prop_assert_eq!(count_misses(&next_uses, frames), expected, "{} frames", frames);
            }
        }

        #[test]
        fn the_optimum_is_never_worse_than_lru((pages, page_count) in strings(3000, 300)) {
            let optimum = count_depths(&pages, page_count).misses();
            let lru = crate::analysis::stack::count_depths(&pages, page_count).misses();
            prop_assert!(optimum.iter().zip(&lru).all(|(optimum, lru)| optimum <= lru));
        }
    }

    #[test]
    fn a_long_loop_is_shared_out_evenly() {
        // Of m pages in a loop, the optimum of m - k frames misses k in each round but one page's
        // worth: every depth from 2 on is as frequent as any other.
        let pages: Vec<u32> = (0..1000).flat_map(|_| 0..1000).collect();
        let depths = count_depths(&pages, 1000);
        assert_eq!(depths.cold, 1000);
        let found = &depths.found[2..];
        assert!(
            found.iter().all(|&found| found.abs_diff(1000) <= 2),
            "{found:?}"
        );
    }

    #[test]
    fn no_reference_makes_no_depth() {
        assert_eq!(count_depths(&[], 0), Depths::new(0));
        assert_eq!(count_depths(&[0, 0], 1).found, [0, 1]);
        assert_eq!(count_misses(&[], 5), 0);
    }
}
