/* upper FILE BYTES: makes the letters of a file upper case, in place, through a mapping that two
   processes share; says how many there were. */
#include "library.h"

static uint64_t raise_letters(char *text, size_t from, size_t end)
{
    uint64_t raised = 0;
    for (size_t at = from; at < end; at++) {
        if (text[at] >= 'a' && text[at] <= 'z') {
            text[at] -= 'a' - 'A';
            raised++;
        }
    }
    return raised;
}

int run(void)
{
    const char *name = argument(1);
    long file = name ? open_file(name) : -1;
    const char *words = argument(2);
    size_t bytes = words ? parse_number(words) : 0;
    char *text = file < 0 || bytes == 0 ? NULL : map_file_shared(file, bytes);
    if (!text) {
        print("upper: needs a file and its length\n");
        return 2;
    }
    long child = fork_process();
    if (child < 0)
        return 1;
    if (child == 0)
        leave(raise_letters(text, 0, bytes / 2) == 0);
    uint64_t raised = raise_letters(text, bytes / 2, bytes);
    int status = (int)(wait_child() & 255);
    /* What the child has raised is seen here, and is nothing to be raised any more. */
    uint64_t left = raise_letters(text, 0, bytes);
    print_number(raised);
    print(" raised, ");
    print_number(left);
    print(" left\n");
    return status != 0 || left != 0 || sync_files() != 0;
}
