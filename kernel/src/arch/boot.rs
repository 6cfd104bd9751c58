//! The way from the loader to Rust: 32-bit code that turns on 64-bit mode and jumps up.
//!
//! The loader (`qemu -kernel`) finds the entry in a note of the PVH boot protocol and enters it in
//! 32-bit protected mode without paging, with the address of its boot information in `ebx`. The
//! first GiB is then mapped three times: where it is, from [`DIRECT`](super::paging::DIRECT) on,
//! and at -2 GiB, where the kernel is linked. [`paging`](super::paging) replaces these tables soon.

use core::arch::global_asm;

global_asm!(
    r#"
    .section .note.pvh, "a", @note
    .balign 4
    .long 4
    .long 8
    .long 18            /* XEN_ELFNOTE_PHYS32_ENTRY */
    .asciz "Xen"
    .quad boot_start

    .section .boot, "awx"
    .balign 4096
boot_root:
    .skip 4096
boot_low:
    .skip 4096
boot_high:
    .skip 4096
boot_pages:
    .skip 4096
    .balign 16
boot_segments:
    .quad 0
    .quad 0x00af9a000000ffff
    .quad 0x00cf92000000ffff
boot_segments_end:
boot_segments_place:
    .word boot_segments_end - boot_segments - 1
    .long boot_segments

    .code32
    .global boot_start
boot_start:
    cli
    cld
    /* 512 pages of 2 MiB: present, writable, large. */
    movl $boot_pages, %edi
    movl $0x83, %eax
    movl $512, %ecx
1:  movl %eax, (%edi)
    movl $0, 4(%edi)
    addl $0x200000, %eax
    addl $8, %edi
    loop 1b
    movl $boot_pages + 3, boot_low
    movl $boot_pages + 3, boot_high + 510 * 8
    movl $boot_low + 3, boot_root
    movl $boot_low + 3, boot_root + 256 * 8
    movl $boot_high + 3, boot_root + 511 * 8

    movl $boot_root, %eax
    movl %eax, %cr3
    /* Large pages, 64-bit entries, and SSE with its exceptions. */
    movl %cr4, %eax
    orl $0x630, %eax
    movl %eax, %cr4
    /* EFER: 64-bit mode, pages that are not executed, and the instruction for system calls. */
    movl $0xc0000080, %ecx
    rdmsr
    orl $0x901, %eax
    wrmsr
    /* Paging, write protection in ring 0, and a floating point unit that is there. */
    movl %cr0, %eax
    andl $0xfffffff3, %eax
    orl $0x80010003, %eax
    movl %eax, %cr0
    lgdt boot_segments_place
    ljmp $0x8, $boot_long

    .code64
boot_long:
    movl $0x10, %eax
    movl %eax, %ss
    movl %eax, %ds
    movl %eax, %es
    movabsq $kernel_stack_top, %rsp
    xorl %ebp, %ebp
    movl %ebx, %edi
    movabsq $kernel_start, %rax
    call *%rax
    ud2

    .section .bss.kernel_stack, "aw", @nobits
    .balign 4096
    .global kernel_stack_guard
kernel_stack_guard:
    .skip 4096
    .skip 256 * 1024
    .global kernel_stack_top
kernel_stack_top:
    .text
"#,
    options(att_syntax)
);
