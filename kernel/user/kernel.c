/* The kernel's calls: a number in rax, arguments in rdi, rsi and rdx. */
#include "call.h"
#include "library.h"

_Noreturn void leave(int status)
{
    for (;;)
        call(0, (uint64_t)status, 0, 0);
}

void write_bytes(const void *bytes, size_t count)
{
    const char *next = bytes;
    while (count > 0) {
        long written = call(1, 1, (uint64_t)next, count);
        if (written <= 0)
            return;
        next += written;
        count -= (size_t)written;
    }
}

long open_file(const char *name)
{
    return call(3, (uint64_t)name, length_of(name), 0);
}

long read_file(long file, void *bytes, size_t count)
{
    return call(2, (uint64_t)file, (uint64_t)bytes, count);
}

void close_file(long file)
{
    call(4, (uint64_t)file, 0, 0);
}

void *map_memory(size_t bytes)
{
    long address = call(5, bytes, 0, 0);
    return address < 0 ? NULL : (void *)address;
}

void *map_file(long file, size_t bytes)
{
    long address = call(5, bytes, (uint64_t)file, 0);
    return address < 0 ? NULL : (void *)address;
}

void *map_file_shared(long file, size_t bytes)
{
    long address = call(5, bytes, (uint64_t)file, 1);
    return address < 0 ? NULL : (void *)address;
}

long sync_files(void)
{
    return call(18, 0, 0, 0);
}

void unmap_memory(void *memory, size_t bytes)
{
    call(6, (uint64_t)memory, bytes, 0);
}

long protect_memory(void *memory, size_t bytes, int is_writable)
{
    return call(16, (uint64_t)memory, bytes, is_writable ? 2 : 1);
}

void discard_memory(void *memory, size_t bytes)
{
    call(15, (uint64_t)memory, bytes, 4);
}

long fork_process(void)
{
    return call(7, 0, 0, 0);
}

long execute(const char *const *words)
{
    static char line[2048];
    size_t used = 0;
    for (; *words; words++) {
        size_t length = length_of(*words) + 1;
        if (used + length > sizeof line)
            return -1;
        memcpy(line + used, *words, length);
        used += length;
    }
    return call(8, (uint64_t)line, used, 0);
}

long wait_child(void)
{
    return call(9, 0, 0, 0);
}

void yield(void)
{
    call(10, 0, 0, 0);
}

uint64_t clock_ns(void)
{
    return (uint64_t)call(11, 0, 0, 0);
}

void sleep_ns(uint64_t ns)
{
    call(12, ns, 0, 0);
}

/* The calls that answer a text write it here. What lies behind a page is left out by the kernel:
   a text never crosses one. */
static char text[2048] __attribute__((aligned(2048)));

static const char *text_of(long call_number, unsigned number)
{
    long length = call(call_number, number, (uint64_t)text, sizeof text - 1);
    if (length < 0)
        return NULL;
    text[(size_t)length < sizeof text ? (size_t)length : sizeof text - 1] = 0;
    return text;
}

const char *argument(unsigned number)
{
    return text_of(13, number);
}

const char *name_of_file(unsigned number)
{
    return text_of(17, number);
}

long count_of(enum count what)
{
    return call(14, what, 0, 0);
}

void _start(void)
{
    leave(run());
}
