/* Makes calls that the kernel permits to processes of one thread, with far more memory filled than
 * there is, in the way each argument names, each in a child of its own. Prints what came of it. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "filled.h"

static int count_files(void) {
    DIR *folder = opendir("/proc/self/fd");
    int count = 0;
    while (readdir(folder)) count++;
    closedir(folder);
    return count;
}

static int space(const char *name, pid_t process) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/ns/%s", process ? process : getpid(), name);
    return open(path, O_RDONLY);
}

/* A process in user and mount namespaces of its own, with another that is the first of a namespace
 * of processes. They end with the caller. */
static pid_t neighbour(pid_t *first) {
    int ends[2];
    if (pipe(ends)) abort();
    pid_t id = fork();
    if (id == 0) {
        if (unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID)) _exit(1);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        pid_t child = fork();
        if (child == 0) prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (child > 0 && write(ends[1], &child, sizeof child) != sizeof child) _exit(1);
        for (;;) pause();
    }
    if (read(ends[0], first, sizeof *first) != sizeof *first) abort();
    close(ends[0]), close(ends[1]);
    return id;
}

/* Two processes with the number 1 at one time, each in a namespace of its own. */
static int two_firsts(void) {
    int there[2], go[2], bad = 0;
    if (pipe(there) || pipe(go)) abort();
    pid_t ids[2];
    for (int which = 0; which < 2; which++) {
        if ((ids[which] = fork())) continue;
        if (unshare(CLONE_NEWUSER | CLONE_NEWPID)) _exit(100);
        int status;
        if (fork() == 0) {
            char byte;
            int wrongs = wrong(1);
            fill(which + 2);
            if (write(there[1], "x", 1) != 1 || read(go[0], &byte, 1) != 1) _exit(101);
            wrongs += wrong(which + 2);
            fill(which + 4);
            _exit(getpid() != 1 || wrongs + wrong(which + 4));
        }
        if (wait(&status) < 0) _exit(102);
        _exit(WIFSIGNALED(status) ? 103 : WEXITSTATUS(status));
    }
    for (int which = 0; which < 2; which++) {
        char byte;
        if (read(there[0], &byte, 1) != 1) abort();
    }
    if (write(go[1], "xx", 2) != 2) abort();
    for (int which = 0; which < 2; which++) {
        int status;
        if (waitpid(ids[which], &status, 0) < 0) abort();
        bad |= status;
    }
    close(there[0]), close(there[1]), close(go[0]), close(go[1]);
    return bad;
}

static void *waits(void *unused) {
    for (;;) pause();
    return unused;
}

static int try(const char *way) {
    pthread_t thread;
    if (!strcmp(way, "unshare")) return unshare(CLONE_NEWUSER);
    if (!strcmp(way, "unshare-call")) return syscall(SYS_unshare, CLONE_NEWUSER | CLONE_NEWNS);
    if (!strcmp(way, "unshare-processes")) return unshare(CLONE_NEWUSER | CLONE_NEWPID);
    if (!strcmp(way, "two-firsts")) return two_firsts();
    if (!strcmp(way, "unshare-late")) return unshare(CLONE_NEWPID) || unshare(CLONE_NEWUSER);
    if (!strcmp(way, "unshare-memory")) return unshare(CLONE_VM | CLONE_SIGHAND | CLONE_THREAD);
    if (!strcmp(way, "unshare-nonsense")) return unshare(CLONE_NEWUSER | 1);
    if (!strcmp(way, "unshare-often")) {
        for (int turn = 0; turn < 8; turn++)
            if (unshare(CLONE_NEWUSER) || wrong(1)) return turn + 1;
        return 0;
    }
    if (!strcmp(way, "two-threads")) {
        pthread_create(&thread, 0, waits, 0);
        return unshare(CLONE_NEWUSER);
    }
    if (!strcmp(way, "two-threads-setns")) {
        pthread_create(&thread, 0, waits, 0);
        return setns(space("mnt", 0), CLONE_NEWNS);
    }
    if (!strcmp(way, "setns-own")) return setns(space("user", 0), CLONE_NEWUSER);
    if (!strcmp(way, "setns-mounts")) return setns(space("mnt", 0), CLONE_NEWNS);
    if (!strcmp(way, "setns-time")) return setns(space("time", 0), 0);
    if (!strncmp(way, "setns-neighbour", 15)) {
        pid_t first, id = neighbour(&first);
        int processes = space("pid", first), times = space("time", id), user = space("user", id), mounts = space("mnt", id);
        int process = syscall(SYS_pidfd_open, id, 0), answer;
        if (!strcmp(way, "setns-neighbour-process"))
            answer = setns(process, CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID);
        else if (!strcmp(way, "setns-neighbour-call"))
            answer = syscall(SYS_setns, user, 0) || syscall(SYS_setns, mounts, 0);
        else if (!strcmp(way, "setns-neighbour-last")) /* As `nsenter -a` does. */
            answer = setns(processes, 0) || setns(mounts, 0) || setns(times, 0) ||
                     setns(user, CLONE_NEWUSER);
        else answer = setns(user, CLONE_NEWUSER) || setns(mounts, CLONE_NEWNS);
        int error = errno;
        close(user), close(mounts), close(process), close(processes), close(times);
        errno = error;
        return answer;
    }
    abort();
}

static int go(const char *way) {
    sigset_t before, after;
    sigemptyset(&before);
    sigaddset(&before, SIGUSR2);
    sigprocmask(SIG_SETMASK, &before, 0);
    int files = count_files();
    int answer = try(way), error = answer ? errno : 0;
    sigprocmask(SIG_SETMASK, 0, &after);
    int is_same = sigismember(&after, SIGUSR2) == 1 && sigismember(&after, SIGUSR1) == 0;
    if (!strncmp(way, "two-threads-", 12) || !strcmp(way, "setns-own") ||
        !strcmp(way, "setns-mounts") || !strcmp(way, "setns-time"))
        files++; /* What it has opened itself. */
    int bad = wrong(1);
    fill(2);
    bad += wrong(2);
    printf("%s: %d, error %d, %d pages wrong, %d files more, mask %s\n", way, answer, error, bad,
           count_files() - files, is_same ? "same" : "changed");
    pid_t id = fork();
    if (id == 0) {
        bad = wrong(2);
        fill(3);
        bad += wrong(3);
        printf("its child %s: %d pages wrong\n",
               getpid() == 1 ? "in a namespace of its own" : "here", bad);
        execl("/bin/echo", "echo", "executed", (char *)0);
        _exit(127);
    }
    int status = -1;
    if (waitpid(id, &status, 0) != id) perror("waitpid");
    printf("its child ended with %d, %d pages wrong\n", status, wrong(2));
    return 0;
}

int main(int count, char **words) {
    setvbuf(stdout, 0, _IONBF, 0);
    pages = malloc(sizeof *pages * PAGES);
    fill(1);
    for (int at = 1; at < count; at++) {
        pid_t id = fork();
        if (id == 0) return go(words[at]);
        int status = -1;
        waitpid(id, &status, 0);
        printf("status %d\n", status);
    }
    printf("%d pages wrong\n", wrong(1));
    return go("unshare");
}
