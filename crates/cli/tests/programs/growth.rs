//! Memory that grows by small steps is managed before it is filled, whoever allocates.

use super::built::{BOTH, Built};

/// Fills 64 MiB, and tells the most memory that it had: frames, and what the engine has itself.
const SOURCE: &str = include_str!("growth.c");
/// The budget of these runs, and what else there may be of a process: 16 MiB are allowed, and the
/// engine takes less than 4.
const MIB_MOST: u64 = 8 + 6;

#[test]
fn found_a7_a_heap_that_grows_by_small_blocks_keeps_to_the_budget() {
    let Some(program) = Built::new("growth", SOURCE) else {
        return;
    };
    let ways = [
        "small", "blocks", "large", "sbrk", "page", "pages", "opened",
    ];
    for way in ways {
        expect_little(&program, &[way], &[]);
    }
    // In-thread, memory without rights may be a stack, and is left alone for a while.
    for way in &ways[..6] {
        expect_little(&program, &[way], BOTH[1]);
    }
}

#[test]
fn found_a7_arenas_of_threads_keep_to_the_budget() {
    let Some(program) = Built::new("growth-threads", SOURCE) else {
        return;
    };
    for way in ["small", "blocks", "large"] {
        expect_little(&program, &[way, "thread"], &[]);
    }
}

fn expect_little(program: &Built, words: &[&str], options: &[&str]) {
    let what = format!("{words:?} {options:?}");
    let outcome = program.run_managed(options, words);
    outcome.expect_success(&what);
    let text = outcome.output_text();
    let most: u64 = text.split(' ').next().unwrap().parse().unwrap();
    assert!(most <= MIB_MOST, "{what}: {most} MiB resident of 8");
    assert_eq!(outcome.errors_text(), "", "{what}");
}
