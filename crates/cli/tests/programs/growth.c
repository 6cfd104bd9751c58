/* Fills MIB mebibytes in steps as WAY says, and prints the most memory of no file that it had. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { KIB = 1 << 10, MIB = 1 << 20 };

static size_t most_kib;

static void look(void) {
    char line[256];
    FILE *status = fopen("/proc/self/status", "r");
    while (status && fgets(line, sizeof line, status)) {
        size_t kib;
        if (sscanf(line, "RssAnon: %zu", &kib) == 1 && kib > most_kib)
            most_kib = kib;
    }
    if (status)
        fclose(status);
}

static char *map(size_t bytes, int rights) {
    return mmap(0, bytes, rights, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

/* The next piece of a reservation that is opened bit by bit, as allocators do. */
static char *open_more(size_t bytes) {
    static char *at, *end;
    if (at == end) {
        at = map(64 * MIB, PROT_NONE);
        end = at + 64 * MIB;
    }
    char *piece = at;
    at += bytes;
    return mprotect(piece, bytes, PROT_READ | PROT_WRITE) ? 0 : piece;
}

static char *take(const char *way, size_t *bytes) {
    if (!strcmp(way, "small"))
        return malloc(*bytes = 392);
    if (!strcmp(way, "blocks"))
        return malloc(*bytes = 100 * KIB);
    if (!strcmp(way, "large"))
        return malloc(*bytes = 200 * KIB);
    if (!strcmp(way, "sbrk"))
        return sbrk(*bytes = 64 * KIB);
    if (!strcmp(way, "page"))
        return map(*bytes = 4 * KIB, PROT_READ | PROT_WRITE);
    if (!strcmp(way, "pages"))
        return map(*bytes = 64 * KIB, PROT_READ | PROT_WRITE);
    return open_more(*bytes = 128 * KIB);
}

static void *grow(void *way) {
    for (size_t filled = 0, bytes; filled < 64 * MIB; filled += bytes) {
        char *piece = take(way, &bytes);
        if (!piece || piece == MAP_FAILED)
            abort();
        memset(piece, 1, bytes);
        if (filled / MIB != (filled + bytes) / MIB)
            look();
    }
    return 0;
}

int main(int count, char **words) {
    /* Another thread's blocks come from another arena. */
    if (count > 2) {
        pthread_t thread;
        pthread_create(&thread, 0, grow, words[1]);
        pthread_join(thread, 0);
    } else {
        grow(words[1]);
    }
    printf("%zu MiB\n", most_kib / KIB);
    return 0;
}
