//! The second layer: what stands between one virtual memory and many tasks that have one each.
//!
//! The [`Steward`] keeps the members of a run: it admits tasks, divides memory among them, asks
//! load control which of them run, suspends, resumes and evicts them, and says how many jobs there
//! is room for. The supervisor drives it with processes, the lab with simulated ones. The
//! [`TaskMemory`] of one task says what its core may use, what it reports, and takes it out of
//! memory and back; an engine drives it, and the lab.
//!
//! Like the core it decides and never acts. It has no clock, no files and no threads:
//! - `handle_…` takes in what happened, with the time. Each does a bounded amount of work.
//! - [`Steward::poll_action`] returns the next action, until `None`;
//!   [`Steward::poll_deadline`] says when to come back.
//! - The words that tasks and the steward share are lent to each call as [`Records`]. Every call
//!   of these returns at once.
//!
//! # Waits
//! Each wait of a task has a bound, as long as its driver comes back at each deadline:
//!
//! | wait | bound |
//! | --- | --- |
//! | of a newcomer, for its first memory | [`ADMISSION_NS`] and an interval: it is turned away |
//! | of a forked child | the same, then [`FRAMES_MIN`] frames suffice |
//! | of a task that is evicted, to grow again | [`EVICTION_NS`] |
//! | of a task that load control has suspended | that of the load control, in its documentation |
//! | of a task that a request has suspended | until a request, or the end of the run |
//! | for what others give up | [`INTERVAL_NS`], and as often again as they have more |
//!
//! [`ADMISSION_NS`]: tidemark_partition::ADMISSION_NS
//! [`FRAMES_MIN`]: tidemark_partition::FRAMES_MIN
//! [`INTERVAL_NS`]: tidemark_partition::INTERVAL_NS

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod jobs;
mod records;
mod steward;
mod task_memory;

pub use records::{Counts, Reading, Record, Records};
pub use steward::member::{By, Stage};
pub use steward::{Action, EVICTION_NS, Remains, Steward, TaskId};
pub use task_memory::{BESIDE_PART, TaskMemory};
