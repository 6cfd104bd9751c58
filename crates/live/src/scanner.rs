//! The part of the program's memory that can be managed: a walk over its mappings.
//!
//! Interposed calls announce new mappings at once; the scanner finds those that no interposition
//! sees (the heap of `brk`, the C library's own mappings) and tells what is passed through.
//!
//! # What is managed
//! Private anonymous memory, the heap included, unless it is executable, locked, the engine's own,
//! a stack, or the small end of a loaded file's data. Memory without any rights is taken over once
//! it has stood for a while: allocators open such reservations bit by bit, whereas the C library
//! opens a new thread's stack at once, as soon as the thread that makes it has a processor.

use std::ops::Range;

use tidemark_core::time::Time;

use crate::ranges::Ranges;
use crate::sys::maps::{Area, Kind, Maps};
use crate::sys::sizes::{OwnSizes, Sizes};
use crate::sys::{Errno, PAGE, memory, reserve, thread};

/// Zeroed data at the end of a loaded file is passed through up to this size: it belongs to the C
/// library and its like, which the engine itself may need.
const FILE_TAIL_BYTES: usize = 4 << 20;
/// Smaller reservations without rights are guards.
const RESERVED_BYTES_LEAST: usize = 1 << 20;
/// The time for which larger ones must have stood to be taken over.
const RESERVED_NS_LEAST: u64 = 500_000_000;
/// A guard below a stack is at most this large.
const GUARD_BYTES_MAX: usize = 64 << 10;
/// Memory above a guard is a stack only from this size on.
const STACK_BYTES_LEAST: usize = 16 << 10;

/// The result of a scan.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// Ranges that can be managed and are not yet.
    pub fresh: Vec<(usize, usize)>,
    /// Ranges of anonymous private memory, managed or not.
    pub anonymous: Ranges,
}

/// The walker, and what it remembers between walks.
pub struct Scanner {
    maps: Maps,
    own_sizes: OwnSizes,
    areas: Vec<Area>,
    threads: Vec<u32>,
    /// Threads whose stacks are known, in order.
    threads_known: Vec<u32>,
    /// Stacks, and what the program asked to be left alone.
    excluded: Ranges,
    /// The ranges that could not be registered since the last scan. That may have been for what was
    /// there then, and is gone without a word.
    refused: Ranges,
    /// The ranges that the program has locked in memory.
    locked: Ranges,
    /// Reservations without rights seen by the last scan, and since when they stand.
    reserved: Vec<Reservation>,
    /// Threads whose stacks could not be found yet.
    stackless: Vec<u32>,
    /// The addresses of what is managed; all, but where system calls are held up for it.
    bounds: Range<usize>,
}

/// Memory without any rights.
#[derive(Clone, Copy, Debug)]
struct Reservation {
    start: usize,
    end: usize,
    since: Time,
}

impl Scanner {
    /// Opens the files of this process.
    pub fn new() -> Result<Scanner, Errno> {
        Ok(Scanner {
            maps: Maps::open()?,
            own_sizes: OwnSizes::open()?,
            areas: Vec::with_capacity(1024),
            threads: Vec::with_capacity(64),
            threads_known: Vec::with_capacity(64),
            excluded: Ranges::new(),
            refused: Ranges::new(),
            locked: Ranges::new(),
            reserved: Vec::new(),
            stackless: Vec::new(),
            bounds: 0..usize::MAX,
        })
    }

    /// Passes through what does not lie in these addresses.
    pub fn keep_within(&mut self, bounds: Range<usize>) {
        self.bounds = bounds;
    }

    /// Opens the files anew in a forked child. The one thread that is left is known to the caller.
    pub fn reopen(&mut self) -> Result<(), Errno> {
        // The old descriptors mean nothing here: they are not closed.
        std::mem::forget(std::mem::replace(&mut self.maps, Maps::open()?));
        std::mem::forget(std::mem::replace(&mut self.own_sizes, OwnSizes::open()?));
        self.threads_known.clear();
        self.stackless.clear();
        // A child inherits no locks.
        self.locked = Ranges::new();
        Ok(())
    }

    /// The sizes of this process: a change of them shows new mappings.
    pub fn sizes(&self) -> Option<Sizes> {
        self.own_sizes.read()
    }

    /// Reads the list of mappings. [`find`](Self::find) judges it.
    pub fn read(&mut self) -> Result<(), Errno> {
        self.areas.clear();
        self.refused = Ranges::new();
        let areas = &mut self.areas;
        self.maps.visit_areas(|area| areas.push(area))
    }

    /// Judges the mappings last read, given what is managed already.
    pub fn find(&mut self, managed: &Ranges, now: Time) -> Found {
        self.find_stacks();
        let mut found = Found::default();
        let mut reserved = Vec::new();
        let mut below: Option<Area> = None;
        for area in std::mem::take(&mut self.areas) {
            // Nothing of it is the program's, and no guard of its stacks either.
            if reserve::ranges().any(|(start, end)| start <= area.start && area.end <= end) {
                below = None;
                continue;
            }
            match self.judge(area, below) {
                Verdict::Manage => {
                    found.anonymous.insert(area.start, area.end);
                    self.collect_fresh(area, managed, &mut found.fresh);
                }
                Verdict::ManageLater => {
                    found.anonymous.insert(area.start, area.end);
                    let since = self.reserved_since(area).unwrap_or(now);
                    if now.since_ns(since) >= RESERVED_NS_LEAST {
                        self.collect_fresh(area, managed, &mut found.fresh);
                    }
                    let (start, end) = (area.start, area.end);
                    reserved.push(Reservation { start, end, since });
                }
                Verdict::PassThrough => {
                    if area.kind != Kind::File && !area.is_shared {
                        found.anonymous.insert(area.start, area.end);
                    }
                }
            }
            below = Some(area);
        }
        self.reserved = reserved;
        found
    }

    /// The mapping that holds `at`, unless it is one that is passed through.
    pub fn find_manageable(&mut self, at: usize) -> Option<Area> {
        let area = self.find_next(at)?;
        let is_plain = is_plain(area) && (area.start..area.end).contains(&at);
        is_plain.then_some(area)
    }

    /// The mappings in `start..end`, whole, that are not passed through for what they are: parts
    /// would be two mappings to the kernel, and some calls refuse to work on several. Of one that
    /// begins with what is passed through, the data of a file or a stack, it is what follows.
    pub fn collect_manageable(&mut self, start: usize, end: usize) -> Vec<(usize, usize)> {
        let (mut found, mut at) = (Vec::new(), start);
        while let Some(area) = self.find_next(at).filter(|area| area.start < end) {
            if is_plain(area) {
                let below = self.find_next(area.start - PAGE);
                let is_alone = below.is_none_or(|below| {
                    let is_beside = below.start < area.start && below.end == area.start;
                    !is_beside || below.kind != Kind::File && !is_without_rights(below)
                });
                found.push(match is_alone {
                    true => (area.start, area.end),
                    false => (area.start.max(start), area.end),
                });
            }
            at = area.end;
        }
        found
    }

    /// The parts of `managed` that the mappings last read allow to be written to.
    pub fn collect_writable(&self, managed: &Ranges) -> Vec<(usize, usize)> {
        let writable = self
            .areas
            .iter()
            .filter(|area| area.is_writable && is_plain(**area));
        let parts = writable.flat_map(|area| {
            let overlaps = managed.collect_overlaps(area.start, area.end);
            overlaps
                .into_iter()
                .map(|(from, to)| (from.max(area.start), to.min(area.end)))
        });
        parts.collect()
    }

    /// Passes a range through from now on.
    pub fn exclude(&mut self, start: usize, end: usize) {
        self.excluded.insert(start, end);
    }

    /// Passes a range through until it is unlocked.
    pub fn note_locked(&mut self, start: usize, end: usize) {
        self.locked.insert(start, end);
    }

    /// Passes the locked parts of a range through until they are unlocked.
    pub fn note_locked_parts(&mut self, start: usize, end: usize) {
        for (from, to) in self.collect_locked(start, end) {
            self.locked.insert(from, to);
        }
    }

    /// Forgets of what was locked what is not any more. Whether that is anything.
    pub fn forget_unlocked(&mut self) -> bool {
        let before = std::mem::take(&mut self.locked);
        for (start, end) in before.iter() {
            self.note_locked_parts(start, end);
        }
        self.locked.bytes() != before.bytes()
    }

    /// The parts of `start..end` that are locked.
    pub fn collect_locked(&mut self, start: usize, end: usize) -> Vec<(usize, usize)> {
        let mut found = Vec::new();
        if !reserve::is_locked(start, end - start) {
            return found;
        }
        let mut at = start;
        while let Some(area) = self.find_next(at).filter(|area| area.start < end) {
            let (from, to) = (area.start.max(at), area.end.min(end));
            if reserve::is_locked(from, to - from) {
                found.push((from, to));
            }
            at = area.end;
        }
        found
    }

    /// The locked ranges.
    pub fn locked(&self) -> &Ranges {
        &self.locked
    }

    /// Passes a range through until the next scan, because it can't be registered.
    pub fn refuse(&mut self, start: usize, end: usize) {
        self.refused.insert(start, end);
    }

    /// Forgets that parts of a range could not be registered: something new is there.
    pub fn forget_refused(&mut self, start: usize, end: usize) {
        self.refused.remove(start, end);
    }

    /// Forgets what was said of a range that is gone.
    pub fn forget(&mut self, start: usize, end: usize) {
        self.excluded.remove(start, end);
        self.refused.remove(start, end);
        self.locked.remove(start, end);
        self.reserved
            .retain(|known| known.end <= start || end <= known.start);
    }

    /// The parts of `start..end` that are neither kept for the engine nor passed through.
    pub fn collect_free(&self, start: usize, end: usize) -> Vec<(usize, usize)> {
        let mut taken = Ranges::new();
        for (own_start, own_end) in memory::kept_ranges() {
            if own_start < end && start < own_end {
                taken.insert(own_start, own_end);
            }
        }
        for (from, to) in self.excluded.collect_overlaps(start, end) {
            taken.insert(from, to);
        }
        for (from, to) in self.refused.collect_overlaps(start, end) {
            taken.insert(from, to);
        }
        for (from, to) in self.locked.collect_overlaps(start, end) {
            taken.insert(from, to);
        }
        let (start, end) = (start.max(self.bounds.start), end.min(self.bounds.end));
        match start < end {
            true => taken.collect_gaps(start, end),
            false => Vec::new(),
        }
    }

    /// The files of this process.
    pub fn maps(&self) -> &Maps {
        &self.maps
    }

    /// The threads that the last scan saw, in order.
    pub fn threads_seen(&self) -> &[u32] {
        &self.threads_known
    }

    /// The mapping that holds `at`, or the next one above it.
    fn find_next(&mut self, at: usize) -> Option<Area> {
        match self.maps.find_area(at) {
            Ok(area) => area,
            Err(_) => {
                self.read().ok()?;
                self.areas.iter().find(|area| area.end > at).copied()
            }
        }
    }

    /// Notes the stacks of threads that are new since the last scan.
    fn find_stacks(&mut self) {
        if thread::collect_threads(&mut self.threads).is_err() {
            return;
        }
        self.threads.sort_unstable();
        let stackless = std::mem::take(&mut self.stackless);
        for &number in &self.threads {
            let is_known = self.threads_known.binary_search(&number).is_ok();
            if is_known && !stackless.contains(&number) {
                continue;
            }
            let Some(block) = thread::robust_list_head(number) else {
                // So new that it has not said yet where its block lies.
                self.stackless.push(number);
                continue;
            };
            let area = self
                .areas
                .iter()
                .find(|area| (area.start..area.end).contains(&block));
            if let Some(area) = area {
                self.excluded.insert(area.start, area.end);
            }
        }
        std::mem::swap(&mut self.threads, &mut self.threads_known);
    }

    /// The time since which a reservation is there; `None` if it was not there at the last scan.
    fn reserved_since(&self, area: Area) -> Option<Time> {
        let covers = |known: &&Reservation| known.start <= area.start && area.end <= known.end;
        self.reserved.iter().find(covers).map(|known| known.since)
    }

    fn judge(&self, area: Area, below: Option<Area>) -> Verdict {
        if !is_plain(area) {
            return Verdict::PassThrough;
        }
        let touches = below.filter(|below| below.end == area.start);
        let size = area.end - area.start;
        let is_file_tail = touches.is_some_and(|below| below.kind == Kind::File)
            && area.kind == Kind::Anonymous
            && size <= FILE_TAIL_BYTES;
        let is_above_guard = touches.is_some_and(|below| {
            is_without_rights(below)
                && is_plain(below)
                && below.end - below.start <= GUARD_BYTES_MAX
        });
        if is_file_tail || (is_above_guard && size >= STACK_BYTES_LEAST) {
            return Verdict::PassThrough;
        }
        match is_without_rights(area) {
            true if size < RESERVED_BYTES_LEAST => Verdict::PassThrough,
            true => Verdict::ManageLater,
            false => Verdict::Manage,
        }
    }

    fn collect_fresh(&self, area: Area, managed: &Ranges, fresh: &mut Vec<(usize, usize)>) {
        for (start, end) in managed.collect_gaps(area.start, area.end) {
            fresh.extend(self.collect_free(start, end));
        }
    }
}

enum Verdict {
    Manage,
    ManageLater,
    PassThrough,
}

fn is_plain(area: Area) -> bool {
    let is_anonymous = matches!(area.kind, Kind::Anonymous | Kind::Heap | Kind::Named);
    is_anonymous && !area.is_shared && !area.is_executable
}

fn is_without_rights(area: Area) -> bool {
    !area.is_readable && !area.is_writable
}

#[cfg(test)]
mod tests {
    use super::*;

    fn area(start: usize, end: usize, rights: &str, kind: Kind) -> Area {
        Area {
            start,
            end,
            is_readable: rights.contains('r'),
            is_writable: rights.contains('w'),
            is_executable: rights.contains('x'),
            is_shared: rights.contains('s'),
            kind,
        }
    }

    fn scan(scanner: &mut Scanner, areas: &[Area], managed: &Ranges) -> Found {
        scan_at(scanner, areas, managed, Time(0))
    }

    fn scan_at(scanner: &mut Scanner, areas: &[Area], managed: &Ranges, now: Time) -> Found {
        scanner.areas = areas.to_vec();
        scanner.find(managed, now)
    }

    #[test]
    fn private_anonymous_memory_is_found_and_nothing_else() {
        let mut scanner = Scanner::new().unwrap();
        let managed = Ranges::new();
        let areas = [
            area(0x10000, 0x20000, "rw", Kind::Heap),
            area(0x30000, 0x40000, "rw", Kind::Anonymous),
            area(0x50000, 0x60000, "rwx", Kind::Anonymous),
            area(0x70000, 0x80000, "rws", Kind::File),
            area(0x90000, 0xa0000, "rw", Kind::Stack),
        ];
        let found = scan(&mut scanner, &areas, &managed);
        assert_eq!(found.fresh, [(0x10000, 0x20000), (0x30000, 0x40000)]);
    }

    #[test]
    fn a_stack_above_its_guard_and_the_tail_of_a_file_are_passed_through() {
        let mut scanner = Scanner::new().unwrap();
        let areas = [
            area(0x10000, 0x11000, "", Kind::Anonymous),
            area(0x11000, 0x91000, "rw", Kind::Anonymous),
            area(0xa0000, 0xb0000, "rw", Kind::File),
            area(0xb0000, 0xb4000, "rw", Kind::Anonymous),
        ];
        assert_eq!(scan(&mut scanner, &areas, &Ranges::new()).fresh, []);
    }

    #[test]
    fn a_reservation_is_taken_over_when_it_has_stood_for_a_while() {
        let mut scanner = Scanner::new().unwrap();
        let areas = [area(0x100000, 0x900000, "", Kind::Anonymous)];
        let managed = Ranges::new();
        let mut fresh_at = |now| scan_at(&mut scanner, &areas, &managed, Time(now)).fresh;
        assert_eq!(fresh_at(1_000), []);
        assert_eq!(
            fresh_at(RESERVED_NS_LEAST),
            [],
            "a stack may be in the making"
        );
        assert_eq!(fresh_at(1_000 + RESERVED_NS_LEAST), [(0x100000, 0x900000)]);
        scanner.forget(0x200000, 0x300000);
        let later = Time(2 * RESERVED_NS_LEAST);
        assert_eq!(scan_at(&mut scanner, &areas, &managed, later).fresh, []);
    }

    #[test]
    fn what_is_managed_or_refused_is_not_found_again() {
        let mut scanner = Scanner::new().unwrap();
        let mut managed = Ranges::new();
        managed.insert(0x10000, 0x20000);
        scanner.refuse(0x28000, 0x30000);
        let areas = [area(0x10000, 0x30000, "rw", Kind::Heap)];
        assert_eq!(
            scan(&mut scanner, &areas, &managed).fresh,
            [(0x20000, 0x28000)]
        );
        scanner.forget_refused(0x28000, 0x30000);
        let all = [(0x20000, 0x30000)];
        assert_eq!(scan(&mut scanner, &areas, &managed).fresh, all);
        scanner.refuse(0x28000, 0x30000);
        scanner.read().unwrap();
        assert_eq!(scan(&mut scanner, &areas, &managed).fresh, all);
    }
}
