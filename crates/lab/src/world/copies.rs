//! Copies: what system calls read from files and write to them, page by page.
//!
//! The pages are those that programs map: they come from the file's disk when they are wanted, with
//! the system's read-ahead, stay until their frames are, and are written back when they leave. A
//! page that is written whole, or lies behind the end of its file, is not read first.
//!
//! # What is left out
//! Written pages are not written back while there is memory, as systems do every few seconds.

use tidemark_core::event::{Fault, Resolution};
use tidemark_core::id::{SpaceId, VirtPage, Waiter};
use tidemark_core::seams::policy::Sees;
use tidemark_core::time::Time;

use super::engine::World;
use super::file_call::FileCall;
use super::files::FILE_PAGES;
use super::script::is_file;
use super::thread::State;

/// The place, in a process's space, of the windows through which the kernel copies, one for each
/// thread: above all programs.
const WINDOWS: u64 = 1 << 51;

impl<'a> World<'a> {
    /// Has a system call begin to copy.
    pub(super) fn begin_copy(&mut self, running: usize, copying: FileCall<'a>) {
        let page_bytes = self.page_bytes_of(running);
        let is_copied = is_file(copying.file) && copying.next < copying.end;
        if !is_copied || copying.end.div_ceil(page_bytes) > FILE_PAGES {
            self.tally.irregular += 1;
            return;
        }
        let file = self.files.find(&self.key_of(running, copying.file));
        let space = self.space_of(running);
        let at = self.window_of(running);
        let opened = self
            .memory
            .vm
            .map_window(space, at, file.pages, file.object);
        opened.expect("no program's memory is as high, and a thread makes one call at a time");
        self.threads[running].copying = Some(copying);
    }

    /// Has a system call copy what it wants of one page, or wait for that page.
    pub(super) fn copy_page(&mut self, number: usize, running: usize) {
        let now = self.processors[number].now;
        let Some(copying) = self.threads[running].copying else {
            return;
        };
        let page_bytes = self.page_bytes_of(running);
        let length = self.files.find(&self.key_of(running, copying.file)).length;
        let piece = copying.piece(page_bytes, length);
        if !copying.is_served {
            let copy = Fault {
                space: self.space_of(running),
                at: self.window_of(running).plus(piece.page),
                access: piece.access,
                waiter: Waiter(running as u64),
            };
            let resolution = self.bring(running, copy, now);
            let cost_ns = self.conclude(now);
            self.charge(number, cost_ns);
            if matches!(resolution, Resolution::Pending(_)) {
                self.processors[number].running = None;
                let ended = self.processors[number].now;
                self.put_off(running, ended);
                return;
            }
        }
        let bytes = piece.end - copying.next;
        self.charge(number, self.system.costs.copy_ns * bytes / page_bytes);
        self.tally.bytes_copied += bytes;
        self.advance_copy(running, copying, piece.end);
    }

    /// Cuts a file. Its pages behind the cut go, and nothing of them is written.
    pub(super) fn cut_file(&mut self, running: usize, name: &str, bytes: u64) {
        if !is_file(name) {
            return;
        }
        let key = self.key_of(running, name).into_owned();
        let first = bytes.div_ceil(self.page_bytes_of(running));
        let object = self.files.find(&key).object;
        self.memory
            .vm
            .truncate_external(&mut self.memory.tables, object, first);
        self.files.set_length(&key, bytes);
    }

    /// Brings a page into memory for a copy, or has the process wait for it.
    fn bring(&mut self, running: usize, copy: Fault, now: u64) -> Resolution {
        if !self.scenario.is_in_step {
            let ticks = self.process_of(running).ticks();
            self.memory.vm.handle_clock(copy.space, ticks);
        }
        let known = self.memory.vm.frame_at(copy.space, copy.at);
        if let Some(frame) = known.filter(|_| self.sees >= Sees::References) {
            self.memory.vm.handle_reference(frame);
        }
        let resolution = self
            .memory
            .vm
            .handle_copy(Time(now), &mut self.memory.tables, copy);
        assert_ne!(resolution, Resolution::Invalid, "a window covers its file");
        if matches!(resolution, Resolution::Pending(_)) {
            self.process_of(running).outcome.waits += 1;
            self.shift(running, State::Paging, now);
            if let Some(copying) = &mut self.threads[running].copying {
                copying.is_served = true;
            }
        }
        resolution
    }

    /// Notes that all before `next` has been copied; at the end, closes the window.
    fn advance_copy(&mut self, running: usize, copying: FileCall<'a>, next: u64) {
        let key = self.key_of(running, copying.file).into_owned();
        let file = self.files.find(&key);
        if copying.is_write && next > file.length {
            self.files.set_length(&key, next);
        }
        if next < copying.end {
            self.threads[running].copying = Some(FileCall {
                next,
                is_served: false,
                ..copying
            });
            return;
        }
        self.threads[running].copying = None;
        let (space, at) = (self.space_of(running), self.window_of(running));
        self.memory
            .vm
            .unmap(&mut self.memory.tables, space, at, file.pages);
    }

    /// The beginning of the window of a thread.
    fn window_of(&self, running: usize) -> VirtPage {
        VirtPage(WINDOWS + self.threads[running].place as u64 * FILE_PAGES)
    }

    fn key_of(&self, running: usize, name: &'a str) -> std::borrow::Cow<'a, str> {
        let number = self.program_of(running);
        self.scenario.programs[number].file_key(number, name)
    }

    fn space_of(&self, running: usize) -> SpaceId {
        let space = self.processes[self.threads[running].process].space;
        space.expect("a running process has a space")
    }

    fn page_bytes_of(&self, running: usize) -> u64 {
        let program = self.program_of(running);
        self.scenario.programs[program].script.page_bytes()
    }

    fn program_of(&self, running: usize) -> usize {
        self.processes[self.threads[running].process].program
    }
}
