//! Programs that change their address space from several threads while they fork, and check each
//! page: at random ([`churn.c`](CHURN)), and as what was lost once ([`beside.c`](BESIDE),
//! [`resizes.c`](RESIZES)).
//!
//! A minute in all, of fixed seeds and of fresh ones; at full size an hour. `TIDEMARK_SEED=7`
//! repeats one. Each run is said before it starts, as the command that repeats it.

use std::process::Command;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::built::Built;
use super::trial::Statistics;
use super::{child, needs};

const CHURN: &str = include_str!("churn.c");
const BESIDE: &str = include_str!("beside.c");
const RESIZES: &str = include_str!("resizes.c");

/// The time that a run may take beyond its own: to page in what is checked at the end, on a machine
/// that does other things.
const LIMIT: Duration = Duration::from_secs(120);

/// One way to run `churn`.
#[derive(Clone, Copy)]
struct Kind {
    store: &'static str,
    memory: &'static str,
    threads: u32,
    /// The most that it fills.
    mebibytes: u32,
    room: Room,
}

/// The memory that there is, beside what `churn` fills.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Room {
    /// Far too little: each run pages.
    Tight,
    /// Too little once children have changed pages, which some seeds do late or never: of all
    /// such runs one pages.
    Close,
    Ample,
}

const fn tight(store: &'static str, memory: &'static str, threads: u32, mebibytes: u32) -> Kind {
    Kind {
        store,
        memory,
        threads,
        mebibytes,
        room: Room::Tight,
    }
}

const fn close(store: &'static str, memory: &'static str, threads: u32, mebibytes: u32) -> Kind {
    Kind {
        room: Room::Close,
        ..tight(store, memory, threads, mebibytes)
    }
}

const fn ample(store: &'static str, threads: u32, mebibytes: u32) -> Kind {
    Kind {
        store,
        memory: "200M",
        threads,
        mebibytes,
        room: Room::Ample,
    }
}

const KINDS: [Kind; 24] = [
    tight("compressed+file", "12M", 1, 40),
    tight("compressed+file", "20M", 2, 60),
    tight("compressed+file", "30M", 4, 60),
    tight("compressed+file", "40M", 8, 80),
    tight("file", "12M", 1, 40),
    tight("file", "20M", 2, 60),
    tight("file", "30M", 4, 60),
    tight("file", "40M", 8, 80),
    // There is nowhere else for pages to go: what is compressed has to fit, and so has what
    // children change.
    close("compressed", "36M", 1, 24),
    close("compressed", "72M", 2, 24),
    close("compressed", "120M", 4, 24),
    close("compressed", "200M", 8, 24),
    ample("compressed+file", 1, 60),
    ample("compressed+file", 2, 60),
    ample("compressed+file", 4, 60),
    ample("compressed+file", 8, 60),
    ample("file", 1, 60),
    ample("file", 2, 60),
    ample("file", 4, 60),
    ample("file", 8, 60),
    ample("compressed", 1, 32),
    ample("compressed", 2, 32),
    ample("compressed", 4, 32),
    ample("compressed", 8, 32),
];

#[test]
fn every_page_is_what_a_thread_wrote_while_others_change_memory_and_fork() {
    let Some(program) = Built::new("churn", CHURN) else {
        return;
    };
    let (milliseconds, in_all) = needs::size((1700, 1), (10_000, 2700));
    let named = std::env::var("TIDEMARK_SEED").ok();
    let named = named.map(|seed| seed.parse().expect("`TIDEMARK_SEED` is a number"));
    let (begun, in_all) = (Instant::now(), Duration::from_secs(in_all));
    let (mut fixed, mut paged_where_close) = (0, 0);
    while begun.elapsed() < in_all {
        for kind in KINDS {
            fixed += 1;
            let chosen = if fixed % 2 == 0 { fixed } else { fresh_seed() };
            let page_outs = run(&program, kind, named.unwrap_or(chosen), milliseconds);
            match kind.room {
                Room::Tight => assert!(page_outs > 0, "nothing was paged; is it managed at all?"),
                Room::Close => paged_where_close += page_outs,
                Room::Ample => {}
            }
        }
    }
    assert!(
        paged_where_close > 0,
        "no run in compressed memory paged; is it managed at all?"
    );
}

/// The engine brings in what is out for whoever looks into the program, while pages that a fork has
/// left shared are in its way.
#[test]
fn a_program_that_strace_looks_into_goes_on() {
    if !needs::are_met(&["strace"]) {
        return;
    }
    let Some(program) = Built::new("churn-traced", CHURN) else {
        return;
    };
    let milliseconds = needs::size(3000, 20_000_u64);
    let mut command = Command::new("strace");
    command
        .args(["-f", "-o", "/dev/null"])
        .arg(needs::tidemark());
    command
        .args(["run", "--memory", "30M", "--"])
        .arg(&program.path);
    let seed = fresh_seed();
    let numbers = [seed, milliseconds, 4, 60];
    command.args(numbers.map(|number| number.to_string()));
    command.current_dir(program.scratch.path());
    let limit = LIMIT + Duration::from_millis(milliseconds);
    let outcome = child::run(command, &program.scratch.join("out"), limit);
    outcome.expect_success(&format!("churn {seed} within strace"));
}

fn fresh_seed() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.expect("it is later than 1970").as_micros() as u64 % 1_000_000_000
}

/// The number of pages that went out of a run in which each page was what was written.
fn run(program: &Built, kind: Kind, seed: u64, milliseconds: u64) -> u64 {
    let statistics = program.scratch.join("statistics.json");
    let mut command = Command::new(needs::tidemark());
    let (memory, store) = (kind.memory, kind.store);
    command.args(["run", "--memory", memory, "--store", store, "--stats"]);
    command.arg(&statistics).arg("--").arg(&program.path);
    let numbers = [
        seed,
        milliseconds,
        kind.threads.into(),
        kind.mebibytes.into(),
    ];
    command.args(numbers.map(|number| number.to_string()));
    command.current_dir(program.scratch.path());
    let what = format!(
        "tidemark run --memory {memory} --store {store} -- ./churn {seed} {milliseconds} {} {} \
         (cc -O1 -pthread -o churn crates/cli/tests/programs/churn.c)",
        kind.threads, kind.mebibytes
    );
    println!("{what}");
    let limit = LIMIT + Duration::from_millis(milliseconds);
    let outcome = child::run(command, &program.scratch.join("out"), limit);
    let said = outcome.output_text() + &outcome.errors_text();
    assert!(
        outcome.status.success(),
        "{what}: {}:\n{said}",
        outcome.status
    );
    println!("  {}", said.trim_end());
    let total = Statistics::read(&statistics, &what, &outcome);
    total.check(&what);
    total.field("page_outs")
}

#[test]
fn found_a0_discarded_pages_stay_empty_beside_a_thread_that_forks() {
    beside("discard");
}

#[test]
fn found_a0_moved_pages_stay_what_they_are_beside_a_thread_that_forks() {
    beside("move");
}

#[test]
fn pages_mapped_anew_are_empty_beside_a_thread_that_forks() {
    beside("unmap");
    beside("replace");
}

/// Runs `beside` in two fifths of what it goes through, by each store that has room for that.
fn beside(way: &str) {
    let Some(program) = Built::new(&format!("beside-{way}"), BESIDE) else {
        return;
    };
    let milliseconds = needs::size(1500, 100_000_u64);
    let limit = LIMIT + Duration::from_millis(milliseconds);
    for store in ["compressed+file", "file", "compressed"] {
        let mut command = Command::new(needs::tidemark());
        // Without a disk what is compressed has to fit, and so has what a child begins with.
        let memory = if store == "compressed" { "64M" } else { "16M" };
        command.args(["run", "--memory", memory, "--store", store, "--"]);
        command
            .arg(&program.path)
            .args([way, &milliseconds.to_string()]);
        let what = format!(
            "tidemark run --memory {memory} --store {store} -- ./beside {way} {milliseconds}"
        );
        println!("{what}");
        let outcome = child::run(command, &program.scratch.join("out"), limit);
        let (said, errors) = (outcome.output_text(), outcome.errors_text());
        assert_eq!(
            said, "0 pages wrong, 0 children bad\n",
            "{what}: it wrote:\n{errors}"
        );
        outcome.expect_success(&what);
    }
}

#[test]
fn memory_grows_where_other_threads_have_made_way() {
    let Some(program) = Built::new("resizes", RESIZES) else {
        return;
    };
    let milliseconds = needs::size(3000, 100_000_u64);
    let mut command = Command::new(needs::tidemark());
    command.args(["run", "--memory", "64M", "--"]);
    command.arg(&program.path).arg(milliseconds.to_string());
    let limit = LIMIT + Duration::from_millis(milliseconds);
    let outcome = child::run(command, &program.scratch.join("out"), limit);
    outcome.expect_success("resizes");
    assert_eq!(outcome.output_text(), "0 pages wrong, 0 calls refused\n");
}
