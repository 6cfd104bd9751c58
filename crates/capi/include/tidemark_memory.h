/* Memory regions larger than the memory they may use: Tidemark's engine as a library.

   Link with -ltidemark_memory (`pkg-config --cflags --libs tidemark-memory`). Every function may be
   called by any thread. Made of crates/capi/src, which is where to change it. */

#ifndef TIDEMARK_MEMORY_H
#define TIDEMARK_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What tidemark_mmap returns where it fails, as MAP_FAILED. */
#define TIDEMARK_MAP_FAILED ((void *)-1)

/* What calls come to. */
enum {
    /* All is well. */
    TIDEMARK_OK = 0,
    /* An argument can't be; the message names it. */
    TIDEMARK_ARGUMENT = 1,
    /* The system refuses what an engine needs: tidemark doctor says how to permit it. */
    TIDEMARK_SYSTEM = 2,
    /* There is no room for that in memory and swap file. */
    TIDEMARK_NO_ROOM = 3,
    /* A file can't be opened, is none, or is too short. */
    TIDEMARK_FILE = 4,
    /* A file is being written to by another region or process. */
    TIDEMARK_FILE_IN_USE = 5,
    /* A file can't be written; what is modified stays in memory. */
    TIDEMARK_FILE_WRITE = 6,
    /* A file was cut, and what was modified beyond is lost. */
    TIDEMARK_FILE_CUT = 7,
    /* A forked child has no engine and no regions of its parent. */
    TIDEMARK_FORKED = 8,
    /* A fault of this library; please report it. */
    TIDEMARK_BUG = 9
};

/* An engine: a limit of memory, a policy, a swap file. Known by its handle alone. */
struct tidemark_engine;

/* The settings of an engine. Zero in place of a number and NULL in place of a text are those of
   tidemark_open without settings. */
struct tidemark_settings {
    /* The most memory, in bytes, that all regions have together; 64 MiB. */
    uint64_t memory;
    /* The policy by which pages leave: a name that tidemark policies lists; tidemark. */
    const char *policy;
    /* The folder in which the swap file is made, without a name; /var/tmp. */
    const char *swap_folder;
    /* The size of the swap file, in bytes; 4 GiB. */
    uint64_t swap_size;
};

/* The counts of an engine's work so far, in pages of 4 KiB unless the name says bytes. */
struct tidemark_statistics {
    /* Faults that were served. */
    uint64_t faults;
    /* Read from the swap file and from other files, those read ahead included. */
    uint64_t page_ins;
    /* Those of them that are of other files than the swap file. */
    uint64_t file_page_ins;
    /* Written to the swap file and to other files. */
    uint64_t page_outs;
    /* Those of them that are of other files than the swap file. */
    uint64_t file_page_outs;
    /* Filled with zeros at the first touch, those filled ahead included. */
    uint64_t zero_fills;
    /* Faults on pages that were resident and unmapped, to see whether they are used. */
    uint64_t soft_faults;
    /* Bytes that are resident now. */
    uint64_t resident_bytes;
    /* Bytes of all regions. */
    uint64_t region_bytes;
};

/* Makes an engine with settings, or with none (NULL), and puts its handle in *engine.
   Returns TIDEMARK_OK or why not. */
int tidemark_open(const struct tidemark_settings *settings, struct tidemark_engine **engine);

/* Ends the use of a handle. The engine ends with the last of its regions. If it was in use, none
   is any more. Returns TIDEMARK_OK or why not. */
int tidemark_close(struct tidemark_engine *engine);

/* Has tidemark_mmap use engine, in all threads. NULL: the default, which is made without
   settings when it is needed first. Returns TIDEMARK_OK or why not. */
int tidemark_use(struct tidemark_engine *engine);

/* Maps memory of the engine in use, as mmap does. flags: MAP_PRIVATE and MAP_ANONYMOUS for
   zeros; MAP_PRIVATE for what the file fd has from offset on, to be modified without the
   file, or only read with the prot PROT_READ; MAP_SHARED to write it to the file. The file
   must be as long. addr is not heeded, and MAP_FIXED refused.
   Returns the address, or TIDEMARK_MAP_FAILED with errno. */
void *tidemark_mmap(void *addr, size_t length, int prot, int flags, int fd, int64_t offset);

/* The same of engine, or of the one in use (NULL). */
void *tidemark_mmap_in(struct tidemark_engine *engine, void *addr, size_t length, int prot,
                       int flags, int fd, int64_t offset);

/* Ends a region, as munmap does: the whole of it, by the address and the length that it has.
   What is modified of a file is written. Returns 0, or -1 with errno. */
int tidemark_munmap(void *addr, size_t length);

/* Says how a part of a region will be used, as madvise does: MADV_NORMAL, MADV_SEQUENTIAL
   and MADV_RANDOM; MADV_WILLNEED begins to read; MADV_DONTNEED makes whole pages of private
   memory what they were at first. Returns 0, or -1 with errno. */
int tidemark_advise(void *addr, size_t length, int advice);

/* Writes what is modified of a part of a shared region to its file, as msync does, and waits
   until it is on the disk. flags are those of msync; MS_ASYNC waits as well.
   Returns 0, or -1 with errno. */
int tidemark_flush(void *addr, size_t length, int flags);

/* Counts what engine, or the one in use (NULL), has done. Returns TIDEMARK_OK or why not. */
int tidemark_count(struct tidemark_engine *engine, struct tidemark_statistics *statistics);

/* Returns what the last call of this thread came to: TIDEMARK_OK or another of these. */
int tidemark_status(void);

/* Returns a line that says why the last call of this thread failed, or an empty one. It stays
   until the thread's next call. */
const char *tidemark_message(void);

/* Returns the version of the library, such as 0.1.0. */
const char *tidemark_version(void);

#ifdef __cplusplus
}
#endif

#endif
