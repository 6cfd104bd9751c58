//! The laboratory from outside: its tests, in one binary, which is linked once.

mod dclock;
mod golden;
mod passing;
mod programs;
mod variable_space;
