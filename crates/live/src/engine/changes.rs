//! Following the address space: what the program unmaps, moves and gives up.
//!
//! The kernel sends a message for each and holds the calling thread until it is read. Messages of
//! `munmap` and `mremap` come after the change, those of `madvise` before it.

use super::faults::Arrival;
use super::{Engine, now, page_of, pages_in};
use crate::shared::Counter;
use crate::sys::uffd::{MESSAGES_MAX, Message};

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
            Message::Unmap { start, end } => self.forget_range(start, end),
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
            Message::Remap { from, to, bytes } => self.follow_move(from, to, bytes),
            Message::Fault { .. } | Message::Unknown(_) => {}
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
