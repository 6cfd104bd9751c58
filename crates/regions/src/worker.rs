//! The engine's thread: the core, the machine and the store, and the loop that joins them.

use std::ops::Range;
use std::os::fd::{AsFd, OwnedFd};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tidemark_core::driver::Driver;
use tidemark_core::event::{Access, Event, Failure as Reason, Fault, Resolution};
use tidemark_core::id::{PAGE_BYTES, SlotId, SpaceId, VirtPage, Waiter};
use tidemark_core::seams::machine::{Machine, Rights};
use tidemark_core::seams::pager::{Direction, Place};
use tidemark_core::time::Time;
use tidemark_core::vm::{Config, Vm};
use tidemark_live::engine::Trouble;
use tidemark_live::machine::{LiveMachine, Probe, StartError};
use tidemark_live::store::pagers::Contents;
use tidemark_live::store::{Cause, Failure, Means, SwapStore, file};
use tidemark_live::sys::thread::with_signals_blocked;
use tidemark_live::sys::uffd::{Faults, Features, Message, Messages, OpenError};
use tidemark_live::sys::{Errno, PAGE, socket};
use tidemark_tasks::TaskMemory;

use crate::command::{Command, FilePart, Handle, Queue, Span, Statistics};
use crate::compressed::Tier;
use crate::error::Error;
use crate::files::MappedFile;
use crate::flushes::Awaited;
use crate::process::{Beside, Held};
use crate::settings::{Builder, Compression};

/// The core learns of time this often while there is work.
const TICK_NS: u64 = 10_000_000;
/// The pause before an operation is tried again that the kernel has refused for now.
const RETRY_NS: u64 = 200_000;
/// The sleep after which memory is given back that transfers need.
const REST: Duration = Duration::from_millis(100);
/// The longest sleep of the thread.
const SLEEP_NS_MOST: u64 = 250_000_000;

pub(crate) struct Worker {
    pub(crate) vm: Vm,
    pub(crate) space: SpaceId,
    pub(crate) machine: LiveMachine,
    pub(crate) store: SwapStore,
    /// The memory that it may use, and the part that this leaves to the core.
    pub(crate) task: TaskMemory,
    held: Held,
    /// The rest of the process, if it counts.
    beside: Option<Beside>,
    /// Compressed memory in front of it, if there is any.
    pub(crate) tier: Option<Tier>,
    /// The swap file, whose room is given back at the end, if there is one.
    room: Option<OwnedFd>,
    /// The name of the pager in its place.
    swap_name: Option<String>,
    queue: Arc<Queue>,
    messages: Messages,
    /// The pages that are being read at the program's wish, each with its slot.
    prefetches: Vec<(SlotId, VirtPage)>,
    /// The pages to prefetch whose contents may be in mapped files.
    file_prefetches: Range<u64>,
    pub(crate) files: Vec<MappedFile>,
    file_page_ins: u64,
    file_page_outs: u64,
    pub(crate) flushes: Vec<Awaited>,
    /// The last transfer to or from the swap file, or to another file, that failed.
    failure: Option<String>,
    started: Instant,
    pub(crate) now: Time,
    next_tick: Time,
    region_pages: u64,
    faults: u64,
    is_ending: bool,
}

/// Starts the thread of an engine.
pub(crate) fn start(settings: Builder) -> Result<Handle, Error> {
    let call = |what| move |error| Error::call(what, error);
    let frames = (settings.memory_bytes / PAGE_BYTES) as u32;
    let slots = (settings.swap_bytes / PAGE_BYTES) as u32;
    // Before there are tables.
    let beside = settings.counts_process.then(Beside::begin).transpose();
    let beside = beside.map_err(call("reading the size of the process"))?;
    let (swap, room) = swap(&settings)?;
    let (mut machine, faults) = open_machine(frames, settings.serves_user_mode_only)?;
    let hidden = machine.hide_from_children();
    hidden.map_err(call("keeping frames from forked children"))?;
    let queue = Arc::new(Queue::new().map_err(call("making an eventfd"))?);
    machine.skip_sums_if(settings.compression != Compression::Without);
    let policy = tidemark_plugin::build(&settings.policy, frames, frames, 1, &[]);
    let policy = policy.expect("the name was looked up");
    let config = Config::clustered(frames, frames);
    let pages = settings.pages_of_regions(&config, slots);
    let mut vm = Vm::new(config, policy, settings.compression.slots(slots));
    let space = vm.create_space();
    let is_encrypted = settings.is_encrypted.unwrap_or(settings.store.is_some());
    let store = SwapStore::new(swap, slots, Means::Best, settings.faults);
    let mut store = store.and_then(|store| settings.compression.in_front(store, frames));
    if is_encrypted {
        store = store.and_then(SwapStore::encrypt);
    }
    let mut store = store.map_err(call("starting the swap store"))?;
    store.set_patience(settings.patience);
    store.read_in_one_piece(frames);
    store.hide_from_children();
    let worker = Worker {
        vm,
        space,
        machine,
        store,
        task: settings.compression.task(frames),
        held: Held::default(),
        beside,
        tier: settings.compression.tier(slots),
        room,
        swap_name: settings.store.map(|store| store.name()),
        queue: Arc::clone(&queue),
        messages: Messages::new(),
        prefetches: Vec::new(),
        file_prefetches: 0..0,
        files: Vec::new(),
        file_page_ins: 0,
        file_page_outs: 0,
        flushes: Vec::new(),
        failure: None,
        started: Instant::now(),
        now: Time(0),
        next_tick: Time(TICK_NS),
        region_pages: 0,
        faults: 0,
        is_ending: false,
    };
    let thread = spawn(worker)?;
    let bytes = (u64::from(frames) * PAGE_BYTES, pages * PAGE_BYTES);
    Ok(Handle::new(queue, thread, faults == Faults::All, bytes))
}

fn spawn(worker: Worker) -> Result<JoinHandle<()>, Error> {
    let thread = std::thread::Builder::new().name("tidemark-engine".into());
    // A signal's handler that touched a region here would wait for this thread itself.
    let thread = with_signals_blocked(|| thread.spawn(move || guard(worker)));
    thread.map_err(|error| {
        let error = Errno::from_io_error(&error).unwrap_or(Errno::AGAIN);
        Error::call("starting the engine's thread", error)
    })
}

/// Makes a machine for all faults; for those in user mode where the kernel permits no more, or
/// no more is wanted.
fn open_machine(frames: u32, is_limited: bool) -> Result<(LiveMachine, Faults), Error> {
    let open = |faults| {
        let machine = LiveMachine::serving(faults, frames, Features::NONE);
        machine.map(|machine| (machine, faults))
    };
    let opened = match is_limited {
        true => open(Faults::UserMode),
        false => match open(Faults::All) {
            Err(StartError::Uffd(denied @ OpenError::NotPermitted { .. })) => {
                open(Faults::UserMode).map_err(|error| match error {
                    // The first says what it takes to be permitted all.
                    StartError::Uffd(_) => StartError::Uffd(denied),
                    error => error,
                })
            }
            opened => opened,
        },
    };
    opened.map_err(|error| Error::System(Trouble::Machine(error)))
}

/// The swap store, and the file whose room is given back at the end, if it is one.
fn swap(settings: &Builder) -> Result<(Contents, Option<OwnedFd>), Error> {
    if let Some(store) = &settings.store {
        return Ok((Contents::Pager(Arc::clone(store)), None));
    }
    if settings.compression == Compression::Alone {
        let none = file::none().map_err(|error| Error::call("making an empty file", error))?;
        return Ok((none.into(), None));
    }
    let swap = file::create(
        &settings.swap_folder,
        settings.swap_bytes / PAGE_BYTES * PAGE_BYTES,
    );
    let swap = swap.map_err(|error| Error::Swap {
        folder: settings.swap_folder.clone(),
        bytes: settings.swap_bytes,
        error,
    })?;
    let room = swap.fd.try_clone();
    let room = room.map_err(|error| {
        let error = Errno::from_io_error(&error).unwrap_or(Errno::MFILE);
        Error::call("keeping the swap file", error)
    })?;
    Ok((swap.fd.into(), Some(room)))
}

/// Answers a command. Who asked waits for it, or has gone with its process.
pub(crate) fn answer<T>(reply: &SyncSender<T>, value: T) {
    let _ = reply.send(value);
}

/// Ends the process if the engine's thread panics: others wait for it.
fn guard(mut worker: Worker) {
    if std::panic::catch_unwind(AssertUnwindSafe(|| worker.run())).is_err() {
        eprintln!("tidemark: the engine has failed, and its process is ended");
        std::process::abort();
    }
}

impl Worker {
    fn run(&mut self) {
        while !self.is_ending {
            self.turn();
            self.sleep();
        }
        if let Some(room) = &self.room {
            file::release(room);
        }
    }

    fn turn(&mut self) {
        self.now = Time(self.started.elapsed().as_nanos() as u64);
        self.serve_faults();
        self.collect_replies();
        self.conclude();
        self.obey();
        self.machine.retry_deferred();
        self.go_on_reading();
        self.go_on_flushing();
        self.note_held();
        if self.now >= self.next_tick {
            self.count_beside();
            self.vm.handle_tick(self.now, &mut self.machine);
            self.next_tick = self.now.after_ns(TICK_NS);
        } else if self.vm.poll_deadline().is_some_and(|due| due <= self.now) {
            self.vm.handle_deadline(self.now, &mut self.machine);
        }
        self.carry_out();
    }

    /// Lets other engines of the process know how many pages are this one's.
    fn note_held(&mut self) {
        let held = self.vm.frames().in_use() + self.store.pages_held();
        self.held.set(held.into());
    }

    /// Leaves room for what the process has beside the pages of its engines.
    fn count_beside(&mut self) {
        if let Some(beside) = &self.beside {
            let pages = beside.pages();
            let (vm, machine) = (&mut self.vm, &mut self.machine);
            self.task.handle_beside(self.now, pages, vm, machine);
        }
    }

    fn serve_faults(&mut self) {
        let mut messages = std::mem::take(&mut self.messages);
        // A reading that fails has brought nothing; what is there is read in the next turn.
        if self.machine.program().read(&mut messages).is_ok() {
            for message in messages.iter() {
                if let Message::Fault { at, is_write, .. } = message {
                    self.serve(VirtPage((at / PAGE) as u64), is_write);
                }
            }
        }
        self.messages = messages;
    }

    fn serve(&mut self, at: VirtPage, is_write: bool) {
        self.faults += 1;
        let frame = self.vm.frame_at(self.space, at);
        if let Some(frame) = frame
            && self.machine.mapped_at(frame) == Some(at)
        {
            // A page whose enter was put off is not there, and is not lost: who waits is woken as
            // it is entered.
            if !self.machine.is_deferred(frame) {
                self.serve_mapped(at);
            }
            return;
        }
        let access = match is_write {
            true => Access::Write,
            false => Access::Read,
        };
        let fault = Fault {
            space: self.space,
            at,
            access,
            waiter: Waiter(self.faults),
        };
        match self.vm.handle_fault(self.now, &mut self.machine, fault) {
            // Who waits is woken as the page is entered.
            Resolution::Resolved(_) | Resolution::Pending(_) => {}
            Resolution::Invalid => match self.files.iter().any(|file| file.has(at)) {
                // What the file does not have any more.
                true => self.lose(at),
                // A region that has just been dropped: the thread meets what is there now.
                false => self.machine.wake(at),
            },
        }
    }

    /// Serves a fault on a page that should be there: another fault has brought it, or the program
    /// has taken it away by a call of its own.
    fn serve_mapped(&mut self, at: VirtPage) {
        match self.machine.probe(at) {
            Probe::Present => {}
            Probe::Refilled => {
                self.vm.discard(&mut self.machine, self.space, at, 1);
                self.vm
                    .handle_present(self.now, &mut self.machine, self.space, at);
            }
            Probe::Changing | Probe::Unknown => self.machine.wake(at),
        }
    }

    fn collect_replies(&mut self) {
        let reaped = self.store.reap(&mut self.machine);
        reaped.expect("io_uring tells what has finished");
        self.take_replies();
    }

    /// Does what the program's threads ask for. One that has gone needs no answer.
    fn obey(&mut self) {
        self.queue.bell.take();
        while let Some(command) = self.queue.next() {
            match command {
                Command::Map(span, file, reply) => answer(&reply, self.map(span, file)),
                Command::Unmap(span, reply) => {
                    self.unmap(span);
                    answer(&reply, ());
                }
                Command::Advise(span, advice, reply) => {
                    self.vm.advise(self.space, span.at, span.pages, advice);
                    answer(&reply, ());
                }
                Command::Discard(span, reply) => {
                    let Span { at, pages } = span;
                    self.vm.discard(&mut self.machine, self.space, at, pages);
                    self.machine.settle();
                    self.note_held();
                    answer(&reply, ());
                }
                Command::Flush(span, reply) => self.begin_flush(span, reply),
                Command::Prefetch(span, reply) => {
                    self.prefetch(span);
                    answer(&reply, ());
                }
                Command::Statistics(reply) => answer(&reply, self.count()),
                Command::End => self.is_ending = true,
            }
            self.conclude();
        }
    }

    fn map(&mut self, span: Span, file: Option<FilePart>) -> Result<(), Errno> {
        let Span { at, pages } = span;
        if self.machine.register(at, pages)? < pages {
            return Err(Errno::AGAIN);
        }
        let (vm, space, rights) = (&mut self.vm, self.space, Rights::Write);
        let mapped = match file {
            None => vm.map_anonymous(space, at, pages, rights),
            Some(part) => {
                let (path, first, bytes) = (part.path, part.first, part.source.bytes);
                let pager = self.store.open_file(part.source);
                let file = MappedFile::new(span, (pager, first), path, bytes);
                let mapped = match part.is_written {
                    true => vm
                        .map_external(space, at, pages, pager, first, rights)
                        .map(|object| file.written_as(object)),
                    false => vm
                        .map_copy(space, at, pages, pager, first, rights)
                        .map(|()| file),
                };
                mapped.map(|file| self.files.push(file))
            }
        };
        mapped.expect("the range is new");
        self.region_pages += pages;
        Ok(())
    }

    fn unmap(&mut self, span: Span) {
        let Span { at, pages } = span;
        self.prefetches
            .retain(|(_, page)| !(at.0..at.0 + pages).contains(&page.0));
        self.vm.unmap(&mut self.machine, self.space, at, pages);
        self.machine.settle();
        for file in self.files.extract_if(.., |file| file.has(at)) {
            self.store.close_file(file.pager);
        }
        // It fails where nothing is registered, which is what is wanted.
        let _ = self.machine.unregister(at, pages);
        self.region_pages -= pages;
        self.note_held();
    }

    fn prefetch(&mut self, span: Span) {
        let pages = (span.at.0..span.at.0 + span.pages).map(VirtPage);
        let stored = pages.filter_map(|at| {
            let is_out = self.vm.frame_at(self.space, at).is_none();
            let slot = is_out.then(|| self.vm.slot_at(self.space, at)).flatten();
            slot.map(|slot| (slot, at))
        });
        let mut stored: Vec<_> = stored.collect();
        stored.sort_unstable_by_key(|&(slot, _)| std::cmp::Reverse(slot.0));
        self.prefetches = stored;
        self.file_prefetches = span.at.0..span.at.0 + span.pages;
        self.go_on_reading();
    }

    /// Has more read of what was asked for ahead; what there is no frame for is left out.
    fn go_on_reading(&mut self) {
        let (mut due, mut pages) = (
            std::mem::take(&mut self.prefetches),
            std::mem::take(&mut self.file_prefetches),
        );
        if due.is_empty() && pages.is_empty() {
            return;
        }
        let before = (due.len(), pages.start);
        let (vm, machine) = (&mut self.vm, &mut self.machine);
        vm.handle_recalls(self.now, machine, self.space, &mut due);
        vm.handle_prefetches(self.now, machine, self.space, &mut pages);
        if before != (due.len(), pages.start) || vm.transfers_pending() > 0 {
            (self.prefetches, self.file_prefetches) = (due, pages);
        }
    }

    fn count(&self) -> Statistics {
        let core = self.vm.counters();
        Statistics {
            faults: self.faults,
            page_ins: core.page_ins,
            file_page_ins: self.file_page_ins,
            file_page_outs: self.file_page_outs,
            page_outs: core.page_outs,
            zero_fills: core.zero_fills + core.zero_aheads,
            soft_faults: core.soft_faults,
            resident_bytes: u64::from(self.vm.frames().in_use() + self.store.pages_held())
                * PAGE_BYTES,
            region_bytes: self.region_pages * PAGE_BYTES,
            beside_bytes: u64::from(self.task.beside()) * PAGE_BYTES,
        }
    }

    fn sleep(&mut self) {
        if self.is_ending {
            return;
        }
        let is_awaited = self.vm.faults_pending() > 0
            || self.vm.transfers_pending() > 0
            || !self.flushes.is_empty();
        let due = match self.vm.poll_deadline() {
            Some(due) => due.since_ns(self.now),
            None => SLEEP_NS_MOST,
        };
        let tried = self.store.next_try();
        let tried_ns = tried.map(|due| due.saturating_duration_since(Instant::now()).as_nanos());
        let due = due.min(tried_ns.map_or(due, |due| due as u64));
        let limit = match (self.machine.has_deferred(), is_awaited) {
            (true, _) => RETRY_NS,
            (false, true) => TICK_NS.min(due),
            (false, false) => SLEEP_NS_MOST.min(due),
        };
        let program = self.machine.program().as_fd();
        let files = [
            Some(program),
            Some(self.queue.bell.as_fd()),
            self.store.finished(),
            self.store.called(),
        ];
        let files: Vec<_> = files.into_iter().flatten().collect();
        let began = Instant::now();
        // However it ends, all is looked at.
        let _ = socket::wait_readable(&files, Some(limit));
        if began.elapsed() >= REST {
            self.store.rest();
        }
    }

    /// Notes which transfers have failed, and which files have been cut.
    fn hear_failures(&mut self) {
        while let Some(failure) = self.store.next_failure() {
            let file = failure.file;
            let file = file.and_then(|pager| self.files.iter_mut().find(|it| it.pager == pager));
            match file {
                None if failure.file.is_some() => {}
                None => self.failure = Some(self.swap_trouble(failure)),
                Some(file) => {
                    let size = self.store.size_of_file(file.pager).unwrap_or(u64::MAX);
                    let text = self.store.take_text_of(Some(file.pager));
                    let lost = file.note(failure, text, size);
                    if failure.direction == Direction::Store {
                        self.failure = Some(file.write_trouble(failure));
                    }
                    if let Some(span) = lost {
                        let Span { at, pages } = span;
                        if let Some((object, first)) = file.lost() {
                            self.vm.truncate_external(&mut self.machine, object, first);
                        }
                        self.vm.unmap(&mut self.machine, self.space, at, pages);
                        self.machine.settle();
                    }
                }
            }
        }
    }

    /// The words about what is wrong with the swap file, or with the store in its place.
    fn swap_trouble(&mut self, failure: Failure) -> String {
        if failure.cause == Cause::Full {
            return "compressed memory is full; ask for more memory, or for a store behind it"
                .into();
        }
        let text = self.store.take_text_of(None);
        let text = text.filter(|_| matches!(failure.cause, Cause::File(_)));
        let place = self.swap_name.as_deref();
        match (place, text) {
            (None, _) => failure.to_string(),
            (Some(place), Some(text)) => format!("the swap store `{place}`: {text}"),
            (Some(place), None) => format!("the swap store `{place}`: {failure}"),
        }
    }

    /// A page could not be read, or one that was to come with it. If its file was cut behind it, or
    /// what was wrong has been told to another thread, it is tried once more.
    fn lose_or_retry(&mut self, at: VirtPage) {
        let is_fine = self.file_of(at).is_some_and(|file| !file.is_in_trouble(at));
        match is_fine {
            true => self.machine.wake(at),
            false => self.lose(at),
        }
    }

    /// The file that the page at `at` is read from, if it is not on the swap file.
    fn file_of(&mut self, at: VirtPage) -> Option<&mut MappedFile> {
        let file = self.files.iter_mut().find(|file| file.has(at));
        file.filter(|_| self.vm.slot_at(self.space, at).is_none())
    }

    /// Makes each touch of a lost page an error, and says why.
    fn lose(&mut self, at: VirtPage) {
        let why = self.file_of(at).and_then(|file| file.trouble_at(at));
        // Stores that failed meanwhile say nothing of this page, unless there was no room for it.
        let failure = self.failure.take();
        let why = why.or(failure);
        let why = why.unwrap_or_else(|| "the swap file fails".into());
        let address = at.0 as usize * PAGE;
        eprintln!("tidemark: the page at {address:#x} can't be had: {why}");
        // Where this fails the thread touches again, and the line is repeated.
        let _ = self.machine.program().poison(address, PAGE);
        self.machine.wake(at);
    }
}

impl Driver for Worker {
    fn start_requests(&mut self) -> bool {
        let mut has_started = false;
        self.allow_compressed();
        while let Some(request) = self.vm.poll_request() {
            let (ticket, direction) = (request.ticket, request.direction);
            let frames = self.vm.frames_of(ticket);
            let (store, machine) = (&mut self.store, &mut self.machine);
            match request.place {
                Place::Swap { first } => store.start(ticket, direction, first, frames, machine),
                Place::External { pager } => {
                    let first = (pager, self.vm.pages_of(ticket)[0].index);
                    match direction {
                        Direction::Fetch => {
                            self.file_page_ins += u64::from(request.pages);
                            store.start_read(ticket, first, frames, machine);
                        }
                        Direction::Store => {
                            self.file_page_outs += u64::from(request.pages);
                            store.start_write(ticket, first, frames, machine);
                        }
                    }
                }
            }
            has_started = true;
        }
        has_started |= self.tend_compressed();
        if has_started {
            let submitted = self.store.submit(&self.machine);
            submitted.expect("io_uring takes what it has room for");
        }
        has_started
    }

    fn pass_event(&mut self) -> bool {
        let Some(event) = self.vm.poll_event() else {
            return false;
        };
        match event {
            Event::Retry(fault) => self.machine.wake(fault.at),
            Event::Failed(fault, Reason::PagerFailed) => self.lose_or_retry(fault.at),
            // There is a slot for every page, so that it is the file that fails.
            Event::Failed(fault, _) => self.lose(fault.at),
            Event::Resolved(..)
            | Event::StoreFull
            | Event::StoreFailed
            | Event::Disowned { .. }
            | Event::Suspend { .. }
            | Event::Resume { .. } => {}
        }
        true
    }

    fn make_room(&mut self) {
        self.vm.handle_idle(self.now, &mut self.machine);
    }

    fn take_replies(&mut self) -> bool {
        let Worker { vm, machine, .. } = self;
        let has_replied = self.store.reply_to(vm, self.now, machine);
        self.hear_failures();
        has_replied
    }
}
