//! The calls of programs to the kernel, as `library.h` has them, and what Rust needs besides: a
//! heap, and an end for panics. A program has `mod library;` and a `main`.

use alloc::vec::Vec;
use core::alloc::{GlobalAlloc, Layout};
use core::cell::Cell;
use core::ffi::{CStr, c_char, c_int, c_long};
use core::fmt;
use core::panic::PanicInfo;

unsafe extern "C" {
    safe fn leave(status: c_int) -> !;
    safe fn map_memory(bytes: usize) -> *mut u8;
    safe fn argument(number: u32) -> *const c_char;
    fn write_bytes(bytes: *const u8, count: usize);
    fn open_file(name: *const c_char) -> c_long;
    fn read_file(file: c_long, bytes: *mut u8, count: usize) -> c_long;
}

// The host's library refers to the unwinding of stacks, which never happens here.
#[cfg(target_os = "linux")]
core::arch::global_asm!(
    ".global rust_eh_personality, _Unwind_Resume",
    "rust_eh_personality:",
    "_Unwind_Resume: ud2",
);

/// The status of a program that panics.
const PANICKED: c_int = 101;
/// The least memory that is mapped at a time.
const PIECE_BYTES: usize = 1 << 18;
/// The bytes that are read at a time.
const PART_BYTES: usize = 4096;

/// The console.
pub struct Console;

impl fmt::Write for Console {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        // SAFETY: the bytes are those of the text.
        unsafe { write_bytes(text.as_ptr(), text.len()) };
        Ok(())
    }
}

/// Writes a line to the console.
#[macro_export]
macro_rules! say {
    ($($part:tt)*) => {{
        use core::fmt::Write;
        // The console takes everything.
        let _ = writeln!($crate::library::Console, $($part)*);
    }};
}

/// Reads the file that the argument of that number names, if there is one.
pub fn read_named(number: u32) -> Option<Vec<u8>> {
    let name = argument(number);
    // SAFETY: `argument` answers nothing, or a text that stays until it is called again.
    let file = unsafe {
        match name.is_null() || CStr::from_ptr(name).is_empty() {
            true => return None,
            false => open_file(name),
        }
    };
    let mut contents = Vec::new();
    let mut part = [0; PART_BYTES];
    while file >= 0 {
        // SAFETY: the part is as long as is said, and is not written to elsewhere.
        let count = unsafe { read_file(file, part.as_mut_ptr(), PART_BYTES) };
        match usize::try_from(count) {
            Ok(0) => return Some(contents),
            Ok(count) => contents.extend_from_slice(&part[..count]),
            Err(_) => return None,
        }
    }
    None
}

/// A heap that frees no block: the kernel frees all memory at the program's end.
struct Heap {
    next: Cell<usize>,
    end: Cell<usize>,
}

// SAFETY: a program has one thread.
unsafe impl Sync for Heap {}

#[global_allocator]
static HEAP: Heap = Heap {
    next: Cell::new(0),
    end: Cell::new(0),
};

// SAFETY: each piece lies in mapped memory, behind all those that were handed out before.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let (size, align) = (layout.size(), layout.align());
        let mut start = self.next.get().next_multiple_of(align);
        if start.saturating_add(size) > self.end.get() {
            let bytes = size.saturating_add(align).max(PIECE_BYTES);
            let piece = map_memory(bytes) as usize;
            if piece == 0 {
                return core::ptr::null_mut();
            }
            start = piece.next_multiple_of(align);
            self.end.set(piece + bytes);
        }
        self.next.set(start + size);
        start as *mut u8
    }

    unsafe fn dealloc(&self, _memory: *mut u8, _layout: Layout) {}
}

/// The program, as the other half of the library calls it.
#[unsafe(no_mangle)]
extern "C" fn run() -> c_int {
    crate::main()
}

#[panic_handler]
fn panic(information: &PanicInfo<'_>) -> ! {
    say!("{information}");
    leave(PANICKED)
}
