//! The files a command reads and writes.
//!
//! Every file that a command leaves for its user is opened here, and nowhere else: a layout rule
//! sees to that. So there is one answer to each of these questions.
//!
//! - *An output that is an input.* [`check`] compares device and inode of all outputs with those of
//!   all inputs before a command begins, through links of both kinds, and refuses.
//! - *An output that is there already.* [`OutputFile`] takes its place when it is whole; until then
//!   the old one is as it was, and a command that fails or is killed changes nothing. What is
//!   [`Recorded`] grows under its own name, since a recording that is killed leaves what it has.
//!   What was there before a trace is kept beside it, however the trace is made.
//! - *An output that is no plain file.* A device, a pipe and the standard streams are written to.

#![forbid(unsafe_code)]

use std::fs::{self, File};
use std::io::{self, Seek, Write};
use std::os::unix::fs::{MetadataExt, fchown};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, linkat, openat};
use tidemark_results::refusal::plain;
use tidemark_results::{Refusal, refuse};

/// The name that stands for standard input or output.
const STANDARD: &str = "-";

/// Symbolic links that are followed from a name to a file, as in the kernel.
const LINKS_MAX: usize = 40;

/// The files that the arguments of a command name.
///
/// Each command says which they are, if only that there are none.
pub trait Files {
    /// The files that are read. Words that name no file do no harm, so that names of policies, or
    /// the words of a program's command line, can be given as they are.
    fn reads(&self) -> Vec<PathBuf> {
        vec![]
    }

    /// The files that are written, each with the option that names it.
    fn writes(&self) -> Vec<(&'static str, PathBuf)> {
        vec![]
    }
}

/// A file that is read.
#[derive(Debug)]
struct Input {
    name: String,
    identity: Identity,
}

/// The identity of a file, whatever it is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Identity {
    device: u64,
    inode: u64,
}

/// The inputs of this process, with which every output is compared when it is opened.
static INPUTS: OnceLock<Vec<Input>> = OnceLock::new();

/// Refuses arguments that name a file for writing that is read, or one file for two outputs.
pub fn check(files: &impl Files) -> Result<(), Refusal> {
    let inputs = files
        .reads()
        .into_iter()
        .filter_map(|path| Input::new(&path));
    let inputs = INPUTS.get_or_init(|| inputs.collect());
    let mut outputs: Vec<(String, PathBuf)> = vec![];
    for (option, path) in files.writes() {
        let told = format!("{option} {}", path.display());
        compare(inputs, &told, identity_of_output(&path))?;
        if path.as_os_str() == STANDARD {
            continue;
        }
        let place = find_place(&path).map_err(|error| unwritable(&told, &error))?;
        let Place::Name(target) = place else { continue };
        if let Some((other, _)) = outputs.iter().find(|(_, taken)| *taken == target) {
            refuse!("`{told}`: is the same file as `{other}`; name another file");
        }
        outputs.push((told, target));
    }
    Ok(())
}

/// Refuses an output that is one of `inputs`.
fn compare(inputs: &[Input], told: &str, output: Option<Identity>) -> Result<(), Refusal> {
    let input = inputs.iter().find(|input| Some(input.identity) == output);
    match input {
        Some(input) => refuse!(
            "`{told}`: is the same file as `{}`, which is read; name another file",
            input.name
        ),
        None => Ok(()),
    }
}

impl Input {
    fn new(path: &Path) -> Option<Input> {
        let (name, metadata) = match path.as_os_str() == STANDARD {
            true => {
                let stdin = File::from(rustix::io::dup(io::stdin()).ok()?);
                ("standard input".into(), stdin.metadata().ok()?)
            }
            false => (path.display().to_string(), fs::metadata(path).ok()?),
        };
        let identity = Identity::of(&metadata)?;
        Some(Input { name, identity })
    }
}

impl Identity {
    /// The identity of a plain file. Devices and pipes can be read and written at once.
    fn of(metadata: &fs::Metadata) -> Option<Identity> {
        metadata.is_file().then(|| Identity {
            device: metadata.dev(),
            inode: metadata.ino(),
        })
    }
}

fn identity_of_output(path: &Path) -> Option<Identity> {
    let metadata = match path.as_os_str() == STANDARD {
        true => File::from(rustix::io::dup(io::stdout()).ok()?).metadata(),
        false => fs::metadata(path),
    };
    Identity::of(&metadata.ok()?)
}

/// The place of an output.
#[derive(Debug, PartialEq, Eq)]
enum Place {
    /// A plain file of this name, which is no link, or none yet.
    Name(PathBuf),
    /// A file that is written directly: a device, a pipe, an open file of this process.
    Direct,
}

/// Finds where writing to `path` goes, through symbolic links.
fn find_place(path: &Path) -> io::Result<Place> {
    if fs::metadata(path).is_ok_and(|found| !found.is_file()) {
        return Ok(Place::Direct);
    }
    let mut path = path.to_path_buf();
    for _ in 0..LINKS_MAX {
        let Some(name) = path.file_name() else {
            return Ok(Place::Direct);
        };
        let parent = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            Some(_) | None => Path::new("."),
        };
        let parent = parent.canonicalize()?;
        // `/dev/stdout` ends here: an open file has no place where another could be put.
        if parent.starts_with("/proc") {
            return Ok(Place::Direct);
        }
        let named = parent.join(name);
        match fs::read_link(&named) {
            Ok(link) => path = parent.join(link),
            Err(_) => return Ok(Place::Name(named)),
        }
    }
    Err(rustix::io::Errno::LOOP.into())
}

/// A file that will take the place of another in one step, or not at all.
#[derive(Debug)]
pub struct OutputFile {
    /// The name in messages.
    name: String,
    file: File,
    draft: Draft,
}

/// The stages of a file before it takes its place.
#[derive(Debug)]
enum Draft {
    /// A file without a name, which goes with its process; it is to get the name `target`.
    Nameless { target: PathBuf },
    /// A file called `draft`, on file systems that have none without a name.
    Named { draft: PathBuf, target: PathBuf },
    /// None: what is written is there at once.
    Direct,
}

impl OutputFile {
    /// Opens a file to be put at `path`; `-` is standard output.
    pub fn new(path: &Path) -> Result<OutputFile, Refusal> {
        let name = match path.as_os_str() == STANDARD {
            true => "standard output".to_owned(),
            false => path.display().to_string(),
        };
        let inputs = INPUTS.get().map_or(&[][..], Vec::as_slice);
        compare(inputs, &name, identity_of_output(path))?;
        match open(path) {
            Ok((file, draft)) => Ok(OutputFile { name, file, draft }),
            Err(error) => Err(unwritable(&name, &error)),
        }
    }

    /// Writes `bytes` and puts the file in its place.
    pub fn write(mut self, bytes: &[u8]) -> Result<(), Refusal> {
        match self.file.write_all(bytes) {
            Ok(()) => self.put_in_place(),
            // A reader that has gone away wants no more.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            Err(error) => refuse!("`{}`: {}", self.name, plain(&error)),
        }
    }

    /// The file to write to.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Puts the file in its place, with what was written to it.
    pub fn put_in_place(mut self) -> Result<(), Refusal> {
        match self.rename() {
            Ok(()) => {
                self.draft = Draft::Direct;
                Ok(())
            }
            Err(error) => refuse!("`{}`: {}", self.name, plain(&error)),
        }
    }

    /// Puts the file in its place, and keeps what was there before beside it. Says where that is.
    pub fn put_beside_old(self) -> Result<Option<PathBuf>, Refusal> {
        let target = match &self.draft {
            Draft::Nameless { target } | Draft::Named { target, .. } => target.clone(),
            Draft::Direct => return self.put_in_place().map(|()| None),
        };
        // An empty file holds nothing to be kept; it may have been made to reserve the name.
        if !fs::metadata(&target).is_ok_and(|found| found.len() > 0) {
            return self.put_in_place().map(|()| None);
        }
        let kept = keep_old(INPUTS.get().map_or(&[][..], Vec::as_slice), &target)?;
        let put = self.put_in_place();
        if put.is_err() {
            let _ = fs::rename(&kept, &target);
        }
        put.map(|()| Some(kept))
    }

    /// Puts the file in its place before anything is written to it: a log, which comes line by line
    /// and is followed. All who have it open write to its end.
    pub fn into_log(self) -> Result<File, Refusal> {
        let log = rustix::fs::fcntl_setfl(&self.file, OFlags::APPEND)
            .map_err(io::Error::from)
            .and_then(|()| self.file.try_clone());
        match log {
            Ok(log) => self.put_in_place().map(|()| log),
            Err(error) => Err(unwritable(&self.name, &error)),
        }
    }

    fn rename(&mut self) -> io::Result<()> {
        if let Draft::Nameless { target } = &self.draft {
            // A file gets its first name only where there is none.
            let (draft, target) = (draft_beside(target), target.clone());
            let open = open_path(&self.file);
            let linked = linkat(CWD, open, CWD, &draft, AtFlags::SYMLINK_FOLLOW);
            let named = linked.or_else(|_| copy(&self.file, &draft));
            self.draft = Draft::Named { draft, target };
            named?;
        }
        match &self.draft {
            Draft::Named { draft, target } => fs::rename(draft, target),
            Draft::Nameless { .. } | Draft::Direct => Ok(()),
        }
    }
}

impl Drop for OutputFile {
    fn drop(&mut self) {
        if let Draft::Named { draft, .. } = &self.draft {
            // It may be gone already, with the folder it was in.
            let _ = fs::remove_file(draft);
        }
    }
}

/// Puts a file with these `bytes` at `path`; `-` is standard output.
pub fn write(path: &Path, bytes: &[u8]) -> Result<(), Refusal> {
    OutputFile::new(path)?.write(bytes)
}

fn unwritable(name: &str, error: &io::Error) -> Refusal {
    let why = plain(error);
    Refusal::new(format!(
        "`{name}`: {why}; name a file in a folder you may write to"
    ))
}

/// Copies a file that can't be linked, as where `/proc` is not mounted, to one called `draft`.
fn copy(file: &File, draft: &Path) -> io::Result<()> {
    let mut from = file.try_clone()?;
    from.rewind()?;
    let mut to = File::create_new(draft)?;
    to.set_permissions(from.metadata()?.permissions())?;
    io::copy(&mut from, &mut to).map(drop)
}

/// The path by which an open file can be linked to.
fn open_path(file: &File) -> PathBuf {
    use std::os::fd::AsRawFd;
    format!("/proc/self/fd/{}", file.as_raw_fd()).into()
}

/// A name beside `target` that no other file of this process has.
fn draft_beside(target: &Path) -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    target.with_file_name(format!(".tidemark-{}-{number}.tmp", std::process::id()))
}

/// Opens what is written to for `path`.
fn open(path: &Path) -> io::Result<(File, Draft)> {
    if path.as_os_str() == STANDARD {
        return Ok((File::from(rustix::io::dup(io::stdout())?), Draft::Direct));
    }
    match find_place(path)? {
        Place::Direct => Ok((open_direct(path)?, Draft::Direct)),
        Place::Name(target) => {
            let old = old_of(&target)?;
            let (file, draft) = open_draft(target)?;
            if let Some(old) = old {
                take_after(&file, &old);
            }
            Ok((file, draft))
        }
    }
}

/// Opens what is no plain file. The standard streams go on where they are; to open them again
/// would begin at the start of a file they are sent to.
fn open_direct(path: &Path) -> io::Result<File> {
    let last = fs::read_link(path).unwrap_or_else(|_| path.to_path_buf());
    let is = |number: &str| {
        [path, &last]
            .iter()
            .any(|path| path.ends_with(format!("fd/{number}")))
    };
    match () {
        () if is("1") => Ok(File::from(rustix::io::dup(io::stdout())?)),
        () if is("2") => Ok(File::from(rustix::io::dup(io::stderr())?)),
        () => File::options().write(true).open(path),
    }
}

/// The old file at `target`, if this user may write to it: a file that may not be written to is
/// not to be replaced, either.
fn old_of(target: &Path) -> io::Result<Option<fs::Metadata>> {
    match File::options().write(true).open(target) {
        Ok(old) => old.metadata().map(Some),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Gives `file` the rights of the `old` one, and its owner where that may be.
fn take_after(file: &File, old: &fs::Metadata) {
    // Changing the owner takes rights away, so it comes first.
    let _ = fchown(file, Some(old.uid()), Some(old.gid()));
    let _ = file.set_permissions(old.permissions());
}

/// Opens a draft for `target`, in the same folder.
fn open_draft(target: PathBuf) -> io::Result<(File, Draft)> {
    let folder = target.parent().unwrap_or(Path::new("/"));
    let rights = Mode::from_raw_mode(0o666);
    match openat(
        CWD,
        folder,
        OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC,
        rights,
    ) {
        Ok(file) => Ok((file.into(), Draft::Nameless { target })),
        // Not every file system has files without a name.
        Err(_) => {
            let draft = draft_beside(&target);
            let file = File::create_new(&draft)?;
            Ok((file, Draft::Named { draft, target }))
        }
    }
}

/// A file that grows under its own name: what there is of it can be used at any time. It is given
/// up with this value, unless it is [kept](Self::keep).
#[derive(Debug)]
pub struct Recorded {
    file: File,
    target: Option<PathBuf>,
    /// The path of the file that was there before.
    old: Option<PathBuf>,
}

impl Recorded {
    /// Begins the file at `path`. What is there already is kept under the same name with `.old`
    /// behind it.
    pub fn begin(path: &Path) -> Result<Recorded, Refusal> {
        let name = path.display().to_string();
        let inputs = INPUTS.get().map_or(&[][..], Vec::as_slice);
        compare(inputs, &name, identity_of_output(path))?;
        let place = match path.as_os_str() == STANDARD {
            true => {
                refuse!("`-`: a recording goes to a file; name one, or a pipe like `/dev/stdout`")
            }
            false => find_place(path).map_err(|error| unwritable(&name, &error))?,
        };
        let target = match place {
            Place::Name(target) => target,
            Place::Direct => {
                let file = open_direct(path).map_err(|error| unwritable(&name, &error))?;
                return Ok(Recorded {
                    file,
                    target: None,
                    old: None,
                });
            }
        };
        let old = old_of(&target).map_err(|error| unwritable(&name, &error))?;
        // An empty file holds nothing to be kept; it may have been made to reserve the name.
        let kept = match &old {
            Some(found) if found.len() > 0 => Some(keep_old(inputs, &target)?),
            Some(_) | None => None,
        };
        let mut options = File::options();
        options.write(true).create(true).truncate(true);
        match options.open(&target) {
            Ok(file) => {
                old.iter().for_each(|old| take_after(&file, old));
                Ok(Recorded {
                    file,
                    target: Some(target),
                    old: kept,
                })
            }
            Err(error) => {
                kept.iter().for_each(|kept| drop(fs::rename(kept, &target)));
                Err(unwritable(&name, &error))
            }
        }
    }

    /// The file to write to.
    pub fn file(&self) -> io::Result<File> {
        self.file.try_clone()
    }

    /// Keeps what was written. Says where what was there before is.
    pub fn keep(mut self) -> Option<PathBuf> {
        self.target = None;
        self.old.take()
    }
}

impl Drop for Recorded {
    fn drop(&mut self) {
        let Some(target) = &self.target else { return };
        let _ = match &self.old {
            Some(old) => fs::rename(old, target),
            None => fs::remove_file(target),
        };
    }
}

/// Renames what is at `target`, so that it is kept.
fn keep_old(inputs: &[Input], target: &Path) -> Result<PathBuf, Refusal> {
    let mut kept = target.as_os_str().to_owned();
    kept.push(".old");
    let kept = PathBuf::from(kept);
    let told = kept.display().to_string();
    compare(inputs, &told, identity_of_output(&kept))?;
    match fs::rename(target, &kept) {
        Ok(()) => Ok(kept),
        Err(error) => Err(unwritable(&told, &error)),
    }
}

#[cfg(test)]
mod tests;
