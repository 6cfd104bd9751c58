//! LRU's curve from a sample of the pages.

use tidemark_results::analysis::Accuracy;
use tidemark_results::analysis::curve::Point;

use super::Study;
use super::curves::SPREAD;
use super::order::Sizes;
use super::points::{self, spread};
use crate::analysis::shards::PAGES_LEAST;

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
        points::sampled_points(&sampler.estimate(&sizes))
    }

    /// The accuracy of the misses of these points.
    pub(super) fn accuracy(&self, points: &[Point]) -> Accuracy {
        match &self.sampler {
            Some(sampler) if points.iter().any(|point| point.misses_error.is_some()) => {
                let whole = sampler.estimate(&spread(self.facts.pages, SPREAD));
                Accuracy::Sampled {
                    rate: whole.rate,
                    error: whole.bound().unwrap_or(1.0),
                }
            }
            Some(_) | None => Accuracy::Exact,
        }
    }

    /// The fault of samples that are too small to say anything, if they are.
    pub(super) fn is_too_small(&self) -> Option<String> {
        let estimate = self.sampler.as_ref()?.estimate(&[]);
        if !estimate.has_too_few() || self.facts.records == 0 {
            return None;
        }
        let sampled = estimate.pages_sampled;
        let percent = (PAGES_LEAST * 100).div_ceil(self.facts.pages.max(1));
        let remedy = match percent {
            0..=50 => format!("sample {percent} % of them, or all for the exact curve"),
            _ => "take all of them for the exact curve".to_owned(),
        };
        Some(format!(
            "{sampled:.0} pages of some {} a sample tell nothing for sure; {remedy}",
            self.facts.pages
        ))
    }
}
