//! The table of `bench page-in`, for people.

use tidemark_results::text::{bytes, folded};

use super::record::{PageInRecord, Row, beside_name, work_name};

/// Draws the record, at most `width` columns wide if there is one.
pub fn text(record: &PageInRecord, width: Option<usize>) -> String {
    let columns = [
        "each",
        "with",
        "by",
        "processor µs",
        "ratio",
        "elapsed µs",
        "program",
        "kernel",
        "engine",
        "kernel",
        "calls",
        "instructions",
        "pages",
        "others",
    ];
    let rows: Vec<Vec<String>> = record.rows.iter().map(row).collect();
    let table = folded(&columns, &rows, 3, 2, width);
    let rounds = match record.rounds {
        1 => "1 round".to_owned(),
        rounds => format!("{rounds} rounds"),
    };
    let packed = record.packed_percent;
    let packed = packed.map_or(String::new(), |percent| {
        format!(", packed to {percent:.0} %")
    });
    let mut text = format!(
        "page-in: {} of records{packed}, in {}; {rounds}, {} processors\n{table}\n",
        bytes(record.size_bytes),
        bytes(record.memory_bytes),
        record.processors,
    );
    text.push_str(&format!(
        "LZ4 by itself: {:.1} µs to unpack a page, {:.1} to pack it\n",
        record.unpack_us, record.pack_us
    ));
    for row in record.rows.iter().filter(|row| row.system_calls.is_some()) {
        text.push_str(&calls(row));
    }
    for reason in &record.not_counted {
        text.push_str(&format!("not counted: {reason}\n"));
    }
    for left_out in &record.left_out {
        text.push_str(&format!(
            "{} failed in {} of {}: {}\n",
            left_out.name, left_out.rounds_failed, rounds, left_out.reason
        ));
    }
    text
}

fn row(row: &Row) -> Vec<String> {
    let us = |us: f64| format!("{us:.1}");
    let maybe = |number: Option<f64>, digits: usize| match number {
        Some(number) => format!("{number:.digits$}"),
        None => "-".to_owned(),
    };
    vec![
        work_name(row.work).to_owned(),
        match row.busy_percent {
            Some(percent) => format!("{} ({percent:.0} %)", beside_name(row.beside)),
            None => beside_name(row.beside).to_owned(),
        },
        row.by.to_owned(),
        us(row.processor_us),
        maybe(row.ratio, 2),
        us(row.elapsed_us),
        us(row.program_user_us),
        us(row.program_system_us),
        maybe(row.engine_user_us, 1),
        maybe(row.engine_system_us, 1),
        maybe(row.system_calls, 2),
        maybe(row.instructions, 0),
        format!("{:.2}", row.pages),
        format!("{:.0} %", row.others_percent),
    ]
}

/// The line with the system calls of a row, the most frequent first.
fn calls(row: &Row) -> String {
    let mut names: Vec<(&String, &f64)> = row.system_calls_by_name.iter().collect();
    names.sort_by(|left, right| right.1.total_cmp(left.1));
    let named: f64 = names.iter().map(|(_, count)| **count).sum();
    let rest = row.system_calls.unwrap_or(0.0) - named;
    let mut parts: Vec<String> = { names }
        .iter()
        .map(|(name, count)| format!("{name} {count:.2}"))
        .collect();
    if rest >= 0.005 {
        parts.push(format!("others {rest:.2}"));
    }
    format!(
        "calls, {}, {}, {}: {}\n",
        work_name(row.work),
        beside_name(row.beside),
        row.by,
        parts.join(", ")
    )
}
