//! Policies in batches, against sets that are moved by hand and against every choice there is.

use std::collections::{BTreeMap, BTreeSet};

use tidemark_core::id::ObjectId;
use tidemark_core::policies;
use tidemark_model::traces::SplitMix64;

use super::*;
use crate::analysis::simulate::simulate;
use crate::analysis::visits::bound_misses;

fn ids(count: usize) -> Vec<PageId> {
    let id = |index| PageId {
        object: ObjectId(0),
        index,
    };
    (0..count as u64).map(id).collect()
}

/// `count` visits of up to `most` objects, of sizes up to `size_max`.
fn random_visits(seed: u64, visits: usize, most: u64, count: u64, size_max: u64) -> Visits {
    let mut random = SplitMix64::new(seed);
    let sizes = (0..count).map(|_| 1 + random.below(size_max)).collect();
    let mut made = Visits::new(sizes);
    for _ in 0..visits {
        let wanted = 1 + random.below(most);
        let wanted: BTreeSet<u32> = (0..wanted).map(|_| random.below(count) as u32).collect();
        made.push(&wanted.into_iter().collect::<Vec<u32>>());
    }
    made
}

fn misses(policy: &str, visits: &Visits, room: u64) -> u64 {
    let ids = ids(visits.sizes().len());
    let misses = count_batch_misses(&Job::new(policy, 1), visits, &ids, &[room]);
    misses.unwrap()[0]
}

/// LRU by the definition: what was wanted longest ago goes, of one visit the lowest number first.
fn lru_by_hand(visits: &Visits, room: u64) -> u64 {
    let (mut last, mut misses) = (BTreeMap::new(), 0);
    for (visit, (_, wanted)) in visits.iter().enumerate() {
        misses += wanted
            .iter()
            .filter(|object| !last.contains_key(*object))
            .count() as u64;
        last.extend(wanted.iter().map(|&object| (object, (visit, object))));
        last.retain(|&object, _| visits.sizes()[object as usize] <= room);
        let size = |last: &BTreeMap<u32, (usize, u32)>| {
            let sizes = last.keys().map(|&object| visits.sizes()[object as usize]);
            sizes.sum::<u64>()
        };
        while size(&last) > room {
            let oldest = last.values().min().map(|(_, object)| *object);
            last.remove(&oldest.unwrap());
        }
    }
    misses
}

/// The fewest misses of all ways to choose what stays after each visit.
fn least_by_trying(visits: &Visits, room: u64) -> u64 {
    let mut states = BTreeMap::from([(0_u32, 0_u64)]);
    for (_, wanted) in visits.iter() {
        let wants = wanted.iter().fold(0_u32, |all, object| all | 1 << object);
        let mut next = BTreeMap::new();
        for (kept, misses) in states {
            let there = kept | wants;
            let misses = misses + u64::from((wants & !kept).count_ones());
            let mut part = there;
            loop {
                let held = visits.sizes().iter().enumerate();
                let held = held.filter(|(object, _)| part >> object & 1 == 1);
                if held.map(|(_, size)| size).sum::<u64>() <= room {
                    let least = next.entry(part).or_insert(misses);
                    *least = misses.min(*least);
                }
                if part == 0 {
                    break;
                }
                part = (part - 1) & there;
            }
        }
        states = next;
    }
    states.into_values().min().unwrap()
}

#[test]
fn lru_is_what_it_is_by_hand() {
    for seed in 0..30 {
        for size_max in [1, 9] {
            let visits = random_visits(seed, 60, 6, 20, size_max);
            for room in [1, 2, 5, 11, 17, 40, 90] {
                let expected = lru_by_hand(&visits, room);
                assert_eq!(
                    misses("lru", &visits, room),
                    expected,
                    "{seed} {size_max} {room}"
                );
            }
        }
    }
}

#[test]
fn the_optimum_is_the_least_of_all_ways_where_sizes_are_equal() {
    for seed in 0..40 {
        let visits = random_visits(seed, 9, 4, 6, 1);
        for room in 1..=6 {
            let least = least_by_trying(&visits, room);
            assert_eq!(misses("opt", &visits, room), least, "{seed} {room}");
            assert!(bound_misses(&visits, room) <= least, "{seed} {room}");
        }
    }
}

#[test]
fn the_optimum_of_unequal_sizes_lies_between_its_bounds() {
    let mut apart = 0;
    for seed in 0..40 {
        let visits = random_visits(seed, 9, 3, 6, 5);
        for room in [2, 4, 7, 11] {
            let least = least_by_trying(&visits, room);
            let (below, above) = (bound_misses(&visits, room), misses("opt", &visits, room));
            assert!(below <= least && least <= above, "{seed} {room}");
            apart += u32::from(below < least) + u32::from(least < above);
        }
    }
    assert!(apart > 0, "either is exact, and this tests nothing");
}

#[test]
fn no_policy_beats_the_optimum_and_room_for_all_misses_each_once() {
    let visits = random_visits(7, 3000, 5, 60, 1);
    for entry in policies::entries() {
        let name = entry.description.name;
        for room in [1, 3, 8, 20, 45] {
            let counted = misses(name, &visits, room);
            assert!(counted >= misses("opt", &visits, room), "{name} at {room}");
            assert!(counted <= visits.wants(), "{name} at {room}");
        }
    }
    for name in [
        "lru",
        "fifo",
        "arc",
        "lirs",
        "opt",
        "lfu",
        "least-stale",
        "tidemark",
    ] {
        assert_eq!(misses(name, &visits, 60), 60, "{name}");
    }
}

#[test]
fn visits_of_one_object_are_references() {
    let visits = random_visits(3, 5000, 1, 50, 1);
    let pages: Vec<u32> = visits.iter().map(|(_, wanted)| wanted[0]).collect();
    for policy in ["lru", "least-stale"] {
        for frames in [1, 4, 20, 50] {
            let cost = simulate(&Job::new(policy, frames), &pages, &ids(50)).unwrap();
            let counted = misses(policy, &visits, frames.into());
            assert_eq!(counted, cost.misses, "{policy} {frames}");
        }
    }
}

#[test]
fn what_a_visit_wants_is_there_until_its_end() {
    let mut visits = Visits::new(vec![1; 6]);
    visits.push(&[4, 5]);
    // It wants more than there is room for: what is there is hit all the same.
    visits.push(&[0, 1, 2, 3, 4, 5]);
    visits.push(&[4, 5]);
    for entry in policies::entries() {
        let name = entry.description.name;
        let counted = misses(name, &visits, 2);
        assert!((6..=8).contains(&counted), "{name}: {counted}");
    }
    assert_eq!(
        (misses("lru", &visits, 2), misses("mru", &visits, 2)),
        (6, 8)
    );
}

#[test]
fn an_object_larger_than_memory_drives_nothing_out() {
    let mut visits = Visits::new(vec![1, 1, 9]);
    for wanted in [&[0, 1][..], &[2], &[0, 1], &[2]] {
        visits.push(wanted);
    }
    assert_eq!(misses("lru", &visits, 8), 4);
    assert_eq!(misses("lru", &visits, 9), 6);
}
