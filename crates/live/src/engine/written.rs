//! Shared mappings of files that are written back (`run --files-write`).
//!
//! Such a mapping is an external object of the core: a modified page that leaves memory goes to its
//! place in the file. What has not left is written when the program says so, and before it can be
//! lost: when the range is about to be something else, at the end of the program, and when it is
//! found to have ended. Writing goes on beside all else, as [`flushes`](crate::flush) do.
//!
//! What can't be kept right is given up: all is written, and then the file is mapped by the
//! kernel in the place of the engine's memory, for good. The [hand](crate::hand) makes that call,
//! since the engine must read the message about it. Writes to the range wait meanwhile.
//!
//! # Invariants
//! 1. No page of a file is in two managed mappings of which one is written back.
//! 2. Before a range is given up, or its program is gone, all of it has been written.

use std::os::fd::RawFd;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use tidemark_core::driver::Driver;
use tidemark_core::id::{PAGE_BYTES, PagerId, Ticket, VirtPage};
use tidemark_core::seams::pager::Direction;

use super::Engine;
use super::files::Passed;
use crate::flush::Flush;
use crate::hand::{Begun, Job};
use crate::mapped::Part;
use crate::parts::trouble::{Trouble, pid, say};
use crate::parts::units::{address_of, now, page_of, pages_in};
use crate::parts::written::{Back, Claim, Identity, Piece};
use crate::requests::{FileMapping, Requests, SHARED, TAKEN, Taken, WriteBack};
use crate::shared::{Counter, Ending};
use crate::store::Cause;
use crate::sys::file_maps::{Facts, Native};
use crate::sys::{Errno, PAGE};

const WRITE: u32 = libc::PROT_WRITE as u32;
/// The number of times that a program may read a file by a descriptor, each of which has all of its
/// mappings written, before they are the kernel's.
const USES_MAX: u32 = 16;
/// All addresses.
const EVERYWHERE: (usize, usize) = (0, usize::MAX & !(PAGE - 1));
/// The wait for the hand or the store between two looks, in nanoseconds.
const PAUSE_NS: u64 = 1_000_000;
/// The longest wait for transfers to end that are under way.
const REST_NS_MAX: u64 = 5_000_000_000;
/// The time for which an engine that is to end waits for a disk that writes nothing.
const STUCK_NS_MAX: u64 = 60_000_000_000;
/// The most times that a part is written whose pages find their way into the program again.
const ROUNDS_MAX: u32 = 8;
/// The number of such waits after which the counters are shown.
const SHOWN_EVERY: u64 = 64;

impl Engine {
    /// Gives up what a new mapping of a file can't be kept right beside. An error: it is to be the
    /// kernel's, too.
    pub(super) fn make_way_for(&mut self, made: FileMapping, facts: &Facts) -> Result<(), Passed> {
        let is_shared = made.kind & SHARED != 0;
        let is_writing = is_shared && made.kind & WRITE != 0;
        let first = u64::from(made.first);
        let pages = first..first + (made.bytes / PAGE) as u64;
        let parts = self
            .addresses
            .files()
            .collect_of(facts.identity, &pages)
            .into_iter();
        let clashing: Vec<Part> = parts
            .filter(|part| part.is_written || is_writing && part.is_shared)
            .collect();
        for part in &clashing {
            self.give_up_file(*part, Passed::MappedTwice);
        }
        match is_shared && self.written.is_native(facts.identity) || !clashing.is_empty() {
            true => Err(Passed::MappedTwice),
            false => Ok(()),
        }
    }

    /// Notes that a mapping is left to the kernel which others of its file must agree with.
    pub(super) fn note_passed(&mut self, made: FileMapping, facts: &Facts) {
        let is_writing = made.kind & WRITE != 0 || facts.is_open_for_writing;
        if made.kind & SHARED != 0 && is_writing {
            self.written.note_native(facts.identity);
        }
    }

    /// Claims a file that is to be written back.
    pub(super) fn claim_file(&mut self, file: Identity) -> Result<(), Passed> {
        match self.written.claim(file) {
            Claim::Granted => Ok(()),
            Claim::Taken => Err(Passed::MappedElsewhere),
        }
    }

    /// Takes in that there are more files that are written back, or fewer.
    pub(super) fn note_files_written(&mut self) {
        let (files, written) = (self.addresses.files(), self.all_written());
        let has = |file| {
            let mut parts = written.iter();
            parts.any(|part| files.file(part.pager).identity == file)
        };
        self.written.keep_claims(has);
        if let Some(hand) = self.machine.hand() {
            hand.keep_engine(!written.is_empty());
        }
        let level = Counter::FileMappingsWritten;
        self.telemetry.gauges_mut().set(level, written.len() as u64);
        let counter = self.line.process();
        let counter = counter.counter(level);
        counter.store(written.len() as u64, Relaxed);
    }

    /// Gives up the files that other engines ask for.
    pub(super) fn yield_files(&mut self) {
        for (file, asking) in self.written.asked_for() {
            self.give_up_all_of(file, Passed::MappedElsewhere);
            self.note_files_written();
            // They go on now.
            drop(asking);
        }
    }

    /// Has parts written, and `taken` answered when they are.
    pub(super) fn write_back(
        &mut self,
        requests: &Requests,
        taken: Taken,
        parts: &[Part],
        why: WriteBack,
    ) {
        if parts.is_empty() {
            return requests.answer(taken, 0);
        }
        requests.hold(taken);
        let pieces = self.pieces_of(parts);
        let mut unsynchronized: Vec<PagerId> = match why {
            WriteBack::Synchronize => pieces.iter().map(|piece| piece.pager).collect(),
            WriteBack::Leave | WriteBack::Start => Vec::new(),
        };
        unsynchronized.dedup();
        self.written.backs.push(Back {
            taken,
            why,
            pieces,
            error: None,
            unsynchronized,
            synchronizing: None,
        });
    }

    /// Writes all parts that there are, and answers `taken` when that is done.
    pub(super) fn write_all_back(&mut self, requests: &Requests, taken: Taken) {
        let parts = self.all_written();
        self.write_back(requests, taken, &parts, WriteBack::Leave);
    }

    /// All parts that are written back.
    fn all_written(&self) -> Vec<Part> {
        let files = self.addresses.files();
        files.collect_written(EVERYWHERE.0, EVERYWHERE.1)
    }

    /// The parts of one file that are.
    fn written_of(&self, file: Identity) -> Vec<Part> {
        let mut parts = self.addresses.files().collect_of(file, &(0..u64::MAX));
        parts.retain(|part| part.is_written);
        parts
    }

    /// The pages that parts have of their files, to be written.
    fn pieces_of(&self, parts: &[Part]) -> Vec<Piece> {
        let files = self.addresses.files();
        let pieces = parts.iter().map(|part| {
            let file = files.file(part.pager);
            let end = part.address_of(file.pages());
            Piece {
                pager: part.pager,
                flush: Flush::new(page_of(part.start).0..page_of(end).0),
                failures: file.write_failures.0,
            }
        });
        pieces.collect()
    }

    /// Writes more of what threads wait for. Answers the threads whose pages are written.
    pub(super) fn go_on_writing(&mut self) -> Vec<(Taken, u64)> {
        let mut answers = Vec::new();
        for mut back in std::mem::take(&mut self.written.backs) {
            match self.go_on_with(&mut back) {
                Some(answer) => answers.push((back.taken, answer)),
                None => self.written.backs.push(back),
            }
        }
        answers
    }

    /// Returns true if a thread waits for pages to be written.
    pub(super) fn is_writing_back(&self) -> bool {
        !self.written.backs.is_empty()
    }

    fn go_on_with(&mut self, back: &mut Back) -> Option<u64> {
        let error = self.go_on_with_pieces(&mut back.pieces);
        back.error = back.error.or(error);
        if !back.pieces.is_empty() {
            return None;
        }
        match (back.error, back.why) {
            (Some((pager, error)), WriteBack::Leave) => self.end_for_file(pager, error),
            (Some(_), WriteBack::Start | WriteBack::Synchronize) => {}
            (None, _) => self.synchronize(back)?,
        }
        let error = back.error.map_or(0, |(_, error)| error.raw_os_error());
        Some(TAKEN + u64::from(error.unsigned_abs()))
    }

    /// Has the hand wait for the disk. `None` while it does.
    fn synchronize(&mut self, back: &mut Back) -> Option<()> {
        let Some(hand) = self.machine.hand() else {
            return Some(());
        };
        loop {
            if let Some((pager, begun)) = back.synchronizing {
                let outcome = hand.outcome(begun)?;
                back.synchronizing = None;
                back.error = back.error.or(outcome.err().map(|error| (pager, error)));
            }
            let Some(&pager) = back.unsynchronized.last() else {
                return Some(());
            };
            let is_there = self.addresses.files().has_file(pager);
            // What was unmapped meanwhile was written before.
            if let Some(file) = is_there.then(|| self.store.cached_file(pager)).flatten() {
                match hand.begin(Job::Synchronize(file.number())) {
                    Some(begun) => back.synchronizing = Some((pager, begun)),
                    None if !hand.is_idle() => return None,
                    None => {
                        let error = file.synchronize().err();
                        back.error = back.error.or(error.map(|error| (pager, error)));
                    }
                }
            }
            back.unsynchronized.pop();
        }
    }

    /// Writes more of `pieces`, and takes those out that are over. Answers an error of these.
    fn go_on_with_pieces(&mut self, pieces: &mut Vec<Piece>) -> Option<(PagerId, Errno)> {
        let mut error = None;
        for piece in pieces.iter_mut() {
            while piece
                .flush
                .look(self.now, (&mut self.vm, &mut self.machine), self.space)
            {
                self.carry_out();
                piece.flush.note_writes(self.writes_of(piece.pager));
            }
        }
        let mut index = 0;
        while let Some(piece) = pieces.get_mut(index) {
            let writes = self.writes_of(piece.pager);
            let held = match piece.flush.held(self.now, writes) {
                Some(0) => 0,
                Some(held) if !piece.flush.begin_again(self.now) => held,
                Some(_) | None => {
                    index += 1;
                    continue;
                }
            };
            let piece = pieces.swap_remove(index);
            let failure = self.end_piece(&piece, held);
            error = error.or(failure.map(|error| (piece.pager, error)));
        }
        error
    }

    /// Sees to what the kernel has held of a piece for all the time. Answers an error of its
    /// writes.
    fn end_piece(&mut self, piece: &Piece, held: u32) -> Option<Errno> {
        self.hear_failed_writes(piece.pager);
        if !self.addresses.files().has_file(piece.pager) {
            return None;
        }
        if let Err(error) = self.write_in_place(piece, held > 0) {
            return Some(error);
        }
        let (failures, last) = self.addresses.files().file(piece.pager).write_failures;
        last.filter(|_| failures > piece.failures)
    }

    /// Writes pages as they stand in the program, which can't be moved out of it: those that the
    /// core does not know, and all if the kernel holds some.
    fn write_in_place(&mut self, piece: &Piece, is_held: bool) -> Result<(), Errno> {
        let Some(file) = self.store.cached_file(piece.pager) else {
            return Ok(());
        };
        let range = piece.flush.range();
        let (mut at, end) = (
            address_of(VirtPage(range.start)),
            address_of(VirtPage(range.end)),
        );
        let mut runs = Vec::new();
        while at < end {
            let walked = self.machine.pages().find_present(at, end, &mut runs);
            at = walked.unwrap_or(end).max(at + PAGE);
            let pages = runs
                .iter()
                .flat_map(|(from, to)| (*from..*to).step_by(PAGE));
            let found: Vec<usize> = pages
                .filter(|start| is_held || !self.is_known(page_of(*start)))
                .collect();
            for start in found {
                self.write_page_in_place(piece.pager, start, file.number())?;
            }
        }
        Ok(())
    }

    fn write_page_in_place(
        &mut self,
        pager: PagerId,
        start: usize,
        file: RawFd,
    ) -> Result<(), Errno> {
        let part = self.addresses.files().find(start);
        let Some(part) = part.filter(|part| part.pager == pager) else {
            return Ok(());
        };
        let offset = part.page_at(start) * PAGE_BYTES;
        let left = self.addresses.files().file(pager).bytes;
        let left = left.saturating_sub(offset);
        if left == 0 {
            return Ok(());
        }
        self.have_done(Job::Write {
            start,
            bytes: left.min(PAGE_BYTES) as usize,
            file,
            offset,
        })
    }

    /// Has the hand do something, and serves it meanwhile.
    fn have_done(&mut self, job: Job) -> Result<(), Errno> {
        let Some(hand) = self.machine.hand() else {
            return Err(Errno::AGAIN);
        };
        let mut begun: Option<Begun> = None;
        loop {
            begun = begun.or_else(|| hand.begin(job));
            if begun.is_none() && hand.is_idle() {
                return Err(Errno::AGAIN);
            }
            if let Some(outcome) = begun.and_then(|begun| hand.outcome(begun)) {
                return outcome;
            }
            self.now = now();
            if self.settle_changes() {
                self.serve_unless_parked();
                self.collect_replies();
                self.carry_out();
            }
            std::thread::sleep(Duration::from_nanos(PAUSE_NS / 20));
        }
    }

    fn writes_of(&self, pager: PagerId) -> Option<(Ticket, Ticket)> {
        let is_there = self.addresses.files().has_file(pager);
        is_there.then(|| self.store.writes_of(pager)).flatten()
    }

    /// Takes in which writes have failed, of all files that are written back.
    pub(super) fn hear_all_failed_writes(&mut self) {
        let parts = self.all_written();
        for part in parts {
            self.hear_failed_writes(part.pager);
        }
    }

    /// Takes in which writes of one file have failed. If it was cut, its pages behind the cut are
    /// lost, as natively.
    fn hear_failed_writes(&mut self, pager: PagerId) {
        if !self.addresses.files().has_file(pager) {
            return;
        }
        let Some(failure) = self.store.take_failure_of(pager, Direction::Store) else {
            return;
        };
        let known = self.addresses.files().file(pager).bytes;
        let size = self.store.size_of_file(pager).unwrap_or(known);
        let error = match failure.cause {
            Cause::Short if size < known => return self.cut_file(pager, size),
            Cause::File(error) | Cause::Memory(error) => error,
            Cause::Short | Cause::Differs | Cause::Full => Errno::IO,
        };
        let file = self.addresses.files_mut().file_mut(pager);
        let is_first = file.write_failures.0 == 0;
        file.write_failures = (file.write_failures.0 + 1, Some(error));
        if is_first {
            let path = self.addresses.files().file(pager).path.display();
            say(&format!(
                "{} ({}): `{path}`: {failure}; it is tried again",
                self.setup.name,
                pid()
            ));
        }
    }

    /// Writes a range at once, and serves nothing meanwhile.
    fn write_now(&mut self, parts: &[Part]) -> Result<(), (PagerId, Errno)> {
        let mut pieces = self.pieces_of(parts);
        if pieces.is_empty() {
            return Ok(());
        }
        let mut error = None;
        let mut last = (self.store.tally().written, now());
        for round in 1.. {
            self.now = now();
            let written = self.store.tally().written;
            if written != last.0 {
                last = (written, self.now);
            } else if self.written.is_finishing && self.now.since_ns(last.1) > STUCK_NS_MAX {
                return Err((pieces[0].pager, Errno::TIMEDOUT));
            }
            if round % SHOWN_EVERY == 0 {
                // Who waits for this sees that it goes on.
                self.publish();
            }
            if self.settle_changes() {
                self.collect_replies();
                error = error.or(self.go_on_with_pieces(&mut pieces));
                self.turns.note_tended(false);
                self.carry_out();
                self.machine.retry_deferred();
            }
            if pieces.is_empty() {
                break;
            }
            self.store.wait(PAUSE_NS);
        }
        error.map_or(Ok(()), Err)
    }

    /// Writes all that is left when the program has ended, or is about to be ended.
    pub(super) fn finish_files(&mut self) {
        if std::mem::replace(&mut self.written.is_finishing, true) {
            return;
        }
        let parts = self.all_written();
        if parts.is_empty() {
            return;
        }
        let written = self.write_now(&parts);
        let process = self.line.process();
        if let Err((pager, error)) = written
            && process.ending() != Ending::FileLost
        {
            process.set_ending(Ending::FileLost);
            self.tell_of_lost(pager, error);
        }
    }

    fn tell_of_lost(&self, pager: PagerId, error: Errno) {
        say(&format!(
            "{} ({}): {}",
            self.setup.name,
            pid(),
            self.describe_lost(pager, error)
        ));
    }

    /// Gives up the written parts of a range. False if there are none.
    pub(super) fn give_files_up(&mut self, start: usize, end: usize, why: Passed) -> bool {
        let parts = self.addresses.files().collect_written(start, end);
        for part in &parts {
            self.give_up_file(*part, why);
        }
        !parts.is_empty()
    }

    /// Gives up every file that is written back: a forked child would have pages of its own.
    pub(super) fn give_all_files_up(&mut self, why: Passed) {
        self.give_files_up(EVERYWHERE.0, EVERYWHERE.1, why);
    }

    fn give_up_all_of(&mut self, file: Identity, why: Passed) {
        for part in self.written_of(file) {
            self.give_up_file(part, why);
        }
        self.written.note_native(file);
    }

    /// Sees to the use of a file by a descriptor of the program, before that. Answers the parts
    /// that are to be written for it.
    pub(super) fn use_file(&mut self, file: Identity, is_write: bool) -> Vec<Part> {
        let parts = self.written_of(file);
        let Some(pager) = parts.first().map(|part| part.pager) else {
            return parts;
        };
        let known = self.addresses.files_mut().file_mut(pager);
        known.uses += 1;
        if is_write || known.uses > USES_MAX {
            self.give_up_all_of(file, Passed::UsedOtherwise);
            return Vec::new();
        }
        parts
    }

    /// Writes the modified pages of a part, and has the kernel map the file in its place.
    fn give_up_file(&mut self, part: Part, why: Passed) {
        let Part { start, end, .. } = part;
        while !self.await_changes() {}
        if part.is_written {
            self.written.held = Some((start, end));
            if let Err((pager, error)) = self.write_all_of(part) {
                self.end_for_file(pager, error);
            }
        }
        let file = self.addresses.files().file(part.pager);
        let (identity, path) = (file.identity, file.path.clone());
        let native = Native {
            start,
            bytes: end - start,
            offset: part.first * PAGE_BYTES,
            is_writable: part.is_written && !part.is_closed,
            is_shared: true,
        };
        let cached = self.store.cached_file(part.pager);
        let number = cached.as_ref().map_or_else(
            || self.store.number_of_file(part.pager),
            |file| file.number(),
        );
        if let Err(error) = self.have_done(Job::Map(native, number)) {
            self.end_for(&Trouble::Call {
                what: "mapping a file as the kernel does",
                error,
            });
        }
        while !self.await_changes() {}
        if self.addresses.files().find(start).is_some() {
            self.forget_range(start, end);
        }
        self.written.held = None;
        self.written.note_native(identity);
        self.telemetry.add(Counter::FileMappingsPassed, 1);
        self.telemetry
            .add(Counter::FileBytesPassed, (end - start) as u64);
        self.tell_of_passed(why, &path);
    }

    /// Writes a part whose faults wait, and leaves none of its pages in the program, but for those
    /// that the kernel holds.
    fn write_all_of(&mut self, part: Part) -> Result<(), (PagerId, Errno)> {
        let (at, pages) = (page_of(part.start), pages_in(part.start, part.end));
        for _ in 0..ROUNDS_MAX {
            // What is on its way into the program would be written to there.
            self.await_rest(now().after_ns(REST_NS_MAX));
            self.vm.discard(&mut self.machine, self.space, at, pages);
            self.write_now(&[part])?;
            let mut runs = Vec::new();
            let pages = self.machine.pages();
            let walked = pages.find_present(part.start, part.end, &mut runs);
            if walked == Ok(part.end) && runs.is_empty() {
                break;
            }
        }
        Ok(())
    }

    /// Returns true if a page is of a range that is about to be the kernel's.
    pub(super) fn is_given_up(&self, address: usize) -> bool {
        let held = self.written.held;
        held.is_some_and(|(start, end)| (start..end).contains(&address))
    }
}
