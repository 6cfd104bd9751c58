//! System calls: what programs may ask for (docs/guide/kernel.md has the table).
//!
//! A call that needs a page which is not there has the process wait and is done again from the
//! start; so it changes nothing before it has all it needs. What it moves ends with the page at
//! which the program's buffer begins: one page of a program is needed at a time, however large the
//! buffer.

use alloc::vec::Vec;

use tidemark_core::event::Access;
use tidemark_core::id::{PAGE_BYTES, VirtPage};
use tidemark_core::memory::address_space::Advice;
use tidemark_core::seams::machine::Rights;

use crate::arch::paging::USER_END;
use crate::arch::{Purpose, has_room, serial};
use crate::kernel::{Kernel, Served};
use crate::parameters::Programs;
use crate::process::{FIRST_FILE, Open, ProcessId, State};
use crate::store::Unread;
use crate::volume;

/// The bytes of the instruction that makes a call.
const CALL_BYTES: u64 = 2;
/// The most files a process may have open.
const FILES_MAX: usize = 64;
/// The most children that have ended and that a process has not asked for.
const ENDED_MAX: usize = 1024;
/// The most a process may map at a time.
const MAP_BYTES_MAX: u64 = 1 << 32;
/// The longest name, and the longest line of arguments.
const WORDS_BYTES_MAX: u64 = 2048;

/// The reason for which a call is refused; negative in the register.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Refusal {
    /// There is no such call, or an argument is out of its range.
    Invalid = 1,
    /// The program may not use that address so.
    Address = 2,
    /// There is no such file, child or region.
    Missing = 3,
    /// There is no room.
    Full = 4,
    /// Not with programs that are pinned.
    Pinned = 5,
    /// The disk fails.
    Disk = 6,
}

/// The outcome of a call.
enum Outcome {
    /// The call is over, and returns this value.
    Value(u64),
    /// The process waits, and makes the call again.
    Again,
    /// The process is another, or no more.
    Gone,
}

type Called = Result<Outcome, Refusal>;

/// Goes on with a value that was reached, or waits for it.
macro_rules! reached {
    ($found:expr) => {
        match $found? {
            Some(value) => value,
            None => return Ok(Outcome::Again),
        }
    };
}

impl Kernel {
    /// Does what a process asks for. Answers whether its turn is over.
    pub(crate) fn call(&mut self, id: ProcessId) -> bool {
        let registers = self.processes[&id].registers;
        let arguments = [registers.rdi, registers.rsi, registers.rdx];
        let called = self.dispatch(id, registers.rax, arguments);
        let Some(process) = self.processes.get_mut(&id) else {
            return true;
        };
        match called {
            Ok(Outcome::Value(value)) => process.registers.rax = value,
            // Pages that came for it are still to be used.
            Ok(Outcome::Again) => {
                process.registers.rip -= CALL_BYTES;
                return false;
            }
            Ok(Outcome::Gone) => {}
            Err(refusal) => process.registers.rax = (-(refusal as i64)) as u64,
        }
        self.end_step(id);
        registers.rax == 10
    }

    fn dispatch(&mut self, id: ProcessId, number: u64, [first, second, third]: [u64; 3]) -> Called {
        // Those that have the kernel keep more: files, regions, processes.
        if matches!(number, 3 | 5..=8 | 15 | 16) && !has_room(Purpose::Call) {
            return Err(Refusal::Full);
        }
        match number {
            0 => {
                self.end_process(id, first as u8);
                Ok(Outcome::Gone)
            }
            1 => self.call_write(id, first, second, third),
            2 => self.call_read(id, first, second, third),
            3 => self.call_open(id, first, second),
            4 => self.call_close(id, first),
            5 => self.call_map(id, first, second, third),
            6 => self.call_unmap(id, first, second),
            7 => self.call_fork(id),
            8 => self.call_execute(id, first, second),
            9 => self.call_wait(id),
            10 => Ok(Outcome::Value(0)),
            11 => Ok(Outcome::Value(self.clock_ns())),
            12 => self.call_sleep(id, first),
            13 => self.call_argument(id, first, second, third),
            14 => self.call_count(first),
            15 => self.call_advise(id, first, second, third),
            16 => self.call_protect(id, first, second, third),
            17 => self.call_name(id, first, second, third),
            18 => self.call_sync(),
            _ => Err(Refusal::Invalid),
        }
    }

    fn call_write(&mut self, id: ProcessId, file: u64, from: u64, bytes: u64) -> Called {
        if !(1..FIRST_FILE).contains(&file) {
            return Err(Refusal::Missing);
        }
        let count = count_in_page(from, bytes);
        if count == 0 {
            return Ok(Outcome::Value(0));
        }
        let page = reached!(self.reach(id, from, false));
        let start = (from % PAGE_BYTES) as usize;
        serial::write(&page[start..start + count]);
        Ok(Outcome::Value(count as u64))
    }

    fn call_read(&mut self, id: ProcessId, file: u64, to: u64, bytes: u64) -> Called {
        if file == 0 {
            return Ok(Outcome::Value(0));
        }
        let process = self.processes.get_mut(&id).expect("who calls exists");
        let open = process.file(file).ok_or(Refusal::Missing)?;
        let (number, at) = (open.file, open.at);
        let whole = self.store.volume()[number].bytes();
        let within = PAGE_BYTES - at % PAGE_BYTES;
        let count = count_in_page(to, bytes.min(within).min(whole.saturating_sub(at)));
        if count == 0 {
            return Ok(Outcome::Value(0));
        }
        reached!(self.reach(id, to, true));
        let start = (at % PAGE_BYTES) as usize;
        let source: Vec<u8> = match self.programs {
            Programs::Pinned => {
                let process = self.processes.get_mut(&id).expect("who calls exists");
                let open = process.file(file).ok_or(Refusal::Missing)?;
                let contents = open.contents.as_deref().map_or(&[][..], Vec::as_slice);
                read_from(contents, at as usize, count)
            }
            Programs::Paged => match self.read_page(id, number, at / PAGE_BYTES) {
                Some(Some(page)) => match whole - (at - start as u64) {
                    rest @ ..=PAGE_BYTES => read_from(&page[..rest as usize], start, count),
                    _ => page[start..start + count].to_vec(),
                },
                Some(None) => return Err(Refusal::Missing),
                None => return Ok(Outcome::Again),
            },
        };
        // Bringing the file's page may have taken the program's.
        let page = reached!(self.reach(id, to, true));
        let start = (to % PAGE_BYTES) as usize;
        let count = source.len();
        page[start..start + count].copy_from_slice(&source);
        let process = self.processes.get_mut(&id).expect("who calls exists");
        process.file(file).ok_or(Refusal::Missing)?.at += count as u64;
        Ok(Outcome::Value(count as u64))
    }

    fn call_open(&mut self, id: ProcessId, name: u64, bytes: u64) -> Called {
        let name = reached!(self.read_bytes(id, name, bytes));
        let file = self.store.volume().find(&name).ok_or(Refusal::Missing)?;
        let contents = match self.programs {
            Programs::Pinned => Some(self.store.read_file_now(file).map_err(|why| match why {
                Unread::Disk => Refusal::Disk,
                Unread::Room => Refusal::Full,
            })?),
            Programs::Paged => None,
        };
        let open = Open {
            file,
            at: 0,
            contents,
        };
        let process = self.processes.get_mut(&id).expect("who calls exists");
        let place = match process.files.iter().position(Option::is_none) {
            Some(place) => place,
            None if process.files.len() == FILES_MAX => return Err(Refusal::Full),
            None => {
                process.files.push(None);
                process.files.len() - 1
            }
        };
        process.files[place] = Some(open);
        Ok(Outcome::Value(FIRST_FILE + place as u64))
    }

    fn call_close(&mut self, id: ProcessId, file: u64) -> Called {
        let process = self.processes.get_mut(&id).expect("who calls exists");
        process.file(file).ok_or(Refusal::Missing)?;
        process.files[(file - FIRST_FILE) as usize] = None;
        Ok(Outcome::Value(0))
    }

    /// Maps anonymous memory, or an open file: a private copy, or shared with all who map it so.
    fn call_map(&mut self, id: ProcessId, bytes: u64, file: u64, is_shared: u64) -> Called {
        if !(1..=MAP_BYTES_MAX).contains(&bytes) || is_shared > 1 {
            return Err(Refusal::Invalid);
        }
        let pages = bytes.div_ceil(PAGE_BYTES);
        let process = self.processes.get_mut(&id).expect("who calls exists");
        let (space, at) = (process.space, process.next_page);
        let opened = match file {
            0 => None,
            number => Some(process.file(number).ok_or(Refusal::Missing)?.file),
        };
        // A page stays free behind each piece: an access past the end is a fault.
        let next = at.plus(pages + 1);
        if next.0 * PAGE_BYTES > USER_END / 2 {
            return Err(Refusal::Full);
        }
        process.next_page = next;
        let mapped = match opened {
            None => self.vm.map_apart(space, at, pages, Rights::Write),
            Some(_) if self.programs == Programs::Pinned => return Err(Refusal::Pinned),
            Some(file) => {
                let object = self.object_of(file).ok_or(Refusal::Missing)?;
                if is_shared == 1 {
                    self.written.insert(file);
                    self.vm
                        .map_object(space, at, pages, object, 0, Rights::Write)
                } else {
                    self.vm
                        .map_private(space, at, pages, object, 0, Rights::Write)
                }
            }
        };
        mapped.map_err(|_| Refusal::Full)?;
        Ok(Outcome::Value(at.0 * PAGE_BYTES))
    }

    /// Writes what programs have written to files through mappings.
    fn call_sync(&mut self) -> Called {
        match self.write_back() {
            true => Ok(Outcome::Value(0)),
            false => Err(Refusal::Disk),
        }
    }

    fn call_unmap(&mut self, id: ProcessId, address: u64, bytes: u64) -> Called {
        let (at, pages) = range_of(address, bytes)?;
        let space = self.processes[&id].space;
        self.vm.unmap(&mut self.machine, space, at, pages);
        self.conclude();
        Ok(Outcome::Value(0))
    }

    fn call_fork(&mut self, id: ProcessId) -> Called {
        if self.programs == Programs::Pinned {
            return Err(Refusal::Pinned);
        }
        if self.processes[&id].ended.len() >= ENDED_MAX {
            return Err(Refusal::Full);
        }
        let parent = self.processes[&id].space;
        let space = self.vm.fork(&mut self.machine, parent);
        self.machine.create(space);
        self.machine.copy_text(parent, space);
        let mut child = self.processes[&id].fork(id, space);
        child.registers.rax = 0;
        let child = self.add_process(child);
        self.conclude();
        Ok(Outcome::Value(child))
    }

    /// Becomes another program: `words` are its name and its arguments, each with a zero behind it.
    fn call_execute(&mut self, id: ProcessId, words: u64, bytes: u64) -> Called {
        let words = reached!(self.read_bytes(id, words, bytes));
        let words = words.strip_suffix(&[0]).ok_or(Refusal::Invalid)?;
        let words: Vec<Vec<u8>> = words.split(|&byte| byte == 0).map(<[u8]>::to_vec).collect();
        let found = self.store.volume().find(&words[0]);
        found.ok_or(Refusal::Missing)?;
        let process = self.processes.get_mut(&id).expect("who calls exists");
        process.to_execute = Some(words);
        Ok(Outcome::Gone)
    }

    /// Waits for a child to end: its number and its status, in the lowest eight bits.
    fn call_wait(&mut self, id: ProcessId) -> Called {
        let process = self.processes.get_mut(&id).expect("who calls exists");
        if let Some((child, status)) = process.ended.pop_front() {
            return Ok(Outcome::Value(child << 8 | u64::from(status)));
        }
        if !self.processes.values().any(|process| process.parent == id) {
            return Err(Refusal::Missing);
        }
        self.block(id, State::Waiting);
        Ok(Outcome::Again)
    }

    fn call_sleep(&mut self, id: ProcessId, ns: u64) -> Called {
        let until = self.clock_ns().saturating_add(ns);
        self.block(id, State::Sleeping(until));
        Ok(Outcome::Value(0))
    }

    /// Writes an argument of the program, as much as fits; answers its length.
    fn call_argument(&mut self, id: ProcessId, number: u64, to: u64, bytes: u64) -> Called {
        let arguments = &self.processes[&id].arguments;
        let argument = usize::try_from(number)
            .ok()
            .and_then(|number| arguments.get(number));
        let argument = argument.ok_or(Refusal::Missing)?.clone();
        self.hand_over(id, &argument, to, bytes)
    }

    /// Writes the name of the volume's file of that number; answers its length.
    fn call_name(&mut self, id: ProcessId, number: u64, to: u64, bytes: u64) -> Called {
        let files = self.store.volume();
        let file = usize::try_from(number)
            .ok()
            .and_then(|number| files.get(number));
        let name = file.ok_or(Refusal::Missing)?.name.clone();
        self.hand_over(id, &name, to, bytes)
    }

    /// Writes `text` to the program's memory, as much as fits; answers how long it is.
    fn hand_over(&mut self, id: ProcessId, text: &[u8], to: u64, bytes: u64) -> Called {
        let count = count_in_page(to, bytes.min(text.len() as u64));
        if count > 0 {
            let page = reached!(self.reach(id, to, true));
            let start = (to % PAGE_BYTES) as usize;
            page[start..start + count].copy_from_slice(&text[..count]);
        }
        Ok(Outcome::Value(text.len() as u64))
    }

    /// Answers what has been counted.
    fn call_count(&self, what: u64) -> Called {
        let counters = self.vm.counters();
        let value = match what {
            0 => counters.faults,
            1 => counters.page_ins,
            2 => counters.page_outs,
            3 => counters.soft_faults,
            4 => counters.zero_fills,
            5 => counters.cow_faults,
            6 => u64::from(self.vm.frames().in_use()),
            7 => u64::from(self.vm.frames().limit()),
            8 => self.processes.len() as u64,
            _ => return Err(Refusal::Invalid),
        };
        Ok(Outcome::Value(value))
    }

    fn call_advise(&mut self, id: ProcessId, address: u64, bytes: u64, advice: u64) -> Called {
        let (at, pages) = range_of(address, bytes)?;
        let space = self.processes[&id].space;
        let advice = match advice {
            0 => Advice::Normal,
            1 => Advice::Sequential,
            2 => Advice::Reverse,
            3 => Advice::Random,
            4 => {
                self.vm.discard(&mut self.machine, space, at, pages);
                self.conclude();
                return Ok(Outcome::Value(0));
            }
            _ => return Err(Refusal::Invalid),
        };
        self.vm.advise(space, at, pages, advice);
        Ok(Outcome::Value(0))
    }

    /// Carries out `protect`: sets the rights of a range to read (1), or read and write (2). Text
    /// is left out.
    fn call_protect(&mut self, id: ProcessId, address: u64, bytes: u64, rights: u64) -> Called {
        let (at, pages) = range_of(address, bytes)?;
        let space = self.processes[&id].space;
        let rights = match rights {
            1 => Rights::Read,
            2 => Rights::Write,
            _ => return Err(Refusal::Invalid),
        };
        if self.machine.has_text(space, at.0..at.0 + pages) {
            return Err(Refusal::Address);
        }
        self.vm.protect(&mut self.machine, space, at, pages, rights);
        self.conclude();
        Ok(Outcome::Value(0))
    }

    /// Copies bytes of the program: a name or a line of arguments.
    fn read_bytes(
        &mut self,
        id: ProcessId,
        from: u64,
        bytes: u64,
    ) -> Result<Option<Vec<u8>>, Refusal> {
        if !(1..=WORDS_BYTES_MAX).contains(&bytes) {
            return Err(Refusal::Invalid);
        }
        let mut copied = Vec::new();
        while (copied.len() as u64) < bytes {
            let at = from
                .checked_add(copied.len() as u64)
                .ok_or(Refusal::Address)?;
            let count = count_in_page(at, bytes - copied.len() as u64);
            let Some(page) = self.reach(id, at, false)? else {
                return Ok(None);
            };
            let start = (at % PAGE_BYTES) as usize;
            copied.extend_from_slice(&page[start..start + count]);
        }
        Ok(Some(copied))
    }

    /// The page of the program at `address`. `None`: the process waits for it.
    fn reach(
        &mut self,
        id: ProcessId,
        address: u64,
        is_write: bool,
    ) -> Result<Option<&mut [u8; 4096]>, Refusal> {
        if address >= USER_END {
            return Err(Refusal::Address);
        }
        let at = VirtPage(address / PAGE_BYTES);
        let space = self.processes[&id].space;
        while self.machine.reach(space, at, is_write).is_none() {
            let access = if is_write {
                Access::Write
            } else {
                Access::Read
            };
            let served = self.serve(id, space, at, access);
            self.note_fresh(id, at, served);
            match served {
                Served::Now(_) => {}
                Served::Later => return Ok(None),
                Served::Invalid => return Err(Refusal::Address),
            }
        }
        Ok(self.machine.reach(space, at, is_write))
    }
}

/// Counts the bytes, of `bytes` from `address` on, that lie in its page.
fn count_in_page(address: u64, bytes: u64) -> usize {
    bytes.min(PAGE_BYTES - address % PAGE_BYTES) as usize
}

/// Copies up to `count` bytes from `at` on of what ends with a file: what fills its last block is
/// not read.
fn read_from(contents: &[u8], at: usize, count: usize) -> Vec<u8> {
    let meant = volume::without_filling(contents);
    let rest = meant.get(at..).unwrap_or_default();
    rest[..count.min(rest.len())].to_vec()
}

/// A range of whole pages.
fn range_of(address: u64, bytes: u64) -> Result<(VirtPage, u64), Refusal> {
    let end = address.checked_add(bytes).ok_or(Refusal::Address)?;
    if !address.is_multiple_of(PAGE_BYTES) || bytes == 0 || end > USER_END {
        return Err(Refusal::Address);
    }
    Ok((VirtPage(address / PAGE_BYTES), bytes.div_ceil(PAGE_BYTES)))
}
