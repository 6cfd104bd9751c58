//! Comparisons of predictions with what came of them, as tables.

use tidemark_results::compare::{Case, CompareRecord, Counts, Decisions, ROWS, Row};
use tidemark_results::text;

use crate::numbers;

/// The comparison, a table for each case, and what the numbers mean.
pub fn compare(record: &CompareRecord) -> String {
    let mut told = format!(
        "{} · {} of managed memory",
        record.command.join(" "),
        text::bytes(record.footprint_pages * record.page_bytes),
    );
    if record.instruction_ps > 0 && !record.is_in_step {
        let ns = record.instruction_ps as f64 / 1000.0;
        told.push_str(&format!(" · {ns:.2} ns an instruction"));
    }
    told.push('\n');
    for case in &record.cases {
        told.push_str(&tell_case(case, record));
    }
    for note in &record.notes {
        told.push_str(&format!("note: {note}\n"));
    }
    told
}

fn tell_case(case: &Case, record: &CompareRecord) -> String {
    let whole_bytes = (record.footprint_pages * record.page_bytes).max(1);
    let mut table = text::table(&columns(case), 1);
    for &row in ROWS {
        // Time in step is of no length that could be compared.
        let is_meant = match row.0 {
            "elapsed" => !record.is_in_step,
            "decompressed" => record.store != "file",
            _ => true,
        };
        if is_meant {
            table.add_row(cells(case, row));
        }
    }
    let mut told = format!(
        "\n{}, store {}, in {} ({:.0} %) · optimum {} page-ins\n{table}\n",
        case.policy,
        record.store,
        text::bytes(case.memory_bytes),
        case.memory_bytes as f64 / whole_bytes as f64 * 100.0,
        text::count(case.optimal_page_ins),
    );
    if let [least, .., most] = &case.predictions[..] {
        let live = case.median(|counts| counts.page_ins as f64);
        let is_inside = (least.page_ins as f64..=most.page_ins as f64).contains(&live);
        told.push_str(&format!(
            "page-ins of {} predictions, each with other delays of the disk: {} to {}; {}how far \
             off they are for other reasons is not known\n",
            case.predictions.len(),
            text::count(least.page_ins),
            text::count(most.page_ins),
            if is_inside {
                ""
            } else {
                "live runs lie outside: "
            },
        ));
    }
    if let Some(decisions) = &case.decisions {
        told.push_str(&tell_decisions("decisions", decisions));
    }
    if let Some(decisions) = &case.suspensions {
        told.push_str(&tell_decisions("decisions of load control", decisions));
    }
    told
}

fn columns(case: &Case) -> Vec<&'static str> {
    let mut columns = vec!["", "predicted", "live", "difference"];
    if case.live.len() > 1 {
        columns[2] = "live, median";
        columns.extend(["least", "most"]);
    }
    columns
}

fn cells(case: &Case, (name, part): Row) -> Vec<String> {
    let told = |value: f64| match name {
        "elapsed" => numbers::seconds(value),
        "peak resident" | "read from disk" | "written to disk" => text::bytes(value as u64),
        _ => text::count(value as u64),
    };
    let mut cells = vec![
        name.to_owned(),
        told(part(&case.predicted)),
        told(case.median(part)),
        difference(case, part),
    ];
    if case.live.len() > 1 {
        let (least, most) = case.spread(part);
        cells.extend([told(least), told(most)]);
    }
    cells
}

fn difference(case: &Case, part: fn(&Counts) -> f64) -> String {
    match case.difference(part) {
        Some(share) => format!("{:+.1} %", share * 100.0),
        None => "–".into(),
    }
}

fn tell_decisions(what: &str, decisions: &Decisions) -> String {
    let Some(first) = &decisions.first_difference else {
        return format!(
            "{what}: the same, {} of them\n",
            text::count(decisions.live)
        );
    };
    let mut told = format!(
        "{what}: they part at {} of {} predicted and {} live\n",
        text::count(first.line),
        text::count(decisions.predicted),
        text::count(decisions.live),
    );
    let columns = [
        ("    both", &first.before),
        ("    lab ", &first.predicted),
        ("    live", &first.live),
    ];
    for (who, lines) in columns {
        for line in lines {
            told.push_str(&format!("{who}  {line}\n"));
        }
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(live: &[u64], decisions: Option<Decisions>) -> CompareRecord {
        let counts = |page_ins| Counts {
            page_ins,
            ..Counts::default()
        };
        CompareRecord {
            schema: tidemark_results::compare::SCHEMA.into(),
            tidemark: "0".into(),
            command: vec!["sort".into(), "x".into()],
            page_bytes: 4096,
            records: 5,
            footprint_pages: 2048,
            processes: 1,
            disk: "ssd".into(),
            store: "file".into(),
            instruction_ps: 284,
            is_in_step: decisions.is_some(),
            cases: vec![Case {
                policy: "clock".into(),
                memory_bytes: 4 << 20,
                optimal_page_ins: 50,
                predicted: counts(95),
                predictions: [92, 95, 99].map(counts).to_vec(),
                live: live.iter().map(|&page_ins| counts(page_ins)).collect(),
                decisions,
                suspensions: None,
            }],
            notes: vec!["a note".into()],
        }
    }

    #[test]
    fn a_case_has_a_row_for_each_count() {
        let told = compare(&record(&[100, 110, 90], None));
        for part in [
            "sort x · 8 MiB of managed memory · 0.28 ns an instruction\n",
            "clock, store file, in 4 MiB (50 %) · optimum 50 page-ins",
            "-5.0 %",
            "page-ins of 3 predictions, each with other delays of the disk: 92 to 99; live runs \
             lie outside: how far off they are for other reasons is not known\n",
            "least",
            "note: a note",
        ] {
            assert!(told.contains(part), "`{part}` is not in: {told}");
        }
        assert!(!compare(&record(&[100], None)).contains("least"));
    }

    #[test]
    fn the_first_difference_has_its_context() {
        let told = |lab, live| compare(&record(&[1], Some(Decisions::of_logs(lab, live))));
        assert!(told("a\nb", "a\nb").contains("decisions: the same, 2 of them"));
        let parted = told("drop 0:1\nin 0:5", "drop 0:1\nin 0:7");
        for part in [
            "part at 2",
            "both  drop 0:1",
            "lab   in 0:5",
            "live  in 0:7",
        ] {
            assert!(parted.contains(part), "`{part}` is not in: {parted}");
        }
    }
}
