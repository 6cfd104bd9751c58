//! The errors of this crate: each names what is wrong, its value and the remedy, in one line.

use std::fmt;
use std::path::PathBuf;

use tidemark_live::engine::Trouble;
use tidemark_live::machine::StartError;
use tidemark_live::sys::Errno;

use crate::settings::MEMORY_BYTES_LEAST;

/// The reason why something can't be done.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Error {
    /// A size of memory or swap that can't be.
    Size {
        /// The setting.
        name: &'static str,
        /// Its value.
        bytes: u64,
    },
    /// No policy of that name can run live.
    Policy {
        /// The name.
        name: String,
    },
    /// The swap file can't be made.
    Swap {
        /// The folder that was to hold it.
        folder: PathBuf,
        /// Its size in bytes.
        bytes: u64,
        /// The kernel's error.
        error: Errno,
    },
    /// The system refuses what an engine needs.
    System(Trouble),
    /// A file can't be opened.
    File {
        /// The path of the file.
        path: PathBuf,
        /// The kernel's error.
        error: Errno,
    },
    /// A folder, a pipe or a device, where a file is needed.
    FileKind {
        /// The path of the file.
        path: PathBuf,
    },
    /// A file that ends before the bytes that were asked for.
    FileShort {
        /// The path of the file.
        path: PathBuf,
        /// Its size.
        bytes: u64,
        /// The size that it needs.
        needs: u64,
    },
    /// A part of a file that is further from its beginning than pages are counted.
    FileFar {
        /// The path of the file.
        path: PathBuf,
        /// The byte behind the last.
        end: u64,
    },
    /// A region of no bytes.
    Empty,
    /// A region larger than what is left of memory and swap.
    TooLarge {
        /// The size that was asked for.
        bytes: u64,
        /// The most that would do.
        left: u64,
    },
    /// A range that is not within its region.
    Range {
        /// The first byte.
        start: usize,
        /// The byte behind the last.
        end: usize,
        /// The size of the region.
        bytes: usize,
    },
    /// The engine is in another process: this one is a forked child.
    Forked,
}

impl Error {
    /// The system call that does `what` has failed.
    pub(crate) fn call(what: &'static str, error: Errno) -> Error {
        Error::System(Trouble::Call { what, error })
    }

    /// Returns true if the kernel does not permit what an engine needs, whatever its settings.
    pub fn is_refusal(&self) -> bool {
        matches!(self, Error::System(Trouble::Machine(StartError::Uffd(_))))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Size { name, bytes } => {
                write!(
                    out,
                    "`{name}` is {bytes} bytes; needs {MEMORY_BYTES_LEAST} to 8 TiB"
                )
            }
            Error::Policy { name } => write!(
                out,
                "no policy called `{name}` can run live; `tidemark policies` lists those that can"
            ),
            Error::Swap {
                folder,
                bytes,
                error,
            } => write!(
                out,
                "a swap file of {bytes} bytes can't be made in `{}`: {error}; choose another \
                 folder or a smaller size",
                folder.display()
            ),
            Error::System(trouble) => write!(out, "{trouble}"),
            Error::File { path, error } => write!(
                out,
                "`{}` can't be opened: {error}; name a file that can be read",
                path.display()
            ),
            Error::FileKind { path } => {
                let path = path.display();
                write!(out, "`{path}` is not a regular file; name one that is")
            }
            Error::FileShort { path, bytes, needs } => write!(
                out,
                "`{}` has {bytes} bytes; needs {needs}: ask for less of it",
                path.display()
            ),
            Error::FileFar { path, end } => write!(
                out,
                "byte {end} of `{}` is asked for; needs one before 16 TiB",
                path.display()
            ),
            Error::Empty => write!(out, "`bytes` is 0; needs 1"),
            Error::TooLarge { bytes, left } => write!(
                out,
                "`bytes` is {bytes}; {left} are left of memory and swap: ask for more `swap_size`"
            ),
            Error::Range { start, end, bytes } => {
                write!(
                    out,
                    "`{start}..{end}` is not within a region of {bytes} bytes"
                )
            }
            Error::Forked => write!(
                out,
                "a forked child has no engine and no regions; make an engine of its own"
            ),
        }
    }
}

impl std::error::Error for Error {}
