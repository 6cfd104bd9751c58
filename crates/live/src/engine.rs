//! The engine: one thread, in the program's memory, that serves its page faults.
//!
//! It owns the core, the machine and the store. Everything that happens comes to its loop
//! ([`turn`]): faults and changes of the address space from the userfaultfd, finished transfers,
//! requests of program threads, the budget, and time.
//!
//! # Rules
//! 1. The engine never touches program memory that may be missing, and never waits for a program
//!    thread: it is the one that they wait for.
//! 2. It calls nothing of the C library that allocates or maps, keeps no thread-local variables,
//!    and sleeps only in [`turn`], with a time limit.
//! 3. Its files are in a file table of its own: the program can't see or close them.
//!
//! [`faults`] serves faults, [`files`] those of mapped files, [`changes`] follows the address
//! space, [`adopt`] takes over memory,
//! [`locks`] lets go of what is locked, [`here`] serves on the program's threads, [`asks`] answers
//! them, [`fork`] goes through forks, [`feed`] makes up for those without warning, [`publish`]
//! shows counters, [`place`] keeps engine and program on one processor, [`sampling`] records which
//! pages are touched, [`neighbours`] finds first touches many at a time, [`outside`] keeps what the
//! kernel holds and memory has no room for, [`step`] keeps the program in step, [`parking`] holds
//! it, [`ending`] sees it go, [`wipe`] has memory read as zeros in children, [`traced`] shows it to
//! debuggers, [`map`] draws where its pages are, [`trouble`] says what went wrong.

mod adopt;
mod asks;
mod budget;
mod changes;
mod ending;
mod faults;
mod feed;
mod files;
mod fork;
mod here;
mod locks;
mod map;
mod neighbours;
mod outside;
mod parking;
mod publish;
mod sampling;
mod start;
mod step;
mod traced;
mod trouble;
mod turn;
mod wipe;

pub use here::{FaultOutcome, Lock, Token};

pub use crate::parts::mode::{MAPPED_BYTES_LEAST, Mode};
pub use crate::parts::place::AWAKE_NS;
pub use crate::parts::sampling::{Kept, Windows};
pub use crate::parts::setup::Setup;
pub use crate::parts::sleep::{Wakers, Woken, sleep};
pub use crate::parts::trouble::{Trouble, say};

use tidemark_core::id::SpaceId;
use tidemark_core::time::Time;
use tidemark_core::vm::Vm;
use tidemark_tasks::TaskMemory;

use crate::machine::LiveMachine;
use crate::mapped::Mapped;
use crate::park::HeldThreads;
use crate::parts::line::Line;
use crate::parts::place::Place;
use crate::parts::telemetry::Telemetry;
use crate::ranges::Ranges;
use crate::scanner::Scanner;
use crate::shared::{ProcessIndex, Shared};
use crate::store::SwapStore;
use crate::sys::uffd::Messages;

use self::adopt::Adoption;
use self::budget::Asking;
use self::changes::Changes;
use self::ending::Ending;
use self::faults::Waiting;
use self::fork::Freeze;
use self::locks::Locks;
use self::outside::Outside;
use self::traced::Traced;
use self::turn::Turns;

/// The engine of one process.
pub struct Engine {
    setup: Setup,
    vm: Vm,
    space: SpaceId,
    machine: LiveMachine,
    store: SwapStore,
    scanner: Scanner,
    /// The addresses under management: the ranges the core has regions for.
    managed: Ranges,
    /// The part of them that reads as zeros in forked children.
    wiped: Ranges,
    /// The part of them that shows files.
    mapped: Mapped,
    adoption: Adoption,
    locks: Locks,
    outside: Outside,
    held_threads: HeldThreads,
    waiting: Waiting,
    changes: Changes,
    messages: Messages,
    freeze: Freeze,
    place: Place,
    ending: Ending,
    traced: Traced,
    telemetry: Telemetry,
    line: Line,
    now: Time,
    next_tick: Time,
    /// In step, how much time has passed beside that of faults.
    passed_ns: u64,
    turns: Turns,
    /// The memory that this process may use, as far as this engine has understood: see [`budget`].
    task: TaskMemory,
    asking: Asking,
}

impl Engine {
    /// This process's record in the shared memory.
    pub fn record(&self) -> ProcessIndex {
        self.line.record()
    }

    /// Returns true if events are logged: references, or decisions.
    pub fn is_logging(&self) -> bool {
        self.telemetry.is_logging()
    }

    /// Returns true if this engine must have its hand before it is needed: where another thread
    /// than its own may need it, and where it must not matter when it comes.
    pub fn needs_hand_at_once(&self) -> bool {
        self.setup.mode.needs_hand_at_once()
    }

    /// The shared memory of the run.
    pub fn shared(&self) -> &Shared {
        self.line.shared()
    }
}
