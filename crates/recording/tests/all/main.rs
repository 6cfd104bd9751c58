//! Recordings from outside: their tests, in one binary, which is linked once.

mod collector;
mod random_logs;
mod shares;
