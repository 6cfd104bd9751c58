//! Numpy's memory from an engine: the table of functions that numpy calls for the data of arrays,
//! as its NEP 49 describes it, over a heap of blocks.
//!
//! Large blocks are the heap's, small ones the C library's. Numpy keeps the table with each array
//! whose data came from it, and with it the heap, so that a block always goes back to where it is
//! from. It may call from any thread.
//!
//! A forked child has no blocks: what it allocates comes from the C library, and the blocks that it
//! lets go of are forgotten.

use std::ffi::{CStr, c_char, c_uint, c_void};
use std::ptr;

use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::ffi::PyObject;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyCapsule, PyCapsuleMethods};
use tidemark_regions::{Error, Heap};

/// The least bytes of a block of the heap: a block takes microseconds to begin and to end.
const LARGE_BYTES: usize = 1 << 20;
/// The name by which numpy knows such a capsule.
const CAPSULE: &CStr = c"mem_handler";
/// The place of `PyArray_GetNDArrayCFeatureVersion` in numpy's table of functions.
const FEATURE_VERSION: usize = 211;
/// The place of `PyDataMem_SetHandler` there, and the version of the table from which on it exists.
const SET_HANDLER: usize = 304;
const FEATURE_VERSION_LEAST: c_uint = 0xf;

/// Numpy's `PyDataMem_Handler`, version 1.
#[repr(C)]
struct Allocator {
    name: [c_char; 127],
    version: u8,
    heap: *mut c_void,
    malloc: unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void,
    calloc: unsafe extern "C" fn(*mut c_void, usize, usize) -> *mut c_void,
    realloc: unsafe extern "C" fn(*mut c_void, *mut c_void, usize) -> *mut c_void,
    free: unsafe extern "C" fn(*mut c_void, *mut c_void, usize),
}

// SAFETY: the heap that it points to is `Send` and `Sync`; the rest is constant.
unsafe impl Send for Allocator {}

impl Drop for Allocator {
    fn drop(&mut self) {
        // SAFETY: the pointer is that of a box, which is given up once, here.
        drop(unsafe { Box::from_raw(self.heap.cast::<Heap>()) });
    }
}

/// Makes an allocator over `heap`, for [`set_allocator`].
pub fn allocator(py: Python<'_>, heap: Heap) -> PyResult<Bound<'_, PyCapsule>> {
    let mut name = [0; 127];
    for (to, from) in name.iter_mut().zip(b"tidemark") {
        *to = *from as c_char;
    }
    let allocator = Allocator {
        name,
        version: 1,
        heap: Box::into_raw(Box::new(heap)).cast(),
        malloc,
        calloc,
        realloc,
        free,
    };
    PyCapsule::new_with_value(py, allocator, CAPSULE)
}

/// Has numpy take the data of new arrays from `allocator`, in the context of the thread that calls;
/// or from where it does by itself. Returns the allocator that was in force.
#[pyfunction]
pub fn set_allocator<'py>(
    py: Python<'py>,
    allocator: Option<Bound<'py, PyCapsule>>,
) -> PyResult<Bound<'py, PyAny>> {
    if let Some(capsule) = &allocator
        && !capsule.is_valid_checked(Some(CAPSULE))
    {
        return Err(PyValueError::new_err(
            "`allocator` is another capsule; needs one of numpy's",
        ));
    }
    let set = setter(py)?;
    let new = allocator.map_or(ptr::null_mut(), |capsule| capsule.as_ptr());
    // SAFETY: numpy's function is called with the interpreter held, with a capsule that it knows or
    // with null; it answers a reference of ours, or null with an error.
    unsafe { Bound::from_owned_ptr_or_err(py, set(new)) }
}

/// `PyDataMem_SetHandler`.
type Setter = unsafe extern "C" fn(*mut PyObject) -> *mut PyObject;

/// Numpy's function that sets an allocator. When the interpreter ends, nothing can be imported any
/// more, and limits that are left then set one.
fn setter(py: Python<'_>) -> PyResult<Setter> {
    static SETTER: PyOnceLock<Setter> = PyOnceLock::new();
    SETTER.get_or_try_init(py, || find_setter(py)).copied()
}

fn find_setter(py: Python<'_>) -> PyResult<Setter> {
    let module = py.import("numpy._core.multiarray");
    let module = module.or_else(|_| py.import("numpy.core.multiarray"))?;
    let capsule = module.getattr("_ARRAY_API")?.cast_into::<PyCapsule>()?;
    let functions = capsule.pointer_checked(None)?.as_ptr().cast_const().cast();
    // SAFETY: the table of every numpy has a function of this type there; that of one of this
    // version or a later one has the other, too.
    unsafe {
        let version: unsafe extern "C" fn() -> c_uint = function(functions, FEATURE_VERSION);
        if version() < FEATURE_VERSION_LEAST {
            let line = "this numpy takes no allocators; install 1.22 or newer";
            return Err(PyRuntimeError::new_err(line));
        }
        Ok(function(functions, SET_HANDLER))
    }
}

/// The function at a place of a table.
///
/// # Safety
/// The table has a function of that type there.
unsafe fn function<F: Copy>(table: *const *const c_void, place: usize) -> F {
    assert_eq!(size_of::<F>(), size_of::<*const c_void>());
    // SAFETY: by the caller's word; a pointer to a function is read as what it is.
    unsafe { table.add(place).cast::<F>().read() }
}

/// The heap behind an allocator.
///
/// # Safety
/// `heap` is that of an [`Allocator`] that is in use during the call.
unsafe fn heap_of<'a>(heap: *mut c_void) -> &'a Heap {
    // SAFETY: the box is not dropped before its allocator.
    unsafe { &*heap.cast::<Heap>() }
}

/// A block of `bytes`; if it is one of the heap's, of zeros. Null where there is no room.
///
/// # Safety
/// As for [`heap_of`].
unsafe extern "C" fn malloc(heap: *mut c_void, bytes: usize) -> *mut c_void {
    // SAFETY: by the caller's word.
    match unsafe { take(heap, bytes) } {
        Ok(block) => block,
        // SAFETY: a plain call.
        Err(Elsewhere) => unsafe { libc::malloc(bytes) },
    }
}

/// A block of zeros, of `count` times `each` bytes. Null where there is no room.
///
/// # Safety
/// As for [`heap_of`].
unsafe extern "C" fn calloc(heap: *mut c_void, count: usize, each: usize) -> *mut c_void {
    let Some(bytes) = count.checked_mul(each) else {
        return ptr::null_mut();
    };
    // SAFETY: by the caller's word.
    match unsafe { take(heap, bytes) } {
        Ok(block) => block,
        // SAFETY: a plain call.
        Err(Elsewhere) => unsafe { libc::calloc(count, each) },
    }
}

/// A block of `bytes` that has what the block at `old` has. If it is null, `old` is as it was.
///
/// # Safety
/// As for [`heap_of`]; `old` is null or a block of this allocator, and is not used any more if the
/// answer is not null.
unsafe extern "C" fn realloc(heap: *mut c_void, old: *mut c_void, bytes: usize) -> *mut c_void {
    // SAFETY: by the caller's word; what is copied is in both blocks, and those do not overlap.
    unsafe {
        if old.is_null() {
            return malloc(heap, bytes);
        }
        let blocks = heap_of(heap);
        let in_heap = blocks.bytes_of(old.addr());
        if in_heap.is_none() && bytes < LARGE_BYTES {
            return libc::realloc(old, bytes);
        }
        // A block that keeps less than a half moves to where it takes less.
        let is_wasteful = in_heap.is_some_and(|had| bytes <= had / 2);
        if !is_wasteful && blocks.stretch(old.addr(), bytes) {
            return old;
        }
        let had = in_heap.unwrap_or_else(|| libc::malloc_usable_size(old));
        let new = malloc(heap, bytes);
        match new.is_null() {
            true if bytes <= had => return old,
            true => return new,
            false => {}
        }
        new.cast::<u8>()
            .copy_from_nonoverlapping(old.cast(), had.min(bytes));
        free(heap, old, had);
        new
    }
}

/// Gives a block back. Its bytes are known.
///
/// # Safety
/// As for [`heap_of`]; `block` is null or a block of this allocator, and is not used any more.
unsafe extern "C" fn free(heap: *mut c_void, block: *mut c_void, _: usize) {
    // SAFETY: by the caller's word, what is not of the heap is of the C library.
    unsafe {
        if !heap_of(heap).give(block.addr()) {
            libc::free(block);
        }
    }
}

/// The C library is to give the block.
struct Elsewhere;

/// A block of the heap, or null where there is no room in memory and swap file.
///
/// # Safety
/// As for [`heap_of`].
unsafe fn take(heap: *mut c_void, bytes: usize) -> Result<*mut c_void, Elsewhere> {
    if bytes < LARGE_BYTES {
        return Err(Elsewhere);
    }
    // SAFETY: by the caller's word.
    match unsafe { heap_of(heap) }.take(bytes) {
        Ok(address) => Ok(ptr::with_exposed_provenance_mut(address)),
        Err(Error::Forked) => Err(Elsewhere),
        Err(_) => Ok(ptr::null_mut()),
    }
}
