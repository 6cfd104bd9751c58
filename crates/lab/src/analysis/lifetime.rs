//! The lifetime function: virtual time between faults, against memory.
//!
//! It rises steeply while memory does not hold the program's locality, and flattens when it does.
//! Where that happens is its *knee*: where a ray from the origin touches the curve, so the point
//! with the most lifetime for each page. A program of several phases or levels may have several;
//! the *primary* knee is the highest ray's. The *inflection* is where the rise below the knee is
//! steepest.
//!
//! Sources: P. J. Denning and K. C. Kahn, *A Study of Program Locality and Lifetime Functions*,
//! SOSP 1975; P. J. Denning, *Working Sets Past and Present*, IEEE TSE SE-6(1), 1980, for the knee
//! as the operating point and for "primary". Theirs are smooth curves; on the steps of a real one a
//! knee is the best point among all from half to twice its size. The first point of a curve is
//! none: a knee comes after a rise.
//!
//! With next to no memory the ray is steep for want of pages, not because a locality fits: knees
//! are looked for from [`KNEE_SHARE_LEAST`] of a program's pages.

/// A knee is looked for from this share of the pages that are touched.
pub const KNEE_SHARE_LEAST: f64 = 0.02;

/// A point of a lifetime curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LifetimePoint {
    /// Memory, in pages; the mean for a variable-space policy.
    pub pages: f64,
    /// Virtual time between faults, first uses included, in ticks.
    pub lifetime_ticks: f64,
}

impl LifetimePoint {
    /// The slope of the ray from the origin, in ticks a page.
    pub fn ray(&self) -> f64 {
        self.lifetime_ticks / self.pages
    }
}

/// A lifetime function, as points of rising memory.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Lifetime {
    points: Vec<LifetimePoint>,
}

/// The marks of a lifetime function.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Knees {
    /// The knee whose ray is steepest, if there is one; of equals the one with least memory.
    pub primary: Option<LifetimePoint>,
    /// Every knee, the primary one among them, by rising memory.
    pub all: Vec<LifetimePoint>,
    /// The end of the steepest rise at or below the primary knee.
    pub inflection: Option<LifetimePoint>,
}

impl Lifetime {
    /// The lifetime function of a program of `duration_ticks`; each of `points` has pages and the
    /// faults with them, in any order. Points of less than a page are left out: a program always
    /// has the page it is on. Of several with the same pages that with fewest faults stands.
    pub fn new(duration_ticks: u64, points: impl IntoIterator<Item = (f64, u64)>) -> Lifetime {
        let mut points: Vec<LifetimePoint> = points
            .into_iter()
            .filter(|&(pages, faults)| pages >= 1.0 && faults > 0)
            .map(|(pages, faults)| LifetimePoint {
                pages,
                lifetime_ticks: duration_ticks as f64 / faults as f64,
            })
            .collect();
        points.sort_by(|a, b| {
            let by_pages = a.pages.total_cmp(&b.pages);
            by_pages.then(b.lifetime_ticks.total_cmp(&a.lifetime_ticks))
        });
        points.dedup_by_key(|point| point.pages.to_bits());
        Lifetime { points }
    }

    /// The points with a lifetime of at least `ticks`: those that a recorder with so long a quantum
    /// can tell. Below it, the order of uses within a quantum decides, which it did not see.
    pub fn resolved(mut self, ticks: u64) -> Lifetime {
        self.points
            .retain(|point| point.lifetime_ticks >= ticks as f64);
        self
    }

    /// The points from the least memory in which a program of `pages` may have a knee.
    pub fn with_room_for_knees(mut self, pages: u64) -> Lifetime {
        let least = pages as f64 * KNEE_SHARE_LEAST;
        self.points.retain(|point| point.pages >= least);
        self
    }

    /// The points, by rising memory.
    pub fn points(&self) -> &[LifetimePoint] {
        &self.points
    }

    /// The lifetime with `pages` of memory, in ticks: on the straight line between the points
    /// around it. `None` outside of them.
    pub fn at(&self, pages: f64) -> Option<f64> {
        let above = self.points.partition_point(|point| point.pages < pages);
        let high = self.points.get(above)?;
        if high.pages == pages {
            return Some(high.lifetime_ticks);
        }
        let low = self.points.get(above.checked_sub(1)?)?;
        let share = (pages - low.pages) / (high.pages - low.pages);
        Some(low.lifetime_ticks + share * (high.lifetime_ticks - low.lifetime_ticks))
    }

    /// The points at which it bends.
    pub fn find_knees(&self) -> Knees {
        let all = self.find_local_knees();
        let mut primary: Option<LifetimePoint> = None;
        for knee in &all {
            if primary.is_none_or(|best| knee.ray() > best.ray()) {
                primary = Some(*knee);
            }
        }
        let knee_pages = primary.map_or(0.0, |knee| knee.pages);
        Knees {
            primary,
            all,
            inflection: self.find_steepest(knee_pages),
        }
    }

    /// Points after the first with a steeper ray than all others from half to twice their memory.
    fn find_local_knees(&self) -> Vec<LifetimePoint> {
        let rays: Vec<f64> = self.points.iter().map(LifetimePoint::ray).collect();
        let (mut from, mut to) = (0, 0);
        // Places of rays in the range that may still be the steepest, steepest first.
        let mut candidates = std::collections::VecDeque::new();
        let mut knees = Vec::new();
        for (place, point) in self.points.iter().enumerate() {
            while to < rays.len() && self.points[to].pages <= point.pages * 2.0 {
                while candidates
                    .pop_back_if(|&mut other: &mut usize| rays[other] < rays[to])
                    .is_some()
                {}
                candidates.push_back(to);
                to += 1;
            }
            while self.points[from].pages < point.pages / 2.0 {
                from += 1;
            }
            while candidates.pop_front_if(|&mut other| other < from).is_some() {}
            if place > 0 && candidates.front() == Some(&place) {
                knees.push(*point);
            }
        }
        knees
    }

    /// The end of the steepest rise among points of at most `pages_max`.
    fn find_steepest(&self, pages_max: f64) -> Option<LifetimePoint> {
        let mut steepest: Option<(f64, LifetimePoint)> = None;
        for pair in self.points.windows(2) {
            let (low, high) = (pair[0], pair[1]);
            let rise = (high.lifetime_ticks - low.lifetime_ticks) / (high.pages - low.pages);
            if high.pages <= pages_max && steepest.is_none_or(|(best, _)| rise > best) {
                steepest = Some((rise, high));
            }
        }
        steepest.map(|(_, point)| point)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn nothing_has_no_knee() {
        assert_eq!(Lifetime::new(10, []).find_knees(), Knees::default());
    }

    #[test]
    fn the_knee_is_where_the_ray_touches() {
        // A slow start, a steep rise to 40 pages, then hardly more.
        let points = [
            (10.0, 1000),
            (20.0, 900),
            (30.0, 500),
            (40.0, 50),
            (50.0, 45),
            (80.0, 40),
        ];
        let lifetime = Lifetime::new(10_000, points);
        let knees = lifetime.find_knees();
        assert_eq!(knees.primary.map(|knee| knee.pages), Some(40.0));
        assert_eq!(knees.inflection.map(|point| point.pages), Some(40.0));
        assert_eq!(knees.primary.map(|knee| knee.ray()), Some(200.0 / 40.0));
    }

    #[test]
    fn two_levels_have_two_knees() {
        let faults = |pages: u64| match pages {
            0..10 => 100_000,
            10..200 => 2_000 - pages,
            _ => 100,
        };
        let lifetime = Lifetime::new(
            1_000_000,
            (1..400).map(|pages| (pages as f64, faults(pages))),
        );
        let knees = lifetime.find_knees();
        let at: Vec<f64> = knees.all.iter().map(|knee| knee.pages).collect();
        assert_eq!(at, [10.0, 200.0]);
        // 502 ticks over 10 pages against 10,000 over 200.
        assert_eq!(knees.primary, Some(knees.all[0]));
    }

    #[test]
    fn the_first_point_is_no_knee() {
        let lifetime = Lifetime::new(1000, [(1.0, 100), (2.0, 90), (4.0, 80)]);
        assert_eq!(lifetime.find_knees().primary, None);
    }

    #[test]
    fn what_a_quantum_hides_is_left_out() {
        let lifetime = Lifetime::new(1000, [(0.5, 500), (1.0, 100), (2.0, 90), (3.0, 10)]);
        let pages = |lifetime: &Lifetime| {
            let pages = lifetime.points().iter().map(|point| point.pages);
            pages.collect::<Vec<_>>()
        };
        assert_eq!(pages(&lifetime), [1.0, 2.0, 3.0]);
        assert_eq!(pages(&lifetime.resolved(100)), [3.0]);
    }

    #[test]
    fn lifetimes_between_points_lie_on_a_line() {
        let lifetime = Lifetime::new(100, [(10.0, 10), (20.0, 5)]);
        assert_eq!(lifetime.at(10.0), Some(10.0));
        assert_eq!(lifetime.at(15.0), Some(15.0));
        assert_eq!(lifetime.at(20.0), Some(20.0));
        assert_eq!(lifetime.at(9.0), None);
        assert_eq!(lifetime.at(21.0), None);
    }

    proptest! {
        #[test]
        fn knees_are_the_best_within_a_factor_of_two(
            points in prop::collection::vec((1u32..200, 1u64..1000), 1..80),
        ) {
            let points = points.into_iter().map(|(pages, faults)| (f64::from(pages), faults));
            let lifetime = Lifetime::new(100_000, points);
            let knees = lifetime.find_knees();
            for point in &lifetime.points()[1..] {
                let near = lifetime.points().iter().filter(|other| {
                    point.pages / 2.0 <= other.pages && other.pages <= point.pages * 2.0
                });
                let mut near = near.filter(|other| other.pages != point.pages);
                let is_best = near.all(|other| match other.pages < point.pages {
                    true => other.ray() < point.ray(),
                    false => other.ray() <= point.ray(),
                });
                prop_assert_eq!(is_best, knees.all.contains(point), "{:?}", point);
            }
            let best = knees.all.iter().map(LifetimePoint::ray).fold(0.0, f64::max);
            prop_assert_eq!(knees.primary.map_or(0.0, |knee| knee.ray()), best);
        }
    }
}
