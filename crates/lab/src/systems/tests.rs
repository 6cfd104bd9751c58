use std::sync::Arc;

use tidemark_core::load;
use tidemark_core::policies;
use tidemark_model::traces;
use tidemark_trace::Kinds;

use super::*;
use crate::world::{Program, Scenario, Script, run};

#[test]
fn every_system_says_what_it_is_and_names_a_policy_that_there_is() {
    for system in entries() {
        assert!(policies::find(system.policy).is_some(), "{}", system.name);
        assert!(
            load::registry::find(system.load).is_some(),
            "{}",
            system.name
        );
        assert!(!system.summary.is_empty() && !system.lineage.is_empty());
        let found = entries().iter().filter(|other| other.name == system.name);
        assert_eq!(found.count(), 1, "{}", system.name);
    }
    assert_eq!(near("gnumach-balance"), ["gnumach-balanced"]);
    assert!(find("gnumach").is_some() && find("multics").is_none());
}

#[test]
fn every_system_makes_a_memory_of_every_size() {
    for system in entries() {
        for frames in (8..200).chain([1000, 1999, 2000, 4096, 1 << 18, 1 << 24]) {
            let config = (system.config)(frames);
            assert!(
                config.reserve < config.frames_limit,
                "{} {frames}",
                system.name
            );
            let is_waited_for = config.kernel.pacing.is_some();
            assert!(!is_waited_for || config.free_high <= (frames / 2).max(3));
        }
    }
}

#[test]
fn every_system_runs_two_programs_to_their_end_in_little_memory() {
    let texts = [1, 2].map(|seed| {
        let pages = traces::skewed(seed, 200, 4_000);
        Arc::new(Script::from_pages(pages, Kinds::STORE))
    });
    for system in entries() {
        for frames in [8, 50, 150, 1000] {
            let programs = texts.iter().map(|s| Program::new("test", Arc::clone(s)));
            let outcome = run(system, &Scenario::new(frames, programs.collect())).unwrap();
            for program in &outcome.programs {
                let process = &program.processes[0];
                assert_eq!((process.records, process.was_killed), (4_000, false));
            }
            let name = system.name;
            assert_eq!(
                outcome.counters.page_ins > 0,
                frames < 1000,
                "{name} {frames}"
            );
        }
    }
}
