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

use std::ffi::OsString;
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tidemark_live::sys::signal::{self, SignalSet};

/// Set in the environment of a witness alone.
const VARIABLE: &str = "TIDEMARK_WITNESS";

/// The first word of its command line, before the program's own. Neither this nor its short name
/// names this command, or what is sent to all of that name would pass for sent to the program.
const NAME: &str = "(witness)";

/// The time for which an answer is awaited. Only one that is stopped takes long.
const ANSWER_LIMIT: Duration = Duration::from_secs(1);

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
        let asked = self.line.write_all(&signals.0.to_le_bytes());
        match asked.and_then(|()| self.line.read_exact(&mut answer)) {
            Ok(()) => SignalSet(u64::from_le_bytes(answer)),
            Err(_) => SignalSet::NONE,
        }
    }
}

impl Drop for Witness {
    fn drop(&mut self) {
        // It may have been ended from outside.
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
    let mut message = [0; 8];
    while line.read_exact(&mut message).is_ok() {
        let taken = signal::take_pending(SignalSet(u64::from_le_bytes(message)));
        if line.write_all(&taken.0.to_le_bytes()).is_err() {
            break;
        }
    }
    std::process::exit(0)
}
