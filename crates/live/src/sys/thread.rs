//! The engine's threads: on stacks of their own, deaf to signals, with a file table of their own.

use std::cell::UnsafeCell;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;

use rustix::fs::{Mode, OFlags};
use rustix::thread::{CpuSet, Pid};

use super::memory::Mapping;
use super::{Errno, PAGE, folders, futex, last_error, program, tasks};

const RUNNING: u32 = 0;
const FINISHED: u32 = 1;

/// A thread started by [`spawn`].
pub struct Handle<T> {
    shared: Arc<Packet<T>>,
}

struct Packet<T> {
    state: AtomicU32,
    result: UnsafeCell<Option<T>>,
}

// SAFETY: `result` is written by the new thread before `state` becomes `FINISHED`, and read by
// others only afterwards.
unsafe impl<T: Send> Sync for Packet<T> {}

impl<T> Handle<T> {
    /// Waits for the thread to end, at most for `limit`; answers its result, once.
    ///
    /// The thread may still be on its last instructions, which touch its stack only.
    pub fn join(self, limit: Duration) -> Result<T, Errno> {
        let end = std::time::Instant::now() + limit;
        while !self.is_finished() {
            let left = end.saturating_duration_since(std::time::Instant::now());
            if left.is_zero() {
                return Err(Errno::TIMEDOUT);
            }
            futex::wait(&self.shared.state, RUNNING, left);
        }
        // SAFETY: finished, so the thread has written its result and will not touch it again;
        // `self` is consumed, so it is not read elsewhere.
        unsafe { (*self.shared.result.get()).take() }.ok_or(Errno::CHILD)
    }

    /// Returns true if the thread has ended.
    pub fn is_finished(&self) -> bool {
        self.shared.state.load(Ordering::Acquire) == FINISHED
    }
}

/// Starts a detached thread on a fresh stack of own memory with all signals blocked. The stack is
/// never given back: it is in use until the very end of the thread.
pub fn spawn<T, F>(stack_bytes: usize, body: F) -> Result<Handle<T>, Errno>
where
    T: Send + 'static,
    F: FnOnce() -> T + Send + 'static,
{
    let shared = Arc::new(Packet {
        state: AtomicU32::new(RUNNING),
        result: UnsafeCell::new(None),
    });
    let packet = Arc::clone(&shared);
    let whole = Box::new(move || {
        let value = body();
        // SAFETY: not finished yet, so the result is not read elsewhere.
        unsafe { *packet.result.get() = Some(value) };
        packet.state.store(FINISHED, Ordering::Release);
        futex::wake(&packet.state, u32::MAX);
    });
    start(stack_bytes, whole)?;
    Ok(Handle { shared })
}

/// Runs `body` with every signal blocked in the calling thread, and puts the mask back.
pub fn with_signals_blocked<T>(body: impl FnOnce() -> T) -> T {
    // SAFETY: plain C structs for which zeros are a value, filled in by libc.
    let (mut all, mut before) = unsafe { std::mem::zeroed::<(libc::sigset_t, libc::sigset_t)>() };
    // SAFETY: both point to live signal sets.
    unsafe {
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
    }
    let value = body();
    // SAFETY: `before` was filled in above.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut()) };
    value
}

/// Closes everything in the calling thread's file table, which is its own, but `keep`.
pub fn close_all_but(keep: &[std::os::fd::RawFd]) -> Result<(), Errno> {
    let mut kept: Vec<u32> = keep
        .iter()
        .filter_map(|fd| u32::try_from(*fd).ok())
        .collect();
    kept.sort_unstable();
    let mut first = 0;
    for fd in kept {
        if fd > first {
            close_range(first, fd - 1)?;
        }
        first = fd + 1;
    }
    close_range(first, u32::MAX)
}

/// The calling thread's number.
pub fn current() -> u32 {
    rustix::thread::gettid()
        .as_raw_nonzero()
        .get()
        .unsigned_abs()
}

/// Confines the calling thread to one processor.
pub fn stay_on(cpu: u32) -> Result<(), Errno> {
    let set = only(cpu).ok_or(Errno::INVAL)?;
    rustix::thread::sched_setaffinity(None, &set)
}

/// Lets the calling thread run on every processor the process may use.
pub fn stay_anywhere(allowed: &CpuSet) -> Result<(), Errno> {
    rustix::thread::sched_setaffinity(None, allowed)
}

/// The processors the calling thread may use.
pub fn allowed() -> Result<CpuSet, Errno> {
    rustix::thread::sched_getaffinity(None)
}

/// The processors thread `number` of this process may use.
pub fn allowed_to(number: u32) -> Result<CpuSet, Errno> {
    rustix::thread::sched_getaffinity(Pid::from_raw(number as i32))
}

/// Lets thread `number` of this process use these processors and no others. If it sleeps, that is
/// where it wakes.
pub fn allow(number: u32, processors: &CpuSet) -> Result<(), Errno> {
    rustix::thread::sched_setaffinity(Pid::from_raw(number as i32), processors)
}

/// A set of one processor. `None` if the number is too large.
pub fn only(cpu: u32) -> Option<CpuSet> {
    let mut set = CpuSet::new();
    ((cpu as usize) < CpuSet::MAX_CPU).then(|| {
        set.set(cpu as usize);
        set
    })
}

/// The processor that the thread `number` of this process runs on or ran on last, by the kernel's
/// word. Takes some microseconds; see [`CpuFinder`] for less.
///
/// Source: Linux, `proc_pid_stat(5)`: the 39th field.
pub fn last_cpu(number: u32) -> Option<u32> {
    read_about(number, "stat", |text| {
        // The name, which is the second, may hold anything.
        let (_, rest) = text.rsplit_once(')')?;
        rest.split_ascii_whitespace().nth(36)?.parse().ok()
    })
}

/// The child processes of this process, by number. Looks at every process there is.
///
/// Source: Linux, `proc_pid_stat(5)`: the fourth field.
pub fn children() -> Vec<u32> {
    let own = program::number();
    let mut found = Vec::new();
    // If they can't be listed, none is found.
    let _ = visit_numbers("/proc", |process| {
        let path = format!("/proc/{process}/stat");
        let parent = read_and_find(&path, |text| {
            let (_, rest) = text.rsplit_once(')')?;
            rest.split_ascii_whitespace().nth(1)?.parse().ok()
        });
        if parent == Some(own) {
            found.push(process);
        }
    });
    found
}

/// Reads what the kernel says of the thread `number` of this process.
fn read_about<Answer>(
    number: u32,
    file: &str,
    find: impl FnOnce(&str) -> Option<Answer>,
) -> Option<Answer> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let file = program::open(&format!("task/{number}/{file}"), flags);
    find_in(&file.ok()?, find)
}

/// Reads the beginning of a small file.
fn read_and_find<Answer>(path: &str, find: impl FnOnce(&str) -> Option<Answer>) -> Option<Answer> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, Mode::empty());
    find_in(&file.ok()?, find)
}

fn find_in<Answer>(file: &OwnedFd, find: impl FnOnce(&str) -> Option<Answer>) -> Option<Answer> {
    let mut text = [0; 512];
    let length = rustix::io::read(file, &mut text).ok()?;
    find(std::str::from_utf8(&text[..length]).ok()?)
}

/// The processor the calling thread is on.
pub fn current_cpu() -> u32 {
    u32::try_from(rustix::thread::sched_getcpu()).unwrap_or(0)
}

/// Asks for the scheduling priority `nice` for the calling thread; lower is sooner.
pub fn set_nice(nice: i32) -> Result<(), Errno> {
    let me = Pid::from_raw(current() as i32);
    rustix::process::setpriority_process(me, nice)
}

/// Finds out on which processor other threads of this process run, from the areas they share
/// with the kernel, without a trip through `/proc`.
#[derive(Clone, Copy, Debug)]
pub struct CpuFinder {
    /// From a thread's robust list head to the `cpu_id` of its rseq area.
    offset: isize,
}

impl CpuFinder {
    /// Measures the C library's layout on the calling thread. `None` if it registers no rseq.
    ///
    /// Call it on a thread of the program, before the engine starts: it asks the dynamic linker.
    pub fn new() -> Option<CpuFinder> {
        // SAFETY: a name ended by a zero byte; the answer is null or points to libc's constant.
        let symbol = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"__rseq_offset".as_ptr()) };
        if symbol.is_null() {
            return None;
        }
        // SAFETY: libc declares `__rseq_offset` as `const ptrdiff_t`.
        let rseq_offset = unsafe { *symbol.cast::<isize>() };
        let rseq = thread_pointer().wrapping_add_signed(rseq_offset);
        let head = robust_list_head(current())?;
        // `cpu_id` is the second number of the kernel's `struct rseq`.
        let finder = CpuFinder {
            offset: rseq.wrapping_add(4).wrapping_sub(head) as isize,
        };
        let cpu = finder.find(current())?;
        ((cpu as usize) < CpuSet::MAX_CPU).then_some(finder)
    }

    /// The processor `thread` runs on or ran on last. A thread that ends meanwhile gives `None`.
    pub fn find(&self, thread: u32) -> Option<u32> {
        self.read(self.address_for(thread)?)
    }

    /// The address at which the number of the processor of `thread` is kept: four bytes, in its
    /// control block.
    pub fn address_for(&self, thread: u32) -> Option<usize> {
        Some(robust_list_head(thread)?.wrapping_add_signed(self.offset))
    }

    /// The number of the processor that is kept at [an address](Self::address_for).
    pub fn read(&self, address: usize) -> Option<u32> {
        let mut cpu = [0u8; 4];
        read_own_memory(address, &mut cpu)?;
        let cpu = u32::from_ne_bytes(cpu);
        ((cpu as usize) < CpuSet::MAX_CPU).then_some(cpu)
    }
}

/// The address at which the list of robust locks of `thread` begins: an address inside its control
/// block, which with glibc lies at the top of its stack. Tells which mappings are thread stacks.
pub fn robust_list_head(thread: u32) -> Option<usize> {
    let mut head: usize = 0;
    let mut bytes: usize = 0;
    // SAFETY: both out arguments point to live numbers.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_get_robust_list,
            thread,
            &raw mut head,
            &raw mut bytes,
        )
    };
    (answer == 0 && head != 0).then_some(head)
}

/// Returns true if the thread `number` is surely none of the program's. Zero is no number.
pub fn is_elsewhere(number: u32) -> bool {
    let none = 0;
    // SAFETY: takes no pointers, and sends nothing.
    let answer = unsafe { libc::syscall(libc::SYS_tgkill, program::number(), number, none) };
    answer != 0 && std::io::Error::last_os_error().raw_os_error() == Some(libc::ESRCH)
}

/// The threads of this process, by number, in no order.
pub fn collect_threads(into: &mut Vec<u32>) -> Result<(), Errno> {
    into.clear();
    visit_threads(|thread| into.push(thread))
}

/// Visits the threads of this process, by number, through `/proc`. Allocates nothing.
pub fn visit_threads(visit: impl FnMut(u32)) -> Result<(), Errno> {
    visit_numbers_in(&tasks::open()?, visit)
}

fn visit_numbers(folder: &str, visit: impl FnMut(u32)) -> Result<(), Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    visit_numbers_in(&rustix::fs::open(folder, flags, Mode::empty())?, visit)
}

/// Visits the entries of a folder whose names are numbers. Allocates nothing.
fn visit_numbers_in(tasks: &OwnedFd, mut visit: impl FnMut(u32)) -> Result<(), Errno> {
    folders::visit(tasks, |name| {
        let name = name.to_str().ok();
        if let Some(thread) = name.and_then(|name| name.parse().ok()) {
            visit(thread);
        }
        Ok(())
    })
}

/// Reads this process's memory by way of the kernel: an address that is not mapped gives `None`
/// instead of a signal. The thread that serves its faults must not use it on managed memory.
pub fn read_own_memory(from: usize, into: &mut [u8]) -> Option<()> {
    let local = libc::iovec {
        iov_base: into.as_mut_ptr().cast(),
        iov_len: into.len(),
    };
    let remote = libc::iovec {
        iov_base: from as *mut _,
        iov_len: into.len(),
    };
    let pid = rustix::process::getpid().as_raw_nonzero().get();
    // The kernel looks at the lower half alone; a filter of ours at the other.
    let pid = pid.unsigned_abs() as usize | (super::calls::OWN as usize) << 32;
    // SAFETY: `local` names a live buffer; `remote` is checked by the kernel.
    let read = unsafe {
        let (local, remote) = (&raw const local, &raw const remote);
        libc::syscall(
            libc::SYS_process_vm_readv,
            pid,
            local,
            1usize,
            remote,
            1usize,
            0usize,
        )
    };
    (usize::try_from(read) == Ok(into.len())).then_some(())
}

/// The calling thread's pointer to its control block.
#[cfg(target_arch = "x86_64")]
pub fn thread_pointer() -> usize {
    let pointer: usize;
    // SAFETY: the x86-64 ABI keeps the block's own address in its first word.
    unsafe {
        std::arch::asm!(
            "mov {}, fs:0",
            out(reg) pointer,
            options(nostack, readonly, preserves_flags),
        );
    }
    pointer
}

/// The calling thread's pointer to its control block.
#[cfg(target_arch = "aarch64")]
pub fn thread_pointer() -> usize {
    let pointer: usize;
    // SAFETY: reads the thread register.
    unsafe {
        std::arch::asm!(
            "mrs {}, tpidr_el0",
            out(reg) pointer,
            options(nostack, nomem, preserves_flags),
        );
    }
    pointer
}

/// The address of the calling thread's table of dynamic variables, on the heap of the
/// thread's creator, so that those pages must not be managed.
#[cfg(target_arch = "x86_64")]
pub fn dynamic_variables() -> usize {
    let table: usize;
    // SAFETY: the second word of the control block holds the table's address.
    unsafe {
        std::arch::asm!(
            "mov {}, fs:8",
            out(reg) table,
            options(nostack, readonly, preserves_flags),
        );
    }
    table
}

/// The address of the calling thread's table of dynamic variables, on the heap of the
/// thread's creator, so that those pages must not be managed.
#[cfg(target_arch = "aarch64")]
pub fn dynamic_variables() -> usize {
    // SAFETY: the first word of the control block holds the table's address.
    unsafe { *(thread_pointer() as *const usize) }
}

fn close_range(first: u32, last: u32) -> Result<(), Errno> {
    // SAFETY: closes descriptors of the calling thread's own table.
    let answer = unsafe { libc::syscall(libc::SYS_close_range, first, last, 0u32) };
    if answer == 0 {
        Ok(())
    } else {
        Err(last_error())
    }
}

type Body = Box<dyn FnOnce() + Send>;

/// The number of threads started on stacks of our own.
static STARTED: AtomicUsize = AtomicUsize::new(0);

fn start(stack_bytes: usize, body: Body) -> Result<(), Errno> {
    let stack = Mapping::anonymous(stack_bytes.max(16 * PAGE))?;
    // A pointer to a fat pointer: thin enough for the thread's argument.
    let argument = Box::into_raw(Box::new(body));
    // SAFETY: the stack is fresh memory of that size; the argument is taken back by `enter` once.
    let answer = with_signals_blocked(|| unsafe { create(&stack, argument.cast()) });
    if answer != 0 {
        // SAFETY: no thread was made, so the argument is still ours.
        drop(unsafe { Box::from_raw(argument) });
        return Err(Errno::from_raw_os_error(answer));
    }
    stack.leak();
    STARTED.fetch_add(1, Ordering::Relaxed);
    Ok(())
}

/// Calls `pthread_create` for a detached thread on `stack`.
///
/// # Safety
/// `argument` is a `*mut Body` from `Box::into_raw`; `stack` outlives the thread.
unsafe fn create(stack: &Mapping, argument: *mut std::ffi::c_void) -> i32 {
    // SAFETY: the attributes are initialised before use and destroyed after; the thread's entry
    // takes the argument described above.
    unsafe {
        let mut attributes: libc::pthread_attr_t = std::mem::zeroed();
        let mut thread: libc::pthread_t = 0;
        let mut answer = libc::pthread_attr_init(&raw mut attributes);
        if answer != 0 {
            return answer;
        }
        answer =
            libc::pthread_attr_setstack(&raw mut attributes, stack.as_ptr().cast(), stack.bytes());
        if answer == 0 {
            let detached = libc::PTHREAD_CREATE_DETACHED;
            answer = libc::pthread_attr_setdetachstate(&raw mut attributes, detached);
        }
        if answer == 0 {
            let attributes = &raw const attributes;
            answer = libc::pthread_create(&raw mut thread, attributes, enter, argument);
        }
        libc::pthread_attr_destroy(&raw mut attributes);
        answer
    }
}

extern "C" fn enter(argument: *mut std::ffi::c_void) -> *mut std::ffi::c_void {
    // SAFETY: `start` made this pointer and gives it to exactly one thread.
    let body = unsafe { Box::from_raw(argument.cast::<Body>()) };
    body();
    std::ptr::null_mut()
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

    use rustix::thread::UnshareFlags;

    use super::*;
    use crate::sys::{memory, socket};

    const PATIENCE: Duration = Duration::from_secs(10);

    #[test]
    fn a_thread_runs_on_a_stack_of_our_own_with_signals_blocked() {
        let body = || {
            let mark = 0u8;
            let at = &raw const mark as usize;
            // SAFETY: a C struct for which zeros are a value, filled in by the call.
            let is_blocked = unsafe {
                let mut mask: libc::sigset_t = std::mem::zeroed();
                libc::pthread_sigmask(libc::SIG_BLOCK, std::ptr::null(), &raw mut mask);
                libc::sigismember(&raw const mask, libc::SIGTERM) == 1
            };
            (memory::overlaps_own(at, at + 1), is_blocked, current())
        };
        let answer = spawn(256 * 1024, body).unwrap().join(PATIENCE).unwrap();
        assert_eq!((answer.0, answer.1), (true, true));
        assert_ne!(answer.2, current());
    }

    #[test]
    fn waiting_for_a_thread_has_a_limit() {
        let (ours, theirs) = socket::pair().unwrap();
        let handle = spawn(0, move || rustix::io::read(&theirs, &mut [0; 1]).unwrap()).unwrap();
        assert!(!handle.is_finished());
        assert_eq!(handle.join(Duration::from_millis(20)), Err(Errno::TIMEDOUT));
        drop(ours);
    }

    #[test]
    fn a_file_table_of_its_own_hides_and_closes_nothing_of_ours() {
        let (ours, theirs) = socket::pair().unwrap();
        let kept = theirs.as_raw_fd();
        let body = move || {
            // SAFETY: only this thread's view changes; it has opened nothing.
            unsafe { rustix::thread::unshare_unsafe(UnshareFlags::FILES).unwrap() };
            close_all_but(&[kept]).unwrap();
            let mut fds = Vec::new();
            for fd in 0..1024 {
                // SAFETY: asks about a number, open or not.
                if unsafe { libc::fcntl(fd, libc::F_GETFD) } >= 0 {
                    fds.push(fd);
                }
            }
            // Opened here, and here only.
            let bell = socket::Bell::new().unwrap();
            (fds, std::os::fd::AsFd::as_fd(&bell).as_raw_fd())
        };
        let (fds, _) = spawn(0, body).unwrap().join(PATIENCE).unwrap();
        assert_eq!(fds, [kept]);
        assert!(socket::send(&ours, b"still open", &[]).is_ok());
        drop(theirs);
    }

    #[test]
    fn the_processor_of_another_thread_is_found() {
        let Some(finder) = CpuFinder::new() else {
            return super::super::testing::skip("a C library that registers rseq");
        };
        let allowed = allowed().unwrap();
        let cpus: Vec<u32> = (0..CpuSet::MAX_CPU)
            .filter(|cpu| allowed.is_set(*cpu))
            .map(|cpu| cpu as u32)
            .collect();
        let (ours, theirs) = socket::pair().unwrap();
        let wanted = *cpus.last().unwrap();
        let (sender, receiver) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            stay_on(wanted).unwrap();
            assert_eq!(current_cpu(), wanted);
            sender.send(current()).unwrap();
            rustix::io::read(&theirs, &mut [0; 1]).unwrap();
        });
        let number = receiver.recv_timeout(PATIENCE).unwrap();
        assert_eq!(finder.find(number), Some(wanted));
        let mut threads = Vec::new();
        collect_threads(&mut threads).unwrap();
        assert!(threads.contains(&number) && threads.contains(&current()));
        drop(ours);
        thread.join().unwrap();
        assert_eq!(finder.find(u32::MAX >> 2), None);
    }

    #[test]
    fn memory_that_is_not_mapped_is_an_answer_and_no_signal() {
        let there = 0x1234_5678_u32.to_ne_bytes();
        let mut copy = [0; 4];
        assert_eq!(
            read_own_memory(there.as_ptr() as usize, &mut copy),
            Some(())
        );
        assert_eq!(copy, there);
        assert_eq!(read_own_memory(16, &mut copy), None);
    }
}
