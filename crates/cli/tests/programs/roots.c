/* Changes its root to the folder that its first argument names, with far more memory filled than
 * there is, with `/proc` there if the second says so, and forks. Prints what came of it. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "filled.h"

static int use_memory(uint64_t turn) {
    int bad = wrong(turn);
    fill(turn + 1);
    return bad + wrong(turn + 1);
}

int main(int count, char **words) {
    pages = malloc(sizeof *pages * PAGES);
    fill(1);
    if (count != 3 || chdir(words[1])) return 2;
    if (!strcmp(words[2], "with-proc")) {
        mkdir("proc", 0755);
        if (unshare(CLONE_NEWNS) || mount("none", "/", 0, MS_REC | MS_PRIVATE, 0)) perror("unshare");
        if (mount("proc", "proc", "proc", 0, 0)) perror("mount");
    }
    if (chroot(".") || chdir("/")) perror("chroot");
    for (int turn = 0; turn < 2; turn++) {
        pid_t id = fork();
        if (id == 0) {
            int bad = use_memory(1);
            id = fork();
            if (id == 0) _exit(use_memory(2) ? 1 : 5);
            int status = -1;
            waitpid(id, &status, 0);
            dprintf(1, "child: %d pages wrong, its own: %#x\n", bad, status);
            _exit(wrong(2) ? 1 : 7);
        }
        int status = -1;
        waitpid(id, &status, 0);
        dprintf(1, "child: %#x, %d pages wrong, %d files more\n", status, wrong(1), dup(1) - 3);
        close(3);
    }
    return 0;
}
