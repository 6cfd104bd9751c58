//! `tidemark bench`, run small: workloads on arrays, and real programs.

mod arrays;
mod programs;
#[path = "../support/mod.rs"]
mod support;

use std::sync::Mutex;

/// One benchmark at a time may use the kernel's swap.
static KERNEL: Mutex<()> = Mutex::new(());
