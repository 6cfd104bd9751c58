//! The functions that the compiler's library for the host refers to, and an operating system's
//! would bring: the moving and comparing of bytes, and the unwinding of stacks, which never happens
//! here. The bare target's library has its own.

use core::arch::global_asm;

global_asm!(
    r#"
    .text
    .global memcpy, memmove, memset, memcmp, bcmp, strlen
    .global rust_eh_personality, _Unwind_Resume

memmove:
    movq %rdi, %rax
    subq %rsi, %rax
    cmpq %rdx, %rax
    jae memcpy
    /* The target begins inside the source: from the end on. */
    movq %rdi, %rax
    movq %rdx, %rcx
    leaq -1(%rdi, %rdx), %rdi
    leaq -1(%rsi, %rdx), %rsi
    std
    rep movsb
    cld
    ret

memcpy:
    movq %rdi, %rax
    movq %rdx, %rcx
    rep movsb
    ret

memset:
    movq %rdi, %r8
    movl %esi, %eax
    movq %rdx, %rcx
    rep stosb
    movq %r8, %rax
    ret

bcmp:
memcmp:
    xorl %eax, %eax
1:  testq %rdx, %rdx
    jz 2f
    movzbl (%rdi), %eax
    movzbl (%rsi), %ecx
    subl %ecx, %eax
    jnz 2f
    incq %rdi
    incq %rsi
    decq %rdx
    jmp 1b
2:  ret

strlen:
    xorl %eax, %eax
1:  cmpb $0, (%rdi, %rax)
    je 2f
    incq %rax
    jmp 1b
2:  ret

rust_eh_personality:
_Unwind_Resume:
    ud2
"#,
    options(att_syntax)
);
