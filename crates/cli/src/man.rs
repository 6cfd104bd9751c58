//! `tidemark man`: the manual pages, in the form `man -l -` reads.

use std::path::PathBuf;

use clap::{Args, Command, CommandFactory};

use crate::exit::{Exit, Refusal, refuse};
use crate::files::{self, Files};
use crate::output;

/// The subcommand that a reader of the manual wants before the others.
const FIRST: &str = "doctor";

/// Prints a manual page, or writes all manual pages
#[derive(Debug, Args)]
pub struct Arguments {
    /// The subcommand to describe, as in `kernel run`; without one, the whole command
    command: Vec<String>,
    /// Write the pages of all commands into this folder, each under the name that `man` knows it by
    #[arg(long, value_name = "FOLDER", conflicts_with = "command")]
    all: Option<PathBuf>,
}

impl Files for Arguments {
    fn writes(&self) -> Vec<(&'static str, PathBuf)> {
        let Some(folder) = &self.all else {
            return vec![];
        };
        let pages = collect_pages().into_iter();
        pages
            .map(|(name, _)| ("--all", folder.join(name)))
            .collect()
    }
}

/// Prints the page, or writes all.
pub fn run(arguments: Arguments) -> Result<Exit, Refusal> {
    match arguments.all {
        None => output::print(&find_page(&arguments.command)?),
        Some(folder) => {
            for (name, page) in collect_pages() {
                files::write(&folder.join(name), page.as_bytes())?;
            }
        }
    }
    Ok(Exit::Fine)
}

/// The page of the subcommand that these words name.
fn find_page(words: &[String]) -> Result<String, Refusal> {
    let mut command = described();
    for (depth, word) in words.iter().enumerate() {
        let Some(found) = command.find_subcommand(word) else {
            let known = command.get_subcommands().filter(|one| !one.is_hide_set());
            let known: Vec<&str> = known.map(Command::get_name).collect();
            let asked = words[..=depth].join(" ");
            if known.is_empty() {
                refuse!(
                    "`man {asked}`: no such subcommand, and `{}` has none",
                    words[..depth].join(" ")
                );
            }
            refuse!(
                "`man {asked}`: no such subcommand; there are {}",
                known.join(", ")
            );
        };
        command = found.clone();
    }
    Ok(render(command))
}

/// The pages of all commands that are shown, each with the name of its file.
fn collect_pages() -> Vec<(String, String)> {
    let mut pages = vec![];
    let mut ahead = vec![described()];
    while let Some(command) = ahead.pop() {
        let shown = command.get_subcommands().filter(|one| !one.is_hide_set());
        ahead.extend(shown.cloned());
        let name = command.get_display_name().unwrap_or(command.get_name());
        pages.push((format!("{name}.1"), render(command)));
    }
    pages
}

/// The command as its pages describe it: complete, and with what is wanted first in front.
fn described() -> Command {
    let mut command = crate::Arguments::command()
        .disable_help_subcommand(true)
        .mut_subcommand(FIRST, |first| first.display_order(0))
        .after_help(
            "tidemark-doctor(1) is the page to begin with: `tidemark doctor` says what this \
             machine permits, what is missing, and the command that would give it.",
        );
    command.build();
    command
}

fn render(command: Command) -> String {
    let mut text = Vec::new();
    clap_mangen::Man::new(command)
        .source(concat!("tidemark ", env!("TIDEMARK_VERSION")))
        .manual("Tidemark")
        .render(&mut text)
        .expect("memory takes every byte");
    String::from_utf8(text).expect("pages are made of text")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(words: &str) -> Result<String, String> {
        let words: Vec<String> = words.split_ascii_whitespace().map(Into::into).collect();
        find_page(&words).map_err(|refusal| refusal.to_string())
    }

    #[test]
    fn every_subcommand_has_a_page() {
        for command in crate::Arguments::command().get_subcommands() {
            let page = page(command.get_name()).unwrap();
            assert!(page.contains(".SH OPTIONS"), "{page}");
        }
        assert!(page("kernel run").unwrap().contains("tidemark kernel run"));
    }

    #[test]
    fn all_pages_have_the_names_by_which_others_name_them() {
        let pages = collect_pages();
        let names: Vec<&str> = pages.iter().map(|(name, _)| name.as_str()).collect();
        assert!(names.contains(&"tidemark.1") && names.contains(&"tidemark-kernel-run.1"));
        assert!(!names.iter().any(|name| name.contains("keep")), "{names:?}");
        for (_, text) in &pages {
            let named = text.lines().filter_map(|line| line.strip_suffix("(1)"));
            for other in named.filter(|line| line.starts_with("tidemark")) {
                let file = format!("{}.1", other.replace('\\', ""));
                assert!(names.contains(&file.as_str()), "{file}");
            }
        }
    }

    #[test]
    fn the_page_of_doctor_comes_first() {
        let page = page("").unwrap();
        let listed = page.lines().find(|line| line.ends_with("(1)"));
        assert_eq!(listed.unwrap().replace('\\', ""), "tidemark-doctor(1)");
    }

    #[test]
    fn an_unknown_subcommand_is_refused_with_the_known_ones() {
        let refusal = page("rum").unwrap_err();
        assert!(
            refusal.starts_with("`man rum`: no such subcommand; there are run, "),
            "{refusal}"
        );
        assert_eq!(
            page("kernel rum").unwrap_err(),
            "`man kernel rum`: no such subcommand; there are run, image"
        );
        assert_eq!(
            page("doctor rum").unwrap_err(),
            "`man doctor rum`: no such subcommand, and `doctor` has none"
        );
    }
}
