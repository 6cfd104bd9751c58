//! Recordings: what recorded processes write in their logs, collected in one order and reduced to
//! the blocks of a trace.
//!
//! [`Spool`] is the folder where processes leave their logs, [`Collector`] reads these while they
//! are written and plays them in the order of time, a [`Process`] keeps the mappings and references
//! of one log, and a [`Sink`] takes finished blocks to their writer: [`Writing`], on another
//! thread.
//!
//! Nothing here knows how the processes came to be recorded: under Valgrind, or by the engine of
//! `tidemark record --live`.

#![forbid(unsafe_code)]

mod collector;
mod moves;
mod process;
mod reduce;
mod runs;
mod sheet;
pub mod spool;
mod valgrind;
mod writer;

pub use collector::{AskEnd, Birth, Collector, Totals, now_ns};
pub use process::{Process, Settings};
pub use sheet::Sink;
pub use spool::{Spool, SpoolError};
pub use writer::Writing;
