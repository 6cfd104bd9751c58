/* touch LIST: maps memory and touches its pages in the order of a list: a page's number a line,
   with an `r` in front if it is only read. Ends with the number of touches. */
#include "library.h"

#define LIST_BYTES (4UL << 20)

static char list[LIST_BYTES];

int run(void)
{
    const char *name = argument(1);
    long file = name ? open_file(name) : -1;
    size_t length = 0;
    if (file < 0) {
        print("touch: needs a list of pages\n");
        return 2;
    }
    for (;;) {
        long got = read_file(file, list + length, sizeof list - 1 - length);
        if (got <= 0)
            break;
        length += (size_t)got;
    }
    if (length == sizeof list - 1) {
        print("touch: the list is too long\n");
        return 2;
    }
    uint64_t pages = 0;
    for (size_t at = 0; at < length; at++) {
        if (at == 0 || list[at - 1] == '\n') {
            uint64_t page = parse_number(list + at + (list[at] == 'r')) + 1;
            pages = page > pages ? page : pages;
        }
    }
    volatile uint64_t *memory = map_memory(pages * PAGE_BYTES);
    if (!memory) {
        print("touch: can't map that many pages\n");
        return 1;
    }
    uint64_t touches = 0, wrong = 0;
    for (size_t at = 0; at < length; at++) {
        if (at > 0 && list[at - 1] != '\n')
            continue;
        int is_read = list[at] == 'r';
        uint64_t page = parse_number(list + at + is_read);
        volatile uint64_t *word = memory + page * (PAGE_BYTES / 8);
        /* One instruction a touch: a write of what the page is to hold, or a read. */
        if (!is_read)
            *word = page + 1;
        else if (*word != page + 1 && *word != 0)
            wrong++;
        touches++;
    }
    print_number(touches);
    print(" touches\n");
    return wrong != 0;
}
