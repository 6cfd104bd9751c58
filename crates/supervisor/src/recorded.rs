//! The members of a live recording: processes whose engines write logs.
//!
//! An engine says hello when its program starts or has been forked, and is given its log, the
//! shared memory and a store. No process gets less memory than there is: frames are room here, not
//! a budget. The store is in memory, too, for programs that need more room than was asked for.
//!
//! What is left when the recording ends keeps its engine, without a supervisor.

use std::ffi::OsString;
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use rustix::fs::MemfdFlags;
use tidemark_core::id::PAGE_BYTES;
use tidemark_live::control::{self, Grant, Hello, Opening};
use tidemark_live::engine::{Kept, Windows};
use tidemark_live::reference_log;
use tidemark_live::shared::{Counter, ProcessIndex, Shared};
use tidemark_log::Log;
use tidemark_recording::Birth;
use tidemark_recording::spool::{Spool, VARIABLE};
use tidemark_results::{Refusal, refuse};

use crate::connection::{self, Connection};
use crate::entrance::{Arrival, Entrance};
use crate::peers::Peer;
use crate::program::plain;
use crate::room;
use crate::strangers::parent_of;
use crate::swap::wait_for_transfers;

/// The time that is left to those who have come, when the recording ends, to say hello.
const HELLO_LIMIT: Duration = Duration::from_secs(1);
/// The pause between two looks for their hello.
const HELLO_PAUSE: Duration = Duration::from_millis(5);
/// The least store. It takes no memory before it is used.
const STORE_BYTES_MIN: u64 = 1 << 30;
/// The policy for what does not fit: only the recording watches how pages are used.
const POLICY: &str = "fifo";

/// The processes that are recorded.
pub struct Members {
    shared: Shared,
    store: OwnedFd,
    entrance: Entrance,
    members: Vec<Member>,
    /// Forked children that could not be taken in, and need their records until they have their
    /// pages.
    refused: Vec<(Connection, ProcessIndex)>,
    tally: Tally,
}

struct Member {
    peer: Peer,
    /// The number that it has for itself: another in a namespace of processes of its own.
    inner_pid: u32,
    connection: Connection,
    record: ProcessIndex,
}

/// The counts of the engines, over all processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// The most memory that was resident at a time and not managed, in bytes.
    pub unmanaged_bytes: u64,
    /// The time that threads waited for pages, in nanoseconds, of processes that have ended.
    pub stall_ns: u64,
    /// Pages that were read back because there was not room for all.
    pub page_ins: u64,
    /// Processes that could not be taken in.
    pub refused: u64,
}

/// A process that has just come.
pub struct Newcomer {
    /// Its number in the system.
    pub pid: u32,
    /// The way it began.
    pub birth: Birth,
    /// Its log.
    pub log: Log,
}

/// The environment in which a program's engine writes a log: with room for `room_bytes`, its pages
/// sampled in `windows`, its log in `spool`, and whom to say hello to at `socket`.
pub fn environment(
    room_bytes: u64,
    windows: Windows,
    spool: &Spool,
    socket: PathBuf,
) -> Vec<(&'static str, OsString)> {
    let regions = match windows.kept {
        Kept::Regions => Some((control::REGIONS, "1".into())),
        Kept::Pages => None,
    };
    let all = [
        (control::CONTROL, socket.into()),
        (control::MEMORY, room_bytes.to_string().into()),
        (control::POLICY, POLICY.into()),
        (control::MODE, control::MODE_THREAD.into()),
        (control::WINDOW, windows.first_ns.to_string().into()),
        (control::WINDOW_MOST, windows.most_ns.to_string().into()),
        (VARIABLE, spool.path.clone().into()),
    ];
    all.into_iter().chain(regions).collect()
}

impl Members {
    /// Makes what engines are given, each with room for `room_bytes`: none yet. Engines will
    /// connect to `listener`.
    pub fn open(room_bytes: u64, listener: UnixListener) -> Result<Members, Refusal> {
        let store_bytes = room::physical_memory_bytes().max(STORE_BYTES_MIN);
        let slots = (store_bytes / PAGE_BYTES).min(u64::from(u32::MAX)) as u32;
        let shared = match Shared::create(slots, room_bytes / PAGE_BYTES) {
            Ok(shared) => shared,
            Err(error) => refuse!("shared memory can't be made: {}", plain(&error)),
        };
        let store = rustix::fs::memfd_create("tidemark-store", MemfdFlags::CLOEXEC)
            // What follows the slots is never written to.
            .and_then(|file| {
                rustix::fs::ftruncate(&file, (u64::from(slots) + 1) * PAGE_BYTES).map(|()| file)
            });
        match store {
            Ok(store) => Ok(Members::new(shared, store, listener)),
            Err(error) => refuse!("a store in memory can't be made: {}", plain(&error.into())),
        }
    }

    fn new(shared: Shared, store: OwnedFd, listener: UnixListener) -> Members {
        Members {
            shared,
            store,
            entrance: Entrance::new(listener),
            members: Vec::new(),
            refused: Vec::new(),
            tally: Tally::default(),
        }
    }

    /// The files of which one is readable when there is a process to [attend](Self::attend) to.
    pub fn doors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.entrance.files()
    }

    /// Takes in who has come, and lets go of who has ended.
    pub fn attend(&mut self) -> Vec<Newcomer> {
        self.note_levels();
        // An engine whose program has executed another may be there for a moment yet, and needs its
        // record until it has gone.
        for place in (0..self.members.len()).rev() {
            if self.members[place].connection.hear() {
                self.end_abandoned(place);
                self.remove(place);
            }
        }
        let shared = &self.shared;
        self.refused.retain_mut(|(connection, index)| {
            let is_over = connection.hear();
            if is_over {
                shared.release(*index);
            }
            !is_over
        });
        let is_member = |pid| self.members.iter().any(|member| member.peer.pid == pid);
        let arrivals = self.entrance.admit(is_member).into_iter();
        arrivals
            .filter_map(|arrival| self.take_in(arrival))
            .collect()
    }

    /// Takes in, at the end, the processes that have come, and lets go of those that have ended.
    /// Waits a while for those that have said nothing yet.
    pub fn attend_at_last(&mut self) -> Vec<Newcomer> {
        let end = Instant::now() + HELLO_LIMIT;
        let mut newcomers = self.attend();
        while self.entrance.has_silent() && Instant::now() < end {
            std::thread::sleep(HELLO_PAUSE);
            newcomers.extend(self.attend());
        }
        newcomers
    }

    /// The counts of all processes, living and ended.
    pub fn tally(&self) -> Tally {
        let mut tally = self.tally;
        for member in &self.members {
            self.add_up(member.record, &mut tally);
        }
        tally
    }

    fn take_in(&mut self, arrival: Arrival) -> Option<Newcomer> {
        let (connection, peer) = (arrival.connection, arrival.peer);
        // Programs that are executed say hello by themselves.
        let Opening::Hello(hello) = arrival.opening else {
            return None;
        };
        let pid = peer.pid;
        let parent = self.find_parent(pid, hello.parent);
        let newcomer = match peer.may_share(hello.record.is_some()) {
            true => self.admit(&connection, hello),
            false => None,
        };
        match newcomer {
            Some((record, log)) => {
                self.members.push(Member {
                    peer,
                    inner_pid: hello.pid,
                    connection: Connection::new(connection, None),
                    record,
                });
                let birth = match hello.record {
                    Some(_) => Birth::Forked(parent),
                    None => Birth::Spawned(parent),
                };
                Some(Newcomer { pid, birth, log })
            }
            None => {
                self.tally.refused += 1;
                control::refuse(connection.as_fd());
                let index = hello.record.filter(|&index| self.shared.is_reserved(index));
                let connection = Connection::new(connection, None);
                self.refused.extend(index.map(|index| (connection, index)));
                None
            }
        }
    }

    /// The parent of process `pid`, which calls it `inner_parent`: its number here. That may have
    /// ended by now, or never have been here.
    fn find_parent(&self, pid: u32, inner_parent: u32) -> u32 {
        let is_member = |parent: &u32| self.members.iter().any(|member| member.peer.pid == *parent);
        let told = |member: &&Member| member.inner_pid == inner_parent;
        let known = parent_of(pid).filter(is_member);
        let named = || {
            self.members
                .iter()
                .rfind(told)
                .map(|member| member.peer.pid)
        };
        known.or_else(named).unwrap_or(inner_parent)
    }

    /// Answers a hello. `None` if the process can't be taken in.
    fn admit(&self, connection: &OwnedFd, hello: Hello) -> Option<(ProcessIndex, Log)> {
        let record = match hello.record {
            // A forked child's record was claimed by its parent, and waits for it.
            Some(index) => self.shared.is_reserved(index).then_some(index)?,
            None => self.shared.claim()?,
        };
        let log = self.answer(connection, record);
        if log.is_none() && hello.record.is_none() {
            self.shared.release(record);
        }
        log.map(|log| (record, log))
    }

    /// Gives a process its record and a log. `None` if there can't be one, or the process has gone.
    fn answer(&self, connection: &OwnedFd, record: ProcessIndex) -> Option<Log> {
        let file = reference_log::create_file().ok()?;
        let log = Log::new(File::from(file.try_clone().ok()?)).ok()?;
        let frames = self.shared.frames_total() as u32;
        self.shared.process(record).set_budget(frames);
        let grant = Grant {
            record: Some(record),
            frames_budget: frames,
            frames_max: frames,
            namespace: 0,
        };
        let files = [self.shared.as_fd(), self.store.as_fd(), file.as_fd()];
        control::answer(connection.as_fd(), grant, &files).ok()?;
        Some(log)
    }

    /// Ends the program at `place`, whose connection is over, if it still needs its engine.
    fn end_abandoned(&self, place: usize) {
        let member = &self.members[place];
        if member.connection.end_abandoned(&member.peer) {
            eprintln!(
                "tidemark: {}",
                connection::tell_of_abandoned(member.peer.pid)
            );
        }
    }

    fn remove(&mut self, place: usize) {
        let member = self.members.remove(place);
        let mut tally = self.tally;
        self.add_up(member.record, &mut tally);
        self.tally = tally;
        let process = self.shared.process(member.record);
        if process.counter(Counter::StoresUnderWay).load(Relaxed) > 0 {
            // Its slots go to no other process until its writes there have ended.
            wait_for_transfers(&self.store);
        }
        self.shared.release(member.record);
    }

    fn add_up(&self, record: ProcessIndex, tally: &mut Tally) {
        let process = self.shared.process(record);
        let count = |counter| process.counter(counter).load(Relaxed);
        tally.stall_ns += count(Counter::StallNs);
        tally.page_ins += count(Counter::PageIns);
    }

    /// Takes note of how much memory is not managed now.
    fn note_levels(&mut self) {
        let of = |member: &Member| {
            let process = self.shared.process(member.record);
            process.counter(Counter::UnmanagedBytesNow).load(Relaxed)
        };
        let sum = self.members.iter().map(of).sum();
        self.tally.unmanaged_bytes = self.tally.unmanaged_bytes.max(sum);
    }
}
