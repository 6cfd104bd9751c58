/* A system call that does not go through the C library. */
#include <unistd.h>

static long own_call(long number, long a, long b, long c, long d, long e) {
#ifdef __x86_64__
    register long r10 __asm__("r10") = d, r8 __asm__("r8") = e;
    long answer;
    __asm__ volatile("syscall" : "=a"(answer) : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8)
                     : "rcx", "r11", "memory");
    return answer;
#else
    return syscall(number, a, b, c, d, e);
#endif
}
