//! `tidemark mark`: names a phase of the recording it runs in.
//!
//! It is a process of its own, started by a program that is being recorded, and is not recorded
//! itself. The phase is one of its parent's.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use clap::Args;
use rustix::fs::OFlags;
use tidemark_recording::now_ns;
use tidemark_recording::spool::{BELL, VARIABLE};
use tidemark_supervisor::program::plain;

use crate::exit::{Exit, Refusal, refuse};
use crate::files::Files;

/// The longest name, in bytes: with what stands around it, it goes through a pipe in one piece.
const NAME_BYTES_MAX: usize = 1024;

/// Names the phase that begins here, in a script that `tidemark record` runs
///
/// Outside of a recording it does nothing, so that the script runs all the same.
#[derive(Debug, Args)]
pub struct Arguments {
    /// The phase
    name: String,
}

impl Files for Arguments {}

/// Names the phase.
pub fn run(arguments: Arguments) -> Result<Exit, Refusal> {
    let name = arguments.name;
    if name.is_empty() || name.len() > NAME_BYTES_MAX || name.contains(char::is_control) {
        refuse!("`{name}`: a phase has a name of 1 to {NAME_BYTES_MAX} bytes, on one line");
    }
    let Some(spool) = std::env::var_os(VARIABLE) else {
        return Ok(Exit::Fine);
    };
    let parent = rustix::process::getppid().map_or(0, |pid| pid.as_raw_nonzero().get());
    let line = format!("mark {parent} {} {name}\n", now_ns());
    let bell = File::options()
        .write(true)
        .custom_flags(OFlags::NONBLOCK.bits() as i32)
        .open(PathBuf::from(spool).join(BELL));
    match bell.and_then(|mut bell| bell.write_all(line.as_bytes())) {
        Ok(()) => Ok(Exit::Fine),
        Err(error) => refuse!("the recording does not listen: {}", plain(&error)),
    }
}
