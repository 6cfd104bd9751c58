//! The commands that show traces: what they find, in every form, and what they refuse.

use serde_json::Value;
use tidemark_trace::{
    Block, Event, Granularity, Header, Kinds, LifeEvent, MappingEvent, Memory, Placed, Rights,
    Speed, TimeUnit, Writer,
};

use crate::support::{Folder, stderr, text, tidemark};

/// 0 to 149 a hundred times over: the first of the published golden traces.
fn looping() -> Vec<u64> {
    (0..15_000).map(|at| at % 150).collect()
}

/// Runs the command, which refuses in one line that has `part` in it.
fn refused(arguments: &[&str], part: &str) {
    let output = tidemark(arguments);
    let told = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {told}");
    assert_eq!(told.lines().count(), 1, "{told}");
    assert!(told.contains(part), "`{part}` is not in: {told}");
}

/// Writes a trace of one process whose references are all one unit apart.
fn written(folder: &Folder, pages: &[u64]) -> String {
    let header = Header {
        page_bytes: 4096,
        granularity: Granularity::Exact,
        time: TimeUnit::References,
        source: "test".into(),
        command: vec!["loop".into()],
        speed: None,
    };
    let path = folder.path("trace.tide");
    let mut writer = Writer::new(std::fs::File::create(&path).unwrap(), &header).unwrap();
    let heap = Event::Mapping(MappingEvent::Map {
        start: 0,
        pages: 100,
        rights: Rights::READ,
        is_shared: false,
        memory: "[heap]".into(),
        offset: 0,
    });
    let mark = Event::Mark {
        name: "middle".into(),
    };
    let placed = |after: usize, event| Placed {
        after: after as u32,
        time: after as u64,
        event,
    };
    let block = Block {
        process: 0,
        time_start: 0,
        pages: pages.to_vec(),
        kinds: vec![Kinds::LOAD.0; pages.len()],
        gaps: vec![1; pages.len()],
        events: vec![placed(0, heap), placed(pages.len() / 2, mark)],
    };
    writer.write(&block).unwrap();
    writer.finish().unwrap();
    path
}

fn json(arguments: &[&str]) -> Value {
    serde_json::from_str(&text(arguments)).unwrap()
}

#[test]
fn curves_have_the_published_misses() {
    let folder = Folder::new("curve");
    let trace = written(&folder, &looping());
    let policies = [
        "--policies",
        "lru,opt,fifo,clock,ws,vmin",
        "--at",
        "100,150,400K",
    ];
    let record = json(&[&["curve", &trace, "--json"], &policies[..]].concat());
    assert_eq!(record["schema"], "tidemark.curve.v1");
    let misses = |curve: usize, point: usize| {
        let point = &record["curves"][curve]["points"][point];
        (
            point["pages"].as_u64().unwrap(),
            point["misses"].as_u64().unwrap(),
        )
    };
    for (curve, misses_at_100) in [(0, 15_000), (1, 5_100), (2, 15_000), (3, 15_000)] {
        assert_eq!(misses(curve, 0), (100, misses_at_100));
        assert_eq!(misses(curve, 1), (150, 150));
        assert_eq!(misses(curve, 2), (100, misses_at_100));
    }
    // In 100 pages the optimum keeps 99 of them and brings 50 or so in each turn.
    let reasons = &record["verdict"]["sizes"][0];
    for (name, count) in [
        ("pages", 100),
        ("bytes", 409_600),
        ("misses", 15_000),
        ("first_touches", 150),
        ("for_size", 4_950),
        ("for_policy", 9_900),
    ] {
        assert_eq!(reasons[name], count, "{name}");
    }
    assert!(reasons["best"]["misses"].as_u64().unwrap() < 15_000);
    let cliff = &record["verdict"]["cliff"];
    assert_eq!(
        (&cliff["pages"], &cliff["is_loop"]),
        (&150.into(), &true.into())
    );
    // A window that holds the whole loop keeps 150 pages in the working set.
    let ws = &record["curves"][4]["points"][1];
    assert_eq!(ws["misses"], 150);
    assert!(ws["window"].is_u64() && ws["mean_pages"].as_f64().unwrap() <= 150.0);
    let vmin = &record["curves"][5]["points"][1];
    assert!(vmin["mean_pages"].as_f64() <= ws["mean_pages"].as_f64());
}

#[test]
fn sampled_curves_say_how_wrong_they_are_in_every_form() {
    let folder = Folder::new("curve-sampled");
    // Forty pages in use at a time, of 2,000.
    let pages: Vec<u64> = (0..50_000).map(|at| at / 1000 * 40 + at % 40).collect();
    let trace = written(&folder, &pages);
    let svg = folder.path("picture.svg");
    for share in ["0.25", "500"] {
        let sampled = ["curve", &trace, "--sample", share];
        let record = json(&[&sampled[..], &["--json", "--at", "10,400,32M"]].concat());
        assert_eq!(record["trace"]["is_pages_estimate"], true);
        let pages = record["trace"]["pages"].as_f64().unwrap();
        assert!((pages - 2000.0).abs() < 200.0, "{pages}");
        let curve = &record["curves"][0];
        assert_eq!(curve["accuracy"]["kind"], "sampled");
        let error_most = curve["accuracy"]["error"].as_f64().unwrap();
        assert!(error_most > 0.0 && error_most < 0.5, "{curve}");
        for (at, exact) in [(0, 50_000.0), (1, 2000.0), (2, 2000.0)] {
            let point = &curve["points"][at];
            let error = point["misses_error"].as_f64().unwrap();
            assert!(error <= error_most * 50_000.0 * 1.000_001, "{point}");
            let misses = point["misses"].as_f64().unwrap();
            assert!(
                (misses - exact).abs() <= 6.0 * error + 1.0,
                "{exact}: {point}"
            );
        }
        let told = text(&[&sampled[..], &["--width", "100"]].concat());
        for part in ["about ", " ± ", "LRU is estimated from samples of"] {
            assert!(told.contains(part), "{part}: {told}");
        }
        let csv = text(&[&sampled[..], &["--csv"]].concat());
        let last = csv.lines().last().unwrap().rsplit(',').next().unwrap();
        assert!(last.parse::<f64>().unwrap() > 0.0, "{csv}");
        text(&[&sampled[..], &["--svg", &svg]].concat());
        let drawn = std::fs::read_to_string(&svg).unwrap();
        assert!(drawn.contains("% sampled, ± "), "{share}");
    }
}

#[test]
fn found_m10_too_few_sampled_pages_are_said_to_tell_nothing() {
    let folder = Folder::new("curve-sampled-few");
    let pages: Vec<u64> = (0..40_000).map(|at| at % 817).collect();
    let trace = written(&folder, &pages);
    let record = json(&["curve", &trace, "--sample", "1%", "--json"]);
    assert_eq!(record["curves"][0]["accuracy"]["error"], 1.0);
    let note = record["notes"].to_string();
    assert!(note.contains("tell nothing for sure; sample"), "{note}");
    let output = tidemark(&["curve", &trace, "--sample", "1%", "--csv"]);
    assert!(stderr(&output).contains("tell nothing for sure"));
    let enough = json(&["curve", &trace, "--sample", "80%", "--json"]);
    assert!(enough["curves"][0]["accuracy"]["error"].as_f64().unwrap() < 1.0);
    assert!(
        !enough["notes"].to_string().contains("tell nothing"),
        "{enough}"
    );
}

#[test]
fn found_h5_a_trace_from_a_pipe_has_the_curves_of_the_file() {
    let folder = Folder::new("curve-pipe");
    let trace = written(&folder, &looping());
    let told = |command: &str| {
        let program = env!("CARGO_BIN_EXE_tidemark");
        let command = command
            .replace("TIDEMARK", program)
            .replace("TRACE", &trace);
        let output = std::process::Command::new("sh")
            .args(["-c", &command])
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        String::from_utf8(output.stdout).unwrap()
    };
    for what in ["curve", "wss"] {
        let piped = told(&format!("cat TRACE | TIDEMARK {what} /dev/stdin --json"));
        assert_eq!(piped, told(&format!("TIDEMARK {what} TRACE --json")));
    }
}

#[test]
fn the_answer_is_drawn_and_told_in_words() {
    let folder = Folder::new("curve-text");
    let trace = written(&folder, &looping());
    let told = text(&["curve", &trace, "--width", "70", "--slowdown", "1,10"]);
    for part in [
        "misses by memory",
        "LRU",
        "VMIN",
        "at most slower   ideal LRU ",
        "           1 %     600 KiB ",
        "Ideal: nothing costs time but page-ins",
        "In 300 KiB memory is too small: of 15,000 misses under LRU",
        "The program walks in a loop of about 600 KiB (150 pages)",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
    assert!(!told.contains('\x1b'), "no colours in a pipe");
    assert!(
        told.lines().all(|line| line.chars().count() <= 80),
        "{told}"
    );
}

#[test]
fn working_sets_are_those_of_the_windows() {
    let folder = Folder::new("wss");
    let trace = written(&folder, &looping());
    let record = json(&["wss", &trace, "--json", "--windows", "100,1k"]);
    assert_eq!(record["schema"], "tidemark.wss.v1");
    assert_eq!(record["windows"][0]["window"], 100);
    assert_eq!(record["windows"][1]["peak"], 150);
    assert_eq!(record["marks"][0]["name"], "middle");
    assert_eq!(record["marks"][0]["time"], 7500);
    let csv = text(&["wss", &trace, "--csv", "--windows", "100"]);
    assert!(
        csv.starts_with("window,time,min_pages,mean_pages,max_pages\n100,0,"),
        "{csv}"
    );
}

#[test]
fn a_footprint_has_what_is_touched_beside_what_is_mapped() {
    let folder = Folder::new("wss-footprint");
    let trace = written(&folder, &looping());
    let record = json(&["wss", &trace, "--footprint", "--json"]);
    let footprint = &record["footprint"];
    assert_eq!(footprint["interval"], 75);
    // The loop goes through 150 pages, two intervals a turn; of 100 the trace says what they are.
    let first = r#"{"from":0,"touched":75,"new":75,"allocated":100,"mapped":100}"#;
    let first: Value = serde_json::from_str(first).unwrap();
    assert_eq!(footprint["intervals"][0], first);
    let of = |at: usize, name: &str| footprint["intervals"][at][name].as_u64().unwrap();
    assert_eq!((of(1, "touched"), of(1, "new")), (75, 75));
    assert_eq!((of(199, "touched"), of(199, "new")), (75, 0));
    let heap = r#"[{"label":"[heap]","mapped":100,"touched":100}]"#;
    assert_eq!(
        footprint["regions"],
        serde_json::from_str::<Value>(heap).unwrap()
    );

    let csv = text(&["wss", &trace, "--footprint", "--csv"]);
    let head = "time,touched_pages,new_pages,allocated_pages,mapped_pages\n0,75,75,100,100\n";
    assert!(csv.starts_with(head), "{csv}");
    let drawn = text(&["wss", &trace, "--footprint", "--width", "100"]);
    for part in [
        "footprint",
        "touched so far",
        "600 KiB touched in all",
        "never touched",
    ] {
        assert!(drawn.contains(part), "`{part}` is not in: {drawn}");
    }
    assert!(json(&["wss", &trace, "--json"])["footprint"].is_null());
}

#[test]
fn maps_know_regions_and_lose_no_reference() {
    let folder = Folder::new("map");
    let trace = written(&folder, &looping());
    let record = json(&["map", &trace, "--json", "--columns", "16", "--rows", "32"]);
    let regions = record["regions"].as_array().unwrap();
    let labels: Vec<&Value> = regions.iter().map(|region| &region["label"]).collect();
    assert_eq!(labels, ["[heap]", "unnamed"]);
    let cells = regions
        .iter()
        .flat_map(|region| region["rows"].as_array().unwrap());
    let cells = cells.flat_map(|row| row["cells"].as_array().unwrap());
    assert_eq!(
        cells.map(|cell| cell.as_u64().unwrap()).sum::<u64>(),
        15_000
    );
    assert!(text(&["map", &trace]).contains("[heap]"));
}

#[test]
fn pictures_go_to_files() {
    let folder = Folder::new("pictures");
    let trace = written(&folder, &looping());
    for command in ["curve", "wss", "map"] {
        let (png, svg) = (folder.path("picture.png"), folder.path("picture.svg"));
        let told = text(&[command, &trace, "--png", &png, "--svg", &svg]);
        assert_eq!(told, "", "{command}");
        assert!(
            std::fs::read(&png).unwrap().starts_with(b"\x89PNG"),
            "{command}"
        );
        assert!(
            std::fs::read_to_string(&svg).unwrap().contains("loop"),
            "{command}"
        );
    }
}

#[test]
fn a_report_has_everything() {
    let folder = Folder::new("report");
    let trace = written(&folder, &looping());
    let page = folder.path("report.html");
    let record = json(&["report", &trace, "-o", &page, "--json"]);
    assert_eq!(record["schema"], "tidemark.report.v1");
    assert_eq!(record["space_time"]["rows"].as_array().unwrap().len(), 4);
    assert_eq!(record["trace"]["pages"], 150);
    assert_eq!(record["wss"]["footprint"]["intervals"][0]["touched"], 75);
    let html = std::fs::read_to_string(&page).unwrap();
    assert!(html.contains("<title>loop · Tidemark</title>") && html.contains("600 KiB"));
    assert!(html.contains("<h2>Footprint</h2>") && html.contains("id=\"footprint-plot\""));
    let told = text(&["report", &trace, "-o", &page]);
    assert!(told.starts_with("It needs "), "{told}");
    let sentence = told.split_once(".\n\n").unwrap().0.replace("\n  ", " ");
    assert!(html.contains(&sentence), "{sentence}");
}

#[test]
fn a_trace_without_references_is_no_failure() {
    let folder = Folder::new("no-references");
    let trace = written(&folder, &[]);
    for command in ["curve", "wss", "map"] {
        text(&[command, &trace]);
        text(&[command, &trace, "--svg", &folder.path("empty.svg")]);
    }
    text(&["report", &trace, "-o", &folder.path("empty.html")]);
}

#[test]
fn what_is_no_trace_is_refused_in_one_line() {
    let folder = Folder::new("refusals");
    let trace = written(&folder, &looping());
    let other = folder.program("other", b"just words\n");
    let empty = folder.program("empty", b"");
    let cut = folder.program("cut", &std::fs::read(&trace).unwrap()[..40]);
    for command in ["curve", "wss", "map", "report"] {
        refused(&[command, "/no/such/trace"], "/no/such/trace");
        refused(&[command, &other], &other);
        refused(&[command, &empty], &empty);
        refused(&[command, &cut], &cut);
        refused(&[command, "/"], "`/`");
    }
    refused(&["curve", &trace, "--at", "0"], "--at 0");
    refused(&["curve", &trace, "--policies", "lur"], "`lur`");
    refused(&["curve", &trace, "--sample", "2.0"], "--sample 2.0");
    refused(&["curve", &trace, "--sample", "3"], "--sample 3");
    refused(
        &["curve", &trace, "--sample", "0.1", "--policies", "lru,opt"],
        "only `lru`",
    );
    refused(&["curve", &trace, "--slowdown=-1"], "--slowdown");
    refused(&["curve", &trace, "--page-in-us", "0"], "--page-in-us 0");
    refused(
        &["curve", &trace, "--png", "/no/such/folder/x.png"],
        "/no/such/folder",
    );
    refused(&["curve", &trace, "--json", "--csv"], "--csv");
    refused(&["wss", &trace, "--windows", "0"], "--windows 0");
    refused(&["map", &trace, "--columns", "1"], "--columns 1");
    refused(
        &["report", &trace, "-o", "/no/such/folder/x.html"],
        "/no/such/folder",
    );
}

/// Writes a trace of instructions: two walks over 2,000 pages of a mapping, and more over 1,200.
fn walks(folder: &Folder) -> String {
    const GAP: u32 = 360_000;
    let header = Header {
        page_bytes: 4096,
        granularity: Granularity::Exact,
        time: TimeUnit::Instructions,
        source: "test".into(),
        command: vec!["walks".into()],
        speed: Some(Speed::Calibrated { unit_fs: 150_000 }),
    };
    let start = 1 << 20;
    let pages: Vec<u64> = (0..2)
        .flat_map(|_| 0..2_000)
        .chain((0..15).flat_map(|_| 0..1_200))
        .map(|page| start + page)
        .collect();
    let path = folder.path("walks.tide");
    let mut writer = Writer::new(std::fs::File::create(&path).unwrap(), &header).unwrap();
    for (number, part) in pages.chunks(Block::RECORDS_MAX).enumerate() {
        let mapped = Event::Mapping(MappingEvent::Map {
            start,
            pages: 2_000,
            rights: Rights(Rights::READ.0 | Rights::WRITE.0),
            is_shared: false,
            memory: Memory::Anonymous,
            offset: 0,
        });
        let time_start = (number * Block::RECORDS_MAX) as u64 * u64::from(GAP);
        let events = vec![Placed {
            after: 0,
            time: time_start,
            event: mapped,
        }];
        let block = Block {
            process: 0,
            time_start,
            pages: part.to_vec(),
            kinds: vec![Kinds::STORE.0; part.len()],
            gaps: vec![GAP; part.len()],
            events: if number == 0 { events } else { vec![] },
        };
        writer.write(&block).unwrap();
    }
    writer.finish().unwrap();
    path
}

#[test]
fn found_h8_memory_needed_goes_by_the_speed_on_record() {
    let folder = Folder::new("needed-speed");
    let trace = walks(&folder);
    let asked = [
        "curve",
        &trace,
        "--json",
        "--disk",
        "ssd",
        "--slowdown",
        "10",
        "--policies",
        "lru",
    ];
    let record = json(&asked);
    let need = &record["needs"][0];
    assert_eq!(need["time_unit_ns"], 0.15);
    assert_eq!(need["time_unit_source"], "calibrated");
    let run = &record["run"];
    assert_eq!(run["footprint_pages"], 2_000);
    assert_eq!(run["time_unit_source"], "calibrated");
    // 22,000 records of 360,000 instructions.
    let native_ns = run["native_ns"].as_u64().unwrap();
    assert!((1_170_000_000..1_200_000_000).contains(&native_ns), "{run}");
    let answer = &run["needs"][0];
    let pages = |name: &str| answer[name].as_u64().unwrap_or(u64::MAX);
    assert!((1_024..=2_400).contains(&pages("pages")), "{answer}");
    assert!(pages("pages_low") <= pages("pages") && pages("pages") <= pages("pages_high"));
    // Who is slower by itself bears more.
    let slower = json(&[&asked[..], &["--unit-ns", "15"]].concat());
    assert_eq!(slower["needs"][0]["time_unit_source"], "given");
    assert!(
        slower["run"]["needs"][0]["pages"].as_u64() < Some(pages("pages")),
        "{slower}"
    );
    let told = text(&[
        "curve",
        &trace,
        "--slowdown",
        "10,0.4,0.001",
        "--width",
        "300",
    ]);
    for part in [
        "at most slower   under `tidemark run`   ",
        "none: even with all its memory the program takes ",
        "0.001 %      too short to tell ",
        "too short to tell: the program takes 1.19 s by itself, and starting",
        "Starting takes 15 ms more, in any amount of memory",
        "by the recording machine's clock",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
    let without = json(&[&asked[..], &["--rehearse", "never"]].concat());
    assert!(without["run"].is_null());
}

#[test]
fn found3_b1_the_first_answer_is_for_run_as_it_is() {
    let folder = Folder::new("needed-run");
    let trace = walks(&folder);
    let asked = [
        "curve",
        &trace,
        "--json",
        "--disk",
        "ssd",
        "--policies",
        "lru",
    ];
    let record = json(&asked);
    let run = &record["run"];
    assert_eq!(
        (&run["policy"], &run["store"]),
        (&"2q-faults".into(), &"compressed+file".into())
    );
    assert_eq!(run["start_ns"], 15_000_000);
    assert_eq!(run["needs"].as_array().map(Vec::len), Some(2), "{run}");
    // Pages that hardly compress leave less memory for others.
    let worse = json(&[&asked[..], &["--compressed", "1.05"]].concat());
    let pages = |record: &Value| record["run"]["needs"][1]["pages"].as_u64().unwrap();
    assert!(pages(&worse) >= pages(&record), "{worse}");
    refused(
        &["curve", &trace, "--compressed", "0.5"],
        "`--compressed 0.5`",
    );
    // What is of no program has no such table.
    let made = folder.path("zipf.tide");
    text(&[
        "generate",
        "zipf",
        "--pages",
        "2k",
        "--references",
        "20k",
        "-o",
        &made,
    ]);
    assert!(json(&["curve", &made, "--json"])["run"].is_null());
}

#[test]
fn found_h9_a_simulated_policy_is_answered_for_or_said_not_to_be() {
    let folder = Folder::new("needed-simulated");
    let trace = written(&folder, &looping());
    let record = json(&[
        "curve",
        &trace,
        "--json",
        "--policies",
        "clock,tidemark,pff",
    ]);
    for policy in ["clock", "tidemark"] {
        let needs = record["needs"].as_array().unwrap().iter();
        let of_it: Vec<&Value> = needs.filter(|need| need["policy"] == policy).collect();
        assert_eq!(of_it.len(), 2, "{policy}: {record}");
        // A loop over 150 pages misses throughout under CLOCK in less.
        assert!(
            policy != "clock" || of_it[0]["pages"] == 150,
            "{policy}: {record}"
        );
        assert!(of_it[0]["pages"].as_u64() <= Some(150));
    }
    let notes = record["notes"].to_string();
    assert!(
        notes.contains("under pff: how much memory is needed is not looked for"),
        "{notes}"
    );
}

/// Writes a trace of a process that stores to 100 pages and reads 50 of a library, and of three
/// children that read all of that, and store to ten of the pages.
fn family(folder: &Folder) -> String {
    let header = Header {
        page_bytes: 4096,
        granularity: Granularity::Exact,
        time: TimeUnit::Instructions,
        source: "test".into(),
        command: vec!["family".into()],
        speed: None,
    };
    let path = folder.path("family.tide");
    let mut writer = Writer::new(std::fs::File::create(&path).unwrap(), &header).unwrap();
    let library = Event::Mapping(MappingEvent::Map {
        start: 1000,
        pages: 50,
        rights: Rights::READ,
        is_shared: false,
        memory: "/lib/x".into(),
        offset: 0,
    });
    for process in 0..4 {
        let parent = if process == 0 { 0 } else { 100 };
        let program = match process {
            0 => "/bin/parent",
            _ => "/bin/child",
        };
        let start = Event::Life(LifeEvent::Start {
            pid: 100 + process,
            parent,
            program: program.into(),
        });
        let placed = |event| Placed {
            after: 0,
            time: 0,
            event,
        };
        let mut block = Block {
            process,
            events: vec![placed(start), placed(library.clone())],
            ..Block::default()
        };
        for page in (0..100).chain(1000..1050) {
            let is_stored = page < 10 || process == 0 && page < 100;
            let kinds = if is_stored { Kinds::STORE } else { Kinds::LOAD };
            block.push(page, kinds, 1);
        }
        writer.write(&block).unwrap();
    }
    writer.finish().unwrap();
    path
}

#[test]
fn found_m4_pages_that_processes_share_count_once() {
    let folder = Folder::new("shared-pages");
    let trace = family(&folder);
    let record = json(&["curve", &trace, "--at", "all", "--json"]);
    assert_eq!(record["trace"]["pages"], 180);
    let points = record["curves"][0]["points"].as_array().unwrap();
    assert_eq!(points.len(), 180);
    assert_eq!(points[179]["misses"], 180);
    let notes = record["notes"].to_string();
    assert!(!notes.contains("share"), "{notes}");
    let sets = json(&["wss", &trace, "--windows", "10k", "--json"]);
    assert_eq!(sets["windows"][0]["peak"], 180);
    let map = json(&["map", &trace, "--json"]);
    assert_eq!(map["trace"]["pages"], 180);
    let page = folder.path("report.html");
    let report = json(&["report", &trace, "-o", &page, "--json"]);
    assert_eq!(report["trace"]["pages"], 180);
    assert_eq!(report["curve"]["trace"]["pages"], 180);
    let sample = ["curve", &trace, "--sample", "50%", "--json"];
    let notes = json(&sample)["notes"].to_string();
    assert!(
        notes.contains("those that processes share count once in each"),
        "{notes}"
    );
}

#[test]
fn found_m4_one_process_is_looked_at_alone() {
    let folder = Folder::new("chosen");
    let trace = family(&folder);
    for (asked, pages, processes) in [
        ("0", 150, 1),
        ("102", 150, 1),
        ("child", 350, 3),
        ("/bin/parent,3", 160, 2),
    ] {
        for command in ["curve", "wss", "map"] {
            let record = json(&[command, &trace, "--process", asked, "--json"]);
            let facts = &record["trace"];
            assert_eq!(facts["pages"], pages, "{command} {asked}");
            assert_eq!(facts["records"], processes * 150, "{command} {asked}");
            assert_eq!(facts["time"], processes * 150, "{command} {asked}");
            assert_eq!(facts["chosen"]["of"], 4);
        }
    }
    let page = folder.path("report.html");
    text(&["report", &trace, "-o", &page, "--process", "child"]);
    let html = std::fs::read_to_string(&page).unwrap();
    let heading = "only processes 1 child (pid 101), 2 child (pid 102), 3 child (pid 103) of 4";
    assert!(html.contains(heading));
    text(&["report", &trace, "-o", &page, "--process", "102"]);
    let html = std::fs::read_to_string(&page).unwrap();
    assert!(html.contains("only process 2 child (pid 102) of 4"));
    for command in ["curve", "wss", "map", "report"] {
        let output = tidemark(&[command, &trace, "--process", "gcc"]);
        assert_eq!(output.status.code(), Some(2), "{command}");
        let told = stderr(&output);
        let expected = "`--process`: no process \"gcc\"; there are 0 parent (pid 100), 1 child";
        assert!(
            told.contains(expected) && told.lines().count() == 1,
            "{told}"
        );
    }
}

#[test]
fn found_m4_more_time_than_is_counted_is_refused() {
    let trace = concat!(env!("CARGO_MANIFEST_DIR"), "/../trace/tests/v1.tide");
    let folder = Folder::new("time");
    let page = folder.path("report.html");
    for command in [
        &["curve", trace][..],
        &["wss", trace],
        &["map", trace],
        &["report", trace, "-o", &page],
    ] {
        let output = tidemark(command);
        assert_eq!(output.status.code(), Some(2), "{command:?}");
        let told = stderr(&output);
        let expected = "the time of all processes together, 18446744073709551615 is too large";
        assert!(
            told.contains(expected) && told.lines().count() == 1,
            "{told}"
        );
        text(&[command, &["--process", "2"]].concat());
    }
}

#[test]
fn found_m4_the_last_pages_and_times_that_there_are_are_shown() {
    let folder = Folder::new("extremes");
    let header = Header {
        page_bytes: 4096,
        granularity: Granularity::Quantum(1000),
        time: TimeUnit::Instructions,
        source: "test".into(),
        command: vec![],
        speed: None,
    };
    let trace = folder.path("extremes.tide");
    let mut writer = Writer::new(std::fs::File::create(&trace).unwrap(), &header).unwrap();
    for (time_start, step) in [(0, 1), ((1 << 62) - 6000, 1000)] {
        let mut block = Block {
            time_start,
            ..Block::default()
        };
        for page in [0, u64::MAX, 1, u64::MAX - 1, 0] {
            block.push(page, Kinds::LOAD, step);
        }
        writer.write(&block).unwrap();
    }
    writer.finish().unwrap();
    let page = folder.path("report.html");
    for command in [
        &["curve", &trace, "--policies", "lru,ws,vmin,opt,pff,clock"][..],
        &["wss", &trace],
        &["wss", &trace, "--windows", "999999999G"],
        &["map", &trace],
        &["map", &trace, "--svg", &folder.path("map.svg")],
        &["report", &trace, "-o", &page],
    ] {
        text(command);
    }
}
