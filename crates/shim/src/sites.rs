//! The places in the C library where it calls the kernel by itself: a fork, growth of the heap, and
//! mappings of its own (arenas of `malloc`, large blocks).
//!
//! No symbol stands between such a call and the kernel, so the instruction itself is replaced: the
//! system call of `_Fork`, `brk` and `mmap` becomes a jump to here. Each is found by its number in
//! the function of that name, as compilers write it; the registers of a system call are kept.
//!
//! This gives control at the one moment that matters for a fork: when the C library has taken all
//! its locks, so that no thread that waits for a page can hold one, and in the child before
//! anything else runs there. And it makes memory managed before `malloc` hands it out.
//!
//! # Invariants
//! 1. The places are replaced once, in the constructor, before the program has threads.
//! 2. A handler answers as the kernel does, allocates nothing and waits for the engine alone.

use std::ffi::{CStr, c_long};
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::mm::MprotectFlags;
use tidemark_live::sys::{Errno, PAGE};

use crate::{forks, hooks};

/// The most bytes of a function that are searched.
const FUNCTION_BYTES_MAX: usize = 256;

/// One place.
struct Site {
    function: &'static CStr,
    call: c_long,
    entry: unsafe extern "C" fn(),
    /// The address at which the C library goes on.
    back: &'static AtomicUsize,
}

static FORK_BACK: AtomicUsize = AtomicUsize::new(0);
static HEAP_BACK: AtomicUsize = AtomicUsize::new(0);
static MAP_BACK: AtomicUsize = AtomicUsize::new(0);

const SITES: [Site; 3] = [
    Site {
        function: c"_Fork",
        call: libc::SYS_clone,
        entry: fork_entry,
        back: &FORK_BACK,
    },
    Site {
        function: c"brk",
        call: libc::SYS_brk,
        entry: heap_entry,
        back: &HEAP_BACK,
    },
    Site {
        function: c"mmap",
        call: libc::SYS_mmap,
        entry: map_entry,
        back: &MAP_BACK,
    },
];

/// Has the C library come here for the calls of [`SITES`]. An error names the function in which
/// there is no such place, or that can't be written to.
pub(crate) fn replace() -> Result<(), (&'static CStr, Errno)> {
    for site in &SITES {
        site.replace().map_err(|error| (site.function, error))?;
    }
    Ok(())
}

impl Site {
    fn replace(&self) -> Result<(), Errno> {
        static NONE: AtomicUsize = AtomicUsize::new(0);
        NONE.store(0, Ordering::Relaxed);
        let start = hooks::find_original(&NONE, self.function);
        if start == 0 {
            return Err(Errno::NOENT);
        }
        // SAFETY: code of the C library, which is longer than its last function, or that many bytes
        // are still of its pages: nothing is read beyond the page after the function's first.
        let end = (start + FUNCTION_BYTES_MAX).min((start & !(PAGE - 1)) + 2 * PAGE);
        // SAFETY: as above.
        let code = unsafe { std::slice::from_raw_parts(start as *const u8, end - start) };
        let found = arch::find(code, self.call).ok_or(Errno::NOENT)?;
        let at = start + found;
        let jump = arch::jump(at, self.entry as usize).ok_or(Errno::RANGE)?;
        self.back.store(at + arch::PLACE_BYTES, Ordering::Release);
        write(at, &jump)
    }
}

/// Writes code.
fn write(at: usize, code: &[u8]) -> Result<(), Errno> {
    let first = at & !(PAGE - 1);
    let bytes = (at + code.len()).next_multiple_of(PAGE) - first;
    let change = |rights| {
        // SAFETY: pages of the C library's code; they stay executable.
        unsafe { rustix::mm::mprotect(first as *mut _, bytes, rights) }
    };
    let usual = MprotectFlags::READ | MprotectFlags::EXEC;
    change(usual | MprotectFlags::WRITE)?;
    // SAFETY: writable just now, and no other thread runs there.
    unsafe { std::ptr::copy_nonoverlapping(code.as_ptr(), at as *mut u8, code.len()) };
    arch::flush(at, code.len());
    change(usual)
}

#[cfg(target_arch = "x86_64")]
mod arch {
    use std::ffi::c_long;

    /// `mov eax, NUMBER` and `syscall`.
    pub(super) const PLACE_BYTES: usize = 7;

    pub(super) fn find(code: &[u8], call: c_long) -> Option<usize> {
        let [a, b, c, d] = (call as u32).to_le_bytes();
        let place = [0xb8, a, b, c, d, 0x0f, 0x05];
        code.windows(PLACE_BYTES).position(|bytes| *bytes == place)
    }

    /// A jump to `entry`, and two bytes of nothing.
    pub(super) fn jump(at: usize, entry: usize) -> Option<[u8; PLACE_BYTES]> {
        let distance = i32::try_from(entry.wrapping_sub(at + 5) as isize).ok()?;
        let [a, b, c, d] = distance.to_le_bytes();
        Some([0xe9, a, b, c, d, 0x66, 0x90])
    }

    pub(super) fn flush(_: usize, _: usize) {}
}

/// Calls a handler with the arguments of a system call, and goes back with its answer. All
/// registers but those that a system call changes are as they were, and so is the red zone.
#[cfg(target_arch = "x86_64")]
macro_rules! entry {
    ($name:ident, $handler:path, $back:ident) => {
        #[unsafe(naked)]
        unsafe extern "C" fn $name() {
            std::arch::naked_asm!(
                "lea rsp, [rsp - 128]",
                "push rdi",
                "push rsi",
                "push rdx",
                "push r8",
                "push r9",
                "push r10",
                "push rbp",
                "mov rbp, rsp",
                "sub rsp, 256",
                "and rsp, -16",
                "movaps [rsp], xmm0",
                "movaps [rsp + 16], xmm1",
                "movaps [rsp + 32], xmm2",
                "movaps [rsp + 48], xmm3",
                "movaps [rsp + 64], xmm4",
                "movaps [rsp + 80], xmm5",
                "movaps [rsp + 96], xmm6",
                "movaps [rsp + 112], xmm7",
                "movaps [rsp + 128], xmm8",
                "movaps [rsp + 144], xmm9",
                "movaps [rsp + 160], xmm10",
                "movaps [rsp + 176], xmm11",
                "movaps [rsp + 192], xmm12",
                "movaps [rsp + 208], xmm13",
                "movaps [rsp + 224], xmm14",
                "movaps [rsp + 240], xmm15",
                "mov rcx, r10",
                "call {handler}",
                "movaps xmm0, [rsp]",
                "movaps xmm1, [rsp + 16]",
                "movaps xmm2, [rsp + 32]",
                "movaps xmm3, [rsp + 48]",
                "movaps xmm4, [rsp + 64]",
                "movaps xmm5, [rsp + 80]",
                "movaps xmm6, [rsp + 96]",
                "movaps xmm7, [rsp + 112]",
                "movaps xmm8, [rsp + 128]",
                "movaps xmm9, [rsp + 144]",
                "movaps xmm10, [rsp + 160]",
                "movaps xmm11, [rsp + 176]",
                "movaps xmm12, [rsp + 192]",
                "movaps xmm13, [rsp + 208]",
                "movaps xmm14, [rsp + 224]",
                "movaps xmm15, [rsp + 240]",
                "mov rsp, rbp",
                "pop rbp",
                "pop r10",
                "pop r9",
                "pop r8",
                "pop rdx",
                "pop rsi",
                "pop rdi",
                "lea rsp, [rsp + 128]",
                "jmp qword ptr [rip + {back}]",
                handler = sym $handler,
                back = sym $back,
            )
        }
    };
}

entry!(fork_entry, forks::fork_at_site, FORK_BACK);
entry!(heap_entry, hooks::grow_heap_at_site, HEAP_BACK);
entry!(map_entry, hooks::map_at_site, MAP_BACK);
