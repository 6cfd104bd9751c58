//! Mapped files: mappings that are filled from the program's files and counted in the budget:
//! copies that are written to, and with `run --files` others.
//!
//! The program's call makes the mapping that it asks for, with all that the kernel checks. Then the
//! engine puts private memory in its place, whose pages it brings from the file: by a descriptor of
//! its own, past the page cache where the file system can. Such memory is what a
//! [private copy](tidemark_core::vm::Vm::map_copy) is: pages that were modified go to the store,
//! the others are dropped. What can't be kept right is left as the program has made it, and
//! counted.
//!
//! # Invariants
//! 1. A part of [`Mapped`] is managed, and no part of it reads as zeros but what is zeros in the
//!    file: where a page has gone without a word it is read again.
//! 2. Beyond the end of its file a part has no region in the core: a touch of that is a fault
//!    without one, and ends with `SIGBUS` unless the file has grown.

use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::OFlags;
use tidemark_core::event::Fault;
use tidemark_core::id::{FrameId, PAGE_BYTES, PagerId, VirtPage};
use tidemark_core::memory::address_space::Advice;
use tidemark_core::memory::frame::State;
use tidemark_core::seams::machine::{Machine, Rights};
use tidemark_core::seams::pager::Direction;

use super::Engine;
use crate::mapped::{Mapped, MappedFile, Part};
use crate::parts::intake::{Arrival, RUN_MAX};
use crate::parts::trouble::{Trouble, pid, say};
use crate::parts::units::{address_of, page_of, pages_in};
use crate::requests::{FileMapping, SHARED, TAKEN};
use crate::shared::Counter;
use crate::store::Cause;
use crate::store::files::{self, PAGES_MAX, Source};
use crate::store::pagers::Contents;
use crate::sys::file_maps::{self, Facts, Native};
use crate::sys::uffd::Uffd;
use crate::sys::{Errno, PAGE, program, reserve};

const READ: u32 = libc::PROT_READ as u32;
const WRITE: u32 = libc::PROT_WRITE as u32;
const EXECUTE: u32 = libc::PROT_EXEC as u32;
/// Free frames are emptied when files have gone of as many pages as this part of them, as a
/// divisor: to look at each frame for each small file would take too long.
const GONE_PART: u64 = 16;

/// The reason for which a mapping is left as the program has made it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Passed {
    Executable,
    SharedWritable,
    MappedTwice,
    MappedElsewhere,
    Forked,
    UsedOtherwise,
    Unusual,
    Closed,
    NoFile,
    InMemory,
    OpenForWriting,
    WrittenByOthers,
    Large,
    Locked,
    Unreadable,
    Refused,
}

impl Passed {
    fn reason(self) -> &'static str {
        match self {
            Passed::Executable => "it is mapped to be executed",
            Passed::SharedWritable => {
                "it is mapped shared and writable (`--files-write` manages such)"
            }
            Passed::MappedTwice => "other mappings of it must see what is written there",
            Passed::MappedElsewhere => "another managed process has mapped it to write",
            Passed::Forked => "a forked process shares it",
            Passed::UsedOtherwise => "the program uses it by a descriptor, too",
            Passed::Unusual => "the program asks for what only the kernel can do",
            Passed::Closed => "it is mapped without any rights",
            Passed::NoFile => "it is no regular file, or empty",
            Passed::InMemory => "its file system keeps it in memory",
            Passed::OpenForWriting => {
                "the program has opened it for writing, and would not see here what it writes; \
                 open it for reading only"
            }
            Passed::WrittenByOthers => "another process has it open for writing",
            Passed::Large => "it is mapped too far behind its start",
            Passed::Locked => "it is locked in memory",
            Passed::Unreadable => "it can't be opened or read again",
            Passed::Refused => "the kernel refuses what managing it takes",
        }
    }
}

impl Engine {
    /// Manages a mapping of a file that has just been made, if it is one of those to manage.
    pub(super) fn take_file_over(&mut self, made: FileMapping) -> bool {
        let Ok(file) = crate::sys::files::copy_of_programs(made.file) else {
            return false;
        };
        let Ok(facts) = file_maps::facts(&file) else {
            return false;
        };
        let cleared = self.make_way_for(made, &facts);
        let path = facts.path.as_os_str().as_bytes();
        let is_wanted = self.addresses.files().wants(path);
        let is_copy =
            self.setup.are_copies_managed && Mapped::wants_copy(&made, self.vm.config().frames_max);
        if !is_wanted && !is_copy {
            return false;
        }
        match self.replace_mapping(made, &file, &facts, cleared, is_wanted) {
            Ok(()) => {
                self.telemetry.add(Counter::FileMappings, 1);
                true
            }
            Err(_) if !is_wanted => false,
            Err(passed) => {
                self.telemetry.add(Counter::FileMappingsPassed, 1);
                self.telemetry
                    .add(Counter::FileBytesPassed, made.bytes as u64);
                self.note_passed(made, &facts);
                self.note_files_written();
                self.tell_of_passed(passed, &facts.path);
                false
            }
        }
    }

    /// Says once for each reason why a file that the user has named is not managed.
    pub(super) fn tell_of_passed(&mut self, passed: Passed, path: &Path) {
        let bit = 1 << passed as u32;
        if !self.addresses.files().is_named || self.addresses.files().told & bit != 0 {
            return;
        }
        self.addresses.files_mut().told |= bit;
        say(&format!(
            "{} ({}): `{}` is not managed: {}",
            self.setup.name,
            pid(),
            path.display(),
            passed.reason()
        ));
    }

    fn replace_mapping(
        &mut self,
        made: FileMapping,
        file: &OwnedFd,
        facts: &Facts,
        cleared: Result<(), Passed>,
        is_wanted: bool,
    ) -> Result<(), Passed> {
        let is_writable = made.kind & WRITE != 0;
        let is_shared = made.kind & SHARED != 0;
        let is_written = is_shared && is_writable && self.addresses.files().are_written;
        judge(made, facts, is_written)?;
        cleared?;
        if reserve::is_locked(made.start, made.bytes) {
            return Err(Passed::Locked);
        }
        let source = open_again(file, facts, is_written, is_wanted)?;
        let bytes = source.bytes;
        if is_written {
            self.claim_file(facts.identity)?;
        }
        // The calls that made room for it may have left their messages, or be about to.
        if !self.await_changes() {
            return Err(Passed::Refused);
        }
        let (start, end) = (made.start, made.start + made.bytes);
        let (at, pages) = (page_of(start), pages_in(start, end));
        self.put_memory_there(made, file)?;
        self.addresses.scanner_mut().forget(start, end);
        self.unmap_gone(at, pages);
        let pager = self.store.open_file(Source {
            is_constant: is_shared && !is_written,
            ..source
        });
        let part = Part {
            start,
            end,
            pager,
            first: made.first.into(),
            is_shared,
            is_written,
            is_closed: !is_writable,
        };
        if part.is_closed {
            // There are no pages yet that it could fail to protect.
            let _ = self.machine.close(start, end);
        }
        let known = MappedFile {
            path: facts.path.clone(),
            identity: facts.identity,
            bytes,
            write_failures: (0, None),
            uses: 0,
        };
        self.map_pages(part, known.pages());
        self.addresses.files_mut().insert(part, known);
        self.addresses.insert(start, end);
        self.note_mapped(start, end);
        if is_written {
            self.note_files_written();
        }
        Ok(())
    }

    /// Puts private memory in the place of a mapping that has just been made, and registers it.
    fn put_memory_there(&mut self, made: FileMapping, file: &OwnedFd) -> Result<(), Passed> {
        let native = Native {
            start: made.start,
            bytes: made.bytes,
            offset: u64::from(made.first) * PAGE_BYTES,
            is_writable: made.kind & WRITE != 0,
            is_shared: made.kind & SHARED != 0,
        };
        file_maps::replace(native).map_err(|_| Passed::Refused)?;
        let (at, pages) = (page_of(made.start), (made.bytes / PAGE) as u64);
        if self.machine.register_closable(at, pages) != Ok(pages) {
            // It can fail only after the rest has, or where the mapping is gone.
            let _ = self.machine.unregister(at, pages);
            let _ = file_maps::restore(native, file);
            return Err(Passed::Refused);
        }
        Ok(())
    }

    /// Maps a part of a file of `file_pages` pages in the core.
    fn map_pages(&mut self, part: Part, file_pages: u64) {
        let pages = pages_in(part.start, part.address_of(file_pages));
        if pages == 0 {
            return;
        }
        let (at, pager, first) = (page_of(part.start), part.pager, part.first);
        // What may be written to is the mapping's business.
        let (space, rights) = (self.space, Rights::Write);
        let mapped = match part.is_written {
            true => {
                let mapped = self.vm.map_external(space, at, pages, pager, first, rights);
                mapped.map(|_| ())
            }
            false => self.vm.map_copy(space, at, pages, pager, first, rights),
        };
        mapped.expect("the range was unmapped");
    }

    /// Forgets files in a range that is not theirs any more.
    pub(super) fn forget_files(&mut self, start: usize, end: usize) {
        if self.addresses.files().is_empty() {
            return;
        }
        self.machine.forget_closed(start, end);
        let parts = self.addresses.files_mut().take(start, end);
        for part in &parts {
            if self.addresses.files_mut().remove_unused(part.pager) {
                self.store.close_file(part.pager);
            }
        }
        if parts.iter().any(|part| part.is_written) {
            self.note_files_written();
        }
        let pages = parts.iter().map(|part| pages_in(part.start, part.end));
        self.addresses.files_mut().gone_pages += pages.sum::<u64>();
        let opened = u64::from(self.machine.pool().opened());
        if self.addresses.files_mut().gone_pages * GONE_PART >= opened.max(1) {
            self.addresses.files_mut().gone_pages = 0;
            self.give_free_pages_back();
        }
    }

    /// Gives the host the pages back that lie in free frames: what was a file's and out of the
    /// program when that let it go. They would pass for memory that can't be managed.
    fn give_free_pages_back(&mut self) {
        let opened = self.machine.pool().opened();
        for frame in (0..opened).map(FrameId) {
            if self.vm.frames().state(frame) == State::Free {
                self.machine.retire(frame);
            }
        }
        self.machine.settle();
    }

    /// The part of a file at an address.
    pub(super) fn file_part(&self, at: VirtPage) -> Option<Part> {
        self.addresses.files().find(address_of(at))
    }

    /// Serves a fault on a page of a file that should be there. If it is gone without a word, it is
    /// read again.
    pub(super) fn serve_mapped_file(&mut self, arrival: Arrival) {
        let at = page_of(arrival.address);
        match self.machine.pages().is_present(address_of(at)) {
            Ok(true) => {
                self.machine.wake(at);
                self.telemetry.add(Counter::SpuriousFaults, 1);
                self.end_wait(arrival, None);
            }
            _ if self.machine.is_changing() => self.intake.faults_mut().put_off(arrival),
            _ => {
                self.vm.discard(&mut self.machine, self.space, at, 1);
                self.serve(arrival);
            }
        }
    }

    /// Serves a fault of a part of a file where the core knows of no page: beyond its end, unless
    /// it has grown. False if there is none.
    pub(super) fn serve_beyond_file(&mut self, arrival: Arrival) -> bool {
        let at = page_of(arrival.address);
        let Some(part) = self.file_part(at) else {
            return false;
        };
        let known = self.addresses.files().file(part.pager).bytes;
        let size = self.store.size_of_file(part.pager).unwrap_or(known);
        if size > known && part.page_at(address_of(at)) < size.div_ceil(PAGE_BYTES) {
            self.grow_file(part.pager, size);
            self.intake.faults_mut().put_off(arrival);
            return true;
        }
        self.end_who_touches(at);
        self.end_wait(arrival, None);
        true
    }

    /// Makes each touch of a page a `SIGBUS`, and an error in a system call.
    fn end_who_touches(&mut self, at: VirtPage) {
        // Where this fails the thread touches again.
        let _ = self.machine.program().poison(address_of(at), PAGE);
        self.machine.wake(at);
    }

    /// Takes in that a file is longer than it was known to be.
    fn grow_file(&mut self, pager: PagerId, size: u64) {
        let before = self.addresses.files().file(pager).clone();
        self.addresses.files_mut().file_mut(pager).bytes = size;
        self.store.set_size_of_file(pager, size);
        let file_pages = size.div_ceil(PAGE_BYTES).min(PAGES_MAX);
        for part in self.addresses.files().parts_of(pager) {
            let (last, start) = (
                part.address_of(before.bytes / PAGE_BYTES),
                part.address_of(before.pages()),
            );
            // More of its last page is the file's now.
            if last < start && !self.is_modified(page_of(last)) {
                let at = page_of(last);
                self.take_away(at, 1);
                self.vm.discard(&mut self.machine, self.space, at, 1);
            }
            let rest = Part {
                start,
                first: part.page_at(start),
                ..part
            };
            if start < part.end {
                let (at, pages) = (page_of(start), pages_in(start, part.end));
                self.vm.unmap(&mut self.machine, self.space, at, pages);
                self.map_pages(rest, file_pages);
            }
        }
    }

    /// Returns true if what is at `at` may not be what the file has.
    fn is_modified(&self, at: VirtPage) -> bool {
        let may_be = self
            .file_part(at)
            .is_some_and(|part| !part.is_shared || part.is_written);
        let is_somewhere = self.vm.contents_at(self.space, at).is_some();
        may_be && is_somewhere
    }

    /// A page could not be had. If it is a file's, sees to who waits for it; else false.
    pub(super) fn lose_file_page(&mut self, fault: Fault) -> bool {
        let Some(part) = self.file_part(fault.at) else {
            return false;
        };
        if self.vm.slot_at(self.space, fault.at).is_some() {
            return false;
        }
        let failure = self.store.take_failure_of(part.pager, Direction::Fetch);
        let known = self.addresses.files().file(part.pager).bytes;
        let size = self.store.size_of_file(part.pager).unwrap_or(known);
        if size < known {
            self.cut_file(part.pager, size);
        } else if let Some(failure) = failure
            && failure.cause != Cause::Short
        {
            let file = self.addresses.files().file(part.pager).path.display();
            say(&format!(
                "{} ({}): `{file}`: {failure}; the program meets SIGBUS",
                self.setup.name,
                pid()
            ));
            self.end_who_touches(fault.at);
        }
        // Who waits touches again, and meets what is there now.
        self.retry(fault);
        true
    }

    /// Takes in that a file is shorter than it was known to be: pages behind its end are lost, as
    /// natively, those that were modified included.
    pub(super) fn cut_file(&mut self, pager: PagerId, size: u64) {
        let file = self.addresses.files_mut().file_mut(pager);
        let before = std::mem::replace(&mut file.bytes, size);
        let path = file.path.display().to_string();
        self.store.set_size_of_file(pager, size);
        for part in self.addresses.files().parts_of(pager) {
            let start = part.address_of(size.div_ceil(PAGE_BYTES));
            if start < part.end {
                let (at, pages) = (page_of(start), pages_in(start, part.end));
                self.take_away(at, pages);
                if part.is_written {
                    let (vm, machine) = (&mut self.vm, &mut self.machine);
                    vm.forget_external(machine, self.space, at, pages);
                }
                self.vm.unmap(&mut self.machine, self.space, at, pages);
            }
        }
        say(&format!(
            "{} ({}): `{path}` was cut to {size} bytes while {before} were mapped; the program \
             meets SIGBUS behind them",
            self.setup.name,
            pid()
        ));
    }

    /// Moves the pages of a range out of the program, as far as they can be moved.
    fn take_away(&mut self, at: VirtPage, pages: u64) {
        for page in (0..pages).map(|page| at.plus(page)) {
            if let Some(frame) = self.vm.frame_at(self.space, page) {
                self.machine.leave(self.space, page, frame);
            }
        }
        self.machine.settle();
    }

    /// Follows advice about a range. Answers as [`Ask::AdviseFile`](crate::requests::Ask) says.
    pub(super) fn advise_file(&mut self, start: usize, bytes: usize, advice: i32) -> u64 {
        let end = start.saturating_add(bytes);
        if !self.await_changes() {
            return 0;
        }
        let parts = self.addresses.files().collect_overlaps(start, end);
        if let Some(answer) = self.advise_written((start, end), &parts, advice) {
            return answer;
        }
        let kept = match advice {
            libc::MADV_NORMAL => Some(Advice::Normal),
            libc::MADV_SEQUENTIAL => Some(Advice::Sequential),
            libc::MADV_RANDOM => Some(Advice::Random),
            libc::MADV_WILLNEED => None,
            // About means that files are not kept by here.
            libc::MADV_COLD
            | libc::MADV_PAGEOUT
            | libc::MADV_HUGEPAGE
            | libc::MADV_NOHUGEPAGE
            | libc::MADV_MERGEABLE
            | libc::MADV_UNMERGEABLE => return TAKEN,
            // Of a shared mapping that can be written to alone.
            libc::MADV_REMOVE => return refusal(Errno::ACCESS),
            // Not for files.
            _ => return refusal(Errno::INVAL),
        };
        for part in parts {
            let (at, pages) = (page_of(part.start), pages_in(part.start, part.end));
            match kept {
                Some(advice) => self.vm.advise(self.space, at, pages, advice),
                None => self
                    .addresses
                    .files_mut()
                    .ahead
                    .push_back(at.0..at.0 + pages),
            }
        }
        self.read_files_ahead();
        TAKEN
    }

    /// The answer to advice by which pages would be lost, or that the kernel alone can follow.
    fn advise_written(
        &mut self,
        (start, end): (usize, usize),
        parts: &[Part],
        advice: i32,
    ) -> Option<u64> {
        const LOCKED: i32 = 24;
        let empties = advice == libc::MADV_DONTNEED || advice == LOCKED;
        let has_written = parts.iter().any(|part| part.is_written);
        let are_all = parts.iter().all(|part| part.is_written);
        let bytes: usize = parts.iter().map(|part| part.end - part.start).sum();
        if parts.is_empty() || empties && !has_written {
            return Some(0);
        }
        if empties && are_all && bytes >= end - start {
            // They are the file's, and stay.
            return Some(TAKEN);
        }
        if has_written && (empties || advice == libc::MADV_REMOVE) {
            self.give_files_up(start, end, Passed::Unusual);
            return Some(0);
        }
        None
    }

    /// Has more read of what was asked for ahead, as far as there are frames for it.
    pub(super) fn read_files_ahead(&mut self) {
        while let Some(mut due) = self.addresses.files_mut().ahead.pop_front() {
            let before = due.start;
            let (vm, machine) = (&mut self.vm, &mut self.machine);
            vm.handle_prefetches(self.now, machine, self.space, &mut due);
            let is_moving = due.start != before || vm.transfers_pending() > 0;
            if !due.is_empty() && is_moving {
                return self.addresses.files_mut().ahead.push_front(due);
            }
        }
    }

    /// Changes the program's rights to a range. Answers as
    /// [`Ask::ProtectFile`](crate::requests::Ask) says.
    pub(super) fn protect_file(&mut self, start: usize, bytes: usize, rights: u32) -> u64 {
        let Some(bytes) = bytes.checked_next_multiple_of(PAGE) else {
            return 0;
        };
        let end = start.saturating_add(bytes);
        if rights == 0 || rights & !(READ | WRITE) != 0 {
            self.give_files_up(start, end, Passed::Unusual);
        }
        if !self.await_changes()
            || self
                .addresses
                .files()
                .collect_overlaps(start, end)
                .is_empty()
        {
            return 0;
        }
        let mut at = start;
        while at < end {
            let next = self
                .addresses
                .files()
                .collect_overlaps(at, end)
                .first()
                .copied();
            let changed = match next {
                Some(part) if part.start == at => {
                    at = part.end;
                    self.protect_part(part, rights)
                }
                other => {
                    let to = other.map_or(end, |part| part.start);
                    let from = std::mem::replace(&mut at, to);
                    file_maps::protect(from, to - from, rights)
                }
            };
            if let Err(error) = changed {
                return refusal(error);
            }
        }
        TAKEN
    }

    /// Changes the program's rights to a part of a file. Memory that the program may only read is
    /// writable to the kernel, so that pages can be moved there, and closed by other means.
    fn protect_part(&mut self, part: Part, rights: u32) -> Result<(), Errno> {
        if part.is_shared && !part.is_written && rights & WRITE != 0 {
            // It was opened for reading only, or it would not be managed.
            return Err(Errno::ACCESS);
        }
        let is_closed = rights == READ;
        let to_kernel = match is_closed {
            true => READ | WRITE,
            false => rights,
        };
        file_maps::protect(part.start, part.end - part.start, to_kernel)?;
        let changed = match is_closed {
            true => self.machine.close(part.start, part.end),
            false => self.machine.open(part.start, part.end),
        };
        for taken in self.addresses.files_mut().take(part.start, part.end) {
            self.addresses.files_mut().put(Part { is_closed, ..taken });
        }
        // The address space has been at rest just now. If it is not any more, pages that are there
        // stay as they are.
        changed.or(Ok(()))
    }

    /// A write to what the program may only read: has the kernel refuse it, by `SIGSEGV` or as the
    /// error of a system call. The page is one that can't be moved from then on.
    pub(super) fn refuse_write(&mut self, arrival: Arrival) {
        let start = address_of(page_of(arrival.address));
        // Where these fail the thread meets the same fault again.
        let _ = file_maps::protect(start, PAGE, READ);
        let _ = self.machine.open(start, start + PAGE);
        self.machine.wake(page_of(start));
        self.end_wait(arrival, None);
    }

    /// Maps the part of the file that follows, where a mapping has grown. Answers as
    /// [`Ask::GrowFile`](crate::requests::Ask) says.
    pub(super) fn grow_mapping(&mut self, start: usize, bytes_before: usize, bytes: usize) -> u64 {
        let before = bytes_before.next_multiple_of(PAGE);
        let bytes = bytes.next_multiple_of(PAGE);
        if !self.await_changes() {
            return 0;
        }
        let part = start
            .checked_add(before)
            .and_then(|end| self.addresses.files().find(end - PAGE));
        let Some(part) = part.filter(|part| part.end == start + before && before < bytes) else {
            return 0;
        };
        let more = Part {
            start: part.end,
            end: start + bytes,
            first: part.first + pages_in(part.start, part.end),
            ..part
        };
        let (at, pages) = (page_of(more.start), pages_in(more.start, more.end));
        if self.machine.register_closable(at, pages) != Ok(pages) {
            return 0;
        }
        if more.is_closed {
            // As for a new one.
            let _ = self.machine.close(more.start, more.end);
        }
        self.vm.unmap(&mut self.machine, self.space, at, pages);
        self.addresses.adoption_mut().remove(more.start, more.end);
        self.addresses.insert(more.start, more.end);
        self.note_mapped(more.start, more.end);
        self.addresses.files_mut().put(more);
        self.map_pages(more, self.addresses.files().file(part.pager).pages());
        let known = self.addresses.files().file(part.pager).bytes;
        let size = self.store.size_of_file(part.pager).unwrap_or(known);
        if size > known {
            self.grow_file(part.pager, size);
        }
        let identity = self.addresses.files().file(part.pager).identity;
        let shown = self.addresses.files().collect_of(identity, &more.pages());
        if part.is_written && shown.len() > 1 {
            self.give_files_up(start, more.end, Passed::MappedTwice);
            for other in shown.iter().filter(|other| other.is_written) {
                self.give_files_up(other.start, other.end, Passed::MappedTwice);
            }
        }
        TAKEN
    }

    /// Reads pages of a file at once, into the engine's own: from the one at `address` on, up to
    /// `end`. Answers how many; none where the file has none.
    pub(super) fn read_file_now(&mut self, address: usize, end: usize) -> Result<usize, Cause> {
        let Some(part) = self.addresses.files().find(address) else {
            return Ok(0);
        };
        let first = part.page_at(address);
        let has = part.address_of(self.addresses.files().file(part.pager).pages());
        let is_out = |at: &usize| self.vm.contents_at(self.space, page_of(*at)).is_none();
        let pages = (address..has.min(end)).step_by(PAGE).take(RUN_MAX);
        let count = pages.take_while(is_out).count();
        if count > 0 {
            let into = self.intake.page();
            self.store.read_file_now((part.pager, first), count, into)?;
        }
        Ok(count)
    }

    /// Reads the page of a file at an address at once, for an engine at rest. `None`: the file has
    /// none, or can't be read.
    pub(super) fn read_file_frozen(&mut self, address: usize) -> Option<usize> {
        let part = self.addresses.files().find(address)?;
        let page = part.page_at(address);
        if page >= self.addresses.files().file(part.pager).pages() {
            return None;
        }
        let into = self.intake.page();
        let read = self.store.read_file_now((part.pager, page), 1, into);
        read.ok().map(|()| into.start())
    }

    /// Has a child that was forked behind the engine's back meet `SIGBUS` where it touches pages of
    /// files that it lacks: no engine would bring them, and they would read as zeros.
    pub(super) fn poison_files_of(&self, child: &Uffd) {
        for part in self.addresses.files().parts() {
            let mut at = part.start;
            while at < part.end {
                let is_out = |at: &usize| self.vm.contents_at(self.space, page_of(*at)).is_none();
                let pages = (at..part.end).step_by(PAGE);
                let count = pages.take_while(is_out).count();
                if count > 0 {
                    // Where this fails the child has a page there, or has ended.
                    let _ = child.poison(at, count * PAGE);
                }
                at += (count + 1) * PAGE;
            }
        }
    }

    /// Makes each touch behind the ends of files in a range a `SIGBUS`, now that the engine will
    /// not hear of it.
    pub(super) fn close_ends_of_files(&mut self, start: usize, end: usize) {
        for part in self.addresses.files().collect_overlaps(start, end) {
            let from = part.address_of(self.addresses.files().file(part.pager).pages());
            if from < part.end {
                let _ = self.machine.program().poison(from, part.end - from);
            }
        }
    }

    /// Opens in a forked child the files that its parent's engine has open.
    pub(super) fn reopen_files(&mut self, parent_engine: u32) -> Result<(), Trouble> {
        let mapped = self.addresses.files();
        let reopened = self.store.reopen_files(|pager, number| {
            let copied = program::copy_of_others_file(parent_engine, number);
            // It may have gone already. By its path it is the same file, if that is still there.
            copied.or_else(|_| {
                let file = mapped.file(pager);
                file_maps::open_same(&file.path, file.identity, OFlags::RDONLY)
            })
        });
        reopened.map_err(|(_, error)| Trouble::Call {
            what: "opening a mapped file in a forked process",
            error,
        })
    }
}

/// The answer to a request that fails, as the kernel would refuse it.
fn refusal(error: Errno) -> u64 {
    TAKEN + u64::from(error.raw_os_error().unsigned_abs())
}

/// Decides whether a mapping can be managed, by what the program has asked for and by what is known
/// of the file. It may be one that `is_written` back.
fn judge(made: FileMapping, facts: &Facts, is_written: bool) -> Result<(), Passed> {
    let has = |right| made.kind & right != 0;
    let pages = (made.bytes / PAGE) as u64;
    let is_changed = has(SHARED) && has(WRITE);
    let refusals = [
        (has(EXECUTE), Passed::Executable),
        (is_changed && !is_written, Passed::SharedWritable),
        (!has(READ) && !has(WRITE), Passed::Closed),
        (!facts.is_regular || facts.bytes == 0, Passed::NoFile),
        (facts.is_in_memory, Passed::InMemory),
        (
            facts.is_open_for_writing && !is_written,
            Passed::OpenForWriting,
        ),
        (u64::from(made.first) + pages >= PAGES_MAX, Passed::Large),
    ];
    match refusals.iter().find(|(is_refused, _)| *is_refused) {
        Some((_, passed)) => Err(*passed),
        None => Ok(()),
    }
}

/// Opens a file of the program anew, so that nothing the program does to its descriptor matters.
/// One that the user wants to be managed (`is_wanted`) is read past the page cache. Others are
/// probably cached.
fn open_again(
    file: &OwnedFd,
    facts: &Facts,
    is_written: bool,
    is_wanted: bool,
) -> Result<Source, Passed> {
    let link = format!("/proc/self/fd/{}", file.as_raw_fd());
    let read_only = |(own, bytes): (OwnedFd, u64)| Source {
        file: own.into(),
        cached: None,
        bytes,
        is_constant: false,
    };
    let source = match is_written {
        true => files::open_beside(link.as_ref()).map(|opened| Source {
            file: opened.file.into(),
            cached: Some(opened.cached),
            bytes: opened.bytes,
            is_constant: false,
        }),
        false if is_wanted => files::open(link.as_ref()).map(read_only),
        false => files::open_cached(link.as_ref()).map(read_only),
    };
    let source = source.map_err(|_| Passed::Unreadable)?;
    if source.bytes == 0 || source.bytes < facts.bytes {
        return Err(Passed::Unreadable);
    }
    match &source.file {
        // Whether others write to it can't be told beside the program, which does.
        Contents::File(own) if !is_written && file_maps::is_written_by_others(own) => {
            Err(Passed::WrittenByOthers)
        }
        _ => Ok(source),
    }
}
