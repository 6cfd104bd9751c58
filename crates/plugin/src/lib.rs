//! Policies read from files: WebAssembly modules that implement the core's
//! [`Policy`](tidemark_core::seams::policy::Policy) without Tidemark being built again.
//!
//! A module exports the calls of the trait as functions of numbers and imports the questions of a
//! [`Probe`](tidemark_core::seams::policy::Probe); `docs/formats/policy-module-v1.md` has the list.
//! It is interpreted: no machine code is made, no signal is handled, no operating system is needed,
//! so that the same host serves the lab and the engine inside a managed process.
//!
//! # Invariants
//! 1. Each call into a module ends: its instructions, its questions, its memory and its recursion
//!    are bounded. What goes beyond is stopped, and the call counts as no opinion.
//! 2. No answer of a module leaves this crate unchecked. Where it has no usable one, the oldest
//!    page that may leave goes, so a bad module is slow and never wrong.
//!
//! [`abi`] has the interface of a module, [`module`] reads and checks one, [`guest`] is one at
//! work, [`host`] the policy around it, and [`shelf`] knows those that have been read by name.
#![forbid(unsafe_code)]

mod abi;
mod guest;
mod host;
mod module;
mod shelf;
#[cfg(test)]
mod tests;

pub use module::{LoadError, Wrong};
pub use shelf::{Setbacks, binary, build, find, is_file, keep, load, setbacks, take_news, visit};
