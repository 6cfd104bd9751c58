//! The decision log: lines that wait to be written.

use std::fmt::Write;
use std::os::fd::OwnedFd;
use std::path::Path;

use tidemark_core::vm::Vm;

use super::trouble::{Trouble, call};
use crate::sys::Errno;

/// Decisions are written when this number of bytes has come together, or when there is nothing else
/// to do.
const LOG_BYTES: usize = 16 << 10;

/// The log.
pub struct Decisions {
    file: OwnedFd,
    text: String,
}

impl Decisions {
    /// A log with nothing in it.
    pub fn new(file: OwnedFd) -> Decisions {
        let text = String::new();
        Decisions { file, text }
    }

    /// Opens the file of a log, to append to it.
    pub fn open(path: &Path) -> Result<OwnedFd, Trouble> {
        use rustix::fs::{Mode, OFlags};
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::APPEND | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR;
        rustix::fs::open(path, flags, mode).map_err(call("opening the decision log"))
    }

    /// Takes the decisions that the core has come to.
    pub fn take(&mut self, vm: &mut Vm) {
        while let Some(decision) = vm.poll_decision() {
            // Writing to a string can't fail.
            let _ = writeln!(self.text, "{decision}");
        }
        if self.text.len() >= LOG_BYTES {
            self.flush();
        }
    }

    /// Writes the decisions that have come together.
    pub fn flush(&mut self) {
        if self.text.is_empty() {
            return;
        }
        let mut rest = self.text.as_bytes();
        while !rest.is_empty() {
            match rustix::io::write(&self.file, rest) {
                Ok(count) => rest = &rest[count..],
                Err(Errno::INTR) => {}
                // A log that can't be written must not end the program it is about.
                Err(_) => break,
            }
        }
        self.text.clear();
    }
}
