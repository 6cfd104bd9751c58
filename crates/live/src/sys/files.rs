//! The files of a thread's own table, on their way to another thread that takes its place.
//!
//! A table of files lives as long as a thread that uses it. What is to outlive both is sent through
//! a socket, which keeps it until someone receives it.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use super::socket::{self, FDS_MAX};
use super::{Errno, program, thread};

/// The numbers looked at: a thread with files of its own has few.
const NUMBERS: RawFd = 64;
/// Ends the messages.
const END: u8 = 0xff;

/// A copy, in the calling thread's table, of the file that the process's first thread knows by
/// `number`.
pub fn copy_of_programs(number: RawFd) -> Result<OwnedFd, Errno> {
    program::copy_of_file(number)
}

/// Sends every file of the calling thread's table, but `socket` and `except`: first `shown` alone,
/// which is for the thread that [waits](take_shown) meanwhile.
pub fn send_all(socket: &OwnedFd, except: Option<RawFd>, shown: &OwnedFd) -> Result<(), Errno> {
    socket::send(socket, &[END], &[shown.as_fd()])?;
    let is_sent = |number: &RawFd| *number != socket.as_raw_fd() && Some(*number) != except;
    let mut open = (0..NUMBERS).filter(is_sent).filter(|number| {
        // SAFETY: asks about a number, open or not.
        let file = unsafe { BorrowedFd::borrow_raw(*number) };
        rustix::io::fcntl_getfd(file).is_ok()
    });
    loop {
        let mut numbers = [0u8; FDS_MAX];
        let mut count = 0;
        for number in open.by_ref().take(FDS_MAX) {
            numbers[count] = number as u8;
            count += 1;
        }
        if count == 0 {
            return socket::send(socket, &[END], &[]);
        }
        let files = numbers.map(|number| {
            // SAFETY: of those that are used each was open just now, and nobody else closes it.
            unsafe { BorrowedFd::borrow_raw(number.into()) }
        });
        socket::send(socket, &numbers[..count], &files[..count])?;
    }
}

/// Sends one file alone.
pub fn send_one(socket: &OwnedFd, shown: BorrowedFd<'_>) -> Result<(), Errno> {
    socket::send(socket, &[END], &[shown])
}

/// Takes the file that is sent first.
pub fn take_shown(socket: &OwnedFd) -> Result<OwnedFd, Errno> {
    let mut received = socket::receive(socket, &mut [0])?;
    received.fds.pop().ok_or(Errno::PROTO)
}

/// Closes every file of the calling thread's own table, and puts there what was
/// [sent](send_all) to `socket`, each at its number.
pub fn take_all(socket: RawFd) -> Result<(), Errno> {
    // SAFETY: the caller's socket, which stays open.
    let socket = unsafe { BorrowedFd::borrow_raw(socket) };
    // Beyond all numbers that are sent.
    let socket = rustix::io::fcntl_dupfd_cloexec(socket, NUMBERS)?;
    thread::close_all_but(&[socket.as_raw_fd()])?;
    let mut places = Vec::new();
    loop {
        let mut numbers = [0u8; FDS_MAX];
        let received = socket::receive(&socket, &mut numbers)?;
        if received.bytes != received.fds.len() {
            break;
        }
        let numbers = numbers[..received.bytes].iter();
        places.extend(numbers.map(|number| RawFd::from(*number)).zip(received.fds));
        if places.len() > NUMBERS as usize || received.bytes == 0 {
            return Err(Errno::PROTO);
        }
    }
    // Files come to the lowest numbers that are free, which are no higher than their own: from the
    // last to the first none takes another's place.
    while let Some((number, file)) = places.pop() {
        if file.as_raw_fd() == number {
            std::mem::forget(file);
            continue;
        }
        // SAFETY: nothing is open at this number; the new file is its owner's, who has kept it.
        let mut place = unsafe { OwnedFd::from_raw_fd(number) };
        let answer = rustix::io::dup3(&file, &mut place, rustix::io::DupFlags::CLOEXEC);
        std::mem::forget(place);
        answer?;
    }
    Ok(())
}

/// The number of files a process may have open at one time.
pub fn limit() -> u64 {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    limit.current.unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rustix::io::FdFlags;

    use super::*;

    fn is_rung(bell: BorrowedFd<'_>) -> bool {
        socket::wait_readable(&[bell], Some(0)) == Ok(1)
    }

    #[test]
    fn files_go_from_a_thread_that_ends_to_another() {
        let (ours, theirs) = socket::packets().unwrap();
        let number = theirs.as_raw_fd();
        let first = thread::spawn(0, move || {
            let socket = copy_of_programs(number).unwrap();
            thread::own_file_table(&[socket.as_raw_fd()]).unwrap();
            let bell = || rustix::event::eventfd(0, rustix::event::EventfdFlags::CLOEXEC);
            let open: Vec<OwnedFd> = (0..20).map(|_| bell().unwrap()).collect();
            let numbers: Vec<_> = open.iter().map(AsRawFd::as_raw_fd).collect();
            for rung in [&open[0], &open[19]] {
                rustix::io::write(rung, &1u64.to_ne_bytes()).unwrap();
            }
            send_all(&socket, Some(numbers[3]), &open[19]).unwrap();
            std::mem::forget(open);
            numbers
        });
        let numbers = first.unwrap().join(Duration::from_secs(20)).unwrap();
        drop(theirs);
        let shown = take_shown(&ours).unwrap();
        assert!(rustix::io::fcntl_getfd(&shown).is_ok());
        let number = ours.as_raw_fd();
        let second = thread::spawn(0, move || {
            // SAFETY: the thread gets a table of its own, for nobody else.
            unsafe { rustix::thread::unshare_unsafe(rustix::thread::UnshareFlags::FILES).unwrap() };
            take_all(number).unwrap();
            let rung = numbers.iter().map(|number| {
                // SAFETY: asks what is there, of this table alone.
                let bell = unsafe { BorrowedFd::borrow_raw(*number) };
                match rustix::io::fcntl_getfd(bell) {
                    Ok(flags) => {
                        assert_eq!(flags, FdFlags::CLOEXEC);
                        Some(is_rung(bell))
                    }
                    Err(_) => None,
                }
            });
            let rung: Vec<_> = rung.collect();
            let beyond = numbers.iter().max().unwrap() + 1;
            let is_open = |number: RawFd| {
                // SAFETY: as above.
                let file = unsafe { BorrowedFd::borrow_raw(number) };
                rustix::io::fcntl_getfd(file).is_ok()
            };
            (rung, (beyond..1024).any(is_open))
        });
        let (rung, has_more) = second.unwrap().join(Duration::from_secs(20)).unwrap();
        for (place, rung) in rung.into_iter().enumerate() {
            let expected = (place != 3).then_some(place == 0 || place == 19);
            assert_eq!(rung, expected, "at place {place}");
        }
        assert!(!has_more);
    }
}
