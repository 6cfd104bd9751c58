//! The supervisor: starts the program, serves its tree of processes, and waits for its end.
//!
//! It waits for the program that was named, as a shell does, and not for processes the program
//! leaves running: those are [handed over](crate::hand_over).

use std::ffi::OsString;
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{Pid, WaitOptions};

use tidemark_results::Ending;
use tidemark_results::{Refusal, refuse};

use tidemark_live::sys::calls;

use crate::calls::Calls;
use crate::program::plain;
use crate::signals::Signals;
use crate::time::timespec;
use crate::tree::Tree;

/// The end of the program, and the time until then.
#[derive(Clone, Copy, Debug)]
pub struct End {
    /// Its status.
    pub status: ExitStatus,
    /// From its start to its end.
    pub elapsed: Duration,
}

/// The way in which a program is started.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Start {
    /// The program is started as it is.
    Plain,
    /// With a filter, by which its system calls are held up until their memory is there.
    Listening,
}

/// Runs `command` to its end, with `tree` taking in its processes if there is one.
pub fn supervise(
    mut command: Command,
    how: Start,
    mut tree: Option<&mut Tree>,
) -> Result<End, Refusal> {
    let words = [command.get_program()]
        .into_iter()
        .chain(command.get_args());
    let words: Vec<OsString> = words.map(OsString::from).collect();
    let mut signals = match Signals::catch(&words) {
        Ok(signals) => signals,
        Err(error) => refuse!("signals can't be caught: {}", plain(&error)),
    };
    if tree.is_some() {
        // Engines are orphans. Without a process that reaps those they would stay for ever.
        let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
    }
    let start = Instant::now();
    let spawned = match (how, tree.as_deref_mut()) {
        (Start::Listening, Some(tree)) => spawn_listened(&mut command, tree)?,
        (Start::Plain, _) | (Start::Listening, None) => command.spawn(),
    };
    let child = match spawned {
        Ok(child) => child,
        Err(error) => {
            refuse!("`{}`: {}", command.get_program().display(), plain(&error))
        }
    };
    let pid = Pid::from_child(&child);
    raise_files_limit();
    if let Some(tree) = tree.as_deref_mut() {
        tree.begin(child.id());
    }
    loop {
        if let Some(status) = reap(pid)? {
            let elapsed = start.elapsed();
            // Whatever has connected or ended by now belongs to the run.
            if let Some(tree) = tree {
                while tree.poll(None, Duration::ZERO) {}
                tree.await_files();
            }
            return Ok(End { status, elapsed });
        }
        wait_for(&signals, tree.as_deref_mut());
        let is_to_end = signals.pass_on(pid);
        if let Some(tree) = tree.as_deref_mut() {
            if is_to_end {
                // A task that is suspended takes in no signal.
                tree.resume_all();
            }
            tree.handle_tick();
        }
    }
}

/// Starts a program with a filter of system calls, to which `tree` listens. A filter is of the
/// thread that sets it, and of what that starts: so a thread does both, and ends.
fn spawn_listened(
    command: &mut Command,
    tree: &mut Tree,
) -> Result<std::io::Result<Child>, Refusal> {
    let (sender, receiver) = std::sync::mpsc::channel();
    let refuse = |error: std::io::Error| {
        Refusal::new(format!(
            "system calls of the program can't be listened to: {}",
            plain(&error)
        ))
    };
    std::thread::scope(|scope| {
        let started = scope.spawn(move || {
            let listener = calls::listen_here();
            let is_there = listener.is_ok();
            // The receiver waits for it.
            let _ = sender.send(listener);
            is_there.then(|| command.spawn())
        });
        // The program's first call waits for this thread.
        let listener = receiver.recv().unwrap_or(Err(Errno::IO));
        let listening = match listener {
            Ok(listener) => Calls::take(listener),
            Err(Errno::BUSY) => Err(std::io::Error::other(
                "they are by another `tidemark run`, or a container's supervisor",
            )),
            Err(error) => Err(error.into()),
        };
        // Without a listener what was started meanwhile fails.
        let listening = listening.map(|calls| tree.serve_calls(calls));
        let spawned = started.join().ok().flatten();
        listening.map_err(refuse)?;
        spawned.ok_or_else(|| refuse(std::io::ErrorKind::Other.into()))
    })
}

/// The end of the program, as records have it.
pub fn ending_of(status: ExitStatus) -> Ending {
    match (status.code(), status.signal()) {
        (Some(code), _) => Ending::Status(code),
        (None, Some(signal)) => Ending::Signal(signal),
        (None, None) => Ending::Gone,
    }
}

/// Lets this process, and not the program, open as many files as it may: each process of the tree
/// takes three.
fn raise_files_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let most = getrlimit(Resource::Nofile).maximum;
    // With fewer files, processes beyond some hundreds can't be taken in.
    let _ = setrlimit(
        Resource::Nofile,
        Rlimit {
            current: most,
            maximum: most,
        },
    );
}

/// Lets go of every child that has ended, and answers how `main` did.
fn reap(main: Pid) -> Result<Option<ExitStatus>, Refusal> {
    loop {
        match rustix::process::wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) if pid == main => {
                return Ok(Some(ExitStatus::from_raw(status.as_raw())));
            }
            Ok(Some(_)) | Err(Errno::INTR) => {}
            Ok(None) => return Ok(None),
            Err(error) => {
                let error = std::io::Error::from(error);
                refuse!("the program can't be waited for: {}", plain(&error));
            }
        }
    }
}

/// Waits until something happens, for as long as nothing else is due.
fn wait_for(signals: &Signals, tree: Option<&mut Tree>) {
    let until = |due: Instant| due.saturating_duration_since(Instant::now());
    match tree {
        Some(tree) => {
            let tick = tree.next_tick();
            let due = signals.due().map_or(tick, |due| due.min(tick));
            tree.poll(Some(signals.as_fd()), until(due));
        }
        None => {
            let limit = signals.due().map(|due| timespec(until(due)));
            // An interrupted wait is one that ended early.
            let _ = poll(&mut [PollFd::new(signals, PollFlags::IN)], limit.as_ref());
        }
    }
}
