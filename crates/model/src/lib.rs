//! The reference for tests of the core: an obviously correct memory, and simulated machines and
//! pagers.
//!
//! - [`memory`] is the law: a read returns what was last written. Slow, small, without tricks.
//! - [`machine`] and [`pager`] are the core's seams, simulated: page tables with reference bits or
//!   with soft faults, stores that are slow, reorder, fail and fill up. Both are as unkind as
//!   their contracts allow: what a contract does not promise to keep is overwritten with noise.
//! - [`witness`] stands between the core and a policy and checks what passes.
//! - [`stage`] puts a [`Vm`](tidemark_core::vm::Vm) on them and compares every access with the
//!   law. [`world`] is the stage for scripted scenarios; [`lockstep`] drives it with random
//!   [`step`]s and [`shrink`]s what fails.
//! - [`cache`], [`opt`] and [`traces`] are what policies alone are measured on, [`demand`] a whole
//!   memory; [`room`] measures the memory of policies that trim. [`sampled`] is the machine that
//!   answers the policies of [`cache`] and [`room`].
//! - [`conformance`] holds the suites that every machine and every pager must pass.
#![forbid(unsafe_code)]

pub mod cache;
pub mod conformance;
pub mod demand;
pub mod lockstep;
pub mod machine;
pub mod memory;
pub mod opt;
pub mod pager;
mod pages;
pub mod physical;
pub mod random;
pub mod room;
pub mod sampled;
pub mod shrink;
pub mod stage;
pub mod step;
pub mod traces;
pub mod witness;
pub mod world;
