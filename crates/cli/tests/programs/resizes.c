/* resizes MILLISECONDS: threads that map some pages, fill them and unmap them, beside threads that
 * have theirs grow and shrink by mremap, at places that the others have left a moment ago.
 *
 * Prints the number of pages that were wrong, and of calls that were refused. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

enum { PAGE = 4096, THREADS = 8, RIGHTS = PROT_READ | PROT_WRITE };
static atomic_int wrong, refused, calls;
static struct timespec start;
static long milliseconds;

static int is_over(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    long passed = (now.tv_sec - start.tv_sec) * 1000 + (now.tv_nsec - start.tv_nsec) / 1000000;
    return passed > milliseconds;
}

static char *map(int pages) {
    char *made = mmap(0, (size_t)pages * PAGE, RIGHTS, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (made == MAP_FAILED) abort();
    for (int i = 0; i < pages; i++) made[(size_t)i * PAGE] = (char)(i + 1);
    return made;
}

static void *make_way(void *seed) {
    unsigned random = *(unsigned *)seed;
    while (!is_over()) {
        int pages = 1 + rand_r(&random) % 12;
        munmap(map(pages), (size_t)pages * PAGE);
    }
    return 0;
}

static void *resize(void *seed) {
    unsigned random = *(unsigned *)seed;
    while (!is_over()) {
        int before = 2 + rand_r(&random) % 20, after = 1 + rand_r(&random) % 40;
        char *made = map(before);
        char *moved = mremap(made, (size_t)before * PAGE, (size_t)after * PAGE, MREMAP_MAYMOVE);
        calls++;
        if (moved == MAP_FAILED) {
            refused++;
            munmap(made, (size_t)before * PAGE);
            continue;
        }
        for (int i = 0; i < after; i++)
            wrong += moved[(size_t)i * PAGE] != (i < before ? (char)(i + 1) : 0);
        munmap(moved, (size_t)after * PAGE);
    }
    return 0;
}

int main(int count, char **words) {
    if (count != 2) return 2;
    milliseconds = atol(words[1]);
    clock_gettime(CLOCK_MONOTONIC, &start);
    /* What is without rights, as stacks' guards are, and mapped just below. */
    mmap(0, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pthread_t threads[THREADS];
    unsigned seeds[THREADS];
    for (int i = 0; i < THREADS; i++) {
        seeds[i] = 7 + i;
        pthread_create(&threads[i], 0, i % 2 ? make_way : resize, &seeds[i]);
    }
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], 0);
    printf("%d pages wrong, %d calls refused\n", wrong, refused);
    return wrong || refused || !calls;
}
