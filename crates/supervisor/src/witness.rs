//! The witness: a process in the program's process group that does nothing but receive signals.
//!
//! The supervisor gets signals that are for the program: those sent to the supervisor alone must
//! be passed on, and those that the program gets as well must not, or it would get them twice. A
//! signal does not tell which it was: one sent to a process group, or to everything in a control
//! group, looks like one sent to a single process. The witness stands where the program stands
//! (its process group, session, control group, and words of the command line), blocks every signal,
//! and is asked which have come: what has reached the witness has reached the program.
//!
//! The kernel delivers a signal to a whole process group in one go, the youngest process first:
//! when the supervisor sees it, the witness has it.
//!
//! It also knows which processes the supervisor has [suspended](crate::suspensions), and lets them
//! go on when the supervisor is gone, however it went.
//!
//! A message to it is a byte that says what it is, and eight more. Only a question about signals is
//! answered.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::net::SendFlags;
use rustix::process::{Pid, Signal, pidfd_send_signal};
use tidemark_live::sys::signal::{self, SignalSet};

use crate::departures::life_of;

/// Set in the environment of a witness alone.
const VARIABLE: &str = "TIDEMARK_WITNESS";

/// The first word of its command line, before the program's own. Neither this nor its short name
/// names this command, or what is sent to all of that name would pass for sent to the program.
const NAME: &str = "(witness)";

/// The time for which an answer is awaited. Only one that is stopped takes long.
const ANSWER_LIMIT: Duration = Duration::from_secs(1);

/// The length of a message.
const MESSAGE_BYTES: usize = 9;

/// The messages.
#[derive(Clone, Copy)]
enum Message {
    /// Asks which of these signals have come.
    Take = 0,
    /// Says that the process of this number is about to be suspended, ...
    Suspended = 1,
    /// ... or goes on.
    Resumed = 2,
}

/// A line to a witness, for what it is told and does not answer.
#[derive(Debug)]
pub struct Line(UnixStream);

/// A witness, from the supervisor's side. It ends with this value, or with the supervisor.
#[derive(Debug)]
pub struct Witness {
    process: Child,
    line: UnixStream,
}

impl Witness {
    /// Starts a witness for the program with these `words`.
    pub fn start(words: &[OsString]) -> std::io::Result<Witness> {
        let (line, its_end) = UnixStream::pair()?;
        line.set_read_timeout(Some(ANSWER_LIMIT))?;
        let mut command = Command::new(std::env::current_exe()?);
        command
            .arg0(NAME)
            .args(words)
            .env_clear()
            .env(VARIABLE, "1")
            .stdin(Stdio::from(OwnedFd::from(its_end)))
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        // What is blocked here is blocked there, from its first moment on.
        let before = signal::block(SignalSet::ALL)?;
        let process = command.spawn();
        signal::block_only(before)?;
        let process = process?;
        Ok(Witness { process, line })
    }

    /// Takes from it those of `signals` that have come since it was last asked for them. None have
    /// if it does not answer.
    pub fn take(&mut self, signals: SignalSet) -> SignalSet {
        let mut answer = [0; 8];
        let asked = self.line.write_all(&Message::Take.of(signals.0));
        match asked.and_then(|()| self.line.read_exact(&mut answer)) {
            Ok(()) => SignalSet(u64::from_le_bytes(answer)),
            Err(_) => SignalSet::NONE,
        }
    }
}

impl Witness {
    /// A line to it, for another part of the supervisor.
    pub fn line(&self) -> std::io::Result<Line> {
        self.line.try_clone().map(Line)
    }
}

impl Line {
    /// Says that a process is about to be suspended. Never blocks.
    ///
    /// # Errors
    /// The witness is gone, or does not listen: if the supervisor went, the process would stay
    /// suspended.
    pub fn note_suspended(&self, pid: u32) -> std::io::Result<()> {
        self.send(Message::Suspended, pid)
    }

    /// Says that a process goes on.
    pub fn note_resumed(&self, pid: u32) {
        // Who is told once too often to go on comes to no harm.
        let _ = self.send(Message::Resumed, pid);
    }

    fn send(&self, message: Message, pid: u32) -> std::io::Result<()> {
        send(self.0.as_fd(), &message.of(pid.into()))
    }
}

impl Message {
    fn of(self, value: u64) -> [u8; MESSAGE_BYTES] {
        let mut bytes = [self as u8; MESSAGE_BYTES];
        bytes[1..].copy_from_slice(&value.to_le_bytes());
        bytes
    }
}

fn send(line: BorrowedFd<'_>, bytes: &[u8]) -> std::io::Result<()> {
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    match rustix::net::send(line, bytes, flags) {
        Ok(sent) if sent == bytes.len() => Ok(()),
        Ok(_) => Err(std::io::ErrorKind::WriteZero.into()),
        Err(error) => Err(error.into()),
    }
}

impl Drop for Witness {
    fn drop(&mut self) {
        // It may have been ended by somebody else.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Returns true if this process is to be a witness.
pub fn is_wanted() -> bool {
    std::env::var_os(VARIABLE).is_some()
}

/// Answers at standard input until the supervisor is gone.
pub fn stand() -> ! {
    let _ = rustix::thread::set_name(c"(witness)");
    let Ok(line) = std::io::stdin().as_fd().try_clone_to_owned() else {
        std::process::exit(1);
    };
    let mut line = UnixStream::from(line);
    let mut suspended: Vec<(u32, OwnedFd)> = vec![];
    let mut message = [0; MESSAGE_BYTES];
    while line.read_exact(&mut message).is_ok() {
        let value = u64::from_le_bytes(message[1..].try_into().expect("eight bytes"));
        let is_kept = match message[0] {
            kind if kind == Message::Suspended as u8 => {
                let pid = Pid::from_raw(value as i32);
                suspended.extend(pid.and_then(life_of).map(|life| (value as u32, life)));
                true
            }
            kind if kind == Message::Resumed as u8 => {
                suspended.retain(|(pid, _)| u64::from(*pid) != value);
                true
            }
            _ => {
                let taken = signal::take_pending(SignalSet(value));
                line.write_all(&taken.0.to_le_bytes()).is_ok()
            }
        };
        if !is_kept {
            break;
        }
    }
    for (_, life) in suspended {
        // It may have ended.
        let _ = pidfd_send_signal(life, Signal::CONT);
    }
    std::process::exit(0)
}
