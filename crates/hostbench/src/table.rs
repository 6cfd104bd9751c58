//! The table of a benchmark, for people.

use tidemark_results::text::{bytes, count, folded};

use crate::record::{BenchRecord, ContenderRecord, LeftOut};

/// Draws the record, at most `width` columns wide if there is one.
pub fn text(record: &BenchRecord, width: Option<usize>) -> String {
    let mut columns = vec![
        "contender",
        "median s",
        "min s",
        "max s",
        "ratio",
        "fill s",
        "page-ins",
        "page-outs",
    ];
    if record.optimal_page_ins.is_some() {
        columns.push("x optimum");
    }
    let contenders = record.contenders.iter();
    let rows: Vec<Vec<String>> = contenders
        .map(|contender| row(contender, record.optimal_page_ins))
        .collect();
    let table = folded(&columns, &rows, 1, 1, width);
    let mut text = format!("{}\n{table}\n", headline(record));
    if let Some(optimal) = record.optimal_page_ins {
        // Processes that go one after the other have more memory each than those in step.
        let if_in_step = match record.procs {
            1 => "",
            _ => "; processes that are not in step may do with fewer",
        };
        text.push_str(&format!(
            "optimum: {} page-ins (first touches not counted{if_in_step})\n",
            count(optimal)
        ));
    }
    for LeftOut {
        name,
        rounds_failed,
        reason,
    } in &record.left_out
    {
        let rounds = record.rounds;
        text.push_str(&format!(
            "{name} failed in {rounds_failed} of {rounds} rounds: {reason}\n"
        ));
    }
    text
}

fn headline(record: &BenchRecord) -> String {
    let each = if record.procs > 1 {
        format!("{} x ", record.procs)
    } else {
        String::new()
    };
    let size = match record.size_bytes {
        0 => String::new(),
        size => format!(" {each}{}", bytes(size)),
    };
    let rounds = if record.rounds == 1 {
        "round"
    } else {
        "rounds"
    };
    let memory = bytes(record.memory_bytes);
    format!(
        "{}{size} in {memory}, {} {rounds}",
        record.workload, record.rounds
    )
}

fn row(contender: &ContenderRecord, optimal: Option<u64>) -> Vec<String> {
    let name = match contender.page_cluster {
        Some(page_cluster) => format!("{} (page-cluster {page_cluster})", contender.name),
        None => contender.name.clone(),
    };
    let mut row = vec![
        name,
        format!("{:.2}", contender.elapsed_s),
        format!("{:.2}", contender.elapsed_min_s),
        format!("{:.2}", contender.elapsed_max_s),
        format!("{:.2}", contender.ratio),
        format!("{:.2}", contender.fill_s),
        count(contender.page_ins),
        count(contender.page_outs),
    ];
    match optimal {
        Some(0) if contender.page_ins > 0 => row.push("-".to_owned()),
        Some(0) => row.push("1.00".to_owned()),
        Some(optimal) => row.push(format!("{:.2}", contender.page_ins as f64 / optimal as f64)),
        None => {}
    }
    row
}
