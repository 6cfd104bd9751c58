//! Shared mappings of files that are written back (`run --files-write`): the program says what it
//! says natively, and its file has the same bytes, whatever becomes of the mapping and the program.

use std::path::PathBuf;
use std::process::Command;

use super::built::{self, Built};
use super::child::{self, Outcome};
use super::needs;
use super::trial::Statistics;

const SOURCE: &str = include_str!("written.c");

/// A run of one way of the program, natively and in a quarter of its file's size.
struct Both {
    total: Statistics,
    outcome: Outcome,
}

/// Runs the ways of the program natively and managed. They say the same, end alike, and leave the
/// same file.
fn compare(name: &str, ways: &[&str]) -> Vec<Both> {
    let Some(program) = Built::new(name, SOURCE) else {
        return vec![];
    };
    ways.iter().map(|way| run_both(&program, way)).collect()
}

fn run_both(program: &Built, way: &str) -> Both {
    let data = program.scratch.join("data");
    let file = data.display().to_string();
    let statistics = program.scratch.join("statistics.json");
    let path = statistics.display().to_string();
    let native = program.run_natively(&[way, &file]);
    let written = std::fs::read(&data).unwrap();
    let options = [
        "--memory",
        "4M",
        "--files",
        "--files-write",
        "--stats",
        &path,
    ];
    let outcome = program.run_managed(&options, &[way, &file]);
    built::expect_same(&outcome, &native, way);
    expect_pages(&std::fs::read(&data).unwrap(), &written, way);
    let total = Statistics::read(&statistics, way, &outcome);
    assert!(
        total.field("file_mappings") > 0,
        "{way}: nothing was managed"
    );
    Both { total, outcome }
}

/// Panics unless both have the same bytes, with the first pages that differ.
fn expect_pages(found: &[u8], expected: &[u8], way: &str) {
    assert_eq!(found.len(), expected.len(), "{way}");
    let pages = found.chunks(4096).zip(expected.chunks(4096)).enumerate();
    let differ = pages.filter(|(_, (found, expected))| found != expected);
    let differ: Vec<usize> = differ.map(|(page, _)| page).take(8).collect();
    assert!(
        differ.is_empty(),
        "{way}: pages {differ:?} of the file differ"
    );
}

/// The mappings that were left to the kernel, of each run.
fn passed(runs: &[Both]) -> Vec<u64> {
    let count = |run: &Both| run.total.field("file_mappings_passed");
    runs.iter().map(count).collect()
}

#[test]
fn what_is_written_to_a_mapped_file_is_there_when_it_is_unmapped() {
    let runs = compare("written-random", &["random", "apart"]);
    for run in &runs {
        assert!(run.total.field("file_outs") > 1000);
        assert!(run.outcome.status.success());
    }
    assert!(passed(&runs).iter().all(|count| *count == 0));
}

#[test]
fn what_is_written_is_there_however_the_program_ends() {
    let ways = ["exit", "exit-at-once", "kill", "exec"];
    let runs = compare("written-ends", &ways);
    assert!(passed(&runs).iter().all(|count| *count == 0));
}

#[test]
fn another_process_sees_what_was_synchronized() {
    let runs = compare("written-sync", &["sync"]);
    assert!(passed(&runs).iter().all(|count| *count == 0));
}

#[test]
fn what_a_fork_or_another_mapping_shares_is_the_kernels() {
    let runs = compare("written-shared", &["fork", "twice", "after"]);
    assert!(passed(&runs).iter().all(|count| *count > 0));
}

#[test]
fn a_file_may_grow_and_be_cut_under_its_mapping() {
    let runs = compare("written-size", &["grow", "cut"]);
    assert_eq!(passed(&runs).first().copied().unwrap_or(0), 0);
}

#[test]
fn a_file_that_is_used_by_a_descriptor_has_the_same_bytes_both_ways() {
    let runs = compare("written-use", &["use"]);
    assert!(passed(&runs).iter().all(|count| *count == 1));
}

#[test]
fn rights_and_advice_are_kept() {
    compare("written-rights", &["protect", "advise"]);
}

#[test]
fn threads_write_while_their_file_is_written_back() {
    compare("written-threads", &["threads"]);
}

#[test]
fn two_processes_that_map_one_file_see_each_others_writes() {
    let runs = compare("written-meet", &["meet"]);
    assert!(passed(&runs).iter().all(|count| *count == 2));
}

/// Runs a way with faults injected into the store, in memory for all of the file.
fn run_failing(program: &Built, way: &str, fault: &str) -> Outcome {
    let data = program.scratch.join("data");
    let mut command = Command::new(needs::tidemark());
    command.env("TIDEMARK_FAULT", fault);
    command.args([
        "run",
        "--memory",
        "64M",
        "--files",
        "*/data",
        "--files-write",
        "--",
    ]);
    command.arg(&program.path).arg(way).arg(data);
    child::run(command, &program.scratch.join(way), built::LIMIT)
}

#[test]
fn a_write_that_fails_is_an_error_of_msync_and_what_was_changed_stays() {
    let Some(program) = Built::new("written-fails", SOURCE) else {
        return;
    };
    let outcome = run_failing(&program, "fail-once", "write:1");
    let (output, errors) = (outcome.output_text(), outcome.errors_text());
    assert!(output.contains("fails: 5\n"), "{output}{errors}");
    assert!(output.contains("works: 0\n"), "{output}{errors}");
    assert!(
        errors.contains("data`: writing the file at byte"),
        "{errors}"
    );
    let written = std::fs::read(program.scratch.join("data")).unwrap();
    let native = program.run_natively(&["fail-once", &data_of(&program)]);
    let same = std::fs::read(program.scratch.join("data")).unwrap();
    expect_pages(&written, &same, "fail-once");
    let last = |outcome: &Outcome| outcome.output_text().lines().nth_back(1).map(String::from);
    assert_eq!(last(&outcome), last(&native));
}

#[test]
fn a_file_that_cant_be_written_is_named_and_the_program_is_ended() {
    let Some(program) = Built::new("written-lost", SOURCE) else {
        return;
    };
    let outcome = run_failing(&program, "fail-unmapped", "write:1");
    let errors = outcome.errors_text();
    assert!(!outcome.status.success(), "{errors}");
    assert!(!outcome.output_text().contains("not ended"), "{errors}");
    let told =
        "data` can't be written: Input/output error (os error 5); what was changed there is lost";
    assert!(errors.contains(told), "{errors}");
    assert_eq!(errors.matches("can't be written").count(), 1, "{errors}");
}

/// Mounts a file system of 12 MiB at `$0/at`, and runs the arguments. One on another in memory does
/// not count as one in memory. Ends with 77 where there is none.
const ON_SMALL_DISK: &str = r#"
mount -t tmpfs -o size=12M none "$0" && mkdir "$0/at" "$0/up" "$0/work" "$0/low" || exit 77
mount -t overlay -o "lowerdir=$0/low,upperdir=$0/up,workdir=$0/work" none "$0/at" || {
    truncate -s 12M "$0/image" && mkfs.ext4 -q "$0/image" && mount -o loop "$0/image" "$0/at"
} || exit 77
exec "$@"
"#;

/// Runs a way on a disk that has not enough room, in so much memory. `None`: there is no such disk.
fn run_on_full_disk(program: &Built, way: &str, memory: &str) -> Option<Outcome> {
    let disk = program.scratch.folder(way);
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", ON_SMALL_DISK]).arg(&disk);
    command
        .arg(needs::tidemark())
        .args(["run", "--memory", memory]);
    command.args(["--files", "*/data", "--files-write", "--"]);
    command
        .arg(&program.path)
        .arg(way)
        .arg(disk.join("at/data"));
    let folder = program.scratch.join(&format!("{way}-{memory}"));
    let outcome = child::run(command, &folder, built::LIMIT);
    if outcome.status.code() == Some(77) {
        needs::lacks("no small file system can be mounted here");
        return None;
    }
    Some(outcome)
}

/// The file has holes, and its disk has room for a quarter of them.
#[test]
fn a_full_disk_is_told_of_and_nothing_is_lost_without_a_word() {
    if !needs::is_root() || !needs::are_met(&["unshare"]) {
        needs::lacks("only root may mount a small file system");
        return;
    }
    let Some(program) = Built::new("written-full", SOURCE) else {
        return;
    };
    // Who synchronizes is told by the call, and goes on when there is room.
    let Some(outcome) = run_on_full_disk(&program, "fill", "64M") else {
        return;
    };
    let (output, errors) = (outcome.output_text(), outcome.errors_text());
    assert!(output.contains("full: 28\n"), "{output}{errors}");
    assert!(output.contains("works: 0\n"), "{output}{errors}");
    assert_eq!(errors.lines().count(), 1, "{errors}");
    let named = "/at/data`: writing the file at byte";
    let cause = "No space left on device (os error 28)";
    assert!(errors.contains(named) && errors.contains(cause), "{errors}");
    let native = program.run_natively(&["fill", &data_of(&program)]);
    let seen = |outcome: &Outcome| {
        let output = outcome.output_text();
        let lines = output.lines().filter(|line| !line.starts_with("full"));
        // By `cksum`, with the path behind.
        let numbers = lines.map(|line| line.split(" /").next().unwrap_or_default().to_owned());
        numbers.collect::<Vec<_>>()
    };
    assert_eq!(seen(&outcome), seen(&native));
    // Who can't be told is ended, whether pages must leave memory or the mapping goes.
    for memory in ["64M", "4M"] {
        let Some(outcome) = run_on_full_disk(&program, "fill-unmapped", memory) else {
            return;
        };
        let (output, errors) = (outcome.output_text(), outcome.errors_text());
        assert!(!outcome.status.success(), "{errors}");
        assert!(!output.contains("not ended"), "{errors}");
        let told = format!("/at/data` can't be written: {cause}; what was changed there is lost");
        assert_eq!(errors.matches(&told).count(), 1, "{errors}");
        assert!(!errors.contains("swap store"), "{errors}");
    }
}

fn data_of(program: &Built) -> String {
    program.scratch.join("data").display().to_string()
}

#[test]
fn without_files_it_is_refused_by_name() {
    let mut command = Command::new(needs::tidemark());
    command.args(["run", "--memory", "8M", "--files-write", "--", "true"]);
    let place = super::scratch::Scratch::new("written-alone");
    let outcome = child::run(command, &place.join("run"), built::LIMIT);
    assert_eq!(outcome.status.code(), Some(2));
    let errors = outcome.errors_text();
    assert!(
        errors.contains("`--files-write`: goes with `--files`"),
        "{errors}"
    );
}

/// Python's `mmap`, with slices, `flush`, `resize` and no `close`.
#[test]
fn python_writes_to_mapped_files() {
    if !needs::are_met(&["python3"]) {
        return;
    }
    let scratch = super::scratch::Scratch::new("written-python");
    let program = "import mmap, random, sys, zlib
path = sys.argv[1]
with open(path, 'wb') as out:
    for number in range(12):
        out.write(random.Random(number).randbytes(1 << 20))
file = open(path, 'r+b')
places = mmap.mmap(file.fileno(), 0)
chosen = random.Random(7)
for turn in range(6000):
    at = chosen.randrange(len(places) - 4)
    places[at:at + 4] = turn.to_bytes(4, 'little')
print(zlib.crc32(places))
places.flush()
print(zlib.crc32(open(path, 'rb').read()))
places.resize(15 << 20)
for turn in range(3000):
    places[chosen.randrange(len(places))] = turn & 255
print(zlib.crc32(places), len(places))
";
    let file: PathBuf = scratch.join("numbers");
    let run = |options: &[&str], name: &str| {
        let mut words: Vec<&str> = options.to_vec();
        words.extend(["python3", "-c", program]);
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).arg(&file);
        let outcome = child::run(command, &scratch.join(name), built::LIMIT);
        (outcome, std::fs::read(&file).unwrap())
    };
    let (native, expected) = run(&[], "native");
    let tidemark = needs::tidemark().display().to_string();
    let options = [
        &tidemark,
        "run",
        "--memory",
        "8M",
        "--files",
        "*/numbers",
        "--files-write",
        "--",
    ];
    let (outcome, found) = run(&options, "managed");
    built::expect_same(&outcome, &native, "python");
    expect_pages(&found, &expected, "python");
}
