//! The kernel's heap: blocks of powers of two, a list of free ones for each size.
//!
//! What is given back goes to the list of its size and is never divided or joined. Tables that
//! double leave their old blocks behind, at most as much again as the table; in exchange each call
//! takes the same few steps, and the same run takes the same memory.

use core::alloc::{GlobalAlloc, Layout};
use core::cell::UnsafeCell;

/// The smallest block, which holds the link of the list.
const LEAST: usize = 16;
/// Blocks from this size on need not begin at a multiple of their size.
const PAGE: usize = 4096;
const SIZES: usize = 40;

struct Lists {
    /// The first free block of each size; zero: none.
    free: [usize; SIZES],
    next: usize,
    end: usize,
    /// Bytes in blocks that are in use.
    used: usize,
}

struct Heap(UnsafeCell<Lists>);

// SAFETY: there is one processor, and the kernel runs with interrupts off: no call interrupts
// another.
unsafe impl Sync for Heap {}

#[global_allocator]
static HEAP: Heap = Heap(UnsafeCell::new(Lists {
    free: [0; SIZES],
    next: 0,
    end: 0,
    used: 0,
}));

/// Gives the heap its memory.
///
/// # Safety
/// The addresses are mapped for writing, and nobody else uses them from now on.
pub(super) unsafe fn start(from: usize, end: usize) {
    // SAFETY: see `Sync`.
    let lists = unsafe { &mut *HEAP.0.get() };
    (lists.next, lists.end) = (from, end);
}

/// The number of bytes in use.
pub fn used_bytes() -> usize {
    // SAFETY: see `Sync`.
    unsafe { (*HEAP.0.get()).used }
}

fn block_of(layout: Layout) -> usize {
    layout
        .size()
        .max(layout.align())
        .max(LEAST)
        .next_power_of_two()
}

// SAFETY: blocks that are handed out are disjoint, large enough and aligned: a block begins at a
// multiple of its size or of a page, and nothing is aligned more than that.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: see `Sync`.
        let lists = unsafe { &mut *self.0.get() };
        let size = block_of(layout);
        if layout.align() > PAGE {
            return core::ptr::null_mut();
        }
        let list = size.trailing_zeros() as usize;
        let free = lists.free[list];
        let block = if free != 0 {
            // SAFETY: a free block holds the address of the next.
            lists.free[list] = unsafe { *(free as *const usize) };
            free
        } else {
            let block = lists.next.next_multiple_of(size.min(PAGE));
            if size > lists.end.saturating_sub(block) {
                return core::ptr::null_mut();
            }
            lists.next = block + size;
            block
        };
        lists.used += size;
        block as *mut u8
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: see `Sync`.
        let lists = unsafe { &mut *self.0.get() };
        let size = block_of(layout);
        let list = size.trailing_zeros() as usize;
        // SAFETY: the block was handed out with this layout and is not used any more.
        unsafe { *(block as *mut usize) = lists.free[list] };
        lists.free[list] = block as usize;
        lists.used -= size;
    }
}
