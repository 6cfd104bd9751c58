//! The memory that is needed, as a table: a line for each slow-down.

use tidemark_results::analysis::curve::{CurveRecord, Need, RunNeeds};
use tidemark_results::text;

use super::Screen;
use super::curves::wrapped;
use crate::{numbers, words};

/// No such amount.
const NONE: &str = "none";
/// Not asked.
const BLANK: &str = "–";

/// The least memory for each slow-down, under `tidemark run` first and under ideal policies below,
/// and what that assumes. Empty where nothing was asked.
pub fn needs(record: &CurveRecord, screen: Screen) -> String {
    let slowdowns = slowdowns(record);
    if slowdowns.is_empty() {
        return String::new();
    }
    let mut told = String::new();
    if let Some(run) = &record.run {
        let rows = slowdowns
            .iter()
            .map(|&percent| run_row(record, run, percent));
        let head = ["under `tidemark run`", "range", "of managed"];
        told.push_str(&table(&head, rows.collect(), screen));
    }
    let policies = policies(record);
    if !policies.is_empty() {
        let titles: Vec<String> = policies.iter().map(|need| title(need)).collect();
        let head: Vec<&str> = titles.iter().map(String::as_str).collect();
        let rows = slowdowns.iter();
        let rows = rows.map(|&percent| ideal_row(record, &policies, percent));
        told.push_str(&table(&head, rows.collect(), screen));
    }
    for line in remarks(record).iter().chain(&words::assumptions(record)) {
        told.push_str(&wrapped(line, screen.columns));
    }
    told
}

/// A table with the slow-down in front, and an empty line behind.
fn table(head: &[&str], rows: Vec<Vec<String>>, screen: Screen) -> String {
    let head: Vec<&str> = ["at most slower"].iter().chain(head).copied().collect();
    format!(
        "{}\n\n",
        text::folded(&head, &rows, 0, 1, Some(screen.columns))
    )
}

/// Every slow-down that was asked for, rising.
fn slowdowns(record: &CurveRecord) -> Vec<f64> {
    let ideal = record.needs.iter().map(|need| need.slowdown_percent_max);
    let run = record.run.iter().flat_map(|run| {
        let met = run.needs.iter().map(|need| need.slowdown_percent_max);
        met.chain(run.slowdowns_percent_unmet.iter().copied())
    });
    let mut all: Vec<f64> = ideal.chain(run).collect();
    all.sort_by(f64::total_cmp);
    all.dedup();
    all
}

/// One answer of each ideal policy, in their order.
fn policies(record: &CurveRecord) -> Vec<&Need> {
    let mut policies: Vec<&Need> = vec![];
    for need in &record.needs {
        if policies.iter().all(|known| known.policy != need.policy) {
            policies.push(need);
        }
    }
    policies
}

fn title(need: &Need) -> String {
    format!("ideal {}", words::policy(&need.policy))
}

fn run_row(record: &CurveRecord, run: &RunNeeds, percent: f64) -> Vec<String> {
    let mut needs = run.needs.iter();
    let need = needs.find(|need| need.slowdown_percent_max == percent);
    let cells = match need {
        Some(need) => {
            let share = need.pages as f64 * 100.0 / run.footprint_pages.max(1) as f64;
            [
                amount(need.bytes, need.is_at_most),
                words::run_range(need, &record.trace),
                format!("{} %", numbers::digits(share)),
            ]
        }
        None if run.slowdowns_percent_unmet.contains(&percent) => {
            [NONE, BLANK, BLANK].map(Into::into)
        }
        None => [BLANK; 3].map(Into::into),
    };
    [slower(percent)].into_iter().chain(cells).collect()
}

fn ideal_row(record: &CurveRecord, policies: &[&Need], percent: f64) -> Vec<String> {
    let cells = policies.iter().map(|of| {
        let mut needs = record.needs.iter();
        let need =
            needs.find(|need| need.policy == of.policy && need.slowdown_percent_max == percent);
        need.map_or(BLANK.into(), |need| amount(need.bytes, need.is_at_most))
    });
    [slower(percent)].into_iter().chain(cells).collect()
}

fn slower(percent: f64) -> String {
    format!("{} %", numbers::digits(percent))
}

fn amount(bytes: u64, is_at_most: bool) -> String {
    let sign = if is_at_most { "≤ " } else { "" };
    format!("{sign}{}", text::bytes(bytes))
}

/// The meaning of the signs and words in the tables, of those that are there.
fn remarks(record: &CurveRecord) -> Vec<String> {
    let of_run = |run: &RunNeeds| run.needs.iter().any(|need| need.is_at_most);
    let is_at_most =
        record.run.as_ref().is_some_and(of_run) || record.needs.iter().any(|need| need.is_at_most);
    let mut run = record.run.iter();
    let is_unmet = run.any(|run| !run.slowdowns_percent_unmet.is_empty());
    let varying = policies(record)
        .into_iter()
        .filter(|need| need.window.is_some());
    let varying: Vec<String> = varying.map(|need| words::policy(&need.policy)).collect();
    let mut remarks = vec![];
    if is_at_most {
        remarks.push("≤: so much is enough, and less may be; this trace can't tell.".into());
    }
    if is_unmet {
        remarks.push("none: no amount of memory will do, not even room for all of it.".into());
    }
    if !varying.is_empty() {
        let named = varying.join(", ");
        remarks.push(format!(
            "{named}: the mean of a resident set that grows and shrinks."
        ));
    }
    remarks
}
