//! Disks: virtio block devices on memory-mapped transports (Virtual I/O Device 1.2, sections 4.2
//! and 5.2), with several requests under way and interrupts.
//!
//! Each request has a table of its own for its pieces (`VIRTIO_F_INDIRECT_DESC`), so one place of
//! the queue holds a request of any size.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use core::ptr::{read_volatile, write_volatile};
use core::sync::atomic::{Ordering, fence};

use tidemark_core::id::FrameId;

use super::frames::Frames;
use super::paging::{DEVICES, PAGE_BYTES, Page};

/// The bytes of a sector, in which disks count.
pub const SECTOR_BYTES: u64 = 512;
/// The most requests under way at one time.
pub const REQUESTS_MAX: usize = 64;
/// The address of the first virtio transport, the distance to the next, and the interrupt line of
/// the first.
const TRANSPORTS: u64 = 0xfeb0_0000;
const TRANSPORT_BYTES: u64 = 0x200;
const FIRST_LINE: u32 = 5;

const MAGIC: u64 = 0x000;
const VERSION: u64 = 0x004;
const DEVICE: u64 = 0x008;
const FEATURES: u64 = 0x010;
const FEATURES_HALF: u64 = 0x014;
const ACCEPTED: u64 = 0x020;
const ACCEPTED_HALF: u64 = 0x024;
const QUEUE: u64 = 0x030;
const QUEUE_SIZE_MAX: u64 = 0x034;
const QUEUE_SIZE: u64 = 0x038;
const QUEUE_READY: u64 = 0x044;
const NOTIFY: u64 = 0x050;
const INTERRUPT: u64 = 0x060;
const INTERRUPT_TAKEN: u64 = 0x064;
const STATUS: u64 = 0x070;
const TABLE: u64 = 0x080;
const OFFERED: u64 = 0x090;
const USED: u64 = 0x0a0;
const CAPACITY: u64 = 0x100;

const BLOCK_DEVICE: u32 = 2;
const STATUS_DRIVER: u32 = 1 | 2;
const STATUS_FEATURES: u32 = 8;
const STATUS_RUNNING: u32 = 4;
const FEATURE_INDIRECT: u64 = 1 << 28;
const FEATURE_MODERN: u64 = 1 << 32;

const FOLLOWED: u16 = 1;
const FOR_DEVICE: u16 = 2;
const INDIRECT: u16 = 4;

/// The direction of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// From the disk to memory.
    Read,
    /// From memory to the disk.
    Write,
}

/// A piece of memory that a request moves: part of a frame, or of a page of the kernel's that the
/// request keeps until it is over.
pub struct Piece {
    physical: u64,
    bytes: u32,
    page: Option<Box<Page>>,
}

impl Piece {
    /// `bytes` bytes of `frame` from `offset` on.
    pub fn of_frame(frames: &Frames, frame: FrameId, offset: usize, bytes: usize) -> Piece {
        assert!(offset + bytes <= PAGE_BYTES);
        Piece {
            physical: frames.physical(frame) + offset as u64,
            bytes: bytes as u32,
            page: None,
        }
    }

    /// The first `bytes` bytes of `page`, which comes back with the answer.
    pub fn of_page(page: Box<Page>, bytes: usize) -> Piece {
        assert!(bytes <= PAGE_BYTES);
        Piece {
            physical: page.physical(),
            bytes: bytes as u32,
            page: Some(page),
        }
    }
}

/// A request that is over.
pub struct Finished {
    /// The tag that the caller gave it at its start.
    pub tag: u64,
    /// True if all bytes were moved.
    pub is_done: bool,
    /// The kernel's pages among what it moved.
    pub pages: Vec<Box<Page>>,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Descriptor {
    address: u64,
    bytes: u32,
    flags: u16,
    next: u16,
}

const BLANK: Descriptor = Descriptor {
    address: 0,
    bytes: 0,
    flags: 0,
    next: 0,
};

/// The queue as both sides see it: a page of its own.
#[repr(C, align(4096))]
struct Queue {
    table: [Descriptor; REQUESTS_MAX],
    offered_flags: u16,
    offered_count: u16,
    offered: [u16; REQUESTS_MAX],
    offered_event: u16,
    /// Unused; aligns the part that the device writes to four bytes.
    padding: u16,
    used_flags: u16,
    used_count: u16,
    used: [[u32; 2]; REQUESTS_MAX],
}

/// The kernel's half of one place of the queue. It stays where it is: the device writes there.
#[repr(C)]
struct Request {
    kind: u32,
    reserved: u32,
    sector: u64,
    status: u8,
    tag: u64,
    pages: Vec<Box<Page>>,
    pieces: Vec<Descriptor>,
}

/// A disk.
pub struct Disk {
    registers: u64,
    line: u32,
    sectors: u64,
    queue: Box<Queue>,
    under_way: Vec<Option<Box<Request>>>,
    taken: u16,
}

/// The device's address of an object on the kernel's heap.
fn physical_of<T: ?Sized>(thing: &T) -> u64 {
    core::ptr::from_ref(thing).cast::<u8>() as u64 - super::paging::DIRECT
}

impl Disk {
    /// The disk on transport `number`; `None` if there is none.
    pub(super) fn open(number: u32) -> Option<Disk> {
        let registers = DEVICES + TRANSPORTS + u64::from(number) * TRANSPORT_BYTES;
        let queue = Queue {
            table: [BLANK; REQUESTS_MAX],
            offered_flags: 0,
            offered_count: 0,
            offered: [0; REQUESTS_MAX],
            offered_event: 0,
            padding: 0,
            used_flags: 0,
            used_count: 0,
            used: [[0; 2]; REQUESTS_MAX],
        };
        let mut disk = Disk {
            registers,
            line: FIRST_LINE + number,
            sectors: 0,
            queue: Box::new(queue),
            under_way: (0..REQUESTS_MAX).map(|_| None).collect(),
            taken: 0,
        };
        let is_there = disk.read(MAGIC) == u32::from_le_bytes(*b"virt")
            && disk.read(VERSION) == 2
            && disk.read(DEVICE) == BLOCK_DEVICE;
        (is_there && disk.set_up()).then_some(disk)
    }

    /// The line on which it interrupts.
    pub fn line(&self) -> u32 {
        self.line
    }

    /// The number of sectors of the disk.
    pub fn sectors(&self) -> u64 {
        self.sectors
    }

    /// Starts moving `pieces` from or to `sector` on. Gives them back if too much is under way.
    pub fn start(
        &mut self,
        way: Way,
        sector: u64,
        pieces: Vec<Piece>,
        tag: u64,
    ) -> Result<(), Vec<Piece>> {
        let Some(place) = self.under_way.iter().position(Option::is_none) else {
            return Err(pieces);
        };
        let mut request = Box::new(Request {
            kind: if way == Way::Read { 0 } else { 1 },
            reserved: 0,
            sector,
            status: 0xff,
            tag,
            pages: Vec::new(),
            pieces: vec![BLANK; pieces.len() + 2],
        });
        let for_device = if way == Way::Read { FOR_DEVICE } else { 0 };
        let head = Descriptor {
            address: physical_of(&request.kind),
            bytes: 16,
            flags: FOLLOWED,
            next: 1,
        };
        request.pieces[0] = head;
        for (number, piece) in pieces.into_iter().enumerate() {
            request.pieces[number + 1] = Descriptor {
                address: piece.physical,
                bytes: piece.bytes,
                flags: FOLLOWED | for_device,
                next: number as u16 + 2,
            };
            request.pages.extend(piece.page);
        }
        let last = request.pieces.len() - 1;
        request.pieces[last] = Descriptor {
            address: physical_of(&request.status),
            bytes: 1,
            flags: FOR_DEVICE,
            next: 0,
        };
        self.offer(place, &request);
        self.under_way[place] = Some(request);
        Ok(())
    }

    /// Tells the device that its interrupt was heard.
    pub fn take_interrupt(&mut self) {
        let causes = self.read(INTERRUPT);
        self.write(INTERRUPT_TAKEN, causes);
    }

    /// Hands over the next request that is over.
    pub fn next_finished(&mut self) -> Option<Finished> {
        // SAFETY: the device writes the count; the page is ours to read.
        let count = unsafe { read_volatile(&raw const self.queue.used_count) };
        if count == self.taken {
            return None;
        }
        fence(Ordering::Acquire);
        let at = usize::from(self.taken) % REQUESTS_MAX;
        // SAFETY: as above; the device has written this place before it raised the count.
        let [place, _] = unsafe { read_volatile(&raw const self.queue.used[at]) };
        self.taken = self.taken.wrapping_add(1);
        let request = self.under_way[place as usize].take();
        let request = request.expect("the device answers what it was asked");
        // SAFETY: the device has written the status, and is done with the request.
        let status = unsafe { read_volatile(&raw const request.status) };
        Some(Finished {
            tag: request.tag,
            is_done: status == 0,
            pages: request.pages,
        })
    }

    /// The number of requests under way.
    pub fn depth(&self) -> usize {
        self.under_way.iter().flatten().count()
    }

    fn offer(&mut self, place: usize, request: &Request) {
        let queue = &mut self.queue;
        queue.table[place] = Descriptor {
            address: physical_of(&request.pieces[..]),
            bytes: size_of_val(&request.pieces[..]) as u32,
            flags: INDIRECT,
            next: 0,
        };
        queue.offered[usize::from(queue.offered_count) % REQUESTS_MAX] = place as u16;
        fence(Ordering::Release);
        let count = queue.offered_count.wrapping_add(1);
        // SAFETY: the device reads the count; the page is ours to write.
        unsafe { write_volatile(&raw mut queue.offered_count, count) };
        fence(Ordering::SeqCst);
        self.write(NOTIFY, 0);
    }

    /// Agrees on features and hands over the queue. Answers whether the device took both.
    fn set_up(&mut self) -> bool {
        self.write(STATUS, 0);
        self.write(STATUS, STATUS_DRIVER);
        let wanted = FEATURE_INDIRECT | FEATURE_MODERN;
        let mut offered = 0;
        for half in 0..2 {
            self.write(FEATURES_HALF, half);
            offered |= u64::from(self.read(FEATURES)) << (32 * half);
        }
        if offered & wanted != wanted {
            return false;
        }
        for half in 0..2 {
            self.write(ACCEPTED_HALF, half);
            self.write(ACCEPTED, (wanted >> (32 * half)) as u32);
        }
        self.write(STATUS, STATUS_DRIVER | STATUS_FEATURES);
        self.write(QUEUE, 0);
        let is_taken = self.read(STATUS) & STATUS_FEATURES != 0;
        if !is_taken || self.read(QUEUE_SIZE_MAX) < REQUESTS_MAX as u32 {
            return false;
        }
        self.write(QUEUE_SIZE, REQUESTS_MAX as u32);
        let parts = [
            (TABLE, physical_of(&self.queue.table)),
            (OFFERED, physical_of(&self.queue.offered_flags)),
            (USED, physical_of(&self.queue.used_flags)),
        ];
        for (register, address) in parts {
            self.write(register, address as u32);
            self.write(register + 4, (address >> 32) as u32);
        }
        self.write(QUEUE_READY, 1);
        self.write(STATUS, STATUS_DRIVER | STATUS_FEATURES | STATUS_RUNNING);
        self.sectors = u64::from(self.read(CAPACITY)) | u64::from(self.read(CAPACITY + 4)) << 32;
        true
    }

    fn read(&self, register: u64) -> u32 {
        // SAFETY: the registers of the transport are mapped, uncached, and belong to this value.
        unsafe { read_volatile((self.registers + register) as *const u32) }
    }

    fn write(&mut self, register: u64, value: u32) {
        // SAFETY: as for reading; what is written is what the specification asks for.
        unsafe { write_volatile((self.registers + register) as *mut u32, value) };
    }
}
