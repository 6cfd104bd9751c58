//! The intake: all that the kernel reports of the program, until it is served or applied.
//!
//! While any change of the address space is under way the kernel refuses to move pages in or out
//! ([`crate::machine`]). A frozen engine keeps changes for later, and takes no memory for that.

mod changes;
mod freeze;
mod waiting;

use tidemark_core::id::VirtPage;
use tidemark_core::time::Time;

pub use self::changes::{Changes, Late};
pub use self::freeze::{Fate, Freeze, RUN_MAX};
pub use self::waiting::{Arrival, FaultOutcome, Token, Waiting};
use crate::park::HeldThreads;
use crate::shared::{ProcessIndex, Shared};
use crate::sys::Errno;
use crate::sys::blocking_read::Waited;
use crate::sys::uffd::{MESSAGES_MAX, Message, Messages, Uffd};

/// The intake.
pub struct Intake {
    /// Room for what is read; `None` while it is lent.
    messages: Option<Box<Messages>>,
    /// True if it holds messages that have not been taken in.
    is_read: bool,
    faults: Waiting,
    changes: Changes,
    freeze: Freeze,
    held_threads: HeldThreads,
}

impl Intake {
    /// Nothing has come.
    pub fn new() -> Result<Intake, Errno> {
        Ok(Intake {
            messages: None,
            is_read: false,
            faults: Waiting::default(),
            changes: Changes::default(),
            freeze: Freeze::new()?,
            held_threads: HeldThreads::default(),
        })
    }

    /// Reads messages of the program. `None` if there are none.
    pub fn read(&mut self, program: &Uffd) -> Option<Box<Messages>> {
        let mut messages = self.messages.take().unwrap_or_default();
        let is_read = std::mem::take(&mut self.is_read) || program.read(&mut messages).is_ok();
        if is_read && !messages.is_empty() {
            return Some(messages);
        }
        self.messages = Some(messages);
        None
    }

    /// Waits for messages by `wait`, which fills them in. They are what is [read](Self::read) next.
    pub fn await_messages(
        &mut self,
        wait: impl FnOnce(&mut Messages) -> Option<Waited>,
    ) -> Option<Waited> {
        let waited = wait(self.messages.get_or_insert_default());
        self.is_read = waited == Some(Waited::Messages);
        waited
    }

    /// Takes the memory of messages back. Returns true if there may be more: a read that did not
    /// fill it has taken all there was, and a frozen engine has room for one.
    pub fn return_messages(&mut self, messages: Box<Messages>) -> bool {
        let is_full = messages.len() >= MESSAGES_MAX;
        self.messages = Some(messages);
        is_full && !self.freeze.is_frozen()
    }

    /// Takes in a message that was read at `since`: a fault, or what a frozen engine keeps. Answers
    /// any other, which is to be applied before the next.
    pub fn take_in(&mut self, message: Message, since: Time, shared: &Shared) -> Option<Message> {
        match message {
            Message::Fault {
                at,
                is_write,
                thread,
            } => self.faults.arrive(Arrival {
                address: at,
                is_write,
                thread,
                since,
            }),
            // The fork that was announced: its child has an engine.
            Message::Fork { child } if self.freeze.is_frozen() => {
                self.freeze.lend(Uffd::take_child(child), shared);
            }
            _ if self.freeze.is_frozen() => self.freeze.hold(message),
            other => return Some(other),
        }
        None
    }

    /// Returns true if everything is known of what the program has moved.
    pub fn is_settled(&self) -> bool {
        self.changes.is_settled()
    }

    /// Returns true if something is to be looked at again soon.
    pub fn is_retrying(&self) -> bool {
        self.faults.has_again() || !self.changes.is_settled()
    }

    /// Freezes, for the fork of `child` by the process `lender`: see [`Freeze::begin`].
    pub fn begin_freeze(&mut self, lender: ProcessIndex, child: ProcessIndex) {
        self.faults.requeue_all();
        self.freeze.begin(lender, child);
    }

    /// Returns true if what one more read brings can be kept while frozen without taking memory.
    pub fn has_room(&self) -> bool {
        self.freeze.has_room() && self.faults.has_room()
    }

    /// Begins to hold the threads of a parked program.
    pub fn begin_holding(&mut self) {
        self.held_threads = HeldThreads::default();
    }

    /// Ends that at `now`. The time for which they were held is no wait for the store.
    pub fn end_holding(&mut self, now: Time) {
        self.held_threads = HeldThreads::default();
        self.faults.renew(now);
    }

    /// Returns true if the thread of a fault at `at`, which is held, touches its page all the same.
    pub fn is_restless(&mut self, arrival: &Arrival, at: VirtPage) -> bool {
        self.held_threads
            .is_restless(arrival.thread, at, arrival.since)
    }

    /// The faults that are not over.
    pub fn faults(&self) -> &Waiting {
        &self.faults
    }

    /// The faults that are not over, to change them.
    pub fn faults_mut(&mut self) -> &mut Waiting {
        &mut self.faults
    }

    /// The changes of which not everything is known, to change them.
    pub fn changes_mut(&mut self) -> &mut Changes {
        &mut self.changes
    }

    /// The state of a rest.
    pub fn freeze(&self) -> &Freeze {
        &self.freeze
    }

    /// The state of a rest, to change it.
    pub fn freeze_mut(&mut self) -> &mut Freeze {
        &mut self.freeze
    }

    /// Pages to read into.
    pub fn page(&mut self) -> &mut crate::sys::memory::Mapping {
        self.freeze.page()
    }
}
