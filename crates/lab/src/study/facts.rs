//! The facts about a trace, as records have them.

use tidemark_results::analysis::{TimeUnit, TraceFacts, Windows};
use tidemark_trace::{Granularity, Header};

use crate::analysis::sight::Sight;

/// The version that records are written by.
pub(super) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The facts in the header. `longest` is the granularity with the longest window of all.
pub(super) fn facts(header: &Header, longest: Granularity) -> TraceFacts {
    TraceFacts {
        source: header.source.clone(),
        command: header.command.clone(),
        page_bytes: header.page_bytes,
        granularity: match (header.granularity, longest) {
            (Granularity::Exact, _) => "exact".into(),
            (Granularity::Quantum(units), _) => format!("quantum {units}"),
            (Granularity::Window(ns), Granularity::Window(most)) if most > ns => {
                format!("window {ns} to {most}")
            }
            (Granularity::Window(ns), _) => format!("window {ns}"),
            (Granularity::Regions(ns), Granularity::Regions(most)) if most > ns => {
                format!("regions {ns} to {most}")
            }
            (Granularity::Regions(ns), _) => format!("regions {ns}"),
        },
        time_unit: time_unit(header.time),
        records: 0,
        pages: 0,
        processes: 0,
        time: 0,
        is_cut: false,
        is_pages_estimate: false,
        windows: None,
        pages_at_once: None,
        chosen: None,
    }
}

/// The windows in which a trace was sampled, if it was.
pub(super) fn windows_of(header: &Header, longest: Granularity, sight: Sight) -> Option<Windows> {
    Some(Windows {
        first_ns: header.granularity.window_ns()?,
        longest_ns: longest.window_ns()?,
        pages_touched: sight.pages_min,
    })
}

/// The unit as records name it.
pub(super) fn time_unit(unit: tidemark_trace::TimeUnit) -> TimeUnit {
    match unit {
        tidemark_trace::TimeUnit::Instructions => TimeUnit::Instructions,
        tidemark_trace::TimeUnit::References => TimeUnit::References,
        tidemark_trace::TimeUnit::Nanoseconds => TimeUnit::Nanoseconds,
    }
}
