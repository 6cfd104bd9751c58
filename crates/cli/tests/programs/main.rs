//! Real programs, natively and under `tidemark run`: same output, same status.
//!
//! Each program runs once natively, to learn what it writes and how much memory it needs at most,
//! and then in all, in half and in a quarter of that. What it writes, to its standard output, its
//! standard error and to files, must be the same byte for byte. Sizes are small; with
//! `TIDEMARK_ACCEPTANCE=full` they are the full ones, for which `make acceptance` stands.
//!
//! [`child`] runs one process tree within a time limit, [`trial`] compares runs, [`built`] builds
//! programs of the tests' own, [`needs`] skips what a machine can't do (or fails, under
//! `REQUIRE_ALL=1`), [`material`] makes the inputs. The other modules are the programs, one kind
//! each, and what may go wrong around one.
#![forbid(unsafe_code)]

mod actions;
mod apart;
mod built;
mod calls;
mod child;
mod churn;
mod compiler;
mod compress;
mod ends;
mod failures;
mod filters;
mod forks;
mod growth;
mod interpreter;
mod jobs;
mod kills;
mod locks;
mod many;
mod mapped;
mod material;
mod moves;
mod needs;
mod ordinary_user;
mod own_memory;
mod process_tree;
mod remote;
mod roots;
mod runtimes;
mod scratch;
mod server;
mod sort;
mod spaces;
mod sqlite;
mod stress;
mod swapped;
mod trial;
mod unmanaged;
mod written;
