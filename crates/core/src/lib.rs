//! Tidemark's core: a virtual memory that decides and never does.
//!
//! It takes in faults, replies and the time, changes its tables, and says what should happen.
//! A simulator, a process with userfaultfd or a bare machine makes it happen. There are no clocks,
//! threads, files or random sources in here, and no `unsafe`: the same events give the same
//! decisions everywhere.
//!
//! Begin with [`vm::Vm`]. The seams are [`seams::machine::Machine`] and
//! [`seams::policy::Policy`], which it calls, and the messages of [`seams::pager`].
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod collections;
pub mod compressed;
pub mod config;
pub mod counters;
pub mod decision;
pub mod driver;
pub mod event;
pub mod id;
pub mod kernels;
pub mod load;
pub mod memory;
pub mod paging;
pub mod policies;
pub mod random;
pub mod readahead;
pub mod seams;
pub mod time;
pub mod vm;
