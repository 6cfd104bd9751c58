//! Points of curves, from references or from counts of them: those of
//! [records](super::Study::curves), and those that the Python binding gives as columns.

use tidemark_core::policies::BuildError;
use tidemark_results::analysis::curve::Point;

use crate::analysis::depths::Depths;
use crate::analysis::intervals::Intervals;
use crate::analysis::pff::run_pff;
use crate::analysis::reference_string::ReferenceString;
use crate::analysis::references::Name;
use crate::analysis::shards::Estimate;
use crate::analysis::simulate::{Job, count_misses};
use crate::analysis::working_set::{WindowPoint, window_for_mean};
use crate::analysis::{optimum, stack};

/// A policy's point at a window: `working_set_point` or `vmin_point` of the analyses.
pub type PointOf = fn(&Intervals, u64) -> WindowPoint;

/// The depths of the optimum's stack.
pub fn optimum_depths(string: ReferenceString<'_>) -> Depths {
    optimum::count_depths(string.pages(), string.page_count())
}

/// The depths of LRU's stack.
pub fn lru_depths(string: ReferenceString<'_>) -> Depths {
    stack::count_depths_of(string)
}

/// The points of a stack policy at these sizes. More memory than there are pages is as good as
/// memory for all.
pub fn stack_points(depths: &Depths, sizes: &[u64]) -> Vec<Point> {
    let misses = depths.misses();
    let most = misses.len() - 1;
    let at = |&pages: &u64| Point {
        pages,
        misses: misses[usize::try_from(pages).map_or(most, |pages| pages.min(most))],
        ..Point::default()
    };
    sizes.iter().map(at).collect()
}

/// The points of a policy that is simulated, at these sizes. `job` says all but how many frames
/// there are, `names` what the pages are.
///
/// # Errors
/// If the policy or a knob is not known, or a knob's value is out of its range.
pub fn simulated_points<'a>(
    job: &Job<'a>,
    string: ReferenceString<'_>,
    names: &[Name],
    sizes: &[u64],
) -> Result<Vec<Point>, BuildError<'a>> {
    let most = string.page_count().max(1);
    let frames = |&pages: &u64| u32::try_from(pages).map_or(most, |pages| pages.clamp(1, most));
    let frames: Vec<u32> = sizes.iter().map(frames).collect();
    let misses = count_misses(job, string, names, &frames)?;
    let points = sizes.iter().zip(misses);
    Ok(points
        .map(|(&pages, misses)| Point {
            pages,
            misses,
            ..Point::default()
        })
        .collect())
}

/// The points that samples have at the sizes that were asked for.
pub fn sampled_points(estimate: &Estimate) -> Vec<Point> {
    let points = estimate.points.iter();
    points
        .map(|point| Point {
            pages: point.pages,
            misses: point.misses.round() as u64,
            misses_error: point.error,
            ..Point::default()
        })
        .collect()
}

/// The points of a policy with a window, at these windows.
pub fn window_points(
    intervals: &Intervals,
    point: PointOf,
    windows: impl IntoIterator<Item = u64>,
) -> Vec<Point> {
    let points = windows.into_iter().map(|window| point(intervals, window));
    points.map(variable).collect()
}

/// The points of a policy with a window at these sizes: with the longest window whose mean fits.
/// Sizes that are too small for any of at least `window_min` have none.
pub fn fitting_points(
    intervals: &Intervals,
    point: PointOf,
    sizes: &[u64],
    window_min: u64,
) -> Vec<Point> {
    let at = |pages: &u64| {
        let window = window_for_mean(intervals, point, *pages as f64)?;
        let window = window.min(intervals.longest());
        (window >= window_min).then(|| Point {
            pages: *pages,
            ..variable(point(intervals, window))
        })
    };
    sizes.iter().filter_map(at).collect()
}

/// PFF's points at these intervals between faults.
pub fn pff_points(string: ReferenceString<'_>, criticals: &[u64]) -> Vec<Point> {
    let totals = run_pff(string, criticals);
    let points = criticals.iter().zip(&totals);
    points
        .map(|(critical, totals)| Point {
            pages: totals.pages_mean().ceil() as u64,
            misses: totals.faults(),
            window: Some(*critical),
            mean_pages: Some(totals.pages_mean()),
            misses_error: None,
        })
        .collect()
}

/// For each of these sizes, the point with the fewest misses among those that fit: with PFF, more
/// memory may mean more misses.
pub fn best_points(points: &[Point], sizes: &[u64]) -> Vec<Point> {
    let best = |pages: &u64| {
        let fits = points
            .iter()
            .filter(|point| point.memory_pages() <= *pages as f64);
        let best = fits.min_by_key(|point| point.misses)?;
        Some(Point {
            pages: *pages,
            ..*best
        })
    };
    sizes.iter().filter_map(best).collect()
}

/// About `count` numbers from 1 to `most`, rising: all of them, or in equal ratios.
pub fn spread(most: u64, count: u64) -> Vec<u64> {
    if most <= count {
        return (1..=most).collect();
    }
    let ratio = (most as f64).powf(1.0 / (count - 1) as f64);
    let mut sizes: Vec<u64> = (0..count)
        .map(|at| (ratio.powf(at as f64).round() as u64).clamp(1, most))
        .collect();
    sizes.push(most);
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

fn variable(at: WindowPoint) -> Point {
    Point {
        pages: at.pages_mean.ceil() as u64,
        misses: at.faults,
        window: Some(at.window),
        mean_pages: Some(at.pages_mean),
        misses_error: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::simulate::{collect_page_ids, simulate};

    #[test]
    fn few_sizes_are_all_there_are_and_many_are_spread() {
        assert_eq!(spread(5, 10), [1, 2, 3, 4, 5]);
        let sizes = spread(1_000_000, 100);
        assert!(sizes.len() <= 101 && sizes.len() > 80, "{}", sizes.len());
        assert_eq!((sizes[0], sizes[sizes.len() - 1]), (1, 1_000_000));
        assert!(sizes.is_sorted());
        assert_eq!(spread(0, 10), Vec::<u64>::new());
    }

    #[test]
    fn memory_beyond_all_pages_is_as_good_as_for_all() {
        let pages = [0, 1, 2, 0, 1, 2];
        let string = ReferenceString::new(&pages, 3);
        let points = stack_points(&lru_depths(string), &[1, 2, 3, u64::MAX]);
        let misses: Vec<u64> = points.iter().map(|point| point.misses).collect();
        assert_eq!(misses, [6, 6, 3, 3]);
        let points = stack_points(&optimum_depths(string), &[2]);
        assert_eq!(points[0].misses, 4);
    }

    #[test]
    fn fifo_and_clock_come_out_the_same_one_at_a_time() {
        let pages: Vec<u32> = (0..2000u32).map(|at| (at * at / 7 + at) % 61).collect();
        let string = ReferenceString::new(&pages, 61);
        let names: Vec<Name> = (0..61)
            .map(|page| Name {
                process: 0,
                copy: 0,
                page,
            })
            .collect();
        let sizes: Vec<u64> = (1..=61).collect();
        for policy in ["fifo", "clock"] {
            let together = simulated_points(&Job::new(policy, 1), string, &names, &sizes);
            let ids = collect_page_ids(&names);
            for point in together.unwrap() {
                let job = Job::new(policy, point.pages as u32);
                let cost = simulate(&job, &pages, &ids).unwrap();
                assert_eq!(cost.misses, point.misses, "{policy} {}", point.pages);
            }
        }
    }
}
