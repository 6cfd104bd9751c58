/* The additions to the program's code as Valgrind translates it.

   Part of Tidemark's recorder, a Valgrind tool.
   Licence: GPL-2.0-or-later; see LICENSE in this folder. */

#ifndef TIDEMARK_TRANSLATE_H
#define TIDEMARK_TRANSLATE_H

#include "pub_tool_basics.h"
#include "pub_tool_tooliface.h"

/* Adds to a superblock the writing of its run to the log. */
IRSB* translate(VgCallbackClosure* closure, IRSB* in, const VexGuestLayout* layout,
                const VexGuestExtents* extents, const VexArchInfo* host, IRType guest_word,
                IRType host_word);

/* Gives the numbers of a discarded superblock's runs to others. */
void translate_discard(Addr start, VexGuestExtents extents);

/* Writes all definitions again: a forked child's log has none of its parent's. */
void translate_define_again(void);

#endif
