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
    /// A file that another region, here or in another process, is written to by, or that is locked.
    FileInUse {
        /// Its path.
        path: PathBuf,
    },
    /// Modified pages of a file can't be written to it. They stay in memory.
    FileWrite {
        /// The file's path.
        path: PathBuf,
        /// The byte at which the write begins, unless it is the disk that fails later.
        offset: Option<u64>,
        /// The kernel's error.
        error: Errno,
    },
    /// A file was cut by another, and what was modified beyond is lost.
    FileCut {
        /// Its path.
        path: PathBuf,
        /// The size that it was cut to.
        bytes: u64,
        /// The size that it had.
        needs: u64,
    },
    /// Pages that are to be written were held by the kernel all the time, for input or output.
    FileHeld {
        /// The file's path.
        path: PathBuf,
        /// The number of these pages.
        pages: u32,
    },
    /// A pager can't write pages that were modified. They stay in memory.
    PagerWrite {
        /// The pager's name.
        name: String,
        /// The byte at which the write begins.
        offset: u64,
        /// The pager's error.
        text: String,
    },
    /// A pager with more bytes than pages are counted.
    PagerFar {
        /// The pager's name.
        name: String,
        /// Its bytes.
        bytes: u64,
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

impl Error {
    /// Writes an error that names a file or a pager.
    fn fmt_of_file(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::File { path, error } => write!(
                out,
                "`{}` can't be opened: {error}; name a file that you may open, in a folder that is \
                 there",
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
            Error::FileInUse { path } => write!(
                out,
                "`{}` is being written to by another region or process; use that, or end it first",
                path.display()
            ),
            Error::FileWrite {
                path,
                offset,
                error,
            } => {
                let path = path.display();
                let place =
                    offset.map_or("to its disk".into(), |offset| format!("at byte {offset}"));
                write!(
                    out,
                    "`{path}` can't be written {place}: {error}; what is modified stays in memory: \
                     flush again when there is room"
                )
            }
            Error::FileCut { path, bytes, needs } => write!(
                out,
                "`{}` was cut to {bytes} bytes of {needs}, and what was modified beyond is lost",
                path.display()
            ),
            Error::FileHeld { path, pages } => write!(
                out,
                "{pages} pages of `{}` are held by the kernel; flush when input and output on them \
                 have ended",
                path.display()
            ),
            Error::PagerWrite { name, offset, text } => write!(
                out,
                "`{name}` can't be written at byte {offset}: {text}; what is modified stays in \
                 memory: flush again when it can"
            ),
            Error::PagerFar { name, bytes } => {
                write!(out, "`{name}` has {bytes} bytes; needs fewer than 16 TiB")
            }
            Error::Size { .. }
            | Error::Policy { .. }
            | Error::Swap { .. }
            | Error::System(_)
            | Error::Empty
            | Error::TooLarge { .. }
            | Error::Range { .. }
            | Error::Forked => unreachable!("it is of neither"),
        }
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
            Error::File { .. }
            | Error::FileKind { .. }
            | Error::FileShort { .. }
            | Error::FileFar { .. }
            | Error::FileInUse { .. }
            | Error::FileWrite { .. }
            | Error::FileCut { .. }
            | Error::FileHeld { .. }
            | Error::PagerWrite { .. }
            | Error::PagerFar { .. } => self.fmt_of_file(out),
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
