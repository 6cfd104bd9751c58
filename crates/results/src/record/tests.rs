use super::*;
use crate::histogram::Bucket;
use crate::suspension::Suspension;

fn latencies(soft: Bucket) -> Latencies {
    Latencies {
        soft: Latency::new(Histogram::new([soft])),
        ..Latencies::default()
    }
}

fn record() -> RunRecord {
    let statistics = Statistics {
        page_ins: 640,
        page_in_requests: 10,
        elapsed_s: 1.5,
        latency: latencies(Bucket {
            from: 4096,
            below: 8192,
            count: 10,
        }),
        ..Statistics::default()
    };
    RunRecord {
        policy: "tidemark".into(),
        mode: "thread".into(),
        memory_bytes: 1 << 28,
        division: Some("pressure".into()),
        task_bytes_min: Some(1 << 20),
        store: Some("compressed+file".into()),
        swap_bytes: 1 << 32,
        suspensions: vec![Suspension {
            task: 7,
            from_s: 0.5,
            until_s: Some(1.0),
        }],
        processes: vec![ProcessRecord {
            pid: 7,
            parent: None,
            program: "sort".into(),
            ending: Ending::Signal(9),
            locks: None,
            statistics: statistics.clone(),
        }],
        ..RunRecord::of(
            vec!["sort".into(), "-S".into(), "1G".into()],
            Ending::Status(0),
            statistics,
        )
    }
}

#[test]
fn a_record_reads_back_as_it_was_written() {
    let text = record().to_json();
    assert_eq!(RunRecord::from_json(&text), Ok(record()));
}

#[test]
fn the_fields_readers_rely_on_are_there_in_total_and_in_each_process() {
    let json: serde_json::Value = serde_json::from_str(&record().to_json()).unwrap();
    assert_eq!(json["schema"], SCHEMA);
    assert_eq!(json["policy"], "tidemark");
    assert_eq!(json["memory_bytes"], 1 << 28);
    let needed = [
        "page_ins",
        "page_outs",
        "page_in_requests",
        "page_out_requests",
        "soft_faults",
        "zero_fills",
        "cow_faults",
        "frames_budget",
        "frames_peak",
        "clean_drops",
        "zero_pages",
        "unmanaged_bytes",
        "engine_bytes",
        "elapsed_s",
        "stall_s",
    ];
    for field in needed {
        assert!(json["total"][field].is_number(), "`total` lacks `{field}`");
        assert!(
            json["processes"][0][field].is_number(),
            "`processes[0]` lacks `{field}`"
        );
    }
}

#[test]
fn another_schema_is_refused_by_name() {
    let text = record().to_json().replace("run.v1", "run.v9");
    let error = RunRecord::from_json(&text).unwrap_err();
    assert_eq!(
        error,
        "`schema` is `tidemark.run.v9`; this reads `tidemark.run.v1`"
    );
}

#[test]
fn a_record_with_unknown_and_missing_counts_still_opens() {
    let text = record()
        .to_json()
        .replace("\"page_ins\"", "\"page_ins_to_come\"");
    let read = RunRecord::from_json(&text).unwrap();
    assert_eq!(read.total.page_ins, 0);
    assert_eq!(read.total.page_in_requests, 10);
}

#[test]
fn adding_sums_counts_and_leaves_shares_of_memory_and_time_alone() {
    let one = Statistics {
        page_ins: 3,
        frames_peak: 10,
        frames_budget: 10,
        elapsed_s: 1.0,
        stall_ns: Nanoseconds(250_000_000),
        latency: latencies(Bucket {
            from: 1000,
            below: 3000,
            count: 2,
        }),
        ..Statistics::default()
    };
    let mut total = Statistics::default();
    total.add(&one);
    total.add(&one);
    assert_eq!(total.page_ins, 6);
    assert_eq!((total.frames_peak, total.frames_budget), (0, 0));
    assert_eq!((total.elapsed_s, total.stall_ns.seconds()), (0.0, 0.5));
    assert_eq!(total.latency.soft.histogram_ns.count(), 4);
    assert_eq!(total.latency.soft.percentiles_us.p50, 2.0);
}
