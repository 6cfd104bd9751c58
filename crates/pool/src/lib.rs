//! The preload library behind `tidemark run --malloc pool`.
//!
//! It puts mimalloc in the place of the C library's allocator, over one large range that is mapped
//! at once. The mapping goes through the preload library of the engine, which takes it over before
//! the first byte is touched: with this allocator no memory has to be found and adopted later.
//! Programs that bring an allocator of their own are not changed by it.
//!
//! Everything here forwards; mimalloc's own documentation says what the functions promise.

use std::ffi::{c_int, c_void};
use std::sync::Once;

mod mi {
    //! mimalloc's functions: those its crate declares, and the rest of the family.
    pub use libmimalloc_sys::*;
    use std::ffi::{c_int, c_void};

    // Part of the library that the crate compiles, though it does not declare them.
    unsafe extern "C" {
        pub fn mi_reallocarray(at: *mut c_void, count: usize, bytes: usize) -> *mut c_void;
        pub fn mi_cfree(at: *mut c_void);
        pub fn mi_memalign(alignment: usize, bytes: usize) -> *mut c_void;
        pub fn mi_aligned_alloc(alignment: usize, bytes: usize) -> *mut c_void;
        pub fn mi_posix_memalign(place: *mut *mut c_void, alignment: usize, bytes: usize) -> c_int;
        pub fn mi_valloc(bytes: usize) -> *mut c_void;
        pub fn mi_pvalloc(bytes: usize) -> *mut c_void;
        pub fn mi_reserve_os_memory(bytes: usize, commit: bool, allow_large: bool) -> c_int;
    }
}

/// The size of the pool in bytes, set by `tidemark run`.
const POOL_BYTES: &std::ffi::CStr = c"TIDEMARK_POOL_BYTES";
/// mimalloc's option that delays giving memory back: a negative delay means never. An unused page
/// is paged out like any other, so giving it back would only cost faults later.
const PURGE_DELAY: mi::mi_option_t = 15;

static RESERVE: Once = Once::new();

#[used]
#[unsafe(link_section = ".init_array")]
static CONSTRUCTOR: extern "C" fn() = construct;

/// Reserves the pool, after the engine has started: the loader runs constructors in the reverse
/// order of the preload list, and this library stands before the engine's.
extern "C" fn construct() {
    RESERVE.call_once(|| {
        // SAFETY: called before the program's own code, while no other thread changes the
        // environment; the answer is a string or null.
        let bytes = unsafe {
            let text = libc::getenv(POOL_BYTES.as_ptr());
            if text.is_null() {
                0
            } else {
                libc::strtoull(text, std::ptr::null_mut(), 10)
            }
        };
        // SAFETY: plain calls into mimalloc. The range is not given back before the process ends.
        unsafe {
            mi::mi_option_set(PURGE_DELAY, -1);
            if bytes > 0 {
                mi::mi_reserve_os_memory(bytes as usize, true, false);
            }
        }
    });
}

macro_rules! forward {
    ($($name:ident($($argument:ident: $type:ty),*) -> $answer:ty = $target:ident;)*) => {$(
        /// Forwards to mimalloc's function of the same meaning.
        ///
        /// # Safety
        /// As the C library's.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $type),*) -> $answer {
            // SAFETY: the caller keeps the contract, which is the same.
            unsafe { mi::$target($($argument),*) }
        }
    )*};
}

forward! {
    malloc(bytes: usize) -> *mut c_void = mi_malloc;
    calloc(count: usize, bytes: usize) -> *mut c_void = mi_calloc;
    realloc(at: *mut c_void, bytes: usize) -> *mut c_void = mi_realloc;
    reallocarray(at: *mut c_void, count: usize, bytes: usize) -> *mut c_void = mi_reallocarray;
    free(at: *mut c_void) -> () = mi_free;
    cfree(at: *mut c_void) -> () = mi_cfree;
    malloc_usable_size(at: *const c_void) -> usize = mi_usable_size;
    memalign(alignment: usize, bytes: usize) -> *mut c_void = mi_memalign;
    aligned_alloc(alignment: usize, bytes: usize) -> *mut c_void = mi_aligned_alloc;
    posix_memalign(place: *mut *mut c_void, alignment: usize, bytes: usize) -> c_int
        = mi_posix_memalign;
    valloc(bytes: usize) -> *mut c_void = mi_valloc;
    pvalloc(bytes: usize) -> *mut c_void = mi_pvalloc;
}
