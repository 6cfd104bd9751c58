//! `tidemark mount`: serves a run's store on a server as a file of the kernel's
//! ([`tidemark_stores::mounted`]), and `run`'s side of it.
//!
//! It is a process of its own, since the file may outlive `tidemark run`: processes that outlive
//! the program still have it. It ends with the last descriptor, and removes what is at the server.
//!
//! The two have a socket, which is the standard input and the standard error of `tidemark mount`.
//! `run` sends an [`Order`] in a line, and gets the file with the byte [`MOUNTED`], or a text.
//! Lines that follow are for `run`'s standard error.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use clap::Args;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use serde::{Deserialize, Serialize};
use tidemark_live::sys::namespaces;
use tidemark_stores::mounted::{self, Mounted, PATIENCE, Settings};

use crate::exit::{Exit, Refusal, refuse};
use crate::files::Files;
use crate::output;

/// The time, in seconds, for which a server may be away.
const PATIENCE_VARIABLE: &str = "TIDEMARK_STORE_PATIENCE";
/// The byte that the file comes with.
const MOUNTED: u8 = 0;
/// The time for which the end of a store is waited for: what it has at the server is removed.
const END_LIMIT: Duration = Duration::from_secs(60);

/// Serves the pages of a run on a server as a file, until it is closed; started by `run`
#[derive(Debug, Args)]
pub struct Arguments {}

impl Files for Arguments {}

/// The store that `run` wants served, and its file.
#[derive(Debug, Serialize, Deserialize)]
struct Order {
    url: String,
    /// The size of the store, and that of the file.
    bytes: (u64, u64),
    patience_s: u64,
}

/// The process that serves a store, as `run` knows it.
#[derive(Debug)]
pub struct Lender {
    /// Nothing comes before the process has ended.
    ended: Receiver<()>,
}

/// Serves what standard input orders.
pub fn run(_: Arguments) -> Result<Exit, Refusal> {
    let mut line = String::new();
    let read = std::io::stdin().read_line(&mut line);
    let order = serde_json::from_str(&line);
    let (Ok(_), Ok(order)) = (read, order) else {
        refuse!("`mount` is started by `run`, which says which store it serves");
    };
    // Now, while this process has one thread. What is not permitted shows when it is mounted.
    let is_apart = !mounted::may_mount() && namespaces::enter().is_ok();
    let Mounted { file, serving } = open(&order, !is_apart)?;
    let stdin = std::io::stdin();
    let files = [file.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    ancillary.push(SendAncillaryMessage::ScmRights(&files));
    let parts = [IoSlice::new(&[MOUNTED])];
    // Without `run` this is the last descriptor, and all ends.
    let _ = sendmsg(stdin.as_fd(), &parts, &mut ancillary, SendFlags::NOSIGNAL);
    drop(file);
    // A panic has been told.
    let _ = serving.join();
    Ok(Exit::Fine)
}

/// Makes the store, and mounts it.
fn open(order: &Order, is_for_all: bool) -> Result<Mounted, Refusal> {
    let (bytes, file_bytes) = order.bytes;
    let store = tidemark_stores::swap(&order.url, bytes);
    let store = store.map_err(|error| Refusal::new(format!("`--store`: {error}")))?;
    let name = store.name();
    let settings = Settings {
        bytes: file_bytes,
        patience: Duration::from_secs(order.patience_s),
        is_for_all,
        tell: Box::new(|line| output::tell(&format!("tidemark: {line}\n"))),
    };
    match mounted::mount(store, settings) {
        Ok(mounted) => Ok(mounted),
        Err(error) => refuse!(
            "`--store {name}`: its pages come by FUSE, which can't be mounted: {error}; that takes \
             a `/dev/fuse` that this user may open, and the right to mount (root, or user \
             namespaces)"
        ),
    }
}

/// Has a process serve the store at `url`, of the first of `bytes`, as a file of the second.
pub fn lend(url: &str, bytes: (u64, u64)) -> Result<(OwnedFd, Lender), Refusal> {
    let patience = std::env::var_os(PATIENCE_VARIABLE);
    let patience_s = patience
        .as_deref()
        .map_or(Ok(PATIENCE.as_secs()), seconds)?;
    let order = Order {
        url: url.into(),
        bytes,
        patience_s,
    };
    let failed = |error: std::io::Error| {
        Refusal::new(format!(
            "`--store`: no process can be started that serves it: {error}"
        ))
    };
    let here = start(&order).map_err(failed)?;
    let mut byte = [0];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut parts = [IoSliceMut::new(&mut byte)];
    let received = recvmsg(&here, &mut parts, &mut ancillary, RecvFlags::CMSG_CLOEXEC);
    let received = received.map_err(|error| failed(error.into()))?;
    let files = ancillary.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut files) => files.next(),
        _ => None,
    });
    let Some(file) = files else {
        let mut told = String::from_utf8_lossy(&byte[..received.bytes]).into_owned();
        // What can't be read is not told.
        let _ = (&here).read_to_string(&mut told);
        let told = told.trim_end();
        let told = told.strip_prefix("tidemark: ").unwrap_or(told);
        match told.is_empty() {
            true => refuse!("`--store`: the process that serves it has ended"),
            false => return Err(Refusal::new(told)),
        }
    };
    Ok((file, Lender::relay(here)))
}

/// Starts `tidemark mount` with an order. Answers the socket to it.
fn start(order: &Order) -> std::io::Result<UnixStream> {
    let (mut here, there) = UnixStream::pair()?;
    let errors = OwnedFd::from(there.try_clone()?);
    let mut command = Command::new(std::env::current_exe()?);
    // What is typed at the terminal is for the program.
    command.arg("mount").current_dir("/").process_group(0);
    command
        .stdin(OwnedFd::from(there))
        .stdout(Stdio::null())
        .stderr(errors);
    command.spawn()?;
    // The address has a password, perhaps: it is in no argument, which all may read.
    let mut line = serde_json::to_string(order)?;
    line.push('\n');
    here.write_all(line.as_bytes())?;
    Ok(here)
}

fn seconds(text: &OsStr) -> Result<u64, Refusal> {
    let number = text.to_str().and_then(|text| text.parse().ok());
    number.ok_or_else(|| {
        Refusal::new(format!(
            "`{PATIENCE_VARIABLE}` is `{}`; needs a whole number of seconds",
            text.display()
        ))
    })
}

impl Lender {
    /// Passes lines on until the process has ended.
    fn relay(socket: UnixStream) -> Lender {
        let (sender, ended) = channel();
        std::thread::spawn(move || {
            let lines = BufReader::new(socket).lines();
            lines
                .map_while(Result::ok)
                .for_each(|line| output::tell(&(line + "\n")));
            // `run` may have ended without waiting.
            let _ = sender.send(());
        });
        Lender { ended }
    }

    /// Waits until the process has ended, whose file is closed.
    pub fn finish(self) {
        // One that takes longer goes on by itself.
        let _ = self.ended.recv_timeout(END_LIMIT);
    }
}
