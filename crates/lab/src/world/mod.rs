//! The world: whole memory systems over the core, with programs, processors, disks and a clock.
//!
//! [`run`] puts the programs of a [`Scenario`] on a [`System`] and says what they came to. It is a
//! discrete-event simulation: time is a number that jumps to the next thing that happens. The
//! same scenario on the same system comes to the same outcome, byte for byte.
//!
//! - [`script`] holds traces in memory, [`scenario`] what is run, [`system`] what it is run on,
//!   [`outcome`] what it came to, [`disk`] what disks are like.
//! - A hit stays out of the core and costs a few nanoseconds: a processor runs records of its
//!   thread against the page table of its space until one faults, its turn ends, or something
//!   else is due.
//! - A system call that reads or writes a file copies page by page from the same pages that
//!   programs map: one that is not in memory is read first, one that was written is written back
//!   when its frame is wanted.
//! - The threads of a process run beside each other, or take turns as on record.
//! - Time on a processor is the trace's own time by [`Costs`], and what the kernel does for the
//!   process. Work without a process, such as taking in a disk's reply, is done by the first
//!   processor, whatever it was doing.
//! - All processes share one memory, or each program that is started has its own, and frames are
//!   divided among them.
//! - Pages that leave may be compressed first, as live: see [`sizes`].
//! - In a memory of its own, a heap is found late, as live: see [`finding`].
//! - Several processors see each other's work within 20 microseconds.

mod compressed;
mod copies;
pub mod disk;
mod division;
mod engine;
pub mod error;
mod file_call;
mod files;
mod finding;
mod kernel;
mod layout;
mod life;
mod memory;
mod order;
pub mod outcome;
mod process;
mod ready;
pub mod scenario;
pub mod script;
mod shares;
pub mod sizes;
mod suspensions;
pub mod system;
mod tables;
mod tally;
#[cfg(test)]
mod tests;
mod thread;
mod unfound;
mod watch;
mod words;

pub use crate::analysis::simulate::MachineKind;
pub use disk::{DiskModel, DiskUse};
pub use error::WorldError;
pub use outcome::{Outcome, ProcessOutcome, ProgramOutcome, Sample, Suspension};
pub use scenario::{Clusters, Disks, PolicyChoice, Program, Scenario, Scheduler, Watch};
pub use script::{Script, Writing};
pub use sizes::PageSizes;
pub use system::{Costs, System};

/// Runs a scenario on a system until its last program has ended, or until its limit.
///
/// Work: a few nanoseconds a record, and a few microseconds a fault. Memory: 40 bytes a frame,
/// 4 bytes for each page a process uses, and the scripts, which are shared.
///
/// # Errors
/// If the scenario can't be run on that system.
pub fn run(system: &System, scenario: &Scenario) -> Result<Outcome, WorldError> {
    engine::World::new(system, scenario)?.run()
}
