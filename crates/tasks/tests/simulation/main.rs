//! Seeded simulation of the steward: 1 to 40 tasks that come, fork, execute, stall, are killed in
//! the middle of transfers, lie in their reports, and lose their supervisor.
//!
//! First safety, in foul weather: [`checks`] after every step. Then liveness: the weather clears,
//! and every task must come to its end.
//!
//! The tasks' engines are [modelled](yard) after those of the live machine, with the same steps in
//! which they read and write the words that they share with the steward. They take some of their
//! steps in the midst of what the steward does.
//!
//! `make sim SEED=7` repeats one seed; `TIDEMARK_SEEDS` says how many fixed ones run, and
//! `TIDEMARK_FRESH` how many new ones.
//!
//! # Bugs that it finds
//! Each was put into the steward, run, and taken out again.
//!
//! | bug | first seed |
//! | --- | --- |
//! | `Steward::give`: a budget one page too large | 0 |
//! | `give`: no poke when a budget changes | 0 |
//! | `set_suspended`: no poke when a task is suspended or resumed | 0 |
//! | `divide`: frames of no task are not held while they are divided | 0 |
//! | `divide`: the rest is what was not given, though it is still in use | 1 |
//! | `collect_holders`: children are looked for before budgets are read | 12 |
//! | `lower`: what an engine has said meanwhile is not looked at | 273 |
//! | `raise`: a task that reports too much memory is given more | 18 |
//! | `raise`: a task that is turned away stays a member | 0 |
//! | `Member::look`: the grant of a newcomer is forgotten until it is answered | 81 |
//! | `look`: the grant of a newcomer can be taken from it | 654 |
//! | `Member::waited_ns`: always zero, so that a newcomer waits without end | 6 |
//! | `end_eviction`: without a limit of time | 418 |
//! | `control_by`: the tasks that the last load control has suspended stay so | 1 |
//! | `handle_end`: a suspension by request stays | 0 |
//! | `plan_division`: each division puts the end of the interval off | 0 |
//! | `Reading::bounded`: a report of any size is believed | 0 |
//! | `Counts::follow`: a count of any size is believed | 0 |

mod checks;
mod run;
mod yard;

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::{SystemTime, UNIX_EPOCH};

use self::run::Run;

/// The fixed seeds that run where nothing else is asked for.
const SEEDS: u64 = 300;

fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok().filter(|text| !text.is_empty())?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("`{name}` is {text}; it must be a number")),
    )
}

#[test]
fn no_frame_is_had_twice_and_no_task_waits_for_ever() {
    if let Some(seed) = number("TIDEMARK_SEED") {
        return println!("{}", run::describe(&play(seed..seed + 1)));
    }
    let seeds = number("TIDEMARK_SEEDS").unwrap_or(SEEDS);
    let sums = play(0..seeds);
    println!("{}", run::describe(&sums));
    assert!(
        seeds < SEEDS || sums.iter().all(|&sum| sum > 0),
        "a deed never happened"
    );
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    // Far from the fixed seeds, and printed with what fails.
    let first = (1 << 32) + now.expect("the clock is past 1970").as_secs() * 1000;
    play(first..first + number("TIDEMARK_FRESH").unwrap_or(0));
}

/// Plays these seeds, and sums up what happened how often.
fn play(seeds: Range<u64>) -> [u64; run::DEEDS] {
    let mut sums = [0; run::DEEDS];
    for seed in seeds {
        let played = catch_unwind(AssertUnwindSafe(|| Run::new(seed).play()));
        let deeds = played.unwrap_or_else(|panic| {
            println!("TIDEMARK_SEED={seed}");
            resume_unwind(panic)
        });
        for (sum, count) in sums.iter_mut().zip(deeds) {
            *sum += count;
        }
    }
    sums
}
