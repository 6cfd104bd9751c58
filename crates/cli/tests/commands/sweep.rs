//! `tidemark sweep`: all combinations as one table, gone on with where it was left.

use serde_json::Value;

use crate::support::{Folder, stderr, text, tidemark};

/// A loop of 100 pages and a walk over 300, in `folder`.
fn traces(folder: &Folder) -> [String; 2] {
    [("loop", "100"), ("sweep", "300")].map(|(pattern, pages)| {
        let path = folder.path(&format!("{pattern}.tide"));
        let generated = [
            "generate",
            pattern,
            "--pages",
            pages,
            "--references",
            "5000",
        ];
        text(&[&generated[..], &["-o", &path]].concat());
        path
    })
}

fn lines(csv: &str) -> Vec<Vec<&str>> {
    csv.lines().map(|line| line.split(',').collect()).collect()
}

#[test]
fn every_combination_is_a_row_with_the_misses_of_curve() {
    let folder = Folder::new("sweep-rows");
    let [first, second] = traces(&folder);
    let policies = ["lru", "opt", "ws", "fifo"];
    let names = policies.join(",");
    let csv = text(&[
        "sweep",
        &first,
        &second,
        "--policies",
        &names,
        "--memory",
        "50%,40",
        "--csv",
    ]);
    let rows = lines(&csv);
    assert_eq!(rows.len(), 1 + 2 * policies.len() * 2);
    for (trace, pages) in [(&first, "50"), (&first, "40"), (&second, "150")] {
        let curve = text(&["curve", trace, "--policies", &names, "--at", pages, "--csv"]);
        for point in &lines(&curve)[1..] {
            let row = rows
                .iter()
                .find(|row| row[0] == *trace && row[1] == point[0] && row[7] == pages)
                .unwrap();
            assert_eq!(row[8], point[3], "{row:?} {point:?}");
        }
    }
}

#[test]
fn rows_that_are_there_are_not_counted_again_in_either_form() {
    for form in ["csv", "json"] {
        let folder = Folder::new(&format!("sweep-resume-{form}"));
        let [first, second] = traces(&folder);
        let table = folder.path(&format!("table.{form}"));
        text(&["sweep", &first, "--memory", "50", "-o", &table]);
        // A number that nothing counts shows that the row was taken as it was.
        let before = std::fs::read_to_string(&table).unwrap();
        let (from, to) = match form {
            "csv" => (",50,5000,", ",50,4999,"),
            _ => ("\"misses\":5000", "\"misses\":4999"),
        };
        assert!(before.contains(from), "{before}");
        std::fs::write(&table, before.replace(from, to)).unwrap();
        let more = ["sweep", &second, &first, "--memory", "50,60", "-o", &table];
        let output = tidemark(&more);
        assert!(output.status.success(), "{}", stderr(&output));
        assert!(
            stderr(&output).contains("8 rows, 2 of them there already"),
            "{}",
            stderr(&output)
        );
        let after = std::fs::read_to_string(&table).unwrap();
        assert!(after.contains(to), "{after}");
        // What is not asked for this time stays.
        text(&["sweep", &second, "--memory", "60", "-o", &table]);
        let kept = std::fs::read_to_string(&table).unwrap();
        assert_eq!(kept.matches("loop.tide").count(), 4, "{kept}");
    }
}

#[test]
fn a_trace_that_has_changed_is_counted_again() {
    let folder = Folder::new("sweep-changed");
    let [first, second] = traces(&folder);
    let table = folder.path("table.csv");
    text(&["sweep", &first, "--memory", "50", "-o", &table]);
    std::fs::copy(&second, &first).unwrap();
    let output = tidemark(&["sweep", &first, "--memory", "50", "-o", &table]);
    assert_eq!(stderr(&output), "tidemark: 2 rows\n");
    let after = std::fs::read_to_string(&table).unwrap();
    assert!(after.contains(",300,50,"), "{after}");
}

#[test]
fn failures_are_rows_and_are_counted_again_once_they_can_be() {
    let folder = Folder::new("sweep-failures");
    let [first, _] = traces(&folder);
    let missing = folder.path("missing.tide");
    let table = folder.path("table.csv");
    let asked = [
        "sweep",
        &first,
        &missing,
        "--policies",
        "lru,ws",
        "--memory",
        "1,2T",
        "-o",
    ];
    let asked = [&asked[..], &[&table]].concat();
    let output = tidemark(&asked);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("8 rows, "), "{}", stderr(&output));
    let csv = std::fs::read_to_string(&table).unwrap();
    assert_eq!(csv.lines().count(), 9);
    assert_eq!(
        csv.matches(",no such file or directory").count(),
        4,
        "{csv}"
    );
    std::fs::copy(&first, &missing).unwrap();
    let output = tidemark(&[&asked[..], &["--json"]].concat());
    let record: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(record["schema"], "tidemark.sweep.v1");
    let rows = record["rows"].as_array().unwrap();
    let of_missing = |row: &&Value| row["trace"] == missing.as_str();
    let counted = rows.iter().filter(of_missing);
    assert_eq!(
        counted.filter(|row| row["misses"].is_u64()).count(),
        4,
        "{record}"
    );
}

#[test]
fn found_a_wrong_order_is_refused_in_one_line_before_anything_is_counted() {
    let folder = Folder::new("sweep-refusals");
    let [first, second] = traces(&folder);
    let other = folder.program("other.csv", b"a,b\n1,2\n");
    for (arguments, told) in [
        (vec!["--policies", "lur"], "`lur`"),
        (vec!["--memory", "0"], "`--memory 0`: less than a page"),
        (vec!["--memory", "5x"], "`--memory 5x`"),
        (vec!["--jobs", "0"], "`--jobs 0`"),
        (vec!["-o", &first], "which is read"),
        (vec!["-o", &second], "is no table of `tidemark sweep`"),
        (vec!["-o", &other], "its first line is `a,b`"),
    ] {
        let output = tidemark(&[&["sweep", first.as_str()], &arguments[..]].concat());
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let line = stderr(&output);
        assert!(line.contains(told) && line.lines().count() == 1, "{line}");
    }
}
