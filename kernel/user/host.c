/* The same on Linux, by system calls alone: without the C library, a recording has the pages of the
   program and no others. */
#include "library.h"

enum { READ = 0, WRITE = 1, OPEN = 2, CLOSE = 3, MMAP = 9, MPROTECT = 10, YIELD = 24, MADVISE = 28,
       NANOSLEEP = 35, FORK = 57, EXECVE = 59, WAIT4 = 61, SYNC = 162, CLOCK_GETTIME = 228,
       EXIT_GROUP = 231 };
/* Of the calls' arguments. */
enum { ONLY_READ = 0, READ_AND_WRITE = 2, NO_PAGES = 0, READ_PAGES = 1, READ_WRITE_PAGES = 3,
       SHARED = 1, PRIVATE = 2, THERE = 0x10, ANONYMOUS = 0x20, NOT_NEEDED = 4, MONOTONIC = 1 };

struct moment {
    int64_t seconds, ns;
};

static char **words_given;

static long call(long number, long first, long second, long third, long fourth, long fifth)
{
    register long r10 __asm__("r10") = fourth;
    register long r8 __asm__("r8") = fifth;
    register long r9 __asm__("r9") = 0;
    long value;
    __asm__ volatile("syscall"
                     : "=a"(value)
                     : "a"(number), "D"(first), "S"(second), "d"(third), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return value;
}

_Noreturn void leave(int status)
{
    for (;;)
        call(EXIT_GROUP, status, 0, 0, 0, 0);
}

void write_bytes(const void *bytes, size_t count)
{
    const char *next = bytes;
    while (count > 0) {
        long written = call(WRITE, 1, (long)next, (long)count, 0, 0);
        if (written <= 0)
            return;
        next += written;
        count -= (size_t)written;
    }
}

long open_file(const char *name)
{
    long file = call(OPEN, (long)name, READ_AND_WRITE, 0, 0, 0);
    return file < 0 ? call(OPEN, (long)name, ONLY_READ, 0, 0, 0) : file;
}

long read_file(long file, void *bytes, size_t count)
{
    return call(READ, file, (long)bytes, (long)count, 0, 0);
}

void close_file(long file)
{
    call(CLOSE, file, 0, 0, 0, 0);
}

static void *map(size_t bytes, long flags, long file)
{
    long address = call(MMAP, 0, (long)bytes, READ_WRITE_PAGES, flags, file);
    return address < 0 ? NULL : (void *)address;
}

void *map_memory(size_t bytes)
{
    return map(bytes, PRIVATE | ANONYMOUS, -1);
}

void *map_file(long file, size_t bytes)
{
    return map(bytes, PRIVATE, file);
}

void *map_file_shared(long file, size_t bytes)
{
    return map(bytes, SHARED, file);
}

long sync_files(void)
{
    return call(SYNC, 0, 0, 0, 0, 0);
}

/* The place stays taken: the kernel gives none twice either. */
void unmap_memory(void *memory, size_t bytes)
{
    call(MMAP, (long)memory, (long)bytes, NO_PAGES, PRIVATE | ANONYMOUS | THERE, -1);
}

long protect_memory(void *memory, size_t bytes, int is_writable)
{
    return call(MPROTECT, (long)memory, (long)bytes, is_writable ? READ_WRITE_PAGES : READ_PAGES, 0, 0);
}

void discard_memory(void *memory, size_t bytes)
{
    call(MADVISE, (long)memory, (long)bytes, NOT_NEEDED, 0, 0);
}

long fork_process(void)
{
    return call(FORK, 0, 0, 0, 0, 0);
}

long execute(const char *const *words)
{
    static const char *const none[] = {NULL};
    char path[256] = "./";
    size_t length = length_of(words[0]);
    if (length > sizeof path - 3)
        return -1;
    memcpy(path + 2, words[0], length + 1);
    return call(EXECVE, (long)path, (long)words, (long)none, 0, 0);
}

long wait_child(void)
{
    int status;
    long child = call(WAIT4, -1, (long)&status, 0, 0, 0);
    if (child < 0)
        return -1;
    return child << 8 | ((status & 127) == 0 ? status >> 8 & 255 : 139);
}

void yield(void)
{
    call(YIELD, 0, 0, 0, 0, 0);
}

uint64_t clock_ns(void)
{
    struct moment now;
    call(CLOCK_GETTIME, MONOTONIC, (long)&now, 0, 0, 0);
    return (uint64_t)now.seconds * 1000000000 + (uint64_t)now.ns;
}

void sleep_ns(uint64_t ns)
{
    struct moment time = {(int64_t)(ns / 1000000000), (int64_t)(ns % 1000000000)};
    call(NANOSLEEP, (long)&time, 0, 0, 0, 0);
}

const char *argument(unsigned number)
{
    for (unsigned passed = 0; passed < number; passed++)
        if (!words_given[passed])
            return NULL;
    return words_given[number];
}

/* Folders of Linux have no order of their own; `ls` is not compared. */
const char *name_of_file(unsigned number)
{
    (void)number;
    return NULL;
}

long count_of(enum count what)
{
    (void)what;
    return 0;
}

/* The number of words stands where the stack begins, the words above it. */
__attribute__((used)) _Noreturn static void begin(long *stack)
{
    words_given = (char **)(stack + 1);
    leave(run());
}

__asm__(".globl _start\n"
        "_start: movq %rsp, %rdi\n"
        "        andq $-16, %rsp\n"
        "        call begin\n");
