//! A comparison as one HTML page that needs nothing but itself.

use serde_json::{Value, json};
use tidemark_results::analysis::curve::Point;
use tidemark_results::diff::DiffRecord;

use super::tables::Listed;
use super::{sentences, tables};
use crate::page::payload::pack;
use crate::page::tables::table;
use crate::page::{Content, assembled, escaped, marked};
use crate::words;

const DIFF: Content<'_> = Content {
    main: include_str!("diff.html"),
    style: include_str!("diff.css"),
    scripts: &[include_str!("diff.js")],
};

/// The page.
pub fn page(record: &DiffRecord) -> String {
    let findings = sentences::findings(record);
    let findings = findings
        .iter()
        .map(|line| format!("<p>{}</p>", marked(line)));
    let notes = record.notes.iter();
    let notes = notes.map(|note| format!("<p class=\"note\">{}</p>", marked(note)));
    let title = format!("{} → {}", record.before.file, record.after.file);
    let parts = vec![
        ("title", escaped(&title)),
        ("facts", escaped(&facts(record))),
        ("findings", findings.collect()),
        ("notes", notes.collect()),
        (
            "measures",
            table(&tables::MEASURES, tables::measures(record).into_iter()),
        ),
        ("curves", curves(record)),
        ("processes", processes(record)),
        ("regions", regions(record)),
        ("version", escaped(&record.tidemark)),
    ];
    assembled(&DIFF, parts, &pack(&payload(record), &[]))
}

fn facts(record: &DiffRecord) -> String {
    let sides = [("before", &record.before), ("after", &record.after)];
    let told = sides.map(|(side, subject)| {
        let facts = subject.trace.as_ref();
        let facts = facts.map_or(String::new(), |trace| format!(" · {}", words::facts(trace)));
        format!("{side}: {}{facts}", subject.title)
    });
    told.join(" — ")
}

/// The place of the chart of misses by memory, where there are curves.
fn curves(record: &DiffRecord) -> String {
    match record.curves.is_empty() {
        true => String::new(),
        false => "<section id=\"curves\">\n<h2>Misses by memory</h2>\n<p class=\"about\">Of both, \
                  for every size of memory at once. Dashed lines are before.</p>\n<div \
                  class=\"tools\" data-for=\"curves\"></div>\n<div class=\"plot\" \
                  id=\"curve-plot\"></div>\n</section>"
            .into(),
    }
}

fn regions(record: &DiffRecord) -> String {
    let about = "Pages that were touched, references, and misses under LRU, by what is mapped \
                 there. Regions are the same if they have one name.";
    match record.regions.is_empty() {
        true => String::new(),
        false => section("regions", "Regions", about, &tables::regions(record)),
    }
}

fn processes(record: &DiffRecord) -> String {
    let about = "Pages that each touched, references, and misses under LRU of all together. \
                 Processes are the same that run programs of one name, in their order.";
    match record.processes.is_empty() {
        true => String::new(),
        false => section("processes", "Processes", about, &tables::processes(record)),
    }
}

fn section(id: &str, title: &str, about: &str, listed: &Listed) -> String {
    let columns: Vec<&str> = listed.columns.iter().map(String::as_str).collect();
    let left_out = listed.left_out.iter();
    let left_out = left_out.map(|line| format!("<p class=\"note\">{}</p>", escaped(line)));
    let left_out: String = left_out.collect();
    format!(
        "<section id=\"{id}\">\n<h2>{title}</h2>\n<p class=\"about\">{about}</p>\n\
         {}{left_out}\n</section>",
        table(&columns, listed.rows.iter().cloned())
    )
}

fn payload(record: &DiffRecord) -> String {
    let page_bytes = record.page_bytes();
    let line = |policy: &str, side: &str, points: &[Point], place: usize| -> Value {
        let mut points: Vec<&Point> = points.iter().collect();
        points.sort_by(|one, other| one.memory_pages().total_cmp(&other.memory_pages()));
        points.dedup_by(|next, kept| next.memory_pages() == kept.memory_pages());
        let memory = |point: &&Point| (point.memory_pages() * page_bytes as f64).round();
        json!({
            "name": format!("{}, {side}", words::policy(policy)),
            "ink": format!("--s{}", place % 7),
            "dashed": side == "before",
            "memory": points.iter().map(memory).collect::<Vec<f64>>(),
            "misses": points.iter().map(|point| point.misses).collect::<Vec<u64>>(),
        })
    };
    let curves = record.curves.iter().enumerate().flat_map(|(place, pair)| {
        let before = line(&pair.policy, "before", &pair.before, place);
        [before, line(&pair.policy, "after", &pair.after, place)]
    });
    json!({ "page_bytes": page_bytes, "curves": curves.collect::<Vec<Value>>() }).to_string()
}
