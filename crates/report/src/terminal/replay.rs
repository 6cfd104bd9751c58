//! Replays as tables.

use tidemark_results::replay::{ReplayRecord, Run};
use tidemark_results::text;

use crate::{numbers, words};

/// The runs, a line a run, and what the numbers mean; in a terminal of that width, if it is one.
pub fn replay(record: &ReplayRecord, width: Option<usize>) -> String {
    let rows: Vec<Vec<String>> = record.runs.iter().map(|run| row(run, record)).collect();
    let table = text::folded(&columns(record), &rows, 1, 2, width);
    let mut told = format!(
        "{}\n{}\n{table}\n",
        words::replayed(record),
        words::machine(record)
    );
    if record.runs.len() == 1 && record.runs[0].programs.len() > 1 {
        told.push_str(&programs(&record.runs[0]));
    }
    told.push_str(&format!("optimum: {}\n", record.optimum));
    for note in &record.notes {
        told.push_str(&format!("note: {note}\n"));
    }
    told
}

fn columns(record: &ReplayRecord) -> Vec<&'static str> {
    let mut columns = vec![
        "system",
        "memory",
        "elapsed",
        "busy",
        "page-ins",
        "x optimum",
        "page-outs",
        "soft faults",
        "read ahead: used",
        "unused",
        "not known",
        "rejected",
    ];
    if record.machine.compressed.is_some() {
        columns.extend(["decompressed", "from disk"]);
    }
    if has_several(record) {
        columns.push("fairness");
    }
    columns
}

fn row(run: &Run, record: &ReplayRecord) -> Vec<String> {
    let used = &run.processor;
    let worked = used.user_s + used.system_s;
    let share = worked / (worked + used.idle_s).max(1e-12);
    let mut row = vec![
        words::system(run),
        text::bytes(run.memory_bytes),
        numbers::seconds(run.elapsed_s),
        format!("{} %", numbers::digits(share * 100.0)),
        text::count(run.page_ins),
        words::over_optimal(run),
        text::count(run.page_outs),
        text::count(run.soft_faults),
        text::count(run.read_ahead_used),
        text::count(run.read_ahead_wasted),
        text::count(run.read_ahead_unknown),
        text::count(run.refusals),
    ];
    if record.machine.compressed.is_some() {
        row.push(text::count(run.decompressed_pages));
        row.push(text::count(run.bytes_read / record.page_bytes.max(1)));
    }
    if has_several(record) {
        row.push(format!("{:.2}", run.fairness));
    }
    row
}

fn has_several(record: &ReplayRecord) -> bool {
    record.runs.iter().any(|run| run.programs.len() > 1)
}

/// The outcome of each program.
fn programs(run: &Run) -> String {
    let columns = [
        "program", "end", "worked", "waited", "ready", "faults", "slower",
    ];
    let mut table = text::table(&columns, 1);
    for program in &run.programs {
        table.add_row([
            program.name.clone(),
            numbers::seconds(program.end_s),
            numbers::seconds(program.user_s + program.system_s),
            numbers::seconds(program.page_wait_s),
            numbers::seconds(program.ready_s),
            text::count(program.faults),
            format!("{} x", numbers::digits(program.slow_down())),
        ]);
    }
    format!("{table}\n")
}
