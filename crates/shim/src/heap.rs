//! The engine's heap: memory that the program's allocator never sees and nobody pages.
//!
//! One range of addresses is reserved at the first allocation and handed to a `dlmalloc` from the
//! bottom up. Nothing is given back to the host: the engine's tables are sized when it starts and
//! only follow the program's memory.
//!
//! # Invariants
//! 1. The whole range is in the table of own ranges before its first byte is used.
//! 2. The lock is held only inside allocator calls, which never fault and never wait.

use std::alloc::{GlobalAlloc, Layout};
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use dlmalloc::Dlmalloc;
use rustix::mm::{MapFlags, ProtFlags};
use tidemark_live::sys::{PAGE, memory};

/// How much address space is reserved, if the host lets us: it costs nothing until it is used.
const RESERVED_BYTES: usize = 64 << 30;
const RESERVED_BYTES_LEAST: usize = 64 << 20;

/// The source of a heap's pages: one reserved range, used from the bottom up.
struct Range {
    next: AtomicUsize,
    end: AtomicUsize,
}

/// The heap behind all of this library's allocations.
pub(crate) struct Heap {
    lock: AtomicBool,
    heap: UnsafeCell<Dlmalloc<&'static Range>>,
}

static RANGE: Range = Range {
    next: AtomicUsize::new(0),
    end: AtomicUsize::new(0),
};

#[global_allocator]
static HEAP: Heap = Heap {
    lock: AtomicBool::new(false),
    heap: UnsafeCell::new(Dlmalloc::new_with_allocator(&RANGE)),
};

impl Range {
    /// Reserves the range, as large as the host allows. False if it allows nothing useful.
    fn reserve(&self) -> bool {
        let mut bytes = RESERVED_BYTES;
        while bytes >= RESERVED_BYTES_LEAST {
            let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
            let rights = ProtFlags::READ | ProtFlags::WRITE;
            // SAFETY: a new mapping at an address of the kernel's choice disturbs nothing.
            let mapped =
                unsafe { rustix::mm::mmap_anonymous(std::ptr::null_mut(), bytes, rights, flags) };
            if let Ok(start) = mapped {
                memory::add_own(start as usize, bytes);
                // A failure leaves huge pages in the engine's heap, which harms nothing.
                let _ = memory::refuse_huge_pages(start as usize, bytes);
                self.next.store(start as usize, Ordering::Relaxed);
                self.end.store(start as usize + bytes, Ordering::Relaxed);
                return true;
            }
            bytes /= 2;
        }
        false
    }
}

// SAFETY: memory handed out lies in the reserved range, is zero, and is handed out once.
unsafe impl dlmalloc::Allocator for &'static Range {
    fn alloc(&self, size: usize) -> (*mut u8, usize, u32) {
        if self.end.load(Ordering::Relaxed) == 0 && !self.reserve() {
            return (std::ptr::null_mut(), 0, 0);
        }
        let start = self.next.load(Ordering::Relaxed);
        let size = size.next_multiple_of(PAGE);
        if self.end.load(Ordering::Relaxed) - start < size {
            return (std::ptr::null_mut(), 0, 0);
        }
        self.next.store(start + size, Ordering::Relaxed);
        (start as *mut u8, size, 0)
    }

    fn remap(&self, _: *mut u8, _: usize, _: usize, _: bool) -> *mut u8 {
        std::ptr::null_mut()
    }

    fn free_part(&self, _: *mut u8, _: usize, _: usize) -> bool {
        false
    }

    fn free(&self, _: *mut u8, _: usize) -> bool {
        false
    }

    fn can_release_part(&self, _: u32) -> bool {
        false
    }

    fn allocates_zeros(&self) -> bool {
        true
    }

    fn page_size(&self) -> usize {
        PAGE
    }
}

impl Heap {
    fn with<T>(&self, body: impl FnOnce(&mut Dlmalloc<&'static Range>) -> T) -> T {
        while self
            .lock
            .compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed)
            .is_err()
        {
            std::thread::yield_now();
        }
        // SAFETY: the lock makes this the only reference.
        let value = body(unsafe { &mut *self.heap.get() });
        self.lock.store(false, Ordering::Release);
        value
    }
}

// SAFETY: all access to the heap goes through its lock.
unsafe impl Sync for Heap {}

// SAFETY: `Dlmalloc` answers with memory of the wanted size and alignment or null; calls are
// serialised by the lock.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the layout's size and alignment are passed on as they are.
        self.with(|heap| unsafe { heap.malloc(layout.size(), layout.align()) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        self.with(|heap| unsafe { heap.calloc(layout.size(), layout.align()) })
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller got `pointer` from here with this layout.
        self.with(|heap| unsafe { heap.free(pointer, layout.size(), layout.align()) });
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as for `dealloc`.
        self.with(|heap| unsafe { heap.realloc(pointer, layout.size(), layout.align(), size) })
    }
}
