//! Answering program threads.

use super::Engine;
use super::files::Passed;
use crate::parts::units::{page_of, pages_in};
use crate::requests::{Ask, FileMapping, Requests, Taken, WriteBack};
use crate::sys::PAGE;

impl Engine {
    /// Answers every request there is.
    pub(super) fn answer_asks(&mut self, requests: &Requests) {
        while let Some((taken, ask)) = requests.take() {
            self.answer_ask(requests, taken, ask);
        }
    }

    fn answer_ask(&mut self, requests: &Requests, taken: Taken, ask: Ask) {
        let mode = self.setup.mode;
        match ask {
            Ask::Map { bytes, .. } if !mode.manages_mapping_of(bytes) => requests.answer(taken, 0),
            Ask::Map { start, bytes } => {
                self.take_over_new(start, start + bytes);
                requests.answer(taken, 0);
            }
            Ask::Look { .. } if !mode.looks_for_memory() => requests.answer(taken, 0),
            Ask::Look { start, bytes } => {
                self.take_over_within(start, start + bytes);
                // It has been filled already, and the thread may fill more as soon as it goes on.
                requests.hold(taken);
                self.addresses
                    .adoption_mut()
                    .hold(taken, start, start + bytes);
            }
            Ask::Leave { start, bytes } => {
                self.leave_alone(start, start + bytes);
                requests.answer(taken, 0);
            }
            Ask::Lock { start, bytes } => {
                let is_large = self.follow_locks(start, start.saturating_add(bytes));
                requests.answer(taken, u64::from(is_large));
            }
            Ask::Wipe { start, bytes } => {
                self.note_wiped(start, start + bytes);
                requests.answer(taken, 0);
            }
            Ask::Keep { start, bytes } => {
                self.addresses.unwipe(start, start + bytes);
                requests.answer(taken, 0);
            }
            Ask::LendFolder { socket } => {
                let folder = self.setup.control.as_deref();
                let is_lent = self.line.lend_folder(folder, socket).is_ok();
                requests.answer(taken, u64::from(is_lent));
            }
            Ask::MapFile(_) | Ask::AdviseFile { .. } => self.answer_of_files(requests, taken, ask),
            Ask::ProtectFile { .. } | Ask::GrowFile { .. } => {
                self.answer_of_files(requests, taken, ask);
            }
            Ask::WriteBack { .. } | Ask::GiveFileUp { .. } | Ask::UseFile { .. } => {
                self.answer_of_written(requests, taken, ask);
            }
            Ask::Release => {
                self.place.let_go(self.now);
                requests.answer(taken, 0);
            }
            Ask::Freeze { thread } => match self.come_to_rest() {
                Some(child) => {
                    requests.answer(taken, u64::from(child.0) + 1);
                    self.rest(thread, child, requests);
                }
                None => requests.answer(taken, 0),
            },
            Ask::Abandon { child } => {
                self.abandon_child(child);
                requests.answer(taken, 0);
            }
            Ask::CatchUp => {
                self.catch_up();
                self.telemetry.flush_decisions();
                self.write_all_back(requests, taken);
            }
            Ask::Finish => self.answer_at_end(requests, taken),
        }
    }

    /// Ends what is recorded, and has files written, as the program ends.
    fn answer_at_end(&mut self, requests: &Requests, taken: Taken) {
        self.tell_of_locks();
        self.finish();
        self.write_all_back(requests, taken);
    }

    /// Answers a request about mapped files.
    fn answer_of_files(&mut self, requests: &Requests, taken: Taken, ask: Ask) {
        let answer = match ask {
            Ask::MapFile(made) => u64::from(self.take_file_over(FileMapping {
                bytes: made.bytes.next_multiple_of(PAGE),
                ..made
            })),
            Ask::AdviseFile {
                start,
                bytes,
                advice,
            } => self.advise_file(start, bytes, advice),
            Ask::ProtectFile {
                start,
                bytes,
                rights,
            } => self.protect_file(start, bytes, rights),
            Ask::GrowFile {
                start,
                bytes_before,
                bytes,
            } => self.grow_mapping(start, bytes_before, bytes),
            _ => unreachable!("the caller has the others"),
        };
        requests.answer(taken, answer);
    }

    /// Answers what is asked of files that are written back.
    fn answer_of_written(&mut self, requests: &Requests, taken: Taken, ask: Ask) {
        match ask {
            Ask::WriteBack { start, bytes, why } => {
                let parts = self.addresses.files();
                let parts = parts.collect_written(start_of(start), end_of(start, bytes));
                self.write_back(requests, taken, &parts, why);
            }
            Ask::GiveFileUp { start, bytes } => {
                let end = end_of(start, bytes);
                self.give_files_up(start_of(start), end, Passed::Unusual);
                requests.answer(taken, 0);
            }
            Ask::UseFile {
                device,
                number,
                is_write,
            } => {
                let parts = self.use_file((device, number), is_write);
                self.write_back(requests, taken, &parts, WriteBack::Leave);
            }
            _ => unreachable!("the caller has the others"),
        }
    }

    /// Takes over what of a range can be managed and is not yet, of mappings of any size.
    fn take_over_within(&mut self, start: usize, end: usize) {
        if !self.await_changes() {
            self.addresses.adoption_mut().hasten_scan();
            return;
        }
        for (from, to) in self.addresses.collect_manageable(start, end) {
            self.take_over_gaps(from, to);
        }
    }

    /// Takes over what of a range may be managed and is not yet.
    pub(super) fn take_over_gaps(&mut self, start: usize, end: usize) {
        for (from, to) in self.addresses.collect_untaken(start, end) {
            self.take_over(from, to);
        }
    }

    /// Takes over a mapping that has just been made. What the core may still know there is gone.
    fn take_over_new(&mut self, start: usize, end: usize) {
        let end = end.next_multiple_of(PAGE);
        // The calls that made room for it may have left their messages, or be about to.
        if !self.await_changes() {
            // A scan will find it.
            return;
        }
        self.addresses.scanner_mut().forget(start, end);
        if self.addresses.contains(start) {
            self.unmap_gone(page_of(start), pages_in(start, end));
            self.addresses.remove(start, end);
            self.note_unmapped(start, end);
            self.forget_neighbours(start, end);
            self.forget_files(start, end);
        }
        for (start, end) in self.addresses.scanner_mut().collect_free(start, end) {
            self.take_over(start, end);
        }
    }
}

/// The start of the page of an address.
fn start_of(address: usize) -> usize {
    address & !(PAGE - 1)
}

/// The end of the last page of a range.
fn end_of(start: usize, bytes: usize) -> usize {
    start
        .saturating_add(bytes)
        .div_ceil(PAGE)
        .saturating_mul(PAGE)
}
