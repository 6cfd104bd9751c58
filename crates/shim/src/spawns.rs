//! Programs that the C library executes itself, in a child that shares its parent's memory until
//! then: `posix_spawn` and `posix_spawnp`. No hook sees it, so the supervisor is informed when it
//! is done: unmanageable programs are known at once.

use std::ffi::{c_char, c_int, c_void};
use std::sync::atomic::AtomicUsize;

use crate::calls::find_original;
use crate::process::PROCESS;

type Spawn = unsafe extern "C" fn(
    *mut libc::pid_t,
    *const c_char,
    *const c_void,
    *const c_void,
    *const *mut c_char,
    *const *mut c_char,
) -> c_int;

macro_rules! interpose {
    ($($name:ident $text:literal)*) => {$(
        /// Interposes the function of this name.
        ///
        /// # Safety
        /// As for the C library's.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            child: *mut libc::pid_t,
            program: *const c_char,
            actions: *const c_void,
            attributes: *const c_void,
            arguments: *const *mut c_char,
            variables: *const *mut c_char,
        ) -> c_int {
            static FOUND: AtomicUsize = AtomicUsize::new(0);
            let found = find_original(&FOUND, $text);
            if found == 0 {
                return libc::ENOSYS;
            }
            // SAFETY: the C library's function of this name has this type.
            let original = unsafe { std::mem::transmute::<usize, Spawn>(found) };
            let mut own = 0;
            let place = if child.is_null() { &raw mut own } else { child };
            let (at, path) = (place, program);
            // SAFETY: the caller's arguments, with a place for the number where there was none.
            let error = unsafe { original(at, path, actions, attributes, arguments, variables) };
            if error == 0 {
                // SAFETY: the caller's place, or ours, which has just been written to.
                PROCESS.way.announce_child(unsafe { place.read() }, PROCESS.is_filtered());
            }
            error
        }
    )*};
}

interpose! {
    posix_spawn c"posix_spawn"
    posix_spawnp c"posix_spawnp"
}
