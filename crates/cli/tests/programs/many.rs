//! Many processes in much memory: each costs what it uses, and nobody pages while some is free.

use std::process::Command;
use std::time::Duration;

use super::scratch::Scratch;
use super::trial::Statistics;
use super::{child, needs};

const LIMIT: Duration = Duration::from_secs(120);

/// Runs a program in so much memory. Answers what it wrote and its statistics.
fn run(scratch: &Scratch, memory: &str, program: &[&str]) -> (String, Statistics) {
    let statistics = scratch.join("statistics.json");
    let mut command = Command::new(needs::tidemark());
    command.args(["run", "--memory", memory, "--swap-size", "256M", "--stats"]);
    command.arg(&statistics).arg("--").args(program);
    let outcome = child::run(command, &scratch.join("out"), LIMIT);
    outcome.expect_success(memory);
    let read = Statistics::read(&statistics, memory, &outcome);
    (outcome.output_text(), read)
}

#[test]
fn found_f3_a_process_costs_what_it_uses_whatever_the_memory() {
    if !needs::are_met(&["grep"]) {
        return;
    }
    let scratch = Scratch::new("many-tables");
    for memory in ["64M", "16G"] {
        let (text, total) = run(&scratch, memory, &["grep", "RssAnon", "/proc/self/status"]);
        let number = text.split_whitespace().nth(1).unwrap();
        let kib: u64 = number.parse().unwrap();
        assert!(kib < 2048, "{memory}: {kib} KiB");
        let own = total.field("engine_bytes");
        assert!((64 << 10..2 << 20).contains(&own), "{memory}: {own} bytes");
    }
}

/// Fills 24 MiB in 16 MiB of memory, so that pages wait in frames: those are none of the engine's.
#[test]
fn found_f3_frames_are_not_counted_as_the_engines_own_memory() {
    if !needs::are_met(&["python3"]) {
        return;
    }
    let python = needs::python();
    let scratch = Scratch::new("many-frames");
    let program = "
data = bytearray(b'x' * (24 << 20))
for lap in range(3):
    total = sum(data[::4096])
print(total)";
    let (_, total) = run(&scratch, "16M", &[python, "-c", program]);
    assert!(total.field("page_ins") > 1000);
    let own = total.field("engine_bytes");
    assert!(own < 3 << 20, "{own} bytes");
}

#[test]
fn found_f9_a_shell_with_many_children_pages_nothing() {
    if !needs::are_met(&["sh", "sleep"]) {
        return;
    }
    let scratch = Scratch::new("many-children");
    let script = "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
        sleep 0.3 & done; wait";
    let (_, total) = run(&scratch, "8G", &["sh", "-c", script]);
    assert_eq!((total.field("page_ins"), total.field("page_outs")), (0, 0));
}

#[test]
fn children_that_have_all_memory_and_do_not_use_it_cost_nobody_its_life() {
    if !needs::are_met(&["sh", "sleep"]) {
        return;
    }
    let scratch = Scratch::new("many-in-little");
    // Each fork halves what the shell has, faster than memory is divided anew, and there is no file
    // for what it then has too much.
    let script = "i=0; while [ $i -lt 40 ]; do i=$((i+1)); sh -c 'sleep 1; exit 0' & done
        wait; echo done";
    let mut command = Command::new(needs::tidemark());
    command.args(["run", "--memory", "16M", "--store", "compressed", "--"]);
    command.args(["sh", "-c", script]);
    let outcome = child::run(command, &scratch.join("out"), LIMIT);
    outcome.expect_success("forty shells");
    assert_eq!(outcome.output_text(), "done\n", "{}", outcome.errors_text());
    assert!(
        !outcome.errors_text().contains("is ended"),
        "{}",
        outcome.errors_text()
    );
}

/// Forks as often as it is told, and each child fills 40 MiB.
const FILLING: &str = "
import os, sys
children = []
for number in range(int(sys.argv[1])):
    child = os.fork()
    if child == 0:
        memory = bytearray(40 << 20)
        for at in range(0, len(memory), 4096):
            memory[at] = 1
        os._exit(0)
    children.append(child)
for child in children:
    assert os.waitpid(child, 0)[1] == 0
";

#[test]
fn found_f9_children_that_grow_page_nothing_while_memory_is_free() {
    if !needs::are_met(&[needs::python()]) {
        return;
    }
    let scratch = Scratch::new("many-grow");
    let program = [needs::python(), "-c", FILLING, "16"];
    let (_, total) = run(&scratch, "4G", &program);
    assert_eq!((total.field("page_ins"), total.field("page_outs")), (0, 0));
}

/// Forks ten times beside so many GiB that nobody has touched (`MAP_NORESERVE` is 0x4000).
const EMPTY: &str = "
import mmap, os, sys
size = int(sys.argv[1]) << 30
empty = mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000)
for number in range(10):
    child = os.fork()
    if child == 0:
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
";

/// Each fork filled a page in every 64 MiB of such a mapping, in case it was a heap of the C
/// library's.
#[test]
fn found_f11_a_fork_touches_no_page_that_was_never_there() {
    if !needs::are_met(&[needs::python()]) {
        return;
    }
    let scratch = Scratch::new("many-empty");
    let pages = |gib: &str| {
        let program = [needs::python(), "-c", EMPTY, gib];
        let (_, total) = run(&scratch, "1G", &program);
        assert_eq!(total.field("page_outs"), 0);
        total.field("zero_fills") + total.field("adopted_pages")
    };
    let (few, many) = (pages("1"), pages("64"));
    assert!(many < few + 600, "{few} and {many} pages");
}
