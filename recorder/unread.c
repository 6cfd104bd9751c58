/* Debug information that is not read.

   Part of Tidemark's recorder, a Valgrind tool.
   Licence: GPL-2.0-or-later; see LICENSE in this folder.

   Valgrind reads the symbols and line numbers of each file that a program maps as code: a quarter
   of a second for the C library alone where its debug package is installed, more than most short
   programs take to be recorded. This tool names no code, and replaces none. The linker puts this
   in the place of Valgrind's own function (`--wrap` in the Makefile). */

#include "pub_tool_basics.h"

ULong __wrap_vgPlain_di_notify_mmap(Addr start, Bool allow_rw, Int use_fd);

ULong __wrap_vgPlain_di_notify_mmap(Addr start, Bool allow_rw, Int use_fd)
{
   (void)start;
   (void)allow_rw;
   (void)use_fd;
   /* The handle of no debug information. */
   return 0;
}
