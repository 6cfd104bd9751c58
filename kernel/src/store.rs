//! The disks behind the core's pagers: swap, with a checksum for each slot, and the files of the
//! volume.
//!
//! The core's requests come in here and are cut into requests to a disk; their answers are put
//! together again. Any number may be under way; what the disk's queue has no room for waits.
//!
//! # Invariants
//! 1. A page that is read from swap is handed out only if its checksum is the one it was stored
//!    with.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::rc::Rc;
use alloc::vec;
use alloc::vec::Vec;

use tidemark_core::id::{FrameId, PageId, SlotId, Ticket};
use tidemark_core::seams::pager::{self, Direction, Outcome, Reply, Request};

use crate::arch::frames::Frames;
use crate::arch::paging::{PAGE_BYTES, Page};
use crate::arch::virtio::{Disk, Piece, SECTOR_BYTES, Way};
use crate::arch::{Purpose, has_room};
use crate::parameters::Injected;
use crate::say;
use crate::volume::Files;

const SECTORS_PER_PAGE: u64 = PAGE_BYTES as u64 / SECTOR_BYTES;

/// The ticket of writes that the kernel makes by itself: the core gives it to none.
const WRITTEN_BACK: Ticket = Ticket(0);

/// The most blocks that one request for pages of files moves: the device takes some hundreds of
/// pieces.
const PIECES_MAX: usize = 128;

/// A block of a file on the disk, and the place of it in memory: sector, frame, and offset there.
type Place = (u64, FrameId, usize);

/// A disk and what waits for its queue.
struct Spindle {
    disk: Disk,
    waiting: VecDeque<(Way, u64, Vec<Piece>, u64)>,
}

impl Spindle {
    fn submit(&mut self, way: Way, sector: u64, pieces: Vec<Piece>, tag: u64) {
        self.waiting.push_back((way, sector, pieces, tag));
        self.start_waiting();
    }

    fn start_waiting(&mut self) {
        while let Some((way, sector, pieces, tag)) = self.waiting.pop_front() {
            if let Err(pieces) = self.disk.start(way, sector, pieces, tag) {
                self.waiting.push_front((way, sector, pieces, tag));
                return;
            }
        }
    }
}

/// A request of the core that is under way.
struct UnderWay {
    request: Request,
    pages: Vec<PageId>,
    frames: Vec<FrameId>,
    /// Requests to a disk that it still waits for.
    parts: usize,
    is_failed: bool,
}

/// The counts of the disks' transfers.
#[derive(Clone, Copy, Default, Debug)]
pub struct Traffic {
    /// Pages read from swap, and from files.
    pub read: [u64; 2],
    /// Pages written to swap, and to files.
    pub written: [u64; 2],
    /// The most requests a disk had at one time.
    pub depth_max: usize,
}

/// The reason for which a file is not in the kernel's memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unread {
    /// The disk fails.
    Disk,
    /// The file is too large.
    Room,
}

/// Both disks, and the requests under way.
pub struct Store {
    swap: Spindle,
    files: Spindle,
    volume: Files,
    /// The contents of files that stay in the kernel's memory, once they were read.
    kept: BTreeMap<usize, Rc<Vec<u8>>>,
    /// Of each slot, of what was last stored there.
    sums: Vec<u64>,
    under_way: BTreeMap<Ticket, UnderWay>,
    finished: VecDeque<Reply>,
    /// Requests for pages that stay in memory.
    writing_back: usize,
    is_write_back_failed: bool,
    /// A page of a file that was to leave could not be written.
    is_file_failed: bool,
    injected: Option<(Injected, u64)>,
    traffic: Traffic,
}

impl Store {
    /// Puts the volume's files and swap behind the core's pagers.
    pub fn new(swap: Disk, files: Disk, volume: Files, injected: Option<(Injected, u64)>) -> Store {
        let slots = u32::try_from(swap.sectors() / SECTORS_PER_PAGE).unwrap_or(u32::MAX);
        let spindle = |disk| Spindle {
            disk,
            waiting: VecDeque::new(),
        };
        Store {
            sums: vec![0; slots as usize],
            swap: spindle(swap),
            files: spindle(files),
            volume,
            kept: BTreeMap::new(),
            under_way: BTreeMap::new(),
            finished: VecDeque::new(),
            writing_back: 0,
            is_write_back_failed: false,
            is_file_failed: false,
            injected,
            traffic: Traffic::default(),
        }
    }

    /// The number of pages that swap holds.
    pub fn slots(&self) -> u32 {
        self.sums.len() as u32
    }

    /// The volume of files.
    pub fn volume(&self) -> &Files {
        &self.volume
    }

    /// The counts of the disks' transfers so far.
    pub fn traffic(&self) -> Traffic {
        self.traffic
    }

    /// Starts what the core asks for.
    pub fn start(
        &mut self,
        request: Request,
        pages: &[PageId],
        frames: &[FrameId],
        memory: &mut Frames,
    ) {
        let mut under_way = UnderWay {
            request,
            pages: pages.to_vec(),
            frames: frames.to_vec(),
            parts: 0,
            is_failed: self.is_injected(request.direction),
        };
        match request.place {
            pager::Place::Swap { first } => self.start_swap(&mut under_way, first, memory),
            pager::Place::External { pager } => {
                self.start_file(&mut under_way, pager.0 as usize, memory)
            }
        }
        let depth = self.swap.disk.depth().max(self.files.disk.depth());
        self.traffic.depth_max = self.traffic.depth_max.max(depth);
        let is_over = under_way.parts == 0;
        self.under_way.insert(request.ticket, under_way);
        if is_over {
            self.conclude(request.ticket, memory);
        }
    }

    /// The contents of a file, which stay in the kernel's memory; read while no other is.
    pub fn read_file_now(&mut self, file: usize) -> Result<Rc<Vec<u8>>, Unread> {
        if let Some(contents) = self.kept.get(&file) {
            return Ok(contents.clone());
        }
        assert_eq!(self.files.disk.depth(), 0, "files are being read");
        if self.count_down(Injected::Read) {
            return Err(Unread::Disk);
        }
        let found = &self.volume[file];
        let bytes = found.bytes() as usize;
        if !has_room(Purpose::Contents(bytes)) {
            return Err(Unread::Room);
        }
        let mut contents = vec![0; bytes];
        let blocks = (0..).zip(contents.chunks_exact_mut(SECTOR_BYTES as usize));
        let places = blocks.map(|(block, to)| (found.sector(block), to));
        let mut places: Vec<(u64, &mut [u8])> = places.collect();
        places.sort_unstable_by_key(|&(sector, _)| sector);
        for run in places.chunk_by_mut(|one, next| one.0 + 1 == next.0) {
            for run in run.chunks_mut(PIECES_MAX) {
                let pages = read_now(&mut self.files.disk, run[0].0, run.len());
                for (page, (_, to)) in pages.ok_or(Unread::Disk)?.iter().zip(run) {
                    to.copy_from_slice(&page.0[..SECTOR_BYTES as usize]);
                }
            }
        }
        let contents = Rc::new(contents);
        self.kept.insert(file, contents.clone());
        Ok(contents)
    }

    /// Takes in that an interrupt has come on one of `lines`, a bit a line.
    pub fn take_interrupts(&mut self, lines: u64, memory: &mut Frames) {
        let mut over = Vec::new();
        for spindle in [&mut self.swap, &mut self.files] {
            if lines >> spindle.disk.line() & 1 == 0 {
                continue;
            }
            spindle.disk.take_interrupt();
            while let Some(finished) = spindle.disk.next_finished() {
                over.push((Ticket(finished.tag), finished.is_done));
            }
            spindle.start_waiting();
        }
        for (ticket, is_done) in over {
            if ticket == WRITTEN_BACK {
                self.writing_back -= 1;
                self.is_write_back_failed |= !is_done;
                continue;
            }
            let under_way = self.under_way.get_mut(&ticket);
            let under_way = under_way.expect("what is answered was asked");
            under_way.is_failed |= !is_done;
            under_way.parts -= 1;
            if under_way.parts == 0 {
                self.conclude(ticket, memory);
            }
        }
    }

    /// Starts writing a page of a file that stays in memory.
    pub fn write_back(&mut self, file: usize, index: u64, frame: FrameId, memory: &mut Frames) {
        if self.count_down(Injected::Write) {
            self.is_write_back_failed = true;
            return;
        }
        let tag = WRITTEN_BACK.0;
        self.traffic.written[1] += 1;
        let page = [(index, frame)];
        self.writing_back += self.move_pages(Way::Write, file, &page, memory, tag);
    }

    /// Returns true if there are pages being written that stay.
    pub fn is_writing_back(&self) -> bool {
        self.writing_back > 0
    }

    /// Returns true if such a write has failed since this was last asked.
    pub fn take_write_back_failure(&mut self) -> bool {
        core::mem::take(&mut self.is_write_back_failed)
    }

    /// Returns true if a page of a file that was to leave could not be written since this was last
    /// asked.
    pub fn take_file_failure(&mut self) -> bool {
        core::mem::take(&mut self.is_file_failed)
    }

    /// Hands over the next answer.
    pub fn next_reply(&mut self) -> Option<Reply> {
        self.finished.pop_front()
    }

    fn start_swap(&mut self, under_way: &mut UnderWay, first: SlotId, memory: &mut Frames) {
        let way = match under_way.request.direction {
            Direction::Fetch => Way::Read,
            Direction::Store => Way::Write,
        };
        let pages = under_way.frames.len() as u64;
        match way {
            Way::Read => self.traffic.read[0] += pages,
            Way::Write => self.traffic.written[0] += pages,
        }
        if under_way.is_failed {
            return;
        }
        if way == Way::Write {
            for (number, &frame) in under_way.frames.iter().enumerate() {
                self.sums[first.0 as usize + number] = checksum(memory.bytes(frame));
            }
        }
        let whole = |&frame: &FrameId| Piece::of_frame(memory, frame, 0, PAGE_BYTES);
        let pieces = under_way.frames.iter().map(whole).collect();
        let sector = u64::from(first.0) * SECTORS_PER_PAGE;
        under_way.parts = 1;
        self.swap
            .submit(way, sector, pieces, under_way.request.ticket.0);
    }

    fn start_file(&mut self, under_way: &mut UnderWay, file: usize, memory: &mut Frames) {
        let (way, traffic) = match under_way.request.direction {
            Direction::Fetch => (Way::Read, &mut self.traffic.read[1]),
            Direction::Store => (Way::Write, &mut self.traffic.written[1]),
        };
        *traffic += under_way.frames.len() as u64;
        if under_way.is_failed {
            return;
        }
        let tag = under_way.request.ticket.0;
        let indices = under_way.pages.iter().map(|page| page.index);
        let pages: Vec<_> = indices.zip(under_way.frames.iter().copied()).collect();
        under_way.parts = self.move_pages(way, file, &pages, memory, tag);
    }

    /// Moves pages of a file. Blocks that stand together on the disk, in whatever order, are one
    /// request. What is behind the end of the file is zeros. Answers how many requests that takes.
    fn move_pages(
        &mut self,
        way: Way,
        file: usize,
        pages: &[(u64, FrameId)],
        memory: &mut Frames,
        tag: u64,
    ) -> usize {
        let mut blocks = Vec::new();
        for &(index, frame) in pages {
            self.clear_tail(file, index, frame, memory);
            let found = &self.volume[file];
            let first = index * SECTORS_PER_PAGE;
            let end = (found.bytes() / SECTOR_BYTES).min(first + SECTORS_PER_PAGE);
            let places = (first..end).zip((0..).step_by(SECTOR_BYTES as usize));
            blocks.extend(places.map(|(block, offset)| (found.sector(block), frame, offset)));
        }
        blocks.sort_unstable_by_key(|&(sector, ..)| sector);
        let follows = |one: &Place, next: &Place| one.0 + 1 == next.0;
        let mut parts = 0;
        for run in blocks.chunk_by(follows) {
            for run in run.chunks(PIECES_MAX) {
                let bytes = SECTOR_BYTES as usize;
                let piece =
                    |&(_, frame, offset): &Place| Piece::of_frame(memory, frame, offset, bytes);
                let pieces = run.iter().map(piece).collect();
                self.files.submit(way, run[0].0, pieces, tag);
                parts += 1;
            }
        }
        parts
    }

    /// Clears what a page has behind the end of its file.
    fn clear_tail(&self, file: usize, index: u64, frame: FrameId, memory: &mut Frames) {
        let bytes = self.volume[file].bytes();
        let kept = bytes.saturating_sub(index * PAGE_BYTES as u64);
        memory.bytes_mut(frame)[(kept as usize).min(PAGE_BYTES)..].fill(0);
    }

    fn conclude(&mut self, ticket: Ticket, memory: &mut Frames) {
        let under_way = self
            .under_way
            .remove(&ticket)
            .expect("under way until here");
        let request = under_way.request;
        let mut is_failed = under_way.is_failed;
        match (request.direction, request.place) {
            (Direction::Fetch, pager::Place::Swap { first }) if !is_failed => {
                is_failed = !self.verify(first, &under_way.frames, memory);
            }
            (Direction::Fetch, pager::Place::External { pager }) => {
                // The last block of a file is read whole.
                for (page, &frame) in under_way.pages.iter().zip(&under_way.frames) {
                    self.clear_tail(pager.0 as usize, page.index, frame, memory);
                }
            }
            (Direction::Store, pager::Place::External { .. }) => self.is_file_failed |= is_failed,
            _ => {}
        }
        let outcome = if is_failed {
            Outcome::Failed
        } else {
            Outcome::Done
        };
        self.finished.push_back(Reply { ticket, outcome });
    }

    fn verify(&mut self, first: SlotId, frames: &[FrameId], memory: &mut Frames) -> bool {
        let mut is_right = true;
        for (number, &frame) in frames.iter().enumerate() {
            if self.count_down(Injected::Flip) {
                memory.bytes_mut(frame)[1234] ^= 0x10;
            }
            let slot = first.0 as usize + number;
            if checksum(memory.bytes(frame)) != self.sums[slot] {
                say!("kernel: swap: what was read from slot {slot} is not what was written");
                is_right = false;
            }
        }
        is_right
    }

    fn is_injected(&mut self, direction: Direction) -> bool {
        let kind = match direction {
            Direction::Fetch => Injected::Read,
            Direction::Store => Injected::Write,
        };
        self.count_down(kind)
    }

    /// Returns true if the fault that was asked for is due: this is an occasion for it.
    pub fn count_down(&mut self, kind: Injected) -> bool {
        match &mut self.injected {
            Some((wanted, left)) if *wanted == kind && *left > 0 => {
                *left -= 1;
                *left == 0
            }
            _ => false,
        }
    }
}

/// A sum over a page. Each step can be undone, so a page that differs in one word has another sum.
fn checksum(bytes: &[u8; PAGE_BYTES]) -> u64 {
    let words = bytes.chunks_exact(8).map(|word| {
        let word: [u8; 8] = word.try_into().expect("eight bytes");
        u64::from_le_bytes(word)
    });
    words.fold(0x9e37_79b9_7f4a_7c15, |sum, word| {
        (sum ^ word)
            .wrapping_mul(0xff51_afd7_ed55_8ccd)
            .rotate_left(29)
    })
}

/// Reads sectors from `sector` on while nothing else is under way, each to the beginning of
/// a page; `None` if the disk fails.
pub fn read_now(disk: &mut Disk, sector: u64, count: usize) -> Option<Vec<Box<Page>>> {
    let piece = |_| Piece::of_page(Page::zeroed(), SECTOR_BYTES as usize);
    let pieces = (0..count).map(piece).collect();
    disk.start(Way::Read, sector, pieces, 0).ok()?;
    loop {
        if let Some(finished) = disk.next_finished() {
            disk.take_interrupt();
            return finished.is_done.then_some(finished.pages);
        }
    }
}
