//! `tidemark bench page-in` at its smallest size: its record, and the system calls of a fault.
//!
//! Times are for reading, not for checking. The measured program checks every page that it reads
//! back: a wrong one leaves its row out, which fails these tests.

use serde_json::Value;
use tidemark_live::sys::uffd::Uffd;

use crate::support::{Folder, stderr, tidemark};

/// The most system calls that a page-in from compressed memory may make: 3.2 to 3.5 are measured,
/// and 4.1 to 4.3 where each wait is a poll and a read.
const CALLS_MAX: f64 = 4.5;
/// The same of the bare loop, which makes 3.03.
const BARE_CALLS_MAX: f64 = 3.2;

#[test]
fn every_fault_is_measured_and_a_page_in_makes_few_system_calls() {
    if !tidemark_testing::require(Uffd::offered().is_ok(), "userfaultfd is not permitted") {
        return;
    }
    let folder = Folder::new("page-in");
    let output = bench(&folder, &["--size", "12M", "--laps", "1", "--limit", "120"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let record: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(record["schema"], "tidemark.page-in.v1");
    assert_eq!(record["size_bytes"], 12 << 20);
    assert_eq!(record["memory_bytes"], 6 << 20);
    let packed = record["packed_percent"].as_f64().unwrap();
    assert!((20.0..40.0).contains(&packed), "packed to {packed} %");
    let rows = record["rows"].as_array().unwrap();
    let find = |work: &str, beside: &str, by: &str| {
        let is_it = |row: &&Value| {
            (&row["work"], &row["beside"], &row["by"]) == (&work.into(), &beside.into(), &by.into())
        };
        let row = rows.iter().find(is_it);
        row.unwrap_or_else(|| panic!("{work}, {beside}, {by}: {record}"))
    };
    let is_single = record["processors"] == 1;
    for beside in ["alone", "busy"] {
        for work in [
            "page-in",
            "page-in-from-disk",
            "soft-fault",
            "first-touch",
            "way-out",
        ] {
            let own = find(work, beside, "tidemark");
            assert!(own["faults"].as_u64().unwrap() > 0, "{own}");
            assert!(own["processor_us"].as_f64().unwrap() > 0.0, "{own}");
            assert!(own["elapsed_us"].as_f64().is_some(), "{own}");
            if beside == "alone" || !is_single {
                let bare = find(work, beside, "bare");
                assert!(bare["faults"].as_u64().unwrap() > 0, "{bare}");
                assert!(own["ratio"].as_f64().unwrap() > 0.0, "{own}");
            }
        }
    }
    for work in ["page-in", "page-in-from-disk"] {
        assert!(find(work, "fork", "tidemark")["faults"].as_u64().unwrap() > 0);
    }
    // Refused for all of them, or for none.
    if !find("page-in", "alone", "bare")["system_calls"].is_number() {
        return tidemark_testing::skip(&format!("not counted: {}", record["not_counted"]));
    }
    for (by, calls_max) in [("tidemark", CALLS_MAX), ("bare", BARE_CALLS_MAX)] {
        let row = find("page-in", "alone", by);
        let calls = row["system_calls"].as_f64().unwrap();
        assert!((1.0..calls_max).contains(&calls), "{row}");
        let by_name = row["system_calls_by_name"].as_object().unwrap();
        assert!(by_name["ioctl"].as_f64().unwrap() >= 1.0, "{row}");
    }
}

#[test]
fn what_does_not_fit_is_refused_in_one_line() {
    let folder = Folder::new("page-in-refused");
    for (words, told) in [
        (
            &["--size", "1M"][..],
            "`--size` is 1048576 bytes; it must be from 12M to 16G",
        ),
        (
            &["--size", "15M", "--memory", "15M"],
            "it must be from 6291456 to 12582912",
        ),
        (&["--laps", "0"], "`--laps` is 0"),
        (&["--procs", "2"], "`--procs` is not for `page-in`"),
        (&["--policy", "clock"], "`--policy` is not for `page-in`"),
        (&["--loads", "2"], "`--loads` is for `thrash` alone"),
    ] {
        let output = bench(&folder, words);
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        let complaint = stderr(&output);
        assert!(complaint.contains(told), "{words:?}: {complaint}");
        assert_eq!(complaint.lines().count(), 1, "{words:?}: {complaint}");
    }
}

fn bench(folder: &Folder, words: &[&str]) -> std::process::Output {
    let folder = folder.0.to_str().unwrap();
    let fixed = [
        "bench", "page-in", "--rounds", "1", "--json", "--folder", folder,
    ];
    tidemark(&[&fixed[..], words].concat())
}
