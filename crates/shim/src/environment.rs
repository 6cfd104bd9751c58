//! The environment of a program in step: the same in a live run and in a recording.
//!
//! A program that copies its environment, as Python and shells do, would otherwise ask for other
//! memory in a recording than live: each side has different variables, of different lengths (a
//! process number is in a path), in a different order. So Tidemark's variables are put in one of a
//! fixed length, Valgrind's are removed, and the rest is sorted.
//!
//! A program that this one executes inherits the one variable, and has ours back from it.
//!
//! # Invariants
//! 1. Nothing is allocated: in a recording no engine starts, and its heap must not be mapped.
//! 2. Variables that do not fit stay as they were.

use std::cell::UnsafeCell;
use std::ffi::{CStr, CString, c_char};

use tidemark_live::control;

/// The variable that holds all of Tidemark's variables that differ between a live run and a
/// recording, each with a separator behind it.
const FOLDED: &[u8] = b"TIDEMARK_FOLDED=";
/// Our variables begin with this.
const OURS: &[u8] = b"TIDEMARK_";
const SEPARATOR: u8 = 0x1f;
/// The variables that Valgrind sets for itself. It sets it anew for a program that this one
/// executes.
const VALGRIND: [&[u8]; 4] = [
    b"VALGRIND_LIB",
    b"VALGRIND_LAUNCHER",
    b"GLIBCPP_FORCE_NEW",
    b"GLIBCXX_FORCE_NEW",
];
/// Valgrind's own libraries, which it preloads.
const VALGRIND_PRELOADS: &[u8] = b"vgpreload_";
/// The folder in which Debian's Valgrind looks for libraries, too.
const VALGRIND_LIBRARIES: &[u8] = b"/usr/lib/debug";
/// The most variables that there may be.
const VARIABLES_MAX: usize = 4096;
/// The size of what is folded: several paths.
const FOLDED_BYTES: usize = 8192;
/// The size of all strings together that are put side by side.
const STRINGS_BYTES: usize = 128 << 10;

/// The environment from then on.
struct Room {
    /// Ends with a null.
    places: [*const c_char; VARIABLES_MAX + 1],
    /// Filled up with blanks, and ends with a zero.
    folded: [u8; FOLDED_BYTES],
    strings: [u8; STRINGS_BYTES],
}

struct Owned(UnsafeCell<Room>);

// SAFETY: used by the constructor alone, before the program's own code.
unsafe impl Sync for Owned {}

static ROOM: Owned = Owned(UnsafeCell::new(Room {
    places: [std::ptr::null(); VARIABLES_MAX + 1],
    folded: [0; FOLDED_BYTES],
    strings: [0; STRINGS_BYTES],
}));

unsafe extern "C" {
    static mut environ: *const *const c_char;
}

/// Returns true if this process is in step, or is recorded to be compared with one that is.
pub(crate) fn is_in_step() -> bool {
    is_set(c"TIDEMARK_IN_STEP")
}

/// Returns true if there is a supervisor that waits for this process.
pub(crate) fn is_live() -> bool {
    is_set(c"TIDEMARK_CONTROL")
}

/// Takes our variables out of the one that holds them, if it is there.
///
/// # Safety
/// No other thread runs yet.
pub(crate) unsafe fn unfold() {
    // SAFETY: by the caller's word no other code uses the environment, its strings, or the room.
    unsafe {
        let room = &mut *ROOM.0.get();
        let mut count = 0;
        for at in 0.. {
            let place = *environ.add(at);
            if place.is_null() {
                break;
            }
            let text = bytes(place);
            let Some(folded) = text.strip_prefix(FOLDED) else {
                count = room.put(count, place);
                continue;
            };
            let mut start = place.add(FOLDED.len());
            for (at, _) in folded
                .iter()
                .enumerate()
                .filter(|(_, byte)| **byte == SEPARATOR)
            {
                let end = place.add(FOLDED.len() + at).cast_mut();
                *end = 0;
                count = room.put(count, start);
                start = end.add(1);
            }
        }
        room.install(count);
    }
}

/// Returns true if Valgrind runs this process: it has preloaded a library of its own.
pub(crate) fn is_under_valgrind() -> bool {
    // SAFETY: the answer is a string or null, and stays what it is.
    let preloads = unsafe { libc::getenv(c"LD_PRELOAD".as_ptr()) };
    // SAFETY: as above.
    let preloads = (!preloads.is_null()).then(|| unsafe { bytes(preloads) });
    let mut preloads = preloads.unwrap_or_default().split(|&byte| byte == b':');
    preloads.any(is_valgrinds)
}

/// Changes the environment so that programs that this process starts ask for no engine.
///
/// # Safety
/// No other thread looks at variables meanwhile.
pub(crate) unsafe fn forget_supervisor() {
    for name in [control::CONTROL, control::MEMORY] {
        let name = CString::new(name).expect("the names of variables have no zeros");
        // SAFETY: a string, and by the caller's word no other code uses the environment.
        unsafe { libc::unsetenv(name.as_ptr()) };
    }
}

/// Makes the environment what it is on both sides.
///
/// # Safety
/// No thread of the program but this one runs yet.
pub(crate) unsafe fn fold() {
    // SAFETY: by the caller's word no other code uses the environment, its strings, or the room.
    // The environment may be in the room: what is written there was read before.
    unsafe {
        let room = &mut *ROOM.0.get();
        let (mut count, mut filled) = (0, FOLDED.len());
        room.folded[..filled].copy_from_slice(FOLDED);
        for at in 0.. {
            let place = *environ.add(at);
            if place.is_null() {
                break;
            }
            let text = bytes(place);
            let name = name(text);
            if is_ours(name) && filled + text.len() + 1 < FOLDED_BYTES {
                room.folded[filled..filled + text.len()].copy_from_slice(text);
                filled += text.len();
                room.folded[filled] = SEPARATOR;
                filled += 1;
            } else if name == b"LD_PRELOAD" || name == b"LD_LIBRARY_PATH" {
                if cut_valgrind(place.cast_mut(), name.len() + 1, text.len()) {
                    count = room.put(count, place);
                }
            } else if !VALGRIND.contains(&name) {
                count = room.put(count, place);
            }
        }
        room.folded[filled..FOLDED_BYTES - 1].fill(b' ');
        count = room.put(count, room.folded.as_ptr().cast());
        room.places[..count].sort_unstable_by_key(|&place| bytes(place));
        room.bring_together(count);
        room.install(count);
    }
}

impl Room {
    /// Adds a variable, if there is room.
    fn put(&mut self, count: usize, place: *const c_char) -> usize {
        if count == VARIABLES_MAX {
            return count;
        }
        self.places[count] = place;
        count + 1
    }

    /// Copies the strings side by side, in their order. Perl, for one, checks if the first string
    /// follows the arguments directly. The kernel puts a string there, which is another one in a
    /// recording than live.
    ///
    /// # Safety
    /// The first `count` places are strings, and none of them lies in `strings`.
    unsafe fn bring_together(&mut self, count: usize) {
        let mut rest = &mut self.strings[..];
        for place in &mut self.places[..count] {
            // SAFETY: by the caller's word.
            let text = unsafe { CStr::from_ptr(*place) }.to_bytes_with_nul();
            if text.len() > rest.len() {
                break;
            }
            let (copy, behind) = rest.split_at_mut(text.len());
            copy.copy_from_slice(text);
            *place = copy.as_ptr().cast();
            rest = behind;
        }
    }

    /// Makes these the environment.
    ///
    /// # Safety
    /// No other code uses the environment meanwhile.
    unsafe fn install(&mut self, count: usize) {
        self.places[count] = std::ptr::null();
        // SAFETY: strings that stay where they are, and a null at the end.
        unsafe { environ = self.places.as_ptr() };
    }
}

/// Returns true if a variable is ours, and not the same on both sides by itself.
fn is_ours(name: &[u8]) -> bool {
    let both = [control::IN_STEP, control::POOL];
    name.starts_with(OURS) && !both.iter().any(|both| both.as_bytes() == name)
}

/// Takes Valgrind's out of a list of libraries or folders that stands from `start` to `end` of a
/// string. Answers whether others are left.
///
/// # Safety
/// The string is that long, and no other code uses it.
unsafe fn cut_valgrind(place: *mut c_char, start: usize, end: usize) -> bool {
    if start >= end {
        return true;
    }
    // SAFETY: by the caller's word.
    let list =
        unsafe { std::slice::from_raw_parts_mut(place.add(start).cast::<u8>(), end - start) };
    let (mut read, mut kept) = (0, 0);
    while read < list.len() {
        let part = list[read..].split(|&byte| byte == b':').next();
        let part_end = read + part.map_or(0, <[u8]>::len);
        if !is_valgrinds(&list[read..part_end]) {
            if kept > 0 {
                list[kept] = b':';
                kept += 1;
            }
            list.copy_within(read..part_end, kept);
            kept += part_end - read;
        }
        read = part_end + 1;
    }
    if let Some(rest) = list.get_mut(kept) {
        *rest = 0;
    }
    kept > 0
}

/// Returns true if a library or a folder is one that Valgrind puts in such a list.
fn is_valgrinds(part: &[u8]) -> bool {
    let file = part.rsplit(|&byte| byte == b'/').next();
    part == VALGRIND_LIBRARIES || file.is_some_and(|file| file.starts_with(VALGRIND_PRELOADS))
}

fn name(text: &[u8]) -> &[u8] {
    let end = text.iter().position(|&byte| byte == b'=');
    &text[..end.unwrap_or(text.len())]
}

fn is_set(name: &CStr) -> bool {
    // SAFETY: asks whether there is a string, and looks at nothing in it.
    !unsafe { libc::getenv(name.as_ptr()) }.is_null()
}

/// The bytes of a string.
///
/// # Safety
/// It is one, and stays where and what it is.
unsafe fn bytes(place: *const c_char) -> &'static [u8] {
    // SAFETY: by the caller's word.
    unsafe { CStr::from_ptr(place) }.to_bytes()
}
