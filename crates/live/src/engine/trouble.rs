//! Ending the program, with the reason.

use tidemark_core::id::PagerId;
use tidemark_core::seams::pager::Direction;

use super::Engine;
use crate::parts::trouble::{COMPRESSED_FULL, Trouble, pid, say};
use crate::parts::units::size;
use crate::shared::Ending;
use crate::sys::{Errno, signal};

impl Engine {
    /// Ends the program because a page it needs can't be read back.
    pub(super) fn end_for_fetch(&mut self, address: usize) -> ! {
        let mut why = String::from("the store failed");
        while let Some(failure) = self.store.next_failure() {
            if failure.direction == Direction::Fetch {
                why = failure.to_string();
            }
        }
        self.end(
            Ending::FetchFailed,
            &format!("page {address:#x} can't be read back: {why}"),
        )
    }

    /// Ends the program because memory is full and nothing can leave.
    pub(super) fn end_for_store(&mut self, is_failing: bool) -> ! {
        let budget = size(self.task.budget().into());
        let slots = size(self.line.shared().swap_slots().into());
        let mut why = format!("the swap store of {slots} is full; give it more room");
        if !self.setup.store.has_file() {
            why = COMPRESSED_FULL.into();
        }
        let mut ending = Ending::StoreFull;
        if let Some((pager, error)) = self.addresses.files().find_failing().filter(|_| is_failing) {
            why = self.describe_lost(pager, error);
            ending = Ending::FileLost;
        }
        while let Some(failure) = self.store.next_failure() {
            if is_failing && failure.direction == Direction::Store {
                why = failure.to_string();
                ending = Ending::StoreFull;
            }
        }
        let what = format!("the memory budget of {budget} is in use, and {why}");
        self.end(ending, &what)
    }

    /// Ends the program because the engine can't go on.
    pub(super) fn end_for(&mut self, trouble: &Trouble) -> ! {
        self.end(Ending::EngineFailed, &trouble.to_string())
    }

    /// Ends the program because what it has written to a mapped file can't be written there, and
    /// would be lost without a word.
    pub(super) fn end_for_file(&mut self, pager: PagerId, error: Errno) -> ! {
        let why = self.describe_lost(pager, error);
        self.end(Ending::FileLost, &why)
    }

    /// The words about what is lost of a file.
    pub(super) fn describe_lost(&self, pager: PagerId, error: Errno) -> String {
        let files = self.addresses.files();
        let path = match files.has_file(pager) {
            true => files.file(pager).path.display().to_string(),
            false => "a mapped file".into(),
        };
        format!("`{path}` can't be written: {error}; what was changed there is lost")
    }

    fn end(&mut self, ending: Ending, why: &str) -> ! {
        self.line.process().set_ending(ending);
        self.publish();
        say(&format!("{} ({}) is ended: {why}", self.setup.name, pid()));
        // What it has written to other files is as safe as if the kernel had ended it.
        self.finish_files();
        signal::end_process()
    }

    /// Reports something on standard error if that was asked for.
    pub(super) fn report_if_verbose(&self, what: &str) {
        if self.setup.is_verbose {
            say(&format!("{} ({}): {what}", self.setup.name, pid()));
        }
    }
}
