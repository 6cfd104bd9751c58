//! Recording without Valgrind: what a program touches in a window is in the trace, once.
//!
//! - [`windows`]: programs whose phases are known.
//! - [`neighbours`]: first touches that are found many at a time, and windows that grow.
//! - [`processes`]: children, threads, programs executed, and what becomes of them.
//! - [`kills`]: whatever is killed, the trace opens up to then.
//! - [`regions`]: some pages of each region in place of all.
//! - [`uses`]: what the other commands make of such a trace, and what is refused.
//!
//! Each test has a time limit, and skips where userfaultfd is not permitted.

mod kills;
mod neighbours;
mod processes;
#[path = "../recorder/recording.rs"]
#[allow(dead_code)]
mod recording;
mod regions;
mod running;
#[path = "../support/mod.rs"]
mod support;
#[path = "../recorder/tool.rs"]
#[allow(dead_code)]
mod tool;
mod uses;
mod windows;
