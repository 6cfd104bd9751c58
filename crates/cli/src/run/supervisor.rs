//! The supervisor: starts the program, serves its tree of processes, and waits for its end.
//!
//! It waits for the program that was named, as a shell does, and not for processes the program
//! leaves running: those keep their engines, their last budgets and the swap file, but a process
//! they fork from then on is not managed.

use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::Pid;

use super::program::plain;
use super::signals::Signals;
use super::tree::Tree;
use crate::exit::{Refusal, refuse};

/// How the program ended, and after how long.
#[derive(Clone, Copy, Debug)]
pub struct End {
    /// Its process id.
    pub pid: u32,
    /// Its status.
    pub status: ExitStatus,
    /// From its start to its end.
    pub elapsed: Duration,
}

/// Runs `command` to its end, with `tree` taking in its processes if there is one.
pub fn supervise(mut command: Command, mut tree: Option<&mut Tree>) -> Result<End, Refusal> {
    let mut signals = match Signals::catch() {
        Ok(signals) => signals,
        Err(error) => refuse!("signals can't be caught: {}", plain(&error)),
    };
    let start = Instant::now();
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => {
            refuse!("`{}`: {}", command.get_program().display(), plain(&error))
        }
    };
    let pid = Pid::from_child(&child);
    loop {
        if let Some(status) = try_wait(&mut child)? {
            let elapsed = start.elapsed();
            // Whatever has connected or ended by now belongs to the run.
            while let Some(tree) = tree.as_deref_mut() {
                if !wait_for(&signals, Some(tree), Some(Duration::ZERO)) {
                    break;
                }
            }
            return Ok(End {
                pid: child.id(),
                status,
                elapsed,
            });
        }
        let limit = tree
            .as_deref()
            .map(|tree| tree.next_tick() - Instant::now());
        wait_for(&signals, tree.as_deref_mut(), limit);
        signals.pass_on(pid);
        if let Some(tree) = tree.as_deref_mut() {
            tree.handle_tick();
        }
    }
}

/// How the program ended, as this command ends.
pub fn exit_of(status: ExitStatus) -> crate::exit::Exit {
    match (status.code(), status.signal()) {
        (Some(code), _) => crate::exit::Exit::Status(code),
        (None, Some(signal)) => crate::exit::Exit::Signal(signal),
        (None, None) => crate::exit::Exit::Refused,
    }
}

fn try_wait(child: &mut Child) -> Result<Option<ExitStatus>, Refusal> {
    match child.try_wait() {
        Ok(status) => Ok(status),
        Err(error) => refuse!("the program can't be waited for: {}", plain(&error)),
    }
}

/// Waits until something happens or `limit` has passed, and lets `tree` handle what happened in
/// it. Says whether something happened there.
fn wait_for(signals: &Signals, tree: Option<&mut Tree>, limit: Option<Duration>) -> bool {
    let mut sources = vec![PollFd::new(signals, PollFlags::IN)];
    if let Some(tree) = &tree {
        sources.extend(
            tree.connections()
                .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)),
        );
    }
    let limit = limit.map(|limit| Timespec {
        tv_sec: limit.as_secs() as i64,
        tv_nsec: i64::from(limit.subsec_nanos()),
    });
    // An interrupted wait is one that ended early.
    let _ = poll(&mut sources, limit.as_ref());
    let ready: Vec<bool> = sources
        .iter()
        .map(|source| !source.revents().is_empty())
        .collect();
    drop(sources);
    if let Some(tree) = tree {
        tree.handle_ready(&ready[1..]);
    }
    ready[1..].contains(&true)
}
