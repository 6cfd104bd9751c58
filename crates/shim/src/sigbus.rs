//! In-thread mode: the signal handler in which a thread serves its own fault.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};
use std::time::Duration;

use tidemark_live::engine::{FaultOutcome, say};
use tidemark_live::sys::{signal, socket};

use crate::awake::finishes_soon;
use crate::engine::with_engine;
use crate::process::PROCESS;
use crate::thread::admit_signals;

/// The signal's bit in the kernel's masks.
pub(crate) const BIT: u64 = 1 << (libc::SIGBUS - 1);

/// The time that a thread sleeps on the store before it looks by itself: others may have taken the
/// answer it waits for.
const LOOK_NS: u64 = 1_000_000;

/// The number of times that a forked child without an engine touches pages that are not there yet,
///.
static TOUCHES_LEFT: AtomicI32 = AtomicI32::new(600_000);
/// The pause before each such touch.
const TOUCH_PAUSE: Duration = Duration::from_micros(100);

/// The action on the signal before: the address of a handler, or one of the constants.
static BEFORE: AtomicUsize = AtomicUsize::new(libc::SIG_DFL);

/// Installs the handler.
pub(crate) fn install() {
    // SAFETY: C structs for which zeros are a value, filled in before use; the handler has the
    // type that the flags promise.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        let mut before: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handle as *const () as usize;
        // Not on an alternate stack: that may be managed memory, which the kernel can't write to.
        action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
        libc::sigfillset(&raw mut action.sa_mask);
        libc::sigaction(libc::SIGBUS, &raw const action, &raw mut before);
        BEFORE.store(before.sa_sigaction, Ordering::Relaxed);
    }
}

/// Ends the process, with a line, if the program handles the signal itself: it would be handed
/// faults that are not its own, and wait for ever or end for a wrong reason.
pub(crate) fn insist() {
    // SAFETY: for a C struct zeros are a value; only asks.
    let now = unsafe {
        let mut now: libc::sigaction = std::mem::zeroed();
        libc::sigaction(libc::SIGBUS, std::ptr::null(), &raw mut now);
        now.sa_sigaction
    };
    let ours = handle as *const () as usize;
    if ![ours, libc::SIG_DFL, libc::SIG_IGN].contains(&now) {
        say("the program handles SIGBUS itself, and is ended: run it without `--in-thread`");
        signal::end_process();
    }
}

extern "C" fn handle(number: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the calling thread's own error number.
    let errno = unsafe { *libc::__errno_location() };
    // SAFETY: the kernel hands in a live description of the signal.
    let address = unsafe { (*info).si_addr() } as usize;
    if !PROCESS.requests.is_here() {
        wait_for_food(number, info, context);
        return;
    }
    let (mut outcome, store, watch) = with_engine(|engine| {
        let outcome = engine.serve_here(address);
        (outcome, engine.store_file(), engine.store_watch())
    });
    while let FaultOutcome::Wait(token) = outcome {
        if !watch.is_some_and(finishes_soon) {
            // A wait that fails for any reason is a short one.
            let _ = socket::wait_readable_raw([Some(store), None, None, None], LOOK_NS);
        }
        if with_engine(|engine| engine.look_again(token)) {
            outcome = FaultOutcome::Touch;
        }
    }
    if outcome == FaultOutcome::Foreign {
        pass_on(number, info, context);
    }
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
}

/// A fault in a child that was forked by a system call of its own, and whose pages its parent's
/// engine is about to bring: the touch is tried again for a while.
fn wait_for_food(number: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: as in `handle`. A poisoned page never comes.
    let is_lost = unsafe { (*info).si_code } != libc::BUS_ADRERR;
    if is_lost || TOUCHES_LEFT.fetch_sub(1, Ordering::Relaxed) < 0 {
        pass_on(number, info, context);
    } else {
        std::thread::sleep(TOUCH_PAUSE);
    }
}

/// A signal that is not about managed memory: does what would have been done without us.
fn pass_on(number: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel hands in a live description of the signal.
    let is_sent = unsafe { (*info).si_code } <= 0;
    let before = match BEFORE.load(Ordering::Relaxed) {
        libc::SIG_IGN if is_sent => return,
        libc::SIG_DFL if is_sent => {
            admit_signals(BIT);
            signal::end_process();
        }
        libc::SIG_DFL | libc::SIG_IGN => {
            // SAFETY: the default is restored; the access happens again and ends the process.
            unsafe { libc::signal(number, libc::SIG_DFL) };
            return;
        }
        handler => handler,
    };
    type Handler = extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void);
    // SAFETY: the address of the handler that was installed before; one that takes the signal's
    // number alone ignores the other arguments.
    let handler = unsafe { std::mem::transmute::<usize, Handler>(before) };
    handler(number, info, context);
}
