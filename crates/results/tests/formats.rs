//! Pages of docs/formats against the table of counters: the lists of fields on them are written
//! from it, by `make golden`.

use std::path::{Path, PathBuf};

use tidemark_core::counters::{Counter, Kind, Unit};
use tidemark_results::replay::{self, ReplayMachine, ReplayRecord};

const BEGIN: &str = "<!-- the table of counters; `make golden` writes it -->\n";
const END: &str = "<!-- end of the table -->\n";

fn page(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../docs/formats")
        .join(name)
}

fn unit(unit: Unit) -> &'static str {
    match unit {
        Unit::Pages => "pages",
        Unit::Frames => "frames",
        Unit::Faults => "faults",
        Unit::Requests => "requests",
        Unit::Messages => "messages",
        Unit::Ranges => "ranges",
        Unit::Times => "times",
        Unit::Bytes => "bytes",
        Unit::Nanoseconds => "seconds",
    }
}

fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Sum => "sum",
        Kind::Level => "level",
        Kind::Peak => "peak",
        Kind::MeasuredLevel => "level, measured",
        Kind::MeasuredPeak => "peak, measured",
    }
}

/// Checks the table of a page, of the counters that have a `field`, and the text `behind` it; or
/// writes them anew.
fn check(name: &str, field: impl Fn(Counter) -> Option<&'static str>, behind: &str) {
    let mut table = String::from(
        "| field | unit | kind | rests on | meaning |\n| --- | --- | --- | --- | --- |\n",
    );
    for counter in Counter::ALL {
        if let Some(field) = field(counter) {
            let (unit, kind) = (unit(counter.unit()), kind(counter.kind()));
            let (basis, meaning) = (counter.basis().name(), counter.meaning());
            table.push_str(&format!(
                "| `{field}` | {unit} | {kind} | {basis} | {meaning} |\n"
            ));
        }
    }
    table.push_str(behind);
    let path = page(name);
    let text = std::fs::read_to_string(&path).expect("the page is in the tree");
    let (before, rest) = text
        .split_once(BEGIN)
        .expect("the page has the table's beginning");
    let (found, after) = rest.split_once(END).expect("the page has the table's end");
    if std::env::var("TIDEMARK_GOLDEN").is_ok_and(|value| value == "write") {
        let text = format!("{before}{BEGIN}{table}{END}{after}");
        std::fs::write(&path, text).expect("the page can be written");
    } else {
        assert_eq!(
            found, table,
            "docs/formats/{name}: `make golden` writes it anew"
        );
    }
}

#[test]
fn the_page_of_runs_has_every_counter() {
    check("run-v1.md", Counter::run_name, "");
}

#[test]
fn the_page_of_replays_has_every_counter_and_column() {
    let record = ReplayRecord {
        schema: replay::SCHEMA.into(),
        tidemark: String::new(),
        traces: vec![],
        copies: 1,
        page_bytes: 4096,
        footprint_pages: 0,
        machine: ReplayMachine {
            processors: 1,
            scheduler: String::new(),
            quantum_ms: 10,
            swap_disk: String::new(),
            file_disk: None,
            compressed: None,
            wired_bytes: 0,
            seed: 1,
        },
        basis: tidemark_results::basis::of_replay(),
        runs: vec![],
        optimum: String::new(),
        notes: vec![],
    };
    let is_of_runs = |counter: &Counter| {
        counter
            .replay_name()
            .is_some_and(|_| counter.run_name() == counter.replay_name())
    };
    let shared = Counter::ALL.iter().copied().filter(is_of_runs);
    let shared: Vec<String> = shared
        .filter_map(|counter| Some(format!("`{}`", counter.replay_name()?)))
        .collect();
    let behind = format!(
        "\nAnd, as [in runs](run-v1.md#statistics): {}.\n\nCSV: `{}`.\n",
        shared.join(", "),
        record.to_csv().trim_end()
    );
    let own = |counter: Counter| counter.replay_name().filter(|_| !is_of_runs(&counter));
    check("replay-v1.md", own, &behind);
}
