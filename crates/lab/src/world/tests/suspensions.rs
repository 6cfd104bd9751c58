//! Load control of whole tasks, each with a memory of its own.

use tidemark_core::random::SplitMix64;

use super::lives::{Deed, WRITE, exit, map, script, start};
use super::*;

const FRAMES: u32 = 1500;
const SECOND_NS: u64 = 1_000_000_000;

/// A program that touches 1,200 pages in no order, so often, and computes for 0.1 ms in between.
fn scattered(pid: u32, touches: u32) -> Arc<Script> {
    let mut deeds = vec![start(pid, 0), map(100, 1200, WRITE, "")];
    let mut draw = SplitMix64::new(pid.into());
    deeds.extend((0..touches).map(|_| Deed::Store(100 + draw.draw() % 1200)));
    deeds.push(exit());
    script(vec![deeds])
}

/// Three of them that come half a second after each other, under that load control.
fn three_under(load: Option<&str>) -> Result<Outcome, WorldError> {
    let programs = (0..3).map(|number| Program {
        start_ns: u64::from(number) * SECOND_NS / 2,
        ..Program::new("test", scattered(number + 1, 60_000))
    });
    let scenario = Scenario {
        is_divided: true,
        processors: 2,
        load: load.map(Into::into),
        disks: Disks {
            swap: DiskModel::Fixed {
                request_ns: 1_000_000,
                page_ns: 5_000,
                channels: 2,
            },
            files: None,
        },
        ..Scenario::new(FRAMES, programs.collect())
    };
    let system = costly("clock");
    let system = System {
        costs: Costs {
            instruction_ps: 100_000,
            ..system.costs
        },
        ..system
    };
    run(&system, &scenario)
}

#[test]
fn tasks_that_do_not_fit_take_turns_as_under_tidemark_run() {
    let outcome = three_under(None).unwrap();
    assert_eq!(outcome.load, "working-set");
    assert!(outcome.is_complete);
    assert!(outcome.frames_used_max <= FRAMES);
    // Those that came later wait first.
    let of = |suspension: &Suspension| (suspension.process, suspension.is_suspended);
    let turns: Vec<(usize, bool)> = outcome.suspensions.iter().map(of).collect();
    let mut first = turns[..2].to_vec();
    first.sort_unstable();
    assert_eq!(first, [(1, true), (2, true)], "{turns:?}");
    // Nobody runs on without having waited, nobody is left behind, and not two run for long.
    for task in 0..3 {
        let own = outcome.suspensions.iter().filter(|it| it.process == task);
        let own: Vec<bool> = own.map(|it| it.is_suspended).collect();
        assert!(own.len() >= 2, "{turns:?}");
        let is_alternating = own
            .iter()
            .enumerate()
            .all(|(place, is)| *is == (place % 2 == 0));
        assert!(is_alternating && own.len().is_multiple_of(2), "{turns:?}");
    }
    assert_eq!(outcome, three_under(Some("working-set")).unwrap());
    let none = three_under(Some("none")).unwrap();
    assert_eq!(none.load, "none");
    assert_eq!(none.suspensions, []);
    assert!(none.counters.page_ins > 3 * outcome.counters.page_ins);
    assert!(none.elapsed_ns > outcome.elapsed_ns);
}

#[test]
fn what_a_task_had_is_brought_back_in_large_requests() {
    let outcome = three_under(None).unwrap();
    let counters = outcome.counters;
    let pages_each = counters.page_ins as f64 / counters.page_in_requests as f64;
    let none = three_under(Some("none")).unwrap().counters;
    let pages_each_none = none.page_ins as f64 / none.page_in_requests as f64;
    assert!(pages_each > 1.5 * pages_each_none, "{counters:?}");
}

#[test]
fn a_load_control_of_single_pages_is_refused() {
    let refused = three_under(Some("swap-token")).unwrap_err();
    let name = "swap-token".into();
    assert_eq!(refused, WorldError::LoadOfPages { name });
}
