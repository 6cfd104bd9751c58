//! The preload library: starts Tidemark's engine inside a program that knows nothing of it.
//!
//! `LD_PRELOAD` loads it before the program's `main`; its constructor reads the environment (see
//! [`tidemark_live::control`]) and, if that asks for an engine, starts one. Without it the library
//! does nothing at all.
//!
//! - [`hooks`] sees what must be known at once, and falls through to the original; [`sites`] are
//!   where the C library calls the kernel by itself, [`growth`] is memory that comes in small
//!   steps, [`forks`] the ways to fork, [`ends`] those to leave one's memory, [`spaces`] those to
//!   enter namespaces, [`filters`] those that forbid calls.
//! - [`hooks::files`] reports mapped files that are managed.
//! - [`own`] keeps the program's hands off the engine's memory, [`locks`] follows what it locks,
//!   [`limits`] has the engine's addresses not count.
//! - [`environment`] makes the variables of a program in step the same as in its recording.
//! - [`lent`] makes calls copy that would lend memory to the kernel which may then move.
//! - [`spawns`] reports programs that the C library executes itself.
//! - [`way`] is how the children of a program with another root reach the supervisor.
//! - [`layout`] is about where the libraries of such a program lie.
//! - [`thread`] makes threads that the C library does not know.
//! - [`unfit`] finds programs that can't have an engine.
//! - [`heap`] is where everything in here allocates.
//!
//! # Rules
//! 1. A hook never allocates and never recurses. It keeps `errno`.
//! 2. No function of the C library is called that maps or allocates, but in the constructor.
//! 3. A panic ends the process with one line: a broken engine must not serve wrong pages.

mod awake;
mod ends;
mod environment;
mod filters;
mod forks;
mod growth;
mod heap;
mod hooks;
mod layout;
mod lent;
mod limits;
mod locks;
mod own;
mod processors;
mod sigbus;
mod sites;
mod spaces;
mod spawns;
mod thread;
mod unfit;
mod way;

use std::cell::UnsafeCell;
use std::ffi::c_long;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tidemark_live::engine::{Engine, Lock, Setup, Trouble, Woken, say, sleep};
use tidemark_live::hand::Hand;
use tidemark_live::machine::StartError;
use tidemark_live::meters;
use tidemark_live::requests::Requests;
use tidemark_live::stamp::{self, Stamp};
use tidemark_live::sys::lifeline::Lifeline;
use tidemark_live::sys::uffd::OpenError;
use tidemark_live::sys::{Errno, futex, memory, program, signal};

use crate::awake::finishes_soon;
use crate::thread::{Sharing, StackSlot};

/// The requests of program threads to the engine.
static REQUESTS: Requests = Requests::new();
/// The thread that may fault on the engine's behalf.
static HAND: Hand = Hand::started_by(start_hand);
/// Held by the process's first thread, until that ends.
static LEADER: Lifeline = Lifeline::new();
/// The stage of the engine: see the constants.
static STAGE: AtomicU32 = AtomicU32::new(STARTING);
/// The answer of the parent's engine to the request to freeze: the child's record plus one.
static CHILD: AtomicU64 = AtomicU64::new(0);
/// Held by the thread that uses the engine.
static LOCK: Lock = Lock::new();
/// True if faults are served by the threads that meet them.
static IS_IN_THREAD: AtomicBool = AtomicBool::new(false);
/// True if references are recorded.
static IS_RECORDED: AtomicBool = AtomicBool::new(false);
/// True if the engine logs events in a log that must be complete when the program leaves its
/// memory.
static IS_LOGGED: AtomicBool = AtomicBool::new(false);
/// In in-thread mode, the numbers of the engine's files: from the floor to just before this.
static FILES_END: AtomicI32 = AtomicI32::new(0);
static PLACE: Place = Place {
    setup: UnsafeCell::new(None),
    engine: UnsafeCell::new(MaybeUninit::uninit()),
    stack_slots: UnsafeCell::new(None),
};

const STARTING: u32 = 0;
const WORKING: u32 = 1;
const ABSENT: u32 = 2;
/// The age at which a process gets its helper, unless that is needed sooner: many execute
/// another program at once, or end.
const HAND_AFTER: Duration = Duration::from_millis(20);
/// The interval at which it is looked until then whether it does.
const LEAVING_NS: u64 = 500_000;
/// The time that the program waits for its engine to start.
const START_LIMIT: Duration = Duration::from_secs(30);

/// The resources handed to an engine's thread, and the place of the engine.
struct Place {
    setup: UnsafeCell<Option<Setup>>,
    engine: UnsafeCell<MaybeUninit<Engine>>,
    stack_slots: UnsafeCell<Option<StackSlots>>,
}

/// The places of the threads.
struct StackSlots {
    engine: StackSlot,
    hand: StackSlot,
}

// SAFETY: the constructor fills in `setup` and `stack_slots` before it starts the engine's thread;
// from then on that thread alone uses `setup` and `engine`. In a forked child there is no such
// thread until the one that forked has started a new one.
unsafe impl Sync for Place {}

/// By this the command knows a library of its own build.
#[unsafe(no_mangle)]
static TIDEMARK_STAMP: Stamp = stamp::STAMP;

#[used]
#[unsafe(link_section = ".init_array")]
static CONSTRUCTOR: extern "C" fn() = construct;

#[used]
#[unsafe(link_section = ".fini_array")]
static DESTRUCTOR: extern "C" fn() = destruct;

/// Runs before the program's own constructors and `main`.
extern "C" fn construct() {
    if !environment::is_in_step() {
        return begin();
    }
    // SAFETY: the program's own code has not begun, and no other code looks at variables.
    unsafe { environment::unfold() };
    let is_live = environment::is_live();
    let is_under_valgrind = environment::is_under_valgrind();
    let held = is_live.then(layout::Held::take).flatten();
    if held.is_some() {
        layout::learn_whether_wanted();
    }
    begin();
    if let Some(held) = held {
        held.release();
    }
    if is_under_valgrind && !is_live {
        thread::allocate_as_stack_slots_do();
    }
    // What only stands between a recording and its program, like Valgrind's launcher, keeps its
    // own.
    if is_under_valgrind || is_live {
        // SAFETY: an engine's threads look at no variables, either.
        unsafe { environment::fold() };
    }
}

/// Starts an engine, if the environment asks for one.
fn begin() {
    let unfit = || {
        if environment::is_in_step() {
            return None;
        }
        unfit::reason()
    };
    let setup = match Setup::from_environment() {
        None => return,
        Some(_) if let Some(reason) = unfit() => {
            let line = format!("tidemark: the program {reason}; it runs unmanaged\n");
            // SAFETY: writes a live string; there is no engine that could do that.
            unsafe { libc::write(libc::STDERR_FILENO, line.as_ptr().cast(), line.len()) };
            return;
        }
        Some(Ok(setup)) => setup,
        Some(Err(trouble)) => {
            say(&format!("{trouble}; the program runs unmanaged"));
            return;
        }
    };
    if let Err(trouble) = start(setup) {
        complain(&trouble, "the program runs unmanaged");
    }
}

/// Runs after the program's `exit`.
extern "C" fn destruct() {
    layout::write_if_wanted();
    hooks::finish();
}

fn start(setup: Setup) -> Result<(), Trouble> {
    std::panic::set_hook(Box::new(|panic| {
        say(&format!("the engine has failed, and ends the program: {panic}").replace('\n', " "));
        signal::end_process();
    }));
    exclude_own_data();
    let call = |what| move |error| Trouble::Call { what, error };
    let engine = StackSlot::new().map_err(call("making the engine's stack"))?;
    let hand = StackSlot::new().map_err(call("making a helper's stack"))?;
    let is_in_thread = setup.mode.serves_on_program_threads();
    if setup.files.is_some() {
        hooks::files::note_wanted();
    }
    if setup.measures_locks {
        meters::start();
    }
    IS_RECORDED.store(setup.windows.is_some(), Ordering::Relaxed);
    if setup.windows.is_some() {
        ends::find_originals();
    }
    if let Some(socket) = &setup.control {
        way::note_socket(socket);
    }
    // SAFETY: no engine runs yet, so this thread is the only user.
    unsafe {
        *PLACE.setup.get() = Some(setup);
        *PLACE.stack_slots.get() = Some(StackSlots { engine, hand });
    }
    IS_IN_THREAD.store(is_in_thread, Ordering::Relaxed);
    sites::replace().map_err(|(function, error)| Trouble::Library { function, error })?;
    hooks::find_heap_end();
    // SAFETY: the stack slots were made just now.
    unsafe { start_threads(run_engine, START_LIMIT) }
        .map_err(call("starting the engine's thread"))?;
    hold_lifeline();
    Ok(())
}

/// Starts the engine's thread, at `entry`, and waits until it works or has given up, or for
/// `limit`.
///
/// # Safety
/// The stack slots are filled in and free.
unsafe fn start_threads(
    entry: extern "C" fn() -> !,
    limit: Duration,
) -> Result<(), tidemark_live::sys::Errno> {
    STAGE.store(STARTING, Ordering::Release);
    // That of a parent may be cut.
    LEADER.reset();
    // SAFETY: the stack slots are not written to once they are made.
    let stack_slots =
        unsafe { (*PLACE.stack_slots.get()).as_ref() }.expect("made by the constructor");
    if !is_in_thread() {
        let lent = program::note_here(way::connect);
        // SAFETY: free, by the caller's word.
        unsafe {
            stack_slots
                .engine
                .start(entry, &stack_slots.hand, Sharing::Memory)?
        };
        wait_for_engine(limit);
        drop(lent);
        return Ok(());
    }
    close_parents_files();
    let floor = FilesFloor::raise();
    // In a table of files that is shared they are the engine's from now on.
    std::mem::forget(program::note_here(way::connect));
    // SAFETY: as above.
    unsafe {
        stack_slots
            .engine
            .start(entry, &stack_slots.hand, Sharing::FilesAndSignals)?
    };
    wait_for_engine(limit);
    // The parent of this program may have blocked it.
    thread::admit_signals(sigbus::BIT);
    floor.lower();
    Ok(())
}

/// In in-thread mode the program's threads use the engine's files, which are therefore in the
/// program's file table: at high numbers, so that the program's own are what it expects.
struct FilesFloor {
    /// One bit for each number that was filled.
    filled: [u64; 8],
}

const FILES_FLOOR: i32 = 400;

impl FilesFloor {
    /// Fills the table up to the floor.
    fn raise() -> FilesFloor {
        let mut filled = [0u64; 8];
        // SAFETY: opens a file, and copies it; all are closed by `lower`.
        let mut number =
            unsafe { libc::open(c"/dev/null".as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) };
        while (0..=FILES_FLOOR).contains(&number) {
            filled[number as usize / 64] |= 1 << (number % 64);
            // SAFETY: as above.
            number = unsafe { libc::fcntl(number, libc::F_DUPFD_CLOEXEC, 0) };
        }
        // SAFETY: the last one lies above the floor, where the engine's files are to be.
        unsafe { libc::close(number) };
        FilesFloor { filled }
    }

    /// Empties it again.
    fn lower(self) {
        let is_filled = |number: &i32| self.filled[*number as usize / 64] >> (number % 64) & 1 != 0;
        let mut filled = (0..=FILES_FLOOR).filter(is_filled);
        if let Some(first) = filled.next() {
            // SAFETY: a copy of a file made by `raise`, closed at once: its number tells where the
            // engine's end.
            unsafe {
                let end = libc::fcntl(first, libc::F_DUPFD_CLOEXEC, FILES_FLOOR + 1);
                FILES_END.store(end, Ordering::Relaxed);
                libc::close(end);
                libc::close(first);
            }
        }
        for number in filled {
            // SAFETY: made by `raise`.
            unsafe { libc::close(number) };
        }
    }
}

fn wait_for_engine(limit: Duration) {
    let mut left = limit.as_millis() / 10;
    while STAGE.load(Ordering::Acquire) == STARTING && left > 0 {
        futex::wait(&STAGE, STARTING, Duration::from_millis(10));
        left -= 1;
    }
}

fn set_stage(stage: u32) {
    STAGE.store(stage, Ordering::Release);
    futex::wake(&STAGE, u32::MAX);
}

/// The engine's thread in a process that starts afresh.
extern "C" fn run_engine() -> ! {
    begin_engine();
    // SAFETY: this thread is the only user of the setup and the engine's place.
    let setup = unsafe { (*PLACE.setup.get()).take() }.expect("put there by the constructor");
    let engine = match Engine::start(setup, &HAND, &LEADER) {
        Ok(Some(engine)) => engine,
        Ok(None) => rest(None),
        Err(trouble) => rest(Some(trouble)),
    };
    // SAFETY: as above.
    let engine = unsafe { (*PLACE.engine.get()).write(engine) };
    start_hand_if_due(engine, Duration::ZERO);
    if is_in_thread() {
        sigbus::install();
    }
    leave_folder();
    engine.take_first_look();
    IS_LOGGED.store(engine.is_logging(), Ordering::Relaxed);
    go_to_work(engine)
}

/// Has the program know that there is an engine, and turns it.
fn go_to_work(engine: &Engine) -> ! {
    engine.share_memory();
    REQUESTS.set_engine(tidemark_live::sys::thread::current(), engine.bell());
    set_stage(WORKING);
    serve()
}

/// The interval at which it is looked whether the program has set its own action for `SIGBUS`.
const ACTION_LOOK: Duration = Duration::from_millis(100);

/// Turns the engine for ever.
fn serve() -> ! {
    let begun = Instant::now();
    let mut looked = begun;
    loop {
        if is_in_thread() && looked.elapsed() >= ACTION_LOOK {
            sigbus::insist();
            looked = Instant::now();
        }
        let (mut pause_ns, watched) =
            with_engine(|engine| (engine.turn(&REQUESTS), engine.watched()));
        if HAND.thread().is_none() {
            // The program may leave at once, without a message.
            pause_ns = pause_ns.min(LEAVING_NS);
        }
        if HAND.is_absent() {
            with_engine(|engine| start_hand_if_due(engine, begun.elapsed()));
        }
        let woken = if watched.is_some_and(finishes_soon) {
            Woken::by_store()
        } else {
            sleep(with_engine(|engine| engine.wakers()), pause_ns)
        };
        with_engine(|engine| engine.wake(woken));
    }
}

/// Lends the engine out, under its lock. In thread mode the engine's own thread alone calls this,
/// and the lock costs next to nothing.
fn with_engine<T>(body: impl FnOnce(&mut Engine) -> T) -> T {
    LOCK.take();
    // SAFETY: the lock makes this the only reference; the engine was put in its place before its
    // thread, or a signal handler, could come here.
    let value = body(unsafe { (*PLACE.engine.get()).assume_init_mut() });
    LOCK.release();
    value
}

fn is_in_thread() -> bool {
    IS_IN_THREAD.load(Ordering::Relaxed)
}

fn is_logged() -> bool {
    IS_LOGGED.load(Ordering::Relaxed)
}

fn is_recorded() -> bool {
    IS_RECORDED.load(Ordering::Relaxed)
}

/// The engine's thread in a forked child: its engine is a copy of the parent's.
extern "C" fn run_engine_in_child() -> ! {
    let is_at_socket = way::go();
    begin_engine();
    // SAFETY: the parent's engine was working when it was copied, and this thread is the only one
    // that uses the copy.
    let engine = unsafe { (*PLACE.engine.get()).assume_init_mut() };
    REQUESTS.clear();
    LOCK.reset();
    HAND.reset();
    start_hand_if_due(engine, Duration::ZERO);
    if let Err(trouble) = engine.resume_in_child(CHILD.load(Ordering::Acquire), is_at_socket) {
        leave_if_program_is_over();
        if let Err(deeper) = engine.come_home() {
            leave_if_program_is_over();
            say(&format!(
                "a forked process can't be managed, and is ended: {trouble}; {deeper}"
            ));
            signal::end_process();
        }
        complain(&trouble, "a forked process runs unmanaged");
        rest(None);
    }
    leave_folder();
    go_to_work(engine)
}

/// Starts the helper of an engine that has worked for so long, if it is to have one by now.
fn start_hand_if_due(engine: &Engine, age: Duration) {
    if engine.needs_hand_at_once() || age >= HAND_AFTER {
        start_hand();
    }
}

/// Starts the helper, which shares the engine's files.
fn start_hand() {
    // SAFETY: the stack slots are not written to once they are made.
    let stack_slots =
        unsafe { (*PLACE.stack_slots.get()).as_ref() }.expect("made by the constructor");
    // SAFETY: this process has no other helper.
    match unsafe { stack_slots.hand.start_beside(run_hand) } {
        // From now on it counts for one of the engine's threads.
        Ok(number) => HAND.set_thread(number),
        Err(error) => {
            HAND.end();
            say(&format!(
                "starting a helper thread: {error}; forks may cost memory"
            ));
        }
    }
}

extern "C" fn run_hand() -> ! {
    HAND.run(&LEADER, REQUESTS.call(), || REQUESTS.alert());
    thread::exit()
}

/// Has the engine know when the calling thread ends, the first of its process.
pub(crate) fn hold_lifeline() {
    // Otherwise the engine looks now and then.
    if LEADER.hold() {
        futex::wake(LEADER.word(), 1);
    }
}

/// There is no engine: its thread ends, and the program goes on unmanaged.
fn rest(trouble: Option<Trouble>) -> ! {
    if let Some(trouble) = trouble {
        leave_if_program_is_over();
        complain(&trouble, "the program runs unmanaged");
        if is_for_user(&trouble) {
            // What it starts would fare alike, and say the same.
            // SAFETY: the one thread of the program waits for this one.
            unsafe { environment::forget_supervisor() };
        }
    }
    HAND.end();
    set_stage(ABSENT);
    thread::exit_engine()
}

/// Returns true if an engine can't start because of who runs the program.
fn is_for_user(trouble: &Trouble) -> bool {
    matches!(
        trouble,
        Trouble::ForeignSupervisor
            | Trouble::Machine(StartError::Uffd(OpenError::NotPermitted { .. }))
    )
}

/// Says why a process has no engine. What outlives a recording has none, and that is no trouble.
fn complain(trouble: &Trouble, what: &str) {
    let is_over = matches!(trouble, Trouble::NoSupervisor { is_gone: true, .. });
    if !(is_over && is_recorded()) {
        say(&format!("{trouble}; {what}"));
    }
}

/// Leaves the folder that the program is in, so that it can be unmounted when the program has left.
fn leave_folder() {
    // SAFETY: a name ended by a zero byte; where this thread is concerns no other.
    unsafe { libc::chdir(c"/".as_ptr()) };
}

/// Makes the calling thread, or process, an engine's.
fn begin_engine() {
    if let Err(error) = program::begin_engine(!is_in_thread()) {
        if error == Errno::SRCH && program::is_apart() {
            // It was killed before its engine began.
            program::leave();
        }
        let error = Trouble::Call {
            what: "finding the program",
            error,
        };
        rest(Some(error));
    }
    thread::settle(!is_in_thread());
}

/// Ends an engine whose program was killed before the engine was at work, without a word: what it
/// met, such as a supervisor that has left, does no harm.
fn leave_if_program_is_over() {
    if program::is_engine() && program::await_end(0) {
        program::leave();
    }
}

/// Closes a forked child's copies of the files of its parent's engine.
fn close_parents_files() {
    let end = FILES_END.load(Ordering::Relaxed);
    if end > FILES_FLOOR {
        // SAFETY: these numbers are the engine's, and the child's engine opens its own.
        unsafe { libc::syscall(libc::SYS_close_range, FILES_FLOOR + 1, end - 1, 0u32) };
    }
}

/// Puts this library's own data among the ranges that are never managed, and that of the C library
/// and of the dynamic linker, whose functions the engine calls.
fn exclude_own_data() {
    unsafe extern "C" fn visit(
        object: *mut libc::dl_phdr_info,
        _: usize,
        _: *mut libc::c_void,
    ) -> libc::c_int {
        // SAFETY: the dynamic linker hands in a live description of a loaded object.
        let headers = unsafe {
            let object = &*object;
            (
                object.dlpi_addr as usize,
                std::slice::from_raw_parts(object.dlpi_phdr, object.dlpi_phnum.into()),
            )
        };
        let own = &raw const REQUESTS as usize;
        // SAFETY: asks for a number.
        let linker = unsafe { libc::getauxval(libc::AT_BASE) } as usize;
        let function = libc::dl_iterate_phdr as *const () as usize;
        let loaded = headers
            .1
            .iter()
            .filter(|header| header.p_type == libc::PT_LOAD);
        let ranges = loaded.map(|header| {
            let start = headers.0 + header.p_vaddr as usize;
            (
                start & !4095,
                (start + header.p_memsz as usize).next_multiple_of(4096),
            )
        });
        let holds = |at: usize| {
            let mut ranges = ranges.clone();
            ranges.any(|(start, end)| (start..end).contains(&at))
        };
        if holds(own) {
            ranges.for_each(|(start, end)| memory::add_own(start, end - start));
        } else if headers.0 == linker || holds(function) {
            let first = ranges.clone().map(|(start, _)| start).min().unwrap_or(0);
            let end = ranges.map(|(_, end)| end).max().unwrap_or(0);
            memory::add_needed(first, end - first);
        }
        0
    }
    // SAFETY: `visit` only reads what it is shown.
    unsafe { libc::dl_iterate_phdr(Some(visit), std::ptr::null_mut()) };
}

/// A system call, as the kernel answers it.
///
/// # Safety
/// As for the call.
unsafe fn system_call(number: c_long, [a, b, c, d, e]: [c_long; 5]) -> c_long {
    // SAFETY: by the caller's word.
    unsafe { system_call_of_six(number, [a, b, c, d, e, 0]) }
}

/// The same with six arguments.
///
/// # Safety
/// As for the call.
#[cfg(target_arch = "x86_64")]
unsafe fn system_call_of_six(number: c_long, [a, b, c, d, e, f]: [c_long; 6]) -> c_long {
    let answer: c_long;
    // SAFETY: by the caller's word.
    unsafe {
        std::arch::asm!(
            "syscall",
            inlateout("rax") number => answer,
            in("rdi") a,
            in("rsi") b,
            in("rdx") c,
            in("r10") d,
            in("r8") e,
            in("r9") f,
            lateout("rcx") _,
            lateout("r11") _,
        );
    }
    answer
}

/// The same with six arguments.
///
/// # Safety
/// As for the call.
#[cfg(target_arch = "aarch64")]
unsafe fn system_call_of_six(number: c_long, [a, b, c, d, e, f]: [c_long; 6]) -> c_long {
    let answer: c_long;
    // SAFETY: by the caller's word.
    unsafe {
        std::arch::asm!(
            "svc #0",
            in("x8") number,
            inlateout("x0") a => answer,
            in("x1") b,
            in("x2") c,
            in("x3") d,
            in("x4") e,
            in("x5") f,
        );
    }
    answer
}
