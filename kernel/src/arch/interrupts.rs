//! The two interrupt controllers: lines 0 to 15, from vector 32 on. The processor's own controller
//! is only told to let them through.

use core::ptr::write_volatile;

use super::paging::DEVICES;
use super::processor::write_port;
use super::trap::INTERRUPTS;

const FIRST: (u16, u16) = (0x20, 0x21);
const SECOND: (u16, u16) = (0xa0, 0xa1);
/// The line by which the second controller reports to the first.
const CASCADE: u32 = 2;

/// The address of the processor's local interrupt controller.
const LOCAL: u64 = 0xfee0_0000;
/// Its register that turns it on, and the one for the line from the other controllers, with what
/// they are set to: on; and as if that line led to the processor.
const LOCAL_SETUP: [(u64, u32); 2] = [(0xf0, 0x1ff), (0x350, 0x700)];

/// Sets the controllers up, so that only `lines` are heard, a bit a line.
pub fn start(lines: u16) {
    let heard = lines | 1 << CASCADE;
    let setups = [
        (FIRST, INTERRUPTS as u8, 1 << CASCADE, heard as u8),
        (
            SECOND,
            INTERRUPTS as u8 + 8,
            CASCADE as u8,
            (heard >> 8) as u8,
        ),
    ];
    for ((command, mask), vector, wiring, heard) in setups {
        write_port(command, 0x11);
        write_port(mask, vector);
        write_port(mask, wiring);
        write_port(mask, 1);
        write_port(mask, !heard);
    }
    for (register, value) in LOCAL_SETUP {
        // SAFETY: the controller's registers are mapped, uncached, and only this function writes
        // to them.
        unsafe { write_volatile((DEVICES + LOCAL + register) as *mut u32, value) };
    }
}

/// Lets `line` rise again.
pub fn acknowledge(line: u32) {
    if line >= 8 {
        write_port(SECOND.0, 0x20);
    }
    write_port(FIRST.0, 0x20);
}
