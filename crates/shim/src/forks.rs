//! Forks: by the C library's `fork` and `_Fork`, by `clone`, and by system calls made with
//! `syscall`.
//!
//! The engine is [at rest](hooks::quiesce) for the time of the system call alone, and the child has
//! an engine before anything else runs there. A system call by the program's own instruction is not
//! seen here: the kernel reports it to the engine, where that is permitted (see `feed` in the
//! engine).
//!
//! A child that shares its parent's memory (`vfork`, threads) needs nothing: its faults are its
//! parent's.

use std::ffi::{c_int, c_long, c_void};
use std::mem::MaybeUninit;
use std::sync::atomic::AtomicUsize;

use tidemark_live::sys::calls;

use crate::calls::{find_original, keeping_errno, note_error, system_call_of_six};
#[cfg(target_arch = "x86_64")]
use crate::calls::{keep_arguments, restore_arguments};
use crate::engine;
use crate::hooks::{self, Readiness};
use crate::process::PROCESS;
use crate::thread::{self, block_signals};
#[cfg(target_arch = "x86_64")]
use crate::{filters, spaces};

/// The system call in the C library's `_Fork`, which `fork` calls when it has taken the locks of
/// `malloc` and of streams. Answers as the kernel does.
pub(crate) extern "C" fn fork_at_site(
    flags: c_long,
    stack: c_long,
    parent_id: c_long,
    child_id: c_long,
    variables: c_long,
) -> c_long {
    let arguments = [flags, stack, parent_id, child_id, variables, prepared()];
    // SAFETY: the caller's system call, as it is.
    let call = || unsafe { system_call_of_six(libc::SYS_clone, arguments) };
    match flags & c_long::from(libc::CLONE_VM) {
        0 => around_fork(call),
        _ => call(),
    }
}

/// The sixth argument of a fork, which the kernel ignores: a filter of ours lets it pass if the
/// engine rests for it. In a process that shares another one's memory it rests for nothing.
fn prepared() -> c_long {
    match PROCESS.requests.is_here() {
        true => calls::PREPARED as c_long,
        false => 0,
    }
}

/// The most of its stack that a child's thread uses before the child has an engine: 1.1 KiB were
/// measured.
const STACK_BYTES: usize = 4096;

/// Has the pages that a child uses of the calling thread's stack there. The engine at rest serves
/// this thread's faults; the child's wait for an engine that this very thread is to start.
#[inline(never)]
fn touch_stack() {
    let mut below = [MaybeUninit::<u8>::uninit(); STACK_BYTES];
    // SAFETY: writes to a live array.
    unsafe { below.as_mut_ptr().write_volatile(MaybeUninit::new(0)) };
    std::hint::black_box(&below);
}

/// Brings in the pages that a child uses of a new stack, which ends at `top`.
///
/// # Safety
/// `top` is the end of memory for a stack, of [`STACK_BYTES`] at least.
unsafe fn touch_new_stack(top: *const u8) {
    for below in [1, STACK_BYTES] {
        // SAFETY: by the caller's word.
        std::hint::black_box(unsafe { top.sub(below).read_volatile() });
    }
}

/// Has the first thread of each child of the C library's `fork` hold its lifeline. `_Fork` empties
/// the thread's list of robust locks after the system call, which has taken one; handlers run when
/// it has returned. A child of `_Fork` alone has no lifeline: its engine looks now and then.
pub(crate) fn hold_on_in_children() {
    unsafe extern "C" fn hold_on() {
        if PROCESS.requests.has_engine() {
            engine::hold_lifeline();
        }
    }
    // SAFETY: the handler is of a library that stays loaded. Without it children have no lifeline.
    unsafe { libc::pthread_atfork(None, None, Some(hold_on)) };
}

type Start = extern "C" fn(*mut c_void) -> c_int;
type Clone =
    unsafe extern "C" fn(Start, *mut c_void, c_int, *mut c_void, usize, usize, usize) -> c_int;

/// The work of a cloned child once it has an engine.
struct CloneStart {
    start: Start,
    argument: *mut c_void,
    /// The signals to block there.
    signals: u64,
}

/// Interposes `clone`.
///
/// # Safety
/// As for the C library's `clone`, whose optional arguments are always passed on.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clone(
    start: Start,
    stack: *mut c_void,
    flags: c_int,
    argument: *mut c_void,
    parent_id: usize,
    variables: usize,
    child_id: usize,
) -> c_int {
    static FOUND: AtomicUsize = AtomicUsize::new(0);
    let found = find_original(&FOUND, c"clone");
    if found == 0 {
        // SAFETY: sets the calling thread's error number.
        unsafe { *libc::__errno_location() = libc::ENOSYS };
        return -1;
    }
    // SAFETY: the C library's `clone` takes these arguments.
    let original = unsafe { std::mem::transmute::<usize, Clone>(found) };
    if flags & libc::CLONE_VM != 0 {
        // SAFETY: passed on as it is.
        return unsafe {
            original(
                start, stack, flags, argument, parent_id, variables, child_id,
            )
        };
    }
    // The C library leaves it where a system call has its sixth argument.
    let variables = match flags & libc::CLONE_SETTLS {
        0 => prepared() as usize,
        _ => variables,
    };
    // The child has a copy of this stack, and finds it at the same address.
    let mut clone_start = CloneStart {
        start,
        argument,
        signals: 0,
    };
    let place = &raw mut clone_start;
    // SAFETY: as above; `run_clone_start` takes what it is given.
    let call = |signals: u64| unsafe {
        (*place).signals = signals;
        if !stack.is_null() && PROCESS.requests.has_engine() {
            touch_new_stack(stack.cast());
        }
        let answer = original(
            run_clone_start,
            stack,
            flags,
            place.cast(),
            parent_id,
            variables,
            child_id,
        );
        match answer {
            -1 => -c_long::from(*libc::__errno_location()),
            _ => c_long::from(answer),
        }
    };
    note_error(around_fork_with(call)) as c_int
}

extern "C" fn run_clone_start(clone_start: *mut c_void) -> c_int {
    hooks::resume_child();
    // SAFETY: `clone` above made it, and waits in the parent's copy only.
    let clone_start = unsafe { clone_start.cast::<CloneStart>().read() };
    block_signals(clone_start.signals);
    let status = (clone_start.start)(clone_start.argument);
    // The C library ends the process now, and the first of a namespace takes its engine with it.
    hooks::catch_up();
    status
}

/// A system call that copies this process, and comes back in both.
///
/// # Safety
/// `number` and the arguments are those of such a call.
#[cfg(target_arch = "x86_64")]
unsafe extern "C" fn fork_by_call(
    number: c_long,
    a: c_long,
    b: c_long,
    c: c_long,
    d: c_long,
    e: c_long,
) -> c_long {
    // SAFETY: the caller's system call, as it is.
    let call = || unsafe { system_call_of_six(number, [a, b, c, d, e, prepared()]) };
    note_error(around_fork(call))
}

/// Has the engine at rest around `call`, which answers as the kernel does to a fork.
fn around_fork(call: impl FnOnce() -> c_long) -> c_long {
    around_fork_with(|_| call())
}

/// Has the engine at rest around `call`, which is passed the signals that the calling thread
/// blocks. The thread blocks all signals until the fork is over: a handler might touch a page that
/// is out.
fn around_fork_with(call: impl FnOnce(u64) -> c_long) -> c_long {
    if !PROCESS.requests.has_engine() {
        return call(thread::signals_blocked());
    }
    // All but the one that a fault served by its own thread comes as.
    let before = block_signals(!(1 << (libc::SIGBUS - 1)));
    let answer = match hooks::quiesce() {
        Readiness::Unfollowed => call(before),
        Readiness::Refused => c_long::from(-libc::EAGAIN),
        Readiness::AtRest => {
            touch_stack();
            let answer = call(before);
            match answer {
                0 => hooks::resume_child(),
                _ => hooks::resume_parent(answer > 0),
            }
            answer
        }
    };
    block_signals(before);
    answer
}

/// Returns true if a `clone3` with arguments at `arguments` is a fork. They are read by way of the
/// kernel, since they may be anything; what can't be read it will refuse, too.
#[cfg(target_arch = "x86_64")]
extern "C" fn copies_memory(arguments: usize, bytes: usize) -> bool {
    use tidemark_live::sys::thread;

    /// The size of the arguments' first version, and where in them is a stack of the child's own.
    const BYTES_LEAST: usize = 64;
    const STACK_AT: usize = 40;
    if bytes < BYTES_LEAST || !PROCESS.requests.has_engine() {
        return false;
    }
    let read = |at: usize| {
        let mut word = [0; 8];
        let is_read = thread::read_own_memory(arguments.wrapping_add(at), &mut word);
        is_read.map(|()| u64::from_ne_bytes(word))
    };
    let found = keeping_errno(|| read(0).zip(read(STACK_AT)));
    found.is_some_and(|(flags, stack)| flags & libc::CLONE_VM as u64 == 0 && stack == 0)
}

/// Forks by `clone3`, whose kind only its arguments show.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
unsafe extern "C" fn fork_by_clone3() -> c_long {
    std::arch::naked_asm!(
        keep_arguments!(),
        "mov rdi, rsi",
        "mov rsi, rdx",
        "call {copies_memory}",
        "mov r11d, eax",
        restore_arguments!(),
        "test r11b, r11b",
        "jnz {fork}",
        "jmp {call}",
        copies_memory = sym copies_memory,
        fork = sym fork_by_call,
        call = sym call_kernel,
    )
}

/// Interposes `syscall`. What is no fork goes straight to the kernel, from the caller's own stack
/// frame and with nothing but registers, as in the C library: a child that shares its parent's
/// memory may come back through here before the parent does.
///
/// A clone with a separate stack can't come back through this function; the kernel reports it.
///
/// # Safety
/// As for the C library's `syscall`.
#[cfg(target_arch = "x86_64")]
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub unsafe extern "C" fn syscall() -> c_long {
    std::arch::naked_asm!(
        "cmp rdi, {fork_call}",
        "je {fork}",
        "cmp rdi, {clone_call}",
        "jne 2f",
        // Flags, stack.
        "test esi, {shares_memory}",
        "jnz {call}",
        "test rdx, rdx",
        "jnz {call}",
        "jmp {fork}",
        "2:",
        "cmp rdi, {clone3_call}",
        "je {clone3}",
        "cmp rdi, {lock_call}",
        "je {lock}",
        "cmp rdi, {lock2_call}",
        "je {lock}",
        "cmp rdi, {lock_all_call}",
        "je {lock}",
        "cmp rdi, {advise_call}",
        "je {advise}",
        "cmp rdi, {unshare_call}",
        "je {unshare}",
        "cmp rdi, {setns_call}",
        "je {setns}",
        "cmp rdi, {seccomp_call}",
        "je {seccomp}",
        "cmp rdi, {prctl_call}",
        "jne {call}",
        "cmp esi, {set_filter}",
        "je {prctl}",
        "jmp {call}",
        fork_call = const libc::SYS_fork,
        clone_call = const libc::SYS_clone,
        clone3_call = const libc::SYS_clone3,
        shares_memory = const libc::CLONE_VM,
        lock_call = const libc::SYS_mlock,
        lock2_call = const libc::SYS_mlock2,
        lock_all_call = const libc::SYS_mlockall,
        advise_call = const libc::SYS_madvise,
        unshare_call = const libc::SYS_unshare,
        setns_call = const libc::SYS_setns,
        seccomp_call = const libc::SYS_seccomp,
        prctl_call = const libc::SYS_prctl,
        set_filter = const libc::PR_SET_SECCOMP,
        lock = sym crate::locks::lock_by_call,
        advise = sym crate::own::madvise_by_call,
        unshare = sym spaces::unshare_by_call,
        setns = sym spaces::setns_by_call,
        seccomp = sym filters::seccomp_by_call,
        prctl = sym filters::prctl_by_call,
        fork = sym fork_by_call,
        clone3 = sym fork_by_clone3,
        call = sym call_kernel,
    )
}

/// Makes the system call that its caller's caller asks for.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
unsafe extern "C" fn call_kernel() -> c_long {
    std::arch::naked_asm!(
        "mov rax, rdi",
        "mov rdi, rsi",
        "mov rsi, rdx",
        "mov rdx, rcx",
        "mov r10, r8",
        "mov r8, r9",
        "mov r9, [rsp + 8]",
        "syscall",
        "cmp rax, -4095",
        "jae 5f",
        "ret",
        "5:",
        "mov rdi, rax",
        "jmp {note_error}",
        note_error = sym note_error,
    )
}
