//! Reports from outside: their tests, in one binary, which is linked once.

mod browser;
mod headline;
mod page;
mod pictures;
mod sample;
mod terminal;
