//! `tidemark top`: a run as it goes on, in a terminal.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use tidemark_supervisor::remote::Remote;
use tidemark_tui::screen;

use crate::exit::{Exit, Refusal, refuse};
use crate::files::Files;
use crate::output;

/// Shows the tasks of a run live: their memory, what they do and what they wait for
#[derive(Debug, Args)]
pub struct Arguments {
    /// The process id of the `tidemark run`; not needed if there is only one
    #[arg(value_name = "PID")]
    run: Option<u32>,
    /// The control socket, if `run --control` named one
    #[arg(long, value_name = "PATH", conflicts_with = "run")]
    socket: Option<PathBuf>,
    /// Print one screen with all tasks, and end
    #[arg(long)]
    once: bool,
    /// The time between two looks, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0)]
    interval: f64,
}

impl Files for Arguments {}

/// Shows it until the user quits.
pub fn run(arguments: Arguments) -> Result<Exit, Refusal> {
    if !(0.1..=30.0).contains(&arguments.interval) {
        refuse!(
            "`--interval {}`: give 0.1 to 30 seconds",
            arguments.interval
        );
    }
    let mut remote = Remote::find(arguments.socket.as_deref(), arguments.run)?;
    let mut ask = |request: &_| remote.exchange(request);
    if arguments.once {
        let state = tidemark_tui::state_of(&mut ask)?;
        let width = output::terminal_width().unwrap_or(200);
        output::print(&screen::once(&state, width));
    } else if !std::io::stdin().is_terminal() || !std::io::stdout().is_terminal() {
        refuse!("there is no terminal; `--once` prints one screen without");
    } else {
        tidemark_tui::show(&mut ask, Duration::from_secs_f64(arguments.interval))?;
    }
    Ok(Exit::Fine)
}
