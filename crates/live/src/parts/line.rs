//! The line of a process to all others: its record in the shared memory, its supervisor, its
//! doorbell, and what a forked child finds of its parent.
//!
//! # Invariants
//! 1. The files of a copy of this that a fork has made mean nothing in the child: they are
//!    forgotten there, not closed.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use tidemark_core::time::Time;
use tidemark_partition::FLOOR_FRAMES;

use super::mode::Mode;
use super::trouble::{Trouble, call, no_supervisor, pid};
use super::units::now;
use crate::control::{self, Grant, GrantFiles, Hello, Words};
use crate::shared::{Counter, Process, ProcessIndex, Shared, State};
use crate::store::LISTENED_MAX;
use crate::sys::blocking_read::{self, BlockingRead, Waited};
use crate::sys::calls::Call;
use crate::sys::uffd::{Messages, Uffd};
use crate::sys::{Errno, files, program, signal, socket, thread};

/// The time that a fork waits for a record.
const CLAIM_NS_MAX: u64 = 2_000_000_000;
/// The time for which an engine waits for the frames that a child needs. The supervisor has them at
/// once, or has to take them from another engine, or has none.
const ANSWER_NS_MAX: u64 = 4_000_000;
/// The time for which an engine waits for those frames while most of memory is not in use: then
/// there are frames, and the supervisor has not had its turn yet.
const FREE_NS_MAX: u64 = 50_000_000;

/// The resources that an engine is given.
pub struct Lent {
    /// The memory that all processes of the run share.
    pub shared: Arc<Shared>,
    /// This process's record in it.
    pub record: ProcessIndex,
    /// The most frames that this process can ever use.
    pub frames_max: u32,
    /// The frames that it may use now.
    pub budget: u32,
    /// The swap file.
    pub swap: OwnedFd,
    /// The connection to the supervisor, if there is one.
    pub control: Option<OwnedFd>,
    /// The file that decisions or references are logged to, if any are.
    pub decisions: Option<OwnedFd>,
    /// The listener by which system calls are answered, if they are held up.
    pub calls: Option<OwnedFd>,
    /// True if processes have the same numbers here as where they are listened to.
    pub is_near: bool,
}

/// The files that a forked child is given.
pub struct Again {
    /// The swap file.
    pub swap: OwnedFd,
    /// The log.
    pub decisions: Option<OwnedFd>,
    /// The listener by which system calls are answered.
    pub calls: Option<OwnedFd>,
    /// As [`Lent::is_near`].
    pub is_near: bool,
}

/// The line.
pub struct Line {
    shared: Arc<Shared>,
    /// The number of this process's record, for the slots, too.
    record: Arc<AtomicU32>,
    /// The connection to the supervisor.
    control: Option<OwnedFd>,
    /// The folder of the supervisor's socket, where it can't be found by its path.
    folder: Option<OwnedFd>,
    doorbell: OwnedFd,
    reading: BlockingRead,
    /// The supervisor is to be poked.
    has_news: bool,
    /// The words of the supervisor.
    words: Words,
    own: Own,
}

/// An engine, as a forked child finds it.
#[derive(Clone, Copy)]
struct Own {
    process: u32,
    /// The engine's own thread.
    thread: u32,
    /// The number of the swap file in the engine's file table.
    swap_file: i32,
    /// True if the store can be read: not yet in a child that has just been forked.
    has_store: bool,
}

/// The parent of a forked child, and its engine.
#[derive(Clone, Copy)]
pub struct Parent {
    /// The number of its process.
    pub process: u32,
    /// The number of its engine's thread.
    pub engine: u32,
    swap_file: i32,
}

impl Line {
    /// The line of a process that starts afresh, on its engine's thread, with a `record` in
    /// `shared`. `swap_file` is the number of the swap file.
    pub fn new(
        shared: Arc<Shared>,
        record: Arc<AtomicU32>,
        control: Option<OwnedFd>,
        swap_file: i32,
        mode: Mode,
    ) -> Result<Line, Trouble> {
        Ok(Line {
            shared,
            record,
            control,
            folder: None,
            doorbell: open_doorbell(mode)?,
            reading: BlockingRead::default(),
            has_news: false,
            words: Words::default(),
            own: Own {
                process: pid(),
                thread: thread::current(),
                swap_file,
                has_store: true,
            },
        })
    }

    /// The shared memory of the run.
    pub fn shared(&self) -> &Shared {
        &self.shared
    }

    /// The place of this process's record.
    pub fn record(&self) -> ProcessIndex {
        ProcessIndex(self.record.load(Relaxed))
    }

    /// This process's record.
    pub fn process(&self) -> Process<'_> {
        self.shared.process(self.record())
    }

    /// The number of this process.
    pub fn own_process(&self) -> u32 {
        self.own.process
    }

    /// Returns true if there is a supervisor, as far as is known.
    pub fn has_supervisor(&self) -> bool {
        self.control.is_some()
    }

    /// The connection to the supervisor.
    pub fn supervisor(&self) -> Option<BorrowedFd<'_>> {
        self.control.as_ref().map(AsFd::as_fd)
    }

    /// Takes in what the supervisor says; without one the engine goes on alone. Returns true if the
    /// record is worth a look.
    pub fn hear_supervisor(&mut self) -> bool {
        let Some(control) = &self.control else {
            return true;
        };
        let mut bytes = [0u8; 1024];
        let flags = rustix::net::RecvFlags::DONTWAIT;
        match rustix::net::recv(control, &mut bytes, flags) {
            Ok((count, _)) if count > 0 => self.words.take_in(&bytes[..count]),
            Err(Errno::AGAIN | Errno::INTR) => false,
            Ok(_) | Err(_) => {
                self.control = None;
                true
            }
        }
    }

    /// Takes the next system call that the supervisor has sent.
    pub fn take_call(&mut self) -> Option<Call> {
        self.words.take_call()
    }

    /// Has the supervisor look at this process's record.
    pub fn poke(&self) {
        if let Some(control) = &self.control {
            // If it is gone, that shows when it is next heard.
            let _ = control::poke(control.as_fd());
        }
    }

    /// Waits for another budget than `before`: for a short while, as there may be none, but for
    /// longer while most of memory is not in use. False if there is no supervisor any more.
    pub fn await_budget(&mut self, before: u32) -> bool {
        let limit_ns = match self.is_mostly_free() {
            true => FREE_NS_MAX,
            false => ANSWER_NS_MAX,
        };
        let end = now().after_ns(limit_ns);
        while self.process().budget() == before && now() < end {
            let Some(control) = &self.control else {
                return false;
            };
            // Whatever the wait answers, the loop looks for itself.
            let _ = socket::wait_readable(&[control.as_fd()], Some(ANSWER_NS_MAX / 4));
            self.hear_supervisor();
        }
        true
    }

    /// Remembers that the supervisor is to be poked at the end of the turn.
    pub fn note_news(&mut self) {
        self.has_news = true;
    }

    /// Returns true if the supervisor is to be poked, and forgets that.
    pub fn take_news(&mut self) -> bool {
        std::mem::take(&mut self.has_news)
    }

    /// The budget of the run, in bytes.
    pub fn bytes_of_run(&self) -> u64 {
        self.shared.frames_total() * tidemark_core::id::PAGE_BYTES
    }

    /// Returns true if there is no more memory than this process has been given.
    pub fn has_all_memory(&self) -> bool {
        u64::from(self.process().budget()) >= self.shared.frames_total()
    }

    /// Returns true if most of the memory of the run is not in use.
    pub fn is_mostly_free(&self) -> bool {
        let total = self.shared.frames_total();
        self.shared.frames_resident() < total - total / 4
    }

    /// The pages that may come to the memory of the run, where this process has `pages` in memory,
    /// managed or not, and is the only one. With others there is no knowing: a process that begins
    /// needs what is left, and what these have is to be known before.
    pub fn room_beside(&self, pages: u64) -> u64 {
        match self.shared.processes().nth(1) {
            None => self.shared.frames_total().saturating_sub(pages),
            Some(_) => 0,
        }
    }

    /// The pages that the other processes of the run have in memory.
    pub fn resident_in_others(&self) -> u64 {
        let own = self.record();
        let others = self.shared.processes().filter(|(index, _)| *index != own);
        let resident =
            |process: &Process<'_>| process.counter(Counter::FramesResident).load(Relaxed);
        others.map(|(_, process)| resident(&process)).sum()
    }

    /// Takes back what this process had before it was suspended, as far as no other has that, as
    /// its supervisor is gone. Answers its budget. `None` if the supervisor is there.
    pub fn go_on_alone(&self) -> Option<u32> {
        if self.control.is_some() {
            return None;
        }
        self.shared.end_division();
        let record = self.process();
        let left = record.budget().max(FLOOR_FRAMES as u32);
        record.set_budget(left);
        let needed = u32::try_from(record.needed()).unwrap_or(u32::MAX);
        record.take_unassigned(1, needed.saturating_sub(left));
        Some(record.budget())
    }

    /// Takes leave of the supervisor.
    pub fn leave(&self) {
        if let Some(control) = &self.control {
            control::leave(control.as_fd());
        }
    }

    /// Forgets the supervisor: the record is for others from here on.
    pub fn give_record_up(&mut self) {
        self.control = None;
    }

    /// Removes the folder of a run whose supervisor was killed, if its last process ends: until
    /// then what others execute loads this library from there. An engine that is a process asks
    /// when its own program has ended: the last one of several that end at once finds none alive.
    pub fn remove_folder_of_the_dead(&self, socket: Option<&Path>) {
        let Some(socket) = socket else {
            return;
        };
        let own = self.process().pid();
        let is_over = |pid: u32| program::is_over(pid) || (pid == own && !program::is_apart());
        let mut all = self.shared.processes();
        if self.control.is_none() && all.all(|(_, it)| is_over(it.pid())) {
            control::remove_deserted(socket);
        }
    }

    /// The files to sleep on: the program's faults and changes, which come by `program`, requests
    /// of its threads, and the supervisor, if there is one. They can be polled from now on, as none
    /// of them is one that [waits](blocking_read).
    pub fn wakers(&self, program: RawFd) -> [Option<RawFd>; LISTENED_MAX] {
        blocking_read::end();
        let control = self.control.as_ref().map(AsRawFd::as_raw_fd);
        [Some(program), Some(self.doorbell()), control]
    }

    /// The number of the doorbell.
    pub fn doorbell(&self) -> RawFd {
        self.doorbell.as_raw_fd()
    }

    /// Waits for messages of the `program` until `due` at most, where it is `now`. `None` if the
    /// [files](Self::wakers) are to be polled.
    pub fn await_messages(
        &mut self,
        program: &Uffd,
        into: &mut Messages,
        (now, due): (Time, Time),
    ) -> Option<Waited> {
        let control = self.control.as_ref().map(AsFd::as_fd);
        self.reading.wait((program, control), into, (now.0, due.0))
    }

    /// Takes in that the doorbell was rung.
    pub fn take_rings(&self) {
        signal::take_rings(&self.doorbell);
    }
}

// Forks: the record of a child, and the line of that.
impl Line {
    /// Claims a record for a child. If all are taken, waits for processes to end, for a while.
    pub fn claim_child(&self) -> Option<ProcessIndex> {
        let end = now().after_ns(CLAIM_NS_MAX);
        loop {
            if let Some(child) = self.shared.claim_child(self.record()) {
                return Some(child);
            }
            if self.control.is_none() {
                self.release_dead();
            }
            if now() > end {
                return None;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Without a supervisor no other process gives back what dead processes had.
    fn release_dead(&self) {
        let records = self.shared.processes();
        let dead = records.filter(|(_, process)| {
            let pid = rustix::process::Pid::from_raw(process.pid() as i32);
            let is_running = process.state() == State::Running;
            let alive = pid.map(rustix::process::test_kill_process);
            is_running && alive == Some(Err(Errno::SRCH))
        });
        for (index, _) in dead {
            self.shared.release(index);
        }
    }

    /// Begins the line of a forked child, on its engine's thread. Answers its parent.
    pub fn begin_in_child(&mut self) -> Parent {
        let parent = self.own;
        self.own = Own {
            process: pid(),
            thread: thread::current(),
            has_store: false,
            ..parent
        };
        // The numbers of these files mean nothing in this process: they are not closed.
        std::mem::forget(self.control.take());
        std::mem::forget(self.folder.take());
        self.words = Words::default();
        Parent {
            process: parent.process,
            engine: parent.thread,
            swap_file: parent.swap_file,
        }
    }

    /// Takes the record that its parent has claimed for it.
    pub fn take_record(&self, record: ProcessIndex) {
        self.record.store(record.0, Relaxed);
    }

    /// Opens a doorbell of the child's own.
    pub fn reopen_doorbell(&mut self, mode: Mode) -> Result<(), Trouble> {
        let doorbell = open_doorbell(mode)?;
        std::mem::forget(std::mem::replace(&mut self.doorbell, doorbell));
        self.reading = BlockingRead::default();
        Ok(())
    }

    /// Introduces a forked child to the supervisor, by its `socket`. If it `is_at_socket`, the
    /// working folder of this thread is the socket's, which can't be reached by its path.
    pub fn greet_from_child(
        &mut self,
        socket: Option<&Path>,
        parent: u32,
        is_at_socket: bool,
    ) -> Result<Option<OwnedFd>, Trouble> {
        let Some(mut socket) = socket else {
            return Ok(None);
        };
        if is_at_socket {
            self.folder = open_folder(Path::new(".")).ok();
            socket = socket.file_name().map_or(socket, Path::new);
        }
        let hello = Hello {
            pid: pid(),
            parent,
            record: Some(self.record()),
        };
        let greeted = greet(socket, hello).map_err(no_supervisor);
        greeted.map(Some)
    }

    /// Waits for the supervisor's answer. The connection stays
    /// open in any case: as long as it is, the child's record, with its share in the slots, is kept
    /// for it.
    pub fn take_grant_in_child(&mut self, connection: OwnedFd) -> Result<Again, Trouble> {
        let connection = self.control.insert(connection);
        let (grant, files) = control::await_grant(connection.as_fd()).map_err(no_supervisor)?;
        let GrantFiles {
            shared,
            swap,
            decisions,
            calls,
        } = files.ok_or_else(refused)?;
        drop(shared);
        Ok(Again {
            swap,
            decisions,
            calls,
            is_near: program::is_in_namespace(grant.namespace),
        })
    }

    /// Takes in the number of the child's swap file.
    pub fn note_swap_file(&mut self, number: i32) {
        self.own.swap_file = number;
    }

    /// Takes in that the child's store can be read.
    pub fn note_store(&mut self) {
        self.own.has_store = true;
    }

    /// Returns true if the store can be read.
    pub fn has_store(&self) -> bool {
        self.own.has_store
    }

    /// Sends the folder of the supervisor's `control` socket to a thread of the program, by a
    /// `socket` of that.
    pub fn lend_folder(&self, control: Option<&Path>, socket: RawFd) -> Result<(), Errno> {
        let opened = match &self.folder {
            Some(_) => None,
            None => {
                let control = control.ok_or(Errno::NOENT)?;
                Some(open_folder(control.parent().ok_or(Errno::NOENT)?)?)
            }
        };
        let folder = opened.as_ref().or(self.folder.as_ref());
        let folder = folder.ok_or(Errno::NOENT)?.as_fd();
        files::send_one(&files::copy_of_programs(socket)?, folder)
    }
}

impl Parent {
    /// Opens the parent's swap file, which has no name, by way of its engine's file table.
    pub fn reopen_swap(&self) -> Result<OwnedFd, Trouble> {
        use rustix::fs::{Mode, OFlags};
        let Parent {
            process,
            engine,
            swap_file,
        } = self;
        let path = match program::is_engine() {
            true => format!("/proc/{engine}/fd/{swap_file}"),
            false => format!("/proc/{process}/task/{engine}/fd/{swap_file}"),
        };
        let base = OFlags::RDWR | OFlags::CLOEXEC;
        let direct = rustix::fs::open(path.as_str(), base | OFlags::DIRECT, Mode::empty());
        let file = match direct {
            Err(Errno::INVAL) => rustix::fs::open(path.as_str(), base, Mode::empty()),
            other => other,
        };
        file.map_err(call("opening the parent's swap file"))
    }
}

impl Lent {
    /// Asks the supervisor at `socket`. `None`: leave the program alone.
    pub fn ask(socket: &Path) -> Result<Option<Lent>, Trouble> {
        let hello = Hello {
            pid: pid(),
            parent: program::parent(),
            record: None,
        };
        let connection = greet(socket, hello).map_err(no_supervisor)?;
        let granted = control::await_grant(connection.as_fd());
        let (grant, files) = granted.map_err(no_supervisor)?;
        let (Some(record), Some(files)) = (grant.record, files) else {
            return Ok(None);
        };
        let shared = Shared::open(files.shared).map_err(no_supervisor)?;
        let Grant {
            frames_max,
            frames_budget: budget,
            ..
        } = grant;
        Ok(Some(Lent {
            shared: Arc::new(shared),
            record,
            frames_max,
            budget,
            swap: files.swap,
            control: Some(connection),
            decisions: files.decisions,
            calls: files.calls,
            is_near: program::is_in_namespace(grant.namespace),
        }))
    }
}

/// The doorbell of the calling thread.
fn open_doorbell(mode: Mode) -> Result<OwnedFd, Trouble> {
    let opened = match mode.is_rung_by_timer() {
        true => signal::timer(),
        false => signal::doorbell(),
    };
    opened.map_err(call("making a doorbell"))
}

/// Introduces the program, which has connected itself if its engine is a process of its own.
fn greet(socket: &Path, hello: Hello) -> std::io::Result<OwnedFd> {
    if !program::is_engine() {
        return control::greet(socket, hello);
    }
    let connection = program::take_connection()?;
    control::introduce(connection.as_fd(), hello)?;
    Ok(connection)
}

fn refused() -> Trouble {
    Trouble::NoSupervisor {
        what: "it refuses a child of a program that it manages".into(),
        is_gone: false,
    }
}

fn open_folder(path: &Path) -> Result<OwnedFd, Errno> {
    use rustix::fs::{Mode, OFlags};
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty())
}
