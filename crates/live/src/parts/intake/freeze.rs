//! The state of an engine at rest, for the time of a fork: see the head of `engine/fork.rs`.

mod kept;
mod loan;

pub use self::kept::Fate;
use self::kept::{Aside, Held};
use self::loan::Loans;
use crate::shared::{ProcessIndex, Shared};
use crate::sys::memory::Mapping;
use crate::sys::uffd::{MESSAGES_MAX, Message, Uffd};
use crate::sys::{Errno, PAGE};

/// The most pages that are read at once into memory of the engine's own.
pub const RUN_MAX: usize = 64;

/// The state of a fork.
pub struct Freeze {
    is_frozen: bool,
    /// The pages that are in use beyond the part that each process had after the last fork, as far
    /// as they have not been given up since.
    shared: u32,
    /// Pages that were copied to their places while frozen.
    aside: Aside,
    /// Changes of the address space that were read while frozen.
    held: Held,
    /// The userfaultfds of children.
    loans: Loans,
    /// Pages to read into.
    page: Mapping,
}

impl Freeze {
    /// Not frozen.
    pub fn new() -> Result<Freeze, Errno> {
        Ok(Freeze {
            is_frozen: false,
            shared: 0,
            aside: Aside::new()?,
            held: Held::new()?,
            loans: Loans::default(),
            page: Mapping::anonymous(RUN_MAX * PAGE)?,
        })
    }

    /// Returns true while no table may change.
    pub fn is_frozen(&self) -> bool {
        self.is_frozen
    }

    /// The pages that could not be given up before a fork, and are shared with the other process.
    pub fn shared(&self) -> u32 {
        self.shared
    }

    /// Learns that this number of pages are, in a fork that could not wait any longer.
    pub fn note_shared(&mut self, pages: u32) {
        self.shared = pages;
    }

    /// Learns how many frames are in use of those that may be.
    pub fn note_in_use(&mut self, in_use: u32, budget: u32) {
        self.shared = self.shared.min(in_use.saturating_sub(budget));
    }

    /// Keeps a change for later.
    pub fn hold(&mut self, message: Message) {
        self.held.push(&message);
    }

    /// Keeps the userfaultfd of the child until that has taken it.
    pub fn lend(&mut self, uffd: Uffd, shared: &Shared) {
        self.loans.offer(uffd, shared);
    }

    /// Returns true if the userfaultfd of a child is open.
    pub fn has_lent(&self) -> bool {
        self.loans.is_waiting()
    }

    /// Returns true if a child may still take something from this engine.
    pub fn awaits_children(&self) -> bool {
        self.loans.is_awaited()
    }

    /// Returns true if what one more read brings can be kept without taking memory.
    pub fn has_room(&self) -> bool {
        self.held.has_room(MESSAGES_MAX) && self.aside.has_room(MESSAGES_MAX)
    }

    /// Has no table change from now on, for the fork of `child` by the process `lender`.
    pub fn begin(&mut self, lender: ProcessIndex, child: ProcessIndex) {
        self.loans.begin(lender, child);
        self.held.clear();
        self.aside.clear();
        self.is_frozen = true;
    }

    /// Goes on. Answers the changes that were kept, oldest first.
    pub fn thaw(&mut self) -> Vec<Message> {
        self.is_frozen = false;
        self.take_held()
    }

    /// Takes the changes that were kept, oldest first.
    pub fn take_held(&mut self) -> Vec<Message> {
        self.held.take()
    }

    /// The state of the page at `address`, by what was kept.
    pub fn fate_of(&self, address: usize) -> Fate {
        self.held.fate_of(address)
    }

    /// Takes in that a page is copied to its place.
    pub fn note_aside(&mut self, address: usize) {
        self.aside.note(address);
    }

    /// Returns true if a page was copied to its place.
    pub fn is_aside(&self, address: usize) -> bool {
        self.aside.contains(address)
    }

    /// Takes the addresses of all such pages.
    pub fn take_aside(&mut self) -> Vec<usize> {
        self.aside.take()
    }

    /// Takes in that the fork is over.
    pub fn end_fork(&mut self) {
        self.loans.end();
    }

    /// Closes the userfaultfds of children that need them no longer here: see
    /// [`Loans::close_needless`].
    pub fn close_needless(&mut self, shared: &Shared, witness: (usize, usize)) {
        self.loans.close_needless(shared, witness);
    }

    /// Forgets the userfaultfds of children, in a forked child: their numbers mean nothing there.
    pub fn forget_lent(&mut self) {
        self.loans.forget();
    }

    /// The pages to read into.
    pub fn page(&mut self) -> &mut Mapping {
        &mut self.page
    }
}
