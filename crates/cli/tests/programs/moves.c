/* Moves a range of two mappings by one call, which Linux permits since 6.17, and prints what is
   where. The two differ by advice or by rights; the first may be one that is not managed. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/utsname.h>

enum { PAGE = 4096, HALF = 64, PAGES = 2 * HALF };

static char *map(int rights) {
    return mmap(0, PAGES * PAGE, rights, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

int main(int count, char **words) {
    struct utsname host;
    int major, minor;
    uname(&host);
    if (sscanf(host.release, "%d.%d", &major, &minor) != 2 || major * 1000 + minor < 6017) {
        puts("not permitted here");
        return 0;
    }
    char *from = map(PROT_READ | PROT_WRITE), *to = map(PROT_NONE);
    for (int page = 0; page < PAGES; page++)
        memset(from + page * PAGE, page + 1, PAGE);
    if (!strcmp(words[1], "advice"))
        madvise(from, HALF * PAGE, MADV_NOHUGEPAGE);
    if (!strcmp(words[1], "rights"))
        mprotect(from, HALF * PAGE, PROT_READ);
    if (!strcmp(words[1], "code"))
        mprotect(from, HALF * PAGE, PROT_READ | PROT_EXEC);
    char *moved = mremap(from, PAGES * PAGE, PAGES * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, to);
    int error = moved == MAP_FAILED ? errno : 0, wrong = 0;
    for (int page = 0; page < PAGES && !error; page++)
        wrong += moved[page * PAGE + page] != (char)(page + 1);
    unsigned char present[PAGES];
    int is_left = mincore(from, PAGES * PAGE, present) == 0;
    printf("%s: error %d, %d pages wrong, %s\n", words[1], error, wrong,
           is_left ? "left" : "moved");
    return count - 2;
}
