//! The settings of an engine, from the environment, and what is opened by them.

use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;

use tidemark_core::id::PAGE_BYTES;
use tidemark_core::seams::policy::{Description, Sees};
use tidemark_core::time::{STEP_TICK_NS, Time};
use tidemark_core::vm::Config;

use super::decisions::Decisions;
use super::line::Lent;
use super::mode::Mode;
use super::sampling::{Kept, Windows};
use super::telemetry::Telemetry;
use super::trouble::{Trouble, call, no_supervisor};
use crate::control::{self, Store};
use crate::glob::Glob;
use crate::hand::Hand;
use crate::machine::LiveMachine;
use crate::shared::Shared;
use crate::store::faults::FaultPlan;
use crate::store::{Means, SwapStore, file};
use crate::sys::thread::CpuFinder;
use crate::sys::uffd::{Faults, Features};

const DEFAULT_POLICY: &str = "2q-faults";
const DEFAULT_SWAP_BYTES: u64 = 4 << 30;

/// The settings from the environment. See [`control`] for the variables.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The supervisor's socket; `None`: this engine is alone.
    pub control: Option<PathBuf>,
    /// The budget of the whole run.
    pub memory_bytes: u64,
    /// The folder in which to make a swap file, without a supervisor.
    pub swap_path: PathBuf,
    /// Its size.
    pub swap_bytes: u64,
    /// The policy's name.
    pub policy: String,
    /// The way in which faults are served.
    pub mode: Mode,
    /// The store of pages that leave.
    pub store: Store,
    /// The pattern of the paths of mapped files that are managed, if any are.
    pub files: Option<Glob>,
    /// True if the user has given that pattern.
    pub is_file_named: bool,
    /// True if [copies of files](crate::mapped::Mapped::wants_copy) are managed, whatever their
    /// paths.
    pub are_copies_managed: bool,
    /// True if shared mappings of files that are written to are managed, too.
    pub are_files_written: bool,
    /// True if what is written to the swap file is not encrypted.
    pub is_swap_plain: bool,
    /// Faults to inject into the store.
    pub faults: FaultPlan,
    /// The file to which decisions are logged, without a supervisor.
    pub decisions: Option<PathBuf>,
    /// The file to which counters are written at the end.
    pub counters: Option<PathBuf>,
    /// The lengths of windows, if references are to be recorded.
    pub windows: Option<Windows>,
    /// True if faults are served in user mode alone, and system calls are held up for it.
    pub holds_calls: bool,
    /// True if locks are measured.
    pub measures_locks: bool,
    /// True if events are reported.
    pub is_verbose: bool,
    /// The program's short name.
    pub name: String,
    /// The finder of a thread's processor.
    pub cpu_finder: Option<CpuFinder>,
}

impl Setup {
    /// Reads the environment. `None` if it asks for nothing. Must run on a thread of the program.
    pub fn from_environment() -> Option<Result<Setup, Trouble>> {
        let control = std::env::var_os(control::CONTROL).map(PathBuf::from);
        let memory = text(control::MEMORY);
        (control.is_some() || memory.is_some()).then(|| Setup::read(control))
    }

    fn read(control: Option<PathBuf>) -> Result<Setup, Trouble> {
        let memory = number(control::MEMORY)?;
        let memory_bytes = match (memory, &control) {
            (Some(bytes), _) => bytes,
            // The grant will say.
            (None, Some(_)) => 0,
            (None, None) => {
                return Err(Trouble::BadSetting {
                    name: control::MEMORY,
                    value: None,
                });
            }
        };
        let policy = text(control::POLICY).unwrap_or_else(|| DEFAULT_POLICY.into());
        let found = find_policy(&policy).map(|description| description.sees);
        if !found.is_some_and(Sees::is_shown_live) {
            return Err(Trouble::BadSetting {
                name: control::POLICY,
                value: Some(policy),
            });
        }
        let mode = wanted_mode()?;
        let store = text(control::STORE).unwrap_or_else(|| Store::File.name().into());
        let store = Store::find(&store).ok_or(Trouble::BadSetting {
            name: control::STORE,
            value: Some(store),
        })?;
        let faults = text(control::FAULT).unwrap_or_default();
        let faults = FaultPlan::parse(&faults).map_err(|wrong| Trouble::BadSetting {
            name: control::FAULT,
            value: Some(wrong.into()),
        })?;
        let (files, is_file_named) = wanted_files()?;
        let windows = windows()?;
        let holds_calls = std::env::var_os(control::CALLS).is_some();
        let name = std::fs::read_to_string("/proc/self/comm").unwrap_or_default();
        Ok(Setup {
            control,
            memory_bytes,
            swap_path: std::env::var_os(control::SWAP_PATH)
                .unwrap_or_else(|| "/tmp".into())
                .into(),
            swap_bytes: number(control::SWAP_BYTES)?.unwrap_or(DEFAULT_SWAP_BYTES),
            policy,
            mode,
            store,
            files: files.filter(|_| mode.manages_files()),
            is_file_named,
            are_copies_managed: mode.manages_copies() && windows.is_none() && !holds_calls,
            are_files_written: std::env::var_os(control::FILES_WRITE).is_some(),
            is_swap_plain: std::env::var_os(control::PLAIN_SWAP).is_some(),
            faults,
            decisions: std::env::var_os(control::DECISIONS).map(PathBuf::from),
            counters: std::env::var_os(control::COUNTERS).map(absolute),
            windows,
            holds_calls,
            measures_locks: std::env::var_os(control::LOCKS).is_some(),
            is_verbose: std::env::var_os(control::VERBOSE).is_some(),
            name: name.trim_end().into(),
            cpu_finder: CpuFinder::new(),
        })
    }
}

impl Setup {
    /// The time of the first tick: at once, and in step when it is due.
    pub fn first_tick(&self) -> Time {
        Time(u64::from(self.mode.ends_work_at_each_fault()) * STEP_TICK_NS)
    }

    /// The features of userfaultfd that the mode takes.
    pub fn features(&self) -> Features {
        let features = Features::THREAD_ID.and(Features::CHANGES);
        let features = features.and(Features::FORKS);
        if self.mode.serves_on_program_threads() {
            features.and(Features::SIGBUS)
        } else {
            features
        }
    }

    /// The faults that are served.
    pub fn faults(&self) -> Faults {
        match self.holds_calls {
            true => Faults::UserMode,
            false => Faults::All,
        }
    }

    /// Begins to tell what this engine does, to the file that came as the last of a grant.
    pub fn begin_telemetry(&self, lent: &mut Lent) -> Result<Telemetry, Trouble> {
        let (file, control) = (lent.decisions.take(), lent.control.as_ref());
        Telemetry::begin(file, self.windows, control.map(AsFd::as_fd), &self.name)
    }

    /// The settings of the core, by the number of its frames, and of those it may use at first.
    pub fn config((frames_max, budget): (u32, u32), telemetry: &Telemetry) -> Config {
        let clustered = Config::clustered(frames_max, budget);
        Config {
            is_logging: telemetry.has_decisions(),
            // A page that is filled before it is touched would pass for one that was.
            zero_ahead_pages_max: clustered.zero_ahead_pages_max
                * u32::from(!telemetry.is_recording()),
            ..clustered
        }
    }

    /// Opens the machine, with a pool of `frames`.
    pub fn open_machine(&self, frames: u32, hand: &'static Hand) -> Result<LiveMachine, Trouble> {
        let machine = LiveMachine::serving(self.faults(), frames, self.features());
        let mut machine = machine.map_err(Trouble::Machine)?;
        machine.set_hand(hand);
        machine.keep_step_if(self.mode.ends_work_at_each_fault());
        machine.skip_sums_if(self.store.is_compressed());
        Ok(machine)
    }

    /// Opens the store, with `slots` on `swap`, of a process with `frames`.
    pub fn open_store(&self, swap: OwnedFd, slots: u32, frames: u32) -> Result<SwapStore, Trouble> {
        let mut store = SwapStore::new(swap, slots, self.means(), self.faults.clone());
        if self.store.is_compressed() {
            store = store.and_then(|store| store.compress(frames, self.store.has_file()));
        }
        if !self.is_swap_plain {
            store = store.and_then(SwapStore::encrypt);
        }
        store.map_err(call("starting the swap store"))
    }

    /// Asks the supervisor for what an engine needs, or makes all of it. `None`: leave the program
    /// alone.
    pub fn borrow(&self) -> Result<Option<Lent>, Trouble> {
        match &self.control {
            Some(socket) => Lent::ask(socket),
            None => self.lend_itself().map(Some),
        }
    }

    /// Makes what an engine without a supervisor needs.
    fn lend_itself(&self) -> Result<Lent, Trouble> {
        let frames = u32::try_from(self.memory_bytes / PAGE_BYTES).unwrap_or(u32::MAX);
        let slots = u32::try_from(self.swap_bytes / PAGE_BYTES).unwrap_or(u32::MAX);
        let swap = file::create(&self.swap_path, u64::from(slots) * PAGE_BYTES);
        let swap = swap.map_err(call("making a swap file"))?.fd;
        let shared = Shared::create(slots, u64::from(frames));
        let shared = Arc::new(shared.map_err(no_supervisor)?);
        let record = shared.claim().expect("the table is new");
        shared.process(record).set_budget(frames);
        let decisions = self.open_decisions()?;
        let (frames_max, budget) = (frames, frames);
        Ok(Lent {
            shared,
            record,
            frames_max,
            budget,
            swap,
            control: None,
            decisions,
            calls: None,
            is_near: false,
        })
    }

    /// Opens the file that decisions are logged to without a supervisor.
    pub fn open_decisions(&self) -> Result<Option<OwnedFd>, Trouble> {
        self.decisions.as_deref().map(Decisions::open).transpose()
    }

    /// The means of an engine in a forked child, for which the C library starts no threads.
    pub fn means_in_child(&self) -> Means {
        if self.mode.serves_on_program_threads() {
            Means::SharedAlone
        } else {
            Means::Alone
        }
    }

    /// The means by which the store carries pages.
    pub fn means(&self) -> Means {
        if self.mode.serves_on_program_threads() {
            Means::Shared
        } else {
            Means::Best
        }
    }
}

/// The policy called `name`, which may be in a file. Reads that here, on a thread of the program,
/// where a file can still be named.
fn find_policy(name: &str) -> Option<&'static Description> {
    if !tidemark_plugin::is_file(name) {
        return tidemark_plugin::find(name);
    }
    let path = std::env::var_os(control::POLICY_FILE).unwrap_or_else(|| name.into());
    let bytes = std::fs::read(path).ok()?;
    tidemark_plugin::keep(name, bytes).ok()
}

/// The mode. In step is a setting of its own, and not for program threads that serve.
fn wanted_mode() -> Result<Mode, Trouble> {
    let is_in_step = std::env::var_os(control::IN_STEP).is_some();
    match text(control::MODE).as_deref() {
        None | Some(control::MODE_THREAD) if is_in_step => Ok(Mode::InStep),
        None | Some(control::MODE_THREAD) => Ok(Mode::Thread),
        Some(control::MODE_IN_THREAD) if !is_in_step => Ok(Mode::InThread),
        Some(other) => Err(Trouble::BadSetting {
            name: control::MODE,
            value: Some(other.into()),
        }),
    }
}

/// The pattern of files to manage, and whether the user has given it.
fn wanted_files() -> Result<(Option<Glob>, bool), Trouble> {
    use std::os::unix::ffi::OsStrExt;
    let Some(pattern) = std::env::var_os(control::FILES) else {
        return Ok((None, false));
    };
    if pattern.is_empty() {
        return Ok((Glob::parse(b"*").ok(), false));
    }
    match Glob::parse(pattern.as_bytes()) {
        Ok(glob) => Ok((Some(glob), true)),
        Err(_) => Err(Trouble::BadSetting {
            name: control::FILES,
            value: Some(pattern.to_string_lossy().into()),
        }),
    }
}

fn windows() -> Result<Option<Windows>, Trouble> {
    let first = number(control::WINDOW)?.filter(|&window| window > 0);
    let most = number(control::WINDOW_MOST)?;
    let kept = match text(control::REGIONS) {
        Some(_) => Kept::Regions,
        None => Kept::Pages,
    };
    Ok(first.map(|first_ns| Windows {
        first_ns,
        most_ns: most.unwrap_or(first_ns),
        kept,
    }))
}

/// The path made absolute, as the engine may be in another folder.
fn absolute(path: std::ffi::OsString) -> PathBuf {
    std::path::absolute(&path).unwrap_or(path.into())
}

fn text(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

fn number(name: &'static str) -> Result<Option<u64>, Trouble> {
    let Some(value) = text(name) else {
        return Ok(None);
    };
    let parsed = value.parse().map_err(|_| Trouble::BadSetting {
        name,
        value: Some(value),
    })?;
    Ok(Some(parsed))
}
