//! Threads: who runs beside whom, and who waits for whom.

use tidemark_trace::{Event, LifeEvent};

use super::super::order::Order;
use super::lives::{Deed, WRITE, exit, map, script, start};
use super::*;

use Deed::{Load, Store};

fn switch(thread: u32) -> Deed {
    Deed::Event(Event::Life(LifeEvent::ThreadSwitch { thread }))
}

/// Thread 1 fills so many pages and starts thread 2.
fn begin(pages: u64) -> Vec<Deed> {
    let mut deeds = vec![start(1, 0), switch(1), map(1000, pages, WRITE, "")];
    deeds.extend((1000..1000 + pages).map(Store));
    deeds.push(Deed::Event(Event::Life(LifeEvent::ThreadStart {
        thread: 2,
    })));
    deeds
}

/// Two threads read two areas of 200 pages each that were filled and have gone, in turns of so many
/// pages. What each turn begins with is of the caller's choosing.
fn readers(turn_pages: u64, begin_turn: fn() -> Option<Deed>) -> Arc<Script> {
    let mut deeds = begin(600);
    let turns = 200 / turn_pages;
    for turn in 0..turns {
        for thread in [1, 2] {
            deeds.push(switch(thread));
            deeds.extend(begin_turn());
            let first = 1000 + 200 * u64::from(thread - 1) + turn * turn_pages;
            deeds.extend((first..first + turn_pages).map(Load));
        }
    }
    deeds.push(exit());
    script(vec![deeds])
}

fn run_on(processors: u32, script: &Arc<Script>, are_threads_overlapping: bool) -> Outcome {
    let program = Program::new("test", Arc::clone(script));
    let mut scenario = Scenario::new(200, vec![program]);
    scenario.processors = processors;
    scenario.are_threads_overlapping = are_threads_overlapping;
    // Two requests go on at the same time.
    scenario.disks.swap = DiskModel::Fixed {
        request_ns: 5_000_000,
        page_ns: 0,
        channels: 2,
    };
    let outcome = run(&plain("fifo", MachineKind::Bits), &scenario).unwrap();
    if !are_threads_overlapping {
        check_sums(&outcome, u64::from(processors));
    }
    let process = &outcome.programs[0].processes[0];
    assert_eq!(process.records, script.len() as u64);
    outcome
}

#[test]
fn a_thread_goes_on_while_another_waits() {
    let script = readers(20, || None);
    let (alone, beside) = (run_on(1, &script, false), run_on(1, &script, true));
    // Whose page leaves for whose depends on the order a little.
    assert_eq!(alone.counters.page_ins, 400);
    assert!((360..=400).contains(&beside.counters.page_ins));
    // Alone, 400 reads of 5 ms and what they push out are waited for one by one.
    let saved_ns = alone.elapsed_ns - beside.elapsed_ns;
    assert!(
        (1_000_000_000..2_000_000_000).contains(&saved_ns),
        "{saved_ns}"
    );
}

#[test]
fn what_concerns_the_process_waits_for_all_before_it() {
    let begin = || Some(Deed::Event(Event::Life(LifeEvent::Wait { call: 0, ns: 1 })));
    let script = readers(20, begin);
    let (alone, beside) = (run_on(1, &script, false), run_on(1, &script, true));
    assert_eq!(alone.counters, beside.counters);
    // Beside each other threads are others on a processor.
    let switches = beside.switches - alone.switches;
    assert_eq!(switches, 19);
    let switch_ns = plain("fifo", MachineKind::Bits).costs.switch_ns;
    assert_eq!(beside.elapsed_ns - alone.elapsed_ns, switches * switch_ns);
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
    let (alone, beside) = (run_on(1, &script, false), run_on(1, &script, true));
    assert_eq!(alone, beside);
}

/// Two threads that compute on a page each, which stays, in 40 turns of 100 uses.
fn computing() -> Arc<Script> {
    let mut deeds = begin(2);
    for _ in 0..20 {
        for thread in [1, 2] {
            deeds.push(switch(thread));
            deeds.extend((0..100).map(|_| Load(999 + u64::from(thread))));
        }
    }
    deeds.push(exit());
    script(vec![deeds])
}

#[test]
fn threads_compute_on_a_processor_each() {
    let script = computing();
    let user_ns = run_on(1, &script, true).user_ns;
    let elapsed_ns = run_on(2, &script, true).elapsed_ns;
    assert_eq!(
        run_on(1, &script, true).elapsed_ns,
        run_on(1, &script, false).elapsed_ns
    );
    // Two of 4,002 uses are before the second begins.
    let half_ns = user_ns * 2_002 / 4_002;
    assert!(
        elapsed_ns < half_ns + half_ns / 50,
        "{elapsed_ns} of {user_ns}"
    );
    assert_eq!(run_on(2, &script, false).elapsed_ns, user_ns);
}

#[test]
fn no_thread_runs_ahead_of_another_by_much() {
    let mut deeds = begin(2);
    for _ in 0..1000 {
        deeds.extend([switch(2), Load(1001), switch(1), Load(1000)]);
    }
    deeds.push(exit());
    let script = script(vec![deeds]);
    let order = Order::new(&script.courses[0], true);
    // The first of thread 2 wants it started.
    let may_begin: Vec<usize> = (0..2000).filter(|&turn| order.may_begin(turn)).collect();
    assert_eq!(may_begin, [0, 2]);
}
