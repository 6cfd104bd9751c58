//! Mapped files that are managed (`run --files`): each byte is as natively, whatever the program
//! does to its mappings.

use std::path::Path;
use std::process::Command;

use super::built::{self, Built};
use super::child::{self, Outcome};
use super::needs;
use super::trial::Statistics;

const SOURCE: &str = include_str!("mapped.c");

/// Runs the ways of the program natively and in a third of their file's size. They say the same,
/// and pages come from the file.
fn compare(name: &str, ways: &[&str]) {
    let Some(program) = Built::new(name, SOURCE) else {
        return;
    };
    for way in ways {
        let (outcome, native, total) = run_both(&program, way);
        built::expect_same(&outcome, &native, way);
        assert!(
            total.field("file_mappings") > 0,
            "{way}: nothing was managed"
        );
        assert!(total.field("file_ins") > 1000, "{way}: nothing was read");
        total.check(way);
    }
}

fn run_both(program: &Built, way: &str) -> (Outcome, Outcome, Statistics) {
    let data = program.scratch.join("data").display().to_string();
    let statistics = program.scratch.join("statistics.json");
    let native = program.run_natively(&[way, &data]);
    let path = statistics.display().to_string();
    let options = ["--files", "--stats", &path];
    let outcome = program.run_managed(&options, &[way, &data]);
    let total = Statistics::read(&statistics, way, &outcome);
    (outcome, native, total)
}

#[test]
fn mapped_files_read_as_natively() {
    compare("mapped-read", &["read", "threads", "advise"]);
}

#[test]
fn private_copies_of_files_keep_what_is_written_and_nothing_else() {
    compare("mapped-change", &["change"]);
}

#[test]
fn mapped_files_are_taken_apart_moved_and_made_longer() {
    compare("mapped-apart", &["apart", "beyond", "lock"]);
}

#[test]
fn rights_to_mapped_files_are_kept() {
    compare("mapped-rights", &["protect", "closed"]);
}

#[test]
fn forked_children_have_mapped_files() {
    compare("mapped-fork", &["fork", "fork-call"]);
}

/// Without `--files` a private mapping to write to is managed that lies where the program wants it,
/// and is neither small nor large.
#[test]
fn copies_of_files_are_managed_without_being_named() {
    let Some(program) = Built::new("mapped-copy", SOURCE) else {
        return;
    };
    let data = program.scratch.join("data").display().to_string();
    let statistics = program.scratch.join("statistics.json");
    let native = program.run_natively(&["copy", &data]);
    let path = statistics.display().to_string();
    let outcome = program.run_managed(&["--stats", &path], &["copy", &data]);
    built::expect_same(&outcome, &native, "copy");
    let total = Statistics::read(&statistics, "copy", &outcome);
    assert_eq!(total.field("file_mappings"), 1);
    assert_eq!(total.field("file_mappings_passed"), 0);
    assert!(total.field("file_ins") >= 512);
    total.check("copy");
    for other in [
        &["--in-step", "--stats", &path],
        &["--in-thread", "--stats", &path],
    ] {
        let outcome = program.run_managed(other, &["copy", &data]);
        built::expect_same(&outcome, &native, "copy");
        let total = Statistics::read(&statistics, "copy", &outcome);
        assert_eq!(total.field("file_mappings"), 0, "{other:?}");
    }
}

#[test]
fn copies_of_files_are_in_children_and_there_at_once_as_natively() {
    let Some(program) = Built::new("mapped-orphan", SOURCE) else {
        return;
    };
    let data = program.scratch.join("data").display().to_string();
    const OTHERS: [&str; 2] = ["--files", "/elsewhere/*"];
    for (way, modes) in [
        ("orphan", [&[][..], &["--files"]]),
        ("populate", [&[], &["--files"]]),
        ("populate-early", [&[], &OTHERS]),
    ] {
        let native = program.run_natively(&[way, &data]);
        for mode in modes {
            let outcome = program.run_managed(mode, &[way, &data]);
            built::expect_same(&outcome, &native, &format!("{way} {mode:?}"));
        }
    }
}

#[test]
fn mappings_that_cant_be_kept_right_are_left_alone_and_counted() {
    let Some(program) = Built::new("mapped-pass", SOURCE) else {
        return;
    };
    let (outcome, native, total) = run_both(&program, "pass");
    built::expect_same(&outcome, &native, "pass");
    assert_eq!(total.field("file_mappings"), 0);
    assert_eq!(total.field("file_mappings_passed"), 5);
    assert!(total.field("file_bytes_passed") > 3 * 6000 * 4096);
}

#[test]
fn a_file_that_is_named_and_not_managed_is_said_to_be_with_the_reason() {
    let Some(program) = Built::new("mapped-named", SOURCE) else {
        return;
    };
    let data = program.scratch.join("data").display().to_string();
    let outcome = program.run_managed(&["--files", "*/data", "--summary"], &["pass", &data]);
    let told = outcome.errors_text();
    for part in [
        "data` is not managed: it is mapped shared and writable (`--files-write` manages such)",
        "data` is not managed: the program has opened it for writing",
        "data` is not managed: it is mapped to be executed",
        "0 mappings managed",
        "; 3 (",
    ] {
        assert!(told.contains(part), "`{part}` is not in:\n{told}");
    }
    // Others are not looked at.
    let outcome = program.run_managed(&["--files", "/elsewhere/*", "--summary"], &["read", &data]);
    let told = outcome.errors_text();
    assert!(
        !told.contains("not managed") && !told.contains("files "),
        "{told}"
    );
}

#[test]
fn a_file_that_is_cut_is_named() {
    let Some(program) = Built::new("mapped-cut", SOURCE) else {
        return;
    };
    let (outcome, native, _) = run_both(&program, "cut");
    let (errors, output) = (outcome.errors_text(), outcome.output_text());
    assert_eq!(output, native.output_text(), "{errors}");
    assert_eq!(outcome.status, native.status);
    let part = "data` was cut to 4096017 bytes while 24577234 were mapped";
    assert!(errors.contains(part), "{errors}");
    assert_eq!(errors.lines().count(), 1, "{errors}");
}

/// Searches a database by an index and reads all of it, through a mapping of its file.
#[test]
fn a_database_that_is_mapped_answers_the_same() {
    if !needs::are_met(&["sqlite3"]) {
        return;
    }
    let scratch = super::scratch::Scratch::new("mapped-sqlite");
    let file = scratch.join("rows.db").display().to_string();
    let fill = "create table row(id integer primary key, key integer, text text);
        with recursive n(i) as (select 1 union all select i + 1 from n where i < 150000)
        insert into row select i, i * 7919 % 150000, hex(zeroblob(40)) || i from n;
        create index by_key on row(key);";
    let mut command = Command::new("sqlite3");
    command.args([&file, fill]);
    child::run(command, &scratch.join("fill"), built::LIMIT).expect_success("filling");
    let ask = "pragma mmap_size=1000000000;
        select sum(length(text)), sum(key) from row;
        select count(*), sum(b.id) from row a join row b on b.key = a.id where a.id % 7 = 3;
        pragma integrity_check;";
    let outcomes = compare_command(&["sqlite3", "-readonly", &file, ask], &scratch.join("run"));
    outcomes.check("sqlite3");
    assert!(outcomes.field("file_mappings") > 0);
    assert!(outcomes.field("file_ins") > 1000);
}

/// Sums, changes and gathers from arrays in files.
#[test]
fn python_maps_files() {
    if !needs::are_met(&["python3"]) {
        return;
    }
    let scratch = super::scratch::Scratch::new("mapped-python");
    let file = scratch.join("numbers").display().to_string();
    let program = "import mmap, random, sys, zlib
path = sys.argv[1]
with open(path, 'wb') as out:
    for number in range(24):
        out.write(random.Random(number).randbytes(1 << 20))
    out.write(b'end')
with open(path, 'rb') as file:
    seen = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    own = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
seen.madvise(mmap.MADV_SEQUENTIAL)
print(zlib.crc32(seen), seen[-3:], seen.find(b'end', len(seen) - 100))
for at in range(0, len(own), 12345):
    own[at] = at & 255
print(zlib.crc32(own), zlib.crc32(seen))
places = random.Random(5)
print(sum(seen[places.randrange(len(seen))] for _ in range(20000)))
print(open(path, 'rb').read() == seen[:])
";
    let outcomes = compare_command(&["python3", "-c", program, &file], &scratch.join("run"));
    outcomes.check("python3");
    assert_eq!(outcomes.field("file_mappings"), 2);
    assert!(outcomes.field("file_ins") > 6000);
}

/// Runs a command natively and in 8 MiB: same output. Answers the statistics of the second.
fn compare_command(words: &[&str], place: &Path) -> Statistics {
    let mut command = Command::new(words[0]);
    command.args(&words[1..]);
    let native = child::run(command, place, built::LIMIT);
    native.expect_success(words[0]);
    let statistics = place.with_extension("json");
    let mut command = Command::new(needs::tidemark());
    command.args(["run", "--memory", "8M", "--files", "--stats"]);
    command.arg(&statistics).arg("--").args(words);
    let outcome = child::run(command, &place.with_extension("managed"), built::LIMIT);
    let total = Statistics::read(&statistics, words[0], &outcome);
    built::expect_same(&outcome, &native, words[0]);
    total
}
