//! The cases for which the default policy was chosen, as bounds that hold with room to spare. The
//! numbers behind them are in `docs/decisions/`.

use tidemark_core::policies::build;
use tidemark_core::vm::{Config, Counters};
use tidemark_model::cache::MachineKind;
use tidemark_model::traces::{looping, phases, sheep, uniform, zipf};
use tidemark_model::{demand, opt};
use tidemark_partition::Voice;

fn run(policy: &'static str, config: Config, trace: &[u64]) -> Counters {
    let frames = config.frames_max;
    let policy = build(policy, frames, frames, 1, &[]).expect("it is known");
    let counters = demand::replay(policy, config, MachineKind::SoftFaults, trace);
    assert_eq!(counters.refusals, 0);
    counters
}

/// Page-ins in hundredths of the optimum's.
fn percent_of_optimum(config: Config, pages: u64, trace: &[u64]) -> u64 {
    let best = opt::count_misses(config.frames_max as usize, trace) - pages;
    run("tidemark", config, trace).page_ins * 100 / best
}

#[test]
fn a_loop_half_as_large_again_as_memory_costs_little_more_than_it_must() {
    for (frames, rounds) in [(64, 40), (100, 40), (1000, 20), (4096, 10)] {
        let pages = u64::from(frames) * 3 / 2;
        let percent = percent_of_optimum(Config::demand(frames), pages, &looping(pages, rounds));
        assert!((100..=112).contains(&percent), "{percent} % with {frames}");
    }
}

#[test]
fn so_does_a_loop_with_read_ahead_and_frames_kept_free() {
    let config = Config::clustered(65536, 65536);
    let percent = percent_of_optimum(config, 98304, &looping(98304, 6));
    assert!((100..=112).contains(&percent), "{percent} %");
}

#[test]
fn a_walk_waits_for_few_of_the_clusters_that_are_read_for_it() {
    let trace = looping(65536, 6);
    let counters = run("tidemark", Config::clustered(16384, 16384), &trace);
    let waits = counters.faults - counters.soft_faults - counters.zero_fills;
    let clusters = counters.page_ins / 64;
    assert!(waits * 4 < clusters, "{waits} of {clusters}");
    assert!(
        counters.read_ahead_wasted * 1000 < counters.read_ahead,
        "{counters:?}"
    );
}

#[test]
fn several_walks_do_not_push_out_what_was_read_for_each_other() {
    for (frames, walks) in [(2048, 12), (4096, 4), (4096, 12)] {
        let each = u64::from(frames) * 4 / walks;
        let round = || (0..each).flat_map(|page| (0..walks).map(move |walk| walk * each + page));
        let trace: Vec<u64> = (0..5).flat_map(|_| round()).collect();
        let config = Config::clustered(frames, frames);
        let counters = run("tidemark", config, &trace);
        let best = opt::count_misses(frames as usize, &trace) - walks * each;
        assert!(counters.page_ins * 100 <= best * 125, "{counters:?} {best}");
        let waits = counters.faults - counters.soft_faults - counters.zero_fills;
        assert!(
            waits * 16 < counters.page_ins,
            "{waits} waits: {counters:?}"
        );
    }
}

#[test]
fn programs_that_sweep_forward_and_backward_keep_most_of_what_fits() {
    let one = percent_of_optimum(Config::demand(1024), 2048, &sheep(1, 2048, 10));
    assert!(one <= 115, "{one} % for one program");
    let four = percent_of_optimum(Config::demand(1024), 1640, &sheep(4, 410, 20));
    assert!(four <= 125, "{four} % for four programs");
}

#[test]
fn pages_that_are_used_more_often_stay() {
    let trace = zipf(5, 8192, 200_000);
    let [ours, clock, mach] = ["tidemark", "clock", "mach86"]
        .map(|policy| run(policy, Config::demand(2048), &trace).page_ins);
    assert!(ours < clock && ours < mach, "{ours} {clock} {mach}");
}

#[test]
fn a_change_of_phase_costs_little_more_than_by_the_clock() {
    let trace = phases(7, 8, 800, 20_000);
    let [ours, clock] =
        ["tidemark", "clock"].map(|policy| run(policy, Config::demand(1000), &trace));
    let came = |counters: &Counters| counters.page_ins + counters.zero_fills;
    assert!(
        came(&ours) <= came(&clock) * 115 / 100,
        "{ours:?} {clock:?}"
    );
}

#[test]
fn a_loop_is_told_from_a_law_with_a_long_tail_after_memory_was_filled() {
    // Pages that left during the fill come back in both. Only in the loop none of them left lately.
    let trace: Vec<u64> = (0..8192).chain(zipf(22, 8192, 32_768)).collect();
    let [ours, clock] = ["tidemark", "clock"]
        .map(|policy| run(policy, Config::clustered(2048, 2048), &trace).page_ins);
    assert!(ours <= clock, "{ours} {clock}");
}

#[test]
fn the_first_pages_to_leave_are_those_that_were_not_used_since_they_came() {
    // Two pages are used all along, between pages that are used once. Memory gets full once.
    let trace: Vec<u64> = (2..130).flat_map(|page| [0, page, 1]).collect();
    let counters = run("tidemark", Config::demand(100), &trace);
    assert_eq!((counters.zero_fills, counters.page_ins), (130, 0));
    let blind = run("fifo", Config::demand(100), &trace);
    assert_eq!(blind.page_ins, 2);
}

#[test]
fn finding_out_costs_less_than_eight_soft_faults_for_ten_misses_when_nothing_can_be_learnt() {
    let counters = run("tidemark", Config::demand(2048), &uniform(6, 4096, 100_000));
    let came = counters.page_ins + counters.zero_fills;
    assert!(counters.soft_faults * 10 < came * 8, "{counters:?}");
}

#[test]
fn a_program_that_fits_is_left_in_peace_once_its_pages_are_there() {
    // Memory is nearly full, and stays so.
    let [some, more] = [50_000, 200_000].map(|references| {
        let trace = uniform(6, 1900, references);
        run("tidemark", Config::demand(2048), &trace)
    });
    assert_eq!((some.zero_fills, more.zero_fills), (1900, 1900));
    assert!(some.soft_faults < 2 * 1900, "{some:?}");
    assert_eq!(some.soft_faults, more.soft_faults);
}

#[test]
fn a_memory_that_grows_on_demand_puts_next_to_nothing_on_trial() {
    let frames = 8192;
    // Each new page is followed by an old one: a trial would show as a soft fault.
    let trace: Vec<u64> = (0..6000)
        .flat_map(|page| [page, page * 7919 % (page + 1)])
        .collect();
    let counters = |first: u32| {
        let policy = build("tidemark", frames, first, 1, &[]).expect("it is known");
        let config = Config::clustered(frames, first);
        let mut voice = Voice::default();
        demand::replay_growing(policy, config, MachineKind::SoftFaults, &trace, |vm| {
            let (limit, resident) = (vm.config().frames_limit, vm.frames().in_use());
            let news = voice.news(limit.into(), resident.into(), vm.counters().arrivals());
            news.asks
                .map_or(limit, |asked| asked.min(frames.into()) as u32)
        })
    };
    let (fixed, grown) = (counters(frames), counters(512));
    assert_eq!((fixed.page_ins, grown.page_ins), (0, 0));
    assert_eq!(fixed.soft_faults, 0, "a quarter is left");
    assert!(grown.soft_faults < 60, "{grown:?}");
    let at_once = Config::clustered(6200, 6200);
    assert!(
        run("tidemark", at_once, &trace).soft_faults > 0,
        "fuller, it tries pages"
    );
}
