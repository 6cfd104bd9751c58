//! The parts of a page that are text: answers and tables.

use tidemark_results::analysis::curve::CurveRecord;
use tidemark_results::analysis::map::MapRecord;
use tidemark_results::analysis::phases::PhasesRecord;
use tidemark_results::analysis::report::ReportRecord;
use tidemark_results::analysis::wss::WssRecord;
use tidemark_results::text;

use super::escaped;
use crate::{numbers, regions, words};

/// The number of regions that the table lists.
const REGIONS: usize = 30;

/// The memory that is needed: the answers large, what they assume below.
pub fn needs(record: &CurveRecord) -> String {
    if record.needs.is_empty() && record.run.is_none() {
        return "<p>No bound was asked for.</p>".into();
    }
    let mut html = String::from("<div class=\"answers\">");
    for need in record.run.iter().flat_map(|run| &run.needs) {
        html.push_str(&format!(
            "<div><strong>{}{}</strong>for at most {} % slow-down under <code>tidemark \
             run</code><br><span>{}</span></div>",
            if need.is_at_most { "≤ " } else { "" },
            text::bytes(need.bytes),
            numbers::digits(need.slowdown_percent_max),
            escaped(&words::run_range(need, &record.trace)),
        ));
    }
    for need in &record.needs {
        let share = need.pages as f64 * 100.0 / record.trace.footprint().max(1) as f64;
        html.push_str(&format!(
            "<div><strong>{}{}</strong>for at most {} % slow-down under an ideal {}<br><span>{} % \
             of what is used, {} page-ins</span></div>",
            if need.is_at_most { "≤ " } else { "" },
            text::bytes(need.bytes),
            numbers::digits(need.slowdown_percent_max),
            escaped(&words::policy(&need.policy)),
            numbers::digits(share),
            text::count(need.page_ins),
        ));
    }
    html.push_str("</div>");
    for line in words::assumptions(record) {
        html.push_str(&format!("<p class=\"note\">{}</p>", escaped(&line)));
    }
    for note in words::sight(&record.trace).iter().chain(&record.notes) {
        html.push_str(&format!("<p class=\"note\">{}</p>", escaped(note)));
    }
    html
}

/// The windows of the working set.
pub fn windows(record: &WssRecord) -> String {
    let page_bytes = record.trace.page_bytes as f64;
    let bytes = |pages: f64| numbers::bytes(pages * page_bytes);
    let rows = record.windows.iter().map(|line| {
        vec![
            numbers::time(line.window as f64, record.trace.time_unit),
            bytes(line.mean),
            bytes(line.deviation),
            bytes(line.peak as f64),
        ]
    });
    table(&["window", "mean", "standard deviation", "peak"], rows)
}

/// The levels of phases.
pub fn phases(record: &PhasesRecord) -> String {
    if record.levels.is_empty() {
        return "<p>No set of pages was kept to for long enough to be called a phase.</p>".into();
    }
    let bytes = |pages: f64| numbers::bytes(pages * record.trace.page_bytes as f64);
    let unit = record.trace.time_unit;
    let rows = record.levels.iter().rev().map(|level| {
        let held: u64 = level
            .phases
            .iter()
            .map(|phase| phase.until - phase.from)
            .sum();
        let count = level.phases.len().max(1) as f64;
        let new: u64 = level.phases.iter().map(|phase| phase.pages_new).sum();
        vec![
            format!(
                "{}–{}",
                bytes(level.pages_from as f64),
                bytes(level.pages_to as f64 + 1.0)
            ),
            level.phases.len().to_string(),
            format!("{} %", numbers::digits(level.share * 100.0)),
            bytes(level.pages_mean),
            numbers::time(held as f64 / count, unit),
            bytes(new as f64 / count),
        ]
    });
    let columns = [
        "locality",
        "phases",
        "of the time",
        "mean size",
        "mean stay",
        "new at entry",
    ];
    table(&columns, rows)
}

/// The regions that were used most.
pub fn regions(record: &MapRecord) -> String {
    let regions = regions::by_use(record);
    let rows = regions.iter().take(REGIONS);
    let rows = rows.map(|region| regions::row(region, record).to_vec());
    let mut html = table(&regions::COLUMNS, rows);
    if regions.len() > REGIONS {
        let more = regions.len() - REGIONS;
        html.push_str(&format!(
            "<p class=\"note\">And {more} smaller regions.</p>"
        ));
    }
    html
}

/// The cost of memory over time.
pub fn space_time(record: &ReportRecord) -> String {
    let costs = &record.space_time;
    if costs.rows.is_empty() {
        return "<p>Not computed.</p>".into();
    }
    let page_bytes = record.trace.page_bytes as f64;
    // Byte-seconds, written as memory held for a second.
    let held = |page_ns: f64| format!("{}·s", numbers::bytes(page_ns * page_bytes / 1e9));
    let rows = costs.rows.iter().map(|row| {
        let window = row.window.map(|window| numbers::count(window as f64));
        vec![
            words::policy(&row.policy),
            numbers::bytes(row.pages * page_bytes),
            window.unwrap_or_else(|| "–".into()),
            text::count(row.misses),
            held(row.running),
            held(row.waiting),
            held(row.managing),
            held(row.total()),
            format!("{} ×", numbers::digits(row.total() / row.running.max(1e-9))),
        ]
    });
    let columns = [
        "policy",
        "mean memory",
        "window",
        "misses",
        "running",
        "waiting for pages",
        "managing",
        "space-time",
        "over Denning's",
    ];
    let seconds = |ns: f64| numbers::seconds(ns / 1e9);
    let unit = record.trace.time_unit.name().trim_end_matches('s');
    format!(
        "<p class=\"about\">Memory times the time it is held, at each policy's best point. \
         Denning's approximation is the column “running” alone: it leaves out the waiting and the \
         policy's own work.</p>{}<p class=\"note\">Assumed: one {unit} takes {}, a page-in {}, \
         a first touch {}, a choice {}, a look at a page {}.</p>",
        table(&columns, rows),
        seconds(costs.time_unit_ns),
        seconds(costs.page_in_ns),
        seconds(costs.first_touch_ns),
        seconds(costs.choice_ns),
        seconds(costs.look_ns),
    )
}

/// A table: columns by their names, and rows.
pub(crate) fn table(columns: &[&str], rows: impl Iterator<Item = Vec<String>>) -> String {
    let mut html = String::from("<div class=\"table\"><table><thead><tr>");
    for column in columns {
        html.push_str(&format!("<th>{}</th>", escaped(column)));
    }
    html.push_str("</tr></thead><tbody>");
    for row in rows {
        html.push_str("<tr>");
        for field in row {
            html.push_str(&format!("<td>{}</td>", escaped(&field)));
        }
        html.push_str("</tr>");
    }
    html + "</tbody></table></div>"
}
