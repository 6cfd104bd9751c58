//! The control connection: fixed-size messages over a unix socket, with descriptors along.

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::event::{EventfdFlags, PollFd, PollFlags};
use rustix::io::{IoSlice, IoSliceMut};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType,
};

use super::{Errno, timespec};

/// The most descriptors one message carries.
pub const FDS_MAX: usize = 8;

/// The result of [`receive`].
#[derive(Debug)]
pub struct Received {
    /// The number of bytes; zero means that the other side is gone.
    pub bytes: usize,
    /// The descriptors that came along, in order, closed on exec.
    pub fds: Vec<OwnedFd>,
}

/// Connects to the stream socket at `path`.
pub fn connect(path: &Path) -> Result<OwnedFd, Errno> {
    let flags = SocketFlags::CLOEXEC;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    rustix::net::connect(&socket, &SocketAddrUnix::new(path)?)?;
    Ok(socket)
}

/// Makes a connected pair of stream sockets.
pub fn pair() -> Result<(OwnedFd, OwnedFd), Errno> {
    let flags = SocketFlags::CLOEXEC;
    rustix::net::socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None)
}

/// Makes a connected pair of sockets that keep messages apart.
pub fn packets() -> Result<(OwnedFd, OwnedFd), Errno> {
    let flags = SocketFlags::CLOEXEC;
    rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)
}

/// Listens by a name that is in no folder. It is given out once, and ends with the socket.
pub fn listen_by_name(name: &str) -> Result<OwnedFd, Errno> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    rustix::net::bind(
        &socket,
        &SocketAddrUnix::new_abstract_name(name.as_bytes())?,
    )?;
    rustix::net::listen(&socket, 16)?;
    Ok(socket)
}

/// The next connection to a socket that listens, if there is one.
pub fn accept(listener: impl AsFd) -> Option<OwnedFd> {
    rustix::net::accept_with(listener, SocketFlags::CLOEXEC).ok()
}

/// Connects to who listens by a name, and waits until that closes the connection, for `limit_ns`
/// at most.
pub fn await_end_of(name: &str, limit_ns: u64) -> Result<(), Errno> {
    let flags = SocketFlags::CLOEXEC;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    let address = SocketAddrUnix::new_abstract_name(name.as_bytes())?;
    rustix::net::connect(&socket, &address)?;
    match wait_readable(&[socket.as_fd()], Some(limit_ns))? {
        0 => Err(Errno::TIMEDOUT),
        _ => Ok(()),
    }
}

/// Sends all of `bytes`, with `fds` attached to the first of them. A closed peer is an error, not
/// a signal.
pub fn send(socket: impl AsFd, bytes: &[u8], fds: &[BorrowedFd<'_>]) -> Result<(), Errno> {
    assert!(fds.len() <= FDS_MAX);
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FDS_MAX))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() {
        let fits = control.push(SendAncillaryMessage::ScmRights(fds));
        assert!(fits, "the space was made for this many");
    }
    let mut sent = 0;
    while sent < bytes.len() {
        let slices = [IoSlice::new(&bytes[sent..])];
        match rustix::net::sendmsg(&socket, &slices, &mut control, SendFlags::NOSIGNAL) {
            Ok(count) => {
                sent += count;
                control.clear();
            }
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Receives up to `into.len()` bytes and the descriptors with them. Waits, unless the socket is
/// non-blocking.
pub fn receive(socket: impl AsFd, into: &mut [u8]) -> Result<Received, Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FDS_MAX))];
    loop {
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut slices = [IoSliceMut::new(into)];
        let flags = RecvFlags::CMSG_CLOEXEC;
        match rustix::net::recvmsg(&socket, &mut slices, &mut control, flags) {
            Ok(message) => {
                let mut fds = Vec::new();
                for item in control.drain() {
                    if let RecvAncillaryMessage::ScmRights(rights) = item {
                        fds.extend(rights);
                    }
                }
                return Ok(Received {
                    bytes: message.bytes,
                    fds,
                });
            }
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
}

/// Makes reads and writes on `fd` answer `EAGAIN` instead of waiting.
pub fn make_nonblocking(fd: impl AsFd) -> Result<(), Errno> {
    let flags = rustix::fs::fcntl_getfl(&fd)?;
    rustix::fs::fcntl_setfl(&fd, flags | rustix::fs::OFlags::NONBLOCK)
}

/// A counter one thread raises and another polls: a doorbell.
#[derive(Debug)]
pub struct Bell {
    fd: OwnedFd,
}

impl Bell {
    /// Makes a silent bell.
    pub fn new() -> Result<Bell, Errno> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        Ok(Bell {
            fd: rustix::event::eventfd(0, flags)?,
        })
    }

    /// Makes the bell readable.
    pub fn ring(&self) {
        let _ = rustix::io::write(&self.fd, &1u64.to_ne_bytes());
    }

    /// Makes it silent again; answers whether it had rung.
    pub fn take(&self) -> bool {
        rustix::io::read(&self.fd, &mut [0u8; 8]).is_ok()
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// [`wait_readable`] for files by number: bit zero is the first's, whether there is one or not.
/// A number that is no open file any more counts as ready. Allocates nothing.
pub fn wait_readable_raw(files: [Option<i32>; 4], limit_ns: u64) -> Result<u32, Errno> {
    let mut numbers = [0; 4];
    let mut bits = [0u32; 4];
    let mut count = 0;
    for (bit, number) in files.into_iter().enumerate() {
        if let Some(number) = number {
            (numbers[count], bits[count]) = (number, 1 << bit);
            count += 1;
        }
    }
    let mut polls = numbers.map(|number| {
        // SAFETY: the number is only polled, which is harmless whatever it names.
        let file = unsafe { BorrowedFd::borrow_raw(number) };
        PollFd::from_borrowed_fd(file, PollFlags::IN)
    });
    match rustix::event::poll(&mut polls[..count], Some(&timespec(limit_ns))) {
        Ok(_) => {}
        Err(Errno::INTR) => return Ok(0),
        Err(error) => return Err(error),
    }
    let ready = polls[..count]
        .iter()
        .zip(bits)
        .filter(|(poll, _)| !poll.revents().is_empty());
    Ok(ready.map(|(_, bit)| bit).sum())
}

/// Waits until one of `fds` can be read or `limit_ns` has passed; without a limit, for ever.
/// Answers a bit for each that is ready, broken or closed, the first as bit zero.
pub fn wait_readable(fds: &[BorrowedFd<'_>], limit_ns: Option<u64>) -> Result<u32, Errno> {
    assert!(fds.len() <= 8);
    let nobody = fds.first().copied();
    let Some(first) = nobody else { return Ok(0) };
    let mut polls: [PollFd<'_>; 8] = std::array::from_fn(|i| {
        PollFd::from_borrowed_fd(*fds.get(i).unwrap_or(&first), PollFlags::IN)
    });
    let limit = limit_ns.map(timespec);
    let polls = &mut polls[..fds.len()];
    match rustix::event::poll(polls, limit.as_ref()) {
        Ok(_) => {}
        Err(Errno::INTR) => return Ok(0),
        Err(error) => return Err(error),
    }
    let ready = |(i, poll): (usize, &PollFd<'_>)| u32::from(!poll.revents().is_empty()) << i;
    Ok(polls.iter().enumerate().map(ready).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_and_descriptors_arrive_together_and_in_order() {
        let (ours, theirs) = pair().unwrap();
        let (bell, other) = (Bell::new().unwrap(), Bell::new().unwrap());
        send(&ours, &[7; 100], &[bell.as_fd(), other.as_fd()]).unwrap();
        let mut bytes = [0; 100];
        let received = receive(&theirs, &mut bytes).unwrap();
        assert_eq!(
            (received.bytes, received.fds.len(), bytes),
            (100, 2, [7; 100])
        );
        // The second descriptor is the second bell.
        other.ring();
        let ready = wait_readable(&[received.fds[0].as_fd(), received.fds[1].as_fd()], Some(0));
        assert_eq!(ready, Ok(2));
        drop(ours);
        assert_eq!(receive(&theirs, &mut bytes).unwrap().bytes, 0);
        assert_eq!(send(&theirs, b"x", &[]), Err(Errno::PIPE));
    }

    #[test]
    fn a_bell_rings_until_it_is_taken() {
        let bell = Bell::new().unwrap();
        assert!(!bell.take());
        bell.ring();
        bell.ring();
        assert_eq!(wait_readable(&[bell.as_fd()], Some(0)), Ok(1));
        assert!(bell.take() && !bell.take());
        assert_eq!(wait_readable(&[bell.as_fd()], Some(1000)), Ok(0));
    }

    #[test]
    fn a_socket_can_be_told_not_to_wait() {
        let (ours, _theirs) = pair().unwrap();
        make_nonblocking(&ours).unwrap();
        assert_eq!(receive(&ours, &mut [0; 8]).unwrap_err(), Errno::AGAIN);
    }
}
