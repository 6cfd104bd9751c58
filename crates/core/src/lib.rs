//! Tidemark's core: a virtual memory that decides and never does.
//!
//! It takes in faults, replies and the time, changes its tables, and says what should happen.
//! A simulator, a process with userfaultfd or a bare machine makes it happen. There are no clocks,
//! threads, files or random sources in here, and no `unsafe`: the same events give the same
//! decisions everywhere.
//!
//! Begin with [`vm::Vm`]. The three seams are [`machine::Machine`], [`pager::Pager`] and
//! [`policy::Policy`].
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod backing;
pub mod bitmap;
mod bits;
pub mod check;
pub mod cluster;
pub mod column;
pub mod controller;
pub mod daemon;
pub mod decision;
mod double_paging;
pub mod fault;
mod fetch;
pub mod frame;
pub mod id;
pub mod load;
pub mod machine;
pub mod object;
pub mod pager;
mod pins;
pub mod placement;
pub mod policy;
pub mod queue;
pub mod reclaim;
pub mod region;
pub mod reverse;
pub mod run;
pub mod share;
pub mod space;
mod standing;
pub mod swap_ahead;
pub mod time;
pub mod transfer;
mod trim;
pub mod vm;
mod window;
