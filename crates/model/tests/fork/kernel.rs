//! The kernel's side: mappings, what is present, and the queue of a userfaultfd.

/// The number of pages that there are addresses for.
pub const PAGES: usize = 4;
/// An address.
pub type Page = usize;
/// A page's contents; zero: zeros.
pub type Content = u8;
/// A thread of the program.
pub type Thread = usize;

/// A message about a change of the address space.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Event {
    Unmap(Page),
    Move { from: Page, to: Page },
    Remove(Page),
    Fork,
}

/// One process as its kernel has it.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Kernel {
    pub is_mapped: [bool; PAGES],
    /// Its missing pages are the engine's business.
    pub is_registered: [bool; PAGES],
    pub present: [Option<Content>; PAGES],
    /// The number of changes under way: from before each until its thread has heard that its
    /// message was read. While there are any, nothing moves in or out.
    pub changing: u8,
    /// The messages to be read, and the threads that wait until it is.
    pub events: Vec<(Event, Thread)>,
    /// The same of faults, which are read first.
    pub faults: Vec<(Page, Thread)>,
}

impl Kernel {
    /// Touches a page. False if the thread must wait for the engine.
    pub fn touch(&mut self, page: Page, thread: Thread) -> bool {
        assert!(self.is_mapped[page], "no script touches what is not mapped");
        if self.present[page].is_none() {
            if self.is_registered[page] {
                self.faults.push((page, thread));
                return false;
            }
            self.present[page] = Some(0);
        }
        true
    }

    pub fn map(&mut self, page: Page) {
        self.is_mapped[page] = true;
        self.is_registered[page] = false;
        self.present[page] = None;
    }

    pub fn unmap(&mut self, page: Page) {
        self.map(page);
        self.is_mapped[page] = false;
    }

    pub fn remap(&mut self, from: Page, to: Page) {
        self.is_mapped[to] = true;
        self.is_registered[to] = self.is_registered[from];
        self.present[to] = self.present[from];
        self.unmap(from);
    }

    /// The memory of a forked child, of whose pages no engine is told of yet.
    pub fn copy(&self) -> Kernel {
        Kernel {
            is_mapped: self.is_mapped,
            present: self.present,
            ..Kernel::default()
        }
    }
}
