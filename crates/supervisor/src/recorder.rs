//! The recorder: a Valgrind tool of our own, and the programs that can be run under it.

use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

use tidemark_live::sys::pidfd;
use tidemark_recording::spool::{Spool, VARIABLE};
use tidemark_results::{Refusal, refuse};
use tidemark_trace::summary::End;

use crate::program::{self, Obstacle};

/// A program that can be run under the recorder, and all that this takes.
#[derive(Debug)]
pub struct Recordable {
    valgrind: PathBuf,
    recorder: PathBuf,
    program: PathBuf,
    words: Vec<OsString>,
}

impl Recordable {
    /// Finds Valgrind, the recorder and the program with these `words`, of which the first is its
    /// name; or refuses.
    pub fn find(words: &[OsString]) -> Result<Recordable, Refusal> {
        let name = &words[0];
        let program = program::find(name)?;
        check_program(name, &program)?;
        let (recorder, valgrind) = (find_recorder()?, find_valgrind()?);
        Ok(Recordable {
            valgrind,
            recorder,
            program,
            words: words[1..].to_vec(),
        })
    }

    /// The program.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// The program's arguments.
    pub fn words(&self) -> &[OsString] {
        &self.words
    }

    /// The command that runs the program under the recorder.
    pub fn command(&self, spool: &Spool) -> Command {
        let mut command = Command::new(&self.valgrind);
        let option = |name: &str, path: &Path| {
            let mut option = OsString::from(name);
            option.push(path);
            option
        };
        command
            .args(["--tool=tidemark", "--command-line-only=yes", "--vgdb=no"])
            .args(["--trace-children=yes", "--trace-children-skip=*/tidemark"])
            // At the end the C library would free memory that it never frees otherwise.
            .args(["--run-libc-freeres=no", "--run-cxx-freeres=no"])
            .arg(option("--log-file=", &spool.path.join("valgrind.%p")))
            .arg(option("--spool=", &spool.path))
            .arg(&self.program)
            .args(&self.words)
            .env("VALGRIND_LIB", &self.recorder)
            .env(VARIABLE, &spool.path);
        command
    }
}

/// The end of a process, if it has ended; `life` is readable from then on.
pub fn ask_end(life: &OwnedFd) -> Option<End> {
    pidfd::end_of(life).map(as_recorded)
}

/// The end of a child that has been waited for.
pub fn end_of(status: ExitStatus) -> End {
    as_recorded(pidfd::End::of_wait_status(
        status.into_raw().cast_unsigned(),
    ))
}

fn as_recorded(end: pidfd::End) -> End {
    match end {
        pidfd::End::Status(status) => End::Status(status),
        pidfd::End::Signal(signal) => End::Signal(signal),
    }
}

fn check_program(name: &OsStr, program: &Path) -> Result<(), Refusal> {
    // Valgrind runs none of these, for root neither.
    if let Some(mark) = program::collect_marks(program).first() {
        refuse!(
            "`{}`: has privileges of its own ({mark}), which it can't have under Valgrind; record \
             a copy of it, which has none (as root, if it needs them)",
            name.display()
        );
    }
    match program::find_obstacle(program) {
        // Neither loading nor linking matters to what interprets the program's instructions.
        None | Some(Obstacle::Static | Obstacle::OtherLinker(_)) => Ok(()),
        Some(Obstacle::Foreign) => refuse!(
            "`{}`: is no program for a 64-bit x86; record one that is",
            name.display()
        ),
        Some(Obstacle::UnknownFormat) => refuse!(
            "`{}`: {}; name its interpreter before it",
            name.display(),
            Obstacle::UnknownFormat.reason()
        ),
        Some(other @ (Obstacle::Privileged(_) | Obstacle::Unreadable)) => {
            refuse!("`{}`: {}", name.display(), other.reason())
        }
    }
}

/// The folder with the recorder.
pub fn find_recorder() -> Result<PathBuf, Refusal> {
    if cfg!(not(target_arch = "x86_64")) {
        refuse!("programs can be recorded on x86-64 only");
    }
    tidemark_parts::RECORDER.find()
}

/// The program that runs others under the recorder.
pub fn find_valgrind() -> Result<PathBuf, Refusal> {
    match program::find(OsStr::new("valgrind")) {
        Ok(found) => Ok(found),
        Err(_) => refuse!("`valgrind` is not installed; as root: `apt-get install valgrind`"),
    }
}
