//! Tidemark's core: a virtual memory that decides and never does.
//!
//! It takes in faults, replies and the time, changes its tables, and says what should happen.
//! A simulator, a process with userfaultfd or a bare machine makes it happen. There are no clocks,
//! threads, files or random sources in here, and no `unsafe`: the same events give the same
//! decisions everywhere.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod frame;
pub mod id;
pub mod machine;
pub mod pager;
pub mod policy;
pub mod queue;
pub mod run;
pub mod time;
