//! The engine's heap: memory that the program's allocator never sees and that is never paged out.
//!
//! Addresses are taken from the [reserved](reserve) range, a large span at a time, and opened from
//! the bottom up as a `dlmalloc` asks for them: not much more is open than is used. Nothing is
//! given back to the host: the engine's tables are sized when it starts and only follow the
//! program's memory.
//!
//! # Invariants
//! 1. The lock is held only inside allocator calls, which never fault and never wait, and by a
//!    thread that forks, so that the child does not find it taken.

use std::alloc::{GlobalAlloc, Layout};
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use dlmalloc::Dlmalloc;
use tidemark_live::meters::{self, Metered};
use tidemark_live::sys::{PAGE, reserve};

/// The size of a span.
const SPAN_BYTES: usize = 16 << 30;
/// The size of a span where there is no room for that.
const SPAN_BYTES_LEAST: usize = 32 << 20;

/// The least part of what is used, as a divisor, that is opened at one time. In a forked child each
/// opening is a mapping of its own, of which there are to be few.
const OPENED_SHARE: usize = 8;

/// The source of a heap's pages: one span of addresses, used from the bottom up.
struct Span {
    start: AtomicUsize,
    next: AtomicUsize,
    /// The end of the part that can be used.
    opened: AtomicUsize,
    end: AtomicUsize,
}

/// The heap behind all of this library's allocations.
pub(crate) struct Heap {
    lock: AtomicBool,
    heap: UnsafeCell<Dlmalloc<&'static Span>>,
}

static SPAN: Span = Span {
    start: AtomicUsize::new(0),
    next: AtomicUsize::new(0),
    opened: AtomicUsize::new(0),
    end: AtomicUsize::new(0),
};

#[global_allocator]
static HEAP: Heap = Heap {
    lock: AtomicBool::new(false),
    heap: UnsafeCell::new(Dlmalloc::new_with_allocator(&SPAN)),
};

/// Keeps other threads from the heap while the calling one forks.
pub(crate) fn hold() {
    HEAP.take();
}

/// Ends what [`hold`] began, in the parent or in the child.
pub(crate) fn release() {
    HEAP.give_back();
}

impl Span {
    /// Begins a span with room for `bytes`. What is left of the one before is given up.
    fn begin(&self, bytes: usize) -> bool {
        for size in [SPAN_BYTES, SPAN_BYTES_LEAST, bytes] {
            if size >= bytes
                && let Ok(start) = reserve::take(size)
            {
                self.start.store(start, Ordering::Relaxed);
                self.next.store(start, Ordering::Relaxed);
                self.opened.store(start, Ordering::Relaxed);
                self.end.store(start + size, Ordering::Relaxed);
                return true;
            }
        }
        false
    }

    /// Opens it up to `end`, at least.
    fn open(&self, end: usize) -> bool {
        let opened = self.opened.load(Ordering::Relaxed);
        if end <= opened {
            return true;
        }
        let used = end - self.start.load(Ordering::Relaxed);
        let ahead = (opened + used / OPENED_SHARE).next_multiple_of(PAGE);
        let wanted = end.max(ahead).min(self.end.load(Ordering::Relaxed));
        let is_open = reserve::open(opened, wanted - opened).is_ok();
        if is_open {
            self.opened.store(wanted, Ordering::Relaxed);
        }
        is_open
    }
}

// SAFETY: memory handed out lies in a span of the heap's own, is zero, and is handed out once.
unsafe impl dlmalloc::Allocator for &'static Span {
    fn alloc(&self, size: usize) -> (*mut u8, usize, u32) {
        let size = size.next_multiple_of(PAGE);
        let left = self.end.load(Ordering::Relaxed) - self.next.load(Ordering::Relaxed);
        if left < size && !self.begin(size) {
            return (std::ptr::null_mut(), 0, 0);
        }
        let start = self.next.load(Ordering::Relaxed);
        if !self.open(start + size) {
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
    fn with<T>(&self, body: impl FnOnce(&mut Dlmalloc<&'static Span>) -> T) -> T {
        self.take();
        // SAFETY: the lock makes this the only reference.
        let value = body(unsafe { &mut *self.heap.get() });
        self.give_back();
        value
    }

    fn take(&self) {
        let asked_ns = meters::asked();
        let mut is_contended = false;
        while self
            .lock
            .compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed)
            .is_err()
        {
            is_contended = true;
            std::thread::yield_now();
        }
        Metered::Heap.note_taken(asked_ns, is_contended);
    }

    fn give_back(&self) {
        Metered::Heap.note_released();
        self.lock.store(false, Ordering::Release);
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
