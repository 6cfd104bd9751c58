/* The log: a ring of chunks in a file shared with the collector.

   Part of Tidemark's recorder, a Valgrind tool.
   Licence: GPL-2.0-or-later; see LICENSE in this folder.

   The generated code appends without asking: it bumps `next` and stores. Only between superblocks
   is it checked that a chunk has room for the longest of them. Invariants:
   1. Words before the last published position are never written again until the collector has
      counted their chunk as consumed.
   2. `next` stands in the shared header, so that the words after the last published position can
      be found when this process has been killed.
   3. Nothing here waits for a collector that is gone. */

#include "pub_tool_basics.h"
#include "pub_tool_aspacemgr.h"
#include "pub_tool_libcassert.h"
#include "pub_tool_libcbase.h"
#include "pub_tool_libcfile.h"
#include "pub_tool_libcprint.h"
#include "pub_tool_libcproc.h"
#include "pub_tool_vki.h"
#include "pub_tool_vkiscnums.h"

#include "log.h"

/* In libcoregrind, and in no header for tools: moves a descriptor out of the program's sight. */
extern Int VG_(safe_fd)(Int oldfd);

#define CHUNKS_MAX 16
#define CHUNKS_MIN 2
#define PUBLISHED_MAX 2048
#define HEADER_BYTES (12 * 4096)
#define FILE_MAGIC 0x32676f6c64697426ULL /* "&tidlog2" */
#define WAIT_NS 100000

/* One publication: everything before `position` was written before `stamp_ns`. */
typedef struct {
   ULong position; /* words since the beginning of the log */
   ULong stamp_ns;
} Publication;

/* The head of the file. The collector writes `chunks_consumed`, `publications_consumed` and
   `is_dismissed`; this process writes the rest. */
typedef struct {
   ULong magic;
   ULong pid;
   ULong chunk_words;
   ULong chunks;
   ULong ring_address; /* of the first chunk, in this process */
   ULong* next;        /* where the next word goes */
   ULong chunk;        /* the chunk being filled, counted from the beginning of the log */
   ULong publications; /* how many have been made */
   ULong is_closed;
   ULong chunks_consumed;
   ULong publications_consumed;
   ULong is_dismissed; /* the collector wants no more, and all is well */
   ULong parent;       /* the pid of the process that forked this one, or 0 */
   ULong unused[19];
   Publication published[PUBLISHED_MAX];
} Header;

static Header* header;
static ULong* ring;
static ULong* limit; /* past it, a chunk may lack room for a superblock */
static UInt chunks;
static Int bell = -1; /* a FIFO: a line of it wakes the collector */
static const HChar* spool;
static Bool is_heard = False;
static UInt generation = 0; /* logs this process has opened, ancestors' included */

/* ---- system calls that tools have no function for ---- */

static Word syscall6(UWord number, UWord a, UWord b, UWord c, UWord d, UWord e, UWord f)
{
   Word result;
   register UWord r10 __asm__("r10") = d;
   register UWord r8 __asm__("r8") = e;
   register UWord r9 __asm__("r9") = f;
   __asm__ volatile("syscall"
                    : "=a"(result)
                    : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                    : "rcx", "r11", "memory");
   return result;
}

ULong log_now_ns(void)
{
   struct vki_timespec now;
   syscall6(__NR_clock_gettime, VKI_CLOCK_MONOTONIC, (UWord)&now, 0, 0, 0, 0);
   return (ULong)now.tv_sec * 1000000000ULL + now.tv_nsec;
}

static void sleep_ns(ULong ns)
{
   struct vki_timespec span = { ns / 1000000000ULL, ns % 1000000000ULL };
   syscall6(__NR_nanosleep, (UWord)&span, 0, 0, 0, 0, 0);
}

/* A line to the program's own stderr: for what the user must know when the collector, who else
   would tell it, is not there. */
static void tell(const HChar* line)
{
   VG_(write)(2, line, VG_(strlen)(line));
}

/* ---- the bell ---- */

/* The collector has gone when nobody has the FIFO open for reading. */
static Bool is_collector_there(void)
{
   struct { Int fd; Short events; Short revents; } ask = { bell, 4 /* POLLOUT */, 0 };
   Word ready = syscall6(__NR_poll, (UWord)&ask, 1, 0, 0, 0, 0);
   return ready < 0 || (ask.revents & 8 /* POLLERR */) == 0;
}

/* Wakes the collector. The line is shorter than a pipe takes in one piece. */
static void ring_bell(const HChar* format, Int pid, UInt number)
{
   HChar line[64];
   UInt length = VG_(sprintf)(line, format, pid, number);
   /* A full pipe has woken it already; a pipe without a reader would raise SIGPIPE. */
   if (is_collector_there())
      VG_(write)(bell, line, length);
}

/* ---- opening ---- */

/* Goes on writing at the start of a chunk. */
static void set_next(ULong* start)
{
   header->next = start;
   limit = start + LOG_CHUNK_WORDS - LOG_ENTRY_WORDS_MAX;
}

/* Puts memory of this process's own where the log was. */
static void forget_log(void)
{
   UWord bytes = HEADER_BYTES + CHUNKS_MAX * LOG_CHUNK_BYTES;
   is_heard = False;
   syscall6(__NR_mmap, (UWord)header, bytes, VKI_PROT_READ | VKI_PROT_WRITE,
            VKI_MAP_PRIVATE | VKI_MAP_ANONYMOUS | VKI_MAP_FIXED, (UWord)-1, 0);
   set_next(ring);
}

static void refuse(const HChar* what)
{
   HChar line[256];
   VG_(snprintf)(line, sizeof line, "tidemark: recorder: %s\n", what);
   tell(line);
   VG_(exit)(2);
}

/* Makes the file with room for as many chunks as there is space for; returns its descriptor. */
static Int make_file(const HChar* path, UInt chunks_wanted)
{
   SysRes opened = VG_(open)(path, VKI_O_RDWR | VKI_O_CREAT | VKI_O_EXCL, 0600);
   if (sr_isError(opened))
      return -1;
   Int file = sr_Res(opened);
   for (chunks = chunks_wanted; chunks >= CHUNKS_MIN; chunks /= 2) {
      ULong bytes = HEADER_BYTES + (ULong)chunks * LOG_CHUNK_BYTES;
      /* Reserved, since a page that can't be had later would be a fatal signal. */
      if (syscall6(__NR_fallocate, file, 0, 0, bytes, 0, 0) == 0)
         return file;
   }
   VG_(close)(file);
   VG_(unlink)(path);
   return -1;
}

/* Maps a new log over the area that was set aside. */
static void open_file(UInt chunks_wanted)
{
   HChar path[512];
   Int pid = VG_(getpid)();
   VG_(snprintf)(path, sizeof path, "%s/%d-%u", spool, pid, generation);
   Int file = make_file(path, chunks_wanted);
   if (file < 0)
      refuse("no room for a log in the spool folder; free some, or set TMPDIR to a folder with "
             "8M a process");
   ULong bytes = HEADER_BYTES + (ULong)chunks * LOG_CHUNK_BYTES;
   Word mapped = syscall6(__NR_mmap, (UWord)header, bytes, VKI_PROT_READ | VKI_PROT_WRITE,
                          VKI_MAP_SHARED | VKI_MAP_FIXED, file, 0);
   VG_(close)(file);
   if (mapped != (Word)header)
      refuse("the log can't be mapped; free some memory");
   header->pid = pid;
   header->chunk_words = LOG_CHUNK_WORDS;
   header->chunks = chunks;
   header->ring_address = (ULong)ring;
   set_next(ring);
   header->magic = FILE_MAGIC;
}

void log_open(const HChar* folder)
{
   HChar path[512];
   spool = folder;
   VG_(snprintf)(path, sizeof path, "%s/bell", spool);
   SysRes opened = VG_(open)(path, VKI_O_WRONLY | VKI_O_NONBLOCK, 0);
   if (sr_isError(opened))
      refuse("no collector; start the program through `tidemark record`");
   bell = VG_(safe_fd)(sr_Res(opened));
   VG_(fcntl)(bell, VKI_F_SETFD, VKI_FD_CLOEXEC);
   header = VG_(am_shadow_alloc)(HEADER_BYTES + CHUNKS_MAX * LOG_CHUNK_BYTES);
   if (header == NULL)
      refuse("the log can't be mapped; free some memory");
   ring = (ULong*)((HChar*)header + HEADER_BYTES);
   /* A process that executes programs one after the other has a log for each. */
   generation = log_now_ns() & 0x3fffffff;
   open_file(CHUNKS_MAX);
   is_heard = True;
   ring_bell("log %d %u\n", VG_(getpid)(), generation);
}

void log_reopen_in_child(void)
{
   ULong parent = header->pid;
   if (!is_heard) {
      /* The parent's memory is its own already; a log that it lost later it may still share. */
      forget_log();
      return;
   }
   generation = log_now_ns() & 0x3fffffff;
   open_file(CHUNKS_MAX);
   header->parent = parent;
   ring_bell("log %d %u\n", VG_(getpid)(), generation);
}

ULong** log_next_address(void)
{
   return &header->next;
}

ULong** log_limit_address(void)
{
   return &limit;
}

Bool log_is_heard(void)
{
   return is_heard;
}

/* ---- writing ---- */

static ULong position(void)
{
   ULong in_ring = header->next - ring;
   return header->chunk * LOG_CHUNK_WORDS + in_ring - (header->chunk % chunks) * LOG_CHUNK_WORDS;
}

/* Goes on without a collector: one chunk is written over and over. */
static void go_deaf(void)
{
   if (!header->is_dismissed)
      tell("tidemark: recorder: the collector is gone; the program goes on unrecorded\n");
   forget_log();
}

/* True if the collector takes the entries to come. */
static Bool is_wanted(void)
{
   if (header->is_dismissed || !is_collector_there())
      go_deaf();
   return is_heard;
}

static void publish_at(ULong at)
{
   ULong made = header->publications;
   header->published[made % PUBLISHED_MAX].position = at;
   header->published[made % PUBLISHED_MAX].stamp_ns = log_now_ns();
   __atomic_store_n(&header->publications, made + 1, __ATOMIC_RELEASE);
}

static Bool is_publication_free(void)
{
   ULong consumed = __atomic_load_n(&header->publications_consumed, __ATOMIC_ACQUIRE);
   return header->publications - consumed < PUBLISHED_MAX;
}

/* Waits until `chunk` may be filled. */
static void await_chunk(ULong chunk)
{
   while (chunk - __atomic_load_n(&header->chunks_consumed, __ATOMIC_ACQUIRE) >= chunks
          || !is_publication_free()) {
      if (!is_wanted())
         return;
      sleep_ns(WAIT_NS);
   }
}

static ULong* chunk_start(ULong chunk)
{
   return ring + (chunk % chunks) * LOG_CHUNK_WORDS;
}

void log_turn(void)
{
   if (!is_heard) {
      set_next(ring);
      return;
   }
   ULong* start = chunk_start(header->chunk);
   ULong used = header->next - start;
   tl_assert(used <= LOG_CHUNK_WORDS);
   if (used < LOG_CHUNK_WORDS)
      *header->next = (ULong)LOG_PAD << 56 | (LOG_CHUNK_WORDS - used) << 32;
   await_chunk(header->chunk + 1);
   if (!is_heard)
      return;
   /* The collector may read the new chunk from its start on only when `next` is there; a reader
      of the log of a killed process must find the two in agreement. */
   set_next(chunk_start(header->chunk + 1));
   __atomic_store_n(&header->chunk, header->chunk + 1, __ATOMIC_RELEASE);
   publish_at(header->chunk * LOG_CHUNK_WORDS);
   ring_bell("more %d %u\n", VG_(getpid)(), generation);
}

ULong* log_entry(LogKind kind, UInt argument, UInt words)
{
   tl_assert(words + 1 < LOG_ENTRY_WORDS_MAX);
   ULong used = header->next - chunk_start(header->chunk);
   if (used + words + 1 > LOG_CHUNK_WORDS - 1)
      log_turn();
   ULong* entry = header->next;
   entry[0] = (ULong)kind << 56 | (ULong)(words + 1) << 32 | argument;
   header->next = entry + words + 1;
   return entry + 1;
}

UInt log_text_words(const HChar* text)
{
   return 1 + (VG_(strlen)(text) + 7) / 8;
}

void log_text(ULong* words, const HChar* text)
{
   UInt length = VG_(strlen)(text);
   words[(length + 7) / 8] = 0;
   words[0] = length;
   VG_(memcpy)(words + 1, text, length);
}

void log_publish(void)
{
   if (!is_heard)
      return;
   ULong at = position();
   ULong made = header->publications;
   if (made > 0 && header->published[(made - 1) % PUBLISHED_MAX].position == at)
      return;
   if (is_publication_free())
      publish_at(at);
}

void log_close(void)
{
   if (!is_heard)
      return;
   while (!is_publication_free() && is_wanted())
      sleep_ns(WAIT_NS);
   if (!is_heard)
      return;
   publish_at(position());
   __atomic_store_n(&header->is_closed, 1, __ATOMIC_RELEASE);
   ring_bell("shut %d %u\n", VG_(getpid)(), generation);
}
