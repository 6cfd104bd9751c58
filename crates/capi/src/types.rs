//! The statuses and the structures of the header.

use std::ffi::{c_char, c_int, c_void};

/// All is well.
pub const TIDEMARK_OK: c_int = 0;
/// An argument can't be; the message names it.
pub const TIDEMARK_ARGUMENT: c_int = 1;
/// The system refuses what an engine needs: `tidemark doctor` says how to permit it.
pub const TIDEMARK_SYSTEM: c_int = 2;
/// There is no room for that in memory and swap file.
pub const TIDEMARK_NO_ROOM: c_int = 3;
/// A file can't be opened, is none, or is too short.
pub const TIDEMARK_FILE: c_int = 4;
/// A file is being written to by another region or process.
pub const TIDEMARK_FILE_IN_USE: c_int = 5;
/// A file can't be written; modified pages stay in memory.
pub const TIDEMARK_FILE_WRITE: c_int = 6;
/// A file was cut, and what was modified beyond is lost.
pub const TIDEMARK_FILE_CUT: c_int = 7;
/// A forked child has no engine and no regions of its parent.
pub const TIDEMARK_FORKED: c_int = 8;
/// A fault of this library; please report it.
pub const TIDEMARK_BUG: c_int = 9;
/// A server can't be reached, refuses, or does not have what is asked for.
pub const TIDEMARK_STORE: c_int = 10;

/// An engine: a limit of memory, a policy, a swap file. Known by its handle alone.
#[allow(non_camel_case_types)]
pub struct tidemark_engine {
    _nothing: [u8; 0],
}

/// The settings of an engine. Zero in place of a number and `NULL` in place of a text are those of
/// `tidemark_open` without settings.
#[allow(non_camel_case_types)]
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct tidemark_settings {
    /// The most memory, in bytes, that all regions have together; 64 MiB.
    pub memory: u64,
    /// The policy by which pages leave: a name that `tidemark policies` lists; `2q-faults`.
    pub policy: *const c_char,
    /// The folder in which the swap file is made, without a name; `/var/tmp`.
    pub swap_folder: *const c_char,
    /// The size of the swap file, or of what is in its place, in bytes; 4 GiB.
    pub swap_size: u64,
    /// The place of pages that leave: `file`, the swap file; `compressed`, memory within the limit
    /// alone, where a program that does not fit is ended; a server of Redis's protocol, such as
    /// `redis://HOST/0/NAME`, to which they go encrypted; or the first or the last with compressed
    /// memory in front, such as `compressed+file`, where a quarter of `swap_size` is not for
    /// regions; `file`.
    pub store: *const c_char,
}

/// Reads `bytes` bytes from `offset` on into `into`: whole pages of 4 KiB, but for the last.
/// Returns 0 or an errno. See `struct tidemark_pager`.
#[allow(non_camel_case_types)]
pub type tidemark_read = unsafe extern "C" fn(
    context: *mut c_void,
    offset: u64,
    into: *mut c_void,
    bytes: usize,
) -> c_int;

/// Writes `bytes` bytes from `offset` on, likewise. After an error some of them may be written.
#[allow(non_camel_case_types)]
pub type tidemark_write = unsafe extern "C" fn(
    context: *mut c_void,
    offset: u64,
    from: *const c_void,
    bytes: usize,
) -> c_int;

/// Frees what a pager has. No call of it is under way then, and none follows.
#[allow(non_camel_case_types)]
pub type tidemark_end = unsafe extern "C" fn(context: *mut c_void);

/// A pager: functions that have the contents of a region.
///
/// They are called by up to eight threads of the engine's own, several at once, with all signals
/// blocked. A range is not written while another call reads or writes it. They must not touch
/// memory that `tidemark_mmap` and its kin have mapped, nor call them, which would wait for ever;
/// and they return: no exception, no `longjmp`.
///
/// `EAGAIN` and `EINTR` may pass: the call is made again, for 30 seconds. Another errno, or what is
/// none, lasts. A page that can't be read is never zeros: a line on standard error names its
/// address, the pager, the offset and the errno, and a touch is a `SIGBUS`, whose handler may ask
/// `tidemark_failed`. What can't be written stays in memory, and is an error of `tidemark_flush`.
#[allow(non_camel_case_types)]
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct tidemark_pager {
    /// The number of bytes.
    pub bytes: u64,
    /// Reads.
    pub read: Option<tidemark_read>,
    /// Writes; `NULL` if that can't be.
    pub write: Option<tidemark_write>,
    /// Called once, at the end, by any thread; `NULL` if there is nothing to be done. If mapping
    /// fails, it is not called.
    pub end: Option<tidemark_end>,
    /// Handed to each of them.
    pub context: *mut c_void,
    /// The name in messages, which is copied; `NULL`: `the pager`.
    pub name: *const c_char,
}

/// A call of a pager that failed.
#[allow(non_camel_case_types)]
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct tidemark_failure {
    /// The address of the region.
    pub region: *mut c_void,
    /// The offset that was asked for.
    pub offset: u64,
    /// The bytes that were asked for.
    pub bytes: usize,
    /// The value that the call returned.
    pub error: c_int,
    /// 1 if it was a write, 0 if it was a read.
    pub is_write: c_int,
}

/// The counts of an engine's work so far, in pages of 4 KiB unless the name says bytes.
#[allow(non_camel_case_types)]
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct tidemark_statistics {
    /// Faults that were served.
    pub faults: u64,
    /// Pages read from the swap file and from other files, those read ahead included.
    pub page_ins: u64,
    /// Pages read from other files than the swap file; a part of `page_ins`.
    pub file_page_ins: u64,
    /// Pages written to the swap file and to other files.
    pub page_outs: u64,
    /// Pages written to other files than the swap file; a part of `page_outs`.
    pub file_page_outs: u64,
    /// Filled with zeros at the first touch, those filled ahead included.
    pub zero_fills: u64,
    /// Faults on pages that were resident and unmapped, to see whether they are used.
    pub soft_faults: u64,
    /// Bytes that are resident now.
    pub resident_bytes: u64,
    /// Bytes of all regions.
    pub region_bytes: u64,
}
