//! The requests of program threads to the engine: a fixed table of requests, and a doorbell.
//!
//! The table is static memory of this library, never managed, so that the engine can read it at
//! any time; nothing it reads lies on the asking thread's stack, which may be managed memory.
//!
//! # Invariants
//! 1. A slot goes free -> claimed -> posted -> answered -> free. The asking thread takes every
//!    step but the one to answered.
//! 2. The engine answers every posted request, or the asking thread gives up on its time limit.
//!    The engine frees a slot that was given up on, or that has no waiting thread.

use std::os::fd::RawFd;
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use crate::sys::{Errno, PAGE, futex, program, signal};

const SLOTS: usize = 64;

const FREE: u32 = 0;
const CLAIMED: u32 = 1;
const POSTED: u32 = 2;
const ANSWERED: u32 = 3;
const GIVEN_UP: u32 = 4;

/// Marks the kind of a request without a waiting thread.
const UNANSWERED: u32 = 1 << 31;
/// Marks one that is answered later.
const HELD: u32 = 1 << 30;

/// In the kind of a [`FileMapping`], beside the rights: the mapping is shared.
pub const SHARED: u32 = 1 << 8;
/// Likewise: the program has chosen its address, and has not asked for its pages to be there at
/// once (`MAP_POPULATE`), which would be those of the file at that moment.
pub const PLACED: u32 = 1 << 9;
/// The answer that something was a managed file's, and went well.
pub const TAKEN: u64 = 1;

/// The least size of a copy of a file that is managed without being named, in bytes.
const COPY_LEAST: usize = 1 << 20;

/// Returns true if a mapping of this many bytes is private, to be written to, [placed](PLACED), and
/// not small. Its `kind` is that of a [`FileMapping`].
pub fn is_copy(bytes: usize, kind: u32) -> bool {
    let write = libc::PROT_WRITE as u32;
    let what = kind & (PLACED | SHARED | write | libc::PROT_EXEC as u32);
    what == PLACED | write && bytes >= COPY_LEAST
}

/// A mapping of a file that the program has just made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FileMapping {
    /// First address.
    pub start: usize,
    /// Size in bytes.
    pub bytes: usize,
    /// The number of the file, in the program's table.
    pub file: RawFd,
    /// The page of the file that is mapped first.
    pub first: u32,
    /// The rights that were asked for, as `mmap` takes them, with [`SHARED`] and [`PLACED`].
    pub kind: u32,
}

/// The reason for which modified pages are to go to their file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WriteBack {
    /// The range is about to be something else. If it can't be written, the program is ended.
    Leave = 0,
    /// The program asks for it. An error is the answer.
    Start = 1,
    /// The program asks for it to be on the disk.
    Synchronize = 2,
}

/// Something asked of the engine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ask {
    /// A private anonymous mapping has just been made: take it over.
    Map {
        /// First address.
        start: usize,
        /// Size in bytes.
        bytes: usize,
    },
    /// A mapping is a stack, or the like: leave it alone.
    Leave {
        /// First address.
        start: usize,
        /// Size in bytes.
        bytes: usize,
    },
    /// The program locks a range in memory: let go of what is locked there. Answers one if more may
    /// be locked than the budget holds; to ask again when it is filled has that told.
    Lock {
        /// First address.
        start: usize,
        /// Size in bytes.
        bytes: usize,
    },
    /// The program has said that a range is to read as zeros in forked children.
    Wipe {
        /// First address.
        start: usize,
        /// Size in bytes.
        bytes: usize,
    },
    /// The program has said that a range is to be copied to forked children again.
    Keep {
        /// First address.
        start: usize,
        /// Size in bytes.
        bytes: usize,
    },
    /// A private anonymous mapping has been made, or has grown: take over what of it can be
    /// managed.
    Look {
        /// First address.
        start: usize,
        /// Size in bytes.
        bytes: usize,
    },
    /// A fork is about to happen: come to rest until [`Requests::thaw`]. Answers the child's record
    /// plus one; zero: there is none for it.
    Freeze {
        /// The kernel's number of the forking thread.
        thread: u32,
    },
    /// A fork is about to happen, and its child can't find the supervisor's socket by its path:
    /// send the folder that it is in. Answers zero if that can't be.
    LendFolder {
        /// The number of the socket to send to, in the program's table.
        socket: RawFd,
    },
    /// The fork failed: the child's record is not needed.
    Abandon {
        /// The answer to [`Ask::Freeze`].
        child: u64,
    },
    /// The program has just mapped a file: manage the mapping, if it is one of those to manage.
    /// Answers one if it is.
    MapFile(FileMapping),
    /// The program gives advice about a range in which files may be. Answers zero if there is none
    /// that is managed, and [`TAKEN`] or an error number beyond that otherwise.
    AdviseFile {
        /// First address.
        start: usize,
        /// Size in bytes.
        bytes: usize,
        /// The advice, as `madvise` takes it.
        advice: i32,
    },
    /// The program changes its rights to a range in which files may be. Answers as
    /// [`AdviseFile`](Self::AdviseFile): if there are some, all of the range has been seen to.
    ProtectFile {
        /// First address.
        start: usize,
        /// Size in bytes.
        bytes: usize,
        /// The rights, as `mprotect` takes them.
        rights: u32,
    },
    /// `mremap` has made a mapping larger that may be a file's: the rest is to be the file's, too.
    /// Answers zero if it is none.
    GrowFile {
        /// First address.
        start: usize,
        /// Its former length, in bytes.
        bytes_before: usize,
        /// Its length now, in bytes.
        bytes: usize,
    },
    /// The program's changes of shared files in a range are to go to them. They are on their disks
    /// by the answer if the caller waits for that. Answers as [`AdviseFile`](Self::AdviseFile).
    WriteBack {
        /// First address.
        start: usize,
        /// Size in bytes.
        bytes: usize,
        /// The reason.
        why: WriteBack,
    },
    /// A range of shared files is to be the kernel's for good: the program is about to do what
    /// can't be kept right otherwise.
    GiveFileUp {
        /// First address.
        start: usize,
        /// Size in bytes.
        bytes: usize,
    },
    /// The program is about to read or to write a file by a descriptor that it may have mapped.
    UseFile {
        /// The file's device.
        device: u64,
        /// Its number there.
        number: u64,
        /// True if the program changes it.
        is_write: bool,
    },
    /// The program ends: write down the final state.
    Finish,
    /// The program is about to leave its memory: write what is logged.
    CatchUp,
    /// The program looks at the processors that its threads may use: confine none for now.
    Release,
}

struct Slot {
    state: AtomicU32,
    kind: AtomicU32,
    first: AtomicU64,
    second: AtomicU64,
    third: AtomicU64,
    answer: AtomicU64,
}

impl Slot {
    const fn new() -> Slot {
        Slot {
            state: AtomicU32::new(FREE),
            kind: AtomicU32::new(0),
            first: AtomicU64::new(0),
            second: AtomicU64::new(0),
            third: AtomicU64::new(0),
            answer: AtomicU64::new(0),
        }
    }
}

/// The table of requests, and whose doorbell to ring.
pub struct Requests {
    slots: [Slot; SLOTS],
    /// The engine's thread; zero while there is none.
    engine: AtomicU32,
    /// The number of the timer that is its doorbell; less than zero: a signal is.
    timer: AtomicI32,
    /// Changed to have the engine called by its helper.
    call: AtomicU32,
    /// Changed whenever there is something new in a slot for the engine.
    news: AtomicU32,
    /// The value of `news` when the engine last found nothing: it looks again when it has changed.
    /// The slots are many, and a fault comes every few microseconds.
    news_seen: AtomicU32,
    /// The process it belongs to. A child that was forked by a system call of its own has a copy
    /// of this table, and no engine.
    process: AtomicU32,
    /// One if the fork that the engine rests for is over, or did not happen. No request: all places
    /// may be taken by threads that wait for the engine.
    is_thawing: AtomicU32,
}

/// A request that a thread has made, and whose answer it is to [wait for](Requests::await_answer).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Asked(pub usize);

/// A request on its way through the engine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Taken(usize);

impl Requests {
    /// An empty table.
    pub const fn new() -> Requests {
        Requests {
            slots: [const { Slot::new() }; SLOTS],
            engine: AtomicU32::new(0),
            timer: AtomicI32::new(-1),
            call: AtomicU32::new(0),
            news: AtomicU32::new(0),
            news_seen: AtomicU32::new(0),
            process: AtomicU32::new(0),
            is_thawing: AtomicU32::new(0),
        }
    }

    /// Names the thread that answers from now on, and the timer that is its doorbell, if one is.
    /// Zero: no thread answers.
    pub fn set_engine(&self, thread: u32, timer: Option<RawFd>) {
        self.timer.store(timer.unwrap_or(-1), Ordering::Release);
        self.process.store(program::number(), Ordering::Release);
        self.engine.store(thread, Ordering::Release);
    }

    /// Returns true if there is an engine that answers.
    pub fn has_engine(&self) -> bool {
        self.engine.load(Ordering::Acquire) != 0 && self.is_here()
    }

    /// Returns true if this is the process whose engine was named, if one was.
    pub fn is_here(&self) -> bool {
        self.process.load(Ordering::Acquire) == own_process()
    }

    /// The thread that answers; zero: none.
    pub fn engine(&self) -> u32 {
        self.engine.load(Ordering::Acquire)
    }

    /// Asks, and waits for the answer, at most for `limit`. `None` if there is no engine, no free
    /// slot or no answer in time.
    pub fn ask(&self, ask: Ask, limit: Duration) -> Option<u64> {
        self.await_answer(self.begin(ask)?, limit)
    }

    /// Asks without waiting for the answer yet. `None` if there is no engine or no free slot.
    pub fn begin(&self, ask: Ask) -> Option<Asked> {
        self.post(ask, 0).map(Asked)
    }

    /// Waits for the answer to what was asked, at most for `limit`. `None` if there is none in
    /// time.
    pub fn await_answer(&self, asked: Asked, limit: Duration) -> Option<u64> {
        let slot = &self.slots[asked.0];
        let mut waits_left = limit.as_millis().div_ceil(10);
        while slot.state.load(Ordering::Acquire) != ANSWERED {
            if waits_left == 0 {
                let gave_up = slot.state.compare_exchange(
                    POSTED,
                    GIVEN_UP,
                    Ordering::AcqRel,
                    Ordering::Relaxed,
                );
                if gave_up.is_ok() {
                    self.news.fetch_add(1, Ordering::Release);
                    return None;
                }
                break;
            }
            waits_left -= 1;
            futex::wait(&slot.state, POSTED, Duration::from_millis(10));
        }
        let answer = slot.answer.load(Ordering::Relaxed);
        slot.state.store(FREE, Ordering::Release);
        Some(answer)
    }

    /// Tells the engine something without waiting for it. False if there is no engine, or no free
    /// slot.
    pub fn tell(&self, ask: Ask) -> bool {
        self.post(ask, UNANSWERED).is_some()
    }

    /// Posts a request and rings the doorbell. Answers the number of the slot; `None` if there is
    /// no engine that hears it, or no free slot.
    fn post(&self, ask: Ask, mark: u32) -> Option<usize> {
        let engine = self.engine.load(Ordering::Acquire);
        if engine == 0 || !self.is_here() {
            return None;
        }
        let number = self.slots.iter().position(|slot| {
            slot.state
                .compare_exchange(FREE, CLAIMED, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok()
        })?;
        let slot = &self.slots[number];
        let (kind, [first, second, third]) = pack(ask);
        slot.kind.store(kind | mark, Ordering::Relaxed);
        slot.first.store(first, Ordering::Relaxed);
        slot.second.store(second, Ordering::Relaxed);
        slot.third.store(third, Ordering::Relaxed);
        self.show(slot, POSTED);
        let is_heard = self.ring(engine);
        if !is_heard {
            self.show(slot, GIVEN_UP);
        }
        is_heard.then_some(number)
    }

    /// Sets a state that the engine is to see.
    fn show(&self, slot: &Slot, state: u32) {
        slot.state.store(state, Ordering::Release);
        self.news.fetch_add(1, Ordering::Release);
    }

    /// Ends the rest that [`Ask::Freeze`] began.
    pub fn thaw(&self) {
        self.is_thawing.store(1, Ordering::Release);
        self.alert();
    }

    /// Returns true if the rest is over, and forgets it. Engine only.
    pub fn take_thaw(&self) -> bool {
        self.is_thawing.swap(0, Ordering::AcqRel) != 0
    }

    /// Has the engine look around now, without asking it for anything.
    pub fn alert(&self) {
        self.ring(self.engine());
    }

    /// The word that changes when the engine is to be [alerted](Self::alert), by one who may.
    pub fn call(&self) -> &AtomicU32 {
        &self.call
    }

    /// Rings the doorbell. False if no engine listens.
    fn ring(&self, engine: u32) -> bool {
        match self.timer.load(Ordering::Acquire) {
            ..0 => match signal::ring(engine) {
                // Another user by now than its engine is.
                Err(Errno::PERM) => {
                    self.call.fetch_add(1, Ordering::AcqRel);
                    futex::wake(&self.call, 1);
                    true
                }
                rung => rung.is_ok(),
            },
            timer => {
                // An engine whose timer the program has closed looks without being asked.
                let _ = signal::ring_timer(timer);
                true
            }
        }
    }

    /// Takes the next posted request. Engine only.
    pub fn take(&self) -> Option<(Taken, Ask)> {
        let news = self.news.load(Ordering::Acquire);
        if news == self.news_seen.load(Ordering::Relaxed) {
            return None;
        }
        let found = self.find();
        if found.is_none() {
            self.news_seen.store(news, Ordering::Relaxed);
        }
        found
    }

    fn find(&self) -> Option<(Taken, Ask)> {
        for (number, slot) in self.slots.iter().enumerate() {
            match slot.state.load(Ordering::Acquire) {
                POSTED => {
                    let kind = slot.kind.load(Ordering::Relaxed) & !UNANSWERED;
                    if kind & HELD == 0 {
                        let words = [&slot.first, &slot.second, &slot.third];
                        let ask = unpack(kind, words.map(|word| word.load(Ordering::Relaxed)));
                        return Some((Taken(number), ask));
                    }
                }
                // One that is held is freed by its answer.
                GIVEN_UP if slot.kind.load(Ordering::Relaxed) & HELD == 0 => {
                    slot.state.store(FREE, Ordering::Release);
                }
                _ => {}
            }
        }
        None
    }

    /// Keeps a request that was taken from being taken again before it is answered. Engine only.
    pub fn hold(&self, taken: Taken) {
        self.slots[taken.0].kind.fetch_or(HELD, Ordering::Relaxed);
    }

    /// Answers a request. Engine only.
    pub fn answer(&self, taken: Taken, answer: u64) {
        let slot = &self.slots[taken.0];
        if slot.kind.load(Ordering::Relaxed) & UNANSWERED != 0 {
            return slot.state.store(FREE, Ordering::Release);
        }
        slot.answer.store(answer, Ordering::Relaxed);
        let posted =
            slot.state
                .compare_exchange(POSTED, ANSWERED, Ordering::AcqRel, Ordering::Relaxed);
        match posted {
            Ok(_) => futex::wake(&slot.state, 1),
            // Given up on meanwhile: the answer is not read.
            Err(_) => slot.state.store(FREE, Ordering::Release),
        }
    }

    /// Forgets all requests: their threads do not exist in a forked child.
    pub fn clear(&self) {
        self.is_thawing.store(0, Ordering::Release);
        self.slots
            .iter()
            .for_each(|slot| slot.state.store(FREE, Ordering::Release));
    }
}

impl Default for Requests {
    fn default() -> Self {
        Requests::new()
    }
}

fn own_process() -> u32 {
    rustix::process::getpid()
        .as_raw_nonzero()
        .get()
        .unsigned_abs()
}

fn pack(ask: Ask) -> (u32, [u64; 3]) {
    let range = |start: usize, bytes: usize| [start as u64, bytes as u64, 0];
    let about = |start: usize, bytes: usize, third| [start as u64, bytes as u64, third];
    match ask {
        Ask::Map { start, bytes } => (1, range(start, bytes)),
        Ask::Freeze { thread } => (2, [thread.into(), 0, 0]),
        Ask::Look { start, bytes } => (3, range(start, bytes)),
        Ask::Abandon { child } => (4, [child, 0, 0]),
        Ask::Finish => (5, [0; 3]),
        Ask::Leave { start, bytes } => (6, range(start, bytes)),
        Ask::CatchUp => (7, [0; 3]),
        Ask::Lock { start, bytes } => (8, range(start, bytes)),
        // Addresses of mappings have zeros where the kind is kept.
        Ask::MapFile(made) => {
            let place = u64::from(made.first) << 32 | u64::from(made.file as u32);
            (9, about(made.start | made.kind as usize, made.bytes, place))
        }
        Ask::AdviseFile {
            start,
            bytes,
            advice,
        } => (10, about(start, bytes, advice as u64)),
        Ask::ProtectFile {
            start,
            bytes,
            rights,
        } => (11, about(start, bytes, rights.into())),
        Ask::Wipe { start, bytes } => (12, range(start, bytes)),
        Ask::Keep { start, bytes } => (13, range(start, bytes)),
        Ask::LendFolder { socket } => (14, [socket as u64, 0, 0]),
        Ask::Release => (15, [0; 3]),
        Ask::GrowFile {
            start,
            bytes_before,
            bytes,
        } => (16, about(start, bytes_before, bytes as u64)),
        Ask::WriteBack { start, bytes, why } => (17, about(start, bytes, why as u64)),
        Ask::GiveFileUp { start, bytes } => (18, range(start, bytes)),
        Ask::UseFile {
            device,
            number,
            is_write,
        } => (19, [device, number, is_write.into()]),
    }
}

fn unpack(kind: u32, [first, second, third]: [u64; 3]) -> Ask {
    let (start, bytes) = (first as usize, second as usize);
    match kind {
        1 => Ask::Map { start, bytes },
        2 => Ask::Freeze {
            thread: first as u32,
        },
        3 => Ask::Look { start, bytes },
        4 => Ask::Abandon { child: first },
        5 => Ask::Finish,
        6 => Ask::Leave { start, bytes },
        7 => Ask::CatchUp,
        8 => Ask::Lock { start, bytes },
        9 => Ask::MapFile(FileMapping {
            start: start & !(PAGE - 1),
            bytes,
            file: third as u32 as RawFd,
            first: (third >> 32) as u32,
            kind: (start & (PAGE - 1)) as u32,
        }),
        10 => Ask::AdviseFile {
            start,
            bytes,
            advice: third as i32,
        },
        11 => Ask::ProtectFile {
            start,
            bytes,
            rights: third as u32,
        },
        12 => Ask::Wipe { start, bytes },
        13 => Ask::Keep { start, bytes },
        14 => Ask::LendFolder {
            socket: first as RawFd,
        },
        15 => Ask::Release,
        16 => Ask::GrowFile {
            start,
            bytes_before: bytes,
            bytes: third as usize,
        },
        17 => Ask::WriteBack {
            start,
            bytes,
            why: match third {
                0 => WriteBack::Leave,
                1 => WriteBack::Start,
                _ => WriteBack::Synchronize,
            },
        },
        18 => Ask::GiveFileUp { start, bytes },
        19 => Ask::UseFile {
            device: first,
            number: second,
            is_write: third != 0,
        },
        _ => unreachable!("`pack` makes no other"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static TABLE: Requests = Requests::new();

    #[test]
    fn an_ask_without_an_engine_is_answered_at_once() {
        assert_eq!(
            Requests::new().ask(Ask::Finish, Duration::from_secs(9)),
            None
        );
    }

    #[test]
    fn what_is_packed_comes_out_again() {
        let start = 0x7fff_ffff_f000;
        let bytes = 1 << 44;
        for ask in [
            Ask::MapFile(FileMapping {
                start,
                bytes,
                file: 70_000,
                first: u32::MAX,
                kind: SHARED | 3,
            }),
            Ask::AdviseFile {
                start,
                bytes,
                advice: -1,
            },
            Ask::ProtectFile {
                start,
                bytes,
                rights: 0x0300_0007,
            },
            Ask::GrowFile {
                start,
                bytes_before: 4096,
                bytes,
            },
            Ask::WriteBack {
                start,
                bytes,
                why: WriteBack::Synchronize,
            },
            Ask::UseFile {
                device: u64::MAX,
                number: 7,
                is_write: true,
            },
        ] {
            let (kind, words) = pack(ask);
            assert_eq!(unpack(kind, words), ask);
        }
    }

    #[test]
    fn a_request_that_is_held_is_taken_once_and_its_place_is_kept_until_its_answer() {
        let table = Requests::new();
        table.set_engine(1, None);
        let slot = &table.slots[0];
        slot.kind.store(pack(Ask::Finish).0, Ordering::Relaxed);
        table.show(slot, POSTED);
        let (taken, _) = table.take().unwrap();
        table.hold(taken);
        assert_eq!(table.take(), None);
        // The asking thread has given up: its place must not go to another before it is answered.
        table.show(slot, GIVEN_UP);
        assert_eq!(table.take(), None);
        assert_eq!(slot.state.load(Ordering::Acquire), GIVEN_UP);
        table.answer(taken, 0);
        assert_eq!(slot.state.load(Ordering::Acquire), FREE);
    }

    #[test]
    fn an_ask_reaches_the_engine_and_its_answer_comes_back() {
        let (ready, is_ready) = std::sync::mpsc::channel();
        let engine = std::thread::spawn(move || {
            ready.send(crate::sys::thread::current()).unwrap();
            for _ in 0..1000 {
                if let Some((taken, ask)) = TABLE.take() {
                    TABLE.answer(taken, 42);
                    return Some(ask);
                }
                std::thread::sleep(Duration::from_millis(5));
            }
            None
        });
        is_ready.recv().unwrap();
        // The doorbell's signal would end a thread that does not block it: ring a thread number
        // that this process has not.
        TABLE.set_engine(1, None);
        let slot = &TABLE.slots[0];
        let (kind, [first, second, _]) = pack(Ask::Map {
            start: 4096,
            bytes: 8192,
        });
        slot.kind.store(kind, Ordering::Relaxed);
        slot.first.store(first, Ordering::Relaxed);
        slot.second.store(second, Ordering::Relaxed);
        TABLE.show(slot, POSTED);
        assert_eq!(
            engine.join().unwrap(),
            Some(Ask::Map {
                start: 4096,
                bytes: 8192
            })
        );
        assert_eq!(slot.state.load(Ordering::Acquire), ANSWERED);
        assert_eq!(slot.answer.load(Ordering::Acquire), 42);
    }
}
