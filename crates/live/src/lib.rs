//! The machine on userfaultfd: what runs inside a program to page its memory.
//!
//! - [`sys`] is the only place that talks to the kernel by raw address.
//! - [`machine`] stands in for translation hardware: it moves pages between the program and the
//!   frame pool.
//! - [`store`] keeps pages that have left on a swap file.
//! - [`engine`] is the loop that joins them with the core; [`scanner`] finds what it manages, and
//!   [`requests`] is how program threads talk to it.
//! - [`shared`] is what the processes of a run share, [`control`] how they meet.
//! - [`disk`] finds the processor that a disk interrupts.
//! - [`reference_log`] is what a recorded process writes its references to.
//!
//! # Threads
//! Everything here is owned by one engine thread and needs no lock. Programs never hold anything
//! the engine waits for. Code that runs on that thread keeps no thread-local variables, since
//! those may lie in memory that is itself paged.
#![deny(unsafe_code)]

pub mod control;
pub mod disk;
pub mod engine;
pub mod hand;
pub mod machine;
pub mod ranges;
pub mod reference_log;
pub mod requests;
pub mod scanner;
pub mod shared;
pub mod slots;
pub mod store;
pub mod sys;
