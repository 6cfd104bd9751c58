//! A pager as a file of the kernel's, by FUSE: to read and write it is to call the pager.
//!
//! The file system has one file, which is its root, and no place in any folder: who is handed the
//! file has it. It ends with the last descriptor, and the pager is dropped then.
//!
//! Calls go straight to the pager, without the page cache, several at a time.
//!
//! # Failures
//! A call that fails for now is made again, with pauses from a millisecond to a second, until all
//! calls of the pager have failed for the [patience](Settings::patience). Then, or where an error
//! says that it lasts, the call fails with `EIO`, and a line tells the pager's words, once until a
//! call succeeds.
//!
//! # Invariants
//! 1. A call that has begun is over before it is answered: what a process asked for that was killed
//!    meanwhile takes no effect later.
//! 2. Bytes that the pager does not hand out are an error, and never zeros.
//!
//! # Locks
//! `under_way` and `outage`, each alone, for a few instructions.
//!
//! Source: `include/uapi/linux/fuse.h` of Linux, protocol 7.31, whose messages have these layouts.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::panic::AssertUnwindSafe;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags};
use tidemark_regions::{Pager, PagerError};

/// The time for which a call that fails for now is made again, unless another is asked for.
pub const PATIENCE: Duration = Duration::from_secs(30);
/// The number of calls that are made at one time.
const CALLERS: usize = 8;
/// The most bytes of a call.
const CALL_BYTES: usize = 256 << 10;
const PAGE_BYTES: usize = 4096;
/// The room for a request: its head, and the bytes of a write.
const REQUEST_BYTES: usize = CALL_BYTES + PAGE_BYTES;
const PAUSE_LEAST: Duration = Duration::from_millis(1);
const PAUSE_MOST: Duration = Duration::from_secs(1);
/// The least time without calls after which a failure is not one of those before.
const QUIET_LEAST: Duration = Duration::from_secs(10);
/// The length of the head of a request.
const HEAD_BYTES: usize = 40;
/// The length of the head of a request with the arguments of a read or a write.
const ARGUMENTS_END: usize = HEAD_BYTES + 40;
/// A time for which what was told of the file holds, in seconds: for ever.
const VALID_S: u64 = 1 << 30;
/// The mode of the file: a plain one, for its owner.
const MODE: u32 = 0o100_600;

/// The requests that are answered; all others are unknown.
mod op {
    pub const FORGET: u32 = 2;
    pub const GETATTR: u32 = 3;
    pub const SETATTR: u32 = 4;
    pub const OPEN: u32 = 14;
    pub const READ: u32 = 15;
    pub const WRITE: u32 = 16;
    pub const RELEASE: u32 = 18;
    pub const FSYNC: u32 = 20;
    pub const FLUSH: u32 = 25;
    pub const INIT: u32 = 26;
    pub const INTERRUPT: u32 = 36;
    pub const DESTROY: u32 = 38;
    pub const BATCH_FORGET: u32 = 42;
    pub const FALLOCATE: u32 = 43;
}

/// The nature of a mounted file.
pub struct Settings {
    /// The size of the file, in bytes. What is beyond the pager's can't be read or written.
    pub bytes: u64,
    /// The time for which a call that fails for now is made again.
    pub patience: Duration,
    /// True if processes of other users may open it again, as programs may that change their user.
    /// In a namespace of its own no process outside it could.
    pub is_for_all: bool,
    /// The place where lines about failures go.
    pub tell: Box<dyn Fn(&str) + Send + Sync>,
}

/// A mounted file.
#[derive(Debug)]
pub struct Mounted {
    /// The file.
    pub file: OwnedFd,
    /// The thread that serves the file, until the last descriptor is closed and the pager is
    /// dropped.
    pub serving: JoinHandle<()>,
}

/// Returns true if this process may mount: where it can't, it can in [namespaces of its own].
///
/// [namespaces of its own]: https://man7.org/linux/man-pages/man7/user_namespaces.7.html
pub fn may_mount() -> bool {
    rustix::mount::fsopen("fuse", FsOpenFlags::FSOPEN_CLOEXEC).is_ok()
}

/// Mounts `pager`.
///
/// # Errors
/// The kernel has no FUSE, or does not permit this process to mount (`CAP_SYS_ADMIN`).
pub fn mount(pager: Arc<dyn Pager>, settings: Settings) -> io::Result<Mounted> {
    let device = rustix::fs::open("/dev/fuse", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    let context = rustix::mount::fsopen("fuse", FsOpenFlags::FSOPEN_CLOEXEC)?;
    let set = |name: &str, value: String| {
        rustix::mount::fsconfig_set_string(&context, name, value.as_str())
    };
    set("fd", device.as_raw_fd().to_string())?;
    set("rootmode", format!("{MODE:o}"))?;
    set("user_id", rustix::process::geteuid().as_raw().to_string())?;
    set("group_id", rustix::process::getegid().as_raw().to_string())?;
    if settings.is_for_all {
        rustix::mount::fsconfig_set_flag(&context, "allow_other")?;
    }
    rustix::mount::fsconfig_create(&context)?;
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
    let mounted = rustix::mount::fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)?;
    let service = Service {
        device: File::from(device),
        pager,
        settings,
        under_way: Mutex::default(),
        outage: Mutex::default(),
    };
    let threads = std::thread::Builder::new().name("tidemark-mounted".into());
    let serving = threads.spawn(move || serve(service))?;
    let root = format!("/proc/self/fd/{}", mounted.as_raw_fd());
    match rustix::fs::open(root, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()) {
        Ok(file) => Ok(Mounted { file, serving }),
        Err(error) => {
            drop(mounted);
            // The pager is dropped before this is over.
            let _ = serving.join();
            Err(error.into())
        }
    }
}

struct Service {
    device: File,
    pager: Arc<dyn Pager>,
    settings: Settings,
    /// The calls that wait or are made, by the numbers of their requests; true: who asked does not
    /// wait any more.
    under_way: Mutex<BTreeMap<u64, bool>>,
    outage: Mutex<Outage>,
}

/// The failures since the pager last did what it was asked for.
#[derive(Default)]
struct Outage {
    /// The ends of the first and the last that may pass. A call that took long, as one of a process
    /// that was stopped does, is made again all the same.
    passing: Option<(Instant, Instant)>,
    is_told: bool,
}

/// A read or a write.
struct Call {
    number: u64,
    offset: u64,
    work: Work,
}

enum Work {
    Read(usize),
    Write(Vec<u8>),
}

/// Answers requests until the file is gone.
fn serve(service: Service) {
    let (sender, receiver) = channel();
    let receiver = Mutex::new(receiver);
    std::thread::scope(|scope| {
        for _ in 0..CALLERS {
            scope.spawn(|| service.make_calls(&receiver));
        }
        service.take_requests(sender);
    });
}

impl Service {
    /// Takes requests in, and hands calls of the pager on. The callers end with `calls`.
    fn take_requests(&self, calls: Sender<Call>) {
        let mut request = vec![0; REQUEST_BYTES];
        loop {
            match (&self.device).read(&mut request) {
                Ok(bytes) if bytes >= HEAD_BYTES => self.take(&request[..bytes], &calls),
                Err(error) if is_passing(&error) => {}
                // The last descriptor is closed.
                Ok(_) | Err(_) => return,
            }
        }
    }

    fn take(&self, request: &[u8], calls: &Sender<Call>) {
        let number = u64_at(request, 8);
        match u32_at(request, 4) {
            op::READ | op::WRITE => match call_of(request, self.pager.bytes()) {
                Some(call) => {
                    lock(&self.under_way).insert(number, false);
                    // The callers are there as long as this end is.
                    let _ = calls.send(call);
                }
                None => self.answer(number, Err(Errno::INVAL)),
            },
            op::INTERRUPT => {
                let mut under_way = lock(&self.under_way);
                let asked = under_way.get_mut(&u64_at(request, HEAD_BYTES));
                asked.into_iter().for_each(|it| *it = true);
            }
            op::INIT => self.answer(number, Ok(&limits())),
            op::GETATTR => self.answer(number, Ok(&attributes(self.settings.bytes))),
            op::SETATTR => {
                // Only the end of all use makes the file shorter.
                const SIZE: u32 = 1 << 3;
                let is_sized = u32_at(request, HEAD_BYTES) & SIZE > 0;
                let asked = u64_at(request, HEAD_BYTES + 16);
                let bytes = if is_sized { asked } else { self.settings.bytes };
                self.answer(number, Ok(&attributes(bytes)));
            }
            op::OPEN => {
                // Past the page cache, and several writes at a time.
                const DIRECT_IO: u32 = 1 << 0;
                const PARALLEL_DIRECT_WRITES: u32 = 1 << 6;
                let flags = u64::from(DIRECT_IO | PARALLEL_DIRECT_WRITES);
                self.answer(number, Ok(&words(&[0, flags])));
            }
            // The kernel has waited for all writes before it asks to punch holes.
            op::FALLOCATE | op::RELEASE | op::FSYNC | op::FLUSH | op::DESTROY => {
                self.answer(number, Ok(&[]));
            }
            op::FORGET | op::BATCH_FORGET => {}
            _ => self.answer(number, Err(Errno::NOSYS)),
        }
    }

    /// Makes calls of the pager until there will be no more.
    fn make_calls(&self, calls: &Mutex<Receiver<Call>>) {
        loop {
            let Ok(call) = lock(calls).recv() else { return };
            let (number, offset) = (call.number, call.offset);
            let made = match call.work {
                Work::Read(bytes) => {
                    let mut into = vec![0; bytes];
                    let read = self.try_until(number, || self.pager.read(offset, &mut into));
                    read.map(|()| into)
                }
                Work::Write(from) => {
                    let written = self.try_until(number, || self.pager.write(offset, &from));
                    written.map(|()| words(&[from.len() as u64]))
                }
            };
            lock(&self.under_way).remove(&number);
            self.answer(number, made.as_deref().map_err(|error| *error));
        }
    }

    /// Makes a call, again and again while it fails for now.
    fn try_until(
        &self,
        number: u64,
        mut call: impl FnMut() -> Result<(), PagerError>,
    ) -> Result<(), Errno> {
        let mut pause = PAUSE_LEAST;
        loop {
            let began = Instant::now();
            let made = std::panic::catch_unwind(AssertUnwindSafe(&mut call));
            match made.unwrap_or_else(|_| Err(PagerError::lasting("it panicked"))) {
                Ok(()) => {
                    *lock(&self.outage) = Outage::default();
                    return Ok(());
                }
                Err(error) if !self.may_pass(&error, began) => return Err(Errno::IO),
                Err(_) if lock(&self.under_way).get(&number) == Some(&true) => {
                    return Err(Errno::INTR);
                }
                Err(_) => std::thread::sleep(pause),
            }
            pause = (pause * 2).min(PAUSE_MOST);
        }
    }

    /// Returns true if a call is made again that `began` and failed; if it is not, tells why.
    fn may_pass(&self, error: &PagerError, began: Instant) -> bool {
        let (mut outage, now) = (lock(&self.outage), Instant::now());
        let patience = self.settings.patience;
        if error.is_temporary() {
            let quiet = patience.max(QUIET_LEAST);
            let is_same = |last| began.saturating_duration_since(last) < quiet;
            let first = match outage.passing {
                Some((first, last)) if is_same(last) => first,
                Some(_) | None => {
                    outage.is_told = false;
                    now
                }
            };
            outage.passing = Some((first, now));
            if now - first < patience {
                return true;
            }
        }
        if !std::mem::replace(&mut outage.is_told, true) {
            let tried = match error.is_temporary() {
                true => format!("; tried again for {patience:?}"),
                false => String::new(),
            };
            (self.settings.tell)(&format!("`{}`: {error}{tried}", self.pager.name()));
        }
        false
    }

    /// Answers a request.
    fn answer(&self, number: u64, answer: Result<&[u8], Errno>) {
        let bytes = answer.unwrap_or(&[]);
        let error = answer.err().map_or(0, |error| -error.raw_os_error());
        let mut reply = Vec::with_capacity(16 + bytes.len());
        reply.extend(((16 + bytes.len()) as u32).to_le_bytes());
        reply.extend(error.to_le_bytes());
        reply.extend(number.to_le_bytes());
        reply.extend(bytes);
        // Who asked may be gone.
        let _ = (&self.device).write(&reply);
    }
}

/// The read or write that is asked for, if it is within `bytes`.
fn call_of(request: &[u8], bytes: u64) -> Option<Call> {
    let head = request.get(..ARGUMENTS_END)?;
    let (offset, size) = (u64_at(head, HEAD_BYTES + 8), u32_at(head, HEAD_BYTES + 16));
    let end = offset.checked_add(size.into())?;
    if end > bytes || size as usize > CALL_BYTES {
        return None;
    }
    let work = match u32_at(head, 4) {
        op::READ => Work::Read(size as usize),
        _ => Work::Write(request.get(ARGUMENTS_END..)?.get(..size as usize)?.to_vec()),
    };
    Some(Call {
        number: u64_at(head, 8),
        offset,
        work,
    })
}

/// The answer to the first request: the protocol that is spoken, and its limits.
fn limits() -> Vec<u8> {
    const MAX_PAGES: u32 = 1 << 22;
    const BIG_WRITES: u32 = 1 << 5;
    let pages = (CALL_BYTES / PAGE_BYTES) as u16;
    let mut answer = Vec::new();
    for word in [7, 31, 0, MAX_PAGES | BIG_WRITES, 0, CALL_BYTES as u32, 1] {
        answer.extend(word.to_le_bytes());
    }
    answer.extend(pages.to_le_bytes());
    answer.resize(64, 0);
    answer
}

/// The answer with what the file is: the times are zero, and it has one name and the owner of this
/// process.
fn attributes(bytes: u64) -> Vec<u8> {
    let mut answer = words(&[VALID_S, 0, 1, bytes, bytes.div_ceil(512), 0, 0, 0]);
    let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
    let owner = [user.as_raw(), group.as_raw()];
    for word in [
        0,
        0,
        0,
        MODE,
        1,
        owner[0],
        owner[1],
        0,
        PAGE_BYTES as u32,
        0,
    ] {
        answer.extend(word.to_le_bytes());
    }
    answer
}

fn words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let word = bytes.get(at..at + 4).and_then(|word| word.try_into().ok());
    u32::from_le_bytes(word.unwrap_or_default())
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let word = bytes.get(at..at + 8).and_then(|word| word.try_into().ok());
    u64::from_le_bytes(word.unwrap_or_default())
}

/// Returns true if the next request may be had although this one can't: it was taken back.
fn is_passing(error: &io::Error) -> bool {
    let passing = [Errno::NOENT, Errno::INTR, Errno::AGAIN];
    Errno::from_io_error(error).is_some_and(|error| passing.contains(&error))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
