//! LRU's curve from a sample of the pages.

use tidemark_results::analysis::Accuracy;
use tidemark_results::analysis::curve::Point;

use super::Study;
use super::curves::{SPREAD, spread};
use super::order::Sizes;

impl Study {
    /// LRU's points as the samples have them. All sizes are as many as can be drawn.
    ///
    /// - Needs: a sample was wanted.
    pub(super) fn sampled_points(&self, sizes: &Sizes) -> Vec<Point> {
        let sizes = match sizes {
            Sizes::At(sizes) => sizes.clone(),
            Sizes::Spread | Sizes::All => spread(self.facts.pages, SPREAD),
        };
        let sampler = self.sampler.as_ref().expect("a sample was wanted");
        let points = sampler.estimate(&sizes).points.into_iter();
        points
            .map(|point| Point {
                pages: point.pages,
                misses: point.misses.round() as u64,
                misses_error: point.error,
                ..Point::default()
            })
            .collect()
    }

    /// How far the misses of these points can be believed.
    pub(super) fn accuracy(&self, points: &[Point]) -> Accuracy {
        let errors = points.iter().filter_map(|point| point.misses_error);
        let Some(error) = errors.reduce(f64::max) else {
            return Accuracy::Exact;
        };
        let sampler = self
            .sampler
            .as_ref()
            .expect("points with an error are of it");
        Accuracy::Sampled {
            rate: sampler.estimate(&[]).rate,
            error: error / self.facts.records.max(1) as f64,
        }
    }
}
