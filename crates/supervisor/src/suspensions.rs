//! Suspensions: tasks that are stopped on request.
//!
//! # Invariants
//! 1. What is stopped here goes on at the latest when this value goes, and if the supervisor is
//!    killed before, by the [`witness`](crate::witness), which is told first.

use std::os::fd::OwnedFd;

use rustix::process::{Signal, pidfd_send_signal};
use tidemark_results::{Refusal, refuse};

use crate::witness::Line;

/// The tasks that are suspended.
#[derive(Debug, Default)]
pub struct Suspensions {
    held: Vec<(u32, OwnedFd)>,
    witness: Option<Line>,
}

impl Suspensions {
    /// Learns who lets tasks go on if this process is killed.
    pub fn set_witness(&mut self, line: Option<Line>) {
        self.witness = line;
    }

    /// Stops process `pid`, which `life` names.
    pub fn suspend(&mut self, pid: u32, life: &OwnedFd) -> Result<(), Refusal> {
        if self.is_suspended(pid) {
            return Ok(());
        }
        let Ok(life) = life.try_clone() else {
            refuse!("task {pid} can't be suspended: this process has too many files open");
        };
        let told = self.witness.as_ref().map(|line| line.note_suspended(pid));
        if !matches!(told, Some(Ok(()))) {
            refuse!(
                "task {pid} can't be suspended: the process that would resume it if `tidemark run` \
                 were killed does not answer"
            );
        }
        match pidfd_send_signal(&life, Signal::STOP) {
            Ok(()) => {
                self.held.push((pid, life));
                Ok(())
            }
            Err(error) => {
                self.note_resumed(pid);
                refuse!("task {pid} can't be suspended: {error}")
            }
        }
    }

    /// Lets process `pid` go on, and says whether it was suspended.
    pub fn resume(&mut self, pid: u32) -> bool {
        let Some(place) = self.held.iter().position(|(held, _)| *held == pid) else {
            return false;
        };
        let (_, life) = self.held.remove(place);
        // It may have ended.
        let _ = pidfd_send_signal(life, Signal::CONT);
        self.note_resumed(pid);
        true
    }

    /// Lets all go on.
    pub fn resume_all(&mut self) {
        while let Some(&(pid, _)) = self.held.last() {
            self.resume(pid);
        }
    }

    /// Forgets process `pid`, which has ended.
    pub fn forget(&mut self, pid: u32) {
        if self.is_suspended(pid) {
            self.held.retain(|(held, _)| *held != pid);
            self.note_resumed(pid);
        }
    }

    /// Returns true if process `pid` is stopped on request.
    pub fn is_suspended(&self, pid: u32) -> bool {
        self.held.iter().any(|(held, _)| *held == pid)
    }

    fn note_resumed(&self, pid: u32) {
        if let Some(line) = &self.witness {
            line.note_resumed(pid);
        }
    }
}

impl Drop for Suspensions {
    fn drop(&mut self) {
        self.resume_all();
    }
}
