//! The loader's handover: the map of memory and the command line (the PVH protocol's
//! `hvm_start_info`, Xen's `start_info.h`).

use core::cell::UnsafeCell;
use core::ffi::{CStr, c_char};
use core::slice;

use super::paging::direct;

const MAGIC: u32 = 0x336e_c578;
/// Memory that may be used.
const USABLE: u32 = 1;
/// The memory that is mapped so early.
const MAPPED_BYTES: u64 = 1 << 30;

#[repr(C)]
struct StartInformation {
    magic: u32,
    version: u32,
    flags: u32,
    modules: u32,
    module_list: u64,
    command_line: u64,
    tables: u64,
    memory_map: u64,
    memory_map_entries: u32,
    reserved: u32,
}

#[repr(C)]
struct MemoryMapEntry {
    address: u64,
    bytes: u64,
    kind: u32,
    reserved: u32,
}

/// The most of a command line that is read.
const LINE_BYTES_MAX: usize = 2048;

/// The command line, where it stays readable under the kernel's own tables.
struct Line(UnsafeCell<[u8; LINE_BYTES_MAX]>);

// SAFETY: written once, by `read`, before anything else runs.
unsafe impl Sync for Line {}

static LINE: Line = Line(UnsafeCell::new([0; LINE_BYTES_MAX]));

/// The loader's message.
pub struct Handover {
    /// The parameters.
    pub command_line: &'static str,
    /// The end of the usable memory that begins at or below 1 MiB and goes on from there.
    pub memory_end: u64,
}

/// Reads what stands at `address`; `None` if that is no boot information.
///
/// Reads it while the first GiB is mapped as the loader's way in has done.
pub(super) fn read(address: u64) -> Option<Handover> {
    // SAFETY: the loader's protocol has the address in `ebx`, below 1 GiB, which is mapped; the
    // magic number is looked at before anything else is believed. Nothing is written there before
    // the kernel has read it: the heap begins behind it.
    unsafe {
        let start = &*(direct(address) as *const StartInformation);
        if start.magic != MAGIC || start.version < 1 {
            return None;
        }
        let map = slice::from_raw_parts(
            direct(start.memory_map) as *const MemoryMapEntry,
            start.memory_map_entries as usize,
        );
        let usable = |entry: &&MemoryMapEntry| {
            entry.kind == USABLE
                && (entry.address..entry.address + entry.bytes).contains(&0x10_0000)
        };
        let memory = map.iter().find(usable)?;
        let memory_end = (memory.address + memory.bytes).min(MAPPED_BYTES);
        let text = match start.command_line {
            0 => b"",
            address => CStr::from_ptr(direct(address) as *const c_char).to_bytes(),
        };
        let line = &mut *LINE.0.get();
        let kept = line.get_mut(..text.len())?;
        kept.copy_from_slice(text);
        let text = core::str::from_utf8(kept).ok()?;
        Some(Handover {
            command_line: text,
            memory_end,
        })
    }
}
