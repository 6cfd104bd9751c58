//! Contents that code of the program supplies, instead of a file of the kernel's.
//!
//! A [`Pager`] is called by a few threads of the store's own, so that several of its calls are
//! under way at once. A call has bytes of its own: the thread that uses the store copies them from
//! or to frames, and a call that never returns holds no frame's address.
//!
//! # Invariants
//! 1. Bytes of a call that has failed go nowhere: its transfer fails, and its frames are given up.
//! 2. A call that fails for now is made again, with longer and longer pauses, until the store's
//!    patience is over. Then, or where an error says that it lasts, the transfer fails.
//! 3. At most `CALLS_MAX` calls have bytes at one time.
//!
//! # Locks
//! The queue of calls: held to put one in or to take one out. No pager is called meanwhile.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tidemark_core::id::PagerId;
use tidemark_core::seams::pager::Direction;

use super::carrier::may_pass;
use super::{Part, SwapStore, Transfer, Work, offset_of};
use crate::machine::LiveMachine;
use crate::sys::ring::Completion;
use crate::sys::socket::Bell;
use crate::sys::{Errno, PAGE};

/// The number of calls that are made at one time.
pub const CALLERS_MAX: u32 = 8;
/// The number of calls that are made, wait to be made, or are over and not looked at.
const CALLS_MAX: u32 = 32;
/// The time for which a store that ends waits for calls to be over.
const END_LIMIT: Duration = Duration::from_secs(5);
/// The time for which a call that fails for now is made again, unless another is set.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// The contents of a region or of a swap store: bytes that are read, and perhaps written, by their
/// offset.
///
/// Calls are made by several threads at once. A range is not written while it is read or written by
/// another call. A call must not touch the region that it serves, which would wait for it.
pub trait Pager: Send + Sync {
    /// The number of bytes. It is asked for once, when the pager is put to use.
    fn bytes(&self) -> u64;

    /// Reads the bytes from `offset` on, as many as `into` has, all of which are within `bytes`.
    /// They are whole pages, but for the last. What `into` has before is of no meaning.
    ///
    /// # Errors
    /// The bytes can't be had now, or at all. A panic counts as an error that lasts.
    fn read(&self, offset: u64, into: &mut [u8]) -> Result<(), PagerError>;

    /// Writes bytes from `offset` on, likewise. After an error some of them may be written.
    ///
    /// # Errors
    /// The bytes can't be written now, or at all. That is the answer of a pager without this call.
    fn write(&self, offset: u64, from: &[u8]) -> Result<(), PagerError> {
        let _ = (offset, from);
        Err(PagerError::lasting("it can't be written to"))
    }

    /// Its name in messages: a place, such as a path or an address.
    fn name(&self) -> String {
        "the pager".into()
    }
}

/// The reason for which a pager can't read or write.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PagerError {
    text: String,
    is_temporary: bool,
}

/// The keeper of the bytes of pages.
pub enum Contents {
    /// In a file.
    File(OwnedFd),
    /// With a pager.
    Pager(Arc<dyn Pager>),
}

/// The calls of all pagers of a store, and the threads that make them.
#[derive(Default)]
pub(super) struct Calls {
    /// The threads that call pagers. `None` before the first call.
    callers: Option<Arc<Callers>>,
    under_way: u32,
    /// Parts that wait for their call. Fetches go first, as those of the file do.
    fetches: VecDeque<Part>,
    stores: VecDeque<Part>,
    /// The time, for each transfer, since which its calls have failed and are tried again.
    refused_since: BTreeMap<u32, Instant>,
    patience: Option<Duration>,
    /// The last error of each pager; that of the swap store has no number.
    texts: BTreeMap<Option<PagerId>, String>,
}

struct Callers {
    queue: Mutex<Queue>,
    wanted: Condvar,
    /// Notified as a thread ends.
    ended: Condvar,
    bell: Bell,
}

#[derive(Default)]
struct Queue {
    calls: VecDeque<Call>,
    finished: VecDeque<Call>,
    threads: u32,
    idle: u32,
    is_ending: bool,
}

struct Call {
    pager: Arc<dyn Pager>,
    direction: Direction,
    offset: u64,
    bytes: Vec<u8>,
    tag: u64,
    result: Result<(), PagerError>,
}

impl PagerError {
    /// An error that may pass: the call is made again, after a pause.
    pub fn temporary(text: impl fmt::Display) -> PagerError {
        PagerError {
            text: text.to_string(),
            is_temporary: true,
        }
    }

    /// An error that lasts: the page can't be had.
    pub fn lasting(text: impl fmt::Display) -> PagerError {
        PagerError {
            text: text.to_string(),
            is_temporary: false,
        }
    }

    /// Returns true if the call may do better when it is made again.
    pub fn is_temporary(&self) -> bool {
        self.is_temporary
    }
}

impl fmt::Display for PagerError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.text)
    }
}

impl std::error::Error for PagerError {}

impl fmt::Debug for dyn Pager {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Pager({})", self.name())
    }
}

impl<P: Pager + ?Sized> Pager for Arc<P> {
    fn bytes(&self) -> u64 {
        (**self).bytes()
    }

    fn read(&self, offset: u64, into: &mut [u8]) -> Result<(), PagerError> {
        (**self).read(offset, into)
    }

    fn write(&self, offset: u64, from: &[u8]) -> Result<(), PagerError> {
        (**self).write(offset, from)
    }

    fn name(&self) -> String {
        (**self).name()
    }
}

impl Contents {
    /// The file: a pager's parts go other ways.
    pub(super) fn as_file(&self) -> &OwnedFd {
        match self {
            Contents::File(file) => file,
            Contents::Pager(_) => unreachable!("what is with a pager is not read as a file"),
        }
    }

    fn pager(&self) -> Option<&Arc<dyn Pager>> {
        match self {
            Contents::File(_) => None,
            Contents::Pager(pager) => Some(pager),
        }
    }
}

impl From<OwnedFd> for Contents {
    fn from(file: OwnedFd) -> Contents {
        Contents::File(file)
    }
}

impl fmt::Debug for Contents {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Contents::File(file) => file.fmt(out),
            Contents::Pager(pager) => pager.fmt(out),
        }
    }
}

impl SwapStore {
    /// Sets the time for which a pager's call that fails for now is made again.
    pub fn set_patience(&mut self, patience: Duration) {
        self.calls.patience = Some(patience);
    }

    /// The file that can be read when a call of a pager is over; nothing before the first call.
    pub fn called(&self) -> Option<BorrowedFd<'_>> {
        let callers = self.calls.callers.as_ref()?;
        Some(callers.bell.as_fd())
    }

    /// Takes the last error of a pager, or of that of the swap store.
    pub fn take_text_of(&mut self, pager: Option<PagerId>) -> Option<String> {
        self.calls.texts.remove(&pager)
    }

    /// Returns true if a part goes to a pager.
    pub(super) fn has_pager(&self, part: Part) -> bool {
        self.pager_of(&self.transfers[part.transfer as usize])
            .is_some()
    }

    /// Has as many calls made as there is room for.
    pub(super) fn send_calls(&mut self, machine: &LiveMachine) -> Result<(), Errno> {
        while self.calls.under_way < CALLS_MAX {
            let next = self.calls.fetches.pop_front();
            let Some(part) = next.or_else(|| self.calls.stores.pop_front()) else {
                break;
            };
            let transfer = self.transfers[part.transfer as usize];
            let (direction, home) = (transfer.direction, self.home_of(&transfer, part.start));
            let pager = self.pager_of(&transfer);
            let pager = Arc::clone(pager.expect("its parts are a pager's"));
            let due = self.files.bytes_due(transfer.work, home, part.pages);
            let mut bytes = vec![0; due];
            if direction == Direction::Store {
                let pages = bytes.chunks_mut(PAGE).zip(part.range());
                for ((bytes, page), slot) in pages.zip(u64::from(home.0)..) {
                    bytes.copy_from_slice(&self.page_of(&transfer, page, machine)[..bytes.len()]);
                    if let Some(cipher) = self.cipher_of(transfer.work) {
                        cipher.encrypt(slot, bytes);
                    }
                }
            }
            match direction {
                Direction::Fetch => self.tally.read_calls += 1,
                Direction::Store => self.tally.write_calls += 1,
            }
            let callers = match &self.calls.callers {
                Some(callers) => callers,
                None => self.calls.callers.insert(Arc::new(Callers::new()?)),
            };
            self.calls.under_way += 1;
            callers.put(Call {
                pager,
                direction,
                offset: offset_of(home),
                bytes,
                tag: part.tag(),
                result: Ok(()),
            });
        }
        Ok(())
    }

    /// Takes in the calls that are over.
    pub(super) fn reap_calls(&mut self, machine: &mut LiveMachine) {
        let Some(callers) = self.calls.callers.clone() else {
            return;
        };
        callers.bell.take();
        loop {
            let Some(call) = callers.lock().finished.pop_front() else {
                break;
            };
            self.calls.under_way -= 1;
            self.handle_call(call, machine);
        }
    }

    fn handle_call(&mut self, call: Call, machine: &mut LiveMachine) {
        let part = Part::from_tag(call.tag);
        let transfer = self.transfers[part.transfer as usize];
        if call.direction == Direction::Fetch && call.result.is_ok() {
            for (bytes, page) in call.bytes.chunks(PAGE).zip(part.range()) {
                let into = self.page_of_mut(&transfer, page, machine);
                into[..bytes.len()].copy_from_slice(bytes);
            }
        }
        let is_temporary = call.result.as_ref().is_err_and(PagerError::is_temporary);
        if let Err(error) = &call.result {
            let tried = match is_temporary {
                true => format!("; tried again for {:?}", self.patience()),
                false => String::new(),
            };
            let file = transfer.work.file();
            self.calls.texts.insert(file, format!("{error}{tried}"));
        }
        let result = match (call.result, is_temporary) {
            (Ok(()), _) => Ok(call.bytes.len()),
            (Err(_), true) => Err(Errno::AGAIN),
            (Err(_), false) => Err(Errno::IO),
        };
        let tag = call.tag;
        self.handle_completion(Completion { tag, result }, machine);
        if !self
            .refused
            .iter()
            .any(|(it, _)| it.transfer == part.transfer)
        {
            self.calls.refused_since.remove(&part.transfer);
        }
    }

    /// The memory of a page, or of a block of compressed ones, of a transfer.
    pub(super) fn page_of<'a>(
        &'a self,
        transfer: &Transfer,
        page: usize,
        machine: &'a LiveMachine,
    ) -> &'a [u8] {
        match transfer.work {
            Work::Pages | Work::File(_) => machine.pool().bytes_of(transfer.frames[page]),
            Work::Segment(_, room) => {
                let compressed = self.compressed.as_ref().expect("it has segments");
                compressed.block(room, page)
            }
            Work::Single(..) => unreachable!("single pages are read"),
        }
    }

    /// The memory of a page, or of a block of compressed ones, of a transfer, to write.
    pub(super) fn page_of_mut<'a>(
        &'a mut self,
        transfer: &Transfer,
        page: usize,
        machine: &'a mut LiveMachine,
    ) -> &'a mut [u8] {
        let compressed = self.compressed.as_mut();
        match transfer.work {
            Work::Pages | Work::File(_) => machine.pool_mut().bytes_of_mut(transfer.frames[page]),
            Work::Segment(_, room) => compressed.expect("it has segments").block_mut(room, page),
            Work::Single(_, _, place) => {
                let compressed = compressed.expect("the page is compressed");
                compressed.single_block_mut(place, page)
            }
        }
    }

    /// Returns true if a part is tried again that was refused with `error`.
    pub(super) fn is_tried_again(&mut self, part: Part, error: Errno) -> bool {
        if !self.has_pager(part) {
            return may_pass(error) && part.tries < super::TRIES_MAX;
        }
        let (now, patience) = (Instant::now(), self.patience());
        let since = self.calls.refused_since.entry(part.transfer);
        may_pass(error) && now - *since.or_insert(now) < patience
    }

    fn patience(&self) -> Duration {
        self.calls.patience.unwrap_or(PATIENCE)
    }

    /// The pager that a transfer is with.
    fn pager_of(&self, transfer: &Transfer) -> Option<&Arc<dyn Pager>> {
        match transfer.work.file() {
            Some(file) => self.files.get(file).file.pager(),
            None => self.file.pager(),
        }
    }
}

impl Calls {
    /// The parts that wait for their call.
    pub(super) fn queue_of(&mut self, direction: Direction) -> &mut VecDeque<Part> {
        match direction {
            Direction::Fetch => &mut self.fetches,
            Direction::Store => &mut self.stores,
        }
    }
}

impl Callers {
    fn new() -> Result<Callers, Errno> {
        Ok(Callers {
            queue: Mutex::default(),
            wanted: Condvar::new(),
            ended: Condvar::new(),
            bell: Bell::new()?,
        })
    }

    /// Has a call made, by a new thread if all are busy and there may be one more.
    fn put(self: &Arc<Callers>, call: Call) {
        let mut queue = self.lock();
        queue.calls.push_back(call);
        if queue.calls.len() as u32 > queue.idle && queue.threads < CALLERS_MAX {
            let callers = Arc::clone(self);
            let thread = std::thread::Builder::new().name("tidemark-pager".into());
            match thread.spawn(move || callers.work()) {
                Ok(_) => queue.threads += 1,
                // Others do it, later.
                Err(_) if queue.threads > 0 => {}
                Err(error) => {
                    for mut call in std::mem::take(&mut queue.calls) {
                        let text = format!("no thread to call it: {error}");
                        call.result = Err(PagerError::temporary(text));
                        queue.finished.push_back(call);
                    }
                    self.bell.ring();
                }
            }
        }
        drop(queue);
        self.wanted.notify_one();
    }

    fn work(&self) {
        let mut queue = self.lock();
        while !queue.is_ending {
            let Some(mut call) = queue.calls.pop_front() else {
                queue.idle += 1;
                let waited = self.wanted.wait(queue);
                queue = waited.unwrap_or_else(PoisonError::into_inner);
                queue.idle -= 1;
                continue;
            };
            drop(queue);
            call.make();
            queue = self.lock();
            if queue.is_ending {
                // It may be the last that knows its pager, whose end may take time.
                drop(queue);
                drop(call);
                queue = self.lock();
                continue;
            }
            queue.finished.push_back(call);
            self.bell.ring();
        }
        queue.threads -= 1;
        drop(queue);
        self.ended.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        // No code that panics has the lock.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Call {
    fn make(&mut self) {
        let (pager, offset, bytes) = (&self.pager, self.offset, &mut self.bytes);
        let made = std::panic::catch_unwind(AssertUnwindSafe(|| match self.direction {
            Direction::Fetch => pager.read(offset, bytes),
            Direction::Store => pager.write(offset, bytes),
        }));
        self.result = made.unwrap_or_else(|_| Err(PagerError::lasting("it panicked")));
    }
}

impl Drop for Calls {
    /// Ends the threads. One whose call takes longer ends when the call does.
    fn drop(&mut self) {
        let Some(callers) = &self.callers else {
            return;
        };
        let mut queue = callers.lock();
        queue.is_ending = true;
        queue.calls.clear();
        callers.wanted.notify_all();
        let is_in_call = |queue: &mut Queue| queue.threads > 0;
        let waited = callers
            .ended
            .wait_timeout_while(queue, END_LIMIT, is_in_call);
        let (mut queue, _) = waited.unwrap_or_else(PoisonError::into_inner);
        // No pager is kept by what was not looked at.
        queue.finished.clear();
    }
}
