//! The answer of a report in one sentence: the memory that the program needs, and why.

use tidemark_results::analysis::curve::{CurveRecord, Need, RunNeeds};
use tidemark_results::analysis::report::ReportRecord;
use tidemark_results::analysis::wss::WssRecord;
use tidemark_results::text;

use crate::{numbers, words};

/// The sentence. Empty for a trace that tells neither.
pub fn headline(record: &ReportRecord) -> String {
    let curve = &record.curve;
    let (needed, bytes) = match (&curve.run, curve.needs.first()) {
        (Some(run), _) => under_run(run, curve),
        (None, Some(need)) => (under_policy(need, curve), Some(need.bytes)),
        (None, None) => return String::new(),
    };
    let why = bytes.and_then(|bytes| why(record, bytes));
    why.map_or_else(
        || format!("{needed}."),
        |why| format!("{needed}, because {why}."),
    )
}

/// The first answer under `tidemark run`, and its bytes, if a reason for it is to be told.
fn under_run(run: &RunNeeds, curve: &CurveRecord) -> (String, Option<u64>) {
    let managed = text::bytes(curve.trace.bytes(run.footprint_pages));
    let Some(need) = run.needs.first() else {
        let told = match run.slowdowns_percent_unmet.last() {
            Some(bound) => format!(
                "It takes more than {} % longer under `tidemark run` in any amount of memory",
                numbers::digits(*bound)
            ),
            None => "It is too short to tell the memory that it needs under `tidemark run`".into(),
        };
        return (told, None);
    };
    let unmet = match run.slowdowns_percent_unmet.last() {
        Some(bound) => format!(" (no amount keeps {} %)", numbers::digits(*bound)),
        None => String::new(),
    };
    let bound = numbers::digits(need.slowdown_percent_max);
    let size = text::bytes(need.bytes);
    let told = format!("under `tidemark run` to take at most {bound} % longer{unmet}");
    if need.is_at_most {
        // Of what fits in the least memory that can be had nothing more is known.
        let told = format!("It needs at most {size} {told}; its managed memory is {managed}");
        return (told, None);
    }
    let part = match words::run_share(need, run).round() {
        share if share < 100.0 => format!("{} % of its {managed}", numbers::digits(share)),
        _ => "all of its managed memory".into(),
    };
    (format!("It needs {size} ({part}) {told}"), Some(need.bytes))
}

/// The first answer under an ideal policy.
fn under_policy(need: &Need, curve: &CurveRecord) -> String {
    let at_most = if need.is_at_most { "at most " } else { "" };
    format!(
        "It needs {at_most}{} of {} under ideal {} to take at most {} % longer",
        text::bytes(need.bytes),
        text::bytes(curve.trace.bytes(curve.trace.footprint())),
        words::policy(&need.policy),
        numbers::digits(need.slowdown_percent_max),
    )
}

/// The reason for its need: a loop or a cliff of about that size, or else its working
/// set.
fn why(record: &ReportRecord, bytes: u64) -> Option<String> {
    let cliff = record.curve.verdict.as_ref().and_then(|it| it.cliff);
    match cliff.filter(|cliff| cliff.pages > 1 && cliff.bytes >= bytes / 2) {
        Some(cliff) if cliff.is_loop => Some(format!(
            "it walks in a loop of about {}",
            text::bytes(cliff.bytes)
        )),
        Some(cliff) => Some(format!(
            "LRU has less than half of the optimum's hits in less than {}",
            text::bytes(cliff.bytes)
        )),
        None => working_set(&record.wss, bytes),
    }
}

/// The working set in the longest window; if it is smaller by a fifth than what is needed, the
/// program comes back to pages later than that.
fn working_set(record: &WssRecord, needed: u64) -> Option<String> {
    let line = record.windows.last()?;
    let bytes = |pages: f64| numbers::bytes(pages * record.trace.page_bytes as f64);
    let window = numbers::time(line.window as f64, record.trace.time_unit);
    let (mean, peak) = (bytes(line.mean), bytes(line.peak as f64));
    Some(match record.trace.bytes(line.peak) < needed / 5 * 4 {
        true => format!(
            "it comes back to pages after more than {window}, in which it uses {peak} at most"
        ),
        false => format!(
            "its working set is {mean} in the mean and {peak} at its peak, in a window of {window}"
        ),
    })
}
