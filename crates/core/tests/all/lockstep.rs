//! Random operations in lockstep with the model: a read returns what was last written.
//!
//! `TIDEMARK_LOCKSTEP_SEEDS` sets how many seeds run.

use tidemark_core::kernels::{Pacing, Passes, Placement};
use tidemark_core::random::SplitMix64;
use tidemark_core::vm::Counters;
use tidemark_model::lockstep::{run_seeds, try_run};
use tidemark_model::step::{Plan, Weather};

const STEPS: usize = 250;

fn seeds() -> u64 {
    let named = std::env::var("TIDEMARK_LOCKSTEP_SEEDS").ok();
    named.map_or(400, |count| {
        count
            .parse()
            .expect("`TIDEMARK_LOCKSTEP_SEEDS` is a number")
    })
}

#[test]
fn reads_return_what_was_last_written() {
    let runs = run_seeds(0, seeds(), Weather::Calm, STEPS);
    // What the runs never do, they cannot test.
    let expect = |what, count: fn(&Counters) -> u64| {
        let total: u64 = runs.iter().map(count).sum();
        println!("{what}: {total}");
        assert!(
            total >= runs.len() as u64 / 10,
            "{what} in {} runs: {total}",
            runs.len()
        );
    };
    expect("zero fills", |c| c.zero_fills);
    expect("pages zeroed ahead", |c| c.zero_aheads);
    expect("soft faults", |c| c.soft_faults);
    expect("copies", |c| c.cow_faults);
    expect("page-ins", |c| c.page_ins);
    expect("page-ins of several pages", |c| {
        c.page_ins - c.page_in_requests
    });
    expect("page-outs", |c| c.page_outs);
    expect("page-outs of several pages", |c| {
        c.page_outs - c.page_out_requests
    });
    expect("pages read ahead and used", |c| c.read_ahead_used);
    expect("pages read ahead for nothing", |c| c.read_ahead_wasted);
    expect("clean drops", |c| c.clean_drops);
    expect("zero drops", |c| c.zero_pages);
    expect("rescues", |c| c.reactivations);
    expect("adoptions", |c| c.adopted_pages);
    expect("refusals by pinned pages", |c| c.busy);
    expect("stalls", |c| c.stalls);
}

#[test]
fn reads_return_what_was_last_written_where_clusters_have_places() {
    for weather in [Weather::Calm, Weather::Foul] {
        let run_one = |seed| {
            let mut plan = Plan::draw(&mut SplitMix64::new(seed), weather, STEPS);
            plan.setup.config.kernel.placement = Placement::InPlace;
            let counters = try_run(&plan);
            counters.unwrap_or_else(|message| panic!("SEED={seed}: {message}\n{plan}"))
        };
        let runs: Vec<Counters> = (0..seeds()).map(run_one).collect();
        let total = |count: fn(&Counters) -> u64| runs.iter().map(count).sum::<u64>();
        let most = runs.len() as u64;
        assert!(total(|c| c.page_outs) > total(|c| c.page_out_requests) + most);
        assert!(total(|c| c.page_ins) > total(|c| c.page_in_requests) + most / 4);
        assert!(total(|c| c.reactivations) > most / 10 && total(|c| c.clean_drops) > most);
    }
}

#[test]
fn reads_return_what_was_last_written_where_pages_of_files_are_paged_twice() {
    let run_one = |(weather, seed)| {
        let mut plan = Plan::draw(&mut SplitMix64::new(seed), weather, STEPS);
        let config = &mut plan.setup.config;
        config.reserve = config.frames_limit / 4;
        (config.free_low, config.free_high) = (config.reserve + 1, config.reserve + 3);
        config.kernel.placement = Placement::Together;
        config.kernel.pacing = Some(Pacing::Passes(Passes {
            pass_pages: 2,
            wait_laundry: 1,
            resume_laundry: 0,
            wait_ns: 1_000_000,
            wait_page_ns: 0,
            is_pausing: true,
            is_double_paging: true,
        }));
        let counters = try_run(&plan);
        counters.unwrap_or_else(|message| panic!("SEED={seed}: {message}\n{plan}"))
    };
    let weathers = [Weather::Calm, Weather::Foul].into_iter();
    let plans = weathers.flat_map(|weather| (0..seeds()).map(move |seed| (weather, seed)));
    let doubled: u64 = plans.map(|plan| run_one(plan).double_paged).sum();
    assert!(doubled >= seeds() / 10, "{doubled}");
}
