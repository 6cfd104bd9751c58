//! The parts of a page that are text: answers and tables.

use tidemark_results::analysis::curve::{CurveRecord, RunNeeds};
use tidemark_results::analysis::map::MapRecord;
use tidemark_results::analysis::phases::PhasesRecord;
use tidemark_results::analysis::report::ReportRecord;
use tidemark_results::analysis::wss::WssRecord;
use tidemark_results::text;

use super::{escaped, marked};
use crate::verdict::verdict;
use crate::{footprint, numbers, regions, words};

/// The number of regions that the table lists.
pub(crate) const REGIONS: usize = 30;
/// The number of regions that are named below the curve.
const LARGEST: usize = 6;

/// The verdict, and the memory that is needed: the first answer under `tidemark run` large, in a
/// card with the others and what they assume; ideal policies small below.
pub fn needs(record: &CurveRecord) -> String {
    let sentences = verdict(record);
    let sentences = sentences
        .iter()
        .map(|sentence| format!("<p>{}</p>", marked(sentence)));
    let mut html: String = sentences.collect();
    if record.needs.is_empty() && record.run.is_none() {
        html.push_str("<p>No bound was asked for.</p>");
        return html;
    }
    if let Some(run) = &record.run {
        html.push_str(&run_card(run, record));
    }
    if let Some(first) = record.needs.first() {
        let (columns, rows) = ideal(record);
        let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
        html.push_str(&format!(
            "<div class=\"small\"><h3>Under ideal policies</h3>{}<p class=\"note\">{}</p></div>",
            table(&columns, rows.into_iter()),
            marked(&words::assumption(first, &record.trace)),
        ));
    }
    for note in words::sight(&record.trace).iter().chain(&record.notes) {
        html.push_str(&format!("<p class=\"note\">{}</p>", marked(note)));
    }
    html
}

/// The memory that ideal policies need: a column each, and a row for each slow-down.
fn ideal(record: &CurveRecord) -> (Vec<String>, Vec<Vec<String>>) {
    let mut policies: Vec<&str> = vec![];
    let mut bounds: Vec<f64> = vec![];
    for need in &record.needs {
        if !policies.contains(&need.policy.as_str()) {
            policies.push(&need.policy);
        }
        if !bounds.contains(&need.slowdown_percent_max) {
            bounds.push(need.slowdown_percent_max);
        }
    }
    bounds.sort_by(f64::total_cmp);
    let cell = |bound: f64, policy: &str| {
        let mut needs = record.needs.iter();
        let need = needs.find(|need| need.policy == policy && need.slowdown_percent_max == bound);
        need.map_or("–".into(), |need| amount(need.bytes, need.is_at_most))
    };
    let rows = bounds.iter().map(|&bound| {
        let cells = policies.iter().map(|policy| cell(bound, policy));
        [percent(bound)].into_iter().chain(cells).collect()
    });
    let names = policies.iter().map(|policy| words::policy(policy));
    let columns = ["at most slower".into()].into_iter().chain(names);
    (columns.collect(), rows.collect())
}

/// The card that leads: the first bound that is kept, and the others in a line each.
fn run_card(run: &RunNeeds, record: &CurveRecord) -> String {
    let trace = &record.trace;
    let (size, told) = match run.needs.first() {
        Some(need) => (
            amount(need.bytes, need.is_at_most),
            format!(
                "is the least memory in which it takes at most {} longer under `tidemark run`",
                percent(need.slowdown_percent_max)
            ),
        ),
        None if run.slowdowns_percent_unmet.is_empty() => (words::TOO_SHORT.into(), String::new()),
        None => (
            words::NONE.into(),
            "keeps the bounds that were asked for".into(),
        ),
    };
    let mut html = format!(
        "<div class=\"lead\"><strong>{}</strong><span>{}</span></div>",
        escaped(&size),
        marked(&told)
    );
    let without = |bounds: &[f64], told: &str| -> Vec<Vec<String>> {
        let row = |bound: &f64| {
            let cells = [percent(*bound), told.into()];
            cells.into_iter().chain(["–"; 2].map(Into::into)).collect()
        };
        bounds.iter().map(row).collect()
    };
    let short = without(&run.slowdowns_percent_short, words::TOO_SHORT);
    let unmet = without(&run.slowdowns_percent_unmet, words::NONE);
    let met = run.needs.iter().map(|need| {
        let share = words::run_share(need, run);
        vec![
            percent(need.slowdown_percent_max),
            unbroken(&amount(need.bytes, need.is_at_most)),
            unbroken(&words::run_range(need, trace)),
            percent(share),
        ]
    });
    let columns = ["at most slower", "memory", "range", "of managed"];
    html.push_str(&table(&columns, short.into_iter().chain(unmet).chain(met)));
    for line in words::run_remarks(run)
        .iter()
        .chain([&words::run_assumption(run, trace)])
    {
        html.push_str(&format!("<p class=\"note\">{}</p>", marked(line)));
    }
    html
}

/// Amounts whose numbers stay with their units, where a cell is wrapped.
fn unbroken(amounts: &str) -> String {
    let joined = amounts.replace(' ', "\u{a0}");
    joined.replace("\u{a0}to\u{a0}", " to ")
}

fn percent(value: f64) -> String {
    format!("{} %", numbers::digits(value))
}

fn amount(bytes: u64, is_at_most: bool) -> String {
    let sign = if is_at_most { "≤ " } else { "" };
    format!("{sign}{}", text::bytes(bytes))
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

/// The section of the footprint, where there is one.
pub fn footprint(report: &ReportRecord) -> String {
    let record = &report.wss;
    let Some(it) = &record.footprint else {
        return String::new();
    };
    let listed = regions::by_use(&report.map);
    let place = |label: &str| {
        let mut listed = listed.iter().take(REGIONS);
        listed.position(|region| region.label == label)
    };
    let rows = footprint::rows(it, record.trace.page_bytes);
    let rows = rows.into_iter().zip(&it.regions).map(|(row, region)| {
        let mut cells: Vec<String> = row.iter().map(|cell| escaped(cell)).collect();
        if let Some(place) = place(&region.label) {
            cells[0] = link(&format!("region-{place}"), place, &row[0]);
        }
        (String::new(), cells)
    });
    let regions = match it.regions.is_empty() {
        true => String::new(),
        false => marked_table(&footprint::COLUMNS, rows),
    };
    format!(
        "<section id=\"footprint\">\n<h2>Footprint</h2>\n<p class=\"about\">Memory touched in \
         each interval of time, and never before; all that was touched so far; and beside it what \
         is allocated (of no file) and mapped, in each process apart. {}</p>\n\
         <div class=\"tools\" data-for=\"footprint\"></div>\n\
         <div class=\"plot\" id=\"footprint-plot\"></div>\n{regions}\n</section>\n",
        escaped(&footprint::sentence(record, it)),
    )
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

/// The regions that were used most. The name of each is a link to the map, its size one to the
/// curve.
pub fn regions(record: &MapRecord) -> String {
    let regions = regions::by_use(record);
    let rows = regions.iter().take(REGIONS).enumerate();
    let rows = rows.map(|(place, region)| {
        let row = regions::row(region, record);
        let mut cells: Vec<String> = row.iter().map(|cell| escaped(cell)).collect();
        cells[0] = link("map", place, &row[0]);
        cells[2] = link("curves", place, &row[2]);
        (format!(" id=\"region-{place}\""), cells)
    });
    let mut html = marked_table(&regions::COLUMNS, rows);
    if regions.len() > REGIONS {
        let more = regions.len() - REGIONS;
        html.push_str(&format!(
            "<p class=\"note\">And {more} smaller regions.</p>"
        ));
    }
    html
}

/// The largest regions, as links that mark their sizes in the curve.
pub fn largest(record: &MapRecord) -> String {
    let regions = regions::by_use(record);
    let links = regions.iter().take(LARGEST).enumerate();
    let links = links.map(|(place, region)| {
        let size = text::bytes(record.trace.bytes(region.touched));
        let name = words::region(region, record);
        link("curves", place, &format!("{name} {size}"))
    });
    let links: Vec<String> = links.collect();
    match links.is_empty() {
        true => String::new(),
        false => format!(
            "<p class=\"links\">Mark the size of a region: {}</p>\n",
            links.join(" ")
        ),
    }
}

/// A link to a part of the page, with the region that is to be shown there.
fn link(part: &str, place: usize, name: &str) -> String {
    let name = escaped(name);
    format!("<a href=\"#{part}\" data-region=\"{place}\">{name}</a>")
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
    let safe = |row: Vec<String>| row.iter().map(|field| escaped(field)).collect();
    marked_table(columns, rows.map(|row| (String::new(), safe(row))))
}

/// A table of rows, each with its attributes, whose cells are HTML.
fn marked_table(columns: &[&str], rows: impl Iterator<Item = (String, Vec<String>)>) -> String {
    let mut html = String::from("<div class=\"table\" tabindex=\"0\"><table><thead><tr>");
    for column in columns {
        html.push_str(&format!("<th>{}</th>", escaped(column)));
    }
    html.push_str("</tr></thead><tbody>");
    for (attributes, row) in rows {
        html.push_str(&format!("<tr{attributes}>"));
        for field in row {
            html.push_str(&format!("<td>{field}</td>"));
        }
        html.push_str("</tr>");
    }
    html + "</tbody></table></div>"
}
