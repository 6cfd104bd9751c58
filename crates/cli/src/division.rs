//! The options by which memory is divided among processes.

use clap::Args;
use tidemark_lab::names::{Divider, parse_division};
use tidemark_supervisor::management::Rule;

use crate::exit::Refusal;

/// The way in which memory is divided.
#[derive(Debug, Args)]
pub struct Division {
    /// The rule by which memory goes from some processes to others while there is too little for
    /// all: demand, fault-frequency, pressure, proportional, equal or global
    #[arg(long, value_name = "NAME", default_value = Rule::default().name())]
    pub division: String,
    /// The memory that is left to each process that uses so much
    #[arg(long, value_name = "SIZE", default_value = "1M")]
    pub per_task_min: String,
}

impl Division {
    /// The same, in pages of that size.
    pub fn divider(&self, page_bytes: u64) -> Result<Divider, Refusal> {
        let rule = ("--division", &*self.division);
        let least = ("--per-task-min", &*self.per_task_min);
        parse_division(rule, least, page_bytes)
    }
}
