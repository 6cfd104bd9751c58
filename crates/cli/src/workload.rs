//! `tidemark workload`: one of the measured programs by itself.

pub use tidemark_hostbench::workload::Order as Arguments;

use crate::exit::{Exit, Refusal};
use crate::files::Files;
use crate::output;

impl Files for Arguments {}

/// Runs a workload and prints its outcome.
pub fn run(arguments: Arguments) -> Result<Exit, Refusal> {
    let outcome = tidemark_hostbench::workload::measure(&arguments)?;
    output::print(&format!("{}\n", outcome.to_line()));
    Ok(Exit::Fine)
}
