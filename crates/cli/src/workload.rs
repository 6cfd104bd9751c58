//! `tidemark workload`: one of the measured programs by itself.

use clap::Args;
use tidemark_hostbench::workload::{self, Order, Workload, faults};

use crate::exit::{Exit, Refusal};
use crate::files::Files;
use crate::output;

/// Run one of the measured workloads by itself
#[derive(Debug, Args)]
#[command(hide = true)]
pub struct Arguments {
    #[command(flatten)]
    order: Order,
}

impl Files for Arguments {}

/// Runs a workload and prints its outcome.
pub fn run(arguments: Arguments) -> Result<Exit, Refusal> {
    let line = match arguments.order.workload {
        Workload::Faults => faults::measure(&arguments.order)?.to_line(),
        _ => workload::measure(&arguments.order)?.to_line(),
    };
    output::print(&format!("{line}\n"));
    Ok(Exit::Fine)
}
