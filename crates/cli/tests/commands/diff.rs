//! `tidemark diff`: what changed between two traces, and between two records.

use serde_json::{Value, json};
use tidemark_results::record::{Ending, RunRecord};
use tidemark_trace::{
    Block, Event, Granularity, Header, Kinds, LifeEvent, MappingEvent, Placed, Rights, TimeUnit,
    Writer,
};

use crate::support::{Folder, stderr, text, tidemark};

/// Slots of 64 bytes on a page.
const SLOTS_ON_PAGE: usize = 64;
const PROGRAM: u64 = 16;
const HEAP: u64 = 1 << 12;

/// A hash table with open addressing that notes which pages its operations touch.
struct Table {
    slots: Vec<Slot>,
    /// Slots that are not free, which decide when it grows.
    taken: usize,
    /// True if what is removed leaves a tombstone.
    leaves_tombstones: bool,
    heap: u64,
    touched: Vec<u64>,
}

#[derive(Clone, Copy, PartialEq)]
enum Slot {
    Free,
    Tombstone,
    Key(u64),
}

impl Table {
    fn new(leaves_tombstones: bool) -> Table {
        Table {
            slots: vec![Slot::Free; 1024],
            taken: 0,
            leaves_tombstones,
            heap: HEAP,
            touched: vec![],
        }
    }

    /// Goes to the slot of `key`, or to the free one where it would be.
    fn find(&mut self, key: u64) -> usize {
        let mut at = (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize % self.slots.len();
        loop {
            self.touched.push(PROGRAM + key % 3);
            self.touched.push(self.heap + (at / SLOTS_ON_PAGE) as u64);
            match self.slots[at] {
                Slot::Key(other) if other != key => {}
                Slot::Tombstone => {}
                Slot::Free | Slot::Key(_) => return at,
            }
            at = (at + 1) % self.slots.len();
        }
    }

    fn insert(&mut self, key: u64) {
        if self.taken * 2 >= self.slots.len() {
            // A larger table lies behind the old one, which is not used any more.
            self.heap += (self.slots.len() / SLOTS_ON_PAGE) as u64;
            let slots = vec![Slot::Free; self.slots.len() * 2];
            let old = std::mem::replace(&mut self.slots, slots);
            self.taken = 0;
            for slot in old {
                if let Slot::Key(key) = slot {
                    self.insert(key);
                }
            }
        }
        let at = self.find(key);
        self.slots[at] = Slot::Key(key);
        self.taken += 1;
    }

    fn remove(&mut self, key: u64) {
        let at = self.find(key);
        // Nothing is looked for behind it, so that a hole does no harm here.
        self.slots[at] = match self.leaves_tombstones {
            true => Slot::Tombstone,
            false => Slot::Free,
        };
        self.taken -= usize::from(!self.leaves_tombstones);
    }
}

/// The trace of a program that keeps 400 keys in a table and replaces each 14 times.
fn build(folder: &Folder, name: &str, leaves_tombstones: bool) -> String {
    let mut table = Table::new(leaves_tombstones);
    (0..400).for_each(|key| table.insert(key));
    for key in 400..6_000 {
        table.remove(key - 400);
        table.insert(key);
    }
    let program = format!("/build/{name}/table");
    written(
        folder,
        name,
        &program,
        &table.touched,
        TimeUnit::Instructions,
    )
}

fn map(start: u64, pages: u64, file: &str) -> Event {
    Event::Mapping(MappingEvent::Map {
        start,
        pages,
        rights: Rights::READ,
        is_shared: false,
        memory: file.into(),
        offset: 0,
    })
}

/// Writes a trace of one process with a program and a heap; references are 10 units apart.
fn written(folder: &Folder, name: &str, program: &str, pages: &[u64], time: TimeUnit) -> String {
    let header = Header {
        page_bytes: 4096,
        granularity: Granularity::Exact,
        time,
        source: "test".into(),
        command: vec![program.into()],
        speed: None,
    };
    let path = folder.path(&format!("{name}.tide"));
    let mut writer = Writer::new(std::fs::File::create(&path).unwrap(), &header).unwrap();
    let start = Event::Life(LifeEvent::Start {
        pid: 7,
        parent: 0,
        program: program.into(),
    });
    let events = [
        start,
        map(PROGRAM, 8, program),
        map(HEAP, 1 << 16, "[heap]"),
    ];
    let placed = events.map(|event| Placed {
        after: 0,
        time: 0,
        event,
    });
    let mut block = Block {
        events: placed.into(),
        ..Block::default()
    };
    for part in pages.chunks(Block::RECORDS_MAX) {
        part.iter()
            .for_each(|page| block.push(*page, Kinds::LOAD, 10));
        writer.write(&block).unwrap();
        block.begin_next();
    }
    writer.finish().unwrap();
    path
}

fn status(arguments: &[&str]) -> i32 {
    let output = tidemark(arguments);
    output
        .status
        .code()
        .unwrap_or_else(|| panic!("{}", stderr(&output)))
}

/// Runs the command, which refuses in one line that has `parts` in it.
fn refused(arguments: &[&str], parts: &[&str]) {
    let output = tidemark(arguments);
    let told = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {told}");
    assert_eq!(told.lines().count(), 1, "{told}");
    assert!(output.stdout.is_empty(), "{output:?}");
    for part in parts {
        assert!(told.contains(part), "`{part}` is not in: {told}");
    }
}

#[test]
fn the_region_that_grew_is_named_with_its_part() {
    let folder = Folder::new("diff-table");
    let before = build(&folder, "without", false);
    let after = build(&folder, "with", true);
    let record: Value = serde_json::from_str(&text(&["diff", &before, &after, "--json"])).unwrap();
    assert_eq!(record["schema"], "tidemark.diff.v1");
    assert_eq!(record["kind"], "trace");
    let heap = &record["regions"][0];
    assert_eq!(heap["name"], "[heap]");
    let pages = |side: &str| heap[side]["pages"].as_u64().unwrap();
    assert!(pages("before") < 20 && pages("after") > 150, "{heap}");
    // The program itself is one region, though the two lie in different folders.
    let program = &record["regions"][1];
    assert_eq!(program["name"], "/build/with/table");
    assert_eq!(program["before"]["pages"], 3);
    assert_eq!(program["after"]["pages"], 3);

    let told = text(&["diff", &before, &after, "--width", "120"]);
    let sentence = format!(
        "[heap] grew from {} to {} pages (× ",
        pages("before"),
        pages("after")
    );
    assert!(told.contains(&sentence), "`{sentence}` is not in: {told}");
    assert!(
        told.contains("), and explains all of the growth."),
        "{told}"
    );
}

#[test]
fn regions_add_up_to_the_amounts_of_the_whole() {
    let folder = Folder::new("diff-sums");
    let (before, after) = (build(&folder, "a", false), build(&folder, "b", true));
    let arguments = ["diff", &before, &after, "--at", "4,1M", "--json"];
    let record: Value = serde_json::from_str(&text(&arguments)).unwrap();
    assert_eq!(record["sizes"], json!([4, 256]));
    let measure = |group: &str, name: &str, at: Option<u64>, side: &str| {
        let is_meant =
            |it: &&Value| it["group"] == group && it["name"] == name && it["at"].as_u64() == at;
        let found = record["measures"].as_array().unwrap().iter().find(is_meant);
        found.unwrap_or_else(|| panic!("{group} {name}"))[side]
            .as_f64()
            .unwrap()
    };
    for side in ["before", "after"] {
        let sum = |of: &dyn Fn(&Value) -> u64| {
            let regions = record["regions"].as_array().unwrap().iter();
            regions.map(|region| of(&region[side])).sum::<u64>() as f64
        };
        let of = |name: &'static str| move |it: &Value| it[name].as_u64().unwrap();
        assert_eq!(sum(&of("pages")), measure("memory", "touched", None, side));
        assert_eq!(
            sum(&of("references")),
            measure("references", "references", None, side)
        );
        for (place, size) in [(0, 4), (1, 256)] {
            let misses = sum(&|it| it["misses"][place].as_u64().unwrap());
            assert_eq!(misses, measure("misses", "lru", Some(size), side));
            assert!(misses >= measure("misses", "opt", Some(size), side));
        }
    }
    // The other commands tell the same of each.
    let curve = text(&["curve", &before, "--policies", "lru", "--at", "4", "--json"]);
    let curve: Value = serde_json::from_str(&curve).unwrap();
    let misses = &curve["curves"][0]["points"][0]["misses"];
    assert_eq!(
        misses.as_f64().unwrap(),
        measure("misses", "lru", Some(4), "before")
    );
}

#[test]
fn a_threshold_decides_the_status() {
    let folder = Folder::new("diff-threshold");
    let pages = |count: u64| -> Vec<u64> { (0..20_000).map(|at| HEAP + at % count).collect() };
    let trace = |name: &str, count| {
        written(
            &folder,
            name,
            "/bin/x",
            &pages(count),
            TimeUnit::Instructions,
        )
    };
    let (small, large) = (trace("small", 100), trace("large", 104));
    assert_eq!(status(&["diff", &small, &large]), 0);
    let sized = |bound: &str, before: &str, after: &str| {
        status(&["diff", before, after, "--threshold", bound, "--at", "200"])
    };
    assert_eq!(sized("5%", &small, &large), 0);
    assert_eq!(sized("3%", &small, &large), 1);
    assert_eq!(sized("3%", &large, &small), 1);
    assert_eq!(sized("+3%", &small, &large), 1);
    assert_eq!(sized("+3%", &large, &small), 0);
    assert_eq!(sized("0%", &small, &small), 0);
    let output = tidemark(&["diff", &small, &large, "--threshold", "3", "--at", "200"]);
    let told = String::from_utf8(output.stdout).unwrap();
    let sentence = "Beyond the threshold (differs by more than 3 %): memory touched; pages of";
    assert!(told.contains(sentence), "{told}");
}

#[test]
fn a_page_and_csv_have_the_same_amounts() {
    let folder = Folder::new("diff-forms");
    let (before, after) = (build(&folder, "a", false), build(&folder, "b", true));
    let csv = text(&["diff", &before, &after, "--csv"]);
    let heap = csv
        .lines()
        .find(|line| line.starts_with("region,[heap],,pages,"));
    let heap: Vec<&str> = heap.unwrap().split(',').collect();
    let page = folder.path("diff.html");
    let told = text(&["diff", &before, &after, "--html", &page]);
    assert!(
        told.contains("[heap] grew") && told.contains("The page is in"),
        "{told}"
    );
    let html = std::fs::read_to_string(&page).unwrap();
    for part in ["<h2>Regions</h2>", "Misses by memory", "[heap] grew from"] {
        assert!(html.contains(part), "{part}");
    }
    let cell = format!("<td>{} → {}</td>", heap[4], heap[5]);
    assert!(html.contains(&cell), "{cell}");
    for foreign in ["src=\"http", "href=\"http", "@import", "url(http"] {
        assert!(!html.contains(foreign), "{foreign}");
    }
    refused(
        &["diff", &before, &after, "--html", &before],
        &["is the same file"],
    );
}

/// Writes a trace of a shell, and of a child of it for each of the `children`: a program, and the
/// pages of its heap that it walks through twice.
fn several(folder: &Folder, name: &str, children: &[(&str, u64)]) -> String {
    let header = Header {
        page_bytes: 4096,
        granularity: Granularity::Exact,
        time: TimeUnit::Instructions,
        source: "test".into(),
        command: vec!["sh".into(), "build".into()],
        speed: None,
    };
    let path = folder.path(&format!("{name}.tide"));
    let mut writer = Writer::new(std::fs::File::create(&path).unwrap(), &header).unwrap();
    let mut put = |process: u32, parent: u32, program: &str, pages: u64| {
        let start = Event::Life(LifeEvent::Start {
            pid: 100 + process,
            parent,
            program: program.into(),
        });
        let events = [start, map(HEAP, 1 << 16, "[heap]")].map(|event| Placed {
            after: 0,
            time: 0,
            event,
        });
        let mut block = Block {
            process,
            events: events.into(),
            ..Block::default()
        };
        let walked = (0..pages).chain(0..pages);
        walked.for_each(|page| block.push(HEAP + page, Kinds::LOAD, 10));
        writer.write(&block).unwrap();
    };
    put(0, 0, "/bin/sh", 10);
    for (place, (program, pages)) in children.iter().enumerate() {
        put(place as u32 + 1, 100, program, *pages);
    }
    writer.finish().unwrap();
    path
}

/// The traces of two builds, the second of which has a compiler that takes more.
fn two_builds(folder: &Folder) -> (String, String) {
    let build = |name: &str, first, second| {
        let children = [("/bin/cc1", first), ("/bin/as", 40), ("/bin/cc1", second)];
        several(folder, name, &children)
    };
    (build("a", 100, 60), build("b", 104, 660))
}

#[test]
fn the_process_that_grew_is_named_with_its_part() {
    let folder = Folder::new("diff-processes");
    let (before, after) = two_builds(&folder);
    let arguments = ["diff", &before, &after, "--at", "50,1000", "--json"];
    let record: Value = serde_json::from_str(&text(&arguments)).unwrap();
    let processes = record["processes"].as_array().unwrap();
    let told = |process: &Value| {
        let pages = |side: &str| process[side]["pages"].as_u64().unwrap();
        let name = process["name"].as_str().unwrap().to_owned();
        (
            name,
            process["nth"].as_u64().unwrap(),
            pages("before"),
            pages("after"),
        )
    };
    let found: Vec<_> = processes.iter().map(told).collect();
    let expected = [
        ("cc1", 2, 60, 660),
        ("cc1", 1, 100, 104),
        ("as", 1, 40, 40),
        ("sh", 1, 10, 10),
    ];
    assert_eq!(
        found,
        expected.map(|it| (it.0.to_owned(), it.1, it.2, it.3))
    );
    let grown = &processes[0]["after"];
    assert_eq!(grown["pid"], 103);
    assert_eq!(grown["program"], "/bin/cc1");
    assert_eq!(
        (&grown["references"], &grown["time"]),
        (&json!(1320), &json!(13200))
    );
    // In 50 pages each walk of 660 misses anew; in 1000 the second one does not. The first 10 pages
    // are those of the shell, which it forked with, and which `as` has left in memory.
    assert_eq!(grown["misses"], json!([1310, 650]));
}

#[test]
fn processes_stand_in_text_csv_and_on_the_page() {
    let folder = Folder::new("diff-forms-of-processes");
    let (before, after) = two_builds(&folder);
    let with = |option: &str| text(&["diff", &before, &after, option]);
    let text = text(&["diff", &before, &after, "--at", "1000", "--width=200"]);
    for part in [
        "Process cc1 #2 grew from 60 to 660 pages (× 11), and explains 99 % of the growth of all",
        ", all of that in [heap], and 99 % of it in process cc1 #2.",
        "\n cc1 #2     60 → 660 ",
        "Processes that are the same in both: 2.",
    ] {
        assert!(text.contains(part), "`{part}` is not in: {text}");
    }
    let csv = with("--csv");
    assert!(
        csv.contains("\nprocess,cc1 #2,,instructions,1200,13200,1000\n"),
        "{csv}"
    );
    let page = folder.path("page.html");
    with(&format!("--html={page}"));
    let html = std::fs::read_to_string(&page).unwrap();
    for part in [
        "<h2>Processes</h2>",
        "Process cc1 #2 grew",
        "<td>60 → 660</td>",
    ] {
        assert!(html.contains(part), "{part}");
    }
}

#[test]
fn a_process_is_judged_and_can_be_compared_alone() {
    let folder = Folder::new("diff-judged-processes");
    let (before, after) = two_builds(&folder);
    let output = tidemark(&["diff", &before, &after, "--threshold", "+5%", "--json"]);
    assert_eq!(output.status.code(), Some(1));
    let record: Value = serde_json::from_slice(&output.stdout).unwrap();
    // The other compiler grew by 4 pages of 210.
    let judged = [0, 1].map(|place| record["processes"][place]["is_beyond"] == true);
    assert_eq!(judged, [true, false]);
    // One of them alone is compared as a program of one process is.
    let alone = ["diff", &before, &after, "--process", "3", "--json"];
    let record: Value = serde_json::from_str(&text(&alone)).unwrap();
    assert!(record.get("processes").is_none());
}

#[test]
fn traces_without_references_are_compared() {
    let folder = Folder::new("diff-empty");
    let empty = written(&folder, "empty", "/bin/x", &[], TimeUnit::Instructions);
    let full = written(
        &folder,
        "full",
        "/bin/x",
        &[HEAP; 9],
        TimeUnit::Instructions,
    );
    assert!(text(&["diff", &empty, &empty]).contains("Nothing differs."));
    assert!(text(&["diff", &empty, &full]).contains("[heap] is new, with 1 pages"));
    assert!(text(&["diff", &full, &empty]).contains("[heap] is gone; it had 1 pages"));
}

#[test]
fn records_of_curves_are_compared_at_sizes_of_the_first() {
    let folder = Folder::new("diff-curves");
    let record = |name: &str, leaves| {
        let trace = build(&folder, name, leaves);
        let path = folder.path(&format!("{name}.json"));
        let curve = text(&[
            "curve",
            &trace,
            "--policies",
            "lru",
            "--json",
            "--rehearse",
            "never",
        ]);
        std::fs::write(&path, curve).unwrap();
        (trace, path)
    };
    let (before, after) = (record("a", false), record("b", true));
    let misses = |one: &str, other: &str| -> Vec<Value> {
        let told = text(&["diff", one, other, "--at", "4,8", "--json"]);
        let record: Value = serde_json::from_str(&told).unwrap();
        let measures = record["measures"].as_array().unwrap().clone();
        let is_meant = |it: &Value| it["group"] == "misses" && it["name"] == "lru";
        measures.into_iter().filter(is_meant).collect()
    };
    let of_records = misses(&before.1, &after.1);
    assert_eq!(of_records.len(), 2);
    assert_eq!(of_records, misses(&before.0, &after.0));
    assert_eq!(
        status(&["diff", &before.1, &after.1, "--threshold", "5%"]),
        1
    );
}

/// The statistics of a run with so many page-ins, as a file.
fn run_record(folder: &Folder, name: &str, page_ins: u64) -> String {
    let text = json!({
        "schema": "tidemark.run.v1", "tidemark": "0", "command": ["sort"], "policy": "clock",
        "mode": "thread", "memory_bytes": 1 << 20, "swap_bytes": 1 << 20,
        "ending": {"status": 0}, "notes": [], "processes": [],
        "total": {"page_ins": page_ins, "frames_peak": 256, "elapsed_s": 1.5},
    });
    let record = RunRecord::from_json(&text.to_string()).unwrap();
    assert_eq!(record.ending, Ending::Status(0));
    let path = folder.path(name);
    std::fs::write(&path, record.to_json()).unwrap();
    path
}

#[test]
fn statistics_of_runs_and_benchmarks_are_compared() {
    let folder = Folder::new("diff-runs");
    let before = run_record(&folder, "a.json", 1000);
    let after = run_record(&folder, "b.json", 1500);
    let told = text(&["diff", &before, &after]);
    assert!(
        told.contains("Page-ins rose from 1,000 to 1,500 (+50 %)."),
        "{told}"
    );
    assert!(told.contains("peak resident"), "{told}");
    assert_eq!(status(&["diff", &before, &after, "--threshold", "+40%"]), 1);
    assert_eq!(status(&["diff", &before, &after, "--threshold", "+50%"]), 0);

    let bench = |name: &str, elapsed_s: f64| {
        let text = json!({
            "schema": "tidemark.bench.v1", "workload": "loop", "memory_bytes": 1 << 20,
            "contenders": [
                {"name": "clock", "elapsed_s": elapsed_s, "page_ins": 7, "page_outs": 3},
            ],
        });
        let path = folder.path(name);
        std::fs::write(&path, text.to_string()).unwrap();
        path
    };
    let (before, after) = (bench("c.json", 2.0), bench("d.json", 1.0));
    let told = text(&["diff", &before, &after]);
    assert!(
        told.contains("Clock, elapsed fell from 2 s to 1 s (-50 %)."),
        "{told}"
    );
}

#[test]
fn what_can_not_be_compared_is_refused_in_one_line() {
    let folder = Folder::new("diff-refused");
    let trace = written(&folder, "a", "/bin/x", &[HEAP; 9], TimeUnit::Instructions);
    let other = written(&folder, "b", "/bin/x", &[HEAP; 9], TimeUnit::Nanoseconds);
    let run = run_record(&folder, "run.json", 1);
    let file = |name: &str, text: &str| {
        let path = folder.path(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let bench = file(
        "bench.json",
        r#"{"schema": "tidemark.bench.v1", "workload": "x", "memory_bytes": 1, "contenders": []}"#,
    );
    let wss = file("wss.json", r#"{"schema": "tidemark.wss.v1"}"#);
    let bare = file("bare.json", r#"{"a": 1}"#);
    let torn = file("torn.json", r#"{"schema": "tidemark.run"#);
    let words = file("words.txt", "hello");
    let missing = folder.path("missing.tide");
    let both = |option: &str, value: &str, parts: &[&str]| {
        refused(&["diff", &trace, &trace, option, value], parts);
    };
    refused(&["diff", &trace, &missing], &["missing.tide"]);
    refused(&["diff", &trace, &words], &["words.txt"]);
    refused(
        &["diff", &trace, &run],
        &["a.tide` is a trace", "compare two traces"],
    );
    refused(
        &["diff", &run, &trace],
        &["a.tide` is a trace", "run.json` is a record"],
    );
    refused(
        &["diff", &run, &bench],
        &["tidemark.run.v1", "tidemark.bench.v1", "one kind"],
    );
    refused(&["diff", &wss, &wss], &["tidemark.wss.v1", "curve --json"]);
    refused(&["diff", &bare, &bare], &["bare.json`: has no `schema`"]);
    refused(&["diff", &torn, &torn], &["torn.json"]);
    refused(
        &["diff", &trace, &other],
        &["instructions", "nanoseconds", "in one way"],
    );
    refused(&["diff", "-", "-"], &["`-`: standard input is one trace"]);
    refused(
        &["diff", &run, &run, "--windows", "5"],
        &["`--windows`: is for traces"],
    );
    refused(
        &["diff", &run, &run, "--at", "5"],
        &["`--at`: is for traces and curves"],
    );
    both("--threshold", "much", &["`--threshold much`", "`5%`"]);
    both("--at", "all", &["`--at all`"]);
    both("--at", "0", &["`--at 0`"]);
    both("--windows", "0", &["`--windows 0`"]);
    both("--process", "cc1", &["`--process`", "cc1"]);
}
