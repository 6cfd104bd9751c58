//! The end of the command: its exit status, and the one line that says why it could not be done.

use std::fmt;

use signal_hook::low_level::{emulate_default_handler, raise};

use crate::output;

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

/// The reason why a command could not be carried out: what, which value, what to do about it. One
/// line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal(String);

/// Refuses with a formatted line.
macro_rules! refuse {
    ($($argument:tt)*) => { return Err($crate::exit::Refusal::new(format!($($argument)*))) };
}
pub(crate) use refuse;

impl Exit {
    /// Ends this process.
    pub fn leave(self) -> ! {
        match self {
            Exit::Fine => std::process::exit(0),
            Exit::Found => std::process::exit(1),
            Exit::Refused => std::process::exit(2),
            Exit::Status(status) => std::process::exit(status),
            Exit::Signal(signal) => leave_by_signal(signal),
        }
    }
}

impl Refusal {
    /// A refusal that says `line`.
    pub fn new(line: impl Into<String>) -> Refusal {
        Refusal(
            line.into()
                .lines()
                .map(str::trim)
                .collect::<Vec<_>>()
                .join(" "),
        )
    }

    /// A refusal of a command line that can't be parsed.
    pub fn from_usage(error: &clap::Error) -> Refusal {
        let text = error.render().to_string();
        // Clap's message is the first paragraph; hints and usage follow it.
        let paragraph = text.split("\n\n").next().unwrap_or_default();
        let message = paragraph.trim_start_matches("error: ").trim_end();
        let message = Refusal::new(message).0;
        Refusal(format!("{message}; `--help` shows what there is"))
    }

    /// Says the line on stderr.
    pub fn tell(&self) -> Exit {
        output::tell(&format!("tidemark: {self}\n"));
        Exit::Refused
    }
}

/// The line that a library says.
impl From<String> for Refusal {
    fn from(line: String) -> Refusal {
        Refusal::new(line)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// Dies of `signal`, so that whoever waits for this process sees what became of the program.
fn leave_by_signal(signal: i32) -> ! {
    // The program has left its own core file; one of the supervisor would replace it.
    let none = rustix::process::Rlimit {
        current: Some(0),
        maximum: Some(0),
    };
    let _ = rustix::process::setrlimit(rustix::process::Resource::Core, none);
    let _ = emulate_default_handler(signal);
    // Real-time signals and a few rare ones are not in the table of defaults.
    let _ = raise(signal);
    // Only a signal without a deadly default gets here. Shells know its number by this status.
    std::process::exit(128 + signal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_one_line() {
        assert_eq!(
            Refusal::new("first\n  second\n").to_string(),
            "first second"
        );
    }
}
