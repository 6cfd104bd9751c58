/* peeks WAY...: forks, and reads or writes the child's memory at once, as a debugger may. Most of it
 * is out, in the parent as in the child, which has no engine yet in the first moments. The child then
 * checks all it has. `stay` waits for the end of the input. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>
#include "filled.h"

enum { TURN = 1, PEEKS = 60, CHILD_IS_RIGHT = 7 };

/* Some page, another one for each number. */
static int chosen(int number) { return (number * 7919 + 13) % PAGES; }

int main(int count, char **words) {
    pages = mmap(0, (size_t)PAGES * sizeof *pages, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) return 2;
    fill(TURN);
    for (int which = 1; which < count; which++) {
        int writes = !strcmp(words[which], "write"), kills = !strcmp(words[which], "kill");
        int gate[2], bad = 0;
        if (!strcmp(words[which], "stay")) {
            char byte;
            dprintf(1, "stay\n");
            while (read(0, &byte, 1) > 0) continue;
            continue;
        }
        if (pipe(gate)) return 3;
        pid_t id = fork();
        if (id == 0) {
            char byte;
            if (read(gate[0], &byte, 1) != 1) _exit(3);
            for (int peek = 0; writes && peek < PEEKS; peek++) {
                uint64_t *page = pages[chosen(peek)];
                if (page[1] != ~(uint64_t)peek) _exit(1);
            }
            _exit(wrong(TURN) ? 2 : CHILD_IS_RIGHT);
        }
        if (kills) kill(id, SIGKILL);
        for (int peek = 0; peek < PEEKS && !kills; peek++) {
            uint64_t words[2] = {0, 0}, mark = ~(uint64_t)peek, *page = pages[chosen(peek)];
            struct iovec here = {words, sizeof words}, there = {page, sizeof words};
            if (process_vm_readv(id, &here, 1, &there, 1, 0) != sizeof words) return 4;
            bad += words[0] != value(chosen(peek), TURN) || words[1] != 0;
            struct iovec from = {&mark, sizeof mark}, to = {page + 1, sizeof mark};
            if (writes && process_vm_writev(id, &from, 1, &to, 1, 0) != sizeof mark) return 5;
        }
        if (write(gate[1], "", 1) != 1) return 6;
        int status = -1;
        waitpid(id, &status, 0);
        dprintf(1, "%s: %d wrong, %#x, %d of the parent's\n", words[which], bad, status, wrong(TURN));
        close(gate[0]), close(gate[1]);
    }
    return 0;
}
