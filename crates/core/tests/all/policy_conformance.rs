//! Rules that every policy of the registry keeps, whatever it believes in.

use std::collections::BTreeSet;

use tidemark_core::policies::{build, entries, find};
use tidemark_core::seams::policy::Policy;
use tidemark_model::cache::{Cache, MachineKind};
use tidemark_model::conformance::policy::Candidate;

const FRAMES: u32 = 24;

fn names() -> impl Iterator<Item = &'static str> {
    entries().iter().map(|entry| entry.description.name)
}

fn policy(name: &'static str, seed: u64) -> Box<dyn Policy> {
    build(name, FRAMES, FRAMES, seed, &[]).expect("it is known")
}

#[test]
fn descriptions_are_complete_and_make_sense() {
    let mut seen = BTreeSet::new();
    for entry in entries() {
        let description = entry.description;
        let name = description.name;
        assert!(seen.insert(name), "{name} is there twice");
        assert!(is_plain(name), "{name} is no plain name");
        assert!(
            !description.summary.is_empty() && description.summary.len() <= 90,
            "{name}"
        );
        assert!(!description.summary.ends_with('.'), "{name}");
        assert!(description.lineage.iter().all(|source| !source.is_empty()));
        assert!(!description.lineage.is_empty(), "{name} comes from nowhere");
        let mut knobs = BTreeSet::new();
        for knob in description.knobs {
            assert!(
                is_plain(knob.name) && knobs.insert(knob.name),
                "{name} {}",
                knob.name
            );
            assert!(!knob.meaning.is_empty(), "{name} {}", knob.name);
            let is_ordered = knob.min <= knob.default && knob.default <= knob.max;
            assert!(is_ordered, "{name} {}", knob.name);
        }
        assert!(std::ptr::eq(
            find(name).expect("it is listed").description,
            description
        ));
        assert!(
            std::ptr::eq(policy(name, 1).describe(), description),
            "{name}"
        );
    }
}

fn is_plain(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    !name.starts_with('-') && name.chars().all(is_plain)
}

#[test]
fn the_ends_of_every_knob_work() {
    let trace: Vec<u64> = (0..600).map(|at| at * at % 61 + at / 100).collect();
    for name in names() {
        for knob in find(name).expect("it is listed").description.knobs {
            for value in [knob.min, knob.max] {
                for frames in [1, 2, 3, FRAMES] {
                    let knobs = [(knob.name, value)];
                    let policy = build(name, FRAMES, frames, 1, &knobs).expect("it is in range");
                    let mut cache = Cache::new(policy, frames, MachineKind::SoftFaults);
                    trace.iter().for_each(|&page| {
                        cache.touch(page);
                        cache.policy.check();
                    });
                }
            }
        }
    }
}

#[test]
fn policies_keep_their_contract() {
    for name in names() {
        let build = |frames, seed| build(name, frames, frames, seed, &[]).expect("it is known");
        let build = &build;
        Candidate { name, build }.check();
    }
}
