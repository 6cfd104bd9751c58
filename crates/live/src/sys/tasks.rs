//! The threads of this process, from their list in `/proc`.
//!
//! The kernel's own that work for a process (for io_uring, say) are in the list, and count for
//! nothing here: they go with those they work for.

use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{Mode, OFlags, RawDir};

use super::{Errno, program};

/// `PF_IO_WORKER` and `PF_USER_WORKER` of the kernel's `include/linux/sched.h`.
const KERNELS_OWN: u64 = 0x10 | 0x4000;

/// `PF_EXITING`, of the same file.
const EXITING: u64 = 4;

const STAT: &[u8] = b"/stat";

/// The state of a thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Standing {
    /// It runs or sleeps, or can't be looked at.
    Here,
    /// It has ended.
    Gone {
        /// The status that it ended with, as `exit` takes it.
        status: i32,
    },
}

/// One thread's line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Line {
    state: u8,
    flags: u64,
    exit_code: i32,
}

/// Opens the list.
pub fn open() -> Result<OwnedFd, Errno> {
    program::open("task", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC)
}

/// The number of threads, with those that have ended and are still known. Cheap.
///
/// Source: Linux, `proc_task_getattr`: each counts as a link of the folder.
pub fn count(list: impl AsFd) -> Option<u32> {
    let links = rustix::fs::fstat(list).ok()?.st_nlink;
    u32::try_from(links).ok()?.checked_sub(2)
}

/// Visits the threads of this process that have not ended, by number, without the kernel's own.
/// Answers how many threads the list had, with those that have ended. `None` if it can't be read.
pub fn visit_running(list: &OwnedFd, mut visit: impl FnMut(u32)) -> Option<u32> {
    rustix::fs::seek(list, rustix::fs::SeekFrom::Start(0)).ok()?;
    let mut listed = 0;
    let mut space = [std::mem::MaybeUninit::<u8>::uninit(); 2048];
    let mut entries = RawDir::new(list, &mut space);
    while let Some(entry) = entries.next() {
        let entry = entry.ok()?;
        let name = entry.file_name();
        let Some(number) = name.to_str().ok().and_then(|name| name.parse().ok()) else {
            continue;
        };
        listed += 1;
        // A thread that can't be read has ended in this very moment.
        let line = read_line(list, name.to_bytes());
        if line.is_some_and(|line| !line.has_ended() && !line.is_kernels()) {
            visit(number);
        }
    }
    Some(listed)
}

/// The state of the first thread of this process.
pub fn leader(list: &OwnedFd) -> Standing {
    // In a list of another namespace it has another number, which is then the folder's own.
    let line = read_line(list, b"..");
    match line.filter(|line| line.has_ended()) {
        Some(line) => Standing::Gone {
            status: line.exit_code >> 8 & 0xff,
        },
        None => Standing::Here,
    }
}

/// Returns true if the first thread has ended, or is about to. One that executes another program is
/// not.
pub fn is_leader_exiting(list: &OwnedFd) -> bool {
    let line = read_line(list, b"..");
    line.is_none_or(|line| line.has_ended() || line.flags & EXITING != 0)
}

/// Ends this process with `status`, at once.
pub fn end_process(status: i32) -> ! {
    loop {
        // SAFETY: ends this process, and nothing is left to be done in it.
        unsafe { libc::syscall(libc::SYS_exit_group, status) };
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
        // The 52nd of all, when the state is the third.
        let exit_code = words.nth(42)?.parse().ok()?;
        Some(Line {
            state,
            flags,
            exit_code,
        })
    }

    fn has_ended(&self) -> bool {
        matches!(self.state, b'Z' | b'X' | b'x')
    }

    fn is_kernels(&self) -> bool {
        self.flags & KERNELS_OWN != 0
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
        assert_eq!((line.state, line.flags, line.exit_code), (b'Z', 80, 1536));
        assert!(line.has_ended() && line.is_kernels());
        assert_eq!(Line::of(b"7 (a) Z 1 2"), None);
    }

    #[test]
    fn threads_are_counted() {
        let list = open().unwrap();
        let (go, wait) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            let _ = wait.recv();
        });
        // Other tests' threads come and go.
        let mut running = Vec::new();
        let listed = visit_running(&list, |number| running.push(number)).unwrap();
        assert!(count(&list).unwrap() >= 2 && running.len() >= 2);
        assert!(listed as usize >= running.len());
        assert!(running.contains(&std::process::id()));
        assert_eq!(leader(&list), Standing::Here);
        drop(go);
        thread.join().unwrap();
    }
}
