//! The private folder of a run, with its socket.

use std::fs::DirBuilder;
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rustix::process::Pid;
use serde::{Deserialize, Serialize};
use tidemark_results::{Refusal, refuse};

use crate::program::plain;

/// The longest path a socket can have.
const SOCKET_PATH_MAX: usize = 107;

/// The folder for the socket of requests, and that socket.
const REQUESTS: [&str; 2] = ["requests", "socket"];

/// A folder that only this user can look into, with a socket that [all](crate::peers) can reach.
/// It goes with this value.
#[derive(Debug, Serialize, Deserialize)]
pub struct PrivateFolder {
    path: PathBuf,
}

impl PrivateFolder {
    /// Makes one where temporary files go.
    pub fn new() -> Result<PrivateFolder, Refusal> {
        let since = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
        let name = format!("tidemark-{}-{:x}", std::process::id(), since.as_nanos());
        let mut path = std::env::temp_dir().join(&name);
        if path.as_os_str().len() + "/requests/socket".len() > SOCKET_PATH_MAX {
            path = Path::new("/tmp").join(&name);
        }
        if let Some(parent) = path.parent() {
            remove_stale(parent);
        }
        match DirBuilder::new().mode(0o711).create(&path) {
            Ok(()) => Ok(PrivateFolder { path }),
            Err(error) => refuse!(
                "`{}`: {}; name a folder you may write to in $TMPDIR",
                path.display(),
                plain(&error)
            ),
        }
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Puts a file of `bytes` zeros into the folder, which take no room before they are written.
    pub fn put_blank(&self, name: &str, bytes: u64) -> Result<PathBuf, Refusal> {
        let path = self.path.join(name);
        match std::fs::File::create_new(&path).and_then(|file| file.set_len(bytes)) {
            Ok(()) => Ok(path),
            Err(error) => refuse!("`{}`: {}", path.display(), plain(&error)),
        }
    }

    /// Puts a file with these `bytes` into the folder. Says its path.
    pub fn put(&self, name: &str, bytes: &[u8]) -> Result<PathBuf, Refusal> {
        let path = self.path.join(name);
        match std::fs::write(&path, bytes) {
            Ok(()) => Ok(path),
            Err(error) => refuse!("`{}`: {}", path.display(), plain(&error)),
        }
    }

    /// Listens on a socket in the folder. Says its path, too.
    pub fn listen(&self) -> Result<(UnixListener, PathBuf), Refusal> {
        let path = self.path.join("control");
        let for_all = std::fs::Permissions::from_mode(0o666);
        let bound = UnixListener::bind(&path);
        let bound = bound.and_then(|listener| {
            std::fs::set_permissions(&path, for_all)?;
            Ok(listener)
        });
        match bound {
            Ok(listener) => Ok((listener, path)),
            Err(error) => refuse!("`{}`: {}", path.display(), plain(&error)),
        }
    }

    /// Listens on a socket that no other user can reach, in a folder of its own.
    pub fn listen_for_requests(&self) -> Result<UnixListener, Refusal> {
        let path = requests_socket(&self.path);
        let folder = path.parent().expect("the socket lies in a folder");
        let bound = DirBuilder::new().mode(0o700).create(folder);
        match bound.and_then(|()| UnixListener::bind(&path)) {
            Ok(listener) => Ok(listener),
            Err(error) => refuse!("`{}`: {}", path.display(), plain(&error)),
        }
    }
}

/// The socket at which the run with this folder takes requests.
fn requests_socket(folder: &Path) -> PathBuf {
    let [inner, socket] = REQUESTS;
    folder.join(inner).join(socket)
}

/// Finds the runs of this user that take requests: the process id of each `tidemark run`, and its
/// socket.
pub fn find_runs() -> Vec<(u32, PathBuf)> {
    let own = rustix::process::geteuid().as_raw();
    let mut parents = vec![std::env::temp_dir(), PathBuf::from("/tmp")];
    parents.dedup();
    let folders = parents.iter().flat_map(std::fs::read_dir).flatten();
    let mut runs: Vec<(u32, PathBuf)> = folders
        .flatten()
        .filter(|entry| entry.metadata().is_ok_and(|found| found.uid() == own))
        .filter_map(|entry| {
            let maker = maker_of(entry.file_name().to_str()?)?;
            let socket = requests_socket(&entry.path());
            // A run that was killed leaves a socket at which there is no answer.
            let is_open = UnixStream::connect(&socket).is_ok();
            is_open.then_some((maker.as_raw_nonzero().get().unsigned_abs(), socket))
        })
        .collect();
    runs.sort();
    runs
}

/// Removes what runs have left behind that were killed: this user's folders, made by a process that
/// is gone, with a socket without a listener.
fn remove_stale(parent: &Path) {
    let own = rustix::process::geteuid().as_raw();
    for entry in std::fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let is_dead = name.to_str().and_then(maker_of).is_some_and(|maker| {
            let answer = rustix::process::test_kill_process(maker);
            answer == Err(rustix::io::Errno::SRCH)
        });
        let is_own = || {
            entry
                .metadata()
                .is_ok_and(|found| found.is_dir() && found.uid() == own)
        };
        if is_dead && is_own() && is_deserted(&entry.path().join("control")) {
            // Another run may be quicker.
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

/// The process that made a folder of this name.
fn maker_of(name: &str) -> Option<Pid> {
    let (maker, _) = name.strip_prefix("tidemark-")?.split_once('-')?;
    Pid::from_raw(maker.parse().ok()?)
}

/// Returns true if there is no process listening at `socket`. A keeper that does takes no offence.
fn is_deserted(socket: &Path) -> bool {
    match UnixStream::connect(socket) {
        Ok(_) => false,
        Err(error) => matches!(
            error.kind(),
            ErrorKind::ConnectionRefused | ErrorKind::NotFound
        ),
    }
}

impl Drop for PrivateFolder {
    fn drop(&mut self) {
        // Nothing in it is worth a complaint after the run.
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

/// Leaves a socket at `path` as a killed process does. It is dead even while a process that another
/// test begins has a copy of it, which it has until its exec.
#[cfg(test)]
pub(crate) fn leave_dead_socket(path: &Path) {
    let listener = UnixListener::bind(path).unwrap();
    rustix::net::shutdown(&listener, rustix::net::Shutdown::Both).unwrap();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_killed_runs_folder_goes_and_a_kept_one_stays() {
        let scratch = PrivateFolder::new().unwrap();
        let mut gone = std::process::Command::new("true").spawn().unwrap();
        let dead = gone.id();
        gone.wait().unwrap();
        let make = |name: String| {
            let path = scratch.path.join(name);
            std::fs::create_dir(&path).unwrap();
            path
        };
        let killed = make(format!("tidemark-{dead}-1"));
        leave_dead_socket(&killed.join("control"));
        let kept = make(format!("tidemark-{dead}-2"));
        let _keeper = UnixListener::bind(kept.join("control")).unwrap();
        let starting = make(format!("tidemark-{}-3", std::process::id()));
        let other = make(format!("tidemark-{dead}"));
        remove_stale(&scratch.path);
        let is_there = [killed, kept, starting, other].map(|path| path.exists());
        assert_eq!(is_there, [false, true, true, true]);
    }

    #[test]
    fn a_private_folder_is_for_its_user_alone_and_goes() {
        let folder = PrivateFolder::new().unwrap();
        let path = folder.path.clone();
        let mode_of = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode_of(&path), 0o711);
        let (_socket, socket) = folder.listen().unwrap();
        assert_eq!(mode_of(&socket), 0o666);
        let _requests = folder.listen_for_requests().unwrap();
        assert_eq!(mode_of(&path.join("requests")), 0o700);
        let own = std::process::id();
        assert!(find_runs().contains(&(own, requests_socket(&path))));
        drop(folder);
        assert!(!path.exists());
    }
}
