//! The subcommands: one line each.

use clap::Subcommand;

use crate::exit::{Exit, Refusal};
use crate::files;

/// Makes the list of subcommands. Each names a module with `Arguments` (whose first line of
/// documentation is its help, and which says which [files](crate::files::Files) it names) and
/// `fn run(Arguments) -> Result<Exit, Refusal>`.
macro_rules! commands {
    ($($(#[$attribute:meta])* $name:ident = $module:ident;)*) => {
        /// The command that the command line asks for.
        #[derive(Debug, Subcommand)]
        pub enum Command {
            $($(#[$attribute])* #[allow(missing_docs)] $name(crate::$module::Arguments),)*
        }

        impl Command {
            /// Does it.
            pub fn run(self) -> Result<Exit, Refusal> {
                match self {
                    $(Command::$name(arguments) => {
                        files::check(&arguments)?;
                        crate::$module::run(arguments)
                    })*
                }
            }
        }
    };
}

commands! {
    Run = run;
    Ctl = ctl;
    Top = top;
    Record = record;
    Mark = mark;
    Curve = curve;
    Sweep = sweep;
    Wss = wss;
    Map = map;
    Report = report;
    Replay = replay;
    Compare = compare;
    Diff = diff;
    Systems = systems;
    Experiment = experiment;
    Info = info;
    Import = import;
    Export = export;
    Generate = generate;
    Volume = volume;
    Policies = policies;
    Doctor = doctor;
    Bench = bench;
    Kernel = kernel;
    Workload = workload;
    Completions = completions;
    Man = man;
    #[command(hide = true)]
    Keep = keep;
    #[command(hide = true)]
    Mount = mount;
}
