//! Curves of caches of which visits want several objects at once.

use tidemark_results::analysis::batch::{self, BatchCurve, BatchPoint, BatchRecord, RoomUnit};

use super::Study;
use super::facts::VERSION;
use super::order::Sizes;
use super::points::spread;
use super::policies::Named;
use super::progress::Progress;
use crate::analysis::simulate::{Job, collect_page_ids, count_batch_misses};
use crate::analysis::visits::{NoVisits, Visits, bound_misses};

/// A curve has about this many points where sizes are not asked for: each is a run.
const POINTS: u64 = 24;

impl Study {
    /// The visits of the trace.
    ///
    /// # Errors
    /// It has none, or tells the sizes of some objects alone.
    ///
    /// # Panics
    /// If its pages were not wanted.
    pub fn visits(&self) -> Result<Visits, NoVisits> {
        let is_kept = self.references.len() as u64 == self.facts.records;
        assert!(is_kept, "the references were not wanted");
        Visits::of(&self.references)
    }

    /// The unit in which the trace tells the sizes of objects.
    pub fn room_unit(&self) -> RoomUnit {
        match self.references.sizes.is_empty() {
            true => RoomUnit::Objects,
            false => RoomUnit::Bytes,
        }
    }

    /// The curves of `policies` in batches, at `sizes` in the [unit](Self::room_unit) of rooms.
    ///
    /// # Panics
    /// If a policy has no size of memory: `ws`, `vmin`, `pff`.
    pub fn batch(
        &self,
        visits: &Visits,
        policies: &[Named],
        sizes: &Sizes,
        progress: &mut Progress<'_>,
    ) -> BatchRecord {
        let rooms = rooms(visits, self.room_unit(), sizes);
        let ids = collect_page_ids(&self.references.names);
        let count = |name: &str| {
            let misses = count_batch_misses(&Job::new(name, 1), visits, &ids, &rooms);
            misses.expect("the policy is registered, its knobs are at their defaults")
        };
        let (mut curves, mut notes) = (vec![], vec![]);
        if self.facts.is_cut {
            notes.push("the recording was cut short; this is of what there is".into());
        }
        for (at, named) in policies.iter().enumerate() {
            progress(named.name(), at as f64 / policies.len() as f64);
            match named {
                Named::Opt if !visits.is_even() => {
                    let bounds = rooms.iter().map(|&room| bound_misses(visits, room));
                    curves.push(curve("pfoo-l", &rooms, bounds.collect(), visits));
                    curves.push(curve("farthest", &rooms, count("opt"), visits));
                    notes.push(
                        "objects have unequal sizes, for which the optimum is not counted: it has \
                         no fewer misses than pfoo-l and no more than farthest"
                            .into(),
                    );
                }
                Named::Lru | Named::Opt | Named::Simulated(_) => {
                    let name = named.name();
                    curves.push(curve(name, &rooms, count(name), visits));
                }
                Named::WorkingSet | Named::Vmin | Named::Pff => {
                    panic!("{} has no size of memory", named.name())
                }
            }
        }
        let (largest, smallest) = (visits.largest(), rooms.iter().min());
        if smallest.is_some_and(|&room| room < largest) {
            notes.push(
                "a room smaller than the largest visit: what does not fit is there for its visit \
                 alone, beyond the room"
                    .into(),
            );
        }
        BatchRecord {
            schema: batch::SCHEMA.into(),
            tidemark: VERSION.into(),
            trace: self.facts.clone(),
            unit: self.room_unit(),
            visits: visits.len() as u64,
            wants: visits.wants(),
            objects: visits.sizes().len() as u64,
            whole: visits.whole(),
            largest_visit: largest,
            curves,
            notes,
        }
    }
}

/// The rooms that are asked for. Of bytes, those that are spread begin at the largest object.
fn rooms(visits: &Visits, unit: RoomUnit, sizes: &Sizes) -> Vec<u64> {
    let whole = visits.whole();
    match (sizes, unit) {
        (Sizes::At(sizes), _) => sizes.clone(),
        (Sizes::All, RoomUnit::Objects) => (1..=whole).collect(),
        (Sizes::Spread, RoomUnit::Objects) => spread(whole, POINTS),
        (Sizes::Spread | Sizes::All, RoomUnit::Bytes) => {
            let least = visits.sizes().iter().copied().max().unwrap_or(1);
            let ratio = (whole as f64 / least as f64).powf(1.0 / (POINTS - 1) as f64);
            let at = |point: u64| (least as f64 * ratio.powf(point as f64)).round() as u64;
            let mut rooms: Vec<u64> = (0..POINTS).map(|point| at(point).min(whole)).collect();
            rooms.push(whole);
            rooms.sort_unstable();
            rooms.dedup();
            rooms
        }
    }
}

fn curve(policy: &str, rooms: &[u64], misses: Vec<u64>, visits: &Visits) -> BatchCurve {
    let wants = visits.wants().max(1) as f64;
    let points = rooms.iter().zip(misses).map(|(&room, misses)| BatchPoint {
        room,
        misses,
        miss_ratio: misses as f64 / wants,
    });
    BatchCurve {
        policy: policy.into(),
        points: points.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rooms_are_spread_over_what_may_hold_an_object() {
        let mut visits = Visits::new(vec![100, 700, 30]);
        visits.push(&[0, 1, 2]);
        let spread = rooms(&visits, RoomUnit::Bytes, &Sizes::Spread);
        assert_eq!((spread[0], *spread.last().unwrap()), (700, 830));
        assert!(spread.is_sorted());
        let asked = Sizes::At(vec![5, 3]);
        assert_eq!(rooms(&visits, RoomUnit::Bytes, &asked), [5, 3]);
        let mut even = Visits::new(vec![1; 4]);
        even.push(&[0, 1, 2, 3]);
        assert_eq!(rooms(&even, RoomUnit::Objects, &Sizes::All), [1, 2, 3, 4]);
    }
}
