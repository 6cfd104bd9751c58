//! The control socket: takes requests while the run lasts, and gives the replies back.
//!
//! No call here waits: sockets and connections are read when the supervisor's [one
//! wait](crate::tree::Tree::poll) reports them, and replies that a client does not take at once
//! stay in its [`Client`]. The executor of requests is lent to each step.
//!
//! # Invariants
//! 1. A client has at most one request being answered and one reply on its way: the next request
//!    is not read before that is gone.
//! 2. There are at most [`CLIENTS_MAX`] clients, each with bounded buffers, and none stays for
//!    longer than its [limit](client) without a word.

mod client;

use std::fs::Permissions;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Instant;

use rustix::event::PollFd;
use tidemark_results::control::{Reply, Request};
use tidemark_results::{Refusal, refuse};

use self::client::Client;
use crate::acceptance::Acceptance;
use crate::program::plain;

/// The number of clients at a time. One more is refused.
pub const CLIENTS_MAX: usize = 16;

/// The part that carries out requests.
pub type Answer<'a> = &'a mut dyn FnMut(Request) -> Reply;

/// The way clients ask and are replied to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speech {
    /// A line of JSON each, again and again.
    Lines,
    /// A request of HTTP, which is for metrics; its reply is the last word.
    Http,
}

#[derive(Debug)]
enum Listener {
    Unix(UnixListener),
    Tcp(TcpListener),
}

/// The places where clients connect, and those that are connected.
#[derive(Debug)]
pub struct Requests {
    doors: Vec<Door>,
    /// The state of all listeners together: if one lacks memory or descriptors, so do the others.
    acceptance: Acceptance,
    clients: Vec<Client>,
}

/// A place where clients connect.
#[derive(Debug)]
pub struct Door {
    listener: Listener,
    speech: Speech,
    /// The file to remove at the end, if no folder goes with it.
    path: Option<PathBuf>,
}

impl Door {
    /// A door at a socket that lies in a folder of the run's own.
    pub fn at(listener: UnixListener) -> Door {
        Door {
            listener: Listener::Unix(listener),
            speech: Speech::Lines,
            path: None,
        }
    }

    /// Opens one at `place`: an address of this machine with a port, or the path of a socket.
    pub fn open_at_place(option: &str, place: &Path, speech: Speech) -> Result<Door, Refusal> {
        let text = place.to_str().unwrap_or_default();
        let Some(address) = read_address(text).map_err(|why| {
            Refusal::new(format!(
                "`{option} {text}`: {why}; `./{text}` is a socket of that name"
            ))
        })?
        else {
            return Door::open(option, place, speech);
        };
        let told = format!("{option} {address}");
        if !address.ip().is_loopback() || address.port() == 0 {
            refuse!("`{told}`: not a port of this machine alone; write 127.0.0.1 and a port");
        }
        match TcpListener::bind(address) {
            Ok(listener) => Ok(Door {
                listener: Listener::Tcp(listener),
                speech,
                path: None,
            }),
            Err(error) => refuse!("`{told}`: {}", plain(&error)),
        }
    }

    /// Makes a socket at `path`, for this user alone. One that a killed run has left gives way.
    pub fn open(option: &str, path: &Path, speech: Speech) -> Result<Door, Refusal> {
        let told = format!("{option} {}", path.display());
        if let Ok(found) = std::fs::symlink_metadata(path) {
            if !found.file_type().is_socket() {
                refuse!("`{told}`: there is a file of that name; name another");
            }
            if UnixStream::connect(path).is_ok() {
                refuse!("`{told}`: another process listens there; name another file");
            }
            // What is left of it is found out by the next step.
            let _ = std::fs::remove_file(path);
        }
        let listener = match UnixListener::bind(path) {
            Ok(listener) => listener,
            Err(error) => refuse!("`{told}`: {}", plain(&error)),
        };
        let door = Door {
            listener: Listener::Unix(listener),
            speech,
            path: Some(path.to_path_buf()),
        };
        // A quicker one is of another user, and turned away.
        match std::fs::set_permissions(path, Permissions::from_mode(0o600)) {
            Ok(()) => Ok(door),
            Err(error) => refuse!("`{told}`: {}", plain(&error)),
        }
    }

    /// Takes in the next client, if one waits and may say something here.
    fn accept(&self, acceptance: &mut Acceptance) -> Option<Client> {
        if acceptance.due().is_some() {
            return None;
        }
        let stream = match &self.listener {
            Listener::Unix(listener) => {
                let stream = OwnedFd::from(acceptance.keep(listener.accept())?.0);
                let peer = rustix::net::sockopt::socket_peercred(&stream).ok()?;
                let is_own = peer.uid == rustix::process::geteuid();
                (is_own || peer.uid.is_root()).then_some(stream)?
            }
            // A port can't tell users apart: only metrics are there.
            Listener::Tcp(listener) => OwnedFd::from(acceptance.keep(listener.accept())?.0),
        };
        Client::new(stream, self.speech)
    }
}

/// The local address that `PORT`, `localhost:PORT` or `127.0.0.1:PORT` means. `None` for the path
/// of a socket.
///
/// # Errors
/// The reason why it is neither an address nor a path.
fn read_address(place: &str) -> Result<Option<SocketAddr>, String> {
    if let Ok(address) = place.parse() {
        return Ok(Some(address));
    }
    let (host, port) = place.rsplit_once(':').unwrap_or(("", place));
    if place.contains('/') || port.is_empty() || !port.bytes().all(|byte| byte.is_ascii_digit()) {
        return Ok(None);
    }
    let port = match port.parse() {
        Ok(0) | Err(_) => return Err("a port is 1 to 65535".into()),
        Ok(port) => port,
    };
    match host {
        "" | "localhost" => Ok(Some(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))),
        _ => Err(format!(
            "not a port of this machine alone; write 127.0.0.1:{port}"
        )),
    }
}

impl Listener {
    fn make_nonblocking(&self) -> std::io::Result<()> {
        match self {
            Listener::Unix(listener) => listener.set_nonblocking(true),
            Listener::Tcp(listener) => listener.set_nonblocking(true),
        }
    }

    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Listener::Unix(listener) => listener.as_fd(),
            Listener::Tcp(listener) => listener.as_fd(),
        }
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            // The run has gone: a client that finds it learns so.
            let _ = std::fs::remove_file(path);
        }
    }
}

impl Default for Requests {
    fn default() -> Requests {
        Requests {
            doors: vec![],
            acceptance: Acceptance::of("clients of the control socket"),
            clients: vec![],
        }
    }
}

impl Requests {
    /// Opens another door.
    pub fn add(&mut self, door: Door) -> Result<(), Refusal> {
        if let Err(error) = door.listener.make_nonblocking() {
            refuse!("the control socket can't be used: {}", plain(&error));
        }
        self.doors.push(door);
        Ok(())
    }

    /// The files to wait for.
    pub fn sources(&self) -> impl Iterator<Item = PollFd<'_>> {
        let flags = self.acceptance.flags();
        let doors = self.doors.iter().map(|door| door.listener.as_fd());
        let doors = doors.map(move |door| PollFd::from_borrowed_fd(door, flags));
        doors.chain(self.clients.iter().map(Client::source))
    }

    /// The time of the next [`step`](Self::step) if nothing happens before: when a client has been
    /// silent for too long or doors have rested, and at once if one has asked twice in a go.
    pub fn due(&self) -> Option<Instant> {
        if self.clients.iter().any(Client::is_ready) {
            return Some(Instant::now());
        }
        let clients = self.clients.iter().map(Client::due);
        clients.chain(self.acceptance.due()).min()
    }

    /// Takes in who has come, moves along what can be moved without waiting, has `answer` carry out
    /// a request of each client at most, and lets go of who has gone or is silent for too long.
    pub fn step(&mut self, answer: Answer<'_>) {
        for door in &self.doors {
            // One at a time: the wait ends at once if there are more.
            let Some(mut client) = door.accept(&mut self.acceptance) else {
                continue;
            };
            if self.clients.len() < CLIENTS_MAX {
                self.clients.push(client);
            } else {
                let told = format!("there are {CLIENTS_MAX} clients already; try again");
                client.dismiss(&Reply::Refused(told));
            }
        }
        self.clients.retain_mut(|client| client.step(answer));
    }
}

#[cfg(test)]
mod tests;
