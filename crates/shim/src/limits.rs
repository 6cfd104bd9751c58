//! The limit of the address space that a program sets itself.
//!
//! The [reserved](tidemark_live::sys::reserve) range counts against that limit, and may be larger
//! than it: the program could map nothing more, and could not fork. So the kernel's limit is the
//! program's and the range together. What the program executes inherits that, and has a range of
//! its own.

use std::ffi::{c_int, c_uint, c_void};

use tidemark_live::sys::{memory, reserve, thread};

use crate::calls::keeping_errno;

/// The soft limit and the hard one.
type Limits = [u64; 2];
const BYTES: usize = size_of::<Limits>();

/// Interposes the ways to ask for a limit and to set it, by their names.
macro_rules! interpose {
    (get: $($get:ident)*; set: $($set:ident)*; both: $($both:ident)*;) => {
        $(
            /// Interposes the function of this name.
            ///
            /// # Safety
            /// As for the C library's.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $get(resource: c_uint, old: *mut c_void) -> c_int {
                change(0, resource, std::ptr::null(), old)
            }
        )*
        $(
            /// Interposes the function of this name.
            ///
            /// # Safety
            /// As for the C library's.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $set(resource: c_uint, new: *const c_void) -> c_int {
                change(0, resource, new, std::ptr::null_mut())
            }
        )*
        $(
            /// Interposes the function of this name.
            ///
            /// # Safety
            /// As for the C library's.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $both(
                process: c_int,
                resource: c_uint,
                new: *const c_void,
                old: *mut c_void,
            ) -> c_int {
                change(process, resource, new, old)
            }
        )*
    };
}

interpose! {
    get: getrlimit getrlimit64;
    set: setrlimit setrlimit64;
    both: prlimit prlimit64;
}

fn change(process: c_int, resource: c_uint, new: *const c_void, old: *mut c_void) -> c_int {
    let own = reserve::unlimited_bytes() as u64;
    let is_here = process == 0 || process == std::process::id() as c_int;
    if resource != libc::RLIMIT_AS || !is_here || own == 0 {
        return call(process, resource, new, old);
    }
    let mut asked = [0; BYTES];
    let mut wanted = Limits::default();
    let mut answer = Limits::default();
    let is_set = !new.is_null();
    if is_set {
        let is_read = keeping_errno(|| thread::read_own_memory(new as usize, &mut asked));
        if is_read.is_none() {
            return call(process, resource, new, old);
        }
        wanted = decode(asked).map(|limit| match limit {
            libc::RLIM_INFINITY => limit,
            // All there can be is no limit, either.
            _ => limit.saturating_add(own),
        });
    }
    let new = match is_set {
        true => (&raw const wanted).cast(),
        false => std::ptr::null(),
    };
    if call(process, resource, new, (&raw mut answer).cast()) != 0 {
        return -1;
    }
    if old.is_null() && is_set {
        return 0;
    }
    let answer = answer.map(|limit| match limit {
        libc::RLIM_INFINITY => limit,
        _ => limit.saturating_sub(own),
    });
    let from = &raw const answer as usize;
    match memory::write_own_memory(old as usize, from, BYTES) {
        Ok(()) => 0,
        // The error number is the one of that.
        Err(_) => -1,
    }
}

fn call(process: c_int, resource: c_uint, new: *const c_void, old: *mut c_void) -> c_int {
    // SAFETY: the kernel checks both addresses.
    unsafe { libc::syscall(libc::SYS_prlimit64, process, resource, new, old) as c_int }
}

fn decode(bytes: [u8; BYTES]) -> Limits {
    let (words, _) = bytes.as_chunks::<8>();
    [u64::from_ne_bytes(words[0]), u64::from_ne_bytes(words[1])]
}
