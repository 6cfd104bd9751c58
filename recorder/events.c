/* The events of a program beside its own accesses: mappings, threads, signals, system calls.

   Part of Tidemark's recorder, a Valgrind tool.
   Licence: GPL-2.0-or-later; see LICENSE in this folder.

   Mappings are taken from the system calls that succeeded rather than from Valgrind's own memory
   events: only the calls know what is shared, and what was moved. What was mapped before (at the
   start, in a forked child) comes from Valgrind's list of segments.

   Each system call publishes the log before it may wait, so that what a process did is known
   before what others do while it waits. */

#include "pub_tool_basics.h"
#include "pub_tool_aspacemgr.h"
#include "pub_tool_clreq.h"
#include "pub_tool_libcassert.h"
#include "pub_tool_libcbase.h"
#include "pub_tool_libcfile.h"
#include "pub_tool_libcproc.h"
#include "pub_tool_machine.h"
#include "pub_tool_mallocfree.h"
#include "pub_tool_threadstate.h"
#include "pub_tool_tooliface.h"
#include "pub_tool_vki.h"
#include "pub_tool_vkiscnums.h"

#include "events.h"
#include "files.h"
#include "log.h"
#include "place.h"
#include "tidemark.h"
#include "translate.h"

#define PAGE_BYTES 4096UL
/* Less than this is the cost of a system call under Valgrind, not a wait for the world. */
#define WAIT_NS_MIN 100000ULL
#define TEXT_BYTES_MAX 4096
#define THREADS_MAX 4096
#define RIGHTS_SHARED 8

/* Calls younger than Valgrind's list. */
#define CALL_IO_URING_ENTER 426
#define CALL_COPY_FILE_RANGE 326
#define CALL_PKEY_MPROTECT 329
#define CALL_EXECVEAT 322

static ThreadId thread_running = VG_INVALID_THREADID;
static ULong threads_run = 0; /* how often a thread has begun to run */
static Bool has_exit_status = False;
static UInt exit_status = 0;
static Bool is_cut = False; /* since a thread ran last */

/* The call for which a thread waits. */
static struct {
   ULong began_ns;
   ULong threads_run;
   Addr write_start; /* of a write whose length its result tells; 0 if there is none */
   Bool is_inner;    /* its caller is in the same file as the instruction that makes the call */
} calls[THREADS_MAX];

/* ---- texts ---- */

static void write_text(LogKind kind, UInt argument, const HChar* text)
{
   ULong* words = log_entry(kind, argument, log_text_words(text));
   log_text(words, text);
}

static void write_program_text(LogKind kind, UInt argument, Addr address)
{
   HChar text[TEXT_BYTES_MAX];
   Word length = files_find_text_length(address);
   if (length < 0)
      return;
   VG_(memcpy)(text, (HChar*)address, length);
   text[length] = 0;
   write_text(kind, argument, text);
}

/* ---- mappings ---- */

static UInt rights_of(UWord protection)
{
   return protection & (VKI_PROT_READ | VKI_PROT_WRITE | VKI_PROT_EXEC);
}

static void write_map(Addr start, SizeT bytes, UInt rights, ULong offset, const HChar* file)
{
   ULong* words = log_entry(LOG_MAP, rights, 3 + log_text_words(file));
   words[0] = start;
   words[1] = bytes;
   words[2] = offset;
   log_text(words + 3, file);
}

static const HChar* name_of(const NSegment* segment)
{
   /* The heap is the one mapping with room kept above it. */
   const NSegment* above = VG_(am_find_nsegment)(segment->end + 1);
   if (segment->kind == SkAnonC && above != NULL && above->kind == SkResvn
       && above->smode == SmLower)
      return "[heap]";
   const HChar* name = segment->kind == SkFileC ? VG_(am_get_filename)(segment) : NULL;
   return name ? name : "";
}

static const NSegment* find_code(Addr address)
{
   const NSegment* segment = VG_(am_find_nsegment)(address);
   return segment != NULL && segment->kind == SkFileC && segment->hasX ? segment : NULL;
}

/* True if a system call is made for the file that makes it, as `malloc` calls the C library's own
   `mmap`: nothing can be interposed there. The caller's address is on top of the stack, below a few
   registers perhaps that are kept there. */
static Bool find_is_inner(ThreadId thread)
{
   const NSegment* here = find_code(VG_(get_IP)(thread));
   Addr top = VG_(get_SP)(thread);
   const NSegment* stack = VG_(am_find_nsegment)(top);
   for (UInt i = 0; i < 4 && stack != NULL; i++) {
      Addr place = top + i * sizeof(Addr);
      const NSegment* caller
         = place + sizeof(Addr) <= stack->end + 1 ? find_code(*(Addr*)place) : NULL;
      if (caller != NULL)
         return caller == here;
   }
   return False;
}

static void write_new_map(ThreadId thread, Addr start, SizeT bytes, UWord protection, UWord flags)
{
   const NSegment* segment = VG_(am_find_nsegment)(start);
   Bool is_file = segment != NULL && segment->kind == SkFileC;
   UInt rights = rights_of(protection) | (flags & VKI_MAP_SHARED ? RIGHTS_SHARED : 0);
   /* What is mapped over something else, like the zeroed end of a file, belongs to that. */
   Bool is_own = calls[thread].is_inner && (flags & (VKI_MAP_SHARED | VKI_MAP_FIXED)) == 0;
   write_map(start, VG_PGROUNDUP(bytes), rights,
             is_file ? segment->offset + (start - segment->start) : 0,
             is_file ? name_of(segment) : is_own ? "[inner]" : "");
}

static void write_pair(LogKind kind, UInt argument, UWord first, UWord second)
{
   ULong* words = log_entry(kind, argument, 2);
   words[0] = first;
   words[1] = second;
}

/* The lowest page that the stack ending with `segment` may grow to. */
static Addr find_stack_floor(const NSegment* segment)
{
   const NSegment* below = VG_(am_find_nsegment)(segment->start - 1);
   return below != NULL && below->kind == SkResvn ? below->start : segment->start;
}

/* Shared mappings as the kernel lists them: Valgrind's segments don't say. */
static struct { Addr start, end; } shared[512];
static UInt shared_count;

static void note_shared_line(const HChar* line)
{
   HChar* rest;
   Addr start = VG_(strtoull16)(line, &rest);
   Addr end = *rest == '-' ? VG_(strtoull16)(rest + 1, &rest) : 0;
   if (*rest == ' ' && rest[4] == 's' && shared_count < sizeof shared / sizeof *shared) {
      shared[shared_count].start = start;
      shared[shared_count].end = end;
      shared_count++;
   }
}

static void note_shared(void)
{
   static HChar text[8192];
   SizeT kept = 0;
   Int got;
   shared_count = 0;
   SysRes opened = VG_(open)("/proc/self/maps", VKI_O_RDONLY, 0);
   if (sr_isError(opened))
      return;
   while ((got = VG_(read)(sr_Res(opened), text + kept, sizeof text - 1 - kept)) > 0) {
      kept += got;
      text[kept] = 0;
      HChar *line = text, *end;
      for (; (end = VG_(strchr)(line, '\n')) != NULL; line = end + 1)
         note_shared_line(line);
      kept = VG_(strlen)(line);
      VG_(memmove)(text, line, kept);
   }
   VG_(close)(sr_Res(opened));
}

static Bool is_shared(Addr start)
{
   for (UInt i = 0; i < shared_count; i++)
      if (start >= shared[i].start && start < shared[i].end)
         return True;
   return False;
}

static void write_segment(const NSegment* segment, Addr stack)
{
   Bool is_stack = segment->start <= stack && stack <= segment->end;
   UInt rights = segment->hasR | segment->hasW << 1 | segment->hasX << 2;
   if (segment->kind == SkShmC || is_shared(segment->start))
      rights |= RIGHTS_SHARED;
   write_map(segment->start, segment->end + 1 - segment->start, rights, segment->offset,
             is_stack ? "[stack]" : name_of(segment));
}

static void write_all_mappings(Addr stack)
{
   UInt kinds = SkFileC | SkAnonC | SkShmC;
   Int count = -256;
   Addr* starts = NULL;
   while (count < 0) {
      Int room = -count;
      starts = VG_(realloc)("tidemark.segments", starts, room * sizeof(Addr));
      count = VG_(am_get_segment_starts)(kinds, starts, room);
   }
   note_shared();
   for (Int i = 0; i < count; i++)
      write_segment(VG_(am_find_nsegment)(starts[i]), stack);
   VG_(free)(starts);
}

/* The path of the program: of what is mapped lowest, as programs are. */
static void find_program(HChar* path, SizeT bytes)
{
   Addr starts[1024];
   Int count = VG_(am_get_segment_starts)(SkFileC, starts, sizeof starts / sizeof *starts);
   const HChar* name = count > 0 ? VG_(am_get_filename)(VG_(am_find_nsegment)(starts[0])) : NULL;
   if (name != NULL && VG_(strlen)(name) < bytes)
      VG_(strcpy)(path, name);
   else
      VG_(client_fname)(path, bytes, True);
}

/* Writes who the process is. `stack` is an address in the stack of its first thread. */
static void write_hello(Addr stack)
{
   HChar program[TEXT_BYTES_MAX];
   find_program(program, sizeof program);
   const NSegment* segment = VG_(am_find_nsegment)(stack);
   ULong* words = log_entry(LOG_HELLO, 0, 4 + log_text_words(program));
   words[0] = VG_(getpid)();
   words[1] = VG_(getppid)();
   words[2] = segment != NULL ? find_stack_floor(segment) : 0;
   words[3] = segment != NULL ? segment->end + 1 : 0;
   log_text(words + 4, program);
}

/* What follows is this thread's. While it waits in a system call others run, and what that call has
   done is told before it runs again itself. */
static void note_running(ThreadId thread)
{
   if (thread != thread_running) {
      thread_running = thread;
      log_entry(LOG_THREAD_SWITCH, thread, 0);
   }
}

/* ---- memory that the kernel reads and writes ---- */

static Bool is_of_kernel(CorePart part)
{
   return part == Vg_CoreSysCall || part == Vg_CoreSignal || part == Vg_CoreSysCallArgInMem;
}

static void write_kernel_access(UInt kinds, Addr start, SizeT bytes)
{
   if (bytes > 0)
      write_pair(LOG_KERNEL, kinds | ACCESS_KERNEL, start, bytes);
}

static void on_kernel_read(CorePart part, ThreadId thread, const HChar* what, Addr start,
                           SizeT bytes)
{
   (void)what;
   if (!is_of_kernel(part))
      return;
   if (start != 0 && calls[thread].write_start == start)
      return;
   write_kernel_access(ACCESS_LOAD, start, bytes);
}

static void on_kernel_read_text(CorePart part, ThreadId thread, const HChar* what, Addr start)
{
   (void)thread;
   (void)what;
   Word length = is_of_kernel(part) ? files_find_text_length(start) : -1;
   if (length >= 0)
      write_kernel_access(ACCESS_LOAD, start, length + 1);
}

static void on_kernel_write(CorePart part, ThreadId thread, Addr start, SizeT bytes)
{
   if (is_of_kernel(part)) {
      note_running(thread);
      write_kernel_access(ACCESS_STORE, start, bytes);
   }
}

/* ---- threads and signals ---- */

/* A fault leaves a run unfinished: what it had not reached is not to be believed. Must be the next
   entry after that run. Of an instruction that the run does not have, this tells nothing. */
static void write_cut(ThreadId thread)
{
   if (thread == VG_INVALID_THREADID || is_cut)
      return;
   ULong* words = log_entry(LOG_CUT, 0, 1);
   words[0] = VG_(get_IP)(thread);
   is_cut = True;
}

static void on_thread_start(ThreadId parent, ThreadId child)
{
   /* The first one is the process itself. */
   if (parent != VG_INVALID_THREADID)
      log_entry(LOG_THREAD_START, child, 0);
}

static void on_thread_exit(ThreadId thread)
{
   /* The first to go when a signal ends the process. */
   if (!has_exit_status)
      write_cut(thread_running);
   log_entry(LOG_THREAD_EXIT, thread, 0);
}

static void on_thread_runs(ThreadId thread, ULong blocks)
{
   (void)blocks;
   threads_run++;
   /* A thread that was to exit is not the process. */
   has_exit_status = False;
   is_cut = False;
   note_running(thread);
}

static Bool is_fault(Int signal)
{
   return signal == VKI_SIGSEGV || signal == VKI_SIGBUS || signal == VKI_SIGFPE
          || signal == VKI_SIGILL;
}

static void on_signal(ThreadId thread, Int signal, Bool is_on_other_stack)
{
   (void)is_on_other_stack;
   if (is_fault(signal))
      write_cut(thread);
}

/* ---- forks ---- */

static void before_fork(ThreadId thread)
{
   (void)thread;
   log_publish();
}

static void in_forked_child(ThreadId thread)
{
   log_reopen_in_child();
   has_exit_status = False;
   thread_running = thread;
   write_hello(VG_(get_SP)(thread));
   write_all_mappings(VG_(get_SP)(thread));
   translate_define_again();
   log_entry(LOG_THREAD_SWITCH, thread, 0);
   log_publish();
}

/* ---- system calls ---- */

static Bool is_plain_write(UInt call)
{
   return call == __NR_write || call == __NR_pwrite64 || call == __NR_sendto;
}

/* True if the kernel may keep a caller of `call` waiting for something beside the processor. */
static Bool may_wait(UInt call)
{
   switch (call) {
   case __NR_read: case __NR_pread64: case __NR_readv: case __NR_preadv:
   case __NR_write: case __NR_pwrite64: case __NR_writev: case __NR_pwritev:
   case __NR_open: case __NR_openat: case __NR_fsync: case __NR_fdatasync:
   case __NR_poll: case __NR_ppoll: case __NR_select: case __NR_pselect6:
   case __NR_epoll_wait: case __NR_epoll_pwait: case __NR_pause:
   case __NR_futex: case __NR_nanosleep: case __NR_clock_nanosleep:
   case __NR_wait4: case __NR_waitid: case __NR_rt_sigsuspend: case __NR_rt_sigtimedwait:
   case __NR_accept: case __NR_accept4: case __NR_connect:
   case __NR_sendto: case __NR_sendmsg: case __NR_recvfrom: case __NR_recvmsg:
   case __NR_msgrcv: case __NR_msgsnd: case __NR_semop: case __NR_semtimedop:
   case __NR_flock: case __NR_fcntl: case __NR_io_getevents: case CALL_IO_URING_ENTER:
   case __NR_sendfile: case __NR_splice: case CALL_COPY_FILE_RANGE:
      return True;
   default:
      return False;
   }
}

static void before_call(ThreadId thread, UInt call, UWord* words, UInt count)
{
   (void)count;
   calls[thread].write_start = is_plain_write(call) ? words[1] : 0;
   switch (call) {
   case __NR_mmap:
      place_before_map((Int)words[4]);
      calls[thread].is_inner = find_is_inner(thread);
      break;
   case __NR_exit:
   case __NR_exit_group:
      has_exit_status = True;
      exit_status = words[0] & 0xff;
      break;
   case __NR_execve:
      write_program_text(LOG_EXEC, 0, words[0]);
      break;
   case CALL_EXECVEAT:
      write_program_text(LOG_EXEC, 0, words[1]);
      break;
   default:
      break;
   }
   files_before_call(thread, call, words);
   log_publish();
   calls[thread].threads_run = threads_run;
   calls[thread].began_ns = log_now_ns();
}

/* Writes what a system call that succeeded has changed in the list of mappings. */
static void write_change(ThreadId thread, UInt call, const UWord* words, UWord result)
{
   static UWord heap_end;
   switch (call) {
   case __NR_mmap:
      write_new_map(thread, result, words[1], words[2], words[3]);
      break;
   case __NR_shmat: {
      const NSegment* segment = VG_(am_find_nsegment)(result);
      if (segment != NULL)
         write_map(result, segment->end + 1 - result, 3 | RIGHTS_SHARED, 0, "[shm]");
      break;
   }
   case __NR_munmap:
      write_pair(LOG_UNMAP, 0, words[0], VG_PGROUNDUP(words[1]));
      break;
   case __NR_mremap: {
      ULong* entry = log_entry(LOG_REMAP, 0, 4);
      entry[0] = words[0];
      entry[1] = VG_PGROUNDUP(words[1]);
      entry[2] = result;
      entry[3] = VG_PGROUNDUP(words[2]);
      break;
   }
   case __NR_mprotect:
   case CALL_PKEY_MPROTECT:
      write_pair(LOG_PROTECT, rights_of(words[2]), words[0], VG_PGROUNDUP(words[1]));
      break;
   case __NR_brk:
      /* One that is refused is written, too: the C library maps what it needs then. */
      if (result != heap_end || words[0] > result) {
         write_pair(LOG_BREAK, 0, result, heap_end);
         heap_end = result;
      }
      break;
   default:
      break;
   }
}

static Bool is_fork(UInt call, const UWord* words)
{
   return call == __NR_fork || call == __NR_vfork
          || (call == __NR_clone && (words[0] & VKI_CLONE_THREAD) == 0);
}

static void after_call(ThreadId thread, UInt call, UWord* words, UInt count, SysRes result)
{
   (void)count;
   Bool is_done = !sr_isError(result);
   Bool is_alone = calls[thread].threads_run == threads_run;
   note_running(thread);
   /* How long one waits for a file is for whoever simulates the cache to say. */
   Bool is_of_cache = False;
   if (is_done) {
      write_change(thread, call, words, sr_Res(result));
      is_of_cache = files_after_call(thread, call, words, sr_Res(result));
      if (calls[thread].write_start != 0)
         write_kernel_access(ACCESS_LOAD, words[1], sr_Res(result));
      if (is_fork(call, words) && sr_Res(result) != 0)
         log_entry(LOG_FORK, sr_Res(result), 0);
   } else if (call == __NR_execve || call == CALL_EXECVEAT) {
      log_entry(LOG_EXEC_FAILED, 0, 0);
   } else if (call == __NR_exit || call == __NR_exit_group) {
      has_exit_status = False;
   }
   calls[thread].write_start = 0;
   /* While another thread ran, the process was not waiting. */
   ULong waited_ns = log_now_ns() - calls[thread].began_ns;
   Bool has_waited = may_wait(call) && !is_of_cache && waited_ns >= WAIT_NS_MIN;
   /* Whoever yields waits for its next turn alone, which is for whoever simulates turns to say. */
   if (call == __NR_sched_yield) {
      has_waited = True;
      waited_ns = 0;
   }
   if (is_alone && has_waited) {
      ULong* entry = log_entry(LOG_WAIT, call, 1);
      entry[0] = waited_ns;
   }
}

/* ---- marks ---- */

static Bool on_request(ThreadId thread, UWord* words, UWord* result)
{
   (void)thread;
   if (words[0] != TIDEMARK_REQUEST_MARK)
      return False;
   write_program_text(LOG_MARK, 0, words[1]);
   log_publish();
   *result = 1;
   return True;
}

/* ---- beginning and end ---- */

void events_register(void)
{
   VG_(needs_syscall_wrapper)(before_call, after_call);
   VG_(needs_client_requests)(on_request);
   VG_(track_pre_mem_read)(on_kernel_read);
   VG_(track_pre_mem_read_asciiz)(on_kernel_read_text);
   VG_(track_post_mem_write)(on_kernel_write);
   VG_(track_pre_thread_ll_create)(on_thread_start);
   VG_(track_pre_thread_ll_exit)(on_thread_exit);
   VG_(track_start_client_code)(on_thread_runs);
   VG_(track_pre_deliver_signal)(on_signal);
   VG_(atfork)(before_fork, NULL, in_forked_child);
}

void events_begin(void)
{
   Addr stack = VG_(get_SP)(1);
   write_hello(stack);
   write_all_mappings(stack);
   log_publish();
}

void events_end(void)
{
   if (has_exit_status) {
      log_entry(LOG_EXIT, exit_status, 0);
   } else {
      write_cut(thread_running);
      log_entry(LOG_FATAL, 0, 0);
   }
   log_close();
}
