//! Segments, the task state and the table of interrupts: what the processor is given once.

use core::arch::asm;
use core::cell::UnsafeCell;

use super::{processor, trap};

/// The selector of programs' code, in ring 3.
pub const USER_CODE: u64 = 0x20 | 3;
/// The selector of programs' stack and variables, in ring 3.
pub const USER_STACK: u64 = 0x18 | 3;
const KERNEL_CODE: u64 = 0x08;
const TASK: u16 = 0x28;

/// The processor's registers for system calls: selectors, entry, and flags that are cleared.
const REGISTER_SELECTORS: u32 = 0xc000_0081;
const REGISTER_ENTRY: u32 = 0xc000_0082;
const REGISTER_CLEARED_FLAGS: u32 = 0xc000_0084;
/// Step, interrupts, direction, nested task, alignment checks.
const CLEARED_FLAGS: u64 = 0x4_4700;

const STACK_BYTES: usize = 16 * 1024;
/// Vectors whose exceptions may come when the stack can't be trusted, in the order of their stacks.
const ON_OWN_STACK: [u64; 3] = [8, 2, 18];
const VECTORS: usize = 256;

#[repr(C, align(16))]
struct Stack([u8; STACK_BYTES]);

/// The task state segment, in words of 32 bits: the architecture does not align its addresses.
#[repr(C, align(16))]
struct Task([u32; 26]);

#[repr(C, align(16))]
struct Gate([u64; 2]);

#[repr(C, packed)]
struct Place {
    limit: u16,
    base: u64,
}

#[repr(C, align(4096))]
struct Tables {
    segments: [u64; 7],
    task: Task,
    gates: [Gate; VECTORS],
    stacks: [Stack; ON_OWN_STACK.len()],
}

struct Shared(UnsafeCell<Tables>);

// SAFETY: written once by `load`, before anything else runs.
unsafe impl Sync for Shared {}

static TABLES: Shared = Shared(UnsafeCell::new(Tables {
    segments: [0; 7],
    task: Task([0; 26]),
    gates: [const { Gate([0; 2]) }; VECTORS],
    stacks: [const { Stack([0; STACK_BYTES]) }; ON_OWN_STACK.len()],
}));

/// Fills the tables and has the processor use them.
pub fn load() {
    // SAFETY: called once, at the start, with interrupts off: no other code looks at the tables.
    let tables = unsafe { &mut *TABLES.0.get() };
    fill_task(tables);
    fill_segments(tables);
    fill_gates(tables);
    let segments = Place {
        limit: (size_of_val(&tables.segments) - 1) as u16,
        base: tables.segments.as_ptr() as u64,
    };
    let gates = Place {
        limit: (size_of_val(&tables.gates) - 1) as u16,
        base: tables.gates.as_ptr() as u64,
    };
    // SAFETY: the tables live for ever and hold what the processor expects; the selectors loaded
    // are those of the kernel's segments in them.
    unsafe {
        asm!(
            "lgdt [{segments}]",
            "lidt [{gates}]",
            "push {code}",
            "lea {scratch}, [rip + 2f]",
            "push {scratch}",
            "retfq",
            "2:",
            "mov ss, {stack:e}",
            "mov ds, {stack:e}",
            "mov es, {stack:e}",
            "ltr {task:x}",
            segments = in(reg) &segments,
            gates = in(reg) &gates,
            code = const KERNEL_CODE,
            scratch = out(reg) _,
            stack = in(reg) 0x10_u64,
            task = in(reg) TASK,
        );
    }
    for (register, value) in [
        (
            REGISTER_SELECTORS,
            KERNEL_CODE << 32 | (USER_STACK - 8) << 48,
        ),
        (REGISTER_ENTRY, trap::system_call_entry()),
        (REGISTER_CLEARED_FLAGS, CLEARED_FLAGS),
    ] {
        // SAFETY: these say where a system call goes, which is to the stub for it.
        unsafe { processor::set_register(register, value) };
    }
}

fn fill_task(tables: &mut Tables) {
    let mut set = |word: usize, value: u64| {
        tables.task.0[word] = value as u32;
        tables.task.0[word + 1] = (value >> 32) as u32;
    };
    // The stack on entry to ring 0, then those of exceptions, from the architecture's offsets.
    set(1, trap::exchange_top());
    for (number, stack) in tables.stacks.iter().enumerate() {
        set(9 + 2 * number, stack.0.as_ptr_range().end as u64);
    }
    // No map of ports: programs reach none.
    tables.task.0[25] = (size_of::<Task>() as u32) << 16;
}

fn fill_segments(tables: &mut Tables) {
    let task = &raw const tables.task as u64;
    let limit = size_of::<Task>() as u64 - 1;
    tables.segments = [
        0,
        0x00af_9a00_0000_ffff,
        0x00cf_9200_0000_ffff,
        0x00cf_f200_0000_ffff,
        0x00af_fa00_0000_ffff,
        limit | (task & 0xff_ffff) << 16 | 0x89 << 40 | (task >> 24 & 0xff) << 56,
        task >> 32,
    ];
}

fn fill_gates(tables: &mut Tables) {
    for vector in 0..48 {
        let target = trap::stub_of(vector);
        let own = ON_OWN_STACK.iter().position(|&one| one == vector);
        let stack = own.map_or(0, |number| number as u64 + 1);
        // An interrupt gate that only ring 0 may raise by an instruction.
        let kind = 0x8e;
        tables.gates[vector as usize] = Gate([
            target & 0xffff
                | KERNEL_CODE << 16
                | stack << 32
                | kind << 40
                | (target >> 16 & 0xffff) << 48,
            target >> 32,
        ]);
    }
}
