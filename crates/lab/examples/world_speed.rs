//! The number of million references a second the world takes, on one thread.
//!
//!     cargo run --release --example world_speed -p tidemark-lab [-- REFERENCES]
//!
//! The script lies in memory; making it is not counted. `resident` is a program with room for all
//! its pages; the others have room for some of them, on an instant disk, so that what is measured
//! is the world and not its waiting. The best of three runs is shown.

mod measure;

use std::sync::Arc;

use tidemark_lab::systems;
use tidemark_lab::world::{DiskModel, Disks, Program, Scenario, Script, run};
use tidemark_model::traces::{SplitMix64, zipf};
use tidemark_trace::Kinds;

use measure::{RUNS, fail, rate};

fn main() {
    let asked = std::env::args().nth(1).map(|count| count.parse());
    let Ok(references) = asked.unwrap_or(Ok(10_000_000)) else {
        fail("the number of references is not a number; give one, like 10000000")
    };
    println!("{references} references, million a second of one thread's time, best of {RUNS}");
    measure(references);
}

fn measure(references: u64) {
    let program = Arc::new(Script::from_pages(program(references), Kinds::STORE));
    let zipf = zipf(7, 1_000_000, references);
    let zipf = Arc::new(Script::from_pages(zipf, Kinds::STORE));
    println!(
        "a script takes {} bytes a reference",
        program.bytes() / references
    );
    show("resident", "clock", &program, 4_000, 1);
    show("resident", "tidemark", &program, 4_000, 1);
    show("resident, two processors", "clock", &program, 8_000, 2);
    for system in ["fifo", "clock", "gnumach-activity", "tidemark"] {
        show("half resident", system, &program, 1_000, 1);
    }
    for system in ["fifo", "clock", "tidemark"] {
        show("zipf, a tenth resident", system, &zipf, 100_000, 1);
    }
}

/// As many programs as processors, each with the script.
fn show(what: &str, system: &str, script: &Arc<Script>, frames: u32, processors: u32) {
    let programs = (0..processors).map(|_| Program::new("one", Arc::clone(script)));
    let scenario = Scenario {
        processors,
        disks: Disks {
            swap: DiskModel::INSTANT,
            files: None,
        },
        ..Scenario::new(frames, programs.collect())
    };
    let found = systems::find(system).expect("the system is known");
    let mut faults = 0;
    let references = script.len() * processors as usize;
    let rate = rate(references, || {
        let outcome = run(found, &scenario).expect("the scenario can be run");
        faults = outcome.counters.faults;
    });
    let best = references as f64 / 1e6 / rate;
    println!("{what:26} {system:17} {rate:8.1} {best:8.3} s, {faults} faults");
}

/// References that stay in a small set for a while, in a larger one for longer: 2,000 pages.
fn program(references: u64) -> impl Iterator<Item = u64> {
    let mut random = SplitMix64::new(5);
    let (mut middle, mut inner) = (0, 0);
    (0..references).map(move |number| {
        if number % 100_000 == 0 {
            middle = random.below(1_500);
        }
        if number % 1_000 == 0 {
            inner = middle + random.below(400);
        }
        match random.below(100) {
            0 => random.below(2_000),
            1..10 => middle + random.below(500),
            _ => inner + random.below(40),
        }
    })
}

#[cfg(test)]
#[test]
fn a_small_run_measures_everything() {
    measure(20_000);
}
