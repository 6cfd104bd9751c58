//! The program, seen from its engine: the process whose memory both share.
//!
//! There `getpid` and `/proc/self` are the engine's. What is known here was noted on a thread of
//! the program, before that started the engine.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};

use super::{Errno, tasks, thread};

static NUMBER: AtomicU32 = AtomicU32::new(0);
static PARENT: AtomicU32 = AtomicU32::new(0);
/// The engine's process, where that is not the program's; zero: there is none.
static ENGINE: AtomicU32 = AtomicU32::new(0);
static IS_APART: AtomicBool = AtomicBool::new(false);
/// The program's folder in `/proc`, in the engine's file table; less than zero: there is none.
static FOLDER: AtomicI32 = AtomicI32::new(NONE);
/// The connection to the supervisor, there, too; or an error number, less than zero.
static CONNECTION: AtomicI32 = AtomicI32::new(NONE);
/// The connection to the supervisor while the engine is at work, less than zero if there is none.
static CONTROL: AtomicI32 = AtomicI32::new(NONE);
/// True while the engine has the program's standard error.
static IS_STARTING: AtomicBool = AtomicBool::new(false);
/// Reports the program's end; there, too.
static LIFE: AtomicI32 = AtomicI32::new(NONE);

const NONE: i32 = i32::MIN;

/// The files that a new engine gets copies of, and the program need not keep.
#[derive(Debug)]
pub struct Lent(#[allow(dead_code)] [Option<OwnedFd>; 2]);

/// Notes the calling process as the program, whose engine is to be another. The program itself must
/// `connect` to the supervisor, because the kernel reports the caller. What is lent must stay open
/// until the engine has started.
pub fn note_here(connect: impl FnOnce() -> Option<io::Result<OwnedFd>>) -> Lent {
    ENGINE.store(0, Ordering::Relaxed);
    NUMBER.store(own(), Ordering::Relaxed);
    PARENT.store(own_parent(), Ordering::Relaxed);
    IS_APART.store(true, Ordering::Relaxed);
    let folder = open_folder().ok();
    let connection = connect();
    let number = |file: &OwnedFd| file.as_raw_fd();
    FOLDER.store(folder.as_ref().map_or(NONE, number), Ordering::Relaxed);
    let connected = match &connection {
        None => NONE,
        Some(Ok(file)) => number(file),
        Some(Err(error)) => -error.raw_os_error().unwrap_or(libc::EIO),
    };
    CONNECTION.store(connected, Ordering::Release);
    Lent([folder, connection.and_then(Result::ok)])
}

/// Notes the calling process as the engine of the program that has been noted. If it `has_files` in
/// a table of its own, closes all but those that are lent to it.
pub fn begin_engine(has_files: bool) -> Result<(), Errno> {
    if has_files {
        let kept = [&FOLDER, &CONNECTION].map(|number| number.load(Ordering::Acquire));
        let kept = kept.into_iter().filter(|number| *number >= 0);
        let kept: Vec<RawFd> = kept.chain([libc::STDERR_FILENO]).collect();
        thread::close_all_but(&kept)?;
    }
    let program = Pid::from_raw(NUMBER.load(Ordering::Relaxed) as i32).ok_or(Errno::SRCH)?;
    let life = pidfd_open(program, PidfdFlags::empty())?;
    LIFE.store(life.into_raw_fd(), Ordering::Relaxed);
    ENGINE.store(own(), Ordering::Release);
    if is_engine() {
        raise_size_limit();
    }
    IS_STARTING.store(has_files, Ordering::Relaxed);
    Ok(())
}

/// Lets this process, and not the program, write files as large as it may: a limit of the program's
/// is not about swap, nor about what it writes by mappings.
fn raise_size_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let most = getrlimit(Resource::Fsize).maximum;
    for limit in [None, most] {
        let limits = Rlimit {
            current: limit,
            maximum: limit,
        };
        // Without a privilege it stays below the most that was left.
        if setrlimit(Resource::Fsize, limits).is_ok() {
            return;
        }
    }
}

/// Ends the start of an engine, which has kept the program's standard error until now, and says at
/// which connection there is a supervisor, who writes for it where the kernel does not let it.
pub fn end_start(control: Option<BorrowedFd<'_>>) {
    CONTROL.store(
        control.map_or(NONE, |file| file.as_raw_fd()),
        Ordering::Relaxed,
    );
    if is_engine() && IS_STARTING.swap(false, Ordering::AcqRel) {
        // SAFETY: kept for this by `begin_engine`, and not used elsewhere from now on.
        unsafe { libc::close(libc::STDERR_FILENO) };
    }
}

/// The connection to the supervisor, if there is one.
pub fn control() -> Option<BorrowedFd<'static>> {
    file_of(&CONTROL).filter(|_| is_engine())
}

/// A file of the program's, by its number: for the engine a copy of it.
pub fn copy_of_file(number: RawFd) -> Result<OwnedFd, Errno> {
    let copied = copy_of_others_file(number_of(id()), number);
    if copied.is_err() && number == libc::STDERR_FILENO && IS_STARTING.load(Ordering::Relaxed) {
        // SAFETY: open until the start is over, which this thread makes.
        let kept = unsafe { BorrowedFd::borrow_raw(number) };
        return rustix::io::fcntl_dupfd_cloexec(kept, 0);
    }
    copied
}

/// A copy of a file of another process.
pub fn copy_of_others_file(process: u32, number: RawFd) -> Result<OwnedFd, Errno> {
    let process = Pid::from_raw(process as i32).ok_or(Errno::SRCH)?;
    let process = pidfd_open(process, PidfdFlags::empty())?;
    pidfd_getfd(process, number, PidfdGetfdFlags::empty())
}

fn open_folder() -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::open("/proc/self", flags, Mode::empty())
}

/// The connection that the program has made; engine only, and once.
pub fn take_connection() -> io::Result<OwnedFd> {
    match CONNECTION.swap(NONE, Ordering::AcqRel) {
        NONE => Err(io::ErrorKind::NotConnected.into()),
        // SAFETY: lent to this process, which keeps it, and given out once.
        number @ 0.. => Ok(unsafe { OwnedFd::from_raw_fd(number) }),
        error => Err(io::Error::from_raw_os_error(-error)),
    }
}

/// The program's number.
pub fn number() -> u32 {
    match is_engine() {
        true => NUMBER.load(Ordering::Relaxed),
        false => own(),
    }
}

/// The number of the program's parent; to an engine, when the program was noted.
pub fn parent() -> u32 {
    match is_engine() {
        true => PARENT.load(Ordering::Relaxed),
        false => own_parent(),
    }
}

/// The program's number, as system calls take it.
pub fn id() -> Pid {
    Pid::from_raw(number() as i32).expect("no process has the number zero")
}

/// Returns true if an engine is a process of its own, as those of the preload library are.
pub fn is_apart() -> bool {
    IS_APART.load(Ordering::Relaxed)
}

/// Returns true if the calling process is an engine's, and not the program's.
pub fn is_engine() -> bool {
    is_apart() && ENGINE.load(Ordering::Acquire) == own()
}

/// Opens a file of the program's folder in `/proc`.
pub fn open(name: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
    if !is_engine() {
        return rustix::fs::openat(open_folder()?, name, flags, Mode::empty());
    }
    let folder = file_of(&FOLDER).ok_or(Errno::NOENT)?;
    rustix::fs::openat(folder, name, flags, Mode::empty())
}

/// The processor time that the program has used.
pub fn processor_ns() -> u64 {
    if !is_engine() {
        return time_ns(libc::CLOCK_PROCESS_CPUTIME_ID);
    }
    // The clock of another process: see `clock_getcpuclockid(3)`.
    const SCHEDULED: i32 = 2;
    time_ns((!(number() as i32)) << 3 | SCHEDULED)
}

fn time_ns(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: writes to a live time.
    let answer = unsafe { libc::clock_gettime(clock, &raw mut time) };
    match answer {
        0 => time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64,
        _ => 0,
    }
}

/// Waits until the program has ended, all of its threads, for `limit_ns` at most. Whether it has.
/// Engine only.
pub fn await_end(limit_ns: u64) -> bool {
    let Some(life) = file_of(&LIFE) else {
        return false;
    };
    let mut files = [PollFd::new(&life, PollFlags::IN)];
    matches!(poll(&mut files, Some(&super::timespec(limit_ns))), Ok(1..))
}

/// Returns true if there is no process with this number, or all of its threads have ended and only
/// its parent has not taken note.
pub fn is_over(process: u32) -> bool {
    let Some(process) = Pid::from_raw(process as i32) else {
        return true;
    };
    let Ok(life) = pidfd_open(process, PidfdFlags::empty()) else {
        return true;
    };
    let mut files = [PollFd::new(&life, PollFlags::IN)];
    matches!(poll(&mut files, Some(&super::timespec(0))), Ok(1..))
}

/// Returns true if the program's process has other memory by now: it has executed another program.
/// `None` if it can't be told. Engine only.
pub fn has_other_memory() -> Option<bool> {
    // A first thread that has ended has none, and others may go on in that of the engine.
    differs_from(number()).filter(|differs| !differs || !tasks::is_exiting())
}

/// The number of the namespace that the calling process has its number in; zero if it can't be
/// told.
pub fn namespace() -> u32 {
    let link = rustix::fs::readlink("/proc/self/ns/pid", Vec::new());
    let link = link.ok().and_then(|link| link.into_string().ok());
    let number = link.as_deref().and_then(|link| {
        let number = link.strip_prefix("pid:[")?.strip_suffix(']')?;
        number.parse().ok()
    });
    number.unwrap_or(0)
}

/// Returns true if the calling process has its number in that namespace.
pub fn is_in_namespace(number: u32) -> bool {
    number != 0 && namespace() == number
}

/// Returns true if a process shares the engine's memory.
pub fn shares_memory_with(process: u32) -> bool {
    differs_from(process) == Some(false)
}

fn differs_from(process: u32) -> Option<bool> {
    /// `KCMP_VM` of the kernel's `include/uapi/linux/kcmp.h`.
    const MEMORY: i32 = 1;
    let own = own();
    // SAFETY: takes no pointers.
    let answer = unsafe { libc::syscall(libc::SYS_kcmp, own, process, MEMORY, 0usize, 0usize) };
    (answer >= 0).then_some(answer != 0)
}

/// Sends the program a signal. Engine only.
pub fn signal(number: i32) {
    let Some(life) = file_of(&LIFE) else { return };
    // SAFETY: takes no pointer that it uses.
    unsafe {
        let none = std::ptr::null_mut::<u8>();
        let call = libc::SYS_pidfd_send_signal;
        libc::syscall(call, life.as_raw_fd(), number, none, 0u32);
    }
}

/// Ends the calling process, which is the engine's, and nothing else.
pub fn leave() -> ! {
    loop {
        // SAFETY: ends this process, and nothing is left to be done in it.
        unsafe { libc::syscall(libc::SYS_exit_group, 0) };
    }
}

/// A file that the engine keeps open for as long as it is there.
fn file_of(number: &AtomicI32) -> Option<BorrowedFd<'static>> {
    let number = Some(number.load(Ordering::Relaxed)).filter(|number| *number >= 0);
    // SAFETY: as said above; only the engine, which has it, asks.
    number.map(|number| unsafe { BorrowedFd::borrow_raw(number) })
}

fn own() -> u32 {
    number_of(rustix::process::getpid())
}

fn own_parent() -> u32 {
    rustix::process::getppid().map_or(0, number_of)
}

fn number_of(process: Pid) -> u32 {
    process.as_raw_nonzero().get().unsigned_abs()
}

/// Has `run` called when the program ends by returning from `main` or by `exit`. Answers whether it
/// will be.
pub fn call_at_exit(run: extern "C" fn()) -> bool {
    // SAFETY: the function may be called by any thread, and takes nothing.
    unsafe { libc::atexit(run) == 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_over_before_its_parent_takes_note() {
        let begun = std::process::Command::new("cat")
            .stdin(std::process::Stdio::piped())
            .spawn();
        let mut child = begun.unwrap();
        assert!(!is_over(child.id()) && !is_over(own()));
        drop(child.stdin.take());
        while !is_over(child.id()) {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        child.wait().unwrap();
        assert!(is_over(child.id()) && is_over(0));
    }
}
