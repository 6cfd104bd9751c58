/* Tidemark's recorder: a Valgrind tool that logs every reference of a program to its memory.

   Licence: GPL-2.0-or-later; see LICENSE in this folder.

   The tool decides nothing: it writes what happens, as compactly as can be done in passing, and
   `tidemark record` makes a trace of it on another processor. `translate` adds the writing to the
   program's code, `events` writes what happens beside it, `log` carries both. */

#include "pub_tool_basics.h"
#include "pub_tool_libcassert.h"
#include "pub_tool_libcbase.h"
#include "pub_tool_libcprint.h"
#include "pub_tool_options.h"
#include "pub_tool_tooliface.h"

#include "events.h"
#include "log.h"
#include "place.h"
#include "translate.h"

static const HChar* spool = NULL;

static Bool take_option(const HChar* argument)
{
   return VG_STR_CLO(argument, "--spool", spool);
}

static void print_usage(void)
{
   VG_(printf)("    --spool=FOLDER            where `tidemark record` listens\n");
}

static void print_debug_usage(void)
{
   VG_(printf)("    (none)\n");
}

static void open_log(void)
{
   if (spool == NULL)
      VG_(fmsg_bad_option)("--spool", "start the program through `tidemark record`\n");
   log_open(spool);
   place_begin();
}

/* The program's mappings and stack are there when its first thread is about to run. */
static void on_first_instruction(ThreadId thread)
{
   if (thread == 1)
      events_begin();
}

static void finish(Int status)
{
   (void)status;
   events_end();
}

static void prepare(void)
{
   VG_(details_name)("tidemark");
   VG_(details_version)(NULL);
   VG_(details_description)("a recorder of memory references");
   VG_(details_copyright_author)("The Tidemark contributors; GPL-2.0-or-later.");
   VG_(details_bug_reports_to)("the Tidemark project");
   VG_(details_avg_translation_sizeB)(400);
   VG_(basic_tool_funcs)(open_log, translate, finish);
   VG_(needs_command_line_options)(take_option, print_usage, print_debug_usage);
   VG_(needs_superblock_discards)(translate_discard);
   VG_(track_pre_thread_first_insn)(on_first_instruction);
   events_register();
}

VG_DETERMINE_INTERFACE_VERSION(prepare)
