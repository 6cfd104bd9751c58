//! Processes and threads that the C library does not know: the engine's.
//!
//! A thread made by `pthread_create` counts for `pthread_exit` (the process would never end by
//! itself), takes part in `setuid`, and can't be made again in a forked child without the
//! program's allocator, whose memory is not served yet there. So one thread is made the usual way
//! once, for the sake of its control block (stack canary, static thread-local variables), and
//! ends at once. With its first thread a program loses the C library's ways for programs of one
//! thread, and gets them back ([`Alone`]). Engines are then started with plain `clone` on that
//! block, as processes that share the program's memory: at the beginning, and again in each forked
//! child.
//!
//! # Invariants
//! 1. The block and the stack are own memory, and one thread at a time uses them.
//! 2. The block's table of dynamic variables is a copy in own memory, not the one on the program's
//!    heap, so that no touch of it can fault.

use std::ffi::{CStr, c_void};
use std::sync::atomic::{AtomicUsize, Ordering};

use tidemark_live::sys::memory::Mapping;
use tidemark_live::sys::{Errno, PAGE, thread};

const STACK_BYTES: usize = 512 * 1024;
/// Room above the engine's stack for the control block and static variables of all libraries,
/// which glibc puts at the top of a stack it is given.
const BLOCK_BYTES: usize = 128 * 1024;
/// The number of entries of the table of dynamic variables that are copied.
const MODULES_MAX: usize = 256;
/// The number of stack slots of a process: its engine's, and the helper's.
const STACK_SLOTS: u32 = 2;

/// The place of a new engine thread. Kept across forks.
pub(crate) struct StackSlot {
    /// The top of the stack for `clone`.
    stack_top: usize,
    /// The control block.
    block: usize,
}

/// The parts that an engine shares with its program, besides memory. Of the rest it has a copy.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sharing {
    /// Nothing else.
    Memory,
    /// The table of files, and the actions for signals.
    FilesAndSignals,
}

static MEASURED_BLOCK: AtomicUsize = AtomicUsize::new(0);
static MEASURED_TABLE: AtomicUsize = AtomicUsize::new(0);

impl StackSlot {
    /// Makes a stack slot. Must run on a thread of the program, before anything is managed.
    pub(crate) fn new() -> Result<StackSlot, Errno> {
        let whole = Mapping::anonymous(STACK_BYTES + BLOCK_BYTES)?;
        let start = whole.leak();
        // SAFETY: fresh memory of that size, which is never unmapped.
        unsafe { run_once(start, STACK_BYTES + BLOCK_BYTES)? };
        let block = MEASURED_BLOCK.load(Ordering::Acquire);
        let stack_top = start + STACK_BYTES;
        if block < stack_top {
            // The program's libraries have more static variables than there is room for.
            return Err(Errno::NOMEM);
        }
        // SAFETY: the thread that owned the block is gone.
        unsafe { adopt_table(block, MEASURED_TABLE.load(Ordering::Acquire))? };
        Ok(StackSlot { stack_top, block })
    }

    /// Starts a thread of the calling process at `entry`, with every signal blocked. Answers its
    /// number.
    ///
    /// # Safety
    /// No other code uses the stack slot; `entry` never returns.
    pub(crate) unsafe fn start_beside(&self, entry: extern "C" fn() -> !) -> Result<u32, Errno> {
        let flags = libc::CLONE_VM
            | libc::CLONE_SIGHAND
            | libc::CLONE_THREAD
            | libc::CLONE_SETTLS
            | libc::CLONE_FILES
            | libc::CLONE_FS
            | libc::CLONE_UNTRACED;
        // SAFETY: the stack and the block are free, by the caller's word.
        let answer = unsafe { clone_at(flags as usize, self.stack_top, self.block, entry) };
        number_of(answer)
    }
}

impl StackSlot {
    /// Starts a process at `entry` that shares this one's memory, with every signal blocked.
    /// Answers its number.
    ///
    /// It must not be noticed. No debugger of the program follows it, and no `wait` finds it:
    /// another process, which uses the stack slot `between`, starts it and ends, so that it is an
    /// orphan. Where this process would be the one to adopt it, it stays a child without a signal
    /// at its end, which `wait` passes over.
    ///
    /// # Safety
    /// No other code uses the two stack slots; `entry` never returns.
    pub(crate) unsafe fn start(
        &self,
        entry: extern "C" fn() -> !,
        between: &StackSlot,
        sharing: Sharing,
    ) -> Result<u32, Errno> {
        let flags = libc::CLONE_VM | libc::CLONE_SETTLS | libc::CLONE_UNTRACED;
        let flags = match sharing {
            Sharing::Memory => flags,
            Sharing::FilesAndSignals => flags | libc::CLONE_FILES | libc::CLONE_SIGHAND,
        } as usize;
        if makes_processes_elsewhere() {
            return Err(Errno::INVAL);
        }
        let before = block_signals(u64::MAX);
        // SAFETY: the stacks and the block are free, by the caller's word.
        let answer = unsafe {
            match adopts_orphans() {
                true => clone_at(flags, self.stack_top, self.block, entry),
                false => {
                    let top = between.stack_top;
                    clone_orphan(flags, (self.stack_top, self.block), top, entry)
                }
            }
        };
        block_signals(before);
        number_of(answer)
    }
}

/// The number of a thread or process, from the kernel's answer.
fn number_of(answer: isize) -> Result<u32, Errno> {
    let failed = -4095..0;
    match failed.contains(&answer) {
        true => Err(Errno::from_raw_os_error(-answer as i32)),
        false => Ok(answer as u32),
    }
}

/// Returns true if the processes that this one makes are in another namespace of processes than
/// itself: an engine would be the first there.
fn makes_processes_elsewhere() -> bool {
    let place = |path: &CStr| {
        // SAFETY: a name ended by a zero byte, and a C struct for which zeros are a value.
        unsafe {
            let mut found: libc::stat = std::mem::zeroed();
            let answer = libc::stat(path.as_ptr(), &raw mut found);
            (answer == 0).then_some((found.st_dev, found.st_ino))
        }
    };
    let own = place(c"/proc/self/ns/pid");
    // It has no name as long as nothing is in it.
    let made = place(c"/proc/self/ns/pid_for_children");
    own.is_some() && own != made
}

/// Returns true if orphans among this process's descendants become its children.
fn adopts_orphans() -> bool {
    let mut is_reaper: libc::c_int = 0;
    // SAFETY: writes to a live number.
    unsafe {
        let to = &raw mut is_reaper;
        libc::syscall(libc::SYS_prctl, libc::PR_GET_CHILD_SUBREAPER, to, 0, 0, 0);
        is_reaper != 0 || libc::getpid() == 1
    }
}

/// Starts a process as `flags` say, by way of another that ends at once.
///
/// # Safety
/// As for [`clone_at`]; `between` is the top of another stack.
unsafe fn clone_orphan(
    flags: usize,
    (stack_top, block): (usize, usize),
    between: usize,
    entry: extern "C" fn() -> !,
) -> isize {
    // What it shares it can hand on.
    let shared = libc::CLONE_VM | libc::CLONE_SIGHAND | libc::CLONE_FILES | libc::CLONE_FS;
    let shared = (shared | libc::CLONE_VFORK | libc::CLONE_UNTRACED) as usize;
    let mut number: isize = 0;
    // SAFETY: by the caller's word; this thread waits until the process between has ended, which
    // writes to `number`.
    let middle = unsafe {
        let places = (stack_top, block);
        clone_by_way(shared, between, &raw mut number, flags, places, entry)
    };
    if middle < 0 {
        return middle;
    }
    // Not by way of the C library's function, which is the program's to replace.
    let wait = || {
        let none = std::ptr::null_mut::<u8>();
        // SAFETY: takes no pointers that it uses.
        unsafe { libc::syscall(libc::SYS_wait4, middle, none, libc::__WALL, none) }
    };
    while wait() < 0 {
        // SAFETY: the calling thread's error number.
        if unsafe { *libc::__errno_location() } != libc::EINTR {
            break;
        }
    }
    number
}

/// Asks the program's allocator for what it is asked for where stack slots are made, and gives it
/// back: for a recording in step, where none are.
///
/// That is the C library's table of thread-local variables for each thread that measures
/// (`allocate_dtv` in glibc's `elf/dl-tls.c`): an entry for each library that has any, 14 to spare
/// and two for itself.
pub(crate) fn allocate_as_stack_slots_do() {
    unsafe extern "C" fn visit(
        object: *mut libc::dl_phdr_info,
        _: usize,
        most: *mut c_void,
    ) -> libc::c_int {
        // SAFETY: the dynamic linker hands in a live description, and our own argument.
        unsafe {
            let most = &mut *most.cast::<usize>();
            *most = (*most).max((*object).dlpi_tls_modid);
        }
        0
    }
    let mut modules = 0usize;
    // SAFETY: `visit` writes to `modules` alone.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut modules).cast()) };
    for _ in 0..STACK_SLOTS {
        // SAFETY: freed at once, and not used before.
        unsafe { libc::free(std::hint::black_box(libc::calloc(modules + 16, 16))) };
    }
}

/// Returns true if the calling thread is one of ours.
pub(crate) fn is_own() -> bool {
    let here = thread::thread_pointer();
    tidemark_live::sys::memory::overlaps_own(here, here + 1)
}

/// Makes the calling process, an engine's, one that nothing meant for the program reaches. If it
/// `has_signals` of its own, what it does wrong ends the program.
pub(crate) fn settle(has_signals: bool) {
    // SAFETY: names and groups of the calling process, and its own actions for signals.
    unsafe {
        libc::setpgid(0, 0);
        libc::syscall(
            libc::SYS_prctl,
            libc::PR_SET_NAME,
            c"tidemark-engine".as_ptr(),
            0,
            0,
            0,
        );
    }
    if !has_signals {
        return;
    }
    let mut admitted = 0;
    for signal in CRASHES {
        set_action(signal, end_with_program);
        admitted |= 1 << (signal - 1);
    }
    admit_signals(admitted);
}

/// The signals by which a process learns that it has gone wrong.
const CRASHES: [libc::c_int; 5] = [
    libc::SIGSEGV,
    libc::SIGBUS,
    libc::SIGILL,
    libc::SIGFPE,
    libc::SIGABRT,
];

/// An engine that has gone wrong must not leave the program without its pages.
extern "C" fn end_with_program(_: libc::c_int) {
    tidemark_live::sys::signal::end_process();
}

fn set_action(signal: libc::c_int, action: extern "C" fn(libc::c_int)) {
    // SAFETY: a plain C struct for which zeros are a value; the action never returns.
    unsafe {
        let mut wanted: libc::sigaction = std::mem::zeroed();
        wanted.sa_sigaction = action as *const () as usize;
        libc::sigaction(signal, &raw const wanted, std::ptr::null_mut());
    }
}

/// Ends an engine's thread, or its process if it has one.
pub(crate) fn exit_engine() -> ! {
    if tidemark_live::sys::program::is_engine() {
        tidemark_live::sys::program::leave();
    }
    exit()
}

/// Ends the calling thread, and nothing else.
pub(crate) fn exit() -> ! {
    loop {
        // SAFETY: ends this thread, which is never joined.
        unsafe { libc::syscall(libc::SYS_exit, 0) };
    }
}

/// Sets the calling thread's signal mask, without the exceptions that libc makes for its own
/// signals. Answers the mask before.
pub(crate) fn block_signals(mask: u64) -> u64 {
    change_signals(libc::SIG_SETMASK, mask)
}

/// The mask of the signals that the calling thread blocks.
pub(crate) fn signals_blocked() -> u64 {
    change_signals(libc::SIG_BLOCK, 0)
}

/// Takes the signals of `mask` from those that the calling thread blocks.
pub(crate) fn admit_signals(mask: u64) {
    change_signals(libc::SIG_UNBLOCK, mask);
}

fn change_signals(way: libc::c_int, mask: u64) -> u64 {
    let mut before = 0u64;
    // SAFETY: both point to live masks of the kernel's size.
    unsafe {
        let new = &raw const mask;
        let old = &raw mut before;
        libc::syscall(libc::SYS_rt_sigprocmask, way, new, old, 8usize);
    }
    before
}

/// Runs a thread on the given stack to its end, which notes where its control block is.
///
/// # Safety
/// `start..start + bytes` is memory for nothing else.
unsafe fn run_once(start: usize, bytes: usize) -> Result<(), Errno> {
    // SAFETY: attributes are initialised before use and destroyed after; the stack is the
    // caller's. The thread has ended when the C library is to know that there is one again.
    unsafe {
        let mut attributes: libc::pthread_attr_t = std::mem::zeroed();
        let mut handle: libc::pthread_t = 0;
        let alone = Alone::ask();
        let before = block_signals(u64::MAX);
        let mut answer = libc::pthread_attr_init(&raw mut attributes);
        if answer == 0 {
            answer = libc::pthread_attr_setstack(&raw mut attributes, start as *mut c_void, bytes);
        }
        if answer == 0 {
            let arguments = std::ptr::null_mut();
            let attributes = &raw const attributes;
            answer = libc::pthread_create(&raw mut handle, attributes, note_block, arguments);
        }
        block_signals(before);
        libc::pthread_attr_destroy(&raw mut attributes);
        if answer == 0 {
            answer = libc::pthread_join(handle, std::ptr::null_mut());
        }
        if answer == 0 {
            alone.restore();
            Ok(())
        } else {
            Err(Errno::from_raw_os_error(answer))
        }
    }
}

/// The C library's knowledge that the program has one thread (`<sys/single_threaded.h>`, from glibc
/// 2.32). By it locks and the allocator do without atomic operations, which are 5 % of the time
/// of `sqlite3`. The library forgets it for good when a thread is made, though that ends.
struct Alone {
    /// The addresses of the variable: the library's own, and the copy of a program that uses it.
    places: [*mut bool; 2],
}

impl Alone {
    /// Takes down where the library knows it.
    fn ask() -> Alone {
        let places = [libc::RTLD_DEFAULT, libc::RTLD_NEXT].map(|among| {
            // SAFETY: a name ended by a zero byte.
            let found = unsafe { libc::dlsym(among, c"__libc_single_threaded".as_ptr()) };
            // SAFETY: the library's variable, a `char` that is zero or one.
            match !found.is_null() && unsafe { *found.cast::<u8>() } == 1 {
                true => found.cast(),
                false => std::ptr::null_mut(),
            }
        });
        Alone { places }
    }

    /// Has the library know it again.
    ///
    /// # Safety
    /// Only the calling thread is left of those that the library knows. Engines don't count: they
    /// take none of its locks, and nothing from its allocator.
    unsafe fn restore(self) {
        for place in self.places {
            if !place.is_null() {
                // SAFETY: the library's variable, by the caller's word.
                unsafe { *place = true };
            }
        }
    }
}

extern "C" fn note_block(_: *mut c_void) -> *mut c_void {
    MEASURED_BLOCK.store(thread::thread_pointer(), Ordering::Release);
    // The table goes away with the thread, so that it is copied now.
    let table = thread::dynamic_variables();
    // SAFETY: the C library keeps two words an entry; the entry before the first holds how many
    // there are.
    let copy = unsafe {
        let entries = *((table as *const usize).sub(2));
        let entries = entries.min(MODULES_MAX) + 2;
        Mapping::anonymous((entries * 16).next_multiple_of(PAGE)).map(|own| {
            let to = own.leak() as *mut usize;
            std::ptr::copy_nonoverlapping((table as *const usize).sub(2), to, entries * 2);
            to as usize + 16
        })
    };
    MEASURED_TABLE.store(copy.unwrap_or(0), Ordering::Release);
    std::ptr::null_mut()
}

/// Puts the copied table in place.
///
/// # Safety
/// `block` is a control block that no thread uses.
unsafe fn adopt_table(block: usize, table: usize) -> Result<(), Errno> {
    if table == 0 {
        return Err(Errno::NOMEM);
    }
    let word = if cfg!(target_arch = "x86_64") { 1 } else { 0 };
    // SAFETY: the ABI keeps the table's address in this word of the block.
    unsafe { *(block as *mut usize).add(word) = table };
    Ok(())
}

#[cfg(target_arch = "x86_64")]
unsafe fn clone_at(
    flags: usize,
    stack_top: usize,
    block: usize,
    entry: extern "C" fn() -> !,
) -> isize {
    let answer: isize;
    // SAFETY: the new thread starts on its own stack at `entry` and never comes back here.
    unsafe {
        std::arch::asm!(
            "syscall",
            "test rax, rax",
            "jnz 2f",
            "xor ebp, ebp",
            "call r9",
            "ud2",
            "2:",
            // By name: what the compiler chooses may be the frame pointer.
            in("r9") entry,
            inlateout("rax") libc::SYS_clone as isize => answer,
            in("rdi") flags,
            in("rsi") stack_top,
            in("rdx") 0,
            in("r10") 0,
            in("r8") block,
            out("rcx") _,
            out("r11") _,
        );
    }
    answer
}

/// Makes a process as `first` says, which makes another as `second` says, writes its number to
/// `number`, and ends.
#[cfg(target_arch = "x86_64")]
unsafe fn clone_by_way(
    first: usize,
    first_top: usize,
    number: *mut isize,
    second: usize,
    (second_top, block): (usize, usize),
    entry: extern "C" fn() -> !,
) -> isize {
    let answer: isize;
    // SAFETY: the first process touches no memory but `number`; the second starts on its own stack
    // at `entry` and never comes back here.
    unsafe {
        std::arch::asm!(
            "syscall",
            "test rax, rax",
            "jnz 3f",
            "mov rdi, r12",
            "mov rsi, r13",
            "mov r8, r14",
            "mov eax, {clone}",
            "syscall",
            "test rax, rax",
            "jnz 2f",
            "xor ebp, ebp",
            "call r15",
            "ud2",
            "2:",
            "mov [r9], rax",
            "xor edi, edi",
            "mov eax, {exit}",
            "syscall",
            "ud2",
            "3:",
            clone = const libc::SYS_clone,
            exit = const libc::SYS_exit,
            inlateout("rax") libc::SYS_clone as isize => answer,
            in("rdi") first,
            in("rsi") first_top,
            in("rdx") 0,
            in("r10") 0,
            in("r8") 0,
            in("r9") number,
            in("r12") second,
            in("r13") second_top,
            in("r14") block,
            in("r15") entry,
            out("rcx") _,
            out("r11") _,
        );
    }
    answer
}

/// Makes a process as `first` says, which makes another as `second` says, writes its number to
/// `number`, and ends.
#[cfg(target_arch = "aarch64")]
unsafe fn clone_by_way(
    first: usize,
    first_top: usize,
    number: *mut isize,
    second: usize,
    (second_top, block): (usize, usize),
    entry: extern "C" fn() -> !,
) -> isize {
    let answer: isize;
    // SAFETY: the first process touches no memory but `number`; the second starts on its own stack
    // at `entry` and never comes back here.
    unsafe {
        std::arch::asm!(
            "svc #0",
            "cbnz x0, 3f",
            "mov x0, x10",
            "mov x1, x11",
            "mov x3, x12",
            "mov x8, {clone}",
            "svc #0",
            "cbnz x0, 2f",
            "mov x29, xzr",
            "blr x13",
            "brk #1",
            "2:",
            "str x0, [x14]",
            "mov x0, xzr",
            "mov x8, {exit}",
            "svc #0",
            "brk #1",
            "3:",
            clone = const libc::SYS_clone,
            exit = const libc::SYS_exit,
            in("x8") libc::SYS_clone,
            inlateout("x0") first as isize => answer,
            in("x1") first_top,
            in("x2") 0,
            in("x3") 0,
            in("x4") 0,
            in("x10") second,
            in("x11") second_top,
            in("x12") block,
            in("x13") entry,
            in("x14") number,
        );
    }
    answer
}

#[cfg(target_arch = "aarch64")]
unsafe fn clone_at(
    flags: usize,
    stack_top: usize,
    block: usize,
    entry: extern "C" fn() -> !,
) -> isize {
    let answer: isize;
    // SAFETY: the new thread starts on its own stack at `entry` and never comes back here.
    unsafe {
        std::arch::asm!(
            "svc #0",
            "cbnz x0, 2f",
            "mov x29, xzr",
            "blr x9",
            "brk #1",
            "2:",
            // By name: what the compiler chooses may be the frame pointer.
            in("x9") entry,
            in("x8") libc::SYS_clone,
            inlateout("x0") flags as isize => answer,
            in("x1") stack_top,
            in("x2") 0,
            in("x3") block,
            in("x4") 0,
        );
    }
    answer
}
