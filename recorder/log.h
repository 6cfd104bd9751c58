/* The log: how this process tells the collector what its program does.

   Part of Tidemark's recorder, a Valgrind tool.
   Licence: GPL-2.0-or-later; see LICENSE in this folder.

   A ring of words in a file that the collector reads while it is written. What is written stays
   when this process is killed. The layout is docs/formats/recorder-log-v2.md; both sides name a
   field by the same word. */

#ifndef TIDEMARK_LOG_H
#define TIDEMARK_LOG_H

#include "pub_tool_basics.h"

/* Kinds of entries, in the top byte of an entry's first word. Entries of kind `LOG_RUN` are
   written by translated code and have no length: their definition knows it. */
typedef enum {
   LOG_RUN = 0,
   LOG_PAD = 1,
   LOG_DEFINE = 2,
   LOG_HELLO = 3,
   LOG_MAP = 4,
   LOG_UNMAP = 5,
   LOG_REMAP = 6,
   LOG_PROTECT = 7,
   LOG_BREAK = 8,
   LOG_THREAD_START = 9,
   LOG_THREAD_EXIT = 10,
   LOG_THREAD_SWITCH = 11,
   LOG_FORK = 12,
   LOG_EXEC = 13,
   LOG_EXEC_FAILED = 14,
   LOG_WAIT = 15,
   LOG_MARK = 16,
   LOG_EXIT = 17,
   LOG_FATAL = 18,
   LOG_KERNEL = 19,
   LOG_CUT = 20,
   /* 21 to 23 are written by engines. */
   LOG_FILE = 24
} LogKind;

/* The subject of an entry of kind `LOG_FILE`: its argument. */
enum { FILE_READ = 0, FILE_WRITE = 1, FILE_CUT = 2 };

/* Kinds of access: the bits of a record's `kinds`. */
enum { ACCESS_FETCH = 1, ACCESS_LOAD = 2, ACCESS_STORE = 4, ACCESS_KERNEL = 8 };

/* The word that a guarded access writes when it does not happen. No address looks like it. */
#define LOG_NOWHERE (~0ULL)

/* The most words a superblock, or one entry, may take: the room kept at the end of a chunk. */
#define LOG_ENTRY_WORDS_MAX 4096

#define LOG_CHUNK_WORDS 65536
#define LOG_CHUNK_BYTES (8 * LOG_CHUNK_WORDS)

/* Opens the log of this process in the folder `spool`, and tells the collector. Without a
   collector, or without room, this says so and ends the process: nothing has run yet. */
void log_open(const HChar* spool);

/* Opens a log of its own for this forked child, at the addresses the parent's had. */
void log_reopen_in_child(void);

/* The place of the next word, and the limit past which `log_turn` must run first. Both stay at
   their addresses for the life of the process and its children. */
ULong** log_next_address(void);
ULong** log_limit_address(void);

/* True if a collector takes the entries. */
Bool log_is_heard(void);

/* Goes on to the next chunk; waits while the collector is a whole ring behind. */
void log_turn(void);

/* Room for one entry of `words` words after its head, which this writes. */
ULong* log_entry(LogKind kind, UInt argument, UInt words);

/* The words a text takes in an entry, and writing it there: its length, then its bytes. */
UInt log_text_words(const HChar* text);
void log_text(ULong* words, const HChar* text);

/* Makes all that was written so far the collector's, stamped with the present time. */
void log_publish(void);

/* Publishes, and says that no more will come. */
void log_close(void);

/* Nanoseconds on the monotonic clock. */
ULong log_now_ns(void);

#endif
