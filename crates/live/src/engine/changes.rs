//! Following the address space: what the program unmaps, moves and gives up.
//!
//! The kernel sends a message for each and holds the calling thread until it is read. Messages of
//! `munmap` and `mremap` come after the change, those of `madvise` before it.
//!
//! Two threads' messages may come in another order than their changes: memory may be moved to where
//! other memory was whose own message is still on its way. What is moved to a place that is not
//! known to be free is *late*: it waits until the place has been vacated. Meanwhile nothing can
//! be moved, in or out ([`crate::machine`]).

use std::time::Duration;

use super::faults::Arrival;
use super::{Engine, now, page_of, pages_in};
use crate::shared::Counter;
use crate::sys::uffd::{MESSAGES_MAX, Message, Uffd};

/// How long a change of the address space may take between its beginning and its message: a thread
/// may lose its processor there.
const CHANGE_NS_MAX: u64 = 2_000_000_000;
/// How often is looked.
const CHANGE_PAUSE: Duration = Duration::from_micros(50);

impl Engine {
    /// Reads every message there is. Changes are applied at once, in their order; faults wait
    /// until all changes are known.
    pub(super) fn read_messages(&mut self) {
        loop {
            if self.machine.program().read(&mut self.messages).is_err() {
                return;
            }
            let count = self.messages.len();
            if count == 0 {
                return;
            }
            let since = now();
            let messages = std::mem::take(&mut self.messages);
            for message in messages.iter() {
                self.take_in(message, since);
            }
            self.messages = messages;
            // A read that did not fill the buffer has taken all there was.
            if count < MESSAGES_MAX {
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
                self.apply_late();
                return true;
            }
            if now() > end {
                return false;
            }
            std::thread::sleep(CHANGE_PAUSE);
        }
    }

    /// Applies what has waited long enough: nothing more is on its way.
    pub(super) fn settle_late(&mut self) {
        if !self.late.is_empty() {
            self.read_messages();
            if !self.machine.is_changing() {
                self.apply_late();
            }
        }
    }

    fn apply_late(&mut self) {
        for (from, to, bytes) in std::mem::take(&mut self.late) {
            self.follow_move(from, to, bytes);
        }
    }

    /// Applies what has waited for places that are free now.
    fn retry_late(&mut self) {
        while let Some(index) = (0..self.late.len())
            .find(|index| self.is_vacant(self.late[*index].1, self.late[*index].2))
        {
            let (from, to, bytes) = self.late.remove(index);
            self.follow_move(from, to, bytes);
        }
    }

    fn is_vacant(&self, start: usize, bytes: usize) -> bool {
        self.managed
            .collect_overlaps(start, start + bytes)
            .is_empty()
    }

    fn take_in(&mut self, message: Message, since: tidemark_core::time::Time) {
        match message {
            Message::Fault {
                at,
                is_write,
                thread,
            } => {
                self.waiting.arrived.push_back(Arrival {
                    address: at,
                    is_write,
                    thread,
                    since,
                });
            }
            // The fork that was announced: its child has an engine, and opens one of its own.
            Message::Fork { child } if self.freeze.is_frozen() => drop(Uffd::take_child(child)),
            Message::Fork { child } => self.feed_child(Uffd::take_child(child)),
            _ if self.freeze.is_frozen() => self.freeze.hold(message),
            Message::Remap { .. } | Message::Remove { .. } | Message::Unmap { .. } => {
                self.apply(message);
            }
            Message::Unknown(_) => {}
        }
    }

    /// Applies a change.
    pub(super) fn apply(&mut self, message: Message) {
        self.gauges.add(Counter::MapEvents, 1);
        match message {
            Message::Unmap { start, end } => {
                self.forget_range(start, end);
                self.retry_late();
            }
            Message::Remove { start, end } => {
                let (at, pages) = (page_of(start), pages_in(start, end));
                self.vm.discard(&mut self.machine, self.space, at, pages);
                // The pages stand there until the program's thread has gone on; those that
                // MADV_FREE leaves stay. They are looked for when it must have.
                self.adoption.remove(start, end);
                for (from, to) in self.managed.collect_overlaps(start, end) {
                    self.adoption
                        .add_later(from.max(start), to.min(end), self.now);
                }
            }
            Message::Remap { from, to, bytes } if self.is_vacant(to, bytes) => {
                self.follow_move(from, to, bytes);
                self.retry_late();
            }
            Message::Remap { from, to, bytes } => self.late.push((from, to, bytes)),
            Message::Fork { .. } | Message::Fault { .. } | Message::Unknown(_) => {}
        }
    }

    /// Drops a range that is not mapped any more, or not as it was.
    pub(super) fn forget_range(&mut self, start: usize, end: usize) {
        self.vm.unmap(
            &mut self.machine,
            self.space,
            page_of(start),
            pages_in(start, end),
        );
        self.managed.remove(start, end);
        self.adoption.remove(start, end);
        self.scanner.forget(start, end);
        // Something else may stand there by now.
        self.adoption.hasten_scan();
    }

    fn follow_move(&mut self, from: usize, to: usize, bytes: usize) {
        let (first, target) = (page_of(from), page_of(to));
        let pages = pages_in(from, from + bytes);
        let parts = self.managed.collect_overlaps(from, from + bytes);
        self.managed.remove(to, to + bytes);
        self.vm
            .remap(&mut self.machine, self.space, first, target, pages);
        self.managed.remove(from, from + bytes);
        for (start, end) in parts {
            let (start, end) = (start.max(from), end.min(from + bytes));
            self.managed.insert(start - from + to, end - from + to);
            self.adoption.move_range(start, end, start - from + to);
            // Pages that were looked for at the old place after they had left it.
            self.adoption.add(start - from + to, end - from + to);
        }
        self.scanner.forget(from, from + bytes);
        self.adoption.hasten_scan();
    }
}
