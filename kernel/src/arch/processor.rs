//! Single instructions: ports, control registers, the time stamp.

use core::arch::asm;

/// Writes a byte to a port.
pub(super) fn write_port(port: u16, value: u8) {
    // SAFETY: only the drivers in this folder call this, with ports of devices they own.
    unsafe { asm!("out dx, al", in("dx") port, in("al") value, options(nomem, nostack)) };
}

/// Reads a byte from a port.
pub(super) fn read_port(port: u16) -> u8 {
    let value: u8;
    // SAFETY: as for writing.
    unsafe { asm!("in al, dx", in("dx") port, out("al") value, options(nomem, nostack)) };
    value
}

/// Writes a word of 32 bits to a port.
pub(super) fn write_port_long(port: u16, value: u32) {
    // SAFETY: as for a byte.
    unsafe { asm!("out dx, eax", in("dx") port, in("eax") value, options(nomem, nostack)) };
}

/// The address of the last page fault.
pub(super) fn fault_address() -> u64 {
    let value: u64;
    // SAFETY: reading the register has no effect.
    unsafe { asm!("mov {}, cr2", out(reg) value, options(nomem, nostack)) };
    value
}

/// The processor's own clock, in cycles.
pub(super) fn time_stamp() -> u64 {
    let (low, high): (u32, u32);
    // SAFETY: reading the counter has no effect.
    unsafe { asm!("rdtsc", out("eax") low, out("edx") high, options(nomem, nostack)) };
    u64::from(high) << 32 | u64::from(low)
}

/// The frame pointer of the caller.
pub(super) fn frame_pointer() -> u64 {
    let value: u64;
    // SAFETY: reading a register has no effect.
    unsafe { asm!("mov {}, rbp", out(reg) value, options(nomem, nostack)) };
    value
}

/// Sets a model-specific register.
///
/// # Safety
/// The processor has it, and goes on working with that value.
pub(super) unsafe fn set_register(register: u32, value: u64) {
    let (low, high) = (value as u32, (value >> 32) as u32);
    // SAFETY: the caller's promise.
    unsafe { asm!("wrmsr", in("ecx") register, in("eax") low, in("edx") high, options(nostack)) };
}

/// Has the processor use another table of pages, and forget what it knew of the old one.
///
/// # Safety
/// The table maps the kernel as the one in use does, and stays for as long as it is used.
pub(super) unsafe fn set_root(physical: u64) {
    // SAFETY: the caller's promise.
    unsafe { asm!("mov cr3, {}", in(reg) physical, options(nostack)) };
}

/// The table of pages in use.
pub(super) fn root() -> u64 {
    let value: u64;
    // SAFETY: reading the register has no effect.
    unsafe { asm!("mov {}, cr3", out(reg) value, options(nomem, nostack)) };
    value
}

/// Has the processor forget what it knew of one page.
pub(super) fn invalidate(address: u64) {
    // SAFETY: forgetting a translation changes nothing but time.
    unsafe { asm!("invlpg [{}]", in(reg) address, options(nostack)) };
}

/// Stops for good.
pub(super) fn halt() -> ! {
    loop {
        // SAFETY: interrupts are off: this is where everything ends.
        unsafe { asm!("cli", "hlt", options(nomem, nostack)) };
    }
}
