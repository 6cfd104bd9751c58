//! The end of the command: its exit status, and the one line that says why it could not be done.

use std::process::ExitStatus;

use clap::error::{ContextKind, ContextValue};
use tidemark_results::Ending;
use tidemark_supervisor::{signals, supervise};

use crate::output;

pub use tidemark_results::{Refusal, refuse};

/// The end of the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// All is well.
    Fine,
    /// The command worked, and found something amiss.
    Found,
    /// The command could not be carried out.
    Refused,
    /// As the program that was run, which returned this status.
    Status(i32),
    /// As the program that was run, which this signal ended.
    Signal(i32),
}

impl Exit {
    /// As a program that was run.
    pub fn of(status: ExitStatus) -> Exit {
        match supervise::ending_of(status) {
            Ending::Status(status) => Exit::Status(status),
            Ending::Signal(signal) => Exit::Signal(signal),
            Ending::Replaced | Ending::Gone | Ending::Running => Exit::Refused,
        }
    }

    /// Ends this process.
    pub fn leave(self) -> ! {
        match self {
            Exit::Fine => std::process::exit(0),
            Exit::Found => std::process::exit(1),
            Exit::Refused => std::process::exit(2),
            Exit::Status(status) => std::process::exit(status),
            Exit::Signal(signal) => signals::end_by(signal),
        }
    }
}

/// A refusal of a command line that can't be parsed.
pub fn refuse_usage(error: &clap::Error) -> Refusal {
    let text = error.render().to_string();
    // Clap's message is the first paragraph; hints and usage follow it.
    let paragraph = text.split("\n\n").next().unwrap_or_default();
    let message = paragraph.trim_start_matches("error: ").trim_end();
    let message = Refusal::new(message);
    Refusal::new(match find_near(error) {
        Some(near) => format!("{message}; did you mean {near}?"),
        None => format!("{message}; `--help` shows what there is"),
    })
}

/// The words, options or subcommands that are near to one that is unknown.
fn find_near(error: &clap::Error) -> Option<String> {
    let kinds = [
        ContextKind::SuggestedArg,
        ContextKind::SuggestedValue,
        ContextKind::SuggestedSubcommand,
    ];
    let near = kinds.into_iter().find_map(|kind| match error.get(kind)? {
        ContextValue::String(word) => Some(vec![word.clone()]),
        ContextValue::Strings(words) => Some(words.clone()),
        _ => None,
    })?;
    let quoted: Vec<String> = near.iter().map(|word| format!("`{word}`")).collect();
    (!quoted.is_empty()).then(|| quoted.join(" or "))
}

/// Says why the command could not be carried out, on stderr.
pub fn tell(refusal: &Refusal) -> Exit {
    output::tell(&format!("tidemark: {refusal}\n"));
    Exit::Refused
}
