/* The bytes that system calls read from files and write to them.

   Part of Tidemark's recorder, a Valgrind tool.
   Licence: GPL-2.0-or-later; see LICENSE in this folder. */

#ifndef TIDEMARK_FILES_H
#define TIDEMARK_FILES_H

#include "pub_tool_basics.h"
#include "pub_tool_libcfile.h"

#define NAME_BYTES_MAX 4096

/* The name of the file behind `fd`, if it is one that the kernel keeps in its cache. `name` has
   room for NAME_BYTES_MAX. */
Bool files_find_name(Int fd, HChar* name, struct vg_stat* found);

/* Notes what can't be known any more after `call`: which file a name that it removes has. */
void files_before_call(ThreadId thread, UInt call, const UWord* words);

/* Writes what a system call that succeeded has read, written or cut. Answers whether it moved
   bytes of files in the kernel's cache: how long that takes depends on what is there. */
Bool files_after_call(ThreadId thread, UInt call, const UWord* words, UWord result);

/* The length of the text at `address` in the program's memory, or -1 if it isn't all there. */
Word files_find_text_length(Addr address);

#endif
