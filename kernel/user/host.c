/* The same on Linux. */
#define _GNU_SOURCE
#include "library.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char **words_given;
static unsigned words_count;

_Noreturn void leave(int status)
{
    _exit(status);
}

void write_bytes(const void *bytes, size_t count)
{
    const char *next = bytes;
    while (count > 0) {
        ssize_t written = write(1, next, count);
        if (written <= 0)
            return;
        next += written;
        count -= (size_t)written;
    }
}

long open_file(const char *name)
{
    int file = open(name, O_RDWR);
    return file < 0 ? open(name, O_RDONLY) : file;
}

long read_file(long file, void *bytes, size_t count)
{
    return read((int)file, bytes, count);
}

void close_file(long file)
{
    close((int)file);
}

void *map_memory(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

void *map_file(long file, size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE, (int)file, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

void *map_file_shared(long file, size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, (int)file, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

long sync_files(void)
{
    sync();
    return 0;
}

void unmap_memory(void *memory, size_t bytes)
{
    munmap(memory, bytes);
}

long fork_process(void)
{
    return fork();
}

long execute(const char *const *words)
{
    char path[4096] = "./";
    size_t length = length_of(words[0]);
    if (length > sizeof path - 3)
        return -1;
    memcpy(path + 2, words[0], length + 1);
    return execv(path, (char *const *)words);
}

long wait_child(void)
{
    int status;
    long child = wait(&status);
    if (child < 0)
        return -1;
    return child << 8 | (WIFEXITED(status) ? WEXITSTATUS(status) : 139);
}

void yield(void)
{
}

uint64_t clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

void sleep_ns(uint64_t ns)
{
    struct timespec time = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
    nanosleep(&time, NULL);
}

const char *argument(unsigned number)
{
    return number < words_count ? words_given[number] : NULL;
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

int main(int count, char **words)
{
    words_count = (unsigned)count;
    words_given = words;
    return run();
}
