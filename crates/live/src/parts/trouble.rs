//! The failures that can occur, and their messages: one line on the program's standard error.

use std::fmt;
use std::os::fd::{AsRawFd, OwnedFd};

use tidemark_core::seams::pager::Direction;

use crate::control;
use crate::machine::StartError;
use crate::store::{Cause, Failure};
use crate::sys::uffd::{Features, OpenError};
use crate::sys::{Errno, files, program};

/// The reason why the engine can't start, or can't go on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Trouble {
    /// The machine can't be had.
    Machine(StartError),
    /// A system call that must work did not.
    Call {
        /// The attempted operation.
        what: &'static str,
        /// The kernel's error.
        error: Errno,
    },
    /// A function of the C library is not as it must be for its calls of the kernel to be seen.
    Library {
        /// Its name.
        function: &'static std::ffi::CStr,
        /// `NOENT`: it is not there, or holds no such call. Else the reason why it can't be
        /// changed.
        error: Errno,
    },
    /// The supervisor could not be reached.
    NoSupervisor {
        /// The cause.
        what: String,
        /// True if the supervisor is gone.
        is_gone: bool,
    },
    /// The supervisor is another user's.
    ForeignSupervisor,
    /// An environment variable is missing or means nothing.
    BadSetting {
        /// Its name.
        name: &'static str,
        /// Its value, if it has one.
        value: Option<String>,
    },
}

impl fmt::Display for Trouble {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Trouble::Machine(StartError::Uffd(error)) => show_open_error(*error, out),
            Trouble::Machine(StartError::Pages(error)) => {
                write!(out, "`/proc/self/pagemap` can't be opened: {error}")
            }
            Trouble::Machine(StartError::Pool { frames, error }) => {
                write!(out, "a frame pool of {frames} pages can't be had: {error}")?;
                show_limit(*error, out)
            }
            Trouble::Call { what, error } => {
                write!(out, "{what}: {error}")?;
                show_limit(*error, out)
            }
            Trouble::Library { function, error } => {
                let name = function.to_string_lossy();
                write!(out, "`{name}` of this C library can't be followed: {error}")
            }
            Trouble::NoSupervisor { what, .. } => {
                write!(out, "the supervisor can't be reached: {what}")
            }
            Trouble::ForeignSupervisor => {
                write!(out, "it runs as another user than `tidemark run`")
            }
            Trouble::BadSetting { name, value: None } => write!(out, "{name} is not set"),
            Trouble::BadSetting {
                name,
                value: Some(value),
            } => {
                write!(out, "{name} is `{value}`, which means nothing here")
            }
        }
    }
}

/// Names the limit that keeps memory from being mapped, if there is one.
fn show_limit(error: Errno, out: &mut fmt::Formatter<'_>) -> fmt::Result {
    let limit = rustix::process::getrlimit(rustix::process::Resource::As).current;
    match limit {
        Some(bytes) if error == Errno::NOMEM => {
            let kib = bytes >> 10;
            write!(out, "; address space is limited to {kib} KiB (`ulimit -v`)")
        }
        _ => Ok(()),
    }
}

fn show_open_error(error: OpenError, out: &mut fmt::Formatter<'_>) -> fmt::Result {
    match error {
        OpenError::NotPermitted { call, device } => write!(
            out,
            "userfaultfd is not permitted ({call}; /dev/userfaultfd: {device}); \
             `tidemark doctor` says what would permit it"
        ),
        OpenError::NotSupported { call } => {
            write!(
                out,
                "this kernel, or a sandbox, has no userfaultfd ({call})"
            )
        }
        OpenError::Lacks { missing } if missing.0 & Features::MOVE.0 != 0 => {
            write!(
                out,
                "this kernel's userfaultfd can't move pages; needs Linux 6.8"
            )
        }
        OpenError::Lacks { missing } => {
            write!(
                out,
                "this kernel's userfaultfd lacks features {:#x}",
                missing.0
            )
        }
        OpenError::Refused { error } => write!(out, "userfaultfd refuses its handshake: {error}"),
    }
}

/// The failure of an operation, whose error is still to come.
pub fn call(what: &'static str) -> impl Fn(Errno) -> Trouble {
    move |error| Trouble::Call { what, error }
}

/// The failure to reach the supervisor.
pub fn no_supervisor(error: std::io::Error) -> Trouble {
    use std::io::ErrorKind as Kind;
    if error.kind() == Kind::OutOfMemory {
        let error = Errno::NOMEM;
        return call("mapping the memory of the run")(error);
    }
    if error.kind() == Kind::PermissionDenied {
        return Trouble::ForeignSupervisor;
    }
    Trouble::NoSupervisor {
        what: error.to_string(),
        is_gone: matches!(
            error.kind(),
            Kind::NotFound
                | Kind::ConnectionRefused
                | Kind::ConnectionReset
                | Kind::BrokenPipe
                | Kind::UnexpectedEof
        ),
    }
}

/// Writes one line to the program's standard error as it is now.
pub fn say(line: &str) {
    let text = format!("tidemark: {line}\n");
    // If even the last fails there is nowhere left to say so.
    match (program_stderr(), program::control()) {
        (Some(file), _) => _ = rustix::io::write(&file, text.as_bytes()),
        (None, Some(control)) => _ = control::say(control, text.as_bytes()),
        (None, None) => {}
    }
}

/// The program's standard error. It is looked up when it is needed: to keep it open would keep
/// pipes from closing when the program closes its end.
fn program_stderr() -> Option<OwnedFd> {
    let number = std::io::stderr().as_raw_fd();
    files::copy_of_programs(number).ok().or_else(|| {
        // The right to that may be for a process's ancestors and threads alone.
        use rustix::fs::OFlags;
        let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::CLOEXEC | OFlags::NOCTTY;
        program::open(&format!("fd/{number}"), flags).ok()
    })
}

/// The number of the program's process.
pub fn pid() -> u32 {
    program::number()
}

/// The reason for which nothing more can leave where there is no swap file.
pub const COMPRESSED_FULL: &str = "what is compressed has no room; give it more, or a file with \
                               `--store compressed+file`";

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verb = match self.direction {
            Direction::Fetch => "reading",
            Direction::Store => "writing",
        };
        let file = match self.file {
            Some(_) => "the file",
            None => "the swap file",
        };
        let place = format!("{verb} {file} at byte {}", self.offset());
        match self.cause {
            Cause::File(Errno::FBIG) => write!(
                out,
                "{place}: the program limits the size of files (`ulimit -f`), and only a privilege \
                 would raise that for swap; set no limit there"
            ),
            Cause::File(error) => write!(out, "{place}: {error}"),
            Cause::Short => write!(out, "{place}: the file ends there"),
            Cause::Differs => write!(out, "{place}: what came back is not what was stored"),
            Cause::Memory(error) => write!(out, "{place}: no memory to read into: {error}"),
            Cause::Full => out.write_str(COMPRESSED_FULL),
        }
    }
}
