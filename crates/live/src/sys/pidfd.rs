//! The end of a process, told by its pidfd to any holder of it.

use std::os::fd::OwnedFd;

use rustix::ioctl::{Opcode, Updater, opcode};
use rustix::process::{Pid, PidfdFlags};

/// The way in which a process ended, if it has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// The process ended by itself, with this status.
    Status(u32),
    /// This signal ended it.
    Signal(u32),
}

/// `struct pidfd_info` of Linux 6.15.
#[repr(C)]
#[derive(Default)]
struct Info {
    mask: u64,
    cgroup: u64,
    numbers: [u32; 11],
    exit_code: i32,
}

const GET_INFO: Opcode = opcode::read_write::<Info>(0xff, 11);
const WITH_EXIT: u64 = 1 << 3;

/// A descriptor of a thread of this process. `None` where the kernel has none (before Linux 6.9),
/// and for a number that is no thread's in this process's own namespace.
pub fn of_thread(number: u32) -> Option<OwnedFd> {
    // `PIDFD_THREAD`, which is `O_EXCL`.
    let flags = PidfdFlags::from_bits_retain(libc::O_EXCL as u32);
    let thread = Pid::from_raw(i32::try_from(number).ok()?)?;
    rustix::process::pidfd_open(thread, flags).ok()
}

/// The end of the process or thread behind `pidfd`. `None` as long as its parent has not been told,
/// and where the kernel does not say (before Linux 6.15).
pub fn end_of(pidfd: &OwnedFd) -> Option<End> {
    let mut info = Info {
        mask: WITH_EXIT,
        ..Info::default()
    };
    // SAFETY: opcode and argument belong together.
    let asked = unsafe { rustix::ioctl::ioctl(pidfd, Updater::<GET_INFO, _>::new(&mut info)) };
    let is_told = asked.is_ok() && info.mask & WITH_EXIT != 0;
    is_told.then(|| End::of_wait_status(info.exit_code.cast_unsigned()))
}

impl End {
    /// The end that a status as `wait` gives it means.
    pub fn of_wait_status(status: u32) -> End {
        match status & 0x7f {
            0 => End::Status(status >> 8 & 0xff),
            signal => End::Signal(signal),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::pidfd_open;
    use std::process::Command;

    #[test]
    fn a_wait_status_is_taken_apart() {
        assert_eq!(End::of_wait_status(7 << 8), End::Status(7));
        assert_eq!(End::of_wait_status(9), End::Signal(9));
        assert_eq!(End::of_wait_status(0x80 | 11), End::Signal(11));
    }

    #[test]
    fn the_end_of_a_process_is_told_once_it_has_been_waited_for() {
        for (script, end) in [("exit 7", End::Status(7)), ("kill -9 $$", End::Signal(9))] {
            let mut child = Command::new("sh").args(["-c", script]).spawn().unwrap();
            let pidfd = pidfd_open(Pid::from_child(&child), PidfdFlags::empty()).unwrap();
            child.wait().unwrap();
            // Nothing, where the kernel is older.
            assert!([None, Some(end)].contains(&end_of(&pidfd)));
        }
    }
}
