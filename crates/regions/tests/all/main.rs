//! Regions from outside: their tests, in one binary, which is linked once.

mod child;
mod compressed;
mod engine;
mod files;
mod pagers;
mod regions;
mod rights;
mod written;
