//! `tidemark completions`: what a shell needs to complete the command line.

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::exit::{Exit, Refusal};
use crate::output;

/// Prints completions for a shell
#[derive(Debug, Args)]
pub struct Arguments {
    /// The shell
    shell: Shell,
}

/// Prints the completions.
pub fn run(arguments: Arguments) -> Result<Exit, Refusal> {
    let mut text = Vec::new();
    let mut command = crate::Arguments::command();
    clap_complete::generate(arguments.shell, &mut command, "tidemark", &mut text);
    output::print(&String::from_utf8_lossy(&text));
    Ok(Exit::Fine)
}
