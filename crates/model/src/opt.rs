//! The optimum: the page whose next use is farthest away leaves (Belady 1966).

use std::collections::BTreeSet;

use crate::pages::PageMap;

/// The number of references of `trace` that miss in a memory of `frames` frames that knows the
/// future.
pub fn count_misses(frames: usize, trace: &[u64]) -> u64 {
    assert!(frames > 0);
    let next_uses = collect_next_uses(trace);
    // Resident pages by their next use, and where each page stands there. Pages that are never
    // used again share no key with others, because the page is part of it.
    let mut by_next_use: BTreeSet<(u64, u64)> = BTreeSet::new();
    let mut resident: PageMap<u64> = PageMap::default();
    let mut misses = 0;
    for (&page, &next_use) in trace.iter().zip(&next_uses) {
        match resident.get(&page) {
            Some(&expected) => assert!(by_next_use.remove(&(expected, page))),
            None => {
                misses += 1;
                if resident.len() == frames {
                    let (_, victim) = by_next_use.pop_last().expect("memory is full");
                    resident.remove(&victim);
                }
            }
        }
        resident.insert(page, next_use);
        by_next_use.insert((next_use, page));
    }
    misses
}

/// For each reference, where the same page is referenced next; `u64::MAX` if nowhere.
pub fn collect_next_uses(trace: &[u64]) -> Vec<u64> {
    let mut next_uses = vec![u64::MAX; trace.len()];
    let mut seen: PageMap<usize> = PageMap::default();
    for (at, &page) in trace.iter().enumerate().rev() {
        if let Some(later) = seen.insert(page, at) {
            next_uses[at] = later as u64;
        }
    }
    next_uses
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tries every victim at every miss.
    fn search(frames: usize, resident: &mut Vec<u64>, trace: &[u64]) -> u64 {
        let Some((&page, rest)) = trace.split_first() else {
            return 0;
        };
        if resident.contains(&page) {
            return search(frames, resident, rest);
        }
        if resident.len() < frames {
            resident.push(page);
            let misses = 1 + search(frames, resident, rest);
            resident.pop();
            return misses;
        }
        let misses = (0..frames).map(|place| {
            let victim = std::mem::replace(&mut resident[place], page);
            let misses = 1 + search(frames, resident, rest);
            resident[place] = victim;
            misses
        });
        misses.min().expect("there are frames")
    }

    #[test]
    fn no_choice_of_victims_does_better() {
        for number in 0..4_u64.pow(6) {
            let trace: Vec<u64> = (0..6).map(|place| number >> (2 * place) & 3).collect();
            assert_eq!(
                count_misses(2, &trace),
                search(2, &mut Vec::new(), &trace),
                "{trace:?}"
            );
        }
    }
}
