//! Seeded simulation: first safety, with slow, failing and reordering pagers; then liveness.
//!
//! `make sim SEED=7` repeats one seed; `TIDEMARK_STEPS` sets how many steps a run takes,
//! `TIDEMARK_SEEDS` how many fixed seeds run and `TIDEMARK_FRESH` how many new ones. What fails is
//! printed with its seed and the shortest list of steps that still fails; `TIDEMARK_TRACE=1` also
//! prints what happens in it.

use std::time::{SystemTime, UNIX_EPOCH};

use tidemark_model::lockstep::run_seeds;
use tidemark_model::step::Weather;

fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok().filter(|text| !text.is_empty())?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("`{name}` is {text}; it must be a number")),
    )
}

#[test]
fn programs_stay_right_in_foul_weather_and_finish_when_it_clears() {
    let steps = number("TIDEMARK_STEPS").unwrap_or(300) as usize;
    if let Some(seed) = number("TIDEMARK_SEED") {
        println!("SEED={seed} STEPS={steps}");
        run_seeds(seed, 1, Weather::Foul, steps);
        return;
    }
    run_seeds(
        0,
        number("TIDEMARK_SEEDS").unwrap_or(400),
        Weather::Foul,
        steps,
    );
    let fresh = number("TIDEMARK_FRESH").unwrap_or(0);
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .expect("the clock is past 1970");
    // Far from the fixed seeds, and printed with whatever fails.
    let first = (1 << 32) + now.as_secs() * 1000;
    if fresh > 0 {
        println!("fresh seeds: {first} to {}", first + fresh - 1);
        run_seeds(first, fresh, Weather::Foul, steps);
    }
}
