//! Files on their way between the program's table and its engine's.

use std::os::fd::{BorrowedFd, OwnedFd, RawFd};

use super::{Errno, program, socket};

/// A message that is a file alone.
const FILE: u8 = 0xff;

/// A copy, in the calling thread's table, of the file that the process's first thread knows by
/// `number`.
pub fn copy_of_programs(number: RawFd) -> Result<OwnedFd, Errno> {
    program::copy_of_file(number)
}

/// Sends one file alone.
pub fn send_one(socket: &OwnedFd, shown: BorrowedFd<'_>) -> Result<(), Errno> {
    socket::send(socket, &[FILE], &[shown])
}

/// Takes the file that is sent first.
pub fn take_shown(socket: &OwnedFd) -> Result<OwnedFd, Errno> {
    let mut received = socket::receive(socket, &mut [0])?;
    received.fds.pop().ok_or(Errno::PROTO)
}

#[cfg(test)]
mod tests {
    use std::os::fd::{AsFd, AsRawFd};

    use super::*;

    #[test]
    fn a_file_is_sent_and_taken() {
        let (ours, theirs) = socket::packets().unwrap();
        let copy = copy_of_programs(theirs.as_raw_fd()).unwrap();
        drop(theirs);
        send_one(&copy, ours.as_fd()).unwrap();
        assert!(rustix::io::fcntl_getfd(take_shown(&ours).unwrap()).is_ok());
    }
}
