//! The core from outside: its tests, in one binary, which is linked once.

mod copies;
mod daemon;
mod default_policy;
mod early_eviction;
mod flushing;
mod frame_order;
mod golden;
mod kernels;
mod load_controls;
mod lockstep;
mod machine_conformance;
mod outcomes;
mod pager_conformance;
mod pins;
mod placement;
mod policy_conformance;
mod read_ahead;
mod scenarios;
mod simulation;
mod small_and_complete;
mod suspensions;
mod swap_ahead;
mod transitions;
mod trimming;
mod working_sets;
