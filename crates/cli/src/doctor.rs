//! `tidemark doctor`: what this host permits, what is missing, and the command that would give it;
//! [`checks`] has each.

mod checks;

use std::path::PathBuf;

use clap::Args;
use tidemark_hostbench::{calibrate, kept};
use tidemark_results::host::HostRecord;

use crate::exit::{Exit, Refusal};
use crate::files::Files;
use crate::output;
use crate::output::say;

/// The profile of system calls for containers, as docker and podman read it.
const PROFILE: &str = include_str!("../../../docs/seccomp.json");

/// Shows what this host permits, and how to get what is missing
///
/// Exit status: 0 if `tidemark run` works here, 1 if something it needs is missing.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Also measure the times of faults, moves and transfers (a few seconds), and keep them for
    /// `tidemark curve`
    #[arg(long)]
    calibrate: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// The folder for swap files
    #[arg(long, value_name = "PATH")]
    swap: Option<PathBuf>,
    /// Print a profile of system calls to start a container with, and look at nothing
    #[arg(long, conflicts_with_all = ["calibrate", "json", "swap"])]
    seccomp: bool,
}

impl Files for Arguments {}

/// Looks, and says what it found.
pub fn run(arguments: Arguments) -> Result<Exit, Refusal> {
    if arguments.seccomp {
        output::print(PROFILE);
        return Ok(Exit::Fine);
    }
    let checks = checks::collect(arguments.swap.as_deref());
    let latencies = match arguments.calibrate {
        true => calibrate::measure(arguments.swap.as_deref(), &mut |told| {
            say!("tidemark: {told}")
        }),
        false => vec![],
    };
    let record = HostRecord::new(checks, latencies);
    if arguments.calibrate {
        match kept::keep(&record) {
            Ok(path) => say!("tidemark: kept in `{}`", path.display()),
            Err(error) => say!("tidemark: what was measured can't be kept: {error}"),
        }
    }
    output::print(&if arguments.json {
        record.to_json()
    } else {
        record.to_text(output::terminal_width())
    });
    Ok(if record.can_run {
        Exit::Fine
    } else {
        Exit::Found
    })
}
