/* The bytes that system calls read from files and write to them, and which files they cut or remove.

   Part of Tidemark's recorder, a Valgrind tool.
   Licence: GPL-2.0-or-later; see LICENSE in this folder.

   A file is named as the kernel names what a descriptor stands for, which is how it names
   mappings too. Told of are regular files that the kernel keeps in its cache: no pipes and
   devices, no text that the kernel makes up, nothing that goes past the cache. */

#include "pub_tool_basics.h"
#include "pub_tool_aspacemgr.h"
#include "pub_tool_libcbase.h"
#include "pub_tool_libcfile.h"
#include "pub_tool_libcprint.h"
#include "pub_tool_threadstate.h"
#include "pub_tool_vki.h"
#include "pub_tool_vkiscnums.h"

#include "files.h"
#include "log.h"

/* Not in the headers that tools see. */
extern Int VG_(fcntl)(Int fd, Int command, Addr argument);

#define PAGE_BYTES 4096UL
#define KIND_MASK 0170000
#define KIND_REGULAR 0100000
#define FLAG_DIRECT 040000
#define FLAG_NOFOLLOW 0400000
#define FLAG_PATH 010000000
#define HERE (-100)
#define SEEK_HERE 1

/* Calls younger than Valgrind's list. */
#define CALL_COPY_FILE_RANGE 326
#define CALL_PREADV2 327
#define CALL_PWRITEV2 328
#define CALL_RENAMEAT2 316

/* The file whose last name the thread is about to remove. Who comes between takes its place. */
static ThreadId removing = VG_INVALID_THREADID;
static HChar removed[NAME_BYTES_MAX];

/* ---- names ---- */

static Bool begins(const HChar* name, const HChar* with)
{
   return VG_(strncmp)(name, with, VG_(strlen)(with)) == 0;
}

Bool files_find_name(Int fd, HChar* name, struct vg_stat* found)
{
   HChar link[32];
   if (VG_(fstat)(fd, found) != 0 || (found->mode & KIND_MASK) != KIND_REGULAR)
      return False;
   VG_(sprintf)(link, "/proc/self/fd/%d", fd);
   SSizeT length = VG_(readlink)(link, name, NAME_BYTES_MAX - 1);
   if (length <= 0)
      return False;
   name[length] = 0;
   return !begins(name, "/proc/") && !begins(name, "/sys/") && !begins(name, "/memfd:");
}

Word files_find_text_length(Addr address)
{
   SizeT length = 0;
   for (; length < NAME_BYTES_MAX; length++) {
      Addr at = address + length;
      if ((length == 0 || at % PAGE_BYTES == 0)
          && !VG_(am_is_valid_for_client)(at, 1, VKI_PROT_READ))
         return -1;
      if (*(HChar*)at == 0)
         return length;
   }
   return -1;
}

/* Opens what the program calls `path`, relative to its descriptor `folder`; below 0 if it can't
   be had. What is open so can't be read, and no one who watches the file learns of it. */
static Int open_path(Int folder, Addr path, Int flags)
{
   HChar text[NAME_BYTES_MAX + 32];
   HChar* end = text;
   Word length = files_find_text_length(path);
   if (length <= 0)
      return -1;
   if (*(HChar*)path != '/' && folder != HERE)
      end += VG_(sprintf)(text, "/proc/self/fd/%d/", folder);
   VG_(memcpy)(end, (HChar*)path, length + 1);
   SysRes opened = VG_(open)(text, FLAG_PATH | flags, 0);
   return sr_isError(opened) ? -1 : (Int)sr_Res(opened);
}

/* ---- what moves ---- */

static void write_entry(UInt what, ULong offset, ULong bytes, const HChar* name)
{
   ULong* words = log_entry(LOG_FILE, what, 2 + log_text_words(name));
   words[0] = offset;
   words[1] = bytes;
   log_text(words + 2, name);
}

/* Writes that `bytes` went to or from the file behind `fd`: from `offset` on or, if that is
   below 0, up to where the descriptor stands now. Answers whether it is a file in the cache. */
static Bool note_move(UInt what, Int fd, Long offset, UWord bytes)
{
   HChar name[NAME_BYTES_MAX];
   struct vg_stat found;
   if (bytes == 0 || !files_find_name(fd, name, &found))
      return False;
   if (VG_(fcntl)(fd, VKI_F_GETFL, 0) & FLAG_DIRECT)
      return False;
   if (offset < 0)
      offset = VG_(lseek)(fd, 0, SEEK_HERE) - (Long)bytes;
   if (offset >= 0)
      write_entry(what, offset, bytes, name);
   return True;
}

/* The same, where the program may have a variable with the offset: by now, behind the bytes. */
static Bool note_move_at(UInt what, Int fd, Addr variable, UWord bytes)
{
   Bool is_there = variable != 0
                   && VG_(am_is_valid_for_client)(variable, sizeof(Long), VKI_PROT_READ);
   return note_move(what, fd, is_there ? *(Long*)variable - (Long)bytes : -1, bytes);
}

/* ---- what is cut ---- */

static void note_cut(Int fd, UWord bytes)
{
   HChar name[NAME_BYTES_MAX];
   struct vg_stat found;
   if (files_find_name(fd, name, &found))
      write_entry(FILE_CUT, 0, bytes, name);
}

static void note_cut_path(Addr path, UWord bytes)
{
   Int fd = open_path(HERE, path, 0);
   if (fd < 0)
      return;
   note_cut(fd, bytes);
   VG_(close)(fd);
}

static void note_opened(Int fd, UWord flags)
{
   Bool is_emptied = (flags & VKI_O_TRUNC) && (flags & (VKI_O_WRONLY | VKI_O_RDWR));
   Bool is_made = (flags & VKI_O_CREAT) && (flags & VKI_O_EXCL);
   if (is_emptied || is_made)
      note_cut(fd, 0);
}

static void prepare_removal(ThreadId thread, Int folder, Addr path)
{
   struct vg_stat found;
   Int fd = open_path(folder, path, FLAG_NOFOLLOW);
   if (fd < 0)
      return;
   if (files_find_name(fd, removed, &found) && found.nlink == 1)
      removing = thread;
   VG_(close)(fd);
}

void files_before_call(ThreadId thread, UInt call, const UWord* words)
{
   if (removing == thread)
      removing = VG_INVALID_THREADID;
   switch (call) {
   case __NR_unlink:
      prepare_removal(thread, HERE, words[0]);
      break;
   case __NR_unlinkat:
      prepare_removal(thread, (Int)words[0], words[1]);
      break;
   case __NR_rename:
      prepare_removal(thread, HERE, words[1]);
      break;
   case __NR_renameat:
   case CALL_RENAMEAT2:
      prepare_removal(thread, (Int)words[2], words[3]);
      break;
   default:
      break;
   }
}

Bool files_after_call(ThreadId thread, UInt call, const UWord* words, UWord result)
{
   Bool is_read;
   if (removing == thread) {
      write_entry(FILE_CUT, 0, 0, removed);
      removing = VG_INVALID_THREADID;
   }
   switch (call) {
   case __NR_read: case __NR_readv:
      return note_move(FILE_READ, words[0], -1, result);
   case __NR_write: case __NR_writev:
      return note_move(FILE_WRITE, words[0], -1, result);
   case __NR_pread64: case __NR_preadv: case CALL_PREADV2:
      return note_move(FILE_READ, words[0], words[3], result);
   case __NR_pwrite64: case __NR_pwritev: case CALL_PWRITEV2:
      return note_move(FILE_WRITE, words[0], words[3], result);
   case __NR_sendfile:
      is_read = note_move_at(FILE_READ, words[1], words[2], result);
      return note_move(FILE_WRITE, words[0], -1, result) || is_read;
   case __NR_splice:
   case CALL_COPY_FILE_RANGE:
      is_read = note_move_at(FILE_READ, words[0], words[1], result);
      return note_move_at(FILE_WRITE, words[2], words[3], result) || is_read;
   case __NR_open:
      note_opened(result, words[1]);
      break;
   case __NR_openat:
      note_opened(result, words[2]);
      break;
   case __NR_creat:
      note_cut(result, 0);
      break;
   case __NR_ftruncate:
      note_cut(words[0], words[1]);
      break;
   case __NR_truncate:
      note_cut_path(words[0], words[1]);
      break;
   default:
      break;
   }
   return False;
}
