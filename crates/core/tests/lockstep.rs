//! Random operations in lockstep with the model: a read returns what was last written.
//!
//! `TIDEMARK_LOCKSTEP_SEEDS` sets how many seeds run.

use tidemark_model::lockstep::run_seeds;
use tidemark_model::step::Weather;

const STEPS: usize = 250;

fn seeds() -> u64 {
    let named = std::env::var("TIDEMARK_LOCKSTEP_SEEDS").ok();
    named.map_or(400, |count| count.parse().expect("`TIDEMARK_LOCKSTEP_SEEDS` is a number"))
}

#[test]
fn reads_return_what_was_last_written() {
    run_seeds(0, seeds(), Weather::Calm, STEPS);
}
