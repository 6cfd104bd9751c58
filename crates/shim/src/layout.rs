//! The places of the libraries of a program in step.
//!
//! Programs hash addresses of what lies in their libraries. In step a program is run once to learn
//! where they are, and the recorder puts them there (`recorder/place.c`). Addresses are not drawn
//! then, so that they follow from what is mapped in which order; for them to follow from the
//! program's own mappings alone, an engine's mappings, whose sizes depend on the budget, are kept
//! from the places that the program's next mappings get.

use std::ffi::c_void;
use std::path::PathBuf;
use std::sync::Mutex;

use rustix::mm::{MapFlags, ProtFlags};
use tidemark_live::control;

/// More than is ever free between two libraries, and than a program loads later.
const HELD_BYTES: usize = 1 << 30;

/// The file to which the layout is to be written at the program's end.
static WANTED: Mutex<Option<PathBuf>> = Mutex::new(None);

/// The addresses that the program's next mappings will get.
pub(crate) struct Held(*mut c_void);

impl Held {
    /// Takes them.
    pub(crate) fn take() -> Option<Held> {
        // SAFETY: a mapping at a new place, without rights or memory.
        let place = unsafe {
            rustix::mm::mmap_anonymous(
                std::ptr::null_mut(),
                HELD_BYTES,
                ProtFlags::empty(),
                MapFlags::PRIVATE | MapFlags::NORESERVE,
            )
        };
        place.ok().map(Held)
    }

    /// Leaves them to the program.
    pub(crate) fn release(self) {
        // SAFETY: mapped by `take`, and known here alone.
        let _ = unsafe { rustix::mm::munmap(self.0, HELD_BYTES) };
    }
}

/// Learns from the environment whether the layout is wanted, and where.
pub(crate) fn learn_whether_wanted() {
    let path = std::env::var_os(control::LAYOUT_WANTED).map(PathBuf::from);
    *WANTED.lock().expect("no thread panics with it") = path;
}

/// Writes where each file begins, if that is wanted: a hexadecimal address and a path a line.
pub(crate) fn write_if_wanted() {
    let wanted = WANTED.lock().expect("no thread panics with it").take();
    let Some(path) = wanted else {
        return;
    };
    let Ok(mappings) = std::fs::read_to_string("/proc/self/maps") else {
        return;
    };
    let lines = mappings.lines().filter_map(|mapping| {
        let mut fields = mapping.splitn(6, ' ');
        let (start, _) = fields.next()?.split_once('-')?;
        let offset = fields.nth(1)?;
        let file = fields.nth(2)?.trim_start();
        let is_start = file.starts_with('/') && offset.bytes().all(|byte| byte == b'0');
        is_start.then(|| format!("{start} {file}\n"))
    });
    // Without it the recording has its libraries elsewhere.
    let _ = std::fs::write(path, lines.collect::<String>());
}
