//! The machine: everything that only this processor and these devices have, and all unsafe code.
//!
//! Outside this folder the kernel is a plain program: it runs user programs by calling
//! [`trap::run`], changes their tables by [`paging`], moves bytes by [`virtio`], and waits in
//! [`trap::wait`].

mod boot;
pub mod clock;
pub mod frames;
mod heap;
#[cfg(target_os = "linux")]
mod hosted;
pub mod interrupts;
mod loader;
pub mod paging;
pub mod panic;
mod processor;
mod segments;
pub mod serial;
mod symbols;
pub mod trap;
pub mod virtio;

pub use heap::{Purpose, has_room, used_bytes};

use frames::Frames;
use paging::{KernelTable, PAGE_BYTES};
use virtio::Disk;

use crate::say;
use panic::{Ending, exit};

/// The least heap the kernel works with.
const HEAP_BYTES_MIN: u64 = 16 << 20;

/// The machine's parts, each of which there is one of.
pub struct Board {
    /// The frames of user memory.
    pub frames: Frames,
    /// The kernel's half of every table.
    pub kernel: KernelTable,
    /// The disk with the volume of programs and files.
    pub volume: Disk,
    /// The disk for swap.
    pub swap: Disk,
    /// The time.
    pub clock: clock::Clock,
}

/// The first Rust code: sets the machine up and runs the kernel.
#[unsafe(no_mangle)]
extern "C" fn kernel_start(information: u64) -> ! {
    serial::start();
    segments::load();
    let Some(handover) = loader::read(information) else {
        say!("kernel: no boot information; start it with `qemu-system-x86_64 -kernel`");
        exit(Ending::Refused)
    };
    crate::start(handover.command_line, |frames| {
        divide(handover.memory_end, frames)
    })
}

/// Divides memory: the kernel's image, its heap, and `frames` frames at the end.
fn divide(memory_end: u64, frames: u32) -> Board {
    let memory_end = memory_end & !((2 << 20) - 1);
    let heap = paging::image_end();
    let bytes = u64::from(frames) * PAGE_BYTES as u64;
    let least = heap + HEAP_BYTES_MIN + bytes;
    if memory_end < least {
        let (have, need) = (memory_end >> 20, least.div_ceil(1 << 20));
        say!("kernel: the machine has {have}M of memory; needs {need}M for these frames (-m)");
        exit(Ending::Refused)
    }
    let base = memory_end - bytes;
    // SAFETY: the memory lies behind the image, is usable, and is mapped by the loader's tables as
    // by the kernel's own.
    unsafe {
        heap::start(
            paging::DIRECT as usize + heap as usize,
            paging::DIRECT as usize + base as usize,
        )
    };
    let kernel = KernelTable::build(memory_end);
    let (Some(volume), Some(swap)) = (Disk::open(0), Disk::open(1)) else {
        say!("kernel: needs two disks on virtio-mmio buses 0 and 1: the volume, and swap");
        exit(Ending::Refused)
    };
    interrupts::start(1 | 1 << volume.line() | 1 << swap.line());
    Board {
        // SAFETY: the end of memory, mapped by the table just made, and without another owner.
        frames: unsafe { Frames::new(base..memory_end) },
        kernel,
        volume,
        swap,
        clock: clock::Clock::start(),
    }
}
