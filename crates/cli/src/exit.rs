//! The end of the command: its exit status, and the line with the reason of a failure.

use std::process::ExitStatus;

use clap::Command;
use clap::error::{ContextKind, ContextValue};
use tidemark_lab::near::collect_near;
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

/// A refusal of a command line of `command` that can't be parsed.
pub fn refuse_usage(error: &clap::Error, command: &Command) -> Refusal {
    let text = error.render().to_string();
    // Clap's message is the first paragraph; hints and usage follow it.
    let paragraph = text.split("\n\n").next().unwrap_or_default();
    let message = paragraph.trim_start_matches("error: ").trim_end();
    let message = Refusal::new(message);
    let near = find_near(error, asked(command));
    Refusal::new(match near.is_empty() {
        false => format!("{message}; did you mean `{}`?", near.join("` or `")),
        true => format!("{message}; `--help` shows what there is"),
    })
}

/// The subcommand of `command` that the command line asks for, as far as there is one.
fn asked(mut command: &Command) -> &Command {
    for word in std::env::args().skip(1) {
        match command.find_subcommand(&word) {
            Some(found) => command = found,
            None => break,
        }
    }
    command
}

/// The words, options or subcommands of `command` that are near to one that is unknown.
fn find_near(error: &clap::Error, command: &Command) -> Vec<String> {
    let told = |kind| match error.get(kind) {
        Some(ContextValue::String(word)) => vec![word.clone()],
        Some(ContextValue::Strings(words)) => words.clone(),
        _ => vec![],
    };
    let unknown = |kind| told(kind).into_iter().next();
    let among = |word: &str, all: Vec<String>| -> Vec<String> {
        let near = collect_near(word, all.iter().map(String::as_str));
        near.into_iter().map(str::to_owned).collect()
    };
    if let Some(word) = unknown(ContextKind::InvalidSubcommand) {
        let all = command.get_subcommands().map(|it| it.get_name().to_owned());
        return among(&word, all.collect());
    }
    if let Some(word) = unknown(ContextKind::InvalidValue) {
        return among(&word, told(ContextKind::ValidValue));
    }
    let Some(word) = unknown(ContextKind::InvalidArg) else {
        return vec![];
    };
    let options = command.get_arguments().filter_map(|it| it.get_long());
    let options: Vec<String> = options.map(|option| format!("--{option}")).collect();
    // What is there is well known, and refused for another reason.
    match options.contains(&word) || !word.starts_with("--") {
        true => vec![],
        false => among(&word, options),
    }
}

/// Says why the command could not be carried out, on stderr.
pub fn tell(refusal: &Refusal) -> Exit {
    output::tell(&format!("tidemark: {refusal}\n"));
    Exit::Refused
}
