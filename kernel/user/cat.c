/* cat FILE: writes a file to the console. */
#include "library.h"

int run(void)
{
    const char *name = argument(1);
    long file = name ? open_file(name) : -1;
    char buffer[512];
    if (file < 0) {
        print("cat: needs a file\n");
        return 2;
    }
    for (;;) {
        long got = read_file(file, buffer, sizeof buffer);
        if (got <= 0)
            return got < 0;
        write_bytes(buffer, (size_t)got);
    }
}
