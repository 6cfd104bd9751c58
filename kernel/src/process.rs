//! Processes: what the kernel keeps of each running program.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::rc::Rc;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use tidemark_core::event::Failure;
use tidemark_core::id::{PAGE_BYTES, SpaceId, VirtPage};

use crate::arch::trap::{Registers, VectorRegisters};
use crate::program::MAPPED;

/// The number of a process. None is used twice.
pub type ProcessId = u64;

/// The state of a process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// The process runs, or waits for a processor.
    Ready,
    /// The process waits for a page.
    Paging,
    /// The process waits for a child to end.
    Waiting,
    /// The process sleeps until then, in nanoseconds.
    Sleeping(u64),
}

/// A file a process has opened.
#[derive(Clone)]
pub struct Open {
    /// The number of the file on the volume.
    pub file: usize,
    /// The offset at which it is read next.
    pub at: u64,
    /// The contents of the file, if files are pinned (`--pinned`); otherwise its pages are paged.
    pub contents: Option<Rc<Vec<u8>>>,
}

/// A process.
pub struct Process {
    /// The process that made it.
    pub parent: ProcessId,
    /// The name of its program.
    pub name: String,
    /// The address space.
    pub space: SpaceId,
    /// The registers at its stop.
    pub registers: Registers,
    /// The rest of its registers.
    pub vectors: Box<VectorRegisters>,
    /// The state.
    pub state: State,
    /// Load control has stopped it.
    pub is_suspended: bool,
    /// Pages that have come for the instruction that is to be done again. A bit does not show that
    /// use: it shows whether a page is used *again*.
    pub fresh: Vec<VirtPage>,
    /// The place of the next mapping.
    pub next_page: VirtPage,
    /// The files it has opened, by their numbers less [`FIRST_FILE`].
    pub files: Vec<Option<Open>>,
    /// The arguments with which it was started.
    pub arguments: Vec<Vec<u8>>,
    /// Children that have ended, with their statuses, which it has not asked for.
    pub ended: VecDeque<(ProcessId, u8)>,
    /// The program it is to become before it runs on, and that program's arguments.
    pub to_execute: Option<Vec<Vec<u8>>>,
    /// The time for which it has run.
    pub ran_ns: u64,
}

/// The number of the first file that a process opens.
pub const FIRST_FILE: u64 = 3;

impl Process {
    /// A process with nothing in its space, which begins to run at `entry`.
    pub fn new(parent: ProcessId, space: SpaceId) -> Process {
        Process {
            parent,
            name: String::new(),
            space,
            registers: Registers::default(),
            vectors: Box::new(VectorRegisters::initial()),
            state: State::Ready,
            is_suspended: false,
            fresh: Vec::new(),
            next_page: VirtPage(MAPPED / PAGE_BYTES),
            files: Vec::new(),
            arguments: Vec::new(),
            ended: VecDeque::new(),
            to_execute: None,
            ran_ns: 0,
        }
    }

    /// A copy for a forked child.
    pub fn fork(&self, parent: ProcessId, space: SpaceId) -> Process {
        Process {
            parent,
            name: self.name.clone(),
            space,
            registers: self.registers,
            vectors: self.vectors.clone(),
            state: State::Ready,
            is_suspended: false,
            fresh: Vec::new(),
            next_page: self.next_page,
            files: self.files.clone(),
            arguments: self.arguments.clone(),
            ended: VecDeque::new(),
            to_execute: None,
            ran_ns: 0,
        }
    }

    /// The file of that number.
    pub fn file(&mut self, number: u64) -> Option<&mut Open> {
        let place = usize::try_from(number.checked_sub(FIRST_FILE)?).ok()?;
        self.files.get_mut(place)?.as_mut()
    }
}

/// The reason for which the kernel ends a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Misdeed {
    /// The program touched a page that is not mapped, or not with these rights.
    Touch {
        /// The address.
        address: u64,
        /// To write.
        is_write: bool,
    },
    /// The program executed a page that is not text.
    Execute {
        /// The address.
        address: u64,
    },
    /// The processor refused its instruction.
    Exception {
        /// The processor's number for it.
        vector: u64,
    },
    /// A page that it needs can't be read.
    Lost(Failure),
    /// The kernel has no memory for its tables.
    Crowded,
    /// Its pages leave again before it can use them.
    Stuck,
}

impl fmt::Display for Misdeed {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Misdeed::Touch { address, is_write } => {
                let how = if is_write { "write to" } else { "read" };
                write!(out, "it may not {how} {address:#x}")
            }
            Misdeed::Execute { address } => write!(out, "it may not execute {address:#x}"),
            Misdeed::Exception { vector } => match vector {
                0 => write!(out, "it divided by zero"),
                3 => write!(out, "it ran into a breakpoint"),
                6 => write!(out, "it has no such instruction"),
                13 => write!(out, "it did what programs may not do"),
                16 | 19 => write!(out, "it made an error in floating point"),
                17 => write!(out, "it touched an address that is not aligned"),
                _ => write!(out, "it caused exception {vector}"),
            },
            Misdeed::Lost(Failure::PagerFailed) => write!(out, "a page of it can't be read back"),
            Misdeed::Lost(Failure::StoreFailed) => {
                write!(out, "memory is full, and swap fails to take pages")
            }
            Misdeed::Stuck => write!(out, "its pages leave before it can use them"),
            Misdeed::Crowded => write!(out, "the kernel has no memory for its tables"),
            Misdeed::Lost(Failure::StoreFull) => write!(out, "memory and swap are full"),
        }
    }
}
