//! Files that a run makes: the statistics file, and the private folder of its socket.

use std::fs::{DirBuilder, File};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rustix::process::Pid;
use serde::{Deserialize, Serialize};

use super::program::plain;
use crate::exit::{Refusal, refuse};

/// The longest path a socket can have.
const SOCKET_PATH_MAX: usize = 107;

/// A file that will take the place of another in one step, or not at all.
#[derive(Debug)]
pub struct Replacement {
    file: File,
    /// Where it is until it takes its place; `None` for what can't be replaced, like a pipe.
    draft: Option<PathBuf>,
    path: PathBuf,
}

impl Replacement {
    /// Opens a draft beside `path`.
    pub fn new(path: &Path) -> Result<Replacement, Refusal> {
        let is_special = std::fs::metadata(path).is_ok_and(|found| !found.is_file());
        let draft = (!is_special).then(|| {
            let mut name = path.file_name().unwrap_or_default().to_os_string();
            name.push(format!(".{}.tmp", std::process::id()));
            path.with_file_name(name)
        });
        let opened = match &draft {
            Some(draft) => File::create_new(draft),
            None => File::options().write(true).open(path),
        };
        match opened {
            Ok(file) => Ok(Replacement {
                file,
                draft,
                path: path.into(),
            }),
            Err(error) => refuse!(
                "`{}`: {}; name a file in a folder you may write to",
                path.display(),
                plain(&error)
            ),
        }
    }

    /// Writes `text` and puts the file in its place.
    pub fn write(mut self, text: &str) -> Result<(), Refusal> {
        match self.file.write_all(text.as_bytes()) {
            Ok(()) => self.put_in_place(),
            Err(error) => refuse!("`{}`: {}", self.path.display(), plain(&error)),
        }
    }

    /// The draft, to write to.
    pub fn draft(&self) -> &File {
        &self.file
    }

    /// Puts the file in its place, with what its draft holds.
    pub fn put_in_place(mut self) -> Result<(), Refusal> {
        let moved = match &self.draft {
            Some(draft) => std::fs::rename(draft, &self.path),
            None => Ok(()),
        };
        match moved {
            Ok(()) => {
                self.draft = None;
                Ok(())
            }
            Err(error) => refuse!("`{}`: {}", self.path.display(), plain(&error)),
        }
    }
}

impl Drop for Replacement {
    fn drop(&mut self) {
        if let Some(draft) = &self.draft {
            // It may be gone already, with the folder it was in.
            let _ = std::fs::remove_file(draft);
        }
    }
}

/// A folder that only this user can look into, with a socket that [all](super::peers) can reach.
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
        if path.as_os_str().len() + "/control".len() > SOCKET_PATH_MAX {
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

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
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
}

/// Removes what runs have left behind that were killed: this user's folders, made by a process that
/// is gone, with a socket on which nobody listens.
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

/// Whether nobody listens at `socket`. A keeper that does takes no offence.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replacement_appears_whole_or_not_at_all() {
        let folder = PrivateFolder::new().unwrap();
        let path = folder.path.join("stats.json");
        std::fs::write(&path, "old").unwrap();
        drop(Replacement::new(&path).unwrap());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "old");
        Replacement::new(&path).unwrap().write("new").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(std::fs::read_dir(&folder.path).unwrap().count(), 1);
    }

    #[test]
    fn a_device_is_written_to_and_stays_what_it_is() {
        Replacement::new(Path::new("/dev/null"))
            .unwrap()
            .write("text")
            .unwrap();
        assert!(!std::fs::metadata("/dev/null").unwrap().is_file());
    }

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
        drop(UnixListener::bind(killed.join("control")).unwrap());
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
        drop(folder);
        assert!(!path.exists());
    }
}
