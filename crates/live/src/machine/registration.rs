//! Registration: the ranges of the program whose missing pages raise messages.

use std::time::Duration;

use tidemark_core::id::VirtPage;

use super::{LiveMachine, RELEASE_NS_MAX, RELEASE_PAUSE_NS, StartError, address, open_program};
use crate::sys::pagemap::Pagemap;
use crate::sys::uffd::{Features, Mode, Uffd};
use crate::sys::{Errno, PAGE};

impl LiveMachine {
    /// Returns true if the program is in the midst of a change of its address space: mappings may
    /// look changed already whose message has not come yet.
    pub fn is_changing(&self) -> bool {
        let (present, source) = self.witness();
        self.program.is_changing(present, source)
    }

    /// The page that is registered and present, here and in forked children, and a page to copy
    /// there in vain.
    pub(crate) fn witness(&self) -> (usize, usize) {
        (self.witness.start(), self.pool.zeros())
    }

    /// Takes charge of the missing pages of a range. Answers of how many pages from its start on:
    /// where the program has no mapping any more the kernel registers nothing and says nothing.
    /// Zero also while the address space is changing.
    ///
    /// Later memory there would raise no messages for its missing pages; to move a page out of it
    /// would be to lose the page.
    pub fn register(&mut self, at: VirtPage, pages: u64) -> Result<u64, Errno> {
        self.program
            .register(address(at), pages as usize * PAGE, Mode::Missing)?;
        Ok(self.count_registered(at, pages))
    }

    /// Returns `Some(true)` if all of a range is registered. `None`: the address space is changing.
    pub fn is_registered(&self, at: VirtPage, pages: u64) -> Option<bool> {
        if self.count_registered(at, pages) == pages {
            return Some(true);
        }
        // A change that was under way then is still: its message has not been read.
        (!self.is_changing()).then_some(false)
    }

    pub(super) fn count_registered(&self, at: VirtPage, pages: u64) -> u64 {
        let mut registered = 0;
        loop {
            let run = self.registered_run(at.plus(registered), pages - registered);
            registered += run;
            if run == 0 || registered == pages {
                return registered;
            }
        }
    }

    /// The number of pages from `at` on that are registered and in one mapping; at most `most`.
    fn registered_run(&self, at: VirtPage, most: u64) -> u64 {
        let is_registered = |pages: u64| {
            let bytes = pages as usize * PAGE;
            pages == 0 || self.program.has_registered(address(at), bytes)
        };
        // Mappings are most often there as a whole.
        if is_registered(most) {
            return most;
        }
        let (mut least, mut beyond) = (0, most);
        while beyond - least > 1 {
            let middle = least + (beyond - least) / 2;
            if is_registered(middle) {
                least = middle;
            } else {
                beyond = middle;
            }
        }
        least
    }

    /// Opens new userfaultfds in a forked child, where the old descriptors mean nothing. The
    /// program's is `inherited`, if that is this process's. The program's ranges are to be
    /// registered anew: what is registered with it already stays so.
    pub fn reopen(
        &mut self,
        features: Features,
        inherited: Option<Uffd>,
    ) -> Result<(), StartError> {
        let tip_uffd = Uffd::open_for(self.faults, Features::MOVE).map_err(StartError::Uffd)?;
        let inherited = inherited.filter(|uffd| self.is_own(uffd, &tip_uffd));
        let program = inherited.map_or_else(|| open_program(self.faults, features), Ok);
        let program = program.map_err(StartError::Uffd)?;
        let pages = Pagemap::open().map_err(StartError::Pages)?;
        let register = || {
            let (tip, pool) = (&self.tip, &self.pool);
            tip_uffd.register(tip.start(), tip.bytes(), Mode::MoveTarget)?;
            register_patiently(&program, pool.start(), pool.bytes(), Mode::MoveTarget)?;
            register_patiently(&program, self.witness.start(), PAGE, Mode::Missing)
        };
        let frames = self.pool.frames();
        register().map_err(|error| StartError::Pool { frames, error })?;
        // The numbers may be files of the program by now: they are not closed.
        std::mem::forget(std::mem::replace(&mut self.program, program));
        std::mem::forget(std::mem::replace(&mut self.tip_uffd, tip_uffd));
        std::mem::forget(std::mem::replace(&mut self.pages, pages));
        Ok(())
    }

    /// Returns true if a userfaultfd is for this process's memory: what is registered with it can't
    /// be registered with `another` that is.
    fn is_own(&self, uffd: &Uffd, another: &Uffd) -> bool {
        let (start, bytes) = (self.tip.start(), self.tip.bytes());
        let mode = Mode::MoveTarget;
        if uffd.register(start, bytes, mode).is_err() {
            return false;
        }
        let is_own = another.register(start, bytes, mode) == Err(Errno::BUSY);
        uffd.unregister(start, bytes).is_ok() && is_own
    }

    /// Registers in a forked child what its parent had registered.
    pub fn register_again(&mut self, at: VirtPage, pages: u64) -> Result<(), Errno> {
        let bytes = pages as usize * PAGE;
        register_patiently(&self.program, address(at), bytes, Mode::Missing)
    }

    /// Lets go of a range: missing pages become the kernel's business.
    pub fn unregister(&mut self, at: VirtPage, pages: u64) -> Result<(), Errno> {
        self.program.unregister(address(at), pages as usize * PAGE)
    }
}

/// Registers a range of a forked child that may still belong to the userfaultfd its parent's
/// engine was sent for it, and is about to close.
pub(super) fn register_patiently(
    program: &Uffd,
    start: usize,
    bytes: usize,
    mode: Mode,
) -> Result<(), Errno> {
    let mut pauses_left = RELEASE_NS_MAX / RELEASE_PAUSE_NS;
    loop {
        match program.register(start, bytes, mode) {
            Err(Errno::BUSY) if pauses_left > 0 => pauses_left -= 1,
            other => return other,
        }
        std::thread::sleep(Duration::from_nanos(RELEASE_PAUSE_NS));
    }
}
