/* Forks in the way each argument names, with far more memory filled than there is, of which some is
 * to be wiped in children. Prints how much of which part is wrong in the child, and in the parent. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "filled.h"
#include "own_call.h"

/* The parts of the memory, by their first pages. */
enum { KEPT = 0, WIPED = 512, UNDONE = 1024, MOVED = 1536, REPLACED = 2048, LOCKED = 2560, EACH = 512 };
static uint64_t (*moved)[WORDS];
pid_t _Fork(void);

static uint64_t (*at(int page))[WORDS] {
    return page >= MOVED && page < MOVED + EACH ? &moved[page - MOVED] : &pages[page];
}

static int other(int first, int is_zero, uint64_t turn) {
    int count = 0;
    for (int page = first; page < first + EACH; page++)
        for (int word = 0; word < WORDS; word += 64)
            if ((*at(page))[word] != (is_zero ? 0 : value(page, turn) + word)) {
                count++;
                break;
            }
    return count;
}

static void check(const char *who, int is_child) {
    dprintf(1, "%s: kept %d, wiped %d, undone %d, moved %d, replaced %d, locked %d wrong\n", who,
            other(KEPT, 0, 1), other(WIPED, is_child, 1), other(UNDONE, 0, 1),
            other(MOVED, is_child, 1), other(REPLACED, 0, 1), other(LOCKED, is_child, 1));
}

static void advise(int first, int advice) {
    if (madvise(pages[first], EACH * sizeof *pages, advice)) perror("madvise");
}

static void set_up(void) {
    size_t bytes = EACH * sizeof *pages;
    int both = PROT_READ | PROT_WRITE, flags = MAP_PRIVATE | MAP_ANONYMOUS;
    pages = mmap(0, sizeof *pages * PAGES, both, flags, -1, 0);
    moved = mmap(0, bytes, both, flags, -1, 0);
    advise(WIPED, MADV_WIPEONFORK);
    advise(UNDONE, MADV_WIPEONFORK);
    if (syscall(SYS_madvise, pages[MOVED], bytes, MADV_WIPEONFORK)) perror("madvise");
    advise(REPLACED, MADV_WIPEONFORK);
    advise(LOCKED, MADV_WIPEONFORK);
    fill(1);
    advise(UNDONE, MADV_KEEPONFORK);
    if (mremap(pages[MOVED], bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, moved) != (void *)moved)
        perror("mremap");
    if (mmap(pages[REPLACED], bytes, both, flags | MAP_FIXED, -1, 0) != (void *)pages[REPLACED])
        perror("mmap");
    for (int page = REPLACED; page < REPLACED + EACH; page++)
        for (int word = 0; word < WORDS; word += 64) pages[page][word] = value(page, 1) + word;
    if (mlock(pages[LOCKED], bytes) || munlock(pages[LOCKED], bytes)) perror("mlock");
}

int main(int count, char **words) {
    set_up();
    for (int which = 1; which < count; which++) {
        pid_t id;
        if (!strcmp(words[which], "fork")) id = fork();
        else if (!strcmp(words[which], "_Fork")) id = _Fork();
        else id = own_call(SYS_clone, SIGCHLD, 0, 0, 0, 0);
        if (id == 0) {
            check("child", 1);
            /* What it has put there since is its own, and its children's. */
            for (int page = WIPED; page < WIPED + EACH; page++) pages[page][0] = page;
            int bad = 0;
            for (int page = WIPED; page < WIPED + EACH; page++) bad += pages[page][0] != page;
            if (!strcmp(words[which], "fork")) {
                if (fork() == 0) {
                    check("grandchild", 1);
                    _exit(0);
                }
                wait(0);
            }
            _exit(bad ? 1 : 7);
        }
        int status = -1;
        waitpid(id, &status, __WALL);
        dprintf(1, "%s: %#x\n", words[which], status);
        check("parent", 0);
    }
    return 0;
}
