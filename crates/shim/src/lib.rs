//! The preload library: starts Tidemark's engine inside a program that knows nothing of it.
//!
//! `LD_PRELOAD` loads it before the program's `main`; its constructor reads the environment (see
//! [`tidemark_live::control`]) and, if that asks for an engine, starts one. Without it the library
//! does nothing at all.
//!
//! - [`process`] is the state of the process, [`engine`] the threads and the place of its engine.
//! - [`hooks`] sees what must be known at once, and falls through to the original; [`sites`] are
//!   where the C library calls the kernel by itself, [`forks`] the ways to fork, [`ends`] those to
//!   leave one's memory, [`spaces`] those to enter namespaces, [`filters`] those that forbid calls.
//! - [`hooks::files`] reports mapped files that are managed, and [`hooks::descriptors`] the use of
//!   those that are written back by other ways.
//! - [`own`] keeps the program's hands off the engine's memory, [`locks`] follows what it locks,
//!   [`limits`] has the engine's addresses not count.
//! - [`environment`] makes the variables of a program in step the same as in its recording.
//! - [`lent`] makes calls copy that would lend memory to the kernel which may then move.
//! - [`places`] keeps memory in one range, where faults are served in user mode alone.
//! - [`spawns`] reports programs that the C library executes itself.
//! - [`calls`] are the kernel's, and the functions behind ours.
//! - [`layout`] is about where the libraries of a program in step lie.
//! - [`thread`] makes threads that the C library does not know.
//! - [`unfit`] finds programs that can't have an engine.
//! - [`heap`] is where everything in here allocates.
//!
//! # Rules
//! 1. A hook never allocates and never recurses. It keeps `errno`.
//! 2. No function of the C library is called that maps or allocates, but in the constructor.
//! 3. A panic ends the process with one line: a broken engine must not serve wrong pages.

mod awake;
mod calls;
mod ends;
mod engine;
mod environment;
mod filters;
mod forks;
mod heap;
mod hooks;
mod layout;
mod lent;
mod limits;
mod locks;
mod own;
mod places;
mod process;
mod processors;
mod sigbus;
mod sites;
mod spaces;
mod spawns;
mod thread;
mod unfit;

use std::time::Duration;

use tidemark_live::engine::{Setup, Trouble, say};
use tidemark_live::meters;
use tidemark_live::stamp::{self, Stamp};
use tidemark_live::sys::{memory, signal};

use crate::process::PROCESS;

/// The time that the program waits for its engine to start.
const START_LIMIT: Duration = Duration::from_secs(30);

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
    hooks::descriptors::find_originals();
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
        engine::complain(&trouble, "the program runs unmanaged");
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
    hooks::files::note_wanted(&setup);
    if setup.measures_locks {
        meters::start();
    }
    let holds_calls = setup.holds_calls;
    PROCESS.note_mode(setup.mode, setup.windows.is_some());
    if setup.windows.is_some() || setup.are_files_written {
        ends::find_originals();
    }
    if let Some(socket) = &setup.control {
        PROCESS.way.note_socket(socket);
    }
    // SAFETY: no engine runs yet, and the program's own code has not begun.
    unsafe { engine::prepare(setup)? };
    sites::replace(holds_calls)
        .map_err(|(function, error)| Trouble::Library { function, error })?;
    hooks::find_heap_end();
    if holds_calls {
        places::begin();
    }
    // SAFETY: the stack slots were made just now.
    unsafe { engine::start_threads(engine::run_engine, START_LIMIT) }.map_err(|error| {
        Trouble::Call {
            what: "starting the engine's thread",
            error,
        }
    })?;
    engine::hold_lifeline();
    forks::hold_on_in_children();
    Ok(())
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
        let own = &raw const PROCESS as usize;
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
