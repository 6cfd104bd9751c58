//! The engine of this process: its threads, its place, and the lock by which it is lent out.

use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::time::{Duration, Instant};

use tidemark_live::engine::{Engine, Lock, Setup, Trouble, Woken, say, sleep};
use tidemark_live::hand::Hand;
use tidemark_live::machine::StartError;
use tidemark_live::sys::uffd::OpenError;
use tidemark_live::sys::{Errno, futex, program, signal};

use crate::awake::finishes_soon;
use crate::process::PROCESS;
use crate::thread::{Sharing, StackSlot};
use crate::{environment, sigbus, thread};

/// The age at which a process gets its helper, unless that is needed sooner: many execute
/// another program at once, or end.
const HAND_AFTER: Duration = Duration::from_millis(20);
/// The interval at which it is looked until then whether it does.
const LEAVING_NS: u64 = 500_000;
/// The place of the engine, and the resources handed to its threads.
static PLACE: Place = Place {
    lock: Lock::new(),
    hand: Hand::started_by(start_hand),
    setup: UnsafeCell::new(None),
    engine: UnsafeCell::new(MaybeUninit::uninit()),
    stack_slots: UnsafeCell::new(None),
};

struct Place {
    /// Held by the thread that uses the engine.
    lock: Lock,
    /// The thread that may fault on the engine's behalf.
    hand: Hand,
    setup: UnsafeCell<Option<Setup>>,
    engine: UnsafeCell<MaybeUninit<Engine>>,
    stack_slots: UnsafeCell<Option<StackSlots>>,
}

/// The places of the threads.
struct StackSlots {
    engine: StackSlot,
    hand: StackSlot,
}

// SAFETY: the lock and the hand may be used by any thread. The constructor fills in `setup` and
// `stack_slots` before it starts the engine's thread; from then on that thread alone uses `setup`
// and `engine`, or who has the lock. In a forked child there is no such thread until the one that
// forked has started a new one.
unsafe impl Sync for Place {}

/// Puts what the engine begins with where its thread finds it.
///
/// # Safety
/// No engine runs yet, and one thread alone is here.
pub(crate) unsafe fn prepare(setup: Setup) -> Result<(), Trouble> {
    let call = |what| move |error| Trouble::Call { what, error };
    let engine = StackSlot::new().map_err(call("making the engine's stack"))?;
    let hand = StackSlot::new().map_err(call("making a helper's stack"))?;
    // SAFETY: by the caller's word this thread is the only user.
    unsafe {
        *PLACE.setup.get() = Some(setup);
        *PLACE.stack_slots.get() = Some(StackSlots { engine, hand });
    }
    Ok(())
}

/// Starts the engine's thread, at `entry`, and waits until it works or has given up, or for
/// `limit`.
///
/// # Safety
/// The stack slots are filled in and free.
pub(crate) unsafe fn start_threads(
    entry: extern "C" fn() -> !,
    limit: Duration,
) -> Result<(), tidemark_live::sys::Errno> {
    PROCESS.begin_start();
    // SAFETY: the stack slots are not written to once they are made.
    let stack_slots =
        unsafe { (*PLACE.stack_slots.get()).as_ref() }.expect("made by the constructor");
    if !PROCESS.is_in_thread() {
        let lent = program::note_here(|| PROCESS.way.connect());
        // SAFETY: free, by the caller's word.
        unsafe {
            stack_slots
                .engine
                .start(entry, &stack_slots.hand, Sharing::Memory)?
        };
        PROCESS.await_engine(limit);
        drop(lent);
        return Ok(());
    }
    close_parents_files();
    let floor = FilesFloor::raise();
    // In a table of files that is shared they are the engine's from now on.
    std::mem::forget(program::note_here(|| PROCESS.way.connect()));
    // SAFETY: as above.
    unsafe {
        stack_slots
            .engine
            .start(entry, &stack_slots.hand, Sharing::FilesAndSignals)?
    };
    PROCESS.await_engine(limit);
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
                PROCESS.set_files_end(end);
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

/// The engine's thread in a process that starts afresh.
pub(crate) extern "C" fn run_engine() -> ! {
    begin_engine();
    // SAFETY: this thread is the only user of the setup and the engine's place.
    let setup = unsafe { (*PLACE.setup.get()).take() }.expect("put there by the constructor");
    let engine = match Engine::start(setup, &PLACE.hand, &PROCESS.leader) {
        Ok(Some(engine)) => engine,
        Ok(None) => rest(None),
        Err(trouble) => rest(Some(trouble)),
    };
    // SAFETY: as above.
    let engine = unsafe { (*PLACE.engine.get()).write(engine) };
    start_hand_if_due(engine, Duration::ZERO);
    if PROCESS.is_in_thread() {
        sigbus::install();
    }
    leave_folder();
    engine.take_first_look();
    PROCESS.note_logged(engine.is_logging());
    go_to_work(engine)
}

/// Has the program know that there is an engine, and turns it.
fn go_to_work(engine: &Engine) -> ! {
    engine.share_memory();
    PROCESS
        .requests
        .set_engine(tidemark_live::sys::thread::current(), engine.bell());
    PROCESS.end_start(true);
    serve()
}

/// The interval at which it is looked whether the program has set its own action for `SIGBUS`.
const ACTION_LOOK: Duration = Duration::from_millis(100);

/// Turns the engine for ever.
fn serve() -> ! {
    let begun = Instant::now();
    let mut looked = begun;
    loop {
        if PROCESS.is_in_thread() && looked.elapsed() >= ACTION_LOOK {
            sigbus::insist();
            looked = Instant::now();
        }
        let (mut pause_ns, watched) =
            with_engine(|engine| (engine.turn(&PROCESS.requests), engine.watched()));
        if PLACE.hand.thread().is_none() {
            // The program may leave at once, without a message.
            pause_ns = pause_ns.min(LEAVING_NS);
        }
        if PLACE.hand.is_absent() {
            with_engine(|engine| start_hand_if_due(engine, begun.elapsed()));
        }
        let woken = if watched.is_some_and(finishes_soon) {
            Woken::by_store()
        } else if let Some(woken) = with_engine(|engine| engine.await_messages(pause_ns)) {
            woken
        } else {
            sleep(with_engine(|engine| engine.wakers()), pause_ns)
        };
        with_engine(|engine| engine.wake(woken));
    }
}

/// Lends the engine out, under its lock. In thread mode the engine's own thread alone calls this,
/// and the lock costs next to nothing.
pub(crate) fn with_engine<T>(body: impl FnOnce(&mut Engine) -> T) -> T {
    PLACE.lock.take();
    // SAFETY: the lock makes this the only reference; the engine was put in its place before its
    // thread, or a signal handler, could come here.
    let value = body(unsafe { (*PLACE.engine.get()).assume_init_mut() });
    PLACE.lock.release();
    value
}

/// The engine's thread in a forked child: its engine is a copy of the parent's.
pub(crate) extern "C" fn run_engine_in_child() -> ! {
    let is_at_socket = PROCESS.way.go();
    begin_engine();
    // SAFETY: the parent's engine was working when it was copied, and this thread is the only one
    // that uses the copy.
    let engine = unsafe { (*PLACE.engine.get()).assume_init_mut() };
    PROCESS.requests.clear();
    PLACE.lock.reset();
    PLACE.hand.reset();
    start_hand_if_due(engine, Duration::ZERO);
    if let Err(trouble) = engine.resume_in_child(PROCESS.forking.child(), is_at_socket) {
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
        Ok(number) => PLACE.hand.set_thread(number),
        Err(error) => {
            PLACE.hand.end();
            say(&format!(
                "starting a helper thread: {error}; forks may cost memory"
            ));
        }
    }
}

extern "C" fn run_hand() -> ! {
    PLACE
        .hand
        .run(&PROCESS.leader, PROCESS.requests.call(), || {
            PROCESS.requests.alert()
        });
    thread::exit()
}

/// Has the engine know when the calling thread ends, the first of its process.
pub(crate) fn hold_lifeline() {
    // Otherwise the engine looks now and then.
    if PROCESS.leader.hold() {
        futex::wake(PROCESS.leader.word(), 1);
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
    PLACE.hand.end();
    PROCESS.end_start(false);
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
pub(crate) fn complain(trouble: &Trouble, what: &str) {
    let is_over = matches!(trouble, Trouble::NoSupervisor { is_gone: true, .. });
    if !(is_over && PROCESS.is_recorded()) {
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
    if let Err(error) = program::begin_engine(!PROCESS.is_in_thread()) {
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
    thread::settle(!PROCESS.is_in_thread());
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
    let end = PROCESS.files_end();
    if end > FILES_FLOOR {
        // SAFETY: these numbers are the engine's, and the child's engine opens its own.
        unsafe { libc::syscall(libc::SYS_close_range, FILES_FLOOR + 1, end - 1, 0u32) };
    }
}
