//! The model: slow, obviously right stand-ins that tests compare the core against.
#![forbid(unsafe_code)]

pub mod cache;
pub mod opt;
pub mod traces;
