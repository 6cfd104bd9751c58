//! The address space of a program: the part of it that is managed, and what is known of the rest.
//!
//! # Invariants
//! 1. What reads as zeros in children, what shows files, and what is outside of the account is a
//!    part of what is managed.

mod adoption;
mod outside;

use tidemark_core::time::Time;

pub use self::adoption::Adoption;
pub use self::outside::Outside;
use super::setup::Setup;
use crate::mapped::{Mapped, Part};
use crate::ranges::Ranges;
use crate::scanner::Scanner;
use crate::sys::Errno;
use crate::sys::calls::RANGE;

/// The shortest time between two counts of locked memory without a request.
const COUNT_NS: u64 = 1_000_000_000;

/// The address space.
pub struct AddressSpace {
    scanner: Scanner,
    /// The addresses under management: the ranges the core has regions for.
    managed: Ranges,
    /// The part of them that reads as zeros in forked children.
    wiped: Ranges,
    /// The part of them that shows files.
    files: Mapped,
    adoption: Adoption,
    outside: Outside,
    locks: Locks,
}

/// The state of locks, but for where they are.
#[derive(Default)]
struct Locks {
    /// True if the warning was given that more is locked than the budget holds.
    is_told: bool,
    next_count: Time,
}

/// A range that was taken out, to be put down elsewhere: parts from its start on.
pub struct Carried {
    /// The managed parts.
    managed: Vec<(usize, usize)>,
    /// The parts that are wiped in forked children.
    wiped: Vec<(usize, usize)>,
    /// The parts that map files, at the addresses that they move to.
    files: Vec<Part>,
}

impl AddressSpace {
    /// Opens the files of this process, in which nothing is managed.
    pub fn new(setup: &Setup) -> Result<AddressSpace, Errno> {
        let mut scanner = Scanner::new()?;
        if setup.holds_calls {
            scanner.keep_within(RANGE);
        }
        Ok(AddressSpace {
            scanner,
            managed: Ranges::new(),
            wiped: Ranges::new(),
            files: Mapped::new(
                setup.files.clone(),
                setup.is_file_named,
                setup.are_files_written,
            ),
            adoption: Adoption::new(),
            outside: Outside::new(),
            locks: Locks::default(),
        })
    }

    /// The managed ranges.
    pub fn managed(&self) -> &Ranges {
        &self.managed
    }

    /// Returns true if an address is managed.
    pub fn contains(&self, address: usize) -> bool {
        self.managed.contains(address)
    }

    /// Returns true if nothing of a range is managed.
    pub fn is_vacant(&self, start: usize, end: usize) -> bool {
        self.managed.collect_overlaps(start, end).is_empty()
    }

    /// The managed parts of a range.
    pub fn collect_within(&self, start: usize, end: usize) -> Vec<(usize, usize)> {
        let parts = self.managed.collect_overlaps(start, end).into_iter();
        parts
            .map(|(from, to)| (from.max(start), to.min(end)))
            .collect()
    }

    /// The parts of a range that may be managed and are not yet.
    pub fn collect_untaken(&self, start: usize, end: usize) -> Vec<(usize, usize)> {
        let gaps = self.managed.collect_gaps(start, end).into_iter();
        gaps.flat_map(|(from, to)| self.scanner.collect_free(from, to))
            .collect()
    }

    /// The range around an address that can be managed and is not yet, if there is one. A thread
    /// waits there for the engine: so something is registered.
    pub fn find_untaken_around(&mut self, address: usize) -> Option<(usize, usize)> {
        let area = self.scanner.find_manageable(address)?;
        self.scanner.forget_refused(area.start, area.end);
        let free = self.collect_untaken(area.start, area.end);
        let mut free = free.into_iter();
        free.find(|(start, end)| (*start..*end).contains(&address))
    }

    /// The parts of a range that can be managed, whatever was refused there before.
    pub fn collect_manageable(&mut self, start: usize, end: usize) -> Vec<(usize, usize)> {
        let found = self.scanner.collect_manageable(start, end);
        for &(from, to) in &found {
            self.scanner.forget_refused(from, to);
        }
        found
    }

    /// Takes in that a range is managed.
    pub fn insert(&mut self, start: usize, end: usize) {
        self.managed.insert(start, end);
    }

    /// Takes in that nothing of a range is managed any more. What shows files is for the caller.
    pub fn remove(&mut self, start: usize, end: usize) {
        self.managed.remove(start, end);
        self.outside.remove(start, end);
        self.wiped.remove(start, end);
    }

    /// Forgets a range that is not mapped any more, or not as it was: nothing of it is managed from
    /// now on. Something else may stand there by now.
    pub fn forget(&mut self, start: usize, end: usize) {
        self.remove(start, end);
        self.adoption.remove(start, end);
        self.scanner.forget(start, end);
        self.adoption.want_scan();
    }

    /// Takes in that the program has emptied a range.
    pub fn empty(&mut self, start: usize, end: usize) {
        self.adoption.remove(start, end);
        self.outside.remove(start, end);
    }

    /// Looks again later for pages that stand in a range by then.
    pub fn adopt_later(&mut self, start: usize, end: usize, now: Time) {
        for (from, to) in self.collect_within(start, end) {
            self.adoption.add_later(from, to, now);
        }
    }

    /// Takes all that is known of a range out, which has moved to `to`. Pages outside of the
    /// account are found there, as pages without one.
    pub fn take_out(&mut self, from: usize, to: usize, bytes: usize) -> Carried {
        let end = from + bytes;
        let managed = self.collect_within(from, end).into_iter();
        let managed = managed
            .map(|(start, end)| (start - from, end - from))
            .collect();
        let wiped = self.wiped_parts(from, end);
        let files = self.files.take(from, end).into_iter();
        let files = files.map(|part| Part {
            start: part.start - from + to,
            end: part.end - from + to,
            ..part
        });
        let files = files.collect();
        self.forget(from, end);
        Carried {
            managed,
            wiped,
            files,
        }
    }

    /// Puts down at `to` what was taken out. Answers what of it shows files. Pages may have been
    /// looked for at the old place after they had left it: they are looked for again.
    pub fn put_down(&mut self, to: usize, carried: Carried) -> Vec<Part> {
        for (start, end) in carried.managed {
            self.managed.insert(to + start, to + end);
            self.adoption.add(to + start, to + end);
        }
        for (start, end) in carried.wiped {
            self.wiped.insert(to + start, to + end);
        }
        for part in &carried.files {
            self.files.put(*part);
        }
        carried.files
    }
}

// Memory that reads as zeros in forked children.
impl AddressSpace {
    /// Takes in that what is managed of a range is wiped in children.
    pub fn wipe(&mut self, start: usize, end: usize) {
        for (from, to) in self.collect_within(start, end) {
            self.wiped.insert(from, to);
        }
    }

    /// Leaves those parts of a range alone from now on that are not managed.
    pub fn exclude_unmanaged(&mut self, start: usize, end: usize) {
        for (from, to) in self.managed.collect_gaps(start, end) {
            self.scanner.exclude(from, to);
        }
    }

    /// Forgets what was to be wiped in a range.
    pub fn unwipe(&mut self, start: usize, end: usize) {
        self.wiped.remove(start, end);
    }

    /// The parts of a range that are wiped in children, relative to its start.
    pub fn wiped_parts(&self, start: usize, end: usize) -> Vec<(usize, usize)> {
        let parts = self.wiped.collect_overlaps(start, end).into_iter();
        parts
            .map(|(from, to)| (from.max(start) - start, to.min(end) - start))
            .collect()
    }

    /// Returns true if an address is in memory that is wiped in children.
    pub fn is_wiped(&self, address: usize) -> bool {
        self.wiped.contains(address)
    }

    /// All that is wiped in children.
    pub fn collect_wiped(&self) -> Vec<(usize, usize)> {
        self.wiped.iter().collect()
    }
}

// Memory that the program has locked.
impl AddressSpace {
    /// Takes in that a range was let go of, as it is locked. What becomes of the parts of it that
    /// are `wiped` in children is reported no more: they are left alone for good.
    pub fn note_let_go(&mut self, start: usize, end: usize, wiped: Vec<(usize, usize)>) {
        self.scanner.note_locked(start, end);
        for (from, to) in wiped {
            self.scanner.exclude(start + from, start + to);
        }
    }

    /// Forgets what is not locked any more, and has it looked for.
    pub fn forget_unlocked(&mut self) {
        if self.scanner.forget_unlocked() {
            self.adoption.hasten_scan();
        }
    }

    /// The number of bytes that are locked.
    pub fn locked_bytes(&self) -> usize {
        self.scanner.locked().bytes()
    }

    /// Returns true if more is locked than `budget`, which was not said yet.
    pub fn has_news_of_locks(&self, budget: usize) -> bool {
        !self.locks.is_told && self.locked_bytes() > budget
    }

    /// Remembers that it was said.
    pub fn note_told_of_locks(&mut self) {
        self.locks.is_told = true;
    }

    /// Returns true if locked memory is to be counted now, and plans the next time.
    pub fn begin_count_of_locked(&mut self, now: Time) -> bool {
        let is_due = now >= self.locks.next_count;
        if is_due {
            self.locks.next_count = now.after_ns(COUNT_NS);
        }
        is_due
    }
}

// Its own parts, for what concerns one of them alone.
impl AddressSpace {
    /// The walker over mappings.
    pub fn scanner(&self) -> &Scanner {
        &self.scanner
    }

    /// The walker over mappings, to use it.
    pub fn scanner_mut(&mut self) -> &mut Scanner {
        &mut self.scanner
    }

    /// The memory that shows files.
    pub fn files(&self) -> &Mapped {
        &self.files
    }

    /// The memory that maps files, to change it.
    pub fn files_mut(&mut self) -> &mut Mapped {
        &mut self.files
    }

    /// The memory that is still to be looked at.
    pub fn adoption(&self) -> &Adoption {
        &self.adoption
    }

    /// The memory that is still to be looked at, to change it.
    pub fn adoption_mut(&mut self) -> &mut Adoption {
        &mut self.adoption
    }

    /// The pages outside of the account.
    pub fn outside(&self) -> &Outside {
        &self.outside
    }

    /// The pages outside of the account, to change it.
    pub fn outside_mut(&mut self) -> &mut Outside {
        &mut self.outside
    }

    /// Reads the mappings, and finds the ranges that can be managed and are not yet.
    pub fn find(&mut self, now: Time) -> crate::scanner::Found {
        self.scanner.find(&self.managed, now)
    }

    /// Has all managed memory looked at for pages in no account that may be written to.
    pub fn adopt_writable(&mut self) {
        if self.scanner.read().is_ok() {
            for (start, end) in self.scanner.collect_writable(&self.managed) {
                self.adoption.add(start, end);
            }
        }
    }

    /// Has all managed memory looked at for pages in no account.
    pub fn adopt_all(&mut self) {
        for (start, end) in self.managed.iter() {
            self.adoption.add(start, end);
        }
    }
}
