//! The locks of engines, measured while a program with threads and children runs.

use std::process::Command;

use serde_json::Value;

use super::built::{BOTH, Built};
use super::needs;

/// Three threads that fill 6 MiB each and look at it again, and then a child that looks at some.
const SOURCE: &str = r#"
#include <pthread.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 3, PAGES = 6 << 8, PAGE = 4096 };
static unsigned char *memory;

static void *fill(void *number) {
    unsigned char *own = memory + (uintptr_t)number * PAGES * PAGE;
    for (int lap = 0; lap < 3; lap++)
        for (long page = 0; page < PAGES; page++) own[page * PAGE]++;
    return 0;
}

int main(void) {
    pthread_t threads[THREADS];
    memory = mmap(0, THREADS * PAGES * PAGE, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (uintptr_t number = 0; number < THREADS; number++)
        pthread_create(&threads[number], 0, fill, (void *)number);
    for (int number = 0; number < THREADS; number++) pthread_join(threads[number], 0);
    pid_t child = fork();
    if (child == 0) {
        int sum = 0;
        for (long page = 0; page < 100; page++) sum += memory[page * PAGE];
        _exit(sum == 300 ? 0 : 9);
    }
    int status;
    return waitpid(child, &status, 0) != child || status != 0;
}
"#;

/// Runs the program with these options. Answers the record, and what was said on stderr.
fn run(program: &Built, options: &[&str]) -> (Value, String) {
    let statistics = program.scratch.join("statistics.json");
    let stats = statistics.to_str().expect("the test's own path is text");
    let options = [options, &["--swap-size", "256M", "--stats", stats]].concat();
    let outcome = program.run_managed(&options, &[]);
    outcome.expect_success(&options.join(" "));
    let text = std::fs::read(&statistics).expect("the run leaves it");
    (
        serde_json::from_slice(&text).unwrap(),
        outcome.errors_text(),
    )
}

#[test]
fn locks_are_measured_in_both_modes() {
    let Some(program) = Built::new("locks", SOURCE) else {
        return;
    };
    for mode in BOTH {
        let (record, told) = run(&program, &[&["--locks", "--summary"], mode].concat());
        let locks = &record["locks"];
        for lock in ["forks", "engine", "heap"] {
            assert!(locks[lock]["taken"].as_u64() > Some(0), "{lock}: {locks}");
            assert!(
                locks[lock]["held_s"].as_f64() > Some(0.0),
                "{lock}: {locks}"
            );
        }
        // Io_uring carries the pages, where it is permitted.
        assert!(locks["workers"]["taken"].is_u64(), "{locks}");
        let processes = record["processes"].as_array().unwrap();
        // One that ends at once may have taken none.
        let of = |process: &Value| process["locks"]["engine"]["taken"].as_u64().unwrap_or(0);
        let sum: u64 = processes.iter().map(of).sum();
        assert_eq!(locks["engine"]["taken"], sum);
        // What a child has of its parent is not its own.
        let numbers: Vec<_> = processes.iter().map(|process| &process["pid"]).collect();
        let is_child = |process: &&Value| numbers.contains(&&process["parent"]);
        let child = processes.iter().find(is_child).expect("the program forks");
        let forks = child["locks"]["forks"]["taken"].as_u64().unwrap_or(0);
        assert_eq!(forks, 0, "{child}");
        assert!(of(child) < sum / 2, "{locks}");
        assert!(told.contains("contended"), "{told}");
    }
}

#[test]
fn nothing_is_measured_without_being_asked_for() {
    let Some(program) = Built::new("locks-none", SOURCE) else {
        return;
    };
    let (record, told) = run(&program, &["--summary"]);
    let is_there = |value: &Value| value.get("locks").is_some();
    assert!(!is_there(&record));
    assert!(!record["processes"].as_array().unwrap().iter().any(is_there));
    assert!(!told.contains("contended"), "{told}");

    let mut command = Command::new(needs::tidemark());
    let output = command.args(["run", "--memory", "16M", "--locks", "true"]);
    let output = output.output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{told}");
    assert!(told.contains("`--locks`: shown by `--summary`"), "{told}");
}
