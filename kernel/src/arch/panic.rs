//! The end: of a kernel that has found a fault in itself, and of one that is done.

use core::panic::PanicInfo;

use super::processor::{frame_pointer, halt, write_port_long};
use super::symbols;
use super::trap::Registers;
use crate::say;

/// The emulator's port whose value becomes its exit status: twice the value, and one.
const EXIT: u16 = 0xf4;
/// The most callers that are printed.
const CALLERS_MAX: usize = 24;
/// Below this there is no stack of the kernel.
const KERNEL_BASE: u64 = 0xffff_8000_0000_0000;

unsafe extern "C" {
    static kernel_stack_guard: u8;
}

/// The way the kernel ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ending {
    /// The first program has ended, with success.
    Success,
    /// The first program has failed.
    Failure,
    /// The kernel was asked for something it can't do: a parameter, an image.
    Refused,
    /// The kernel has found a fault in itself.
    Panic,
}

/// Ends the emulator.
pub fn exit(ending: Ending) -> ! {
    let value = match ending {
        Ending::Success => 0x10,
        Ending::Panic => 0x11,
        Ending::Failure => 0x12,
        Ending::Refused => 0x13,
    };
    write_port_long(EXIT, value);
    halt()
}

/// Says what exception the kernel has caused, and where, and ends.
pub(super) fn die_of_exception(registers: &Registers, fault_address: u64) -> ! {
    say!("");
    say!("kernel: exception {} in the kernel", registers.vector);
    let guard = &raw const kernel_stack_guard as u64;
    if registers.vector == 8 && (guard..guard + 4096).contains(&fault_address) {
        say!("kernel: its stack is full");
    }
    print_registers(registers, fault_address);
    say!("  in:");
    print_place(registers.rip, registers.rip);
    print_callers(registers.rbp);
    exit(Ending::Panic)
}

fn print_registers(registers: &Registers, fault_address: u64) {
    let Registers {
        rax,
        rbx,
        rcx,
        rdx,
        rsi,
        rdi,
        rbp,
        rsp,
        ..
    } = *registers;
    let Registers {
        r8,
        r9,
        r10,
        r11,
        r12,
        r13,
        r14,
        r15,
        ..
    } = *registers;
    let Registers {
        rip,
        cs,
        flags,
        error,
        ..
    } = *registers;
    say!("  rip {rip:016x}  cs  {cs:04x}  flags {flags:08x}  error {error:x}");
    say!("  rax {rax:016x}  rbx {rbx:016x}  rcx {rcx:016x}  rdx {rdx:016x}");
    say!("  rsi {rsi:016x}  rdi {rdi:016x}  rbp {rbp:016x}  rsp {rsp:016x}");
    say!("  r8  {r8:016x}  r9  {r9:016x}  r10 {r10:016x}  r11 {r11:016x}");
    say!("  r12 {r12:016x}  r13 {r13:016x}  r14 {r14:016x}  r15 {r15:016x}");
    say!("  cr2 {fault_address:016x}");
}

/// Prints an address, and the function around `inside`, if that has a name.
fn print_place(address: u64, inside: u64) {
    match symbols::find(inside) {
        Some((name, offset)) => say!("    {address:016x} {name}+{offset:#x}"),
        None => say!("    {address:016x}"),
    }
}

/// Follows the frame pointers and prints the places to which functions return.
fn print_callers(mut frame: u64) {
    say!("  called from:");
    for _ in 0..CALLERS_MAX {
        if frame < KERNEL_BASE || !frame.is_multiple_of(8) {
            return;
        }
        // SAFETY: a frame pointer within the kernel's half points to the caller's and the return
        // address. A wrong one leads to an exception, which ends here all the same.
        let (caller, target) = unsafe { (*(frame as *const u64), *((frame + 8) as *const u64)) };
        if target < KERNEL_BASE {
            return;
        }
        // The call is in front of it, perhaps at the very end of its function.
        print_place(target, target - 1);
        frame = caller;
    }
}

#[panic_handler]
fn panic(information: &PanicInfo<'_>) -> ! {
    say!("");
    say!("kernel: {information}");
    print_callers(frame_pointer());
    exit(Ending::Panic)
}
