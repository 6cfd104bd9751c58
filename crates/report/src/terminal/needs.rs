//! The memory that is needed, as a table: a line for each slow-down.

use tidemark_results::analysis::curve::{CurveRecord, Need, RunNeeds};
use tidemark_results::text;

use super::paragraphs::wrapped;
use super::screen::Screen;
use crate::{numbers, words};

/// Not asked.
const BLANK: &str = "–";

/// The least memory for each slow-down under `tidemark run`, and what its words mean. Empty where
/// that was not simulated.
pub fn run_needs(record: &CurveRecord, screen: Screen) -> String {
    let Some(run) = &record.run else {
        return String::new();
    };
    let rows = run_slowdowns(run);
    let rows = rows
        .iter()
        .map(|&percent| run_row(record, run, percent))
        .collect();
    let head = ["under `tidemark run`", "range", "of managed"];
    let mut told = table(&head, rows, screen);
    let remarks = words::run_remarks(run);
    let terms = words::run_assumption(run, &record.trace);
    for line in remarks.iter().chain([&terms]) {
        told.push_str(&wrapped(line, screen.columns));
    }
    told
}

/// The least memory for each slow-down under ideal policies.
pub fn ideal_needs(record: &CurveRecord, screen: Screen) -> String {
    let policies = policies(record);
    let Some(first) = policies.first() else {
        return String::new();
    };
    let titles: Vec<String> = policies.iter().map(|need| title(need)).collect();
    let head: Vec<&str> = titles.iter().map(String::as_str).collect();
    let slowdowns = ideal_slowdowns(record);
    let rows = slowdowns.iter();
    let rows = rows.map(|&percent| ideal_row(record, &policies, percent));
    let mut told = table(&head, rows.collect(), screen);
    let assumption = words::assumption(first, &record.trace);
    for line in remarks(record).iter().chain([&assumption]) {
        told.push_str(&wrapped(line, screen.columns));
    }
    told
}

/// Both.
pub fn needs(record: &CurveRecord, screen: Screen) -> String {
    let (run, ideal) = (run_needs(record, screen), ideal_needs(record, screen));
    let between = match run.is_empty() || ideal.is_empty() {
        true => "",
        false => "\n",
    };
    format!("{run}{between}{ideal}")
}

/// A table with the slow-down in front, and an empty line behind.
fn table(head: &[&str], rows: Vec<Vec<String>>, screen: Screen) -> String {
    let head: Vec<&str> = ["at most slower"].iter().chain(head).copied().collect();
    format!(
        "{}\n\n",
        text::folded(&head, &rows, 0, 1, Some(screen.columns))
    )
}

/// Every slow-down that was asked for under `tidemark run`, rising.
fn run_slowdowns(run: &RunNeeds) -> Vec<f64> {
    let met = run.needs.iter().map(|need| need.slowdown_percent_max);
    let others = run
        .slowdowns_percent_unmet
        .iter()
        .chain(&run.slowdowns_percent_short);
    rising(met.chain(others.copied()))
}

/// Every slow-down that was asked for under ideal policies, rising.
fn ideal_slowdowns(record: &CurveRecord) -> Vec<f64> {
    rising(record.needs.iter().map(|need| need.slowdown_percent_max))
}

fn rising(percents: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut all: Vec<f64> = percents.collect();
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
            let share = words::run_share(need, run);
            [
                amount(need.bytes, need.is_at_most),
                words::run_range(need, &record.trace),
                format!("{} %", numbers::digits(share)),
            ]
        }
        None if run.slowdowns_percent_short.contains(&percent) => {
            [words::TOO_SHORT, BLANK, BLANK].map(Into::into)
        }
        None => [words::NONE, BLANK, BLANK].map(Into::into),
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

/// The meaning of the signs in the table of ideal policies, of those that are there.
fn remarks(record: &CurveRecord) -> Vec<String> {
    let varying = policies(record)
        .into_iter()
        .filter(|need| need.window.is_some());
    let varying: Vec<String> = varying.map(|need| words::policy(&need.policy)).collect();
    let mut remarks = vec![];
    if record.needs.iter().any(|need| need.is_at_most) {
        remarks.push(words::AT_MOST.into());
    }
    if !varying.is_empty() {
        let named = varying.join(", ");
        remarks.push(format!(
            "{named}: the mean of a resident set that grows and shrinks."
        ));
    }
    remarks
}
