//! `tidemark man`: the manual pages, in the form `man -l -` reads.

use clap::{Args, CommandFactory};

use crate::exit::{Exit, Refusal, refuse};
use crate::files::Files;
use crate::output;

/// Prints a manual page
#[derive(Debug, Args)]
pub struct Arguments {
    /// The subcommand to describe; without one, the whole command
    command: Option<String>,
}

impl Files for Arguments {}

/// Prints the page.
pub fn run(arguments: Arguments) -> Result<Exit, Refusal> {
    let page = page(arguments.command.as_deref())?;
    output::print(&String::from_utf8_lossy(&page));
    Ok(Exit::Fine)
}

fn page(subcommand: Option<&str>) -> Result<Vec<u8>, Refusal> {
    let mut command = crate::Arguments::command();
    command.build();
    if let Some(name) = subcommand {
        let names: Vec<String> = command
            .get_subcommands()
            .map(|known| known.get_name().into())
            .collect();
        let Some(found) = command.find_subcommand(name) else {
            refuse!(
                "`man {name}`: no such subcommand; there are {}",
                names.join(", ")
            );
        };
        command = found.clone();
    }
    let mut text = Vec::new();
    clap_mangen::Man::new(command)
        .render(&mut text)
        .expect("memory takes every byte");
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_subcommand_has_a_page() {
        for command in crate::Arguments::command().get_subcommands() {
            let page = String::from_utf8(page(Some(command.get_name())).unwrap()).unwrap();
            assert!(page.contains(".SH OPTIONS"), "{page}");
        }
    }

    #[test]
    fn an_unknown_subcommand_is_refused_with_the_known_ones() {
        let refusal = page(Some("rum")).unwrap_err().to_string();
        assert!(
            refusal.starts_with("`man rum`: no such subcommand; there are run, "),
            "{refusal}"
        );
    }
}
