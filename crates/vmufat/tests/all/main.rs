//! Volumes from outside: their tests, in one binary, which is linked once.

mod card;
mod cuts;
mod damage;
mod lockstep;
mod reader;
mod support;
