//! `tidemark`: real programs in less memory than they need.
//!
//! Each subcommand is a file of its own that parses, plans, runs and renders; [`commands`] lists
//! them. What they print is made by pure functions of the records in `tidemark-results`. Results
//! go to stdout, progress and complaints to stderr.
//!
//! # Exit status
//! 0: fine. 1: the command found something. 2: it could not be done; one line says why.
//! `run` ends as the program it ran did.

#![forbid(unsafe_code)]
// What writes to a stream that has gone away panics: `output` has what does not.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod bench;
mod commands;
mod compare;
mod completions;
mod ctl;
mod curve;
mod dated;
mod diff;
mod division;
mod doctor;
mod exit;
mod experiment;
mod export;
mod generate;
mod import;
mod info;
mod keep;
mod kernel;
mod man;
mod map;
mod mark;
mod mount;
mod needed;
mod output;
mod policies;
mod progress;
mod record;
mod replay;
mod report;
mod run;
mod sweep;
mod systems;
mod top;
mod traces;
mod views;
mod volume;
mod workload;
mod wss;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};
use tidemark_outputs as files;
use tidemark_supervisor::witness;

use crate::commands::Command;
use crate::exit::{Exit, Refusal};

/// Runs real programs in less memory than they need
#[derive(Debug, Parser)]
#[command(name = "tidemark", version = env!("TIDEMARK_VERSION"), arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

fn main() {
    if witness::is_wanted() {
        witness::stand();
    }
    let exit = match Arguments::try_parse() {
        Ok(arguments) => arguments.command.run(),
        Err(error) => usage(&error),
    };
    exit.unwrap_or_else(|refusal| exit::tell(&refusal)).leave()
}

/// Shows help where help was asked for; makes one line of any other complaint.
fn usage(error: &clap::Error) -> Result<Exit, Refusal> {
    let is_help = match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => Some(Exit::Fine),
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => Some(Exit::Refused),
        _ => None,
    };
    let exit = is_help.ok_or_else(|| exit::refuse_usage(error, &Arguments::command()))?;
    // A reader that has gone away wants no more help.
    let _ = error.print();
    Ok(exit)
}
