//! Pages that leave and are compressed first, in memory.

use tidemark_core::random::SplitMix64;
use tidemark_trace::{Event, LifeEvent};

use super::lives::{Deed, WRITE, exit, map, script, start};
use super::*;

use Deed::{Load, Store};

/// Programs in `frames` of memory, which compress to a third, or by `sizes`, or not at all.
fn outcome_of(frames: u32, scripts: &[Arc<Script>], sizes: Option<PageSizes>) -> Outcome {
    outcome_beside(0, frames, scripts, sizes)
}

/// The same, of processes that have so many pages beside.
fn outcome_beside(
    beside_pages: u32,
    frames: u32,
    scripts: &[Arc<Script>],
    sizes: Option<PageSizes>,
) -> Outcome {
    outcome_with(frames, scripts, sizes, |scenario| Scenario {
        beside_pages,
        ..scenario
    })
}

/// The same with the scenario changed.
fn outcome_with(
    frames: u32,
    scripts: &[Arc<Script>],
    sizes: Option<PageSizes>,
    change: impl FnOnce(Scenario) -> Scenario,
) -> Outcome {
    let programs = scripts.iter().map(|s| Program::new("test", Arc::clone(s)));
    let scenario = Scenario {
        is_divided: true,
        compressed: sizes.map(Arc::new),
        disks: Disks {
            swap: DiskModel::Fixed {
                request_ns: 80_000,
                page_ns: 1_000,
                channels: 2,
            },
            files: None,
        },
        ..Scenario::new(frames, programs.collect())
    };
    let system = System {
        eyes: MachineKind::SoftFaults,
        ..costly("mach86")
    };
    let scenario = change(scenario);
    let outcome = run(&system, &scenario).unwrap();
    if !outcome.programs.iter().any(|it| it.processes[0].was_killed) {
        check_sums(&outcome, 1);
    }
    // Frames and compressed pages together. Without a disk both have a page while it leaves.
    let borrowed = if scenario.is_diskless { 128 } else { 0 };
    assert!(
        outcome.frames_used_max <= frames + borrowed,
        "{}",
        outcome.frames_used_max
    );
    outcome
}

/// Stores to 4,000 pages, and uses at random of them, most of the first ones.
fn at_random(uses: u64) -> Arc<Script> {
    let mut deeds = vec![start(1, 0), map(100, 4000, WRITE, "")];
    deeds.extend((100..4100).map(Store));
    let mut random = SplitMix64::new(7);
    deeds.extend((0..uses).map(|number| {
        let page = 100 + random.skewed_below(4000);
        match number % 4 {
            0 => Store(page),
            _ => Load(page),
        }
    }));
    deeds.push(exit());
    script(vec![deeds])
}

#[test]
fn what_fits_when_it_is_compressed_hardly_needs_the_disk() {
    let scripts = [at_random(20_000)];
    let outcome = outcome_of(2500, &scripts, Some(PageSizes::of_ratio(4000)));
    let plain = outcome_of(2500, &scripts, None);
    // But for the first few that leave, when frames have all memory.
    assert!(outcome.swap_pages_read * 20 < plain.swap_pages_read);
    assert!(plain.elapsed_ns > outcome.elapsed_ns);
    assert!(outcome.compressed.decompressed > 2_000);
    assert!((500..2500).contains(&outcome.compressed_memory_peak));
    // A page that has come back is nowhere else.
    assert!(outcome.counters.clean_drops < outcome.swap_pages_read);
}

#[test]
fn without_a_disk_a_process_that_fits_runs_and_another_is_ended() {
    let scripts = [at_random(20_000)];
    for (frames, ratio, fits) in [(2500, 4000, true), (1200, 2500, false), (1000, 1000, false)] {
        let sizes = Some(PageSizes::of_ratio(ratio));
        let diskless = |scenario| Scenario {
            is_diskless: true,
            ..scenario
        };
        let outcome = outcome_with(frames, &scripts, sizes, diskless);
        assert_eq!(outcome.swap_pages_read + outcome.swap_pages_written, 0);
        assert_eq!(
            outcome.programs[0].processes[0].was_killed, !fits,
            "{frames} {ratio}"
        );
        assert_eq!(outcome.counters.store_errors > 0, !fits);
    }
}

#[test]
fn what_does_not_fit_leaves_for_the_disk_in_segments() {
    let scripts = [at_random(40_000)];
    let sizes = PageSizes::of_ratio(2500);
    let outcome = outcome_of(1200, &scripts, Some(sizes.clone()));
    let compressed = outcome.compressed;
    assert!(compressed.decompressed > 5_000);
    assert!(outcome.swap_pages_read > 1_000);
    // More pages come back than are read: those of a segment that are wanted, or still in memory.
    assert!(compressed.decompressed > outcome.swap_pages_read);
    let disk = &outcome.disks[0];
    assert!(disk.pages_written > 8 * disk.writes, "{disk:?}");
    let plain = outcome_of(1200, &scripts, None);
    assert!(plain.swap_pages_read > outcome.swap_pages_read);
    // The same again comes to the same.
    assert_eq!(outcome_of(1200, &scripts, Some(sizes)), outcome);
}

#[test]
fn what_hardly_compresses_goes_to_the_disk_as_it_is() {
    let scripts = [at_random(5_000)];
    let outcome = outcome_of(2000, &scripts, PageSizes::new([(3500, 4100, 1)]));
    let plain = outcome_of(2000, &scripts, None);
    assert_eq!(outcome.compressed.compressed, 0);
    assert_eq!(outcome.compressed.refused, outcome.counters.page_outs);
    assert!(outcome.counters.clean_drops > 0);
    let near = outcome.counters.page_ins.abs_diff(plain.counters.page_ins);
    assert!(near * 20 < plain.counters.page_ins);
    // Zeros need neither memory nor the disk.
    let zeros = outcome_of(2000, &scripts, PageSizes::new([(0, 1, 1)]));
    assert_eq!(zeros.swap_pages_read + zeros.swap_pages_written, 0);
    assert_eq!(zeros.compressed_memory_peak, 0);
}

#[test]
fn what_a_process_has_beside_is_taken_from_frames_and_compressed_pages() {
    let scripts = [at_random(20_000)];
    let sizes = PageSizes::of_ratio(2500);
    let without = outcome_of(1200, &scripts, Some(sizes.clone()));
    let with = outcome_beside(240, 1200, &scripts, Some(sizes.clone()));
    assert!(with.counters.page_ins > without.counters.page_ins);
    assert!(with.swap_pages_read > without.swap_pages_read);
    // It is not more than a quarter.
    let most = outcome_beside(300, 1200, &scripts, Some(sizes.clone()));
    assert_eq!(outcome_beside(900, 1200, &scripts, Some(sizes)), most);
}

#[test]
fn parent_and_child_each_find_what_left_before_the_fork() {
    let mut parent = vec![start(1, 0), map(100, 3000, WRITE, "")];
    parent.extend((100..3100).map(Store));
    parent.push(Deed::Event(Event::Life(LifeEvent::Fork { child: 2 })));
    let (call, ns) = (61, 1);
    parent.push(Deed::Event(Event::Life(LifeEvent::Wait { call, ns })));
    parent.extend((100..3100).map(Load));
    parent.push(exit());
    let mut child = vec![start(2, 1)];
    child.extend((100..3100).map(Load));
    child.push(exit());
    let scripts = [script(vec![parent, child])];
    for (frames, sizes) in [(2400, 4000), (1000, 2000)] {
        let outcome = outcome_of(frames, &scripts, Some(PageSizes::of_ratio(sizes)));
        assert!(outcome.compressed.decompressed > 1_000);
        let done: Vec<u64> = outcome.programs[0]
            .processes
            .iter()
            .map(|it| it.records)
            .collect();
        assert_eq!(done, [6000, 3000]);
    }
}
