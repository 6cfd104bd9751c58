//! A thread or a process seen from another one: its processor time, its system calls, and the
//! instructions that it carries out.
//!
//! Counts come from the kernel's performance events: nothing stands between the one that is counted
//! and the kernel, and a count is read when it is wanted. The kernel permits that to root, and to
//! others as `kernel.perf_event_paranoid` says.

use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

use rustix::fs::{CWD, Mode, OFlags};
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};

use super::{Errno, last_error};

/// The system calls that are counted one by one, by name and number.
pub const NAMED: [(&str, i64); 10] = [
    ("read", libc::SYS_read),
    ("ioctl", libc::SYS_ioctl),
    ("ppoll", libc::SYS_ppoll),
    ("madvise", libc::SYS_madvise),
    ("process_madvise", libc::SYS_process_madvise),
    ("io_uring_enter", libc::SYS_io_uring_enter),
    ("futex", libc::SYS_futex),
    ("clock_gettime", libc::SYS_clock_gettime),
    ("process_vm_readv", libc::SYS_process_vm_readv),
    ("sched_setaffinity", libc::SYS_sched_setaffinity),
];

/// The place where the kernel shows its tracepoints, if they are mounted.
const TRACEPOINTS: &str = "/sys/kernel/tracing";
/// The file there with the number of the tracepoint at which every system call begins.
const CALLS_BEGIN: &str = "events/raw_syscalls/sys_enter/id";

/// `perf_event_attr` of `include/uapi/linux/perf_event.h`, in its first version.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    breakpoint: u32,
    breakpoint_address: u64,
}

/// Kinds, a hardware event, flags and a request of the same header.
const HARDWARE: u32 = 0;
const TRACEPOINT: u32 = 2;
const INSTRUCTIONS: u64 = 1;
const INHERIT: u64 = 1 << 1;
const EXCLUDE_KERNEL: u64 = 1 << 5;
const EXCLUDE_HYPERVISOR: u64 = 1 << 6;
const SET_FILTER: u64 = 0x4008_2406;

/// Processor time. How it is divided is sampled, and known some milliseconds later.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// All of it, in nanoseconds.
    pub all_ns: u64,
    /// In user mode, in nanoseconds.
    pub user_ns: u64,
    /// In the kernel, in nanoseconds.
    pub system_ns: u64,
}

/// The processor time of the calling thread.
pub fn thread_spent() -> Spent {
    // SAFETY: a `rusage` of zeros is a valid one.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a whole `rusage` that no other code has.
    let result = unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) };
    assert_eq!(result, 0, "a thread's own times can always be asked for");
    let [user_ns, system_ns] = [usage.ru_utime, usage.ru_stime]
        .map(|time| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1000);
    Spent {
        all_ns: clock_ns(libc::CLOCK_THREAD_CPUTIME_ID),
        user_ns,
        system_ns,
    }
}

/// The processor time of a process; zero if there is none of that number.
pub fn process_ns(process: u32) -> u64 {
    const SCHEDULED: i32 = 2;
    clock_ns(((!(process as i32)) << 3) | SCHEDULED)
}

/// The processor time of a thread of this process; zero if there is none of that number.
pub fn thread_ns(thread: u32) -> u64 {
    const OF_THREAD: i32 = 4 | 2;
    clock_ns(((!(thread as i32)) << 3) | OF_THREAD)
}

/// The time of a clock. Those of processes and threads are numbered by them: see
/// `clock_getcpuclockid(3)`.
fn clock_ns(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: writes to a live time.
    match unsafe { libc::clock_gettime(clock, &raw mut time) } {
        0 => time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64,
        _ => 0,
    }
}

/// A count of one thread, and of the threads that it starts from now on.
#[derive(Debug)]
pub struct Counter {
    event: OwnedFd,
}

impl Counter {
    /// Counts the system calls of a thread from now on: those with this number, or all.
    ///
    /// # Errors
    /// The kernel's, if it does not show its tracepoints or does not permit to count.
    pub fn of_system_calls(thread: u32, number: Option<i64>) -> Result<Counter, Errno> {
        let counter = Counter::open(
            thread,
            &Attributes {
                kind: TRACEPOINT,
                config: tracepoint()?,
                sample_period: 1,
                flags: INHERIT,
                ..Attributes::default()
            },
        )?;
        if let Some(number) = number {
            counter.set_filter(number)?;
        }
        Ok(counter)
    }

    /// Counts the instructions of a thread in user mode from now on.
    ///
    /// # Errors
    /// The kernel's, if the processor does not count or the kernel does not permit it.
    pub fn of_instructions(thread: u32) -> Result<Counter, Errno> {
        Counter::open(
            thread,
            &Attributes {
                kind: HARDWARE,
                config: INSTRUCTIONS,
                flags: INHERIT | EXCLUDE_KERNEL | EXCLUDE_HYPERVISOR,
                ..Attributes::default()
            },
        )
    }

    /// The count so far.
    pub fn read(&self) -> u64 {
        let mut bytes = [0; 8];
        match rustix::io::read(&self.event, &mut bytes) {
            Ok(8) => u64::from_ne_bytes(bytes),
            _ => 0,
        }
    }

    fn open(thread: u32, attributes: &Attributes) -> Result<Counter, Errno> {
        let attributes = Attributes {
            size: size_of::<Attributes>() as u32,
            ..*attributes
        };
        const ANY_PROCESSOR: i32 = -1;
        const NO_GROUP: i32 = -1;
        const CLOSE_ON_EXEC: u64 = 8;
        // SAFETY: reads the live attributes, whose size they say.
        let answer = unsafe {
            libc::syscall(
                libc::SYS_perf_event_open,
                &raw const attributes,
                thread,
                ANY_PROCESSOR,
                NO_GROUP,
                CLOSE_ON_EXEC,
            )
        };
        match i32::try_from(answer) {
            Ok(event @ 0..) => {
                // SAFETY: the kernel has just made this descriptor for us alone.
                let event = unsafe { OwnedFd::from_raw_fd(event) };
                Ok(Counter { event })
            }
            _ => Err(last_error()),
        }
    }

    fn set_filter(&self, number: i64) -> Result<(), Errno> {
        let text = std::ffi::CString::new(format!("id == {number}"));
        let text = text.expect("a number has no zero byte");
        // SAFETY: the request takes a text that ends in zero, which lives until it is done.
        let answer = unsafe { libc::ioctl(self.event.as_raw_fd(), SET_FILTER, text.as_ptr()) };
        match answer {
            0 => Ok(()),
            _ => Err(last_error()),
        }
    }
}

/// The number of the tracepoint at which every system call begins.
fn tracepoint() -> Result<u64, Errno> {
    let path = format!("{TRACEPOINTS}/{CALLS_BEGIN}");
    let file = match open(CWD, &path) {
        Err(Errno::NOENT) => open(mount_tracepoints()?, CALLS_BEGIN)?,
        opened => opened?,
    };
    let mut text = [0; 24];
    let length = rustix::io::read(&file, &mut text)?;
    let text = std::str::from_utf8(&text[..length]).map_err(|_| Errno::PROTO)?;
    text.trim().parse().map_err(|_| Errno::PROTO)
}

fn open(folder: impl AsFd, path: &str) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    rustix::fs::openat(folder, path, flags, Mode::empty())
}

/// Mounts the tracepoints for the caller alone: the mount has no place, and goes with its file.
fn mount_tracepoints() -> Result<OwnedFd, Errno> {
    let context = fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(&context)?;
    let attributes = MountAttrFlags::MOUNT_ATTR_RDONLY;
    fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)
}

/// A forked child that sleeps until it is dropped.
#[derive(Debug)]
pub struct Sleeper {
    process: libc::pid_t,
    /// The child waits for the end of this.
    bell: Option<OwnedFd>,
}

impl Sleeper {
    /// Forks. The child makes two system calls and touches nothing but its stack.
    ///
    /// # Errors
    /// The kernel's, or those of the engine that the child was to have.
    pub fn fork() -> Result<Sleeper, Errno> {
        let (end, bell) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
        let [end_number, bell_number] = [end.as_raw_fd(), bell.as_raw_fd()];
        // SAFETY: the child makes system calls alone, which is safe after a fork of any process.
        match unsafe { libc::fork() } {
            0 => {
                let mut byte = 0u8;
                // SAFETY: the descriptors are open in the child; the byte lives on its stack.
                unsafe {
                    libc::close(bell_number);
                    libc::read(end_number, (&raw mut byte).cast(), 1);
                    libc::_exit(0)
                }
            }
            -1 => Err(last_error()),
            process => Ok(Sleeper {
                process,
                bell: Some(bell),
            }),
        }
    }
}

impl Drop for Sleeper {
    /// Wakes the child and waits for its end, for some seconds; after that it is killed.
    fn drop(&mut self) {
        self.bell = None;
        let begin = std::time::Instant::now();
        loop {
            let mut status = 0;
            // SAFETY: a child of this process, and a live status.
            let ended = unsafe { libc::waitpid(self.process, &raw mut status, libc::WNOHANG) };
            if ended != 0 || begin.elapsed().as_secs() > 20 {
                return;
            }
            if begin.elapsed().as_secs() > 10 {
                // SAFETY: takes no pointer; the child has not been waited for, so the number is
                // its own.
                unsafe { libc::kill(self.process, libc::SIGKILL) };
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::thread;

    #[test]
    fn system_calls_of_a_kind_are_counted_where_that_is_permitted() {
        let thread = thread::current();
        let all = match Counter::of_system_calls(thread, None) {
            Ok(counter) => counter,
            Err(error) => {
                let why = format!("system calls can't be counted: {error}");
                return tidemark_testing::skip(&why);
            }
        };
        let asked = Counter::of_system_calls(thread, Some(libc::SYS_getppid)).unwrap();
        let before = (all.read(), asked.read());
        for _ in 0..5 {
            // SAFETY: takes nothing.
            unsafe { libc::syscall(libc::SYS_getppid) };
        }
        assert_eq!(asked.read() - before.1, 5);
        assert!(all.read() - before.0 >= 5);
    }

    #[test]
    fn processor_time_is_that_of_the_process_and_the_thread() {
        let begin = std::time::Instant::now();
        let before = thread_spent();
        while begin.elapsed().as_millis() < 20 {
            std::hint::black_box(0);
        }
        let after = thread_spent();
        assert!(after.all_ns > before.all_ns);
        assert!(thread_ns(thread::current()) > 0);
        assert!(process_ns(std::process::id()) >= thread_ns(thread::current()));
        // More than the kernel gives out.
        assert_eq!(process_ns((1 << 22) | 1), 0);
    }

    #[test]
    fn a_sleeper_ends_when_it_is_dropped() {
        let sleeper = Sleeper::fork().unwrap();
        let process = sleeper.process;
        drop(sleeper);
        // SAFETY: takes no pointer.
        assert_eq!(unsafe { libc::kill(process, 0) }, -1);
    }
}
