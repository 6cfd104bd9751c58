//! `tidemark kernel`: the core on bare metal, under an emulator.
//!
//! [`tidemark_emulator`] makes volumes of programs and files, starts the emulator, shows the
//! kernel's console and waits for its end.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use serde_json::Value;
use tidemark_emulator::image::{self, OnVolume};
use tidemark_emulator::machine::{End, Machine, Outputs, Processor, find_kvm};
use tidemark_emulator::parameters::{Parameters, SHELL};
use tidemark_lab::names::{check_load, find_live_policy};
use tidemark_results::quantity;
use tidemark_results::{Ending, RunRecord, Statistics};
use tidemark_supervisor::folder::PrivateFolder;
use tidemark_supervisor::program::plain;

use crate::exit::{Exit, Refusal, refuse};
use crate::files::{self, Files};

/// Runs programs on Tidemark's own kernel, under an emulator, with real page tables
#[derive(Debug, Args)]
pub struct Arguments {
    #[command(subcommand)]
    action: Action,
}

/// The action to take.
#[derive(Debug, Subcommand)]
enum Action {
    /// Boots the kernel and runs a program or a script; needs `qemu-system-x86_64`
    ///
    /// The volume holds the kernel's own programs (sh, cat, ls, sheep, sort, matrix, forks, touch,
    /// upper, words, mix, calls, misbehave, hoard) and what `--with` and `--script` add; or it is
    /// IMAGE.
    #[command(after_help = "Exit status: 0, 1 if the program failed, 2 if it could not be run.")]
    Run(Box<Running>),
    /// Makes a volume with the kernel's programs and other files
    Image(Making),
}

/// The program to be run, and the settings.
#[derive(Debug, Args)]
struct Running {
    /// The memory of programs: `8M`, 64K to 512M
    #[arg(long, value_name = "SIZE", default_value = "8M")]
    memory: String,
    /// The replacement policy; `tidemark policies` lists them
    #[arg(long, value_name = "NAME", default_value = "clock")]
    policy: String,
    /// The load control; `tidemark replay --load-control` takes the same
    #[arg(long, value_name = "NAME", default_value = "none")]
    load_control: String,
    /// The seed of the policy's random numbers
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
    /// Speed up the memory's clock by this factor, so that policies and load controls that look
    /// once a second look often in a short run
    #[arg(long, value_name = "FACTOR", default_value_t = 1)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=1000))]
    pace: u64,
    /// The layout of memory: a page at a time, or in clusters with read-ahead
    #[arg(long, value_name = "LAYOUT", default_value = "clustered")]
    layout: Layout,
    /// Pause the program at each fault until the kernel is idle, and count time in faults: the same
    /// decisions as `tidemark replay --in-step`
    #[arg(long)]
    in_step: bool,
    /// Page only what programs map; their text, variables and stacks stay in memory
    #[arg(long)]
    pinned: bool,
    /// The size of the swap disk
    #[arg(long, value_name = "SIZE", default_value = "256M")]
    swap_size: String,
    /// Run the lines of this file: a program and its arguments each
    #[arg(long, value_name = "FILE", conflicts_with = "program")]
    script: Option<PathBuf>,
    /// Also put this file on the volume
    #[arg(long, value_name = "FILE", conflicts_with = "image")]
    with: Vec<PathBuf>,
    /// Write every decision of the core to this file, a line each
    #[arg(long, value_name = "FILE")]
    log_decisions: Option<PathBuf>,
    /// Write statistics to this file (JSON, as `tidemark run` does)
    #[arg(long, value_name = "FILE")]
    stats: Option<PathBuf>,
    /// Inject a fault at the Nth occasion: `flip:N` flips a bit of a page read from swap, `read:N`
    /// and `write:N` fail a request, `panic:N` and `overflow:N` (of its stack) fail the kernel
    #[arg(long, value_name = "WHAT:N")]
    inject: Option<String>,
    /// Keep in IMAGE what programs write to files; otherwise it is lost at the end
    #[arg(long, requires = "image")]
    write: bool,
    /// Use this machine's processor, by KVM: faster, but the clock differs from run to run
    #[arg(long)]
    kvm: bool,
    /// End the machine after this time
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    limit: u64,
    /// The volume, as `tidemark kernel image` makes it
    image: Option<PathBuf>,
    /// The program to run, and its arguments
    #[arg(last = true, value_name = "PROGRAM")]
    program: Vec<OsString>,
}

/// A volume to be made.
#[derive(Debug, Args)]
struct Making {
    /// The file for the volume
    #[arg(short, long, value_name = "IMAGE")]
    output: PathBuf,
    /// Files to put on it, beside the kernel's programs
    files: Vec<PathBuf>,
}

/// The layout of memory.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Layout {
    /// One page at a time, when it is needed
    Demand,
    /// In clusters, with read-ahead and frames kept free
    Clustered,
}

impl Files for Arguments {
    fn reads(&self) -> Vec<PathBuf> {
        match &self.action {
            Action::Image(making) => making.files.clone(),
            Action::Run(running) => {
                let named = running.script.iter().chain(&running.image);
                named.chain(&running.with).cloned().collect()
            }
        }
    }

    fn writes(&self) -> Vec<(&'static str, PathBuf)> {
        let (output, log, stats) = match &self.action {
            Action::Image(making) => (Some(&making.output), None, None),
            Action::Run(running) => (None, running.log_decisions.as_ref(), running.stats.as_ref()),
        };
        let named = [
            ("--output", output),
            ("--log-decisions", log),
            ("--stats", stats),
        ];
        let named = named.into_iter();
        named
            .filter_map(|(option, path)| Some((option, path?.clone())))
            .collect()
    }
}

/// Runs the kernel, or makes a volume for it.
pub fn run(arguments: Arguments) -> Result<Exit, Refusal> {
    match arguments.action {
        Action::Image(making) => {
            let mut volume = OnVolume::of_programs()?;
            making
                .files
                .iter()
                .try_for_each(|path| volume.add_file(path))?;
            files::write(&making.output, &volume.into_volume()?)?;
            Ok(Exit::Fine)
        }
        Action::Run(running) => run_kernel(&running),
    }
}

fn processor(running: &Running) -> Result<Processor, Refusal> {
    match running.kvm {
        true => find_kvm().map_err(|why| {
            Refusal::new(format!(
                "`--kvm`: {why}; without `--kvm` the processor is emulated"
            ))
        }),
        false => Ok(Processor::Emulated),
    }
}

fn run_kernel(running: &Running) -> Result<Exit, Refusal> {
    if tidemark_plugin::is_file(&running.policy) {
        refuse!(
            "`--policy {}`: the kernel runs no policies from files",
            running.policy
        );
    }
    find_live_policy(&running.policy)?;
    check_load("--load-control", &running.load_control)?;
    let memory_bytes = quantity::parse("--memory", &running.memory)?;
    let swap_bytes = quantity::parse("--swap-size", &running.swap_size)?;
    let words = words(running)?;
    let parameters = parameters(running, memory_bytes, &words).line();
    let parameters =
        parameters.map_err(|refusal| Refusal::new(format!("{refusal}; use `--script`")))?;
    let folder = PrivateFolder::new()?;
    let image = match &running.image {
        Some(path) => {
            look_at(path)?;
            path.clone()
        }
        None => folder.put("volume", &files_of(running)?.into_volume()?)?,
    };
    let machine = Machine {
        memory_bytes,
        image,
        is_image_kept: running.write,
        swap: folder.put_blank("swap", swap_bytes.next_multiple_of(4096))?,
        parameters,
        limit_s: running.limit,
        processor: processor(running)?,
    };
    let outputs = Outputs {
        decisions: folder.put("decisions", b"")?,
        statistics: folder.put("statistics", b"")?,
    };
    let end = machine.run(&outputs)?;
    if let Some(path) = &running.log_decisions {
        files::write(path, &read(&outputs.decisions)?)?;
    }
    if let Some(path) = &running.stats {
        let Some((total, machine)) = counts(&read(&outputs.statistics)?) else {
            refuse!("`--stats`: the kernel ended before it had counted");
        };
        let record = record(running, &words, end, total, (memory_bytes, swap_bytes));
        let mut record = serde_json::to_value(&record).expect("a record is plain");
        record["machine"] = machine;
        files::write(path, format!("{record:#}\n").as_bytes())?;
    }
    match end {
        End::Success => Ok(Exit::Fine),
        End::Failure => Ok(Exit::Found),
    }
}

/// The kernel's counts: those of every run, and those of its machine.
fn counts(report: &[u8]) -> Option<(Statistics, Value)> {
    let mut report: Value = serde_json::from_slice(report).ok()?;
    let machine = report["machine"].take();
    Some((serde_json::from_value(report).ok()?, machine))
}

/// The first program and its arguments.
fn words(running: &Running) -> Result<Vec<String>, Refusal> {
    let words: Vec<String> = match (&running.script, &running.program[..]) {
        (Some(_), _) => SHELL.map(String::from).to_vec(),
        (None, []) => refuse!("nothing to run; name a program behind `--`, or `--script FILE`"),
        (None, program) => {
            let words = program
                .iter()
                .map(|word| word.to_string_lossy().into_owned());
            words.collect()
        }
    };
    Ok(words)
}

/// The files of the volume: the kernel's programs, the script, and those named by `--with`.
fn files_of(running: &Running) -> Result<OnVolume, Refusal> {
    let mut on_volume = OnVolume::of_programs()?;
    if let Some(path) = &running.script {
        on_volume.add(SHELL[1], image::read(path)?)?;
    }
    let mut named = running.with.iter();
    named.try_for_each(|path| on_volume.add_file(path))?;
    Ok(on_volume)
}

/// The kernel's command line.
fn parameters(running: &Running, memory_bytes: u64, words: &[String]) -> Parameters {
    Parameters {
        memory_bytes,
        layout: match running.layout {
            Layout::Demand => "demand",
            Layout::Clustered => "clustered",
        },
        policy: running.policy.clone(),
        load_control: running.load_control.clone(),
        seed: running.seed,
        pace: running.pace,
        is_in_step: running.in_step,
        is_pinned: running.pinned,
        is_logging: running.log_decisions.is_some(),
        inject: running.inject.clone(),
        words: words.to_vec(),
    }
}

fn record(
    running: &Running,
    words: &[String],
    end: End,
    total: Statistics,
    (memory_bytes, swap_bytes): (u64, u64),
) -> RunRecord {
    let status = match end {
        End::Success => 0,
        End::Failure => 1,
    };
    RunRecord {
        policy: running.policy.clone(),
        mode: "kernel".into(),
        memory_bytes,
        swap_bytes,
        ..RunRecord::of(words.to_vec(), Ending::Status(status), total)
    }
}

/// Refuses an image that can't be read.
fn look_at(path: &std::path::Path) -> Result<(), Refusal> {
    let opened = std::fs::File::open(path).and_then(|file| file.metadata());
    match opened {
        Ok(found) if found.is_file() => Ok(()),
        Ok(_) => refuse!("`{}`: is no file; name an image", path.display()),
        Err(error) => refuse!("`{}`: {}", path.display(), plain(&error)),
    }
}

fn read(path: &std::path::Path) -> Result<Vec<u8>, Refusal> {
    match std::fs::read(path) {
        Ok(bytes) => Ok(bytes),
        Err(error) => refuse!("`{}`: {}", path.display(), plain(&error)),
    }
}
