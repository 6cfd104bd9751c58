//! A sweep in a terminal: one table, and below it why rows failed.

use tidemark_results::analysis::sweep::{SweepRecord, SweepRow};
use tidemark_results::text;

use crate::terminal::{Screen, wrapped};

/// The columns of the table.
const COLUMNS: [&str; 6] = ["trace", "policy", "memory", "in bytes", "misses", "of all"];
/// A row that failed.
const BLANK: &str = "–";

/// The table.
pub fn sweep(record: &SweepRecord, screen: Screen) -> String {
    let rows: Vec<Vec<String>> = record.rows.iter().map(cells).collect();
    let table = text::folded(&COLUMNS, &rows, 2, 3, Some(screen.columns));
    let failures = failures(record).into_iter();
    let failures = failures.map(|(trace, error, rows)| {
        let rows = match rows {
            1 => "a row".into(),
            rows => format!("{rows} rows"),
        };
        wrapped(&format!("{rows} of `{trace}`: {error}"), screen.columns)
    });
    format!("{table}\n{}", failures.collect::<String>())
}

/// The reasons of rows that failed: trace, error, and how many rows have it, in order.
fn failures(record: &SweepRecord) -> Vec<(&str, &str, usize)> {
    let mut found: Vec<(&str, &str, usize)> = vec![];
    for row in &record.rows {
        let Some(error) = row.error.as_deref() else {
            continue;
        };
        let known = found
            .iter_mut()
            .find(|(trace, told, _)| (*trace, *told) == (&row.trace, error));
        match known {
            Some((.., rows)) => *rows += 1,
            None => found.push((&row.trace, error, 1)),
        }
    }
    found
}

fn cells(row: &SweepRow) -> Vec<String> {
    let mut cells = vec![row.trace.clone(), row.policy.clone(), row.memory.clone()];
    match &row.counted {
        Some(it) => cells.extend([
            text::bytes(it.pages * it.page_bytes),
            text::count(it.misses),
            format!("{:.3} %", it.miss_ratio * 100.0),
        ]),
        None => cells.extend([BLANK, "failed", BLANK].map(str::to_owned)),
    }
    cells
}
