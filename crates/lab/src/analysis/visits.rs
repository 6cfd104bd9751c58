//! Visits: the objects of a cache that are wanted at once, visit by visit.
//!
//! A visit is a set: an object that is named twice in it is wanted once, and the order in which its
//! objects are named means nothing. Here they stand by their names, so that what a policy counts
//! depends on the sets alone.
//!
//! # Invariants
//! 1. Every object is below the number of sizes, and occurs in a visit once at most.
//! 2. Every size is 1 at least.

use super::references::References;
use super::simulate::collect_page_ids;

/// In place of the next want of an object that no visit wants any more.
pub const NEVER: u64 = u64::MAX;

/// The visits of a trace, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Visits {
    /// The objects, visit by visit.
    objects: Vec<u32>,
    /// The place in `objects` behind each visit's last.
    ends: Vec<usize>,
    /// The size of each object: in bytes, or 1 where those are not known.
    sizes: Vec<u64>,
}

/// The reason for which a trace has no visits to be counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoVisits {
    /// The trace has no visits.
    None,
    /// The trace tells the sizes of some objects, and not of these many.
    SizesMissing(u64),
}

impl Visits {
    /// The visits of a trace. References before its first visit are a visit by themselves.
    ///
    /// # Errors
    /// The trace has no visits, or tells the sizes of some objects alone.
    pub fn of(references: &References) -> Result<Visits, NoVisits> {
        if references.visits.is_empty() {
            return Err(NoVisits::None);
        }
        let missing = references.sizes.iter().filter(|&&bytes| bytes == 0).count();
        if missing > 0 {
            return Err(NoVisits::SizesMissing(missing as u64));
        }
        let sizes = match references.sizes.is_empty() {
            true => vec![1; references.page_count as usize],
            false => references.sizes.clone(),
        };
        let ids = collect_page_ids(&references.names);
        let count = references.pages.len();
        let starts = references.visits.iter().map(|&start| start as usize);
        let ends = starts.chain([count]);
        let mut visits = Visits::new(sizes);
        let mut from = 0;
        for end in ends {
            let mut wanted = references.pages[from..end].to_vec();
            wanted.sort_unstable_by_key(|&object| ids[object as usize]);
            visits.push(&wanted);
            from = end;
        }
        Ok(visits)
    }

    /// No visits yet, to objects of these sizes.
    pub fn new(sizes: Vec<u64>) -> Visits {
        Visits {
            objects: Vec::new(),
            ends: Vec::new(),
            sizes,
        }
    }

    /// Adds a visit that wants `objects`, which stand in the order of their names. One that wants
    /// nothing is none.
    ///
    /// # Panics
    /// If an object has no size.
    pub fn push(&mut self, objects: &[u32]) {
        let from = self.objects.len();
        for &object in objects {
            assert!((object as usize) < self.sizes.len(), "object {object}");
            // Equal ones stand side by side.
            if self.objects[from..].last() != Some(&object) {
                self.objects.push(object);
            }
        }
        if self.objects.len() > from {
            self.ends.push(self.objects.len());
        }
    }

    /// Each visit: the place of its first want, and the objects that it wants.
    pub fn iter(&self) -> impl Iterator<Item = (usize, &[u32])> {
        (0..self.ends.len()).map(|visit| {
            let from = visit.checked_sub(1).map_or(0, |before| self.ends[before]);
            (from, &self.objects[from..self.ends[visit]])
        })
    }

    /// For each want, in order, the place of the next want of the object, from 0; [`NEVER`] if
    /// there is none.
    pub fn collect_next(&self) -> Vec<u64> {
        let mut later = vec![NEVER; self.sizes.len()];
        let mut next = vec![NEVER; self.objects.len()];
        for (place, &object) in self.objects.iter().enumerate().rev() {
            next[place] = std::mem::replace(&mut later[object as usize], place as u64);
        }
        next
    }

    /// The number of the visit that has the want at `place`, both from 0.
    fn visit_at(&self, place: u64) -> u64 {
        self.ends.partition_point(|&end| end as u64 <= place) as u64
    }

    /// The number of visits.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns true if there are none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The number of wants: each object of each visit once.
    pub fn wants(&self) -> u64 {
        self.objects.len() as u64
    }

    /// The size of each object.
    pub fn sizes(&self) -> &[u64] {
        &self.sizes
    }

    /// The sizes of all objects together.
    pub fn whole(&self) -> u64 {
        self.sizes
            .iter()
            .fold(0, |sum, &size| sum.saturating_add(size))
    }

    /// The most that one visit wants, by size.
    pub fn largest(&self) -> u64 {
        let size = |&object: &u32| self.sizes[object as usize];
        let visits = self.iter().map(|(_, wanted)| wanted.iter().map(size));
        visits
            .map(|sizes| sizes.fold(0, u64::saturating_add))
            .max()
            .unwrap_or(0)
    }

    /// Returns true if all objects have one size.
    pub fn is_even(&self) -> bool {
        self.sizes.windows(2).all(|pair| pair[0] == pair[1])
    }
}

/// The fewest misses that any rule may have in `room`, of the sizes' unit: a bound from below,
/// which no rule need reach (PFOO-L: Berger, Beckmann and Harchol-Balter 2018).
///
/// An object that is kept from one visit that wants it to the next takes its size at the end of
/// each visit but the last. What all that are kept take, over all visits, is the room times the
/// visits at most. The bound keeps to that sum alone, and not to the room at each visit's end:
/// the cheapest intervals are hits for as long as the sum has room.
///
/// Berger, Beckmann and Harchol-Balter count requests one by one; here a visit is one step.
pub fn bound_misses(visits: &Visits, room: u64) -> u64 {
    let mut costs = Vec::new();
    for (place, next) in visits.collect_next().into_iter().enumerate() {
        let size = visits.sizes()[visits.objects[place] as usize];
        if next != NEVER && size <= room {
            let steps = visits.visit_at(next) - visits.visit_at(place as u64);
            costs.push(u128::from(size) * u128::from(steps));
        }
    }
    costs.sort_unstable();
    let ends = (visits.len() as u128).saturating_sub(1);
    let mut free = u128::from(room) * ends;
    let hits = costs.iter().take_while(|&&cost| {
        let is_paid = cost <= free;
        free = free.saturating_sub(cost);
        is_paid
    });
    visits.wants() - hits.count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_visit_is_a_set_in_the_order_of_names() {
        let mut references = References::from_pages([9, 4, 9, 7, 4, 4]);
        assert_eq!(Visits::of(&references), Err(NoVisits::None));
        references.visits = vec![0, 3, 5];
        let visits = Visits::of(&references).unwrap();
        let wanted: Vec<&[u32]> = visits.iter().map(|(_, wanted)| wanted).collect();
        // The pages 9, 4 and 7 are numbers 0, 1 and 2.
        assert_eq!(wanted, [&[1, 0][..], &[1, 2], &[1]]);
        assert_eq!((visits.len(), visits.wants(), visits.largest()), (3, 5, 2));
        assert_eq!(visits.collect_next(), [2, NEVER, 4, NEVER, NEVER]);
        assert_eq!([1, 2, 4].map(|place| visits.visit_at(place)), [0, 1, 2]);
        references.sizes = vec![10, 0, 30];
        assert_eq!(Visits::of(&references), Err(NoVisits::SizesMissing(1)));
        references.sizes = vec![10, 20, 30];
        let visits = Visits::of(&references).unwrap();
        assert_eq!((visits.whole(), visits.largest()), (60, 50));
        assert!(!visits.is_even());
    }

    #[test]
    fn the_bound_pays_for_the_cheapest_intervals_first() {
        let mut visits = Visits::new(vec![1, 4, 2]);
        for wanted in [&[0, 1][..], &[2], &[0, 1], &[0, 2]] {
            visits.push(wanted);
        }
        // The intervals cost 2 and 1 of the first, 8 of the second, 4 of the third.
        assert_eq!(bound_misses(&visits, 1), 7 - 2);
        assert_eq!(bound_misses(&visits, 2), 7 - 2);
        assert_eq!(bound_misses(&visits, 3), 7 - 3);
        assert_eq!(bound_misses(&visits, 5), 7 - 4);
        assert_eq!(bound_misses(&visits, 7), 3);
    }
}
