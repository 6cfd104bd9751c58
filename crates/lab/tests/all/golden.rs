//! The published miss counts, from the analyses that give every size at once, and from simulation.

use rayon::prelude::*;
use tidemark_core::policies;
use tidemark_lab::analysis::simulate::{Job, MachineKind, simulate_all};
use tidemark_lab::analysis::{References, optimum, queues, stack};
use tidemark_model::traces;

fn strings() -> [(u32, References); 6] {
    traces::golden().map(|trace| (trace.frames, References::from_pages(trace.pages)))
}

#[test]
fn the_optimum_is_the_published_one() {
    let expected = [5100, 10050, 96479, 1600, 6100, 96727];
    let all = strings().map(|(frames, references)| {
        optimum::count_depths(&references.pages, references.page_count).misses_at(frames)
    });
    assert_eq!(all, expected);
    let one = strings().map(|(frames, references)| {
        let next_uses = optimum::collect_next_uses(&references.pages, references.page_count);
        optimum::count_misses(&next_uses, frames)
    });
    assert_eq!(one, expected);
}

#[test]
fn lru_is_the_published_one() {
    let counts = strings().map(|(frames, references)| {
        let (pages, page_count) = (&references.pages, references.page_count);
        let depths = stack::count_depths(pages, page_count);
        assert_eq!(depths.cold, u64::from(page_count));
        depths.misses_at(frames)
    });
    assert_eq!(counts, [15000, 10052, 162008, 1600, 16000, 167317]);
}

#[test]
fn fifo_and_clock_are_the_published_ones() {
    let count = |misses: fn(&[u32], u32, &[u32]) -> Vec<u64>| {
        strings().map(|(frames, references)| {
            misses(&references.pages, references.page_count, &[frames])[0]
        })
    };
    let fifo = [15000, 18434, 163359, 1600, 16000, 171209];
    assert_eq!(count(queues::count_fifo_misses), fifo);
    let clock = [15000, 10051, 160958, 1889, 16000, 164456];
    assert_eq!(count(queues::count_clock_misses), clock);
}

#[test]
fn mach_is_the_published_one_for_each_share_of_inactive_pages() {
    let expected = [
        (
            667,
            [15000, 10067, 162173, 1600, 16000, 167753],
            [0, 41930, 24521, 2910, 0, 20556],
        ),
        (
            333,
            [15000, 10180, 162619, 1600, 16000, 169080],
            [0, 15999, 12156, 576, 0, 9638],
        ),
        (
            200,
            [15000, 10905, 162865, 1600, 16000, 169859],
            [0, 10853, 7022, 0, 0, 5683],
        ),
    ];
    for (inactive, misses, soft_faults) in expected {
        let costs = strings().map(|(frames, references)| {
            let job = Job {
                policy: "mach86",
                knobs: vec![("inactive", inactive)],
                seed: 1,
                frames,
                eyes: MachineKind::SoftFaults,
            };
            simulate_all(&references, &[job]).unwrap()[0]
        });
        assert_eq!(costs.map(|cost| cost.misses), misses, "{inactive}");
        assert_eq!(
            costs.map(|cost| cost.soft_faults),
            soft_faults,
            "{inactive}"
        );
    }
}

#[test]
fn every_policy_misses_as_often_as_the_core_s_table_says() {
    let table = include_str!("../../../core/tests/golden/misses.txt");
    let strings = strings();
    let entries = policies::entries();
    entries.par_iter().for_each(|entry| {
        let name = entry.description.name;
        for (eyes, machine) in [
            (MachineKind::Bits, "Bits"),
            (MachineKind::SoftFaults, "SoftFaults"),
        ] {
            let mut row = table.lines().map(|line| line.split_whitespace());
            let row = row.find_map(|mut row| {
                (row.next() == Some(name) && row.next() == Some(machine)).then_some(row)
            });
            for ((frames, references), expected) in strings.iter().zip(row.expect(name)) {
                let job = Job {
                    policy: name,
                    knobs: Vec::new(),
                    seed: 1,
                    frames: *frames,
                    eyes,
                };
                let cost = simulate_all(references, &[job]).unwrap()[0];
                let counted = format!("{}/{}", cost.misses, cost.soft_faults);
                assert_eq!(counted, expected, "{name} {machine} {frames}");
            }
        }
    });
    assert!(entries.len() >= 14, "{}", entries.len());
}
