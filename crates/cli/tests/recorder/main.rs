//! The recorder on real programs: what it records is what they do, and all of it.
//!
//! - [`lackey`]: its records are those that Valgrind's own, slow, full trace gives.
//! - [`processes`]: forks, programs executed, threads, signals, marks.
//! - [`memory`]: mappings, the stack, and the memory that the kernel touches.
//! - [`files`]: what system calls read and write.
//! - [`instructions`]: what Valgrind does not know is told.
//! - [`kills`]: whatever is killed, the trace opens up to then.
//!
//! Each test has a time limit, and skips if Valgrind is not installed.

mod files;
mod instructions;
mod kills;
mod lackey;
mod memory;
mod processes;
mod recording;
#[path = "../support/mod.rs"]
mod support;
mod tool;
