//! `tidemark completions`: what a shell needs to complete the command line.

use clap::builder::PossibleValuesParser;
use clap::{Args, Command, CommandFactory};
use clap_complete::Shell;
use tidemark_core::load;
use tidemark_core::policies;
use tidemark_lab::names::divisions;
use tidemark_lab::study::Named;
use tidemark_lab::systems;
use tidemark_lab::world::disk::presets::PRESETS;
use tidemark_supervisor::load_controls;

use crate::exit::{Exit, Refusal};
use crate::files::Files;
use crate::output;

/// Prints completions for a shell
#[derive(Debug, Args)]
pub struct Arguments {
    /// The shell
    shell: Shell,
}

impl Files for Arguments {}

/// Prints the completions.
pub fn run(arguments: Arguments) -> Result<Exit, Refusal> {
    let mut text = Vec::new();
    clap_complete::generate(arguments.shell, &mut completed(), "tidemark", &mut text);
    output::print(&String::from_utf8_lossy(&text));
    Ok(Exit::Fine)
}

/// A command, an argument of it, and the names that it takes.
type Known = (&'static str, &'static str, fn() -> Vec<&'static str>);

/// The kinds of values with known names: policies, systems, disks and others. All of these take
/// more than their names alone, like files, so that the command itself does not hold to them.
const NAMED: [Known; 20] = [
    ("run", "policy", live_policies),
    ("run", "load_control", load_controls::names),
    ("run", "division", divisions),
    ("bench", "policy", live_policies),
    ("bench", "division", divisions),
    ("compare", "policy", live_policies),
    ("compare", "load_control", load_controls::names),
    ("compare", "division", divisions),
    ("compare", "disk", measured_disks),
    ("curve", "policies", Named::all),
    ("policies", "name", policies),
    ("replay", "policy", policies),
    ("replay", "system", all_systems),
    ("replay", "load_control", loads),
    ("replay", "division", divisions),
    ("replay", "disk", disks),
    ("replay", "file_disk", disks),
    ("replay", "scheduler", schedulers),
    ("sweep", "policies", Named::all),
    ("systems", "name", systems),
];

/// The command as it is completed: without what is hidden, and with the names that are known.
fn completed() -> Command {
    let whole = crate::Arguments::command();
    let shown = whole.get_subcommands().filter(|one| !one.is_hide_set());
    let named = |command: &Command| {
        let own = NAMED
            .iter()
            .filter(|(name, ..)| *name == command.get_name());
        own.fold(command.clone(), |command, (_, argument, names)| {
            let names = PossibleValuesParser::new(names());
            command.mut_arg(argument, |argument| argument.value_parser(names))
        })
    };
    let shown: Vec<Command> = shown.map(named).collect();
    Command::new("tidemark")
        .version(env!("TIDEMARK_VERSION"))
        .subcommands(shown)
}

fn policies() -> Vec<&'static str> {
    let entries = policies::entries().iter();
    entries.map(|entry| entry.description.name).collect()
}

fn live_policies() -> Vec<&'static str> {
    let entries = policies::entries().iter();
    let live = entries.filter(|entry| entry.description.sees.is_shown_live());
    live.map(|entry| entry.description.name).collect()
}

fn systems() -> Vec<&'static str> {
    systems::entries()
        .iter()
        .map(|system| system.name)
        .collect()
}

fn all_systems() -> Vec<&'static str> {
    systems().into_iter().chain(["all"]).collect()
}

fn disks() -> Vec<&'static str> {
    PRESETS.iter().map(|preset| preset.name).collect()
}

fn measured_disks() -> Vec<&'static str> {
    disks().into_iter().chain(["measured"]).collect()
}

fn loads() -> Vec<&'static str> {
    let entries = load::registry::entries().iter();
    entries.map(|entry| entry.description.name).collect()
}

fn schedulers() -> Vec<&'static str> {
    vec!["round-robin", "fair"]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn script(shell: Shell) -> String {
        let mut text = Vec::new();
        clap_complete::generate(shell, &mut completed(), "tidemark", &mut text);
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn found_l_names_are_completed_and_hidden_commands_are_not() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let text = script(shell);
            for name in [
                "gnumach",
                "mach3",
                "clock-pro",
                "round-robin",
                "hdd",
                "wsclock",
            ] {
                assert!(text.contains(name), "{shell}: {name}");
            }
            // Words that descriptions of others have are no commands.
            for hidden in [
                "__keep",
                "__workload",
                "'keep:",
                "'workload:",
                "-a \"keep\"",
            ] {
                assert!(!text.contains(hidden), "{shell}: {hidden}");
            }
        }
        let names = |command: &Command| -> Vec<String> {
            let all = command.get_subcommands();
            all.map(|one| one.get_name().to_owned()).collect()
        };
        let shown = names(&completed());
        assert!(shown.iter().any(|name| name == "run"));
        assert!(
            !shown
                .iter()
                .any(|name| name == "keep" || name == "workload")
        );
        assert!(
            names(&crate::Arguments::command())
                .iter()
                .any(|name| name == "keep")
        );
    }

    #[test]
    fn what_is_named_is_an_argument_of_its_command() {
        for (command, argument, names) in NAMED {
            let whole = crate::Arguments::command();
            let found = whole.find_subcommand(command).unwrap();
            let mut arguments = found.get_arguments();
            assert!(
                arguments.any(|known| known.get_id() == argument),
                "{command} {argument}"
            );
            assert!(!names().is_empty());
        }
    }
}
