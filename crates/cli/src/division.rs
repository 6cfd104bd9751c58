//! The options by which memory is divided among processes.

use clap::Args;
use tidemark_lab::names::{Divider, choice, divisions, parse_division};
use tidemark_supervisor::management::Rule;

use crate::exit::Refusal;

/// The way in which memory is divided.
#[derive(Debug, Args)]
pub struct Division {
    #[arg(long, value_name = "NAME", default_value = Rule::default().name(), help = help())]
    pub division: String,
    /// The least memory that is left to a process that uses as much or more
    #[arg(long, value_name = "SIZE", default_value = "1M")]
    pub per_task_min: String,
}

/// The help of `--division`, with the rules that there are.
fn help() -> String {
    let names = choice(&divisions());
    format!(
        "The rule by which memory goes from some processes to others while there is too little \
         for all: {names}"
    )
}

impl Division {
    /// The division that the options name, in pages of `page_bytes`.
    pub fn divider(&self, page_bytes: u64) -> Result<Divider, Refusal> {
        let rule = ("--division", &*self.division);
        let least = ("--per-task-min", &*self.per_task_min);
        parse_division(rule, least, page_bytes)
    }
}
