//! The kernel's heap: blocks of powers of two, which are halved, and joined again when both halves
//! are free (Knuth, "The Art of Computer Programming", volume 1, section 2.5, the buddy system).
//!
//! What programs have the kernel keep (tables, processes, regions) must not use the heap up, since
//! the kernel can't go on without: before each thing that takes memory it asks [`has_room`].
//!
//! # Invariants
//! 1. Blocks do not overlap, and cover the heap but for its map. Each begins at a multiple of its
//!    size, counted from the start.
//! 2. The map says of the first unit of each free block how large it is, and of no other unit.
//! 3. No free block is the other half of one that is as large and free.

use core::alloc::{GlobalAlloc, Layout};
use core::cell::UnsafeCell;
use core::ptr::null_mut;
use core::slice;

/// The smallest block, which holds the links of a list.
const UNIT: usize = 64;
const PAGE: usize = 4096;
const SIZES: usize = 40;
/// In the map: no free block begins there. Else it is the binary logarithm of the block's size.
const NOT_FREE: u8 = 0;

/// The most that serving a fault takes, in tables, beside what doubles.
const FAULT_BYTES: usize = 1 << 20;
/// The bytes left beside that when a program asks the kernel to keep more for it: such calls are
/// refused before faults are.
const CALL_BYTES: usize = 4 << 20;

/// The purpose for which the heap is to have room.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Purpose {
    /// Memory to serve a fault. Without it a program has to end.
    Fault,
    /// To do a call that has the kernel keep more than before: files, regions, processes.
    Call,
    /// To keep this many bytes of a file.
    Contents(usize),
}

/// A free block: the neighbours in the list of its size.
struct Links {
    before: *mut Links,
    behind: *mut Links,
}

struct Blocks {
    start: usize,
    end: usize,
    /// A byte for each unit, at the end of the heap.
    map: &'static mut [u8],
    /// The first free block of each size.
    free: [*mut Links; SIZES],
    /// Bytes in blocks that are in use.
    used: usize,
    /// The largest block to which something has grown.
    grown: usize,
}

struct Heap(UnsafeCell<Blocks>);

// SAFETY: there is one processor, and the kernel runs with interrupts off: no call interrupts
// another.
unsafe impl Sync for Heap {}

#[global_allocator]
static HEAP: Heap = Heap(UnsafeCell::new(Blocks {
    start: 0,
    end: 0,
    map: &mut [],
    free: [null_mut(); SIZES],
    used: 0,
    grown: 0,
}));

/// Gives the heap its memory, which begins a page.
///
/// # Safety
/// The addresses are mapped for writing, and no other code uses them from now on.
pub(super) unsafe fn start(from: usize, end: usize) {
    let units = (end - from) / (UNIT + 1);
    let end = from + units * UNIT;
    // SAFETY: see `Sync`. The map lies behind the blocks, in the same memory.
    unsafe {
        let blocks = &mut *HEAP.0.get();
        let map = slice::from_raw_parts_mut(end as *mut u8, units);
        map.fill(NOT_FREE);
        (blocks.start, blocks.end, blocks.map) = (from, end, map);
        let mut at = 0;
        while at < end - from {
            let size = largest_at(at, end - from);
            blocks.put(at, size);
            at += 1 << size;
        }
    }
}

/// The number of bytes in use.
pub fn used_bytes() -> usize {
    // SAFETY: see `Sync`.
    unsafe { (*HEAP.0.get()).used }
}

/// Returns true if there is room for what `purpose` may take.
pub fn has_room(purpose: Purpose) -> bool {
    // SAFETY: see `Sync`.
    let blocks = unsafe { &*HEAP.0.get() };
    // The largest table may be about to double.
    let in_one_block = FAULT_BYTES.max(2 * blocks.grown);
    let in_all = match purpose {
        Purpose::Fault => in_one_block,
        Purpose::Call => in_one_block + CALL_BYTES,
        Purpose::Contents(bytes) if !blocks.has_free(bytes) => return false,
        Purpose::Contents(bytes) => in_one_block + CALL_BYTES + bytes.next_power_of_two(),
    };
    blocks.has_free(in_one_block) && blocks.end - blocks.start - blocks.used >= in_all
}

/// The binary logarithm of the largest block that may begin `at` bytes from the start, and ends
/// before `end`.
fn largest_at(at: usize, end: usize) -> usize {
    let within = (end - at).ilog2();
    let aligned = if at == 0 { within } else { at.trailing_zeros() };
    aligned.min(within) as usize
}

/// The binary logarithm of the size of the block for `layout`.
fn size_of(layout: Layout) -> usize {
    let bytes = layout.size().max(layout.align()).max(UNIT);
    bytes.next_power_of_two().trailing_zeros() as usize
}

impl Blocks {
    /// Returns true if a block of `bytes`, rounded up to a power of two, is free.
    fn has_free(&self, bytes: usize) -> bool {
        let size = bytes.next_power_of_two().trailing_zeros() as usize;
        self.free[size..].iter().any(|block| !block.is_null())
    }

    /// Puts a free block into the list of its size.
    ///
    /// # Safety
    /// The block has no owner.
    unsafe fn put(&mut self, at: usize, size: usize) {
        let block = (self.start + at) as *mut Links;
        let behind = self.free[size];
        // SAFETY: free blocks are the heap's own to write to, and as large as links at least.
        unsafe {
            let before = null_mut();
            block.write(Links { before, behind });
            if !behind.is_null() {
                (*behind).before = block;
            }
        }
        self.free[size] = block;
        self.map[at / UNIT] = size as u8;
    }

    /// Takes a free block out of the list of its size.
    ///
    /// # Safety
    /// It stands there.
    unsafe fn take(&mut self, at: usize, size: usize) {
        let block = (self.start + at) as *mut Links;
        // SAFETY: the block and its neighbours in the list are free, and hold links.
        unsafe {
            let Links { before, behind } = block.read();
            match before.is_null() {
                true => self.free[size] = behind,
                false => (*before).behind = behind,
            }
            if !behind.is_null() {
                (*behind).before = before;
            }
        }
        self.map[at / UNIT] = NOT_FREE;
    }
}

// SAFETY: blocks that are handed out are disjoint, large enough and aligned: a block begins at a
// multiple of its size from the start, which begins a page, and nothing is aligned more than that.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: see `Sync`.
        let blocks = unsafe { &mut *self.0.get() };
        let size = size_of(layout);
        let found = (size..SIZES).find(|&larger| !blocks.free[larger].is_null());
        let Some(found) = found.filter(|_| layout.align() <= PAGE) else {
            return null_mut();
        };
        let at = blocks.free[found] as usize - blocks.start;
        // SAFETY: the block is the first of its list; what is put back are the halves behind that
        // which is kept.
        unsafe {
            blocks.take(at, found);
            (size..found)
                .rev()
                .for_each(|half| blocks.put(at + (1 << half), half));
        }
        blocks.used += 1 << size;
        (blocks.start + at) as *mut u8
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // SAFETY: the caller promises that the size is one for this alignment.
        let larger = unsafe { Layout::from_size_align_unchecked(bytes, layout.align()) };
        // SAFETY: see `Sync`.
        let blocks = unsafe { &mut *self.0.get() };
        blocks.grown = blocks.grown.max(1 << size_of(larger));
        if size_of(larger) == size_of(layout) {
            return block;
        }
        // SAFETY: the caller's promises; both blocks hold what is copied.
        unsafe {
            let target = self.alloc(larger);
            if !target.is_null() {
                target.copy_from_nonoverlapping(block, bytes.min(layout.size()));
                self.dealloc(block, layout);
            }
            target
        }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: see `Sync`.
        let blocks = unsafe { &mut *self.0.get() };
        let (mut at, mut size) = (block as usize - blocks.start, size_of(layout));
        blocks.used -= 1 << size;
        loop {
            let other = at ^ (1 << size);
            if blocks.map.get(other / UNIT) != Some(&(size as u8)) {
                break;
            }
            // SAFETY: the map says that the other half is free, and so in the list of its size.
            unsafe { blocks.take(other, size) };
            (at, size) = (at.min(other), size + 1);
        }
        // SAFETY: the block was handed out with this layout and is not used any more; nor are those
        // it was joined with.
        unsafe { blocks.put(at, size) };
    }
}
