//! The machine on userfaultfd: what runs inside a program to page its memory.
//!
//! - [`sys`] is the only place that talks to the kernel by raw address.
//! - [`machine`] replaces translation hardware: it moves pages between the program and the
//!   frame pool.
//! - [`store`] keeps pages that have left, compressed in memory and on a swap file.
//! - [`engine`] is the loop that joins them with the core, made of `parts`; [`scanner`] finds what
//!   it manages, and [`requests`] is how program threads talk to it.
//! - [`shared`] is what the processes of a run share, [`control`] how they meet.
//! - [`meters`] measures its locks, if that is asked for.
//! - [`park`] remembers what a suspended program had in memory.
//! - [`disk`] finds the processor that a disk interrupts.
//! - [`reference_log`] is what a recorded process writes its references to.
//!
//! # Threads
//! One engine thread owns all of this, and lends the engine out under one lock: to the program's
//! threads that serve their own faults (in-thread mode), and otherwise to none. The [`hand`] makes
//! calls that may fault, and the [workers](sys::workers) move bytes where io_uring is forbidden:
//! neither sees the engine. Programs never hold anything the engine waits for. Code that runs on
//! these threads keeps no thread-local variables, since those may lie in memory that is itself
//! paged.
//!
//! # Locks
//! In this order: one that is held is never held while one above it is taken.
//!
//! 1. **Forks** (`shim/process/forking.rs`): of the program's threads, from before a fork to its
//!    end. Its holder asks the engine and waits; threads that map memory wait until it is free. The
//!    engine never takes it. A thread that forks by the C library has that one's locks by then.
//! 2. **The engine** (`shim/engine.rs`, an [`engine::Lock`]): for one turn of the engine, or
//!    one step of a fault that its own thread serves. A sleep, and a wait for the store in the
//!    course of serving, come after it is given back; what the engine waits for under it (the end
//!    of transfers before a fork, a page that is read back while frozen) needs no thread of the
//!    program.
//! 3. **The workers' queue** ([`sys::workers`]): to put one transfer in, or to take one out. The
//!    transfer itself is made without it.
//! 4. **The list of policy modules** (`plugin/shelf.rs`): to look one up.
//! 5. **The heap** (`shim/heap.rs`): inside the allocator, which takes no other, and by a thread
//!    that forks, from the engine's rest to the end of the system call.
//!
//! Beside the order, since neither is held while another is taken: the file of a layout
//! (`shim/layout.rs`), in the constructor and at the program's exit; and the word of the first
//! thread ([`sys::lifeline`]), which that thread holds as long as it lives. The tables that threads
//! share have no lock: [`requests`], [`sys::memory`] and [`sys::reserve`], and the memory that
//! processes share ([`shared`]), go by exchanging single words.
//!
//! `run --locks` measures how long those that threads contend for are waited for and held:
//! [`meters`]. The supervisor has one lock, of the engines that system calls
//! are sent to: held to look one up, or to send it a call.
//!
//! # In a forked child
//! There is one thread, the one that forked, until it has started an engine thread. At the fork the
//! engine was at rest: no transfer under way, no fault served ([`engine`], `fork.rs`).
//!
//! | lock | in the child |
//! | --- | --- |
//! | forks | held by the thread that forked, which gives it back (`resume_child`) |
//! | the engine | a thread that is not there may hold it: set free before the engine is used |
//! | workers' queue | left as it is, with its workers: the child has a carrier of its own |
//! | policy modules | free: taken at the start, and by an engine that is not frozen |
//! | the heap | held by the thread that forked, which gives it back (`resume_child`) |
//! | layout | free: programs in step have one thread |
//! | first thread's word | the child's first thread takes it anew (`hold_lifeline`) |
//! | requests | emptied; a request that was on its way is the parent's |
//! | hand | forgotten, and started again when it is needed |
//!
//! A child that a system call of its own forked has none of this: it has no engine, and
//! [`requests`] tells that by the process's number.
#![deny(unsafe_code)]

pub mod calls;
pub mod control;
pub mod disk;
pub mod engine;
pub mod flush;
pub mod glob;
pub mod hand;
pub mod machine;
mod mapped;
pub mod meters;
pub mod park;
mod parts;
pub mod ranges;
pub mod reference_log;
pub mod requests;
pub mod scanner;
pub mod shared;
pub mod slots;
mod sparse;
pub mod stamp;
pub mod store;
pub mod sys;
