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
//! # Files
//! State is in parts ([`parts`](crate::parts)), which do not know the engine. What uses several
//! parts in order is a sequence: a function of [`Engine`] in one of these files. They see its
//! fields, and import each other not at all.
//!
//! | file | duty |
//! | --- | --- |
//! | [`start`] | makes an engine, and opens its files again in a forked child |
//! | [`turn`] | one turn of the loop; carries out what the core has decided |
//! | [`step`] | the same where the program waits for all of it |
//! | [`here`] | serves a fault on the thread that met it |
//! | [`faults`] | serves a fault; takes a range under management |
//! | [`files`] | mapped files: takes them over, serves their faults, follows their calls |
//! | [`written`] | mapped files that are written back, or given up to the kernel |
//! | [`changes`] | follows what the program unmaps, moves and empties |
//! | [`asks`] | answers program threads |
//! | [`calls`] | holds system calls up until their memory is there |
//! | [`adopt`] | looks for new memory, and for pages that the program has filled |
//! | [`outside`] | retries pages that the kernel holds, and says how many there are |
//! | [`locks`] | lets go of locked memory |
//! | [`wipe`] | memory that reads as zeros in children |
//! | [`fork`] | rests for a fork, and goes on in parent and child |
//! | [`feed`] | gives a child its pages that was forked without warning |
//! | [`budget`] | follows the supervisor's budget, and asks for more |
//! | [`parking`] | holds a suspended program |
//! | [`sampling`], [`neighbours`] | records references: windows, and first touches many at a time |
//! | [`publish`] | shows the counters |
//! | [`map`] | draws where pages are |
//! | [`traced`] | brings in what a debugger can't see |
//! | [`trouble`] | ends the program, with the reason |
//! | [`ending`] | leaves when the program has ended |

mod adopt;
mod asks;
mod budget;
mod calls;
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
mod written;

pub use crate::parts::intake::{FaultOutcome, Token};
pub use crate::parts::lock::Lock;
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
use crate::parts::addresses::AddressSpace;
use crate::parts::calls::Calls;
use crate::parts::ending::Ending;
use crate::parts::intake::Intake;
use crate::parts::line::Line;
use crate::parts::place::Place;
use crate::parts::telemetry::Telemetry;
use crate::parts::traced::Traced;
use crate::parts::turns::Turns;
use crate::parts::written::Written;
use crate::shared::{ProcessIndex, Shared};
use crate::store::SwapStore;

/// The engine of one process.
pub struct Engine {
    setup: Setup,
    vm: Vm,
    /// The program's address space in the core.
    space: SpaceId,
    machine: LiveMachine,
    store: SwapStore,
    addresses: AddressSpace,
    written: Written,
    intake: Intake,
    calls: Calls,
    place: Place,
    ending: Ending,
    traced: Traced,
    telemetry: Telemetry,
    line: Line,
    turns: Turns,
    /// The time of the turn at hand.
    now: Time,
    /// The memory that this process may use, as far as this engine has understood: see [`budget`].
    task: TaskMemory,
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
