/* The events of a program beside its own accesses.

   Part of Tidemark's recorder, a Valgrind tool.
   Licence: GPL-2.0-or-later; see LICENSE in this folder. */

#ifndef TIDEMARK_EVENTS_H
#define TIDEMARK_EVENTS_H

#include "pub_tool_basics.h"

/* Asks Valgrind to tell of memory, threads, signals and system calls. Before options are read. */
void events_register(void);

/* Writes what there is at the start of a process: its program, its threads, its mappings. */
void events_begin(void);

/* Writes how the process ends, and closes the log. */
void events_end(void);

#endif
