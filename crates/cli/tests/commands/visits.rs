//! Traces of caches whose visits want several objects at once: import, and `curve --batch`.

use std::process::Command;

use serde_json::Value;

use crate::support::{Folder, TIDEMARK, stderr, tidemark};

const SAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/samples/visits");

/// Imports `lines` with these columns, and tells the trace's path, or the refusal.
fn import(folder: &Folder, lines: &str, columns: &str) -> Result<String, String> {
    let (csv, trace) = (folder.path("visits.csv"), folder.path("visits.tide"));
    std::fs::write(&csv, lines).unwrap();
    let output = tidemark(&[
        "import",
        &csv,
        "-o",
        &trace,
        "--from",
        "csv",
        "--columns",
        columns,
    ]);
    match output.status.success() {
        true => Ok(trace),
        false => Err(stderr(&output)),
    }
}

/// The table that an independent script counts, if it and the command agree on every number.
fn counted_twice(name: &str) -> String {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../bench/compare-visits.py");
    let output = Command::new("python3")
        .args([script, &format!("{SAMPLES}/{name}.csv"), TIDEMARK])
        .output()
        .unwrap();
    let table = String::from_utf8(output.stdout.clone()).unwrap();
    assert!(output.status.success(), "{table}{}", stderr(&output));
    table
}

#[test]
fn golden_tables_are_what_the_command_and_an_independent_script_count() {
    for name in ["experts", "requests"] {
        let golden = std::fs::read_to_string(format!("{SAMPLES}/{name}.txt")).unwrap();
        assert_eq!(counted_twice(name), golden, "{name}");
    }
}

#[test]
fn the_order_of_lines_within_a_visit_means_nothing_nor_does_a_repeated_one() {
    let folder = Folder::new("visits-order");
    let csv = |trace: &str| {
        let output = tidemark(&["curve", trace, "--batch", "--at", "all", "--csv"]);
        String::from_utf8(output.stdout).unwrap()
    };
    let columns = "page=o,visit=v";
    let one = import(&folder, "o,v\n3,a\n1,a\n2,b\n3,b\n1,c\n3,c\n", columns).unwrap();
    let one = csv(&one);
    let other = import(
        &folder,
        "o,v\n1,a\n3,a\n3,a\n3,b\n2,b\n3,b\n3,c\n1,c\n",
        columns,
    );
    assert_eq!(one, csv(&other.unwrap()));
    // In the room of one, LRU keeps object 3, which the last visits want again.
    assert!(one.contains("lru,1,4,0.666667\n"), "{one}");
    assert!(one.contains("opt,3,3,0.500000\n"), "{one}");
}

#[test]
fn a_record_has_visits_wants_and_bytes() {
    let folder = Folder::new("visits-record");
    let lines = "o,v,b\nx,1,100\ny,1,3000\nx,2,100\nz,2,50\ny,3,3000\n";
    let trace = import(&folder, lines, "key=o,visit=v,bytes=b").unwrap();
    let output = tidemark(&["curve", &trace, "--batch", "--at", "3K,100%", "--json"]);
    let record: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(record["schema"], "tidemark.batch.v1");
    for (field, expected) in [
        ("visits", 3),
        ("wants", 5),
        ("objects", 3),
        ("whole", 3150),
        ("largest_visit", 3100),
    ] {
        assert_eq!(record[field], expected, "{field}");
    }
    let policies = record["curves"].as_array().unwrap().iter();
    let policies: Vec<&str> = policies
        .map(|curve| curve["policy"].as_str().unwrap())
        .collect();
    assert_eq!(
        policies,
        ["lru", "lfu", "least-stale", "pfoo-l", "farthest"]
    );
    // 3,072 bytes do not hold both x and y.
    assert_eq!(record["curves"][4]["points"][0]["misses"], 4);
    let drawn = tidemark(&["curve", &trace, "--batch", "--at", "3K,100%"]);
    let drawn = String::from_utf8(drawn.stdout).unwrap();
    assert!(drawn.contains("5 wants in 3 visits"), "{drawn}");
    assert!(drawn.contains("unequal sizes"), "{drawn}");
    let picture = folder.path("visits.svg");
    let output = tidemark(&["curve", &trace, "--batch", "--svg", &picture]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(
        std::fs::read_to_string(&picture)
            .unwrap()
            .contains("pfoo-l")
    );
}

#[test]
fn visits_may_have_times() {
    let folder = Folder::new("visits-times");
    let lines = "o,v,time_s\n1,a,50\n2,a,50.5\n1,b,51\n";
    let trace = import(&folder, lines, "page=o,visit=v,time=time_s").unwrap();
    let output = tidemark(&["curve", &trace, "--batch", "--at", "2", "--csv"]);
    let csv = String::from_utf8_lossy(&output.stdout);
    assert!(csv.contains("lru,2,2,0.666667"), "{csv}{}", stderr(&output));
}

#[test]
fn a_wrong_line_is_named() {
    let folder = Folder::new("visits-wrong");
    let columns = "page=o,visit=v,bytes=b";
    for (lines, expected) in [
        ("o,v,b\n1,a,10\n2,,10\n", "line 3: ``; needs a visit"),
        (
            "o,v,b\n1,a,10\n2,a,\n",
            "line 3: ``; needs the size of an object",
        ),
        (
            "o,v,b\n1,a,10\n2,a,0\n",
            "line 3: `0`; needs the size of an object",
        ),
        (
            "o,v,b\n1,a,10\n2,b,7\n1,b,11\n",
            "line 4: `11`; needs the size in bytes that",
        ),
        ("o,v\n1,a\n", "no column `b`"),
        ("o,v,b\nx,a,1\n", "line 2: `x`; needs a page number"),
    ] {
        let told = import(&folder, lines, columns).unwrap_err();
        assert_eq!(told.lines().count(), 1, "{told}");
        assert!(told.contains(expected), "`{expected}` is not in: {told}");
    }
}

#[test]
fn what_can_not_be_counted_is_refused() {
    let folder = Folder::new("visits-refused");
    let refused = |arguments: &[&str], part: &str| {
        let output = tidemark(arguments);
        let told = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {told}");
        assert!(told.contains(part), "`{part}` is not in: {told}");
    };
    let sized = import(&folder, "o,v,b\n1,a,10\n2,a,20\n", "page=o,visit=v,bytes=b").unwrap();
    refused(
        &["curve", &sized, "--batch", "--at", "64"],
        "a size with a unit",
    );
    refused(
        &["curve", &sized, "--batch", "--policies", "ws"],
        "no size of its own",
    );
    refused(&["curve", &sized, "--batch", "--sample", "1%"], "--sample");
    let even = import(&folder, "o,v\n1,a\n2,a\n", "page=o,visit=v").unwrap();
    refused(
        &["curve", &even, "--batch", "--at", "64M"],
        "tells no sizes",
    );
    let plain = import(&folder, "o\n1\n2\n", "page=o").unwrap();
    refused(&["curve", &plain, "--batch"], "the trace has no visits");
    let csv = folder.path("visits.csv");
    let merging = [
        "import",
        &csv,
        "-o",
        &plain,
        "--from",
        "csv",
        "--repeats",
        "merge",
    ];
    let columns = ["--columns", "page=o,visit=v"];
    refused(&[&merging[..], &columns].concat(), "--repeats merge");
}
