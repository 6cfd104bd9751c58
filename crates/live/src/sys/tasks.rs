//! The first thread of the program, from the list of its threads in `/proc`, and the system calls
//! in which threads are.

use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{Mode, OFlags};

use super::{Errno, program};

/// `PF_EXITING` of the kernel's `include/linux/sched.h`.
const EXITING: u64 = 4;

const STAT: &[u8] = b"/stat";

/// One thread's line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Line {
    state: u8,
    flags: u64,
}

/// Opens the list.
pub fn open() -> Result<OwnedFd, Errno> {
    program::open("task", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC)
}

/// The number of the program's thread, if it has one alone.
pub fn only() -> Option<u32> {
    // The folder counts a link for each thread, and two of its own.
    let links = rustix::fs::fstat(open().ok()?).ok()?.st_nlink;
    (links == 3).then(program::number)
}

/// Returns true if the first thread has ended, or is about to. One that executes another program is
/// not.
pub fn is_leader_exiting(list: &OwnedFd) -> bool {
    let line = read_line(list, b"..");
    line.is_none_or(|line| line.has_ended() || line.flags & EXITING != 0)
}

/// Returns true if the first thread has ended, or is about to, of a program whose list of threads
/// is not open.
pub fn is_exiting() -> bool {
    open().map_or(true, |list| is_leader_exiting(&list))
}

/// The whereabouts of a thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum At {
    /// In a system call of this number, with this first argument.
    Call(u64, u64),
    /// In none.
    Outside,
    /// Not there any more.
    Gone,
    /// The thread runs, or the kernel does not tell.
    Unknown,
}

/// Finds where a thread is, by its number in this process's namespace.
///
/// Source: Linux, `proc_pid_syscall(5)`.
pub fn call_of(thread: u32) -> At {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let path = format!("/proc/{thread}/syscall");
    let file = match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(file) => file,
        Err(Errno::NOENT) => return At::Gone,
        Err(_) => return At::Unknown,
    };
    let mut text = [0u8; 256];
    match rustix::io::read(&file, &mut text) {
        Ok(length) => At::of(&text[..length]),
        Err(Errno::SRCH) => At::Gone,
        Err(_) => At::Unknown,
    }
}

impl At {
    fn of(text: &[u8]) -> At {
        let text = std::str::from_utf8(text).unwrap_or_default();
        let mut words = text.split_ascii_whitespace();
        let number = words.next().and_then(|word| word.parse::<i64>().ok());
        let first = words.next().and_then(|word| word.strip_prefix("0x"));
        let first = first.and_then(|word| u64::from_str_radix(word, 16).ok());
        match (number, first) {
            (Some(0..), Some(first)) => At::Call(number.unwrap_or(0).unsigned_abs(), first),
            (Some(..0), _) => At::Outside,
            (None, _) | (Some(0..), None) => At::Unknown,
        }
    }
}

impl Line {
    /// Takes a line of `stat` apart. The name in it may hold anything.
    fn of(text: &[u8]) -> Option<Line> {
        let end = text.iter().rposition(|byte| *byte == b')')?;
        let rest = std::str::from_utf8(text.get(end + 1..)?).ok()?;
        let mut words = rest.split_ascii_whitespace();
        let state = *words.next()?.as_bytes().first()?;
        let flags = words.nth(5)?.parse().ok()?;
        Some(Line { state, flags })
    }

    fn has_ended(&self) -> bool {
        matches!(self.state, b'Z' | b'X' | b'x')
    }
}

fn read_line(list: &OwnedFd, thread: &[u8]) -> Option<Line> {
    let mut path = [0u8; 32];
    let end = thread.len();
    path.get_mut(..end)?.copy_from_slice(thread);
    path.get_mut(end..end + STAT.len())?.copy_from_slice(STAT);
    let path = &path[..end + STAT.len()];
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let file = rustix::fs::openat(list.as_fd(), path, flags, Mode::empty()).ok()?;
    let mut text = [0u8; 1024];
    let length = rustix::io::read(&file, &mut text).ok()?;
    Line::of(&text[..length])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_taken_apart_whatever_the_name() {
        let before = "7 (a) Z (b) ";
        let middle = " 1 2 3 4 5 80 ".to_owned() + &"0 ".repeat(42);
        let text = format!("{before}Z{middle}1536\n");
        let line = Line::of(text.as_bytes()).unwrap();
        assert_eq!((line.state, line.flags), (b'Z', 80));
        assert!(line.has_ended());
        assert_eq!(Line::of(b"7 (a) Z 1 2"), None);
    }

    #[test]
    fn a_thread_is_in_the_call_that_the_kernel_names() {
        assert_eq!(
            At::of(b"202 0x7f10 0x80 0x0 0x7ffe 0x7f40\n"),
            At::Call(202, 0x7f10)
        );
        assert_eq!(At::of(b"-1 0x7ffe3b0 0x7f5c\n"), At::Outside);
        assert_eq!(At::of(b"running\n"), At::Unknown);
        assert_eq!(call_of(u32::MAX >> 1), At::Gone);
    }

    #[test]
    fn a_thread_that_runs_is_not_exiting() {
        assert!(!is_leader_exiting(&open().unwrap()));
    }
}
