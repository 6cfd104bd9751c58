//! Sequences of core events, spelled by the fuzzer's bytes: a setup, then steps until the bytes
//! end. What must hold is what must hold in a simulation.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tidemark_model::lockstep;
use tidemark_model::step::Plan;

fuzz_target!(|bytes: &[u8]| {
    lockstep::run(&Plan::spell(bytes));
});
