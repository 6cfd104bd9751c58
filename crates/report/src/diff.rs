//! Differences of two inputs: in sentences, as a drawing for a terminal, and as one HTML page.

mod page;
mod sentences;
mod tables;

use tidemark_results::diff::DiffRecord;
use tidemark_results::text;

use crate::terminal::{Screen, wrapped};
use crate::words;

pub use page::page;
pub use sentences::findings;

/// The two inputs, what differs most in sentences, and the tables.
pub fn drawing(record: &DiffRecord, screen: Screen) -> String {
    let mut told = String::new();
    for (side, subject) in [("before", &record.before), ("after", &record.after)] {
        let line = format!("{side:<7} {}: {}", subject.file, subject.title);
        told.push_str(&format!("{}\n", words::shortened(&line, screen.columns)));
        if let Some(trace) = &subject.trace {
            told.push_str("  ");
            told.push_str(&wrapped(&words::facts(trace), screen.columns - 2));
        }
    }
    told.push('\n');
    told.push_str(&summary(record, screen));
    let width = Some(screen.columns);
    let rows = tables::measures(record);
    let table = text::folded(&tables::MEASURES, &rows, 1, 1, width);
    told.push_str(&format!("\n{table}\n"));
    for listed in [tables::processes(record), tables::regions(record)] {
        if !listed.rows.is_empty() {
            let columns: Vec<&str> = listed.columns.iter().map(String::as_str).collect();
            let table = text::folded(&columns, &listed.rows, 1, 1, width);
            told.push_str(&format!("\n{table}\n"));
        }
        let left_out = listed.left_out;
        told.push_str(&left_out.map_or(String::new(), |line| format!("{line}\n")));
    }
    for note in &record.notes {
        told.push_str(&wrapped(&format!("note: {note}"), screen.columns));
    }
    told
}

/// The differences that are largest, a paragraph each.
pub fn summary(record: &DiffRecord, screen: Screen) -> String {
    let lines = findings(record);
    let lines = lines.iter().map(|line| wrapped(line, screen.columns));
    lines.collect()
}
