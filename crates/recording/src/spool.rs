//! The spool: the folder in which a recording's processes leave their logs.
//!
//! It lies in memory where it can. Each process makes its own log file; what it has to say at once
//! comes through a FIFO, the bell, a line each:
//!
//! - `log PID NUMBER`: there is a log by the name of `PID-NUMBER`;
//! - `more PID NUMBER`, `shut PID NUMBER`: there is something to read;
//! - `mark PID STAMP NAME`: the child of `PID` names a phase, at this time.
//!
//! A folder whose recording was killed is swept by the next recording.

use std::fs::{DirBuilder, File};
use std::io::{ErrorKind, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, FlockOperation, Mode, OFlags, flock, mknodat};

/// The variable that tells `tidemark mark` where the spool is.
pub const VARIABLE: &str = "TIDEMARK_RECORDING";
/// The name of the bell in the folder.
pub const BELL: &str = "bell";
const PREFIX: &str = "tidemark-record-";
/// Held as long as the recording lives.
const LOCK: &str = "lock";
const NAMES_MAX: u32 = 1000;

/// A spool folder. It goes with this value.
#[derive(Debug)]
pub struct Spool {
    /// The path of the folder.
    pub path: PathBuf,
    bell: File,
    _lock: File,
    heard: Vec<u8>,
}

/// The messages that come through the bell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// A process has opened a log.
    Log {
        /// The process.
        pid: u32,
        /// Its log's file in the folder.
        name: String,
    },
    /// A phase has been named from outside.
    Mark {
        /// The process that the phase is one of.
        pid: u32,
        /// The time, on the monotonic clock.
        stamp_ns: u64,
        /// The phase.
        name: String,
    },
}

/// There is no place for a spool.
#[derive(Debug)]
pub struct SpoolError {
    /// The folder of the last try.
    pub folder: PathBuf,
    /// The error of that try.
    pub why: std::io::Error,
}

impl Spool {
    /// Makes a folder.
    ///
    /// # Errors
    /// If it can be made in none of the places for temporary files; of the last one that was tried.
    pub fn new() -> Result<Spool, SpoolError> {
        let mut last = None;
        for parent in parents() {
            sweep(&parent);
            match Spool::new_in(&parent) {
                Ok(spool) => return Ok(spool),
                Err(why) => last = Some((parent, why)),
            }
        }
        let (folder, why) = last.unwrap_or_else(|| ("/tmp".into(), ErrorKind::NotFound.into()));
        Err(SpoolError { folder, why })
    }

    /// Takes what has come through the bell.
    pub fn take_messages(&mut self) -> Vec<Message> {
        let mut bytes = [0; 4096];
        while let Ok(read @ 1..) = self.bell.read(&mut bytes) {
            self.heard.extend_from_slice(&bytes[..read]);
        }
        let Some(end) = self.heard.iter().rposition(|&byte| byte == b'\n') else {
            return Vec::new();
        };
        let lines: Vec<u8> = self.heard.drain(..=end).collect();
        lines
            .split(|&byte| byte == b'\n')
            .filter_map(parse)
            .collect()
    }

    fn new_in(parent: &Path) -> std::io::Result<Spool> {
        let path = make_folder(parent)?;
        let lock = File::create_new(path.join(LOCK))?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
        let bell = path.join(BELL);
        mknodat(CWD, &bell, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?;
        // Open for writing too, by which it never is at its end.
        let bell = File::options()
            .read(true)
            .write(true)
            .custom_flags(OFlags::NONBLOCK.bits() as i32)
            .open(bell)?;
        Ok(Spool {
            path,
            bell,
            _lock: lock,
            heard: Vec::new(),
        })
    }
}

impl AsFd for Spool {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}

impl Drop for Spool {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

/// Folders to make a spool in, the best first.
fn parents() -> impl Iterator<Item = PathBuf> {
    let chosen = std::env::var_os("TMPDIR").map(PathBuf::from);
    ["/dev/shm".into()]
        .into_iter()
        .chain(chosen)
        .chain(["/tmp".into(), "/var/tmp".into()])
        .filter(|folder: &PathBuf| folder.is_dir())
}

/// Makes a folder with a name of fixed length: it is in the environment of the program, whose
/// stack must not move from one recording to the next.
fn make_folder(parent: &Path) -> std::io::Result<PathBuf> {
    let start = std::process::id();
    let mut last = Ok(());
    for number in 0..NAMES_MAX {
        let name = start.wrapping_mul(NAMES_MAX).wrapping_add(number);
        let path = parent.join(format!("{PREFIX}{name:08x}"));
        last = DirBuilder::new().mode(0o700).create(&path);
        match &last {
            Ok(()) => return Ok(path),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(_) => break,
        }
    }
    last.map(|()| parent.into())
}

/// Removes folders that no recording holds any more.
fn sweep(parent: &Path) {
    for entry in std::fs::read_dir(parent).into_iter().flatten().flatten() {
        let is_spool = entry.file_name().to_string_lossy().starts_with(PREFIX);
        let lock = entry.path().join(LOCK);
        if is_spool
            && let Ok(lock) = File::open(lock)
            && flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok()
        {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

fn parse(line: &[u8]) -> Option<Message> {
    let line = String::from_utf8_lossy(line);
    let mut words = line.splitn(4, ' ');
    let verb = words.next()?;
    let pid = words.next()?.parse().ok()?;
    let number = words.next()?.parse().ok()?;
    match verb {
        "log" => Some(Message::Log {
            pid,
            name: format!("{pid}-{number}"),
        }),
        "mark" => Some(Message::Mark {
            pid,
            stamp_ns: number,
            name: words.next()?.into(),
        }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn what_comes_through_the_bell_is_taken_whole_lines_at_a_time() {
        let mut spool = Spool::new().unwrap();
        let mut bell = File::options()
            .write(true)
            .open(spool.path.join(BELL))
            .unwrap();
        bell.write_all(b"log 7 99\nmore 7 99\nmark 7 12 a long na")
            .unwrap();
        let log = Message::Log {
            pid: 7,
            name: "7-99".into(),
        };
        assert_eq!(spool.take_messages(), [log]);
        bell.write_all(b"me\nnonsense\n").unwrap();
        let mark = Message::Mark {
            pid: 7,
            stamp_ns: 12,
            name: "a long name".into(),
        };
        assert_eq!(spool.take_messages(), [mark]);
    }

    #[test]
    fn a_folder_goes_with_its_recording_and_that_of_a_killed_one_is_swept() {
        let spool = Spool::new().unwrap();
        let (path, parent) = (
            spool.path.clone(),
            spool.path.parent().unwrap().to_path_buf(),
        );
        sweep(&parent);
        assert!(path.is_dir(), "its recording lives");
        drop(spool);
        assert!(!path.exists());
        let left = make_folder(&parent).unwrap();
        File::create(left.join(LOCK)).unwrap();
        sweep(&parent);
        assert!(!left.exists());
    }
}
