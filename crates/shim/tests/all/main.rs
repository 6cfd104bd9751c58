//! The preload library from outside: its tests, in one binary, which is linked once.

mod lent;
mod managed;
mod programs;
