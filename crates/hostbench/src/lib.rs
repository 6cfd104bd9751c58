//! Measures programs in limited memory beside the kernel's own swap, on this host.
//!
//! [`plan`] is the checked order, [`measure`](measure()) runs the [`contender`]s in turn,
//! `kernel_swap` and `cgroup` make the kernel's own swap one of them, `host` puts back what was
//! changed for it. [`programs`] does the same for suites of real programs. [`record`] is the
//! result, [`table`] shows it, [`suite`] checks claims about it, [`dated`] has the machine and the
//! date. [`page_in`] measures what a fault costs. [`workload`] has the measured programs, [`child`]
//! runs one to its end within a limit of time. [`calibrate`] measures what faults and transfers
//! take, and [`kept`] keeps it.

#![forbid(unsafe_code)]

pub mod calibrate;
mod cgroup;
pub mod child;
pub mod contender;
pub mod dated;
mod host;
pub mod kept;
mod kernel_swap;
mod measure;
mod output;
pub mod page_in;
pub mod plan;
pub mod programs;
pub mod record;
mod scratch;
pub mod suite;
pub mod table;
pub mod workload;
mod zram;

pub use measure::measure;
