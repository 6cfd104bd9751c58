/* Forks in the way its first argument names, with far more memory than its budget, filled; parent
 * and child check and change all of it, and each must see its own. Prints one line each. */
#define _GNU_SOURCE
#include <linux/sched.h>
#include <pthread.h>
#include <sched.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "own_call.h"

enum { WORDS = 512, PAGES = 3 << 10 };
static uint64_t (*pages)[WORDS];
static char *stacks[2]; /* Managed memory that nothing has touched. */
extern char **environ;
pid_t _Fork(void);

static uint64_t value(uint64_t page, uint64_t turn) {
    return (page * 0x9E3779B97F4A7C15u ^ turn * 0xBF58476D1CE4E5B9u) | 1;
}

static void fill(uint64_t first, uint64_t step, uint64_t turn) {
    for (uint64_t page = first; page < PAGES; page += step)
        for (int word = 0; word < WORDS; word += 64) pages[page][word] = value(page, turn) + word;
}

static int wrong(uint64_t first, uint64_t step, uint64_t turn) {
    int count = 0;
    for (uint64_t page = first; page < PAGES; page += step)
        for (int word = 0; word < WORDS; word += 64)
            if (pages[page][word] != value(page, turn) + word) {
                count++;
                break;
            }
    return count;
}

static int child(void *argument) {
    (void)argument;
    int bad = wrong(0, 1, 1);
    fill(0, 2, 2);
    bad += wrong(0, 2, 2) + wrong(1, 2, 1);
    if (bad) dprintf(2, "child: %d pages wrong\n", bad);
    void *large = malloc(1 << 20); /* A mapping of its own: it must not wait for anybody. */
    memset(large, 1, 1 << 20);
    _exit(bad ? 1 : 7);
}

/* Has the kernel keep the pages in many mappings, one behind the other. */
static void split(void) {
    for (int page = 0; page < PAGES; page += 32)
        if (madvise(pages[page], 16 * sizeof *pages, MADV_DONTDUMP)) perror("madvise");
}

static void *end_at_once(void *argument) { return argument; }

static void *stay(void *argument) {
    for (;;) pause();
    return argument;
}

/* Threads that stay, on stacks without guards that ended threads have left: such a stack looks like
 * any memory, and is managed once it has been seen. The C library walks their control blocks in a
 * forked child. */
static void start_threads(void) {
    pthread_t threads[4];
    pthread_attr_t unguarded;
    pthread_attr_init(&unguarded);
    pthread_attr_setguardsize(&unguarded, 0);
    pthread_attr_setstacksize(&unguarded, 1 << 20);
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], &unguarded, end_at_once, 0);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], 0);
    sleep(2); /* Until they have been seen. */
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], &unguarded, stay, 0);
}

/* The number of wrong pages when the first `groups` of 16 have been changed: of four groups the
 * first has given up its pages, the second has moved them to `place`. */
static int wrong_of(int groups, uint64_t (*place)[WORDS]) {
    int count = 0;
    for (int page = 0; page < PAGES; page++) {
        int group = page / 16, kind = group < groups ? group % 4 : 2;
        uint64_t *at = kind == 1 ? place[page] : pages[page];
        count += at[64] != (kind == 0 ? 0 : value(page, 1) + 64);
    }
    return count;
}

/* A child that changes its address space before it touches anything, and forks amid that. */
static void change(void) {
    size_t bytes = 16 * sizeof *pages;
    uint64_t (*place)[WORDS] = mmap(0, sizeof *pages * PAGES, PROT_READ | PROT_WRITE,
                                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pid_t id = 0;
    int status = 0;
    for (int group = 0; group < PAGES / 16; group++) {
        void *at = pages[group * 16], *to = place[group * 16];
        if (group == PAGES / 32) {
            id = own_call(SYS_clone, SIGCHLD, 0, 0, 0, 0);
            if (id == 0) _exit(wrong_of(group, place) ? 1 : 7);
        }
        if (group % 4 == 0 && madvise(at, bytes, MADV_DONTNEED)) perror("madvise");
        if (group % 4 == 1 && mremap(at, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, to) != to)
            perror("mremap");
    }
    int bad = wrong_of(PAGES / 16, place);
    if (waitpid(id, &status, __WALL) != id) perror("waitpid");
    if (bad || WEXITSTATUS(status) != 7)
        dprintf(2, "child: %d pages wrong, its own child: status %#x\n", bad, status);
    _exit(bad ? 1 : 7);
}

static pid_t start(const char *way) {
    struct clone_args arguments = {.exit_signal = SIGCHLD};
    pid_t id = -1;
    if (!strcmp(way, "fork") || !strcmp(way, "fork-threads")) id = fork();
    else if (!strcmp(way, "_Fork")) id = _Fork();
    else if (!strcmp(way, "clone-call")) id = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    else if (!strcmp(way, "clone3-call")) id = syscall(SYS_clone3, &arguments, sizeof arguments);
#ifdef SYS_fork
    else if (!strcmp(way, "fork-call")) id = syscall(SYS_fork);
#endif
    else if (!strncmp(way, "own-call", 8)) id = own_call(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    else if (!strcmp(way, "clone")) {
        char *stack = mmap(0, 1 << 20, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
        return clone(child, stack + (1 << 20), SIGCHLD, 0);
    }
    else if (!strcmp(way, "clone-managed")) {
        /* The child's third word lies in a page that is not there. */
        char *stack = stacks[0];
        stacks[0] = stacks[1];
        return clone(child, stack + (1 << 19) + 16, SIGCHLD, 0);
    }
    else if (!strcmp(way, "vfork")) {
        id = vfork();
        if (id == 0) {
            execl("/bin/sh", "sh", "-c", "exit 7", (char *)0);
            _exit(127);
        }
        return id;
    } else if (!strcmp(way, "spawn")) {
        char *words[] = {"sh", "-c", "exit 7", 0};
        posix_spawn(&id, "/bin/sh", 0, 0, words, environ);
        return id;
    }
    if (id == 0 && !strcmp(way, "own-call-change")) change();
    if (id == 0) child(0);
    return id;
}

int main(int count, char **words) {
    if (!strcmp(words[count - 1], "fork-threads")) start_threads();
    for (int i = 0; i < 2; i++)
        stacks[i] = mmap(0, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pages = aligned_alloc(sizeof *pages, sizeof *pages * PAGES);
    if (!strcmp(words[count - 1], "own-call-split")) split();
    fill(0, 1, 1);
    /* After the threads' long sleep the engine looks seldom: until it has seen this memory. */
    if (!strcmp(words[count - 1], "fork-threads")) sleep(2);
    for (int turn = 0; turn < 2; turn++) {
        pid_t id = start(words[count - 1]);
        if (id < 0) {
            perror(words[count - 1]);
            return 2;
        }
        int bad = wrong(0, 1, 1), status;
        fill(0, 3, 3);
        bad += wrong(0, 3, 3) + wrong(1, 3, 1);
        if (waitpid(id, &status, __WALL) != id) perror("waitpid");
        bad += wrong(0, 3, 3) + wrong(1, 3, 1) + wrong(2, 3, 1);
        if (WIFSIGNALED(status)) dprintf(1, "child ended by signal %d, ", WTERMSIG(status));
        else dprintf(1, "child status %d, ", WEXITSTATUS(status));
        dprintf(1, "%d pages wrong\n", bad);
        fill(0, 3, 1);
    }
    return 0;
}
