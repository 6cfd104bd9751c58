/* beside WAY MILLISECONDS: threads that change their pages, and look, beside one that forks for ever
 * and one that goes through far more memory than there is.
 *
 * WAY is how pages go: `discard` (MADV_DONTNEED), `move` (mremap to a place and back), `unmap`
 * (munmap, then mmap at the same place) or `replace` (mmap over them). In one turn of four a thread
 * hands what it has done to the thread that forks, whose child looks, too.
 *
 * Prints the number of pages that were wrong, and of children that did not end well. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { WORDS = 512, PAGES = 400, CHANGERS = 3, TOUCHED_MIB = 40 };
enum { BOTH = PROT_READ | PROT_WRITE, ANYWHERE = MAP_PRIVATE | MAP_ANONYMOUS };
typedef uint64_t page[WORDS];

struct changer {
    page *pages, *place;
    uint64_t turn; /* What the pages were filled in; zero: they are empty. */
    atomic_int is_handed;
};

static const size_t BYTES = sizeof(page) * PAGES;
static struct changer changers[CHANGERS];
static const char *way;
static struct timespec start;
static long milliseconds;
static atomic_int wrong, children, bad_children;
static pthread_barrier_t begin;

static void require(int is_done, const char *what) {
    if (is_done) return;
    perror(what);
    _exit(2);
}

static int is_over(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    long passed = (now.tv_sec - start.tv_sec) * 1000 + (now.tv_nsec - start.tv_nsec) / 1000000;
    return passed > milliseconds;
}

static uint64_t expected(const struct changer *self, int index) {
    return self->turn ? self->turn << 16 | index << 1 | 1 : 0;
}

static int count_wrong(const struct changer *self) {
    int count = 0;
    for (int i = 0; i < PAGES; i++) {
        uint64_t want = expected(self, i);
        count += self->pages[i][0] != want || self->pages[i][WORDS - 1] != want;
    }
    return count;
}

static void change(struct changer *self) {
    page *pages = self->pages, *place = self->place;
    if (!strcmp(way, "move")) {
        int flags = MREMAP_MAYMOVE | MREMAP_FIXED;
        require(mremap(pages, BYTES, BYTES, flags, place) == place, "mremap");
        self->pages = place, self->place = pages;
        return;
    }
    if (!strcmp(way, "discard")) require(!madvise(pages, BYTES, MADV_DONTNEED), "madvise");
    if (!strcmp(way, "unmap")) require(!munmap(pages, BYTES), "munmap");
    if (strcmp(way, "discard")) {
        page *again = mmap(pages, BYTES, BOTH, ANYWHERE | MAP_FIXED, -1, 0);
        require(again == pages, "mmap");
    }
    self->turn = 0;
}

static void *change_for_ever(void *argument) {
    static const int WAIT_US[] = {0, 3000, 12000, 40000};
    struct changer *self = argument;
    pthread_barrier_wait(&begin);
    for (uint64_t turn = 1; !is_over(); turn++) {
        self->turn = turn;
        for (int i = 0; i < PAGES; i++)
            self->pages[i][0] = self->pages[i][WORDS - 1] = expected(self, i);
        usleep(WAIT_US[turn * 7 / 4 % 4]);
        change(self);
        if (turn % 4 == 0) self->is_handed = 1;
        while (self->is_handed && !is_over()) usleep(100);
        wrong += count_wrong(self);
    }
    return argument;
}

static void *go_through(void *argument) {
    pthread_barrier_wait(&begin);
    for (unsigned char mark = 1; !is_over(); mark++)
        for (size_t at = 0; at < (size_t)TOUCHED_MIB << 20; at += sizeof(page))
            ((volatile unsigned char *)argument)[at] = mark;
    return argument;
}

static void *fork_for_ever(void *argument) {
    pthread_barrier_wait(&begin);
    while (!is_over()) {
        int is_handed[CHANGERS], status = -1;
        for (int i = 0; i < CHANGERS; i++) is_handed[i] = changers[i].is_handed;
        pid_t child = fork();
        require(child >= 0, "fork");
        if (child == 0) {
            int count = 0;
            for (int i = 0; i < CHANGERS; i++) count += is_handed[i] ? count_wrong(&changers[i]) : 0;
            _exit(count ? 1 : 0);
        }
        require(waitpid(child, &status, 0) == child, "waitpid");
        children++;
        bad_children += status != 0;
        for (int i = 0; i < CHANGERS; i++)
            if (is_handed[i]) changers[i].is_handed = 0;
    }
    return argument;
}

int main(int count, char **words) {
    if (count != 3) {
        dprintf(2, "usage: beside WAY MILLISECONDS\n");
        return 2;
    }
    way = words[1], milliseconds = atol(words[2]);
    clock_gettime(CLOCK_MONOTONIC, &start);
    pthread_t threads[CHANGERS + 2];
    void *touched = mmap(0, (size_t)TOUCHED_MIB << 20, BOTH, ANYWHERE, -1, 0);
    for (int i = 0; i < CHANGERS; i++) {
        changers[i].pages = mmap(0, BYTES, BOTH, ANYWHERE, -1, 0);
        changers[i].place = mmap(0, BYTES, PROT_NONE, ANYWHERE, -1, 0);
    }
    /* What a changer has moved away leaves a gap, to which it comes back: nothing is mapped from
     * here on, nor are the stacks of threads. */
    pthread_barrier_init(&begin, 0, CHANGERS + 2);
    pthread_create(&threads[CHANGERS], 0, go_through, touched);
    for (int i = 0; i < CHANGERS; i++)
        pthread_create(&threads[i], 0, change_for_ever, &changers[i]);
    pthread_create(&threads[CHANGERS + 1], 0, fork_for_ever, 0);
    for (int i = 0; i < CHANGERS + 2; i++) pthread_join(threads[i], 0);
    printf("%d pages wrong, %d children bad\n", wrong, bad_children);
    dprintf(2, "%d children\n", children);
    return wrong || bad_children || !children;
}
