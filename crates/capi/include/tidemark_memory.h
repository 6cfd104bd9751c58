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
    /* A file can't be written; modified pages stay in memory. */
    TIDEMARK_FILE_WRITE = 6,
    /* A file was cut, and what was modified beyond is lost. */
    TIDEMARK_FILE_CUT = 7,
    /* A forked child has no engine and no regions of its parent. */
    TIDEMARK_FORKED = 8,
    /* A fault of this library; please report it. */
    TIDEMARK_BUG = 9,
    /* A server can't be reached, refuses, or does not have what is asked for. */
    TIDEMARK_STORE = 10
};

/* An engine: a limit of memory, a policy, a swap file. Known by its handle alone. */
struct tidemark_engine;

/* The settings of an engine. Zero in place of a number and NULL in place of a text are those of
   tidemark_open without settings. */
struct tidemark_settings {
    /* The most memory, in bytes, that all regions have together; 64 MiB. */
    uint64_t memory;
    /* The policy by which pages leave: a name that tidemark policies lists; 2q-faults. */
    const char *policy;
    /* The folder in which the swap file is made, without a name; /var/tmp. */
    const char *swap_folder;
    /* The size of the swap file, or of what is in its place, in bytes; 4 GiB. */
    uint64_t swap_size;
    /* The place of pages that leave: file, the swap file; compressed, memory within the limit
       alone, where a program that does not fit is ended; a server of Redis's protocol, such as
       redis://HOST/0/NAME, to which they go encrypted; or the first or the last with compressed
       memory in front, such as compressed+file, where a quarter of swap_size is not for
       regions; file. */
    const char *store;
};

/* Reads bytes bytes from offset on into into: whole pages of 4 KiB, but for the last.
   Returns 0 or an errno. See struct tidemark_pager. */
typedef int tidemark_read(void *context, uint64_t offset, void *into, size_t bytes);

/* Writes bytes bytes from offset on, likewise. After an error some of them may be written. */
typedef int tidemark_write(void *context, uint64_t offset, const void *from, size_t bytes);

/* Frees what a pager has. No call of it is under way then, and none follows. */
typedef void tidemark_end(void *context);

/* A pager: functions that have the contents of a region.

   They are called by up to eight threads of the engine's own, several at once, with all signals
   blocked. A range is not written while another call reads or writes it. They must not touch
   memory that tidemark_mmap and its kin have mapped, nor call them, which would wait for ever;
   and they return: no exception, no longjmp.

   EAGAIN and EINTR may pass: the call is made again, for 30 seconds. Another errno, or what is
   none, lasts. A page that can't be read is never zeros: a line on standard error names its
   address, the pager, the offset and the errno, and a touch is a SIGBUS, whose handler may ask
   tidemark_failed. What can't be written stays in memory, and is an error of tidemark_flush. */
struct tidemark_pager {
    /* The number of bytes. */
    uint64_t bytes;
    /* Reads. */
    tidemark_read *read;
    /* Writes; NULL if that can't be. */
    tidemark_write *write;
    /* Called once, at the end, by any thread; NULL if there is nothing to be done. If mapping
       fails, it is not called. */
    tidemark_end *end;
    /* Handed to each of them. */
    void *context;
    /* The name in messages, which is copied; NULL: the pager. */
    const char *name;
};

/* A call of a pager that failed. */
struct tidemark_failure {
    /* The address of the region. */
    void *region;
    /* The offset that was asked for. */
    uint64_t offset;
    /* The bytes that were asked for. */
    size_t bytes;
    /* The value that the call returned. */
    int error;
    /* 1 if it was a write, 0 if it was a read. */
    int is_write;
};

/* The counts of an engine's work so far, in pages of 4 KiB unless the name says bytes. */
struct tidemark_statistics {
    /* Faults that were served. */
    uint64_t faults;
    /* Pages read from the swap file and from other files, those read ahead included. */
    uint64_t page_ins;
    /* Pages read from other files than the swap file; a part of page_ins. */
    uint64_t file_page_ins;
    /* Pages written to the swap file and to other files. */
    uint64_t page_outs;
    /* Pages written to other files than the swap file; a part of page_outs. */
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

/* Maps memory as tidemark_mmap does, of engine, or of the one in use (NULL). */
void *tidemark_mmap_in(struct tidemark_engine *engine, void *addr, size_t length, int prot,
                       int flags, int fd, int64_t offset);

/* Maps what the store at the address url has, such as redis://HOST/0/NAME, https://HOST/PATH
   or s3://BUCKET/KEY, in engine, or in the one in use (NULL), and puts its number of bytes
   in *length. prot and flags are those of a file: with MAP_SHARED modified pages are
   written to the store, which must be one of Redis's protocol. Returns the address, or
   TIDEMARK_MAP_FAILED with errno. */
void *tidemark_mmap_store(struct tidemark_engine *engine, const char *url, size_t *length, int prot,
                          int flags);

/* Makes a store of length zeros at the address url of a server of Redis's protocol, in place
   of what is there. Returns TIDEMARK_OK or why not. */
int tidemark_create_store(const char *url, uint64_t length);

/* Maps what pager has, in engine, or in the one in use (NULL): its bytes, rounded up to
   pages. The structure is copied. prot and flags are those of a file: with MAP_SHARED
   modified pages are written by the pager, with MAP_PRIVATE they go to the swap file. Returns
   the address, or TIDEMARK_MAP_FAILED with errno. */
void *tidemark_mmap_pager(struct tidemark_engine *engine, const struct tidemark_pager *pager,
                          int prot, int flags);

/* Puts the last call that failed of the pager of the region that has addr in *failure. It may
   be called by the handler of a SIGBUS, for a touch outside this library.
   Returns TIDEMARK_OK, or TIDEMARK_ARGUMENT if there is none. */
int tidemark_failed(const void *addr, struct tidemark_failure *failure);

/* Ends a region, as munmap does: the whole of it, by the address and the length that it has. The
   modified pages of a file are written. Returns 0, or -1 with errno. */
int tidemark_munmap(void *addr, size_t length);

/* Says how a part of a region will be used, as madvise does: MADV_NORMAL, MADV_SEQUENTIAL
   and MADV_RANDOM; MADV_WILLNEED begins to read; MADV_DONTNEED makes whole pages of private
   memory what they were at first. Returns 0, or -1 with errno. */
int tidemark_advise(void *addr, size_t length, int advice);

/* Writes the modified pages of a part of a shared region to its file, as msync does, and waits
   until they are on the disk. flags are those of msync; MS_ASYNC waits as well. Returns 0,
   or -1 with errno. */
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
