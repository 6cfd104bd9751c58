/* The placement of mappings that may lie anywhere.

   Part of Tidemark's recorder, a Valgrind tool.
   Licence: GPL-2.0-or-later; see LICENSE in this folder.

   Programs hash addresses of what lies in their libraries: Python those of its names and types.
   At other addresses they look for other entries, and keep other objects. To be compared with a run
   in step, a program therefore has its libraries where they lie there, as the file says that
   TIDEMARK_LAYOUT names: an address and a path a line. The linker puts this in the place of
   Valgrind's own function (`--wrap` in the Makefile). */

#include "pub_tool_basics.h"
#include "pub_tool_libcbase.h"
#include "pub_tool_libcfile.h"
#include "pub_tool_libcproc.h"
#include "pub_tool_vki.h"

#include "files.h"
#include "place.h"

#define LAYOUT_BYTES_MAX (256 << 10)

/* As in Valgrind's own header, which tools do not get. */
typedef struct {
   enum { FIXED, HINTED, ANYWHERE } kind;
   Addr start;
   SizeT length;
} Request;

static HChar layout[LAYOUT_BYTES_MAX];
/* The address for the mapping at hand; 0: anywhere. */
static Addr wanted = 0;

Addr __real_vgPlain_am_get_advisory(const Request* request, Bool is_clients, Bool* is_possible);
Addr __wrap_vgPlain_am_get_advisory(const Request* request, Bool is_clients, Bool* is_possible);

void place_begin(void)
{
   const HChar* path = VG_(getenv)("TIDEMARK_LAYOUT");
   if (path == NULL)
      return;
   Int fd = VG_(fd_open)(path, VKI_O_RDONLY, 0);
   if (fd < 0)
      return;
   /* What does not fit is placed anywhere. The last byte stays zero. */
   SizeT filled = 0;
   while (filled < sizeof layout - 1) {
      Int count = VG_(read)(fd, layout + filled, sizeof layout - 1 - filled);
      if (count <= 0)
         break;
      filled += count;
   }
   VG_(close)(fd);
}

void place_before_map(Int fd)
{
   static HChar path[NAME_BYTES_MAX];
   struct vg_stat found;
   wanted = 0;
   if (layout[0] == '\0' || fd < 0 || !files_find_name(fd, path, &found))
      return;
   SizeT length = VG_(strlen)(path);
   HChar* line = layout;
   while (*line != '\0') {
      HChar* rest;
      Addr start = VG_(strtoull16)(line, &rest);
      HChar* end = VG_(strchr)(line, '\n');
      if (end == NULL)
         return;
      if (*rest == ' ' && end == rest + 1 + length && VG_(memcmp)(rest + 1, path, length) == 0) {
         wanted = start;
         return;
      }
      line = end + 1;
   }
}

Addr __wrap_vgPlain_am_get_advisory(const Request* request, Bool is_clients, Bool* is_possible)
{
   if (wanted != 0 && is_clients && request->kind == ANYWHERE) {
      Request placed = { FIXED, wanted, request->length };
      Addr start = __real_vgPlain_am_get_advisory(&placed, is_clients, is_possible);
      wanted = 0;
      if (*is_possible)
         return start;
   }
   return __real_vgPlain_am_get_advisory(request, is_clients, is_possible);
}
