//! Unmanaged processes are named and counted, and each process of a tree has its ending.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use super::child::{self, Outcome};
use super::needs;
use super::scratch::Scratch;

/// Fills so many MiB of private, of shared, or of the stacks of so many threads, and lingers.
const SOURCE: &str = include_str!("unmanaged.c");
const LIMIT: Duration = Duration::from_secs(120);
const MIB: u64 = 1 << 20;
/// The first kernel that tells whoever asks how a process ended.
const KERNEL_THAT_TELLS: (u32, u32) = (6, 15);

#[test]
fn found_f7_nothing_holds_the_swap_file_when_the_run_is_over() {
    if !needs::are_met(&[]) {
        return;
    }
    let scratch = Scratch::new("swap-room");
    let temporary = scratch.folder("tmp");
    for _ in 0..5 {
        let mut command = run(&scratch, &["sh", "-c", "true; sh -c 'exit 3'"]);
        command.env("TMPDIR", &temporary);
        child::run(command, &scratch.join("out"), LIMIT).expect_code(3, "a short run");
        // A keeper would hold the folder of the run, and with it the swap file.
        let left = std::fs::read_dir(&temporary).unwrap().count();
        assert_eq!(left, 0, "somebody looks after processes that are gone");
    }
}

#[test]
fn found_f8_static_programs_are_named_and_their_memory_is_counted() {
    if !needs::are_met(&["cc"]) {
        return;
    }
    let scratch = Scratch::new("static");
    let program = compile(&scratch, &["-static"]);
    let script = format!("{} private 64 3000", program.display());
    // A shell that has something to do afterwards does not become the program.
    let record = record_of(&scratch, &["sh", "-c", &format!("{script}; exit 6")], 6);
    let notes = record["notes"].to_string();
    assert!(
        notes.contains("1 program ran unmanaged: unmanaged"),
        "{notes}"
    );
    let unmanaged = record["total"]["unmanaged_bytes"].as_u64().unwrap();
    assert!(unmanaged >= 60 * MIB, "{unmanaged} bytes");
}

#[test]
fn found_b11_a_short_static_program_is_named_at_its_exec() {
    if !needs::are_met(&["cc", "python3"]) {
        return;
    }
    let scratch = Scratch::new("short");
    let program = compile(&scratch, &["-static"]);
    let program = program.to_str().unwrap();
    // By a child that shares its parent's memory, and by the C library itself.
    let words = format!("{program} private 1 40");
    let spawn = format!(
        "import os; pid = os.posix_spawn('{program}', '{words}'.split(), os.environ); \
         os.waitpid(pid, 0)"
    );
    let call = format!("import subprocess; subprocess.call('{words}'.split())");
    let shell = format!("{words}; exit 0");
    for command in [
        ["sh", "-c", &shell],
        ["python3", "-c", &spawn],
        ["python3", "-c", &call],
    ] {
        let notes = record_of(&scratch, &command, 0)["notes"].to_string();
        assert!(
            notes.contains("1 program ran unmanaged: unmanaged"),
            "{command:?}: {notes}"
        );
    }
}

#[test]
fn found_f8_shared_memory_is_counted_and_the_room_of_stacks_is_not() {
    if !needs::are_met(&["cc"]) {
        return;
    }
    let scratch = Scratch::new("shared");
    let program = compile(&scratch, &["-pthread"]);
    let program = program.to_str().unwrap();
    let unmanaged = |what: &str, count: &str| {
        let record = record_of(&scratch, &[program, what, count, "0"], 0);
        let process = record["processes"][0]["unmanaged_bytes"].as_u64().unwrap();
        let total = record["total"]["unmanaged_bytes"].as_u64().unwrap();
        assert!(process <= total, "{process} of {total}");
        process
    };
    let shared = unmanaged("shared", "40");
    assert!((40 * MIB..60 * MIB).contains(&shared), "{shared} bytes");
    // 32 threads have 256 MiB of room for stacks, and use little of it.
    let stacks = unmanaged("threads", "32");
    assert!(stacks < 20 * MIB, "{stacks} bytes");
    let private = unmanaged("private", "40");
    assert!(private < 20 * MIB, "{private} bytes");
}

#[test]
fn found_m8_a_live_recording_does_not_count_the_room_of_stacks() {
    if !needs::are_met(&["cc"]) {
        return;
    }
    let scratch = Scratch::new("stacks");
    let program = compile(&scratch, &["-pthread"]);
    let mut command = Command::new(needs::tidemark());
    command.args(["record", "--live", "--summary", "-o"]);
    command.arg(scratch.join("threads.tide")).arg("--");
    command.arg(&program).args(["threads", "32", "300"]);
    let outcome = child::run(command, &scratch.join("out"), LIMIT);
    let errors = outcome.expect_code(0, "a recording").errors_text();
    let told = errors.split("not in the trace: ").nth(1).unwrap_or(&errors);
    let (size, rest) = told.split_once(" resident").unwrap_or((told, ""));
    assert!(rest.starts_with(" at most at a time"), "{errors}");
    let (number, unit) = size.split_once(' ').unwrap();
    let number: f64 = number.parse().unwrap();
    assert!(unit != "GiB" && (unit != "MiB" || number < 20.0), "{size}");
}

#[test]
fn found_f10_each_process_of_a_tree_has_its_ending() {
    if !needs::are_met(&[]) {
        return;
    }
    let scratch = Scratch::new("endings");
    let script = "(exit 5); sh -c 'kill -9 $$'; sh -c 'exit 4' & wait; sh -c 'exec sh -c true'; \
                  exit 3";
    let record = record_of(&scratch, &["sh", "-c", script], 3);
    if !does_kernel_tell() {
        needs::lacks("the kernel does not tell how processes ended (Linux 6.15 does)");
        return;
    }
    let processes = record["processes"].as_array().unwrap();
    let endings: Vec<String> = processes
        .iter()
        .map(|process| process["ending"].to_string())
        .collect();
    assert!(
        !endings.iter().any(|ending| ending == "\"gone\""),
        "{endings:?}"
    );
    for ending in [
        r#"{"status":5}"#,
        r#"{"signal":9}"#,
        r#"{"status":4}"#,
        r#"{"status":3}"#,
        r#""replaced""#,
    ] {
        assert!(endings.iter().any(|known| known == ending), "{endings:?}");
    }
}

/// `tidemark run` of `program` with swap in `scratch`.
fn run(scratch: &Scratch, program: &[&str]) -> Command {
    let mut command = Command::new(needs::tidemark());
    command.args(["run", "--memory", "64M", "--swap-size", "64M", "--swap"]);
    command.arg(scratch.path()).arg("--").args(program);
    command
}

/// The record of a run that ends with `status`.
fn record_of(scratch: &Scratch, program: &[&str], status: i32) -> Value {
    let statistics = scratch.join("run.json");
    let mut command = Command::new(needs::tidemark());
    command.args(["run", "--memory", "64M", "--swap-size", "64M", "--swap"]);
    command.arg(scratch.path()).arg("--stats").arg(&statistics);
    command.arg("--").args(program);
    let outcome: Outcome = child::run(command, &scratch.join("out"), LIMIT);
    outcome.expect_code(status, "the program");
    let text = std::fs::read_to_string(&statistics).expect("a run leaves its statistics");
    serde_json::from_str(&text).expect("statistics are JSON")
}

fn compile(scratch: &Scratch, options: &[&str]) -> PathBuf {
    let source = scratch.write("unmanaged.c", SOURCE);
    let program = scratch.join("unmanaged");
    let mut compiler = Command::new("cc");
    compiler.args(["-O1", "-o"]).arg(&program).arg(&source);
    let status = compiler.args(options).status();
    assert!(status.expect("the compiler starts").success());
    program
}

fn does_kernel_tell() -> bool {
    let release = rustix::system::uname()
        .release()
        .to_string_lossy()
        .into_owned();
    let mut numbers = release.split('.').map(|part| part.parse().unwrap_or(0));
    let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    version >= KERNEL_THAT_TELLS
}
