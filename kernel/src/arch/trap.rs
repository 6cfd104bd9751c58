//! To user mode and back.
//!
//! The kernel runs with interrupts off, on one stack, and is never entered twice: a program is
//! *called* with [`run`], which returns when the processor comes back from it, and says why. What
//! the processor and the stubs here save goes straight into one block of memory, to which the task
//! state segment points as if it were a stack.
//!
//! Interrupts are also taken while the kernel waits in [`wait`], and are only noted there. An
//! exception in the kernel itself is a fault of the kernel: it panics. Those that may come when the
//! stack can't be trusted (double fault, machine check, non-maskable interrupt) have stacks of
//! their own.

use core::arch::global_asm;
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicU64, Ordering};

use super::paging::USER_END;
use super::processor;

/// The first vector of interrupts; below it are exceptions.
pub const INTERRUPTS: u64 = 32;
/// The number in place of a vector when a program makes a system call.
const SYSTEM_CALL: u64 = 0x80;
/// The flag in the processor's flags that has it report after the next instruction.
pub const FLAG_STEP: u64 = 1 << 8;
/// Interrupts are taken. The flag that is always set is in it.
pub const FLAGS_USER: u64 = 0x202;

/// The registers of a program, and the reason of its stop. In the order in which the stubs and
/// the processor write it.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct Registers {
    pub r15: u64,
    pub r14: u64,
    pub r13: u64,
    pub r12: u64,
    pub r11: u64,
    pub r10: u64,
    pub r9: u64,
    pub r8: u64,
    pub rbp: u64,
    pub rdi: u64,
    pub rsi: u64,
    pub rdx: u64,
    pub rcx: u64,
    pub rbx: u64,
    pub rax: u64,
    pub vector: u64,
    pub error: u64,
    pub rip: u64,
    pub cs: u64,
    pub flags: u64,
    pub rsp: u64,
    pub ss: u64,
}

/// The floating point and vector registers, as `fxsave` writes them.
#[repr(C, align(16))]
#[derive(Clone, Copy)]
pub struct VectorRegisters([u8; 512]);

impl VectorRegisters {
    /// The state a program begins with: every exception masked, nothing in the registers.
    pub fn initial() -> VectorRegisters {
        let mut bytes = [0; 512];
        bytes[0..2].copy_from_slice(&0x037f_u16.to_le_bytes());
        bytes[24..28].copy_from_slice(&0x1f80_u32.to_le_bytes());
        VectorRegisters(bytes)
    }
}

/// The reason for which a program stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Trap {
    /// The program touched a page that is not mapped, or not with these rights.
    PageFault {
        /// The address it touched.
        address: u64,
        /// True if the program wanted to write.
        is_write: bool,
        /// True if the program wanted to execute the page.
        is_fetch: bool,
    },
    /// The instruction that was to be reported is over.
    Stepped,
    /// The program made a system call.
    SystemCall,
    /// An interrupt line rose.
    Interrupt {
        /// The line.
        line: u32,
    },
    /// The program did something that programs may not do.
    Exception {
        /// The processor's number of the exception.
        vector: u64,
        /// The processor's error code.
        error: u64,
    },
}

#[repr(C, align(16))]
struct Exchange {
    registers: UnsafeCell<Registers>,
    vectors: UnsafeCell<VectorRegisters>,
}

// SAFETY: there is one processor, and it uses the exchange with interrupts off.
unsafe impl Sync for Exchange {}

#[unsafe(no_mangle)]
static trap_exchange: Exchange = Exchange {
    registers: UnsafeCell::new(Registers {
        r15: 0,
        r14: 0,
        r13: 0,
        r12: 0,
        r11: 0,
        r10: 0,
        r9: 0,
        r8: 0,
        rbp: 0,
        rdi: 0,
        rsi: 0,
        rdx: 0,
        rcx: 0,
        rbx: 0,
        rax: 0,
        vector: 0,
        error: 0,
        rip: 0,
        cs: 0,
        flags: 0,
        rsp: 0,
        ss: 0,
    }),
    vectors: UnsafeCell::new(VectorRegisters([0; 512])),
};

/// Interrupts that came while the kernel waited, a bit a line.
#[unsafe(no_mangle)]
static trap_pending: AtomicU64 = AtomicU64::new(0);

unsafe extern "C" {
    fn trap_enter_user();
    fn trap_wait();
    fn trap_stubs();
    fn trap_system_call();
}

/// Runs a program from where it stopped, until it stops again.
///
/// What it may reach is what the table in use gives to user mode, and the selectors in `registers`
/// are set to those of user mode here: so nothing it does can reach the kernel.
pub fn run(registers: &mut Registers, vectors: &mut VectorRegisters) -> Trap {
    // The processor refuses the way to some such addresses while it still has the kernel's rights.
    if registers.rip >= USER_END {
        return Trap::PageFault {
            address: registers.rip,
            is_write: false,
            is_fetch: true,
        };
    }
    registers.cs = super::segments::USER_CODE;
    registers.ss = super::segments::USER_STACK;
    // Those that a program may have set, and interrupts on: nothing else.
    registers.flags = (registers.flags & 0x0000_0dd5) | FLAGS_USER;
    // SAFETY: interrupts are off and there is one processor, so no other code uses the exchange;
    // the assembly keeps every register that a function must keep, and the program can't reach the
    // kernel's memory.
    unsafe {
        *trap_exchange.registers.get() = *registers;
        *trap_exchange.vectors.get() = *vectors;
        trap_enter_user();
        *registers = *trap_exchange.registers.get();
        *vectors = *trap_exchange.vectors.get();
    }
    if is_left_in_user_mode(registers) {
        registers.rip = registers.rcx;
        registers.flags = registers.r11;
        return Trap::SystemCall;
    }
    match registers.vector {
        1 => Trap::Stepped,
        14 => Trap::PageFault {
            address: processor::fault_address(),
            is_write: registers.error & 2 != 0,
            is_fetch: registers.error & 16 != 0,
        },
        SYSTEM_CALL => Trap::SystemCall,
        vector if vector >= INTERRUPTS => Trap::Interrupt {
            line: (vector - INTERRUPTS) as u32,
        },
        vector => Trap::Exception {
            vector,
            error: registers.error,
        },
    }
}

/// Returns true if the processor took the program's call to the kernel's entry, and did not raise
/// its rights: it faults there, with all else as a call has it. Some hypervisors that emulate the
/// instruction do that.
fn is_left_in_user_mode(registers: &Registers) -> bool {
    let entry = system_call_entry();
    registers.vector == 14 && registers.rip == entry && processor::fault_address() == entry
}

/// Waits for an interrupt, and answers which lines rose, a bit a line.
pub fn wait() -> u64 {
    // SAFETY: interrupts taken in there only set bits; it returns with interrupts off.
    unsafe { trap_wait() };
    trap_pending.swap(0, Ordering::Relaxed)
}

/// The address at which the processor is to go on for `vector`.
pub(super) fn stub_of(vector: u64) -> u64 {
    trap_stubs as *const () as u64 + 16 * vector
}

/// The address at which the processor is to go on for a system call.
pub(super) fn system_call_entry() -> u64 {
    trap_system_call as *const () as u64
}

/// Ends the kernel: an exception came from the kernel's own code.
#[unsafe(no_mangle)]
extern "C" fn trap_in_kernel(registers: &Registers) -> ! {
    super::panic::die_of_exception(registers, processor::fault_address())
}

global_asm!(
    r#"
    .macro stub vector
    .balign 16
    .if !((\vector == 8) || (\vector >= 10 && \vector <= 14) || (\vector == 17) || (\vector == 21))
    pushq $0
    .endif
    pushq $\vector
    .if (\vector == 2) || (\vector == 8) || (\vector == 18)
    jmp trap_fatal
    .else
    jmp trap_any
    .endif
    .endm

    .text
    .global trap_stubs, trap_system_call, trap_enter_user, trap_wait
    .balign 16
trap_stubs:
    .irp vector, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15
    stub \vector
    .endr
    .irp vector, 16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
    stub \vector
    .endr
    .irp vector, 32,33,34,35,36,37,38,39,40,41,42,43,44,45,46,47
    stub \vector
    .endr
    .macro push_all
    pushq %rax
    pushq %rbx
    pushq %rcx
    pushq %rdx
    pushq %rsi
    pushq %rdi
    pushq %rbp
    pushq %r8
    pushq %r9
    pushq %r10
    pushq %r11
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    .endm

    /* The processor has put the address behind the call into rcx, and the flags into r11. */
trap_system_call:
    movq %rcx, trap_exchange + 136(%rip)
    movq %r11, trap_exchange + 152(%rip)
    movq %rsp, trap_exchange + 160(%rip)
    movq $0x80, trap_exchange + 120(%rip)
    leaq trap_exchange + 120(%rip), %rsp
    jmp 1f

trap_any:
    testb $3, 24(%rsp)
    jz 2f
    /* From user mode: the stack pointer is in the exchange. */
1:  push_all
    cld
    fxsave trap_exchange + 176(%rip)
    movq trap_kernel_stack(%rip), %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
2:  cmpq $32, (%rsp)
    jb trap_fatal
    /* An interrupt while the kernel waits: note it, and go back. */
    pushq %rcx
    movq 8(%rsp), %rcx
    subq $32, %rcx
    btsq %rcx, trap_pending(%rip)
    popq %rcx
    addq $16, %rsp
    iretq

trap_fatal:
    push_all
    cld
    movq %rsp, %rdi
    andq $-16, %rsp
    call trap_in_kernel
    ud2

trap_enter_user:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, trap_kernel_stack(%rip)
    fxrstor trap_exchange + 176(%rip)
    leaq trap_exchange(%rip), %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %r11
    popq %r10
    popq %r9
    popq %r8
    popq %rbp
    popq %rdi
    popq %rsi
    popq %rdx
    popq %rcx
    popq %rbx
    popq %rax
    addq $16, %rsp
    iretq

trap_wait:
    sti
    hlt
    cli
    ret

    .section .bss.trap, "aw", @nobits
    .balign 8
trap_kernel_stack:
    .skip 8
    .text
"#,
    options(att_syntax)
);

/// The top of the block into which the processor saves a program's state.
pub fn exchange_top() -> u64 {
    trap_exchange.registers.get() as u64 + size_of::<Registers>() as u64
}

const _: () = assert!(size_of::<Registers>() == 176);
