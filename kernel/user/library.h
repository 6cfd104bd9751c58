/* The calls of programs to the kernel, and the little they share. `kernel.c` makes the kernel's calls;
   `host.c` makes those of Linux, so that the same programs run there for comparison. */
#ifndef TIDEMARK_LIBRARY_H
#define TIDEMARK_LIBRARY_H

#include <stddef.h>
#include <stdint.h>

#define PAGE_BYTES 4096UL

/* The counts that `count_of` gives. */
enum count { FAULTS, PAGE_INS, PAGE_OUTS, SOFT_FAULTS, ZERO_FILLS, COPIES, FRAMES_USED, FRAMES, PROCESSES };

_Noreturn void leave(int status);
/* Writes all of it to the console. */
void write_bytes(const void *bytes, size_t count);
/* The number of an open file, or less than zero. */
long open_file(const char *name);
/* Reads up to `count` bytes; zero at the end, less than zero on error. */
long read_file(long file, void *bytes, size_t count);
void close_file(long file);
/* Memory that reads as zeros, or NULL. */
void *map_memory(size_t bytes);
/* A private copy of an open file, or NULL. */
void *map_file(long file, size_t bytes);
/* An open file itself, or NULL: what is written there goes to the file. */
void *map_file_shared(long file, size_t bytes);
/* Has it written to the disk by now; zero if it was. */
long sync_files(void);
void unmap_memory(void *memory, size_t bytes);
/* Has it be written to from now on, or only read; zero if it is so. */
long protect_memory(void *memory, size_t bytes, int is_writable);
/* Has it hold what it held when it was mapped. */
void discard_memory(void *memory, size_t bytes);
/* As on Unix. */
long fork_process(void);
/* Becomes the program of that name; `words` ends with NULL and begins with the name. */
long execute(const char *const *words);
/* Waits for a child. Its number times 256 and its status, or less than zero. */
long wait_child(void);
void yield(void);
uint64_t clock_ns(void);
void sleep_ns(uint64_t ns);
/* The argument of that number, or NULL. It stays until the next call. */
const char *argument(unsigned number);
/* The name of the file of that number on the volume, or NULL. It stays until the next call. */
const char *name_of_file(unsigned number);
long count_of(enum count what);

size_t length_of(const char *text);
int is_same(const char *one, const char *other);
void print(const char *text);
void print_number(uint64_t number);
/* Reads digits; zero without. */
uint64_t parse_number(const char *text);
void *memcpy(void *to, const void *from, size_t count);
void *memset(void *to, int byte, size_t count);
void *memmove(void *to, const void *from, size_t count);
int memcmp(const void *one, const void *other, size_t count);
int bcmp(const void *one, const void *other, size_t count);

/* The program. */
int run(void);

#endif
