//! The places in the C library where it calls the kernel by itself: a fork, growth of the heap, and
//! mappings of its own (arenas of `malloc`, large blocks); moves of those where memory must stay in
//! a range.
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

use crate::calls::find_original;
use crate::{forks, hooks, places};

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
static MOVE_BACK: AtomicUsize = AtomicUsize::new(0);

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

/// The place of moves, which matters where memory must stay in a range.
const MOVES: Site = Site {
    function: c"mremap",
    call: libc::SYS_mremap,
    entry: move_entry,
    back: &MOVE_BACK,
};

/// Has the C library come here for the calls of [`SITES`], and for its moves if memory must stay in
/// a range. An error names the function in which there is no such place, or that can't be written
/// to.
pub(crate) fn replace(stays_in_range: bool) -> Result<(), (&'static CStr, Errno)> {
    let moves = stays_in_range.then_some(&MOVES);
    for site in SITES.iter().chain(moves) {
        site.replace().map_err(|error| (site.function, error))?;
    }
    Ok(())
}

impl Site {
    fn replace(&self) -> Result<(), Errno> {
        static NONE: AtomicUsize = AtomicUsize::new(0);
        NONE.store(0, Ordering::Relaxed);
        let start = find_original(&NONE, self.function);
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
        self.back.store(at + arch::PLACE_BYTES, Ordering::Release);
        let jump = arch::jump(at, self.entry as usize).ok_or(Errno::RANGE)?;
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

/// A branch reaches 128 MiB, and goes back by no register: so each place has a page near the C
/// library, which keeps the registers that it takes to call.
#[cfg(target_arch = "aarch64")]
mod arch {
    use std::ffi::c_long;

    use rustix::mm::{MapFlags, MprotectFlags, ProtFlags};
    use tidemark_live::sys::PAGE;

    /// `svc #0`.
    pub(super) const PLACE_BYTES: usize = 4;
    const CALL: u32 = 0xd400_0001;
    /// `mov x8, NUMBER` or `mov w8, NUMBER`, but for the number and the width.
    const LOAD: u32 = 0x5280_0008;
    const LOAD_MASK: u32 = 0x7fe0_001f;
    /// The distance that a branch reaches, with room for the C library itself.
    const REACH: usize = 120 << 20;
    const STEP: usize = 64 << 10;

    pub(super) fn find(code: &[u8], call: c_long) -> Option<usize> {
        let mut is_number = false;
        for (index, word) in code.chunks_exact(4).enumerate() {
            let word = u32::from_le_bytes(word.try_into().expect("four bytes"));
            if word == CALL && is_number {
                return Some(index * 4);
            }
            if word & LOAD_MASK == LOAD {
                is_number = word >> 5 & 0xffff == call as u32;
            }
        }
        None
    }

    /// A branch to a page that calls `entry`, and comes back to the end of the place.
    pub(super) fn jump(at: usize, entry: usize) -> Option<[u8; PLACE_BYTES]> {
        let page = map_near(at)?;
        let words = [
            0xa9be_7bfd,                          // stp x29, x30, [sp, #-32]!
            0xa901_47f0,                          // stp x16, x17, [sp, #16]
            0x5800_00d0,                          // ldr x16, entry
            0xd63f_0200,                          // blr x16
            0xa941_47f0,                          // ldp x16, x17, [sp, #16]
            0xa8c2_7bfd,                          // ldp x29, x30, [sp], #32
            branch(page + 24, at + PLACE_BYTES)?, // b back
            0xd503_201f,                          // nop
            entry as u32,
            (entry >> 32) as u32,
        ];
        // SAFETY: the page was mapped just now, writable, for this alone.
        unsafe { (page as *mut [u32; 10]).write(words) };
        flush(page, size_of_val(&words));
        let rights = MprotectFlags::READ | MprotectFlags::EXEC;
        // SAFETY: as above.
        unsafe { rustix::mm::mprotect(page as *mut _, PAGE, rights) }.ok()?;
        branch(at, page).map(u32::to_le_bytes)
    }

    fn branch(from: usize, to: usize) -> Option<u32> {
        let distance = to.wrapping_sub(from) as isize >> 2;
        let is_near = (-(1 << 25)..1 << 25).contains(&distance);
        is_near.then_some(0x1400_0000 | distance as u32 & 0x03ff_ffff)
    }

    fn map_near(at: usize) -> Option<usize> {
        let (start, flags) = (
            at & !(STEP - 1),
            MapFlags::PRIVATE | MapFlags::FIXED_NOREPLACE,
        );
        let rights = ProtFlags::READ | ProtFlags::WRITE;
        (1..REACH / STEP).find_map(|step| {
            let wanted = start.checked_sub(step * STEP)? as *mut _;
            // SAFETY: a new mapping where there is none.
            let page = unsafe { rustix::mm::mmap_anonymous(wanted, PAGE, rights, flags) };
            page.ok().map(|page| page as usize)
        })
    }

    pub(super) fn flush(start: usize, bytes: usize) {
        for at in (start..start + bytes).step_by(4) {
            // SAFETY: has the processor read again what was written there.
            unsafe {
                std::arch::asm!(
                    "dc cvau, {at}",
                    "dsb ish",
                    "ic ivau, {at}",
                    "dsb ish",
                    "isb",
                    at = in(reg) at,
                );
            }
        }
    }
}

/// Calls a handler with the arguments of a system call, and goes back with its answer. All
/// registers but those that the page near the C library keeps are as they were.
#[cfg(target_arch = "aarch64")]
macro_rules! entry {
    ($name:ident, $handler:path, $back:ident) => {
        #[unsafe(naked)]
        unsafe extern "C" fn $name() {
            std::arch::naked_asm!(
                "stp x29, x30, [sp, #-144]!",
                "mov x29, sp",
                "stp x1, x2, [sp, #16]",
                "stp x3, x4, [sp, #32]",
                "stp x5, x6, [sp, #48]",
                "stp x7, x8, [sp, #64]",
                "stp x9, x10, [sp, #80]",
                "stp x11, x12, [sp, #96]",
                "stp x13, x14, [sp, #112]",
                "stp x15, x18, [sp, #128]",
                "sub sp, sp, #384",
                "stp q0, q1, [sp]",
                "stp q2, q3, [sp, #32]",
                "stp q4, q5, [sp, #64]",
                "stp q6, q7, [sp, #96]",
                "stp q16, q17, [sp, #128]",
                "stp q18, q19, [sp, #160]",
                "stp q20, q21, [sp, #192]",
                "stp q22, q23, [sp, #224]",
                "stp q24, q25, [sp, #256]",
                "stp q26, q27, [sp, #288]",
                "stp q28, q29, [sp, #320]",
                "stp q30, q31, [sp, #352]",
                "bl {handler}",
                "ldp q0, q1, [sp]",
                "ldp q2, q3, [sp, #32]",
                "ldp q4, q5, [sp, #64]",
                "ldp q6, q7, [sp, #96]",
                "ldp q16, q17, [sp, #128]",
                "ldp q18, q19, [sp, #160]",
                "ldp q20, q21, [sp, #192]",
                "ldp q22, q23, [sp, #224]",
                "ldp q24, q25, [sp, #256]",
                "ldp q26, q27, [sp, #288]",
                "ldp q28, q29, [sp, #320]",
                "ldp q30, q31, [sp, #352]",
                "add sp, sp, #384",
                "ldp x1, x2, [sp, #16]",
                "ldp x3, x4, [sp, #32]",
                "ldp x5, x6, [sp, #48]",
                "ldp x7, x8, [sp, #64]",
                "ldp x9, x10, [sp, #80]",
                "ldp x11, x12, [sp, #96]",
                "ldp x13, x14, [sp, #112]",
                "ldp x15, x18, [sp, #128]",
                "ldp x29, x30, [sp], #144",
                "ret",
                handler = sym $handler,
            )
        }
    };
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
entry!(move_entry, places::move_memory, MOVE_BACK);
