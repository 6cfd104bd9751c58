/* Sets filters of system calls in the way each argument names, with more memory filled than there
 * is, each in a child of its own. Prints what came of it. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "filled.h"

enum { LARGE = 4 << 20 };

/* A program that answers `listed` for the calls it is given, and `other` for all else. */
static struct sock_fprog make(const long *calls, uint32_t listed, uint32_t other) {
    static struct sock_filter steps[80];
    unsigned short length = 0;
    steps[length++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
                                                   offsetof(struct seccomp_data, nr));
    for (; *calls >= 0; calls++) {
        steps[length++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, *calls, 0, 1);
        steps[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, listed);
    }
    steps[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, other);
    return (struct sock_fprog){length, steps};
}

static struct sock_fprog permit_few(void) {
    static const long calls[] = {SYS_read,   SYS_write, SYS_exit,         SYS_exit_group, SYS_brk,
                                 SYS_munmap, SYS_mmap,  SYS_rt_sigreturn, SYS_futex,      -1};
    return make(calls, SECCOMP_RET_ALLOW, SECCOMP_RET_KILL_PROCESS);
}

/* Calls that services and sandboxes do without. */
static struct sock_fprog forbid_rare(void) {
    static const long calls[] = {SYS_userfaultfd, SYS_io_uring_setup,   SYS_pidfd_open,
                                 SYS_unshare,     SYS_process_vm_readv, SYS_sched_setaffinity, -1};
    return make(calls, SECCOMP_RET_ERRNO | EPERM, SECCOMP_RET_ALLOW);
}

/* As containers do. */
static struct sock_fprog forbid_rings(void) {
    static const long calls[] = {SYS_io_uring_setup, SYS_io_uring_enter, SYS_io_uring_register, -1};
    return make(calls, SECCOMP_RET_ERRNO | EPERM, SECCOMP_RET_ALLOW);
}

/* A call that no program here makes. */
static struct sock_fprog forbid_foreign(void) {
    static const long calls[] = {SYS_ptrace, SYS_mount, SYS_reboot, SYS_unshare, -1};
    return make(calls, SECCOMP_RET_KILL_PROCESS, SECCOMP_RET_ALLOW);
}

static long set(struct sock_fprog program, unsigned flags) {
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
}

/* Says what came of it without a call that few permit. */
static void say(const char *way, long answer, int bad) {
    char text[200];
    int length = snprintf(text, sizeof text, "%s: %ld, %d pages wrong\n", way, answer, bad);
    if (write(1, text, length) != length) abort();
}

static int use_memory(void) {
    int bad = wrong(1);
    fill(2);
    char *large = mmap(0, LARGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int at = 0; at < LARGE; at += 512) large[at] = (char)(at >> 9);
    bad += wrong(2);
    for (int at = 0; at < LARGE; at += 512) bad += large[at] != (char)(at >> 9);
    munmap(large, LARGE);
    return bad;
}

static atomic_int has_started;
static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;

/* Waits by a call that is permitted, when it has made those that a thread starts with. */
static void *waits(void *unused) {
    has_started = 1;
    pthread_mutex_lock(&held);
    return unused;
}

static int go(const char *way) {
    long answer = 0;
    if (!strcmp(way, "for-all")) answer = set(permit_few(), SECCOMP_FILTER_FLAG_TSYNC);
    else if (!strcmp(way, "for-one")) answer = set(permit_few(), 0);
    else if (!strcmp(way, "prctl")) {
        struct sock_fprog program = permit_few();
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        answer = prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
    } else if (!strcmp(way, "without-right")) {
        struct sock_fprog program = {0, 0};
        answer = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program);
    } else if (!strcmp(way, "probe")) {
        answer = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, 0);
        answer = answer == -1 ? errno : 0;
    } else if (!strcmp(way, "strict")) {
        answer = prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
        int bad = wrong(1);
        fill(2);
        bad += wrong(2);
        say(way, answer, bad);
        for (;;) syscall(SYS_exit, 4);
    } else if (!strcmp(way, "kills")) {
        set(permit_few(), SECCOMP_FILTER_FLAG_TSYNC);
        say(way, syscall(SYS_getppid), wrong(1));
    } else if (!strcmp(way, "forks")) {
        answer = set(forbid_foreign(), SECCOMP_FILTER_FLAG_TSYNC);
        pid_t id = fork();
        if (id == 0) {
            say("its child", 0, use_memory());
            _exit(5);
        }
        int status = -1;
        waitpid(id, &status, 0);
        answer = answer ? answer : status;
    } else if (!strcmp(way, "forks-refused")) {
        answer = set(forbid_rings(), 0);
        pid_t id = fork();
        if (id == 0) {
            say("its child", 0, use_memory());
            id = fork();
            if (id == 0) _exit(use_memory() ? 6 : 5);
            int status = -1;
            waitpid(id, &status, 0);
            _exit(wrong(2) ? 7 : WEXITSTATUS(status));
        }
        int status = -1;
        waitpid(id, &status, 0);
        answer = answer ? answer : status;
    } else if (!strcmp(way, "executes")) {
        answer = set(forbid_rare(), SECCOMP_FILTER_FLAG_TSYNC);
        say(way, answer, use_memory());
        execl("/bin/echo", "echo", "executed", (char *)0);
    } else if (!strcmp(way, "threads")) {
        pthread_t thread;
        pthread_mutex_lock(&held);
        pthread_create(&thread, 0, waits, 0);
        while (!has_started) usleep(1000);
        answer = set(permit_few(), SECCOMP_FILTER_FLAG_TSYNC);
    } else {
        abort();
    }
    say(way, answer, use_memory());
    return 3; /* With all that `exit` does. */
}

int main(int count, char **words) {
    pages = malloc(sizeof *pages * PAGES);
    fill(1);
    for (int at = 1; at < count; at++) {
        pid_t id = fork();
        if (id == 0) exit(go(words[at]));
        int status = -1;
        waitpid(id, &status, 0);
        say(WIFSIGNALED(status) ? "signal" : "status",
            WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status), wrong(1));
    }
    return 0;
}
