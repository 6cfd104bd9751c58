//! Threads that take turns on record, and wait for pages beside each other.

use super::lives::{Deed, WRITE, exit, map, script, start};
use super::*;
use tidemark_trace::Event;

use Deed::{Load, Store};

fn switch(thread: u32) -> Deed {
    Deed::Event(Event::ThreadSwitch { thread })
}

/// Two threads fill two areas, which go, and then read them back in turns of so many pages. What
/// each turn but the first begins with is of the caller's choosing.
fn readers(turn_pages: u64, begin: fn() -> Option<Deed>) -> Arc<Script> {
    let mut deeds = vec![start(1, 0), switch(1), map(1000, 400, WRITE, "")];
    deeds.extend((1000..1400).map(Store));
    let turns = 200 / turn_pages;
    for turn in 0..turns {
        for thread in [1, 2] {
            deeds.push(switch(thread));
            deeds.extend(begin());
            let first = 1000 + 200 * u64::from(thread - 1) + turn * turn_pages;
            deeds.extend((first..first + turn_pages).map(Load));
        }
    }
    deeds.push(exit());
    script(vec![deeds])
}

fn run_it(script: &Arc<Script>, are_threads_overlapping: bool) -> Outcome {
    let program = Program::new("test", Arc::clone(script));
    let mut scenario = Scenario::new(200, vec![program]);
    scenario.are_threads_overlapping = are_threads_overlapping;
    // Two requests go on at the same time.
    scenario.disks.swap = DiskModel::Fixed {
        request_ns: 5_000_000,
        page_ns: 0,
        channels: 2,
    };
    let outcome = run(&plain("fifo", MachineKind::Bits), &scenario).unwrap();
    check_sums(&outcome, 1);
    let process = &outcome.programs[0].processes[0];
    assert_eq!(process.records, 800);
    outcome
}

#[test]
fn a_thread_goes_on_while_another_waits() {
    let script = readers(20, || None);
    let (alone, beside) = (run_it(&script, false), run_it(&script, true));
    // Whose page leaves for whose depends on the order a little.
    assert_eq!(alone.counters.page_ins, 400);
    assert!((360..=400).contains(&beside.counters.page_ins));
    let wait_ns = |outcome: &Outcome| outcome.programs[0].sum(|p| p.page_wait_ns);
    let (alone_ns, beside_ns) = (wait_ns(&alone), wait_ns(&beside));
    // Alone, 400 reads of 5 ms and what they push out are waited for one by one.
    let saved_ns = alone_ns - beside_ns;
    assert!(
        (1_000_000_000..2_000_000_000).contains(&saved_ns),
        "{saved_ns}"
    );
}

#[test]
fn what_concerns_the_process_waits_for_all_before_it() {
    let begin = || Some(Deed::Event(Event::Wait { call: 0, ns: 1 }));
    let script = readers(20, begin);
    let (alone, beside) = (run_it(&script, false), run_it(&script, true));
    assert_eq!(alone.elapsed_ns, beside.elapsed_ns);
    assert_eq!(alone.counters, beside.counters);
}

#[test]
fn turns_of_one_thread_stay_in_order() {
    let mut deeds = vec![start(1, 0), switch(1), map(1000, 400, WRITE, "")];
    for _ in 0..3 {
        deeds.push(switch(1));
        deeds.extend((1000..1400).map(Store));
    }
    deeds.push(exit());
    let script = script(vec![deeds]);
    let outcomes = [false, true].map(|are_threads_overlapping| {
        let program = Program::new("test", Arc::clone(&script));
        let mut scenario = Scenario::new(200, vec![program]);
        scenario.are_threads_overlapping = are_threads_overlapping;
        run(&plain("fifo", MachineKind::Bits), &scenario).unwrap()
    });
    assert_eq!(outcomes[0], outcomes[1]);
    assert_eq!(outcomes[0].programs[0].processes[0].records, 1200);
}
