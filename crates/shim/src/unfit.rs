//! Programs that can't have an engine, because of their own libraries (sanitizers, Valgrind).

use std::ffi::{CStr, c_char};

use crate::environment;

/// Sanitizers that keep a map of all memory in memory of the program. An engine reads it wherever
/// it uses the C library, and would wait for its own pages. (Those of leaks and of undefined
/// behaviour have none.) The names by which they are known, and the options that ask for them.
const SANITIZERS: [(&CStr, &str); 5] = [
    (c"__asan_init", "address"),
    (c"__tsan_init", "thread"),
    (c"__msan_init", "memory"),
    (c"__hwasan_init", "hwaddress"),
    (c"__memprof_init", "memory-profile"),
];

/// The reason why this program can't have an engine, in words that follow "the program".
pub(crate) fn reason() -> Option<String> {
    if environment::is_under_valgrind() {
        return Some("is run by Valgrind, which can't follow an engine".into());
    }
    let is_there = |name: &CStr| {
        // SAFETY: a name ended by a zero byte.
        !unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) }.is_null()
    };
    let found = SANITIZERS.iter().find(|(name, _)| is_there(name));
    found.map(|(_, option)| {
        format!("is built with `-fsanitize={option}`, whose map of memory can't be managed")
    })
}

/// Options of AddressSanitizer for programs that have none of their own: it insists on being the
/// first library otherwise, and this one is before it.
#[unsafe(no_mangle)]
pub extern "C" fn __asan_default_options() -> *const c_char {
    c"verify_asan_link_order=0".as_ptr()
}
