//! The addresses of the program's memory, where its system calls are held up until their memory is
//! there ([`tidemark_live::sys::calls`]).
//!
//! All that is managed lies in one range, by which the filter of calls knows it. So new private
//! memory is placed there, one mapping after the other, and stays there when it grows. What the
//! kernel uses without a call of the program (stacks, and what the C library keeps of threads) lies
//! elsewhere, as does the heap of `brk`: that does not grow here, and the C library maps memory
//! instead.

use std::ffi::{c_int, c_long};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use tidemark_live::sys::PAGE;
use tidemark_live::sys::calls::{RANGE, is_in_range};

use crate::calls::{find_original, system_call, system_call_of_six};

/// Places asked for below this address are asked for with a reason: what lies there is named by
/// numbers of 32 bits, shifted or not.
const LOW_END: usize = 64 << 30;
/// The most places that are tried for a mapping.
const TRIES_MAX: u32 = 4096;
/// The part of the range in which the first mapping is placed, by chance.
const FIRST_BYTES: usize = 1 << 40;

/// The place of the next mapping; zero: mappings lie where the kernel places them.
static NEXT: AtomicUsize = AtomicUsize::new(0);
/// True while the program itself moves the end of the heap of `brk`.
static IS_HEAP_OPEN: AtomicBool = AtomicBool::new(false);

/// Places memory from now on.
pub(crate) fn begin() {
    NEXT.store(RANGE.start + first_offset(), Ordering::Release);
}

/// Returns true if memory is placed here.
pub(crate) fn is_on() -> bool {
    NEXT.load(Ordering::Acquire) != 0
}

/// The offset of the first mapping in the range, by the random bytes that the kernel gives each
/// program.
fn first_offset() -> usize {
    // SAFETY: asks for numbers.
    let (bytes, personality) = unsafe {
        (
            libc::getauxval(libc::AT_RANDOM),
            libc::personality(0xffff_ffff),
        )
    };
    let is_fixed = personality & libc::ADDR_NO_RANDOMIZE != 0;
    if bytes == 0 || is_fixed {
        return PAGE;
    }
    // SAFETY: sixteen bytes are there, and stay.
    let word = unsafe { (bytes as *const u64).read_unaligned() };
    (word as usize % FIRST_BYTES)
        .next_multiple_of(PAGE)
        .max(PAGE)
}

/// Returns true if a private anonymous mapping with these arguments is to be placed here.
pub(crate) fn suits(start: usize, rights: c_int, flags: c_int) -> bool {
    const ELSEWHERE: c_int = libc::MAP_FIXED
        | libc::MAP_FIXED_NOREPLACE
        | libc::MAP_STACK
        | libc::MAP_GROWSDOWN
        | libc::MAP_HUGETLB
        | libc::MAP_LOCKED;
    #[cfg(target_arch = "x86_64")]
    const ALSO: c_int = ELSEWHERE | libc::MAP_32BIT;
    #[cfg(not(target_arch = "x86_64"))]
    const ALSO: c_int = ELSEWHERE;
    let is_free = start == 0 || start >= LOW_END;
    is_on() && is_free && flags & ALSO == 0 && rights & libc::PROT_EXEC == 0
}

/// Makes a new mapping in the range, and answers as the kernel does.
pub(crate) fn map(bytes: usize, rights: c_int, flags: c_int) -> c_long {
    let Some(room) = bytes.checked_next_multiple_of(PAGE) else {
        return c_long::from(-libc::ENOMEM);
    };
    if room == 0 || room > RANGE.end - RANGE.start - PAGE {
        let error = if room == 0 {
            libc::EINVAL
        } else {
            libc::ENOMEM
        };
        return c_long::from(-error);
    }
    let kind = c_long::from(flags | libc::MAP_FIXED_NOREPLACE);
    for _ in 0..TRIES_MAX {
        let at = claim(room);
        let arguments = [at as c_long, bytes as c_long, rights.into(), kind, -1, 0];
        // SAFETY: a new mapping, where there is none.
        let answer = unsafe { system_call_of_six(libc::SYS_mmap, arguments) };
        if answer != c_long::from(-libc::EEXIST) {
            return answer;
        }
    }
    c_long::from(-libc::ENOMEM)
}

/// Takes the next place of this size. At the end of the range it goes on at its start.
fn claim(bytes: usize) -> usize {
    let mut at = NEXT.load(Ordering::Acquire);
    loop {
        let start = match at + bytes <= RANGE.end {
            true => at,
            // The first page stays free: no buffer reaches into the range from below.
            false => RANGE.start + PAGE,
        };
        let next = start + bytes;
        match NEXT.compare_exchange(at, next, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => return start,
            Err(other) => at = other,
        }
    }
}

/// Returns true if a call of `mremap` with these arguments would have the kernel choose a place for
/// memory of the range.
pub(crate) fn moves(start: usize, flags: c_int) -> bool {
    let is_free = flags & (libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED) == libc::MREMAP_MAYMOVE;
    is_on() && is_free && is_in_range(start)
}

/// The system call `mremap` for memory that [`moves`], which stays in the range. Answers as the
/// kernel does.
pub(crate) fn move_within(start: usize, bytes_before: usize, bytes: usize, flags: c_int) -> c_long {
    let call = |flags: c_int, place: usize| {
        let arguments = [start, bytes_before, bytes, flags as usize, place];
        // SAFETY: the caller's call, but for its place.
        unsafe { system_call(libc::SYS_mremap, arguments.map(|word| word as c_long)) }
    };
    let stays = flags & libc::MREMAP_DONTUNMAP != 0;
    if !stays {
        let answer = call(flags & !libc::MREMAP_MAYMOVE, 0);
        if answer != c_long::from(-libc::ENOMEM) {
            return answer;
        }
    }
    let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    let place = map(bytes, libc::PROT_NONE, kind);
    if (-4095..0).contains(&place) {
        return place;
    }
    let answer = call(flags | libc::MREMAP_FIXED, place as usize);
    if (-4095..0).contains(&answer) {
        // SAFETY: made above, and known here alone.
        unsafe { system_call(libc::SYS_munmap, [place, bytes as c_long, 0, 0, 0]) };
    }
    answer
}

/// The system call `mremap`, which keeps memory of the range in it. Answers as the kernel does.
///
/// Called by hooks, and in place of the system call in the C library itself.
pub(crate) extern "C" fn move_memory(
    start: usize,
    bytes_before: usize,
    bytes: usize,
    flags: c_int,
    place: usize,
) -> c_long {
    if moves(start, flags) {
        return move_within(start, bytes_before, bytes, flags);
    }
    let arguments = [start, bytes_before, bytes, flags as usize, place];
    // SAFETY: the caller's call.
    unsafe { system_call(libc::SYS_mremap, arguments.map(|word| word as c_long)) }
}

/// Returns true if the heap of `brk`, which ends at `before`, is not to grow to `end`.
pub(crate) fn refuses_heap(before: usize, end: usize) -> bool {
    is_on() && end > before && before != 0 && !IS_HEAP_OPEN.load(Ordering::Acquire)
}

/// Returns true if advice about memory of the range is to be passed over: to fill it would fail
/// where pages are out, and what the kernel may take away at any time might be what a call needs.
pub(crate) fn passes_over(start: usize, advice: c_int) -> bool {
    let known = [
        libc::MADV_POPULATE_READ,
        libc::MADV_POPULATE_WRITE,
        libc::MADV_FREE,
    ];
    is_on() && is_in_range(start) && known.contains(&advice)
}

/// Interposes `sbrk`: a program that keeps its own heap there has it, unmanaged.
///
/// # Safety
/// As for the C library's `sbrk`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sbrk(increment: isize) -> *mut std::ffi::c_void {
    static FOUND: AtomicUsize = AtomicUsize::new(0);
    let found = find_original(&FOUND, c"sbrk");
    if found == 0 {
        return usize::MAX as *mut _;
    }
    type Sbrk = unsafe extern "C" fn(isize) -> *mut std::ffi::c_void;
    // SAFETY: the C library's function has this type.
    let original = unsafe { std::mem::transmute::<usize, Sbrk>(found) };
    // Meanwhile the C library may get a piece of it, too, which is unmanaged, and no harm.
    let was_open = IS_HEAP_OPEN.swap(true, Ordering::AcqRel);
    // SAFETY: passed on as it is.
    let answer = unsafe { original(increment) };
    IS_HEAP_OPEN.store(was_open, Ordering::Release);
    answer
}

/// Interposes `brk`, likewise.
///
/// # Safety
/// As for the C library's `brk`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn brk(end: *mut std::ffi::c_void) -> c_int {
    static FOUND: AtomicUsize = AtomicUsize::new(0);
    let found = find_original(&FOUND, c"brk");
    if found == 0 {
        return -1;
    }
    type Brk = unsafe extern "C" fn(*mut std::ffi::c_void) -> c_int;
    // SAFETY: the C library's function has this type.
    let original = unsafe { std::mem::transmute::<usize, Brk>(found) };
    let was_open = IS_HEAP_OPEN.swap(true, Ordering::AcqRel);
    // SAFETY: passed on as it is.
    let answer = unsafe { original(end) };
    IS_HEAP_OPEN.store(was_open, Ordering::Release);
    answer
}
