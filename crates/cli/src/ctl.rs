//! `tidemark ctl`: requests to a run while it runs, over its control socket.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use tidemark_lab::names::choice;
use tidemark_results::control::{Reply, Request};
use tidemark_results::{quantity, text};
use tidemark_supervisor::load_controls;
use tidemark_supervisor::remote::Remote;

use crate::exit::{Exit, Refusal};
use crate::files::Files;
use crate::output;

/// Shows the state of a run while it is running, or changes its settings
///
/// Exit status: 0 if it is done, 2 if not.
#[derive(Debug, Args)]
pub struct Arguments {
    /// The process id of the `tidemark run`; not needed if there is only one
    #[arg(value_name = "PID", value_parser = process_id)]
    run: Option<u32>,
    /// The control socket, if `run --control` named one
    #[arg(long, value_name = "PATH", conflicts_with = "run")]
    socket: Option<PathBuf>,
    /// Print the reply as JSON
    #[arg(long, global = true)]
    json: bool,
    /// The request
    #[command(subcommand)]
    request: Order,
}

/// A request, as people write it.
#[derive(Debug, Subcommand)]
enum Order {
    /// Shows the memory, state and waits of each task
    Stats,
    /// Shows the same in the OpenMetrics format
    Metrics,
    /// Shows which parts of a task's memory are resident, compressed, on disk, or untouched
    Map {
        /// The process id of the task
        task: u32,
        /// The number of parts of equally many pages, from 1 to 240
        #[arg(long, value_name = "N")]
        cells: Option<u32>,
    },
    /// Changes the memory that all tasks may use together
    Budget {
        /// Its size: `512M`, `1.5G`
        size: String,
    },
    /// Stops a task
    Suspend {
        /// The process id of the task
        task: u32,
    },
    /// Resumes a suspended task
    Resume {
        /// The process id of the task
        task: u32,
    },
    /// Pages out a whole task, which then pages in what it touches
    Evict {
        /// The process id of the task
        task: u32,
    },
    /// Reports the load control, or changes it
    LoadControl {
        #[arg(help = format!("Another: {}", choice(&load_controls::names())))]
        name: Option<String>,
    },
    /// Reports the replacement policy, which can't be changed
    Policy {
        /// Another
        name: Option<String>,
    },
}

impl Files for Arguments {}

/// Reads the first argument, which is a process id unless it is a request.
fn process_id(text: &str) -> Result<u32, String> {
    let pid = text.parse();
    pid.map_err(|_| "neither a request nor the process id of a run".to_owned())
}

impl Order {
    fn request(self) -> Result<Request, Refusal> {
        Ok(match self {
            Order::Stats => Request::Stats,
            Order::Metrics => Request::Metrics,
            Order::Map { task, cells } => Request::Map { pid: task, cells },
            Order::Budget { size } => Request::Budget {
                bytes: quantity::parse("budget", &size)?,
            },
            Order::Suspend { task } => Request::Suspend { pid: task },
            Order::Resume { task } => Request::Resume { pid: task },
            Order::Evict { task } => Request::Evict { pid: task },
            Order::LoadControl { name } => Request::LoadControl { name },
            Order::Policy { name } => Request::Policy { name },
        })
    }
}

/// Asks, and shows the reply.
pub fn run(arguments: Arguments) -> Result<Exit, Refusal> {
    let request = arguments.request.request()?;
    let mut remote = Remote::find(arguments.socket.as_deref(), arguments.run)?;
    let reply = match request {
        Request::Map { pid, cells } => Reply::Map(Box::new(remote.ask_map(pid, cells)?)),
        request => remote.ask(&request)?,
    };
    output::print(&match reply {
        reply if arguments.json => reply.to_line(),
        Reply::Stats(state) => text::state(&state, output::terminal_width()),
        Reply::Map(map) => text::memory_map(&map),
        Reply::Metrics(text) => text,
        Reply::Policy(line)
        | Reply::LoadControl(line)
        | Reply::Done(line)
        | Reply::Refused(line) => format!("{line}\n"),
    });
    Ok(Exit::Fine)
}
