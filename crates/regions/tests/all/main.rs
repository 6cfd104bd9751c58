//! Regions from outside: their tests, in one binary, which is linked once.

mod child;
mod files;
mod regions;
mod rights;
mod written;
