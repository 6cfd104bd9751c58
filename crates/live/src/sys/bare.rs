//! A bare loop: what a fault costs when nothing is in the way of serving it.
//!
//! One thread of this process touches pages, and another one serves them: by the least of system
//! calls, without tables, policies or anything that a real engine needs beside. What it takes is
//! the yardstick of [`engine`](crate::engine). First in is first out.
//!
//! # Invariants
//! 1. A page is in one place: at its address, or in the [`Store`].
//! 2. The thread that serves ends by a touch of the page behind the last one, or by a failure; then
//!    nothing is registered any more, so that no touch ever waits for a thread that is gone.

use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use lz4_flex::block::{CompressTable, compress_into_with_table, decompress_into};
use rustix::fs::OFlags;
use rustix::process::{PidfdFlags, pidfd_open};

use super::memory::Mapping;
use super::observed::thread_spent;
use super::uffd::{Features, Message, Messages, Mode, OpenError, Progress, Stop, Uffd};
use super::{Errno, PAGE, thread};

/// The pages that leave at a time.
const BATCH: usize = 32;
/// The most that LZ4 may need for one page.
const ROOM: usize = lz4_flex::block::get_maximum_output_size(PAGE);

/// The kind of fault that is served.
#[derive(Debug)]
pub enum Way {
    /// A page comes from compressed memory, and another one leaves to it.
    Compressed,
    /// A page is read from the file; others leave as they are, since nothing writes to them.
    Disk(File),
    /// A page lies in memory elsewhere, and is moved to its place.
    Soft,
    /// A page is new, and reads as zeros.
    FirstTouch,
}

/// The reason for which there is no bare loop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Failure {
    /// The userfaultfd can't be had.
    Open(OpenError),
    /// A system call failed.
    Call(Errno),
    /// A page could not be put in its place, or taken away.
    Page(Stop),
    /// Compressed bytes are no page, or the file is too short.
    Contents,
}

impl From<Errno> for Failure {
    fn from(error: Errno) -> Failure {
        Failure::Call(error)
    }
}

/// A measurement of pages leaving memory: moved out, compressed, and given back.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct WayOut {
    /// The number of pages.
    pub pages: u64,
    /// The processor time for all of them, in nanoseconds.
    pub ns: u64,
    /// The elapsed time.
    pub elapsed_ns: u64,
    /// The bytes that are left of them.
    pub bytes: u64,
}

/// Pages, and a thread that serves them.
pub struct Bare {
    shared: Arc<Shared>,
    way_out: WayOut,
    engine: Option<thread::Handle<()>>,
}

#[derive(Debug)]
struct Shared {
    memory: Mapping,
    pages: usize,
    faults: AtomicU64,
    /// The thread that serves; zero until it does.
    thread: AtomicU32,
    has_failed: AtomicBool,
}

impl Bare {
    /// Fills `pages` pages by `fill`, has all but `plain` of them leave, and begins to serve them.
    /// Of soft faults and first touches none leaves again.
    /// The thread that serves stays on the caller's processor.
    ///
    /// # Errors
    /// See [`Failure`].
    pub fn start(
        way: Way,
        pages: usize,
        plain: usize,
        fill: &mut dyn FnMut(u32, &mut [u8]),
    ) -> Result<Bare, Failure> {
        let uffd = Uffd::open(Features::MOVE).map_err(Failure::Open)?;
        // Reading waits for a message: no other call has to.
        rustix::fs::fcntl_setfl(uffd.as_fd(), OFlags::empty())?;
        let mut memory = Mapping::anonymous((pages + 1) * PAGE)?;
        if !matches!(way, Way::FirstTouch) {
            for page in 0..pages {
                fill(page as u32, memory.part_mut(page * PAGE, PAGE));
            }
        }
        let stays = matches!(way, Way::Soft | Way::FirstTouch);
        let store = Store::new(way, pages)?;
        store.begin(&memory)?;
        stay_out_of_forks(&memory)?;
        stay_out_of_forks(&store.stage)?;
        uffd.register(memory.start(), memory.bytes(), Mode::Missing)?;
        uffd.register(store.stage.start(), store.stage.bytes(), Mode::MoveTarget)?;
        let shared = Arc::new(Shared {
            memory,
            pages,
            faults: AtomicU64::new(0),
            thread: AtomicU32::new(0),
            has_failed: AtomicBool::new(false),
        });
        let mut served = Served {
            shared: Arc::clone(&shared),
            uffd,
            store,
            plain,
        };
        let way_out = served.empty_out()?;
        if stays {
            served.plain = pages;
        }
        let cpu = thread::current_cpu();
        let engine = thread::spawn(256 << 10, move || {
            let _ = thread::stay_on(cpu);
            served.serve();
        })?;
        let bare = Bare {
            shared,
            way_out,
            engine: Some(engine),
        };
        while bare.engine() == 0 {
            std::thread::yield_now();
        }
        Ok(bare)
    }

    /// A word of a page.
    pub fn word(&self, page: u32, place: usize) -> u64 {
        // SAFETY: inside the mapping, which holds no Rust object; volatile, since it may fault.
        unsafe { self.shared.place(page, place).read_volatile() }
    }

    /// Writes a word of a page.
    pub fn set_word(&self, page: u32, place: usize, value: u64) {
        // SAFETY: as for `word`.
        unsafe { self.shared.place(page, place).write_volatile(value) };
    }

    /// The thread that serves.
    pub fn engine(&self) -> u32 {
        self.shared.thread.load(Ordering::Acquire)
    }

    /// The faults so far.
    pub fn faults(&self) -> u64 {
        self.shared.faults.load(Ordering::Relaxed)
    }

    /// Returns true if serving has ended by a failure; then contents are wrong.
    pub fn has_failed(&self) -> bool {
        self.shared.has_failed.load(Ordering::Relaxed)
    }

    /// The way out by itself, before the first fault.
    pub fn way_out(&self) -> WayOut {
        self.way_out
    }
}

impl Drop for Bare {
    fn drop(&mut self) {
        // The end: the page behind the last one.
        self.word(self.shared.pages as u32, 0);
        let limit = std::time::Duration::from_secs(10);
        if let Some(engine) = self.engine.take() {
            // A thread that is still there has a reference of its own to all that it uses.
            let _ = engine.join(limit);
        }
    }
}

impl Shared {
    fn place(&self, page: u32, place: usize) -> *mut u64 {
        assert!(page as usize <= self.pages && place < PAGE / 8);
        let offset = page as usize * PAGE + place * 8;
        // SAFETY: inside the mapping, as checked.
        unsafe { self.memory.as_ptr().add(offset).cast() }
    }
}

/// The thread that serves, and all that it has.
struct Served {
    shared: Arc<Shared>,
    uffd: Uffd,
    store: Store,
    /// The pages that may be in their places.
    plain: usize,
}

impl Served {
    /// Has all but `plain` pages leave.
    fn empty_out(&mut self) -> Result<WayOut, Failure> {
        let before = thread_spent().all_ns;
        let begin = std::time::Instant::now();
        let mut pages = 0;
        while self.store.present() > self.plain {
            let count = BATCH.min(self.store.present() - self.plain);
            self.store
                .send_out(&self.uffd, &self.shared.memory, count)?;
            pages += count as u64;
        }
        let elapsed_ns = begin.elapsed().as_nanos() as u64;
        Ok(WayOut {
            pages,
            elapsed_ns,
            ns: thread_spent().all_ns - before,
            bytes: self.store.packed_bytes,
        })
    }

    fn serve(mut self) {
        self.shared
            .thread
            .store(thread::current(), Ordering::Release);
        if self.serve_until_end().is_err() {
            self.shared.has_failed.store(true, Ordering::Relaxed);
        }
        let memory = &self.shared.memory;
        let _ = self.uffd.unregister(memory.start(), memory.bytes());
    }

    fn serve_until_end(&mut self) -> Result<(), Failure> {
        let mut messages = Messages::new();
        loop {
            self.uffd.read(&mut messages)?;
            for message in messages.iter() {
                let Message::Fault { at, .. } = message else {
                    continue;
                };
                let at = at & !(PAGE - 1);
                let page = (at - self.shared.memory.start()) / PAGE;
                if page == self.shared.pages {
                    return Ok(());
                }
                let faults = self.shared.faults.load(Ordering::Relaxed);
                self.shared.faults.store(faults + 1, Ordering::Relaxed);
                self.store.bring(&self.uffd, at, page as u32)?;
                if self.store.present() >= self.plain + BATCH {
                    let memory = &self.shared.memory;
                    self.store.send_out(&self.uffd, memory, BATCH)?;
                }
            }
        }
    }
}

/// Pages that are not in their places.
struct Store {
    way: Way,
    /// Compressed pages, in rooms of whole lines; a page that does not compress lies as it is.
    packed: Vec<Box<[u8]>>,
    packed_bytes: u64,
    /// Rooms that are free, by their size in lines.
    free: Vec<Vec<Box<[u8]>>>,
    coder: CompressTable,
    scratch: Vec<u8>,
    /// A page on its way in.
    page: Mapping,
    /// Pages on their way out, or those that are in memory elsewhere.
    stage: Mapping,
    own: OwnedFd,
    /// The pages that are in their places, the oldest first.
    queue: std::collections::VecDeque<u32>,
}

/// The unit of a room's size, in bytes.
const LINE: usize = 64;

impl Store {
    fn new(way: Way, pages: usize) -> Result<Store, Failure> {
        let staged = match way {
            Way::Soft => pages,
            _ => BATCH,
        };
        let is_new = matches!(way, Way::FirstTouch);
        Ok(Store {
            way,
            packed: vec![Box::default(); pages],
            packed_bytes: 0,
            free: vec![vec![]; PAGE / LINE + 1],
            coder: CompressTable::small(),
            scratch: vec![0; ROOM],
            page: Mapping::anonymous(PAGE)?,
            stage: Mapping::anonymous(staged * PAGE)?,
            own: pidfd_open(rustix::process::getpid(), PidfdFlags::empty())?,
            queue: match is_new {
                true => Default::default(),
                false => (0..pages as u32).collect(),
            },
        })
    }

    /// Writes all pages to the file, if there is one.
    fn begin(&self, memory: &Mapping) -> Result<(), Failure> {
        if let Way::Disk(file) = &self.way {
            for page in 0..self.packed.len() {
                let bytes = memory.part(page * PAGE, PAGE);
                let written = file.write_all_at(bytes, (page * PAGE) as u64);
                written.map_err(|_| Failure::Contents)?;
            }
        }
        Ok(())
    }

    /// The number of pages in their places.
    fn present(&self) -> usize {
        self.queue.len()
    }

    /// Brings a page to its place, which wakes the thread that waits there.
    fn bring(&mut self, uffd: &Uffd, at: usize, page: u32) -> Result<(), Failure> {
        self.queue.push_back(page);
        let index = page as usize;
        let into = self.page.first_pages(1);
        match &self.way {
            Way::Compressed => {
                let packed = std::mem::take(&mut self.packed[index]);
                let (length, bytes) = packed.split_at(2);
                let length = usize::from(u16::from_ne_bytes([length[0], length[1]]));
                match length {
                    PAGE => into.copy_from_slice(&bytes[..PAGE]),
                    _ => match decompress_into(&bytes[..length], into) {
                        Ok(PAGE) => {}
                        _ => return Err(Failure::Contents),
                    },
                }
                self.packed_bytes -= length as u64;
                self.give_back(packed);
            }
            Way::Disk(file) => {
                let read = file.read_exact_at(into, index as u64 * PAGE as u64);
                read.map_err(|_| Failure::Contents)?;
            }
            Way::Soft => return retry(|| uffd.move_pages(at, self.staged(index), PAGE)),
            Way::FirstTouch => {}
        }
        retry(|| uffd.copy(at, self.page.start(), PAGE))
    }

    /// Has the `count` oldest pages leave.
    fn send_out(&mut self, uffd: &Uffd, memory: &Mapping, count: usize) -> Result<(), Failure> {
        let mut left = [0; BATCH];
        for (slot, left) in left[..count].iter_mut().enumerate() {
            let page = self.queue.pop_front().expect("this many are present");
            let at = memory.start() + page as usize * PAGE;
            *left = at;
            match self.way {
                Way::Compressed => {
                    let staged = self.staged(slot);
                    retry(|| uffd.move_pages(staged, at, PAGE))?;
                    self.pack(page, slot);
                    *left = staged;
                }
                Way::Soft => {
                    let staged = self.staged(page as usize);
                    retry(|| uffd.move_pages(staged, at, PAGE))?;
                }
                Way::Disk(_) | Way::FirstTouch => {}
            }
        }
        match self.way {
            Way::Soft => Ok(()),
            _ => Ok(give_pages_back(&self.own, &left[..count])?),
        }
    }

    fn staged(&self, slot: usize) -> usize {
        self.stage.start() + slot * PAGE
    }

    fn pack(&mut self, page: u32, slot: usize) {
        let bytes = self.stage.part(slot * PAGE, PAGE);
        let packed = compress_into_with_table(bytes, &mut self.scratch, &mut self.coder);
        let (bytes, length) = match packed {
            Ok(length) if length < PAGE => (&self.scratch[..length], length),
            _ => (bytes, PAGE),
        };
        let lines = (length + 2).div_ceil(LINE);
        let room = self.free.get_mut(lines).and_then(Vec::pop);
        let mut room = room.unwrap_or_else(|| vec![0; lines * LINE].into());
        room[..2].copy_from_slice(&(length as u16).to_ne_bytes());
        room[2..2 + length].copy_from_slice(bytes);
        self.packed_bytes += length as u64;
        self.packed[page as usize] = room;
    }

    fn give_back(&mut self, room: Box<[u8]>) {
        if let Some(free) = self.free.get_mut(room.len() / LINE) {
            free.push(room);
        }
    }
}

/// Keeps a fork of this process from sharing pages, which could not be moved then.
fn stay_out_of_forks(mapping: &Mapping) -> Result<(), Errno> {
    let start = mapping.as_ptr().cast();
    // SAFETY: the range is exactly this mapping, and its contents stay.
    unsafe { rustix::mm::madvise(start, mapping.bytes(), rustix::mm::Advice::LinuxDontFork) }
}

/// Repeats what stops because the address space is changing.
fn retry(mut step: impl FnMut() -> Progress) -> Result<(), Failure> {
    loop {
        match step() {
            Progress::All => return Ok(()),
            Progress::Nothing(Stop::Changing) => {}
            Progress::Nothing(stop) => return Err(Failure::Page(stop)),
            Progress::Part(_) => return Err(Failure::Page(Stop::Changing)),
        }
    }
}

/// Gives pages of the loop's back to the host: by one call where the kernel takes that advice for
/// the calling process (Linux 6.13), and else one by one.
fn give_pages_back(own: &OwnedFd, pages: &[usize]) -> Result<(), Errno> {
    let mut ranges = [libc::iovec {
        iov_base: std::ptr::null_mut(),
        iov_len: PAGE,
    }; BATCH];
    for (range, page) in ranges.iter_mut().zip(pages) {
        range.iov_base = *page as *mut _;
    }
    // SAFETY: the list is live; its pages lie in mappings of the loop's, whose contents it has
    // elsewhere, and which no reference names.
    let given = unsafe {
        libc::syscall(
            libc::SYS_process_madvise,
            own.as_raw_fd(),
            ranges.as_ptr(),
            pages.len(),
            libc::MADV_DONTNEED,
            0u32,
        )
    };
    if usize::try_from(given) == Ok(pages.len() * PAGE) {
        return Ok(());
    }
    for page in pages {
        // SAFETY: as above.
        unsafe { rustix::mm::madvise(*page as *mut _, PAGE, rustix::mm::Advice::LinuxDontNeed)? };
    }
    Ok(())
}

/// The times that the coder takes for each page, by itself: to pack and to unpack, in nanoseconds
/// of processor time.
pub fn coder_ns(pages: usize, fill: &mut dyn FnMut(u32, &mut [u8])) -> (u64, u64) {
    let mut plain = vec![0; pages * PAGE];
    for (page, bytes) in plain.chunks_exact_mut(PAGE).enumerate() {
        fill(page as u32, bytes);
    }
    let spent = || thread_spent().all_ns;
    let mut coder = CompressTable::small();
    // Not zeros, so that the memory is there when the time begins.
    let mut packed = vec![1; pages * ROOM];
    let mut lengths = vec![0; pages];
    let rooms = packed.chunks_exact_mut(ROOM);
    let begin = spent();
    for ((bytes, room), length) in plain.chunks_exact(PAGE).zip(rooms).zip(&mut lengths) {
        *length = compress_into_with_table(bytes, room, &mut coder).unwrap_or(0);
    }
    let packed_at = spent();
    let rooms = packed.chunks_exact(ROOM);
    for ((bytes, room), length) in plain.chunks_exact_mut(PAGE).zip(rooms).zip(&lengths) {
        let _ = std::hint::black_box(decompress_into(&room[..*length], bytes));
    }
    let pages = pages.max(1) as u64;
    ((packed_at - begin) / pages, (spent() - packed_at) / pages)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(page: u32, bytes: &mut [u8]) {
        for (place, word) in bytes.chunks_exact_mut(8).enumerate() {
            word.copy_from_slice(&word_of(page, place).to_ne_bytes());
        }
    }

    fn word_of(page: u32, place: usize) -> u64 {
        (u64::from(page) << 20) | (place as u64 / 7)
    }

    /// Returns true if this process may use the userfaultfd; says so if not.
    fn may_run() -> bool {
        let may = Uffd::offered().is_ok();
        tidemark_testing::require(may, "userfaultfd is not permitted")
    }

    #[test]
    fn pages_come_back_as_they_were_by_every_way() {
        if !may_run() {
            return;
        }
        const PAGES: u32 = 200;
        let file = || {
            let path = std::env::temp_dir().join(format!("tidemark-bare-{}", std::process::id()));
            let mut options = File::options();
            let file = options.read(true).write(true).create_new(true).open(&path);
            std::fs::remove_file(path).unwrap();
            file.unwrap()
        };
        for (way, plain) in [
            (Way::Compressed, 50),
            (Way::Disk(file()), 50),
            (Way::Soft, 0),
        ] {
            let told = format!("{way:?}");
            let bare = Bare::start(way, PAGES as usize, plain, &mut fill).unwrap();
            assert!(bare.way_out().pages >= 150, "{told}");
            for touch in 0..3 * PAGES {
                let page = touch * 7919 % PAGES;
                for place in [0, 300, 511] {
                    assert_eq!(bare.word(page, place), word_of(page, place), "{told}");
                }
                bare.set_word(page, 5, word_of(page, 5));
            }
            assert!(bare.faults() >= 150 && !bare.has_failed(), "{told}");
        }
        let bare = Bare::start(Way::FirstTouch, 64, 64, &mut fill).unwrap();
        assert!((0..64).all(|page| bare.word(page, 9) == 0));
        assert_eq!(bare.faults(), 64);
    }
}
