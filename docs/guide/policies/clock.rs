//! The clock, as a policy that is read from a file: the oldest page leaves, unless it was used
//! since it was last looked at. docs/formats/policy-module-v1.md describes the functions.
//!
//! Rust reserves 1 MiB for the stack of a module unless it is told otherwise, which is all the
//! memory that a policy may have to begin with. 16 KiB are plenty:
//!
//!     rustc --edition 2024 --target wasm32-unknown-unknown -O -C panic=abort \
//!         -C strip=symbols -C link-arg=-zstack-size=16384 --crate-type cdylib \
//!         -o clock.wasm clock.rs
#![no_std]

use core::arch::wasm32;

#[link(wasm_import_module = "tidemark")]
unsafe extern "C" {
    fn may_leave(frame: u32) -> i32;
    fn take_referenced(frame: u32) -> i32;
}

/// A place in the ring of frames.
#[derive(Clone, Copy)]
struct Place {
    next: u32,
    previous: u32,
}

/// The ring, of places one for each frame; its head is the place after the last frame's.
struct Ring {
    places: *mut Place,
    head: u32,
    count: u32,
}

const PAGE_BYTES: usize = 65536;

/// A module has one thread, and one call into it at a time.
static mut RING: Ring = Ring { places: core::ptr::null_mut(), head: 0, count: 0 };

fn ring() -> &'static mut Ring {
    // SAFETY: no call runs inside another, and none keeps what it borrows.
    unsafe { &mut *(&raw mut RING) }
}

impl Ring {
    fn at(&mut self, place: u32) -> &mut Place {
        assert!(place <= self.head);
        // SAFETY: `start` has made a place for every frame and for the head.
        unsafe { &mut *self.places.add(place as usize) }
    }

    fn push(&mut self, frame: u32) {
        let (head, last) = (self.head, self.at(self.head).previous);
        *self.at(frame) = Place { next: head, previous: last };
        self.at(last).next = frame;
        self.at(head).previous = frame;
    }

    fn take(&mut self, frame: u32) {
        let Place { next, previous } = *self.at(frame);
        self.at(previous).next = next;
        self.at(next).previous = previous;
    }
}

/// Says what it must see: bits.
#[unsafe(no_mangle)]
pub extern "C" fn tidemark_policy_v1() -> i32 {
    1
}

#[unsafe(no_mangle)]
pub extern "C" fn summary() -> *const u8 {
    c"the clock, written in Rust: oldest first, with a second chance".as_ptr().cast()
}

#[unsafe(no_mangle)]
pub extern "C" fn start(frames_max: u32, _frames: u32, _seed: u64) {
    let bytes = (frames_max as usize + 1) * size_of::<Place>();
    let at = wasm32::memory_grow(0, bytes.div_ceil(PAGE_BYTES));
    assert_ne!(at, usize::MAX);
    let places = (at * PAGE_BYTES) as *mut Place;
    *ring() = Ring { places, head: frames_max, count: 0 };
    *ring().at(frames_max) = Place { next: frames_max, previous: frames_max };
}

#[unsafe(no_mangle)]
pub extern "C" fn page_entered(
    frame: u32,
    _object: u32,
    _index: u64,
    _cause: i32,
    _space: u32,
    _is_external: i32,
) {
    ring().push(frame);
    ring().count += 1;
}

#[unsafe(no_mangle)]
pub extern "C" fn page_left(frame: u32, _object: u32, _index: u64, _departure: i32) {
    ring().take(frame);
    ring().count -= 1;
}

#[unsafe(no_mangle)]
pub extern "C" fn choose() -> i32 {
    let ring = ring();
    // One round clears every bit, so that the second finds a page if any may leave.
    for _ in 0..2 * ring.count {
        let head = ring.head;
        let frame = ring.at(head).next;
        // SAFETY: both are questions about a frame, asked inside `choose`.
        if unsafe { may_leave(frame) != 0 && take_referenced(frame) == 0 } {
            return frame as i32;
        }
        ring.take(frame);
        ring.push(frame);
    }
    -1
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    wasm32::unreachable()
}
