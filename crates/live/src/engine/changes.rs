//! Following the address space: what the program unmaps, moves and gives up.
//!
//! The kernel sends a message for each and holds the calling thread until it is read. Messages of
//! `munmap` and `mremap` come after the change, those of `madvise` before it.
//!
//! Two threads' messages may come in another order than their changes, for addresses that one has
//! freed and the kernel gives to the other at once:
//!
//! - Memory is moved to where other memory was whose own message is still on its way. It is *late*:
//!   taken from where it was, it waits until the place is vacant, or nothing more is on its way.
//! - `mremap` unmaps what it has moved away from, and says so after it has told of the move. By
//!   then another thread may have moved something there: that message is *owed*, and means nothing
//!   to the newcomer.
//! - Memory is moved, unmapped and told of in the wrong order: what was moved is *unproven* until
//!   the kernel has been asked whether it is registered where it is said to be.
//!
//! While any change is under way the kernel refuses to move pages in or out ([`crate::machine`]).
//! As soon as none is, everything that was said is known, and these three are settled before
//! anything else is done.

use std::time::Duration;

use super::Engine;
use super::faults::Arrival;
use crate::mapped::Part;
use crate::parts::units::{now, page_of, pages_in};
use crate::shared::Counter;
use crate::sys::uffd::{MESSAGES_MAX, Message, Uffd};

/// The time that a change of the address space may take between its beginning and its message: a
/// thread may lose its processor there.
const CHANGE_NS_MAX: u64 = 2_000_000_000;
/// The pause between two looks.
const CHANGE_PAUSE: Duration = Duration::from_micros(50);
/// Beyond all addresses that a program can have.
const ASIDE_START: usize = 1 << 62;

/// Changes of which not everything is known yet.
#[derive(Default)]
pub(super) struct Changes {
    late: Vec<Late>,
    /// The ranges that `mremap` has moved away, whose unmapping is still to be told of.
    owed: Vec<(usize, usize)>,
    /// The ranges to which something has been moved.
    unproven: Vec<(usize, usize)>,
    /// The number of bytes of the aside that are taken.
    aside_bytes: usize,
}

/// Memory that was moved, and waits for its place.
struct Late {
    /// The address at which the core has it meanwhile.
    aside: usize,
    from: usize,
    to: usize,
    bytes: usize,
    /// The managed parts of it, from its start.
    parts: Vec<(usize, usize)>,
    /// The blank parts of it.
    blank: Vec<(usize, usize)>,
    /// The parts of it that are wiped in forked children.
    wiped: Vec<(usize, usize)>,
    /// The parts of it that show files, at `to`.
    files: Vec<Part>,
}

impl Changes {
    /// Returns true if everything is known of what was moved.
    pub(super) fn is_settled(&self) -> bool {
        self.late.is_empty() && self.unproven.is_empty()
    }

    /// Returns true if a range that was unmapped is one that an `mremap` owed word of.
    fn pay_off(&mut self, start: usize, end: usize) -> bool {
        let owed = self.owed.iter().position(|range| *range == (start, end));
        owed.map(|index| self.owed.swap_remove(index)).is_some()
    }

    fn claim_aside(&mut self, bytes: usize) -> usize {
        if self.late.is_empty() {
            self.aside_bytes = 0;
        }
        let start = ASIDE_START + self.aside_bytes;
        self.aside_bytes += bytes;
        start
    }
}

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
            // A read that did not fill the buffer has taken all there was. A frozen engine has room
            // for one.
            if count < MESSAGES_MAX || self.freeze.is_frozen() {
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
        if !self.changes.is_settled() && !self.machine.is_changing() {
            self.settle_known();
        }
        self.changes.is_settled()
    }

    /// Applies what has waited: nothing more is on its way.
    fn settle_known(&mut self) {
        self.settle_late();
        while let Some((start, end)) = self.changes.unproven.pop() {
            for (from, to) in self.managed.collect_overlaps(start, end) {
                let (from, to) = (from.max(start), to.min(end));
                let pages = pages_in(from, to);
                match self.machine.is_registered(page_of(from), pages) {
                    Some(true) => {}
                    Some(false) => self.forget_range(from, to),
                    None => return self.changes.unproven.push((start, end)),
                }
            }
        }
    }

    /// The same in a forked child, where nothing is on its way: what is mapped shows the rest.
    pub(super) fn settle_in_child(&mut self) {
        self.settle_late();
        self.changes.unproven.clear();
    }

    /// Lays down what has waited for its place: no word of what was there is to come.
    fn settle_late(&mut self) {
        for late in std::mem::take(&mut self.changes.late) {
            self.lay_down(late);
        }
        self.changes.owed.clear();
    }

    /// Applies what has waited for places that are vacant now.
    fn retry_late(&mut self) {
        let is_ready = |engine: &Engine, late: &Late| engine.is_vacant(late.to, late.bytes);
        while let Some(index) =
            (0..self.changes.late.len()).find(|index| is_ready(self, &self.changes.late[*index]))
        {
            let late = self.changes.late.remove(index);
            self.lay_down(late);
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
                self.waiting.arrive(Arrival {
                    address: at,
                    is_write,
                    thread,
                    since,
                });
            }
            // The fork that was announced: its child has an engine.
            Message::Fork { child } if self.freeze.is_frozen() => {
                let uffd = Uffd::take_child(child);
                self.freeze.lend(uffd, self.line.shared());
            }
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
        self.telemetry.add(Counter::MapEvents, 1);
        match message {
            Message::Unmap { start, end } => {
                if !self.changes.pay_off(start, end) {
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
                self.adoption.remove(start, end);
                self.outside.remove(start, end);
                self.forget_neighbours(start, end);
                for (from, to) in self.managed.collect_overlaps(start, end) {
                    self.adoption
                        .add_later(from.max(start), to.min(end), self.now);
                }
            }
            Message::Remap { from, to, bytes } => {
                let late = self.pick_up(from, to, bytes);
                self.changes.owed.push((from, from + bytes));
                if self.is_vacant(to, bytes) {
                    self.lay_down(late);
                } else {
                    self.changes.late.push(late);
                }
                self.retry_late();
            }
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
        self.note_unmapped(start, end);
        self.adoption.remove(start, end);
        self.outside.remove(start, end);
        self.forget_wiped(start, end);
        self.forget_neighbours(start, end);
        self.forget_files(start, end);
        self.scanner.forget(start, end);
        // Something else may stand there by now.
        self.adoption.hasten_scan();
    }

    /// Leaves a range to the program that it has just mapped. A scan may have been quicker than its
    /// request; nothing of it has been touched yet.
    pub(super) fn leave_alone(&mut self, start: usize, end: usize) {
        for (from, to) in self.managed.collect_overlaps(start, end) {
            let (from, to) = (from.max(start), to.min(end));
            // What can't be let go is gone already, and its message is on its way.
            let let_go = self.machine.unregister(page_of(from), pages_in(from, to));
            if let_go.is_ok() {
                self.forget_range(from, to);
            }
        }
        self.scanner.exclude(start, end);
    }

    /// Takes what is managed at `from` to a place that no program can have.
    fn pick_up(&mut self, from: usize, to: usize, bytes: usize) -> Late {
        let parts = self.managed.collect_overlaps(from, from + bytes);
        let parts = parts.into_iter().map(|(start, end)| {
            let (start, end) = (start.max(from), end.min(from + bytes));
            (start - from, end - from)
        });
        let parts = parts.collect();
        let aside = self.changes.claim_aside(bytes);
        let pages = pages_in(from, from + bytes);
        self.vm.remap(
            &mut self.machine,
            self.space,
            page_of(from),
            page_of(aside),
            pages,
        );
        self.managed.remove(from, from + bytes);
        self.adoption.remove(from, from + bytes);
        // Where they have moved they are found, as pages without an account.
        self.outside.remove(from, from + bytes);
        let blank = self.pick_up_neighbours(from, to, bytes);
        let wiped = self.wiped_parts(from, from + bytes);
        self.forget_wiped(from, from + bytes);
        self.machine.forget_closed(from, from + bytes);
        let files = self.mapped.take(from, from + bytes).into_iter();
        let files = files.map(|part| Part {
            start: part.start - from + to,
            end: part.end - from + to,
            ..part
        });
        let files = files.collect();
        self.scanner.forget(from, from + bytes);
        self.adoption.hasten_scan();
        Late {
            aside,
            from,
            to,
            bytes,
            parts,
            blank,
            wiped,
            files,
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
        self.managed.remove(to, to + bytes);
        self.forget_wiped(to, to + bytes);
        self.forget_files(to, to + bytes);
        self.vm.remap(
            &mut self.machine,
            self.space,
            page_of(aside),
            page_of(to),
            pages_in(to, to + bytes),
        );
        for (start, end) in late.parts {
            self.managed.insert(to + start, to + end);
            // Pages may have been looked for at the old place after they had left it.
            self.adoption.add(to + start, to + end);
        }
        for (start, end) in late.wiped {
            self.wiped.insert(to + start, to + end);
        }
        for part in late.files {
            if part.is_closed {
                self.machine.note_closed(part.start, part.end);
            }
            self.mapped.put(part);
        }
        if let Some(sampling) = self.telemetry.sampling_mut() {
            sampling.neighbours_mut().lay_down(to, &late.blank);
        }
        self.note_moved(from, to, bytes);
        self.changes.unproven.push((to, to + bytes));
    }
}
