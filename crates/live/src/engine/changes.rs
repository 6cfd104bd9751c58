//! Following the address space: what the program unmaps, moves and gives up.
//!
//! The kernel sends a message for each and holds the calling thread until it is read. Messages of
//! `munmap` and `mremap` come after the change, those of `madvise` before it.
//!
//! Two threads' messages may come in another order than their changes: see
//! [`Changes`](crate::parts::intake::Changes). As soon as no change is under way, everything that
//! was said is known, and what waits for that is settled before anything else is done.

use std::time::Duration;

use tidemark_core::id::VirtPage;

use super::Engine;
use crate::parts::intake::Late;
use crate::parts::units::{now, page_of, pages_in};
use crate::shared::Counter;
use crate::sys::uffd::{Message, Uffd};

/// The time that a change of the address space may take between its beginning and its message: a
/// thread may lose its processor there.
const CHANGE_NS_MAX: u64 = 2_000_000_000;
/// The pause between two looks.
const CHANGE_PAUSE: Duration = Duration::from_micros(50);
impl Engine {
    /// Reads every message there is. Changes are applied at once, in their order; faults wait
    /// until all changes are known.
    pub(super) fn read_messages(&mut self) {
        loop {
            let Some(messages) = self.intake.read(self.machine.program()) else {
                return;
            };
            let since = now();
            for message in messages.iter() {
                self.take_in(message, since);
            }
            if !self.intake.return_messages(messages) {
                return;
            }
        }
    }

    /// Reads messages until no change is under way. False if one is after some time.
    pub(super) fn await_changes(&mut self) -> bool {
        let end = now().after_ns(CHANGE_NS_MAX);
        loop {
            self.read_messages();
            if !self.machine.is_changing() {
                self.settle_known();
                return true;
            }
            if now() > end {
                return false;
            }
            std::thread::sleep(CHANGE_PAUSE);
        }
    }

    /// Reads messages, and settles what was moved if no change is under way. False if something
    /// still waits for that: what stands where is not known then.
    pub(super) fn settle_changes(&mut self) -> bool {
        self.read_messages();
        if !self.intake.is_settled() && !self.machine.is_changing() {
            self.settle_known();
        }
        self.intake.is_settled()
    }

    /// Applies what has waited: nothing more is on its way.
    fn settle_known(&mut self) {
        self.settle_late();
        while let Some((start, end)) = self.intake.changes_mut().take_unproven() {
            for (from, to) in self.addresses.collect_within(start, end) {
                let pages = pages_in(from, to);
                match self.machine.is_registered(page_of(from), pages) {
                    Some(true) => {}
                    Some(false) => self.forget_range(from, to),
                    None => return self.intake.changes_mut().add_unproven(start, end),
                }
            }
        }
    }

    /// Applies the changes that have waited, in a forked child. No message about them is on its way
    /// there: its mappings show the rest.
    pub(super) fn settle_in_child(&mut self) {
        self.settle_late();
        self.intake.changes_mut().forget_unproven();
    }

    /// Lays down what has waited for its place: no word of what was there is to come.
    fn settle_late(&mut self) {
        for late in self.intake.changes_mut().take_late() {
            self.lay_down(late);
        }
        self.intake.changes_mut().forget_owed();
    }

    /// Applies what has waited for places that are vacant now.
    fn retry_late(&mut self) {
        loop {
            let addresses = &self.addresses;
            let is_vacant = |start, end| addresses.is_vacant(start, end);
            let Some(late) = self.intake.changes_mut().take_ready(is_vacant) else {
                return;
            };
            self.lay_down(late);
        }
    }

    fn take_in(&mut self, message: Message, since: tidemark_core::time::Time) {
        match self.intake.take_in(message, since, self.line.shared()) {
            Some(Message::Fork { child }) => self.feed_child(Uffd::take_child(child)),
            Some(change) => {
                self.turns.note_served();
                self.place.note_change();
                self.apply(change);
            }
            None => {}
        }
    }

    /// Applies a change.
    pub(super) fn apply(&mut self, message: Message) {
        if matches!(message, Message::Unknown(_)) {
            return;
        }
        self.telemetry.add(Counter::MapEvents, 1);
        match message {
            Message::Unmap { start, end } => {
                if !self.intake.changes_mut().pay_off(start, end) {
                    self.forget_range(start, end);
                }
                self.retry_late();
            }
            Message::Remove { start, end } => {
                self.look_before_emptying(start, end);
                let (at, pages) = (page_of(start), pages_in(start, end));
                self.vm.discard(&mut self.machine, self.space, at, pages);
                // The pages stand there until the program's thread has gone on; those that
                // MADV_FREE leaves stay. They are looked for when it must have.
                self.addresses.empty(start, end);
                self.forget_neighbours(start, end);
                self.addresses.adopt_later(start, end, self.now);
            }
            Message::Remap { from, to, bytes } => {
                let late = self.pick_up(from, to, bytes);
                self.intake.changes_mut().owe(from, from + bytes);
                if self.addresses.is_vacant(to, to + bytes) {
                    self.lay_down(late);
                } else {
                    self.intake.changes_mut().add_late(late);
                }
                self.retry_late();
            }
            Message::Fork { .. } | Message::Fault { .. } | Message::Unknown(_) => {}
        }
    }

    /// Drops a range that is not mapped any more, or not as it was.
    pub(super) fn forget_range(&mut self, start: usize, end: usize) {
        self.unmap_gone(page_of(start), pages_in(start, end));
        self.addresses.forget(start, end);
        self.note_unmapped(start, end);
        self.forget_neighbours(start, end);
        self.forget_files(start, end);
    }

    /// Unmaps a range in the core whose mapping is gone. Something else may stand there: pages that
    /// are written to a file must not be moved out of it, as if others could want them.
    pub(super) fn unmap_gone(&mut self, at: VirtPage, pages: u64) {
        let (vm, machine) = (&mut self.vm, &mut self.machine);
        vm.forget_external(machine, self.space, at, pages);
        vm.unmap(machine, self.space, at, pages);
    }

    /// Leaves a range to the program that it has just mapped. A scan may have been quicker than its
    /// request; nothing of it has been touched yet.
    pub(super) fn leave_alone(&mut self, start: usize, end: usize) {
        for (from, to) in self.addresses.collect_within(start, end) {
            // What can't be let go is gone already, and its message is on its way.
            let let_go = self.machine.unregister(page_of(from), pages_in(from, to));
            if let_go.is_ok() {
                self.forget_range(from, to);
            }
        }
        self.addresses.scanner_mut().exclude(start, end);
    }

    /// Takes what is managed at `from` to a place that no program can have.
    fn pick_up(&mut self, from: usize, to: usize, bytes: usize) -> Late {
        let aside = self.intake.changes_mut().claim_aside(bytes);
        let pages = pages_in(from, from + bytes);
        self.vm.remap(
            &mut self.machine,
            self.space,
            page_of(from),
            page_of(aside),
            pages,
        );
        let carried = self.addresses.take_out(from, to, bytes);
        let blank = self.pick_up_neighbours(from, to, bytes);
        self.machine.forget_closed(from, from + bytes);
        Late {
            aside,
            from,
            to,
            bytes,
            carried,
            blank,
        }
    }

    /// Brings it to where the program has it.
    fn lay_down(&mut self, late: Late) {
        let Late {
            aside,
            from,
            to,
            bytes,
            ..
        } = late;
        self.addresses.remove(to, to + bytes);
        self.forget_files(to, to + bytes);
        self.unmap_gone(page_of(to), pages_in(to, to + bytes));
        self.vm.remap(
            &mut self.machine,
            self.space,
            page_of(aside),
            page_of(to),
            pages_in(to, to + bytes),
        );
        for part in self.addresses.put_down(to, late.carried) {
            if part.is_closed {
                self.machine.note_closed(part.start, part.end);
            }
        }
        if let Some(sampling) = self.telemetry.sampling_mut() {
            sampling.neighbours_mut().lay_down(to, &late.blank);
        }
        self.note_moved(from, to, bytes);
        self.intake.changes_mut().add_unproven(to, to + bytes);
    }
}
