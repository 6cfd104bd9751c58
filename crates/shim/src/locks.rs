//! Locking: `mlock`, `mlock2` and `mlockall`.
//!
//! Locked memory is not managed: the engine brings back its missing pages and unregisters it. Only
//! the kernel knows what may be locked, and filling locked memory with the engine's help would take
//! a fault a page, and frames for ever. So memory is first locked without being filled, then the
//! engine unregisters it, and then the kernel fills the rest.
//!
//! The engine's own memory is left out. Unlocking needs no hook: the engine looks now and then.

use std::ffi::{c_int, c_uint, c_void};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::mm::{MlockAllFlags, MlockFlags};
use rustix::process::{Resource, getrlimit};
use rustix::thread::CapabilitySet;
use tidemark_live::requests::Ask;
use tidemark_live::sys::maps::{Area, Kind, Maps};
use tidemark_live::sys::{Errno, PAGE, memory};

use crate::calls::keeping_errno;
use crate::hooks::files;
use crate::own::visit_foreign;
use crate::process::{ASK_LIMIT, PROCESS};

/// True if the kernel locks every mapping from now on.
static IS_FUTURE: AtomicBool = AtomicBool::new(false);

/// Interposes `mlock`.
///
/// # Safety
/// As for the C library's `mlock`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mlock(start: *const c_void, bytes: usize) -> c_int {
    lock(start as usize, bytes, MlockFlags::empty())
}

/// Interposes `mlock2`.
///
/// # Safety
/// As for the C library's `mlock2`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mlock2(start: *const c_void, bytes: usize, flags: c_uint) -> c_int {
    lock(start as usize, bytes, MlockFlags::from_bits_retain(flags))
}

/// Interposes `mlockall`.
///
/// # Safety
/// As for the C library's `mlockall`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mlockall(flags: c_int) -> c_int {
    let flags = MlockAllFlags::from_bits_retain(flags as u32);
    let known = MlockAllFlags::CURRENT | MlockAllFlags::FUTURE | MlockAllFlags::ONFAULT;
    let is_about_now = flags.contains(MlockAllFlags::CURRENT) && known.contains(flags);
    let locked = match is_about_now {
        true => lock_current(flags),
        // Nothing that is mapped is locked by that, if it is allowed at all.
        false => lock_future(flags),
    };
    answer(locked)
}

/// Locks memory as the program asks by the number of the system call.
#[cfg(target_arch = "x86_64")]
pub(crate) extern "C" fn lock_by_call(
    number: std::ffi::c_long,
    a: usize,
    b: usize,
    c: usize,
) -> std::ffi::c_long {
    // SAFETY: these have no needs.
    let answer = unsafe {
        match number {
            libc::SYS_mlockall => mlockall(a as c_int),
            libc::SYS_mlock2 => mlock2(a as *const c_void, b, c as c_uint),
            _ => mlock(a as *const c_void, b),
        }
    };
    std::ffi::c_long::from(answer)
}

fn lock(start: usize, bytes: usize, flags: MlockFlags) -> c_int {
    let lock_as = |flags: MlockFlags| {
        visit_foreign(start, bytes, |start, bytes| {
            answer(lock_range(start, bytes, flags))
        })
    };
    let is_known = MlockFlags::ONFAULT.contains(flags);
    if !is_known || bytes == 0 || !PROCESS.requests.has_engine() {
        return lock_as(flags);
    }
    files::give_up(start, bytes);
    let marked = lock_as(MlockFlags::ONFAULT);
    // Of a range that ends early, what came before that end is locked.
    let is_large = let_go(start, bytes);
    if marked != 0 || flags == MlockFlags::ONFAULT {
        return marked;
    }
    let locked = lock_as(flags);
    if is_large {
        let_go(start, bytes);
    }
    locked
}

/// Locks all that is mapped but the engine's memory, and, if that is wanted, what will be.
fn lock_current(flags: MlockAllFlags) -> Result<(), Errno> {
    // The list is read through a buffer of own memory.
    let mut maps = Maps::open()?;
    check_limit(&mut maps)?;
    files::give_up(0, usize::MAX & !(PAGE - 1));
    if !flags.contains(MlockAllFlags::FUTURE) && IS_FUTURE.load(Ordering::Relaxed) {
        // There is no other way to have the kernel forget that.
        rustix::mm::munlockall()?;
        IS_FUTURE.store(false, Ordering::Relaxed);
    }
    let mut refusal = None;
    maps.visit_areas(|area| {
        let locked = lock_area(area, MlockFlags::ONFAULT);
        // Another thread may have unmapped some of it since the list was read.
        if let Err(error) = locked
            && error != Errno::NOMEM
        {
            refusal = Some(error);
        }
    })?;
    let is_large = let_go(0, usize::MAX & !(PAGE - 1));
    if let Some(error) = refusal {
        return Err(error);
    }
    if !flags.contains(MlockAllFlags::ONFAULT) {
        maps.visit_areas(|area| {
            // What can't be filled, such as memory without rights, is locked as it is.
            let _ = lock_area(area, MlockFlags::empty());
        })?;
    }
    if is_large {
        let_go(0, usize::MAX & !(PAGE - 1));
    }
    match flags.contains(MlockAllFlags::FUTURE) {
        true => lock_future(flags.difference(MlockAllFlags::CURRENT)),
        false => Ok(()),
    }
}

/// Has the kernel lock what is mapped from now on.
fn lock_future(flags: MlockAllFlags) -> Result<(), Errno> {
    rustix::mm::mlockall(flags)?;
    IS_FUTURE.store(true, Ordering::Relaxed);
    Ok(())
}

/// Checks that the kernel would let this process lock all that is mapped, the engine's memory
/// apart.
fn check_limit(maps: &mut Maps) -> Result<(), Errno> {
    let Some(limit) = getrlimit(Resource::Memlock).current else {
        return Ok(());
    };
    let may_exceed = rustix::thread::capabilities(None)
        .is_ok_and(|sets| sets.effective.contains(CapabilitySet::IPC_LOCK));
    if may_exceed {
        return Ok(());
    }
    let mut bytes = 0u64;
    maps.visit_areas(|area| {
        if !is_left_out(area) {
            bytes += (area.end - area.start) as u64;
        }
    })?;
    match limit {
        0 => Err(Errno::PERM),
        _ if bytes > limit => Err(Errno::NOMEM),
        _ => Ok(()),
    }
}

fn lock_area(area: Area, flags: MlockFlags) -> Result<(), Errno> {
    match is_left_out(area) {
        true => Ok(()),
        false => lock_range(area.start, area.end - area.start, flags),
    }
}

/// The engine's memory, this library, and the kernel's own pages.
fn is_left_out(area: Area) -> bool {
    let is_own = memory::own_ranges().any(|(start, end)| start <= area.start && area.end <= end);
    area.kind == Kind::Special || is_own
}

fn lock_range(start: usize, bytes: usize, flags: MlockFlags) -> Result<(), Errno> {
    let start = start as *mut c_void;
    // SAFETY: locking changes no memory; the kernel checks the range.
    unsafe {
        match flags == MlockFlags::empty() {
            true => rustix::mm::mlock(start, bytes),
            false => rustix::mm::mlock_with(start, bytes, flags),
        }
    }
}

/// Makes the engine unregister locked memory in a range. Returns true if that was so much that the
/// engine must look again.
fn let_go(start: usize, bytes: usize) -> bool {
    let first = start & !(PAGE - 1);
    let bytes = start.saturating_add(bytes).saturating_sub(first);
    let ask = Ask::Lock {
        start: first,
        bytes: bytes.checked_next_multiple_of(PAGE).unwrap_or(bytes),
    };
    keeping_errno(|| PROCESS.requests.ask(ask, ASK_LIMIT)) == Some(1)
}

/// The kernel's answer as the C library's.
fn answer(result: Result<(), Errno>) -> c_int {
    let Err(error) = result else { return 0 };
    // SAFETY: sets the calling thread's error number.
    unsafe { *libc::__errno_location() = error.raw_os_error() };
    -1
}
