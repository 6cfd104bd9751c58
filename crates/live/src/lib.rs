//! Tidemark's live machine: the core on a running process, through userfaultfd.
#![deny(unsafe_code)]

pub mod control;
pub mod shared;
pub mod sys;
