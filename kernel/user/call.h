/* A system call of the kernel, by its number. */
#ifndef TIDEMARK_CALL_H
#define TIDEMARK_CALL_H

#include <stdint.h>

static inline long call(long number, uint64_t first, uint64_t second, uint64_t third)
{
    long value;
    __asm__ volatile("syscall"
                     : "=a"(value)
                     : "a"(number), "D"(first), "S"(second), "d"(third)
                     : "rcx", "r11", "memory");
    return value;
}

#endif
