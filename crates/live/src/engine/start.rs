//! Starting: from the environment to an engine at work, and again in a forked child.

use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use tidemark_core::id::PAGE_BYTES;
use tidemark_core::policy::{Description, Sees};
use tidemark_core::time::{STEP_TICK_NS, Time};
use tidemark_core::vm::{Config, Vm};
use tidemark_tasks::TaskMemory;

use super::turn::Turns;
use super::{
    Adoption, Changes, Ending, Engine, Freeze, Gauges, Kept, Locks, Log, Mode, Outside, Place,
    Sampling, Traced, Waiting, Windows,
};
use crate::control::{self, GrantFiles, Hello, Store};
use crate::glob::Glob;
use crate::hand::Hand;
use crate::machine::LiveMachine;
use crate::mapped::Mapped;
use crate::park::HeldThreads;
use crate::parts::trouble::{Trouble, pid};
use crate::parts::units::now;
use crate::ranges::Ranges;
use crate::scanner::Scanner;
use crate::shared::{ProcessIndex, Shared};
use crate::slots::SharedSlots;
use crate::store::faults::FaultPlan;
use crate::store::{Means, SwapStore, file};
use crate::sys::lifeline::Lifeline;
use crate::sys::thread::{self, CpuFinder};
use crate::sys::uffd::{Features, Messages, Uffd};
use crate::sys::{Errno, files, program};

const DEFAULT_POLICY: &str = "tidemark";
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
    /// Faults to inject into the store.
    pub faults: FaultPlan,
    /// The file to which decisions are logged, without a supervisor.
    pub decisions: Option<PathBuf>,
    /// The file to which counters are written at the end.
    pub counters: Option<PathBuf>,
    /// The lengths of windows, if references are to be recorded.
    pub windows: Option<Windows>,
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
            faults,
            decisions: std::env::var_os(control::DECISIONS).map(PathBuf::from),
            counters: std::env::var_os(control::COUNTERS).map(absolute),
            windows: windows()?,
            measures_locks: std::env::var_os(control::LOCKS).is_some(),
            is_verbose: std::env::var_os(control::VERBOSE).is_some(),
            name: name.trim_end().into(),
            cpu_finder: CpuFinder::new(),
        })
    }
}

impl Setup {
    /// The time of the first tick: at once, and in step when it is due.
    fn first_tick(&self) -> Time {
        Time(u64::from(self.mode.ends_work_at_each_fault()) * STEP_TICK_NS)
    }

    fn features(&self) -> Features {
        let features = Features::THREAD_ID.and(Features::CHANGES);
        let features = features.and(Features::FORKS);
        if self.mode.serves_on_program_threads() {
            features.and(Features::SIGBUS)
        } else {
            features
        }
    }

    /// Takes the file that came as the last of a grant for what it is: where references go, or
    /// decisions.
    fn begin_log(&self, lent: &mut Lent) -> Result<(Option<Log>, Option<Sampling>), Trouble> {
        match (lent.decisions.take(), self.windows, &lent.control) {
            (Some(file), Some(windows), Some(control)) => {
                let sampling = Sampling::begin(file, control, windows, &self.name)?;
                Ok((None, Some(sampling)))
            }
            (file, _, _) => Ok((file.map(Log::new), None)),
        }
    }

    fn config(
        (frames_max, budget): (u32, u32),
        is_logging: bool,
        sampling: &Option<Sampling>,
    ) -> Config {
        let clustered = Config::clustered(frames_max, budget);
        Config {
            is_logging,
            // A page that is filled before it is touched would pass for one that was.
            zero_ahead_pages_max: clustered.zero_ahead_pages_max * u32::from(sampling.is_none()),
            ..clustered
        }
    }

    fn open_machine(&self, frames: u32, hand: &'static Hand) -> Result<LiveMachine, Trouble> {
        let machine = LiveMachine::with_features(frames, self.features());
        let mut machine = machine.map_err(Trouble::Machine)?;
        machine.set_hand(hand);
        machine.keep_step_if(self.mode.ends_work_at_each_fault());
        machine.skip_sums_if(self.store.is_compressed());
        Ok(machine)
    }

    fn open_store(&self, swap: OwnedFd, slots: u32, frames: u32) -> Result<SwapStore, Trouble> {
        let mut store = SwapStore::new(swap, slots, self.means(), self.faults.clone());
        if self.store.is_compressed() {
            store = store.and_then(|store| store.compress(frames, self.store.has_file()));
        }
        store.map_err(call("starting the swap store"))
    }

    /// The same in a forked child, for which the C library starts no threads.
    fn means_in_child(&self) -> Means {
        if self.mode.serves_on_program_threads() {
            Means::SharedAlone
        } else {
            Means::Alone
        }
    }

    pub(super) fn means(&self) -> Means {
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

/// The resources that an engine is given.
struct Lent {
    shared: Arc<Shared>,
    record: ProcessIndex,
    frames_max: u32,
    budget: u32,
    swap: OwnedFd,
    control: Option<OwnedFd>,
    decisions: Option<OwnedFd>,
}

impl Engine {
    /// Starts an engine on the calling thread, which has a file table of its own with nothing in
    /// it. `leader` is held by the process's first thread. `Ok(None)`: the supervisor wants this
    /// program left alone.
    pub fn start(
        setup: Setup,
        hand: &'static Hand,
        leader: &'static Lifeline,
    ) -> Result<Option<Engine>, Trouble> {
        let Some(mut lent) = Lent::get(&setup)? else {
            return Ok(None);
        };
        let (frames_max, budget) = (lent.frames_max, lent.budget.clamp(1, lent.frames_max));
        let machine = setup.open_machine(frames_max, hand)?;
        let record = Arc::new(AtomicU32::new(lent.record.0));
        let slots = SharedSlots::new(Arc::clone(&lent.shared), Arc::clone(&record))
            .note_released_if(setup.store.is_compressed());
        let (decisions, sampling) = setup.begin_log(&mut lent)?;
        let config = Setup::config((frames_max, budget), decisions.is_some(), &sampling);
        let policy = tidemark_plugin::build(&setup.policy, frames_max, budget, 1, &[]);
        let policy = policy.expect("the name was looked up when the environment was read");
        let mut vm = Vm::new(config, policy, Box::new(slots));
        let space = vm.create_space();
        let swap_file = lent.swap.as_raw_fd();
        lent.enter(&setup);
        let store = setup.open_store(lent.swap, lent.shared.swap_slots(), frames_max)?;
        let engine = Engine {
            vm,
            space,
            machine,
            store,
            scanner: Scanner::new().map_err(call("reading this process's mappings"))?,
            managed: Ranges::new(),
            wiped: Ranges::new(),
            mapped: Mapped::new(setup.files.clone(), setup.is_file_named),
            adoption: Adoption::new(),
            locks: Locks::default(),
            outside: Outside::new(),
            held_threads: HeldThreads::default(),
            waiting: Waiting::default(),
            changes: Changes::default(),
            messages: Messages::new(),
            freeze: Freeze::new().map_err(call("mapping the engine's memory"))?,
            place: Place::new(setup.cpu_finder, lent.shared.disk_processor()),
            ending: Ending::new(leader),
            traced: Traced::default(),
            before: super::publish::Before::default(),
            gauges: Gauges::new(),
            shared: lent.shared,
            record,
            control: lent.control,
            folder: None,
            doorbell: Engine::open_doorbell(&setup)?,
            decisions,
            sampling,
            own_thread: thread::current(),
            own_process: pid(),
            swap_file,
            has_store: true,
            now: now(),
            next_tick: setup.first_tick(),
            passed_ns: 0,
            turns: Turns::default(),
            task: TaskMemory::new(budget, 0, setup.store.is_compressed()),
            asking: Default::default(),
            map_drawn: 0,
            setup,
        };
        engine.report_if_verbose("is managed");
        Ok(Some(engine))
    }

    /// Ends the start. Has the supervisor keep the program's pages waited for, should this engine
    /// end before the program. From then on it ends a program whose engine has gone.
    pub fn share_memory(&self) {
        program::end_start(self.control.as_ref().map(AsFd::as_fd));
        if program::is_engine()
            && let Some(control) = &self.control
        {
            // Without it the program would be none the worse, but for that case.
            let _ = control::share_memory(control.as_fd(), self.machine.program().as_fd());
        }
    }

    /// Takes over what is present already, before the program goes on.
    pub fn take_first_look(&mut self) {
        self.now = now();
        if self.setup.mode.looks_for_memory() {
            self.scan();
        }
        self.measure_own();
        self.publish();
    }

    /// Opens in a forked child what its parent's engine had open, and introduces the child.
    pub(super) fn open_in_child(
        &mut self,
        record: ProcessIndex,
        parent_engine: u32,
        is_at_socket: bool,
    ) -> Result<(), Trouble> {
        let parent = self.own_process;
        self.own_thread = thread::current();
        self.own_process = pid();
        self.has_store = false;
        // The numbers of these files mean nothing in this process: they are not closed.
        std::mem::forget(self.control.take());
        // First of all: what its parent keeps for it would be in the way of whatever comes.
        let inherited = self.take_userfaultfd(record, parent_engine);
        // The supervisor answers while all else is done.
        let connection = self.greet_from_child(record, parent, is_at_socket)?;
        let mut is_open = self.open_memory_in_child(inherited);
        self.apply_held();
        // What is recorded goes to a log of the child's own, which comes with the answer.
        let is_recorded = self.sampling.is_some();
        if !is_recorded {
            is_open = is_open.and_then(|()| self.register_again());
        }
        // With the store, a child that gets nothing else can still have its pages back.
        let granted = match connection {
            Some(connection) => self.take_grant_in_child(connection),
            None => self.go_on_alone_in_child(record, (parent, parent_engine)),
        };
        if let Err(trouble) = &granted {
            is_open = Err(trouble.clone());
        }
        // A child that gets nothing else has its pages back by way of its parent.
        let swap = granted.or_else(|trouble| {
            let reopened = reopen_swap(parent, parent_engine, self.swap_file);
            reopened.map_err(|_| trouble)
        })?;
        self.swap_file = swap.as_raw_fd();
        self.store
            .reopen(swap, self.setup.means_in_child())
            .map_err(call("going on with the swap store"))?;
        self.has_store = true;
        self.reopen_files(parent_engine)?;
        is_open?;
        self.machine.close_again();
        if is_recorded {
            self.register_again()?;
        }
        self.shared
            .process(record)
            .start(pid(), parent, &self.setup.name, now().0);
        Ok(())
    }
}

impl Engine {
    /// Sends the folder of the supervisor's socket to a thread of the program.
    pub(super) fn lend_folder(&self, socket: RawFd) -> Result<(), Errno> {
        let opened = match &self.folder {
            Some(_) => None,
            None => {
                let control = self.setup.control.as_ref().ok_or(Errno::NOENT)?;
                Some(open_folder(control.parent().ok_or(Errno::NOENT)?)?)
            }
        };
        let folder = opened.as_ref().or(self.folder.as_ref());
        let folder = folder.ok_or(Errno::NOENT)?.as_fd();
        files::send_one(&files::copy_of_programs(socket)?, folder)
    }

    fn greet_from_child(
        &mut self,
        record: ProcessIndex,
        parent: u32,
        is_at_socket: bool,
    ) -> Result<Option<OwnedFd>, Trouble> {
        // The parent's descriptor means nothing here.
        std::mem::forget(self.folder.take());
        let Some(socket) = &self.setup.control else {
            return Ok(None);
        };
        let mut socket = socket.as_path();
        if is_at_socket {
            self.folder = open_folder(Path::new(".")).ok();
            socket = socket.file_name().map_or(socket, Path::new);
        }
        let hello = Hello {
            pid: pid(),
            parent,
            record: Some(record),
        };
        let greeted = greet(socket, hello).map_err(no_supervisor);
        greeted.map(Some)
    }

    /// Opens what has to do with the child's memory.
    fn open_memory_in_child(&mut self, inherited: Option<Uffd>) -> Result<(), Trouble> {
        let doorbell = Engine::open_doorbell(&self.setup)?;
        std::mem::forget(std::mem::replace(&mut self.doorbell, doorbell));
        self.machine
            .reopen(self.setup.features(), inherited)
            .map_err(Trouble::Machine)?;
        let is_in_step = self.setup.mode.ends_work_at_each_fault();
        self.machine.keep_step_if(is_in_step);
        self.scanner
            .reopen()
            .map_err(call("reading the child's mappings"))?;
        self.ending.reopen();
        Ok(())
    }

    /// Waits for the supervisor's answer. Answers the swap file. The connection stays open in any
    /// case: as long as it is, the child's record, with its share in the slots, is kept for it.
    fn take_grant_in_child(&mut self, connection: OwnedFd) -> Result<OwnedFd, Trouble> {
        let connection = self.control.insert(connection);
        let (_, files) = control::await_grant(connection.as_fd()).map_err(no_supervisor)?;
        let GrantFiles {
            shared,
            swap,
            decisions,
        } = files.ok_or_else(refused)?;
        drop(shared);
        let log = self.decisions.take();
        self.go_on_logging(decisions)?;
        std::mem::forget(log);
        Ok(swap)
    }

    /// Goes on without a supervisor. Answers the swap file.
    fn go_on_alone_in_child(
        &mut self,
        record: ProcessIndex,
        (parent, parent_engine): (u32, u32),
    ) -> Result<OwnedFd, Trouble> {
        let file = self.setup.decisions.as_deref().map(open_log).transpose()?;
        std::mem::forget(std::mem::replace(&mut self.decisions, file.map(Log::new)));
        self.shared.process(record).set_budget(self.task.budget());
        reopen_swap(parent, parent_engine, self.swap_file)
    }

    /// Goes on in a forked child with the file that came as the last of its grant.
    fn go_on_logging(&mut self, file: Option<OwnedFd>) -> Result<(), Trouble> {
        let control = self.control.as_ref().expect("the grant came by it");
        match (self.sampling.take(), file) {
            (Some(sampling), Some(file)) => {
                let name = &self.setup.name;
                self.sampling = Some(sampling.resume_in_child(file, control, name)?);
            }
            (Some(sampling), None) => sampling.abandon(),
            (None, file) => self.decisions = file.map(Log::new),
        }
        Ok(())
    }
}

impl Lent {
    /// Asks the supervisor, or makes everything here. `None`: leave the program alone.
    fn get(setup: &Setup) -> Result<Option<Lent>, Trouble> {
        let Some(socket) = &setup.control else {
            return Lent::make(setup).map(Some);
        };
        let hello = Hello {
            pid: pid(),
            parent: parent_pid(),
            record: None,
        };
        let connection = greet(socket, hello).map_err(no_supervisor)?;
        let granted = control::await_grant(connection.as_fd());
        let (grant, files) = granted.map_err(no_supervisor)?;
        let (Some(record), Some(files)) = (grant.record, files) else {
            return Ok(None);
        };
        let shared = Shared::open(files.shared).map_err(no_supervisor)?;
        Ok(Some(Lent {
            shared: Arc::new(shared),
            record,
            frames_max: grant.frames_max,
            budget: grant.frames_budget,
            swap: files.swap,
            control: Some(connection),
            decisions: files.decisions,
        }))
    }

    /// Says in the record who runs here.
    fn enter(&self, setup: &Setup) {
        let process = self.shared.process(self.record);
        process.start(pid(), parent_pid(), &setup.name, now().0);
        super::place::undo_inherited(&self.shared, pid(), parent_pid());
    }

    fn make(setup: &Setup) -> Result<Lent, Trouble> {
        let frames = u32::try_from(setup.memory_bytes / PAGE_BYTES).unwrap_or(u32::MAX);
        let slots = u32::try_from(setup.swap_bytes / PAGE_BYTES).unwrap_or(u32::MAX);
        let swap = file::create(&setup.swap_path, u64::from(slots) * PAGE_BYTES);
        let swap = swap.map_err(call("making a swap file"))?.fd;
        let shared = Shared::create(slots, u64::from(frames));
        let shared = Arc::new(shared.map_err(no_supervisor)?);
        let record = shared.claim().expect("the table is new");
        shared.process(record).set_budget(frames);
        let decisions = setup.decisions.as_deref().map(open_log).transpose()?;
        let (frames_max, budget) = (frames, frames);
        Ok(Lent {
            shared,
            record,
            frames_max,
            budget,
            swap,
            control: None,
            decisions,
        })
    }
}

/// Introduces the program, which has connected itself if its engine is a process of its own.
fn greet(socket: &Path, hello: Hello) -> std::io::Result<OwnedFd> {
    if !program::is_engine() {
        return control::greet(socket, hello);
    }
    let connection = program::take_connection()?;
    control::introduce(connection.as_fd(), hello)?;
    Ok(connection)
}

pub(super) fn no_supervisor(error: std::io::Error) -> Trouble {
    use std::io::ErrorKind as Kind;
    if error.kind() == Kind::OutOfMemory {
        let error = crate::sys::Errno::NOMEM;
        return call("mapping the memory of the run")(error);
    }
    if error.kind() == Kind::PermissionDenied {
        return Trouble::ForeignSupervisor;
    }
    Trouble::NoSupervisor {
        what: error.to_string(),
        is_gone: matches!(
            error.kind(),
            Kind::NotFound
                | Kind::ConnectionRefused
                | Kind::ConnectionReset
                | Kind::BrokenPipe
                | Kind::UnexpectedEof
        ),
    }
}

fn refused() -> Trouble {
    Trouble::NoSupervisor {
        what: "it refuses a child of a program that it manages".into(),
        is_gone: false,
    }
}

fn call(what: &'static str) -> impl Fn(crate::sys::Errno) -> Trouble {
    move |error| Trouble::Call { what, error }
}

fn open_log(path: &Path) -> Result<OwnedFd, Trouble> {
    use rustix::fs::{Mode, OFlags};
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::APPEND | OFlags::CLOEXEC;
    let mode = Mode::RUSR | Mode::WUSR;
    rustix::fs::open(path, flags, mode).map_err(call("opening the decision log"))
}

fn open_folder(path: &Path) -> Result<OwnedFd, Errno> {
    use rustix::fs::{Mode, OFlags};
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty())
}

/// Opens the parent's swap file, which has no name, by way of its engine's file table.
fn reopen_swap(parent: u32, engine: u32, number: i32) -> Result<OwnedFd, Trouble> {
    use rustix::fs::{Mode, OFlags};
    let path = match program::is_engine() {
        true => format!("/proc/{engine}/fd/{number}"),
        false => format!("/proc/{parent}/task/{engine}/fd/{number}"),
    };
    let base = OFlags::RDWR | OFlags::CLOEXEC;
    let direct = rustix::fs::open(path.as_str(), base | OFlags::DIRECT, Mode::empty());
    let file = match direct {
        Err(crate::sys::Errno::INVAL) => rustix::fs::open(path.as_str(), base, Mode::empty()),
        other => other,
    };
    file.map_err(call("opening the parent's swap file"))
}

pub(super) fn parent_pid() -> u32 {
    program::parent()
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

/// The same path from wherever the engine is.
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
