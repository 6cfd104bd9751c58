//! Calls of the kernel and of the functions behind ours, with the error numbers of both.

use std::ffi::{c_int, c_long};
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Turns the kernel's answer into the C library's.
pub(crate) extern "C" fn note_error(answer: c_long) -> c_long {
    if (-4095..0).contains(&answer) {
        // SAFETY: sets the calling thread's error number.
        unsafe { *libc::__errno_location() = -answer as c_int };
        return -1;
    }
    answer
}

/// The address of the function behind one of ours, kept in `found`; zero if there is none.
pub(crate) fn find_original(found: &AtomicUsize, name: &std::ffi::CStr) -> usize {
    let mut address = found.load(Ordering::Acquire);
    if address == 0 {
        // SAFETY: a name ended by a zero byte.
        address = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) } as usize;
        found.store(address, Ordering::Release);
    }
    address
}

/// Runs `body`, and leaves the calling thread its error number.
pub(crate) fn keeping_errno<T>(body: impl FnOnce() -> T) -> T {
    // SAFETY: the calling thread's own error number, at both ends.
    let before = unsafe { *libc::__errno_location() };
    let value = body();
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = before };
    value
}

/// A system call, as the kernel answers it.
///
/// # Safety
/// As for the call.
pub(crate) unsafe fn system_call(number: c_long, [a, b, c, d, e]: [c_long; 5]) -> c_long {
    // SAFETY: by the caller's word.
    unsafe { system_call_of_six(number, [a, b, c, d, e, 0]) }
}

/// A file of the program's as the kernel describes it, if it is a regular one.
pub(crate) fn regular_file(number: RawFd) -> Option<libc::stat> {
    // SAFETY: all zeros are a value of it.
    let mut found = unsafe { std::mem::zeroed::<libc::stat>() };
    let place = &raw mut found;
    // SAFETY: the kernel writes to a live record, of its own layout.
    let answer = unsafe { system_call(libc::SYS_fstat, [number.into(), place as _, 0, 0, 0]) };
    (answer == 0 && found.st_mode & libc::S_IFMT == libc::S_IFREG).then_some(found)
}

/// A system call with six arguments.
///
/// # Safety
/// As for the call.
#[cfg(target_arch = "x86_64")]
pub(crate) unsafe fn system_call_of_six(number: c_long, [a, b, c, d, e, f]: [c_long; 6]) -> c_long {
    let answer: c_long;
    // SAFETY: by the caller's word.
    unsafe {
        std::arch::asm!(
            "syscall",
            inlateout("rax") number => answer,
            in("rdi") a,
            in("rsi") b,
            in("rdx") c,
            in("r10") d,
            in("r8") e,
            in("r9") f,
            lateout("rcx") _,
            lateout("r11") _,
        );
    }
    answer
}

/// A system call with six arguments.
///
/// # Safety
/// As for the call.
#[cfg(target_arch = "aarch64")]
pub(crate) unsafe fn system_call_of_six(number: c_long, [a, b, c, d, e, f]: [c_long; 6]) -> c_long {
    let answer: c_long;
    // SAFETY: by the caller's word.
    unsafe {
        std::arch::asm!(
            "svc #0",
            in("x8") number,
            inlateout("x0") a => answer,
            in("x1") b,
            in("x2") c,
            in("x3") d,
            in("x4") e,
            in("x5") f,
        );
    }
    answer
}

/// Pushes the registers that may hold arguments: seven words, which align the stack for a call.
#[cfg(target_arch = "x86_64")]
macro_rules! keep_arguments {
    () => {
        "push rdi\npush rsi\npush rdx\npush rcx\npush r8\npush r9\npush rax"
    };
}

/// Brings them back.
#[cfg(target_arch = "x86_64")]
macro_rules! restore_arguments {
    () => {
        "pop rax\npop r9\npop r8\npop rcx\npop rdx\npop rsi\npop rdi"
    };
}

/// Interposes one function each, by its name and a number. `prepare` is called with the first three
/// arguments, as far as there are any, and that number. It answers where to go on, with all
/// arguments as they lie in registers and on the stack.
#[cfg(target_arch = "x86_64")]
macro_rules! interpose {
    ($prepare:ident, $($name:ident $number:literal)*) => {$(
        /// Interposes the function of this name.
        ///
        /// # Safety
        /// As for the C library's.
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name() {
            std::arch::naked_asm!(
                crate::calls::keep_arguments!(),
                "mov ecx, {number}",
                "call {prepare}",
                "mov r11, rax",
                crate::calls::restore_arguments!(),
                "jmp r11",
                number = const $number,
                prepare = sym $prepare,
            )
        }
    )*};
}

#[cfg(target_arch = "x86_64")]
pub(crate) use {interpose, keep_arguments, restore_arguments};
