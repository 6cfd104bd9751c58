//! The optimum: the fewest page-ins any policy could have had, exactly.
//!
//! Belady's rule (IBM Systems Journal 5(2), 1966): give up the page whose next use is farthest
//! away. Computed at page granularity on the whole reference string. A page's first touch is a
//! zero fill, not a page-in, so it isn't counted; it takes a frame all the same.

use std::collections::BinaryHeap;

/// Stands for "never used again": later than every position.
const NEVER: u64 = u64::MAX;

/// Counts the page-ins of the optimum with `frames` frames over `pages`.
///
/// Every page number must be below `page_count`.
pub fn optimal_page_ins(pages: &[u32], page_count: u32, frames: usize) -> u64 {
    assert!(frames > 0, "a memory without frames can hold nothing");
    let next_use = next_uses(pages, page_count);
    let mut is_resident = vec![false; page_count as usize];
    let mut was_touched = vec![false; page_count as usize];
    // Holds an entry for each use; all but a page's latest entry have run out. Those lie in the
    // past, and a page in memory always has an entry in the future, so they never come out
    // before a live one; they are dropped when the heap is more than twice the frames.
    let mut farthest: BinaryHeap<(u64, u32)> = BinaryHeap::with_capacity(2 * frames + 2);
    let mut resident = 0;
    let mut page_ins = 0;
    for (position, &page) in pages.iter().enumerate() {
        let index = page as usize;
        if !is_resident[index] {
            page_ins += u64::from(was_touched[index]);
            if resident == frames {
                let (_, victim) = farthest.pop().expect("every resident page has an entry");
                assert!(is_resident[victim as usize], "a page leaves once");
                is_resident[victim as usize] = false;
            } else {
                resident += 1;
            }
            is_resident[index] = true;
            was_touched[index] = true;
        }
        farthest.push((next_use[position], page));
        if farthest.len() > 2 * frames + 1 {
            farthest.retain(|&(next, _)| next > position as u64);
        }
    }
    page_ins
}

/// For each position, the position of the next use of the same page.
fn next_uses(pages: &[u32], page_count: u32) -> Vec<u64> {
    let mut latest = vec![NEVER; page_count as usize];
    let mut next_use = vec![NEVER; pages.len()];
    for (position, &page) in pages.iter().enumerate().rev() {
        next_use[position] = std::mem::replace(&mut latest[page as usize], position as u64);
    }
    next_use
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The optimum by trying every victim: slow and obviously right.
    fn by_trying_everything(pages: &[u32], frames: usize) -> u64 {
        fn least(rest: &[u32], resident: &[u32], touched: &[u32], frames: usize) -> u64 {
            let Some((&page, rest)) = rest.split_first() else {
                return 0;
            };
            if resident.contains(&page) {
                return least(rest, resident, touched, frames);
            }
            let cost = u64::from(touched.contains(&page));
            let touched = [touched, &[page]].concat();
            if resident.len() < frames {
                return cost + least(rest, &[resident, &[page]].concat(), &touched, frames);
            }
            let each_victim = (0..frames).map(|victim| {
                let mut left = resident.to_vec();
                left[victim] = page;
                least(rest, &left, &touched, frames)
            });
            cost + each_victim.min().expect("there are frames")
        }
        least(pages, &[], &[], frames)
    }

    #[test]
    fn agrees_with_trying_everything_on_every_trace_of_seven_over_four() {
        for code in 0..4u32.pow(7) {
            let pages: Vec<u32> = (0..7).map(|place| code / 4u32.pow(place) % 4).collect();
            for frames in 1..=3 {
                let expected = by_trying_everything(&pages, frames);
                assert_eq!(
                    optimal_page_ins(&pages, 4, frames),
                    expected,
                    "{pages:?}, {frames}"
                );
            }
        }
    }

    #[test]
    fn beladys_own_example() {
        let pages = [1, 2, 3, 4, 1, 2, 5, 1, 2, 3, 4, 5];
        // Seven and six faults in the literature, five of them first touches.
        assert_eq!(optimal_page_ins(&pages, 6, 3), 2);
        assert_eq!(optimal_page_ins(&pages, 6, 4), 1);
    }

    #[test]
    fn the_golden_loop_and_sheep() {
        let golden_loop: Vec<u32> = (0..100).flat_map(|_| 0..150).collect();
        assert_eq!(optimal_page_ins(&golden_loop, 150, 100), 5100 - 150);
        let mut sheep = Vec::new();
        // Four processes of 40 pages take turns of 40 references: one pass each.
        for turn in 0..100 {
            for process in 0..4u32 {
                let scan = (0..40).map(|page| if turn % 2 == 0 { page } else { 39 - page });
                sheep.extend(scan.map(|page| process * 40 + page));
            }
        }
        assert_eq!(optimal_page_ins(&sheep, 160, 100), 6100 - 160);
    }

    #[test]
    fn enough_frames_need_no_page_in() {
        let pages: Vec<u32> = (0..5).flat_map(|_| (0..64).chain((0..64).rev())).collect();
        assert_eq!(optimal_page_ins(&pages, 64, 64), 0);
        assert!(optimal_page_ins(&pages, 64, 63) > 0);
    }
}
