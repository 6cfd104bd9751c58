//! `tidemark bench`: measures workloads beside the kernel's own swap.
//!
//! [`tidemark_hostbench`] measures, and makes tables of the results. A [`suite`] runs many
//! benchmarks and checks claims about them, or programs in shares of their own memory.

mod page_in;
mod subject;
mod suite;
mod thrash;
mod unfit;

use std::path::{Path, PathBuf};
use std::time::Duration;

use tidemark_hostbench::contender::{Contender, Own, Rival};
use tidemark_hostbench::plan::{Plan, ROUNDS_DEFAULT, ReadAhead};
use tidemark_hostbench::programs::file;
use tidemark_hostbench::record::BenchRecord;
use tidemark_hostbench::suite::Options;
use tidemark_hostbench::workload::Workload;
use tidemark_hostbench::workload::array::Contents;
use tidemark_hostbench::{measure, table};
use tidemark_lab::names::{find_division, find_live_policy};
use tidemark_results::quantity;
use tidemark_supervisor::interrupt::Interrupt;
use tidemark_supervisor::load_controls;

use crate::exit::{Exit, Refusal, refuse};
use crate::files::Files;
use crate::output;
use crate::output::say;

use self::subject::Subject;
use self::unfit::unfit;

/// Measures workloads in limited memory, against the kernel's own swap
///
/// Every contender runs the same program, in turn, several rounds; the table shows medians.
/// `kernel-swap` and `mmap` need root: they limit the program with a control group, and restore
/// every setting of the host that they change.
#[derive(Clone, Debug, clap::Args)]
#[command(
    after_help = "Exit status: 0 if every run under Tidemark ended, all contenders had the same \
    results and every claim of a suite holds, 1 if not, 2 if nothing could be measured."
)]
pub struct Arguments {
    /// The workload to run
    #[arg(required_unless_present = "suite")]
    workload: Option<Subject>,
    /// The memory all processes may use together: `256M`, `1G` [default of `thrash`: 128M, of
    /// `page-in`: half of the size]
    #[arg(long, value_name = "SIZE")]
    memory: Option<String>,
    /// The size of each process's array, or of the sort buffer; not for `compile` [default of
    /// `thrash`: 32M, of `page-in`: 64M]
    #[arg(long, value_name = "SIZE")]
    size: Option<String>,
    /// The number of processes that work at the same time
    #[arg(long, value_name = "N", default_value_t = 1)]
    procs: u32,
    /// The number of runs of each contender
    #[arg(long, value_name = "N")]
    rounds: Option<u32>,
    /// Passes over the array, or accesses as a multiple of its pages
    #[arg(long, value_name = "N")]
    laps: Option<u32>,
    /// The seed of random numbers
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// The contents of the arrays
    #[arg(long, value_name = "KIND", default_value = Contents::Random.name())]
    contents: Contents,
    /// The systems to measure against
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    against: Vec<Rival>,
    /// The policies, one contender each [default: that of `tidemark run`]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    policy: Vec<String>,
    /// For several processes: load controls, one contender each beside the default
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    load_control: Vec<String>,
    /// For several processes: divisions of memory, one contender each beside the default
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    division: Vec<String>,
    /// Also run Tidemark with --in-thread
    #[arg(long)]
    in_thread: bool,
    /// Measure only what `--against` names
    #[arg(
        long,
        requires = "against",
        conflicts_with_all = ["policy", "load_control", "division", "in_thread"]
    )]
    rivals_only: bool,
    /// The longest time of one run; a contender that takes longer is dropped
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    limit: u64,
    /// The folder for swap files and scratch files, on the disk to measure
    #[arg(long, value_name = "PATH", default_value = "/var/tmp")]
    folder: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// For `thrash`: the working sets of all tasks together, as multiples of the memory
    #[arg(long, value_name = "TIMES", value_delimiter = ',')]
    loads: Vec<f64>,
    /// For `thrash`: draw the curve into this file, as PNG
    #[arg(long, value_name = "FILE")]
    png: Option<PathBuf>,
    /// Run the cases of FILE and check their claims, or run its programs
    #[arg(long, value_name = "FILE", conflicts_with_all = ["workload", "memory", "size"])]
    suite: Option<PathBuf>,
    /// For a suite: run only entries with TEXT in their names; several, with commas between
    #[arg(long, value_name = "TEXT", requires = "suite", value_delimiter = ',')]
    only: Vec<String>,
    /// For programs: the memory, in percent of what each takes by itself
    #[arg(long, value_name = "PERCENT", value_delimiter = ',')]
    shares: Vec<u32>,
    /// For programs: the systems that run them: `native`, `tidemark`, `tidemark:OPTIONS`,
    /// `tidemark@COMMAND:OPTIONS`, `kernel-swap`, `kernel-swap:PAGE-CLUSTER`, `zswap`, `zram`
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    contenders: Vec<String>,
    /// For programs: an option for every `tidemark run`
    #[arg(long = "run-option", value_name = "OPTION", allow_hyphen_values = true)]
    run_options: Vec<String>,
    /// For programs: do not empty the page cache before each run
    #[arg(long)]
    warm: bool,
    /// Write the record of a suite into the folder PATH
    #[arg(long, value_name = "PATH")]
    record: Option<PathBuf>,
}

impl Files for Arguments {
    fn reads(&self) -> Vec<PathBuf> {
        self.suite.iter().cloned().collect()
    }

    fn writes(&self) -> Vec<(&'static str, PathBuf)> {
        let png = self.png.iter();
        png.map(|path| ("--png", path.clone())).collect()
    }
}

/// Measures and prints.
pub fn run(arguments: Arguments) -> Result<Exit, Refusal> {
    refuse_options_of_others(&arguments)?;
    let folder = plain_folder(&arguments.folder)?;
    let interrupt = Interrupt::catch()?;
    let suite = match (&arguments.suite, arguments.workload) {
        (Some(path), _) => Some(path.clone()),
        (None, Some(Subject::Build)) => Some(subject::find_build()?),
        (None, _) => None,
    };
    if let Some(path) = suite {
        return run_suite(&arguments, &path, folder, &interrupt);
    }
    match arguments
        .workload
        .expect("required unless there is a suite")
    {
        Subject::Workload(workload) => run_one(&arguments, workload, folder, &interrupt),
        Subject::Thrash => thrash::run(&arguments, folder, &interrupt),
        Subject::PageIn => run_page_in(&arguments, folder, &interrupt),
        Subject::Build => unreachable!("it is a suite"),
    }
}

fn run_one(
    arguments: &Arguments,
    workload: Workload,
    folder: PathBuf,
    interrupt: &Interrupt,
) -> Result<Exit, Refusal> {
    let plan = plan_of(arguments, workload, folder)?;
    plan.check().map_err(unfit)?;
    let record = measure(&plan, interrupt.flag())?;
    output::print(&if arguments.json {
        json(&record)
    } else {
        table::text(&record, output::terminal_width())
    });
    verdict(&record)
}

fn run_page_in(
    arguments: &Arguments,
    folder: PathBuf,
    interrupt: &Interrupt,
) -> Result<Exit, Refusal> {
    let asked = page_in::Asked {
        size: arguments.size.as_deref(),
        memory: arguments.memory.as_deref(),
        laps: arguments.laps,
        rounds: arguments.rounds,
        seed: arguments.seed,
        limit: arguments.limit,
        is_json: arguments.json,
        others: &[
            ("--procs", arguments.procs != 1),
            ("--contents", arguments.contents != Contents::default()),
            ("--against", !arguments.against.is_empty()),
            ("--policy", !arguments.policy.is_empty()),
            ("--load-control", !arguments.load_control.is_empty()),
            ("--division", !arguments.division.is_empty()),
            ("--in-thread", arguments.in_thread),
        ],
    };
    page_in::run(&asked, folder, interrupt)
}

fn run_suite(
    arguments: &Arguments,
    path: &Path,
    folder: PathBuf,
    interrupt: &Interrupt,
) -> Result<Exit, Refusal> {
    let options = Options {
        only: arguments.only.clone(),
        rounds: arguments.rounds,
        limit: Duration::from_secs(arguments.limit),
        folder,
    };
    let forms = suite::Forms {
        record: arguments.record.clone(),
        is_json: arguments.json,
    };
    let text = suite::read(path)?;
    if !file::is_one(&text) {
        refuse_options_of_programs(arguments, "this one has cases")?;
        return suite::run(path, &text, &options, &forms, interrupt);
    }
    let choice = file::Choice {
        shares: arguments.shares.clone(),
        contenders: arguments.contenders.clone(),
        run_options: arguments.run_options.clone(),
        is_warm: arguments.warm,
    };
    suite::run_programs(path, &text, (&options, &choice), &forms, interrupt)
}

/// Refuses options that the measurement does not have.
fn refuse_options_of_others(arguments: &Arguments) -> Result<(), Refusal> {
    let is_suite = arguments.suite.is_some() || arguments.workload == Some(Subject::Build);
    if !is_suite {
        refuse_options_of_programs(arguments, "there is none; name one with `--suite`")?;
        if arguments.record.is_some() {
            refuse!("`--record` is for a suite; there is none; name one with `--suite`");
        }
    }
    if arguments.workload == Some(Subject::Build) && arguments.memory.is_some() {
        refuse!(
            "`--memory` is not for `build`, whose memory is a share of what it takes: `--shares`"
        );
    }
    let is_thrash = arguments.workload == Some(Subject::Thrash);
    let given = [
        ("--loads", !arguments.loads.is_empty()),
        ("--png", arguments.png.is_some()),
    ];
    match given.iter().find(|(_, is_given)| *is_given && !is_thrash) {
        Some((name, _)) => refuse!("`{name}` is for `thrash` alone"),
        None => Ok(()),
    }
}

/// Refuses what only suites of programs have.
fn refuse_options_of_programs(arguments: &Arguments, why: &str) -> Result<(), Refusal> {
    let given = [
        ("--shares", !arguments.shares.is_empty()),
        ("--contenders", !arguments.contenders.is_empty()),
        ("--run-option", !arguments.run_options.is_empty()),
        ("--warm", arguments.warm),
    ];
    match given.iter().find(|(_, is_given)| *is_given) {
        Some((name, _)) => refuse!("`{name}` is for a suite of programs; {why}"),
        None => Ok(()),
    }
}

/// Tells whether all contenders read the same, and whether there were any.
fn verdict(record: &BenchRecord) -> Result<Exit, Refusal> {
    if record.contenders.is_empty() {
        refuse!("no contender came to an end");
    }
    if let Some((left, right)) = record.find_mismatch() {
        let (one, other) = (&left.name, &right.name);
        say!("tidemark bench: `{one}` and `{other}` read different contents");
        return Ok(Exit::Found);
    }
    let is_own = |name: &str| name.starts_with("tidemark");
    match record
        .left_out
        .iter()
        .any(|left_out| is_own(&left_out.name))
    {
        true => Ok(Exit::Found),
        false => Ok(Exit::Fine),
    }
}

fn plan_of(arguments: &Arguments, workload: Workload, folder: PathBuf) -> Result<Plan, Refusal> {
    let Some(memory) = arguments.memory.as_deref() else {
        refuse!("`{}` needs `--memory`: 256M, 1G", workload.name());
    };
    let size = match (&arguments.size, workload) {
        (Some(size), _) => quantity::parse("--size", size)?,
        (None, Workload::Compile) => 0,
        (None, _) => refuse!("`{}` needs `--size`", workload.name()),
    };
    Ok(Plan {
        workload,
        memory_bytes: quantity::parse("--memory", memory)?,
        size_bytes: size,
        procs: arguments.procs,
        laps: arguments.laps,
        seed: arguments.seed,
        contents: arguments.contents,
        rounds: arguments.rounds.unwrap_or(ROUNDS_DEFAULT),
        own: match arguments.rivals_only {
            true => Vec::new(),
            false => own_contenders(
                &arguments.policy,
                (&arguments.load_control, &arguments.division),
                arguments.in_thread,
            )?,
        },
        rivals: arguments.against.clone(),
        read_ahead: ReadAhead::Best,
        prepared: None,
        limit: Duration::from_secs(arguments.limit),
        folder,
    })
}

/// Our own contenders: each policy in thread mode, as usual and with each load control and each
/// division, and again in-thread if that is asked for.
fn own_contenders(
    policies: &[String],
    (load_controls, divisions): (&[String], &[String]),
    is_in_thread: bool,
) -> Result<Vec<Contender>, Refusal> {
    for policy in policies {
        find_live_policy(policy)
            .map_err(|refusal| Refusal::new(format!("`--policy`: {refusal}")))?;
    }
    for load_control in load_controls {
        load_controls::find(load_control)
            .map_err(|refusal| Refusal::new(format!("`--load-control`: {refusal}")))?;
    }
    for division in divisions {
        find_division(division)
            .map_err(|refusal| Refusal::new(format!("`--division`: {refusal}")))?;
    }
    let policies: Vec<Option<String>> = match policies {
        [] => vec![None],
        policies => policies.iter().cloned().map(Some).collect(),
    };
    let usual = Own::default();
    let controlled = load_controls.iter().map(|name| Own {
        load_control: Some(name.clone()),
        ..usual.clone()
    });
    let divided = divisions.iter().map(|name| Own {
        division: Some(name.clone()),
        ..usual.clone()
    });
    let in_thread = is_in_thread.then(|| Own {
        is_in_thread,
        ..usual.clone()
    });
    let mut ways = vec![usual.clone()];
    ways.extend(controlled.chain(divided).chain(in_thread));
    let contender = |way: Own| {
        let with = move |policy: &Option<String>| Own {
            policy: policy.clone(),
            ..way.clone()
        };
        policies.iter().map(with).map(Contender::Own)
    };
    Ok(ways.into_iter().flat_map(contender).collect())
}

fn plain_folder(folder: &Path) -> Result<PathBuf, Refusal> {
    match std::fs::canonicalize(folder) {
        Ok(folder) if folder.is_dir() => Ok(folder),
        Ok(_) => refuse!("`--folder {}`: not a folder", folder.display()),
        Err(error) => refuse!("`--folder {}`: {error}", folder.display()),
    }
}

fn json(record: &impl serde::Serialize) -> String {
    let text = serde_json::to_string_pretty(record).expect("a record always has a JSON form");
    format!("{text}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_policy_is_a_contender_in_every_mode() {
        let names = |policies: &[&str], is_in_thread| -> Vec<String> {
            let policies: Vec<String> = policies.iter().map(|&name| name.to_owned()).collect();
            own_contenders(&policies, (&[], &[]), is_in_thread)
                .expect("the policies exist")
                .iter()
                .map(Contender::name)
                .collect()
        };
        assert_eq!(names(&[], false), ["tidemark"]);
        assert_eq!(names(&[], true), ["tidemark", "tidemark-in-thread"]);
        assert_eq!(
            names(&["fifo", "clock"], false),
            ["tidemark:fifo", "tidemark:clock"]
        );
        let no_such = ["no-such".to_owned()];
        assert!(own_contenders(&no_such, (&[], &[]), false).is_err());
        assert!(own_contenders(&[], (&no_such, &[]), false).is_err());
        assert!(own_contenders(&[], (&[], &no_such), false).is_err());
        let (loads, divisions) = (["working-set".to_owned()], ["equal".to_owned()]);
        let contenders = own_contenders(&[], (&loads, &divisions), false).unwrap();
        let names: Vec<String> = contenders.iter().map(Contender::name).collect();
        assert_eq!(
            names,
            ["tidemark", "tidemark+working-set", "tidemark/equal"]
        );
        let last = contenders.last().unwrap();
        assert_eq!(last.run_options(), ["--division", "equal"]);
    }
}
