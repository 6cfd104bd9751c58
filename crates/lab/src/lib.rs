//! The laboratory: what a recorded program says of the memory it needs.
//!
//! [`analysis`] computes exact curves, distances and working sets from reference strings; [`study`]
//! goes from a trace's file to the records that views are made of. [`world`] runs whole memory
//! systems, with programs, processors, disks and a clock: those of [`systems`].

#![forbid(unsafe_code)]

pub mod amounts;
pub mod analysis;
pub mod contention;
pub mod names;
pub mod near;
pub mod study;
pub mod systems;
pub mod world;
