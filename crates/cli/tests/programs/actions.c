/* Does with SIGBUS what its argument names, with far more memory filled than there is. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "filled.h"

static void wait_for_ever(int number) {
    (void)number;
    for (;;) pause();
}

int main(int count, char **words) {
    const char *way = count > 1 ? words[1] : "";
    pages = mmap(NULL, sizeof *pages * PAGES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) return 3;
    if (!strcmp(way, "handled")) {
        signal(SIGBUS, wait_for_ever);
        fill(1);
    } else if (!strcmp(way, "sent")) {
        pid_t child = fork();
        if (!child) {
            raise(SIGBUS);
            return 0;
        }
        int status;
        if (child < 0 || waitpid(child, &status, 0) != child) return 3;
        printf("the child ended by signal %d\n", WIFSIGNALED(status) ? WTERMSIG(status) : 0);
    } else if (!strcmp(way, "blocked")) {
        sigset_t all;
        sigfillset(&all);
        sigprocmask(SIG_SETMASK, &all, NULL);
        char *const next[] = {words[0], "filled", NULL};
        execv("/proc/self/exe", next);
        return 3;
    } else if (!strcmp(way, "filled")) {
        fill(1);
        printf("%d pages are wrong\n", wrong(1));
    }
    return 0;
}
