//! `tidemark replay` and `tidemark systems`: what they find on small recordings, in every form, and
//! what they refuse.

use serde_json::Value;
use tidemark_trace::{Writer, import};

use crate::support::{Folder, quiet_text as text, stderr, tidemark};

const SQLITE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../lab/tests/traces/sqlite3.tide"
);
const SORT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../lab/tests/traces/sort.tide");

fn json(arguments: &[&str]) -> Value {
    serde_json::from_str(&text(arguments)).unwrap()
}

/// Runs a replay with these arguments, and answers with its record.
fn replayed(arguments: &[&str]) -> Value {
    json(&[&["replay", "--json"], arguments].concat())
}

fn counts(record: &Value, name: &str) -> Vec<u64> {
    let runs = record["runs"].as_array().unwrap().iter();
    runs.map(|run| run[name].as_u64().unwrap()).collect()
}

#[test]
fn every_system_is_described_and_can_be_replayed_on() {
    let listed = json(&["systems", "--json"]);
    assert_eq!(listed["schema"], "tidemark.systems.v1");
    let systems = listed["systems"].as_array().unwrap();
    let table = text(&["systems"]);
    let record = replayed(&["--memory", "50%", "--system", "all", SORT]);
    let runs = record["runs"].as_array().unwrap();
    assert_eq!(runs.len(), systems.len());
    for (system, run) in systems.iter().zip(runs) {
        let name = system["name"].as_str().unwrap();
        assert!(table.contains(name), "{name}");
        assert_eq!(json(&["systems", name, "--json"])["systems"][0], *system);
        assert!(text(&["systems", name]).contains("after: "), "{name}");
        assert_eq!(
            (&run["system"], &run["policy"]),
            (&system["name"], &system["policy"])
        );
        // Alone and a page at a time, nothing beats the optimum.
        assert!(run["over_optimal"].as_f64().unwrap() >= 1.0, "{run}");
        assert_eq!(run["refusals"], 0, "{run}");
    }
}

#[test]
fn found3_b5_what_copies_share_counts_once() {
    let asked = [
        "--memory",
        "75%",
        "--system",
        "fifo,mach3",
        "--procs",
        "8",
        "--cpus",
        "4",
    ];
    let record = replayed(&[&asked[..], &[SQLITE]].concat());
    let footprint = record["footprint_pages"].as_u64().unwrap();
    // The text and the libraries, of all copies together.
    assert!((817 * 2..817 * 6).contains(&footprint), "{footprint}");
    for run in record["runs"].as_array().unwrap() {
        // So little is short of memory for all.
        assert!(run["page_outs"].as_u64() > Some(0), "{run}");
        assert!(run["over_optimal"].as_f64() >= Some(1.0), "{run}");
    }
}

#[test]
fn a_record_has_what_a_run_came_to() {
    let memory = ["--memory", "400,8M,100%"];
    let record = replayed(&[&memory[..], &["--system", "clock,tidemark", SQLITE]].concat());
    assert_eq!(record["schema"], "tidemark.replay.v1");
    assert_eq!(record["footprint_pages"], 817);
    assert_eq!(record["traces"][0]["name"], "sqlite3");
    assert_eq!(record["machine"]["processors"], 1);
    // Rising, systems first.
    let sizes = counts(&record, "memory_bytes");
    assert_eq!(sizes[..3], [400 * 4096, 817 * 4096, 8 << 20]);
    assert_eq!(sizes[..3], sizes[3..]);
    for run in record["runs"].as_array().unwrap() {
        let second = |of: &Value| of.as_f64().unwrap();
        let used = &run["processor"];
        let sum = second(&used["user_s"]) + second(&used["system_s"]) + second(&used["idle_s"]);
        assert!((sum - second(&run["elapsed_s"])).abs() < 1e-6, "{run}");
        let program = &run["programs"][0];
        let parts = ["user_s", "system_s", "page_wait_s", "think_s", "ready_s"];
        let sum: f64 = parts.iter().map(|part| second(&program[part])).sum();
        let lived = second(&program["end_s"]) - second(&program["start_s"]);
        assert!((sum - lived).abs() < 1e-6, "{run}");
        let pages = |name: &str| run[name].as_u64().unwrap();
        assert_eq!(pages("page_ins"), pages("swap_ins") + pages("file_ins"));
        assert_eq!(pages("page_outs"), pages("swap_outs") + pages("file_outs"));
        assert!(pages("page_in_requests") <= pages("page_ins"));
        assert_eq!(run["fairness"], 1.0);
        assert!(run["time_line"].is_null());
    }
}

#[test]
fn more_memory_never_costs_the_optimum_more_and_in_the_end_nobody() {
    let memory = ["--memory", "10%,25%,50%,75%,200%"];
    for system in ["clock", "tidemark"] {
        let record = replayed(&[&memory[..], &["--system", system, SQLITE]].concat());
        let optimal = counts(&record, "optimal_page_ins");
        assert!(optimal.is_sorted_by(|a, b| a >= b), "{optimal:?}");
        let page_ins = counts(&record, "page_ins");
        assert!(page_ins[0] > 2 * page_ins[4], "{page_ins:?}");
        for (found, best) in page_ins.iter().zip(&optimal) {
            assert!(found >= best, "{page_ins:?} {optimal:?}");
        }
    }
    // In ample memory, a page at a time, only files are read, each page once.
    let record = replayed(&["--memory", "200%", "--system", "clock", SQLITE]);
    let run = &record["runs"][0];
    assert_eq!(
        (&run["page_ins"], &run["swap_ins"]),
        (&run["optimal_page_ins"], &0.into())
    );
    assert_eq!(run["over_optimal"], 1.0);
}

#[test]
fn copies_and_programs_share_memory_and_processors() {
    let alone = replayed(&["--memory", "2M", "--system", "clock", SQLITE]);
    let both = [
        "--memory", "2M", "--system", "clock", "--procs", "2", SQLITE, SORT,
    ];
    let record = replayed(&both);
    assert_eq!(record["copies"], 2);
    let programs = record["runs"][0]["programs"].as_array().unwrap();
    let names: Vec<&str> = programs
        .iter()
        .map(|program| program["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["sqlite3 1", "sqlite3 2", "sort 1", "sort 2"]);
    let elapsed = |record: &Value| record["runs"][0]["elapsed_s"].as_f64().unwrap();
    assert!(elapsed(&record) > elapsed(&alone));
    let many = replayed(&[&both[..], &["--cpus", "4", "--scheduler", "fair"]].concat());
    assert!(elapsed(&many) < elapsed(&record));
    let told = text(&[&["replay"], &both[..]].concat());
    for part in ["2 × sqlite3 + sort", "fairness", "in step", "slower"] {
        assert!(told.contains(part), "{part}: {told}");
    }
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    let folder = Folder::new("replay-seed");
    let log = |name: &str, seed: &str| {
        let path = folder.path(name);
        let arguments = ["--memory", "30%", "--disk", "ssd", "--log-decisions", &path];
        let printed = text(
            &[
                &["replay", "--json", "--seed", seed],
                &arguments[..],
                &[SORT],
            ]
            .concat(),
        );
        (printed, std::fs::read_to_string(&path).unwrap())
    };
    let (first, again, other) = (log("first", "1"), log("again", "1"), log("other", "2"));
    assert_eq!(first, again);
    assert_ne!(first.0, other.0);
    for verb in ["zero ", "in ", "out ", "soft "] {
        let found = first.1.lines().filter(|line| line.starts_with(verb));
        assert!(found.count() > 10, "{verb}");
    }
    let swept = [
        "replay",
        "--csv",
        "--memory",
        "20%,40%,60%",
        "--system",
        "all",
        SORT,
    ];
    assert_eq!(text(&swept), text(&swept));
}

#[test]
fn policies_and_disks_can_be_exchanged() {
    let folder = Folder::new("replay-disk");
    let run = |more: &[&str]| {
        let record = replayed(&[&["--memory", "40%", "--system", "clock", SORT], more].concat());
        (record["runs"][0].clone(), record["machine"].clone())
    };
    let (slow, machine) = run(&["--disk", "hdd", "--policy", "fifo"]);
    assert_eq!(
        (&slow["policy"], &machine["swap_disk"]),
        (&"fifo".into(), &"hdd".into())
    );
    let (fast, machine) = run(&[
        "--disk",
        "instant",
        "--policy",
        "fifo",
        "--file-disk",
        "ssd",
    ]);
    assert_eq!(machine["file_disk"], "ssd");
    assert_eq!(fast["disks"].as_array().unwrap().len(), 2);
    assert_eq!(slow["page_ins"], fast["page_ins"]);
    assert!(slow["elapsed_s"].as_f64() > fast["elapsed_s"].as_f64());
    let measured = folder.program(
        "doctor.json",
        br#"{"latencies": [
            {"name": "read of 4 KiB", "p50_us": 100.0, "p99_us": 100.0, "samples": 9, "rate": null},
            {"name": "write of 256 KiB", "p50_us": 9.0, "p99_us": 9.0, "samples": 9, "rate": null}
        ]}"#,
    );
    let (table, machine) = run(&["--disk", &format!("table:{measured}")]);
    assert_eq!(machine["swap_disk"], format!("table:{measured}"));
    assert!(table["disks"][0]["busy_s"].as_f64().unwrap() > 0.0);
}

#[test]
fn memory_is_divided_among_programs_as_is_asked_for() {
    let folder = Folder::new("divided");
    let [random, zipf] = ["random", "zipf"].map(|name| folder.path(name));
    let pages = [
        ("random", "3000", "60k", &random),
        ("zipf", "6000", "120k", &zipf),
    ];
    for (pattern, pages, references, path) in pages {
        let sizes = ["--pages", pages, "--references", references];
        let made = tidemark(&[&["generate", pattern, "-o", path], &sizes[..]].concat());
        assert!(made.status.success());
    }
    let divided = |options: &[&str]| {
        let all = [
            "--managed",
            "anonymous",
            "--load-control",
            "none",
            "--cpus",
            "2",
        ];
        let files = ["--memory", "3000", random.as_str(), zipf.as_str()];
        counts(&replayed(&[&all, options, &files].concat()), "page_ins")
    };
    let usual = divided(&[]);
    assert_eq!(
        divided(&["--division", "demand", "--per-task-min", "1M"]),
        usual
    );
    assert_ne!(divided(&["--division", "proportional"]), usual);
    let refused = tidemark(&["replay", "--division", "equal", "--memory", "50%", SORT]);
    let refused = stderr(&refused);
    assert!(
        refused.contains("all programs share one memory"),
        "{refused}"
    );
}

#[test]
fn compressed_memory_is_simulated_by_ratio_or_by_the_sizes_of_a_run() {
    let folder = Folder::new("replay-compressed");
    let trace = folder.path("made.tide");
    let made = [
        "generate",
        "skewed",
        "--pages",
        "4k",
        "--references",
        "40k",
        "-o",
        &trace,
    ];
    assert_eq!(tidemark(&made).status.code(), Some(0));
    let options = ["--memory", "50%", "--managed", "anonymous", &trace];
    let plain = replayed(&options);
    let by_ratio = replayed(&[&["--compressed", "3"], &options[..]].concat());
    assert_eq!(by_ratio["machine"]["compressed"], "ratio 3");
    assert_eq!(by_ratio["runs"][0]["policy"], "2q-faults");
    assert!(
        counts(&by_ratio, "decompressed_pages")[0] > 100,
        "{by_ratio}"
    );
    let peak = counts(&by_ratio, "compressed_memory_peak")[0];
    let memory = counts(&by_ratio, "memory_bytes")[0] / 4096;
    assert!(peak > 0 && peak < memory);
    assert!(counts(&by_ratio, "frames_peak")[0] <= memory);
    assert!(counts(&by_ratio, "bytes_read") < counts(&plain, "bytes_read"));
    // What hardly compresses goes to disk as it is.
    let sizes = folder.path("run.json");
    let run = serde_json::json!({
        "schema": "tidemark.run.v1", "tidemark": "0", "command": [], "policy": "", "mode": "",
        "memory_bytes": 0, "swap_bytes": 0, "ending": { "status": 0 }, "notes": [],
        "total": { "compressed_page_bytes": [{ "from": 3584, "below": 4096, "count": 5 }] },
        "processes": [],
    });
    std::fs::write(&sizes, run.to_string()).unwrap();
    let by_run = replayed(&[&["--compressed", &sizes], &options[..]].concat());
    assert_eq!(by_run["machine"]["compressed"], sizes.as_str());
    assert_eq!(counts(&by_run, "decompressed_pages"), [0]);
    assert_eq!(
        counts(&by_run, "incompressible_pages"),
        counts(&by_run, "page_outs")
    );
    for (words, told) in [
        (&["--compressed", "0.5"][..], "1 to 100"),
        (&["--compressed", "/no/such"], "a ratio like `3`"),
        (
            &["--compressed", "3", "--system", "clock"],
            "--system tidemark",
        ),
    ] {
        let output = tidemark(&[&["replay"], words, &options[..]].concat());
        assert_eq!(output.status.code(), Some(2));
        assert!(stderr(&output).contains(told), "{}", stderr(&output));
    }
    let table = text(&[&["replay", "--compressed", "3"], &options[..]].concat());
    assert!(
        table.contains("compressed first: ratio 3") && table.contains("from disk"),
        "{table}"
    );
}

#[test]
fn a_page_has_the_runs_over_time() {
    let folder = Folder::new("replay-page");
    let page = folder.path("replay.html");
    let record = replayed(&["--memory", "30%", "--html", &page, SQLITE, SORT]);
    let line = &record["runs"][0]["time_line"];
    let moments = line["time_s"].as_array().unwrap().len();
    assert!(moments > 100, "{moments}");
    for column in [&line["free"], &line["resident"][1], &line["queues"][0]] {
        assert_eq!(column.as_array().unwrap().len(), moments);
    }
    let html = std::fs::read_to_string(&page).unwrap();
    for part in ["<title>sqlite3 + sort", "Faults by kind", "swap and files"] {
        assert!(html.contains(part), "{part}");
    }
}

#[test]
fn what_can_not_be_replayed_is_refused_in_one_line() {
    let folder = Folder::new("replay-refusals");
    let other = folder.program("other", b"just words\n");
    let refused = |arguments: &[&str], parts: &[&str]| {
        let output = tidemark(&[&["replay"], arguments].concat());
        let told = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {told}");
        assert_eq!(told.lines().count(), 1, "{told}");
        assert!(output.stdout.is_empty(), "{output:?}");
        for part in parts {
            assert!(told.contains(part), "`{part}` is not in: {told}");
        }
    };
    let sized = |more: &[&'static str]| [&["--memory", "1M"], more, &[SORT]].concat();
    let near = ["`gnumach-balance`", "did you mean `gnumach-balanced`?"];
    refused(&sized(&["--system", "gnumach-balance"]), &near);
    refused(
        &sized(&["--system", "multics"]),
        &["`tidemark systems` lists"],
    );
    refused(&sized(&["--policy", "clokc"]), &["did you mean `clock`?"]);
    refused(&sized(&["--load-control", "swapper"]), &["`task-swapper`"]);
    refused(
        &sized(&["--load-control", "zz"]),
        &["--load-control zz", "none, "],
    );
    refused(&sized(&["--disk", "drum"]), &["--disk drum", "hdd, "]);
    refused(&sized(&["--disk", "table:/no/such"]), &["/no/such"]);
    refused(&sized(&["--scheduler", "lottery"]), &["round-robin, fair"]);
    refused(&sized(&["--procs", "0"]), &["--procs 0", "at least 1"]);
    refused(&sized(&["--cpus", "0"]), &["--cpus 0", "at least 1"]);
    refused(&sized(&["--cpus", "5000"]), &["--cpus 5000", "1024"]);
    let wired = ["--wired", "2M"];
    refused(
        &sized(&wired),
        &["1 MiB less 2 MiB wired", "the least that works is 2"],
    );
    let several = ["--system", "fifo,clock", "--log-decisions", "/tmp/x"];
    refused(&sized(&several), &["--log-decisions", "not of 2"]);
    refused(
        &["--memory", "3", SORT],
        &["12 KiB", "the least that works"],
    );
    refused(
        &["--memory", "0", SORT],
        &["--memory 0", "less than a page"],
    );
    refused(
        &["--memory", "1K", SORT],
        &["--memory 1K", "less than a page"],
    );
    refused(&["--memory", "lots", SORT], &["--memory lots"]);
    refused(&["--memory", "64M,", SORT], &["--memory"]);
    refused(&["--memory", "99T", SORT], &["--memory 99T", "too large"]);
    refused(&[SORT], &["--memory"]);
    refused(&["--memory", "1M"], &["TRACE"]);
    refused(&["--memory", "1M", "/no/such/trace"], &["/no/such/trace"]);
    refused(&["--memory", "1M", SORT, &other], &[&other]);
    let large = folder.path("large.tide");
    let file = std::fs::File::create(&large).unwrap();
    let writer = Writer::new(file, &import::header("test", 1 << 16)).unwrap();
    writer.finish().unwrap();
    refused(&["--memory", "9M", SORT, &large], &["4 KiB and 64 KiB"]);
}

#[test]
fn found_f12_a_trace_with_nothing_managed_in_step_says_so() {
    let output = tidemark(&["replay", "--in-step", "--memory", "50%", SORT]);
    assert_eq!(output.status.code(), Some(2));
    let told = stderr(&output);
    let is_clear = told.contains("no memory that is managed in step")
        && told.contains("`tidemark compare --in-step --trace FILE`");
    assert!(is_clear && told.lines().count() == 1, "{told}");
}

#[test]
fn systems_that_treat_files_apart_refuse_traces_that_do_not_say_which_they_are() {
    let folder = Folder::new("replay-unmapped");
    let trace = folder.path("zipf.tide");
    let made = tidemark(&["generate", "zipf", "--references", "10k", "-o", &trace]);
    assert!(made.status.success(), "{}", stderr(&made));
    let sized = ["replay", "--memory", "1M", &trace];
    for more in [
        &["--system", "clock,linux-mglru"][..],
        &["--policy", "osf-mk"],
    ] {
        let output = tidemark(&[&sized, more].concat());
        assert_eq!(output.status.code(), Some(2), "{more:?}");
        let told = stderr(&output);
        let is_clear = told.contains("treats files' pages apart, and `zipf` does not say")
            && told.contains("`--managed anonymous`");
        assert!(is_clear && told.lines().count() == 1, "{told}");
        text(&[&sized, more, &["--managed", "anonymous"]].concat());
    }
    text(&[&sized[..], &["--system", "linux-mglru", "--policy", "lru"]].concat());
}
