//! Curves: each policy's analysis as points of one kind, with knee and memory needed.

use std::thread::{self, ScopedJoinHandle};

use tidemark_results::analysis::curve::{self, Curve, CurveRecord, Knee, Need, Point, Space};
use tidemark_trace::Granularity;

use super::Study;
use super::facts::VERSION;
use super::order::{Assumed, CurveOrder, Sizes};
use super::passing::Measured;
use super::points::{
    PointOf, best_points, fitting_points, lru_depths, optimum_depths, pff_points, spread,
    stack_points, window_points,
};
use super::policies::Named;
use super::progress::Progress;
use super::verdict::Compared;
use super::wanted::usual_windows;
use crate::analysis::depths::Depths;
use crate::analysis::intervals::Intervals;
use crate::analysis::lifetime::Lifetime;
use crate::analysis::needed::{Needed, needed_fixed, needed_vmin_of, needed_working_set_of};
use crate::analysis::reference_string::ReferenceString;
use crate::analysis::sharing::FILE_PAGE_BYTES_MAX;
use crate::analysis::vmin::vmin_point;
use crate::analysis::working_set::working_set_point;

/// A curve that can be drawn has about this many points where every one is cheap.
pub(super) const SPREAD: u64 = 480;
/// The number of points of a curve where each takes a separate run.
const SPREAD_OF_RUNS: u64 = 24;
/// Windows of a curve for each doubling.
const WINDOWS_PER_DOUBLING: u32 = 12;

impl Study {
    /// The curves that are asked for.
    ///
    /// # Panics
    /// If what they are made of was not wanted ([`Wanted::curves`](super::Wanted::curves) says
    /// what that is); LRU's curve does with samples in its place.
    pub fn curves(&self, order: &CurveOrder, progress: &mut Progress<'_>) -> CurveRecord {
        let mut notes = vec![];
        if self.facts.is_cut {
            notes.push("the recording was cut short; this is of what there is".into());
        }
        if self.facts.is_pages_estimate {
            notes.push("how many pages were touched is estimated, too".into());
        }
        notes.extend(self.counted_apart());
        notes.extend(self.is_too_small());
        let assumed = self.assumed_of(&order.assumed);
        let order = &CurveOrder {
            assumed,
            ..order.clone()
        };
        let (mut needs, mut compared) = (vec![], Compared::default());
        let curves = thread::scope(|scope| {
            // The optimum alone takes about as long as all others, on one processor.
            let optimum = order.policies.contains(&Named::Opt);
            let optimum = optimum.then(|| scope.spawn(|| self.depths(Named::Opt)));
            self.all_curves(order, optimum, (&mut needs, &mut compared), progress)
        });
        for curve in curves.iter().filter(|curve| curve.points.is_empty()) {
            let name = &curve.policy;
            notes.push(format!(
                "{name} has no point at the sizes that were asked for"
            ));
        }
        notes.extend(self.unanswered(order, &needs));
        needs.sort_by(|a, b| a.slowdown_percent_max.total_cmp(&b.slowdown_percent_max));
        CurveRecord {
            schema: curve::SCHEMA.into(),
            tidemark: VERSION.into(),
            trace: self.facts.clone(),
            curves,
            run: None,
            verdict: self.verdict(compared, &order.sizes),
            needs,
            notes,
        }
    }

    /// Names the memory that counts more than once, or for longer than it is there, if anything
    /// does.
    fn counted_apart(&self) -> Option<String> {
        let why = match self.facts.processes {
            0 | 1 => return None,
            _ if self.sampler.is_some() => {
                "in a sample, pages of processes that ended stay, and those that processes share"
            }
            _ if !self.has_mappings => "the trace has no mappings; pages that processes share",
            _ if self.facts.page_bytes > FILE_PAGE_BYTES_MAX => {
                "the trace's pages are larger than 4 KiB; those of files that processes share"
            }
            _ => return None,
        };
        Some(format!("{why} count once in each of them"))
    }

    /// The curve of each policy, in order. The optimum's depths are being counted already.
    fn all_curves(
        &self,
        order: &CurveOrder,
        mut optimum: Option<ScopedJoinHandle<'_, Depths>>,
        (needs, compared): (&mut Vec<Need>, &mut Compared),
        progress: &mut Progress<'_>,
    ) -> Vec<Curve> {
        let has_windows = |named: &Named| matches!(named, Named::WorkingSet | Named::Vmin);
        let windows = order.policies.iter().find(|named| has_windows(named));
        let mut measured = None;
        let intervals = windows.map(|_| match &self.passed.intervals {
            Some(measured) => measured,
            None => {
                progress("intervals", 0.0);
                &*measured.insert(self.measure(&order.assumed))
            }
        });
        let mut curves = vec![];
        for (at, named) in order.policies.iter().enumerate() {
            progress(named.name(), at as f64 / order.policies.len() as f64);
            let points = match (named, &intervals) {
                (Named::Lru, _) if self.sampler.is_some() => {
                    let estimated = self.sampled_points(&Sizes::Spread);
                    let pairs = estimated.iter().map(|point| (point.pages, point.misses));
                    needs.extend(self.needs_among(*named, pairs, &order.assumed));
                    match order.sizes {
                        Sizes::At(_) => self.sampled_points(&order.sizes),
                        Sizes::Spread | Sizes::All => estimated,
                    }
                }
                (Named::Lru, _) => {
                    let depths = self.depths(*named);
                    compared.note_lru(&depths);
                    self.stack_curve(*named, &depths, order, needs)
                }
                (Named::Opt, _) => {
                    let depths = match optimum.take() {
                        Some(counting) => counting.join().expect("it counts to its end"),
                        None => self.depths(*named),
                    };
                    compared.note_optimum(&depths);
                    self.stack_curve(*named, &depths, order, needs)
                }
                (Named::WorkingSet | Named::Vmin, intervals) => {
                    let measured = intervals.expect("they are measured for these");
                    needs.extend(self.needs_variable(*named, measured, &order.assumed));
                    let point = if *named == Named::Vmin {
                        vmin_point
                    } else {
                        working_set_point
                    };
                    let window_min = self.sight.window_min;
                    windowed_points(&measured.intervals, point, &order.sizes, window_min)
                }
                (Named::Pff, _) => self.pff_points(&order.sizes),
                (Named::Simulated(name), _) => {
                    let points = self.simulated_points(name, &order.sizes);
                    needs.extend(self.needs_simulated(name, &points, &order.assumed));
                    points
                }
            };
            curves.push(self.curve(*named, points));
        }
        curves
    }

    fn stack_curve(
        &self,
        named: Named,
        depths: &Depths,
        order: &CurveOrder,
        needs: &mut Vec<Need>,
    ) -> Vec<Point> {
        needs.extend(self.needs_fixed(named, depths, &order.assumed));
        stack_points(depths, &self.sizes_in_sight(&order.sizes, SPREAD))
    }

    /// The windows that are usually shown: about a thousandth, a hundredth and a tenth of the
    /// time, rounded to a digit. Of a sampled trace, where these are shorter than it can show:
    /// [`usual`](crate::analysis::sampled_windows::SampledWindows::usual).
    pub fn usual_windows(&self) -> Vec<u64> {
        let usual = usual_windows(self.facts.time);
        match &self.sampled {
            Some(sampled)
                if usual
                    .iter()
                    .any(|window| sampled.known_share(*window) < 0.5) =>
            {
                sampled.usual()
            }
            Some(_) | None => usual,
        }
    }

    /// The intervals of the references, of which enough are kept to answer within what is assumed.
    fn measure(&self, assumed: &Assumed) -> Measured {
        let string = self.string();
        let longest = assumed.page_ins_max(string.end(), self.facts.time_unit);
        let longest = longest.min(self.facts.records) + 1;
        Measured::count(longest, string.end(), |take| take(string.stretch()))
    }

    fn curve(&self, named: Named, points: Vec<Point>) -> Curve {
        let pairs = points
            .iter()
            .map(|point| (point.memory_pages(), point.misses));
        let lifetime = Lifetime::new(self.facts.time, pairs)
            .resolved(self.resolution())
            .with_room_for_knees(self.facts.footprint());
        let knee = lifetime.find_knees().primary.map(|knee| {
            let at = points
                .iter()
                .find(|point| point.memory_pages() == knee.pages);
            Knee {
                pages: knee.pages,
                lifetime: knee.lifetime_ticks,
                window: at.and_then(|point| point.window),
            }
        });
        Curve {
            policy: named.name().into(),
            space: match named {
                Named::WorkingSet | Named::Vmin | Named::Pff => Space::Variable,
                Named::Lru | Named::Opt | Named::Simulated(_) => Space::Fixed,
            },
            accuracy: self.accuracy(&points),
            knee,
            points,
        }
    }

    /// The sizes that the trace can show.
    fn sizes_in_sight(&self, sizes: &Sizes, count: u64) -> Vec<u64> {
        let (least, most) = (self.sight.pages_min, self.facts.footprint());
        let mut wanted = wanted_sizes(sizes, most, count);
        wanted.retain(|pages| *pages >= least);
        let is_ours = !matches!(sizes, Sizes::At(_));
        if is_ours && least > 1 && wanted.first() != Some(&least) {
            wanted.insert(0, least);
        }
        wanted
    }

    /// Intervals shorter than this are beyond the recording.
    fn resolution(&self) -> u64 {
        match self.references.granularity {
            Granularity::Quantum(ticks)
            | Granularity::Window(ticks)
            | Granularity::Regions(ticks) => ticks,
            Granularity::Exact => 0,
        }
    }

    /// The depths of the stack of LRU or of the optimum.
    ///
    /// - Needs: LRU's were counted in passing, or the references were wanted.
    pub(super) fn depths(&self, named: Named) -> Depths {
        if let (Named::Lru, Some(depths)) = (named, &self.passed.depths) {
            return depths.clone();
        }
        let is_kept = self.references.len() as u64 == self.facts.records;
        assert!(is_kept, "the references were not wanted");
        let string = ReferenceString::of(&self.references);
        match named {
            Named::Opt => optimum_depths(string),
            _ => lru_depths(string),
        }
    }

    fn simulated_points(&self, name: &str, sizes: &Sizes) -> Vec<Point> {
        let sizes = match sizes {
            Sizes::At(_) => self.sizes_in_sight(sizes, SPREAD_OF_RUNS),
            Sizes::Spread | Sizes::All => self.sizes_in_sight(&Sizes::Spread, SPREAD_OF_RUNS),
        };
        self.simulate_at(name, &sizes)
    }

    fn pff_points(&self, sizes: &Sizes) -> Vec<Point> {
        let mut criticals = spread(self.facts.time.max(1), 2 * SPREAD_OF_RUNS);
        criticals.retain(|critical| *critical >= self.sight.window_min);
        let mut points = pff_points(self.string(), &criticals);
        points.sort_by(|a, b| a.memory_pages().total_cmp(&b.memory_pages()));
        points.dedup_by(|next, kept| next.mean_pages == kept.mean_pages);
        match sizes {
            Sizes::At(sizes) => best_points(&points, sizes),
            Sizes::Spread | Sizes::All => points,
        }
    }

    fn needs_fixed(&self, named: Named, depths: &Depths, assumed: &Assumed) -> Vec<Need> {
        let misses = depths.misses();
        let points = misses.iter().enumerate().skip(1);
        let points = points.map(|(pages, misses)| (pages as u64, *misses));
        self.needs_among(named, points, assumed)
    }

    /// The measures that were asked for and have no answer.
    fn unanswered(&self, order: &CurveOrder, needs: &[Need]) -> Vec<String> {
        let mut notes = vec![];
        for named in &order.policies {
            let name = named.name();
            for percent in &order.assumed.slowdowns_percent {
                let mut answers = needs.iter().filter(|need| need.policy == name);
                if self.facts.records > 0
                    && !answers.any(|need| need.slowdown_percent_max == *percent)
                {
                    let why = match named {
                        Named::Pff => "how much memory is needed is not looked for",
                        _ => "no size of memory keeps to it",
                    };
                    notes.push(format!("at most {percent} % slower under {name}: {why}"));
                }
            }
        }
        notes
    }

    /// The least memory for each slow-down, among points of a fixed space.
    pub(super) fn needs_among(
        &self,
        named: Named,
        points: impl Iterator<Item = (u64, u64)> + Clone,
        assumed: &Assumed,
    ) -> Vec<Need> {
        let (time, first) = (self.facts.time, self.facts.pages);
        let answer = |percent: &f64| {
            let terms = assumed.terms(*percent, self.facts.time_unit);
            let needed = needed_fixed(points.clone(), time, first, &terms, self.sight)?;
            Some(self.need(named, *percent, &needed, assumed))
        };
        assumed
            .slowdowns_percent
            .iter()
            .filter_map(answer)
            .collect()
    }

    fn needs_variable(&self, named: Named, measured: &Measured, assumed: &Assumed) -> Vec<Need> {
        if self.facts.records == 0 {
            return vec![];
        }
        let answer = |percent: &f64| {
            let terms = assumed.terms(*percent, self.facts.time_unit);
            let needed_of = match named {
                Named::Vmin => needed_vmin_of,
                _ => needed_working_set_of,
            };
            let needed = needed_of(&measured.intervals, &measured.longest, &terms, self.sight);
            self.need(named, *percent, &needed, assumed)
        };
        assumed.slowdowns_percent.iter().map(answer).collect()
    }

    pub(super) fn need(
        &self,
        named: Named,
        percent: f64,
        needed: &Needed,
        assumed: &Assumed,
    ) -> Need {
        let pages = needed.pages_mean.ceil() as u64;
        Need {
            policy: named.name().into(),
            slowdown_percent_max: percent,
            slowdown_percent: needed.slow_down * 100.0,
            pages,
            bytes: self.facts.bytes(pages),
            pages_peak: needed.pages_max,
            window: needed.window,
            page_ins: needed.page_ins,
            is_at_most: needed.is_at_most,
            page_in_ns: assumed.page_in_ns,
            time_unit_ns: assumed.time_unit_ns(self.facts.time_unit),
            time_unit_source: assumed.time_unit_source,
        }
    }
}

/// The sizes that are asked for, of 1 to `most`.
fn wanted_sizes(sizes: &Sizes, most: u64, count: u64) -> Vec<u64> {
    match sizes {
        Sizes::Spread => spread(most, count),
        Sizes::All => (1..=most).collect(),
        Sizes::At(sizes) => sizes.clone(),
    }
}

/// The points of a policy with a window: at many windows, or at the longest whose mean fits.
fn windowed_points(
    intervals: &Intervals,
    point: PointOf,
    sizes: &Sizes,
    window_min: u64,
) -> Vec<Point> {
    match sizes {
        Sizes::Spread | Sizes::All => {
            let mut windows = intervals.windows(WINDOWS_PER_DOUBLING);
            windows.retain(|window| *window >= window_min);
            if windows.is_empty() {
                windows.push(window_min);
            }
            window_points(intervals, point, windows)
        }
        Sizes::At(sizes) => fitting_points(intervals, point, sizes, window_min),
    }
}
