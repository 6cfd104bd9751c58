//! The steps of a comparison that are commands of their own: recording, and live runs.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tidemark_core::id::PAGE_BYTES;
use tidemark_hostbench::child;
use tidemark_lab::study::{Compression, Replay};
use tidemark_live::control::{self, Store};
use tidemark_live::sys::measure;
use tidemark_results::compare::Counts;
use tidemark_results::{Refusal, RunRecord, refuse, suspension};
use tidemark_supervisor::host;
use tidemark_supervisor::interrupt::Interrupt;
use tidemark_supervisor::loading::preload;
use tidemark_supervisor::management::{MEMORY_BYTES_MIN, STEP_POOL_BYTES};
use tidemark_supervisor::program::plain;

use crate::Order;

/// The longest time that one step may take.
const LIMIT: Duration = Duration::from_secs(4 * 3600);
/// The number of times the program is timed: at least, at most, and until it has run for so long in
/// all. Kernels sample what a program does a hundred times a second or more.
const NATIVE_RUNS_MIN: u64 = 3;
const NATIVE_RUNS_MAX: u64 = 50;
const NATIVE_NS_MIN: u64 = 200_000_000;
/// The setting that the C library gets on the processor in step: nothing that Valgrind does not
/// have, so that the same variants of its functions run in both.
const TUNABLES: &str = "GLIBC_TUNABLES=glibc.cpu.hwcaps=-AVX512F,-AVX512VL,-AVX512BW,-AVX512CD,\
    -AVX512DQ,-ERMS,-FSRM";
/// The options common to live runs in step.
const IN_STEP: [&str; 3] = ["--in-step", "--malloc", "pool"];
/// The number of pages of programs that compress to one, where nothing tells.
const RATIO_USUAL: f64 = 3.0;
/// Memory in which a program's layout is learned: more than is used of it costs nothing.
const AMPLE_BYTES: u64 = 1 << 30;
/// Hash tables of Python and Perl then have the same order in both, and Python's memory is the
/// allocator's.
const INTERPRETERS: [&str; 4] = [
    "PYTHONHASHSEED=0",
    "PYTHONMALLOC=malloc",
    "PERL_HASH_SEED=0",
    "PERL_PERTURB_KEYS=0",
];

/// A place to work, and the commands.
pub struct Steps<'a> {
    order: &'a Order<'a>,
    say: fn(&str),
    tidemark: PathBuf,
    folder: PathBuf,
    interrupt: Interrupt,
}

impl<'a> Steps<'a> {
    /// Makes a folder for what the steps leave, which goes with this value.
    pub fn new(order: &'a Order<'a>, say: fn(&str)) -> Result<Steps<'a>, Refusal> {
        let name = format!("tidemark-compare-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        if let Err(error) = std::fs::create_dir(&folder) {
            refuse!("`{}`: {}", folder.display(), plain(&error));
        }
        let Ok(tidemark) = std::env::current_exe() else {
            refuse!("this command's own file can't be found; call it by its path");
        };
        if order.is_in_step {
            // Recording and runs then have the same ones.
            if let Err(told) = host::keep_addresses() {
                say(&told);
            }
        }
        Ok(Steps {
            order,
            say,
            tidemark,
            folder,
            interrupt: Interrupt::catch()?,
        })
    }

    /// Says on stderr what is being done.
    pub fn say(&self, what: &str) {
        (self.say)(what);
    }

    /// Records the program, unless there is a trace of it.
    pub fn record(&self) -> Result<PathBuf, Refusal> {
        let order = self.order;
        let trace = match &order.trace {
            Some(path) if path.exists() => return Ok(path.clone()),
            Some(path) => path.clone(),
            None => self.folder.join("trace.tide"),
        };
        let layout = order.is_in_step.then(|| self.learn_layout()).transpose()?;
        self.say("recording");
        let mut command = self.begin();
        if let Some(layout) = layout {
            command.push(set(control::LAYOUT, layout.as_os_str()));
            let shim = host::find_shim()?;
            let libraries = preload(host::find_pool(&shim)?, Some(shim.into()));
            command.push(set("LD_PRELOAD", &libraries));
            let bytes = STEP_POOL_BYTES.to_string();
            command.push(set(control::POOL, OsStr::new(&bytes)));
            // Without a supervisor no engine starts, but the environment is as live.
            command.push(set(control::IN_STEP, OsStr::new("1")));
        }
        command.push(self.tidemark.clone().into());
        // It is timed as all runs are: see `time_native`.
        command.extend(["record", "--time=never", "-o"].map(OsString::from));
        command.push(trace.clone().into());
        if order.is_exact || order.is_in_step {
            command.push("--exact".into());
        }
        self.run(command, "recording")?;
        Ok(trace)
    }

    /// Runs the program live in ample memory, in step, for where its libraries lie. Answers the
    /// file that says so.
    fn learn_layout(&self) -> Result<PathBuf, Refusal> {
        self.say("learning its layout");
        let layout = self.folder.join("layout");
        let mut command = self.begin();
        command.push(set(control::LAYOUT_WANTED, layout.as_os_str()));
        self.push_run(&mut command, AMPLE_BYTES);
        command.extend(IN_STEP.map(OsString::from));
        self.run(command, "learning its layout")?;
        Ok(layout)
    }

    /// The time that the program runs in user mode natively, in nanoseconds: the mean of a few
    /// runs, or of enough that samples mean something. `None` if they don't even then.
    pub fn time_native(&self) -> Result<Option<u64>, Refusal> {
        self.say("timing");
        let before = measure::children_ns();
        for runs in 1..=NATIVE_RUNS_MAX {
            self.run(self.begin(), "natively")?;
            let (user, all) = measure::children_ns();
            let (user_ns, all_ns) = (user - before.0, all - before.1);
            if runs >= NATIVE_RUNS_MIN && all_ns >= NATIVE_NS_MIN {
                return Ok((user_ns >= all_ns / 16).then_some(user_ns / runs));
            }
        }
        Ok(None)
    }

    /// Runs the program live in half of what it uses, for the sizes to which its pages compress.
    pub fn sample_sizes(&self, read: &Replay) -> Result<Compression, Refusal> {
        self.say("learning how well its pages compress");
        let half = read.footprint_pages(1) * read.page_bytes() / 2;
        let statistics = self.folder.join("sizes.json");
        let mut command = self.begin();
        self.push_run(&mut command, half.max(MEMORY_BYTES_MIN));
        command.extend(["--store", Store::CompressedAndFile.name()].map(OsString::from));
        command.extend(["--stats".into(), statistics.clone().into()]);
        self.run(command, "for the sizes of its pages")?;
        let sampled = Compression::of_run("as sampled".into(), &read_record(&statistics)?);
        // Where nothing has left, nothing will be compressed that matters.
        Ok(sampled.unwrap_or_else(|| Compression::of_ratio(RATIO_USUAL)))
    }

    /// Runs the program live.
    pub fn run_live(&self, policy: &str, memory_bytes: u64, number: u32) -> Result<Lived, Refusal> {
        let memory = tidemark_results::text::bytes(memory_bytes);
        let which = match self.order.runs {
            1 => String::new(),
            runs => format!(", {number} of {runs}"),
        };
        self.say(&format!("running, {policy} in {memory}{which}"));
        let (statistics, log) = (self.folder.join("run.json"), self.folder.join("log"));
        let mut command = self.begin();
        self.push_run(&mut command, memory_bytes);
        let store = self.order.store.name();
        command.extend(["--store", store].map(OsString::from));
        command.extend(["--policy", policy].map(OsString::from));
        command.extend(["--stats".into(), statistics.clone().into()]);
        if self.order.is_in_step {
            command.extend(IN_STEP.map(OsString::from));
            command.extend(["--log-decisions".into(), log.clone().into()]);
        }
        self.run(command, "live")?;
        let record = read_record(&statistics)?;
        let passed = record.total.file_mappings_passed;
        if self.order.files.is_some() && passed > 0 {
            self.say(&format!(
                "{passed} mappings of files were left to the kernel, live alone: decisions will \
                 differ if a pattern names them; `tidemark run --files` tells why"
            ));
        }
        Ok(Lived {
            counts: counts_of(&record),
            log: self.order.is_in_step.then(|| read(&log)).transpose()?,
            turns: turns_of(&record),
        })
    }

    /// The beginning of each command: with the environment of the program.
    fn begin(&self) -> Vec<OsString> {
        let mut command: Vec<OsString> = vec!["env".into()];
        if self.order.is_in_step {
            command.push(TUNABLES.into());
            // The shell that starts Valgrind sets it to what it is.
            if let Ok(folder) = std::env::current_dir() {
                command.push(set("PWD", folder.as_os_str()));
            }
            command.extend(INTERPRETERS.map(OsString::from));
        }
        command
    }

    /// Adds `tidemark run` and what all live runs have in common.
    fn push_run(&self, command: &mut Vec<OsString>, memory_bytes: u64) {
        command.extend([self.tidemark.clone().into(), "run".into()]);
        // In bytes: a number alone would be that of pages.
        command.extend(["--memory".into(), memory_bytes.to_string().into()]);
        let order = self.order;
        let divider = order.divider;
        command.extend(["--division", divider.rule.name()].map(OsString::from));
        let least = (divider.frames_min * PAGE_BYTES).to_string();
        command.extend(["--per-task-min", &least].map(OsString::from));
        if let Some(name) = &order.load_control {
            command.extend(["--load-control", name].map(OsString::from));
        }
        if let Some(files) = &order.files {
            command.extend(["--files".into(), files.pattern.clone()]);
        }
        if let Some(path) = &order.swap {
            command.extend(["--swap".into(), path.into()]);
        }
        if let Some(bytes) = order.swap_size_bytes {
            command.extend(["--swap-size", &bytes.to_string()].map(OsString::from));
        }
    }

    /// Runs a command with the program behind it.
    fn run(&self, mut command: Vec<OsString>, what: &str) -> Result<(), Refusal> {
        command.push("--".into());
        let program = self.order.command();
        let name = program.first().map(|name| name.to_string_lossy());
        let name = name.unwrap_or_default().into_owned();
        command.extend(program);
        match child::run(&command, LIMIT, self.interrupt.flag()) {
            Ok(_) => Ok(()),
            Err(reason) => refuse!("`{name}` ({what}): {reason}"),
        }
    }
}

/// The outcome of a live run.
pub struct Lived {
    pub counts: Counts,
    /// The log of its decisions, in step.
    pub log: Option<String>,
    /// The decisions of load control, a line each: see [`suspension::decisions`].
    pub turns: Option<String>,
}

impl Drop for Steps<'_> {
    fn drop(&mut self) {
        // What can't be removed is left to the sweep of temporary files.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn set(name: &str, value: &OsStr) -> OsString {
    let mut word = OsString::from(name);
    word.push("=");
    word.push(value);
    word
}

fn read(path: &Path) -> Result<String, Refusal> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(text),
        Err(error) => refuse!("`{}`: {}", path.display(), plain(&error)),
    }
}

fn read_record(path: &Path) -> Result<RunRecord, Refusal> {
    match serde_json::from_str(&read(path)?) {
        Ok(record) => Ok(record),
        Err(error) => refuse!("`{}`: {error}", path.display()),
    }
}

/// The decisions of load control, each task by its number among all, in the order in which they
/// came. `None` if not all are known.
fn turns_of(record: &RunRecord) -> Option<String> {
    let pids = record
        .processes
        .iter()
        .map(|process| u64::from(process.pid));
    let pids: BTreeSet<u64> = pids.collect();
    let number = |pid: u64| pids.range(..pid).count() as u64;
    let is_known = record.others.processes == 0;
    is_known.then(|| suspension::decisions(&record.suspensions, number))
}

fn counts_of(record: &RunRecord) -> Counts {
    let page_bytes = tidemark_core::id::PAGE_BYTES;
    // Several processes need not have been at their peaks at the same time.
    let peaks = record
        .processes
        .iter()
        .map(|process| process.statistics.frames_peak);
    let peak = peaks.sum::<u64>().min(record.memory_bytes / page_bytes);
    Counts::of_live(&record.total, peak, page_bytes)
}
