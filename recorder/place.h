/* The placement of mappings: see place.c.

   Part of Tidemark's recorder, a Valgrind tool.
   Licence: GPL-2.0-or-later; see LICENSE in this folder. */

#ifndef TIDEMARK_PLACE_H
#define TIDEMARK_PLACE_H

#include "pub_tool_basics.h"

/* Reads where files are to lie, if that is said. */
void place_begin(void);

/* The program is about to map `fd`; -1 if it is no file. */
void place_before_map(Int fd);

#endif
