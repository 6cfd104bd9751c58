//! The order for a study, and its assumptions.

use tidemark_results::analysis::{TimeUnit, UnitSource};
use tidemark_trace::Speed;

use super::policies::Named;
use crate::analysis::needed::Terms;
use crate::analysis::space_time::Costs;

/// The curves wanted, and their sizes.
#[derive(Clone, Debug, PartialEq)]
pub struct CurveOrder {
    /// The policies, in the order of the record.
    pub policies: Vec<Named>,
    /// At which sizes.
    pub sizes: Sizes,
    /// For the answers to how much memory is needed.
    pub assumed: Assumed,
}

/// At which sizes of memory points are wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sizes {
    /// At enough sizes that a curve can be drawn: all of a few hundred, and of more some hundreds
    /// in equal ratios.
    Spread,
    /// At every size. Policies that are simulated are spread all the same.
    All,
    /// At these, in pages, in this order.
    At(Vec<u64>),
}

/// The assumptions of answers.
#[derive(Clone, Debug, PartialEq)]
pub struct Assumed {
    /// The slow-downs to answer for, in percent.
    pub slowdowns_percent: Vec<f64>,
    /// The wait for a page from the store, in nanoseconds.
    pub page_in_ns: f64,
    /// The length of a unit of virtual time, in nanoseconds; by the trace, where `None`, or else
    /// by the unit.
    pub time_unit_ns: Option<f64>,
    /// The source of that length.
    pub time_unit_source: UnitSource,
}

/// The wait for a page that never was: to be filled with zeros.
const FIRST_TOUCH_NS: f64 = 500.0;
/// The policy's work at a miss.
const CHOICE_NS: f64 = 200.0;
/// The policy's work to look at a resident page: to test a bit and move a list entry.
const LOOK_NS: f64 = 10.0;
/// From one look at all resident pages to the next, for policies that must look: 10 ms.
const LOOK_EVERY_NS: f64 = 1e7;

impl Default for Assumed {
    fn default() -> Assumed {
        Assumed {
            slowdowns_percent: vec![1.0, 10.0],
            page_in_ns: 100_000.0,
            time_unit_ns: None,
            time_unit_source: UnitSource::Assumed,
        }
    }
}

impl Assumed {
    /// These assumptions with the speed of the program that the trace has, where none was given.
    /// `time` is the trace's time, in units.
    pub fn informed(&self, speed: Option<Speed>, unit: TimeUnit, time: u64) -> Assumed {
        if self.time_unit_ns.is_some() {
            return self.clone();
        }
        let known = match (unit, speed) {
            (TimeUnit::Nanoseconds, _) => Some((1.0, UnitSource::Exact)),
            (TimeUnit::Instructions, Some(Speed::Measured { user_ns, .. })) if time > 0 => {
                let ns = user_ns as f64 / time as f64;
                (ns > 0.0).then_some((ns, UnitSource::Measured))
            }
            (TimeUnit::Instructions, Some(Speed::Calibrated { unit_fs })) if unit_fs > 0 => {
                Some((unit_fs as f64 / 1e6, UnitSource::Calibrated))
            }
            (TimeUnit::Instructions | TimeUnit::References, _) => None,
        };
        let (time_unit_ns, time_unit_source) = match known {
            Some((ns, source)) => (Some(ns), source),
            None => (None, UnitSource::Assumed),
        };
        Assumed {
            time_unit_ns,
            time_unit_source,
            ..self.clone()
        }
    }

    /// The length of a unit of virtual time. An instruction: a fifth of a nanosecond, as at 3 GHz
    /// and some two a cycle; programs of today take 0.09 to 0.28. A reference is to another page
    /// than the one before: some hundred instructions.
    pub fn time_unit_ns(&self, unit: TimeUnit) -> f64 {
        self.time_unit_ns.unwrap_or(match unit {
            TimeUnit::Instructions => 0.2,
            TimeUnit::References => 50.0,
            TimeUnit::Nanoseconds => 1.0,
        })
    }

    /// The most page-ins that are bearable for any of the slow-downs, in a program of
    /// `duration_ticks`.
    pub(super) fn page_ins_max(&self, duration_ticks: u64, unit: TimeUnit) -> u64 {
        let percents = self.slowdowns_percent.iter();
        let page_ins = percents.map(|percent| {
            let terms = self.terms(*percent, unit);
            terms.page_ins_max(duration_ticks)
        });
        page_ins.max().unwrap_or(0)
    }

    pub(super) fn terms(&self, slowdown_percent: f64, unit: TimeUnit) -> Terms {
        Terms {
            slow_down_max: slowdown_percent / 100.0,
            page_in_ns: self.page_in_ns,
            ticks_per_second: 1e9 / self.time_unit_ns(unit),
        }
    }

    /// The costs of a policy. One that must look at pages does so from time to time.
    pub(super) fn costs(&self, unit: TimeUnit, must_look: bool) -> Costs {
        let tick_ns = self.time_unit_ns(unit);
        Costs {
            tick_ns,
            page_in_ns: self.page_in_ns,
            first_use_ns: FIRST_TOUCH_NS,
            choice_ns: CHOICE_NS,
            scan_page_ns: LOOK_NS,
            scan_every_ticks: match must_look {
                true => (LOOK_EVERY_NS / tick_ns).max(1.0) as u64,
                false => 0,
            },
        }
    }
}
