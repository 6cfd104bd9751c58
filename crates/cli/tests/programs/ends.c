/* Ends processes in the way each argument names, and prints what the parent is told of each. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BYTES = 12 << 20, STACK = 1 << 20 };
static unsigned char *filled;

static void fill(void) {
    for (size_t at = 0; at < BYTES; at += 512) filled[at] = (unsigned char)(at >> 9 | 1);
}

static int is_whole(void) {
    for (size_t at = 0; at < BYTES; at += 512)
        if (filled[at] != (unsigned char)(at >> 9 | 1)) return 0;
    return 1;
}

static void leave(int status) {
    for (;;) syscall(SYS_exit, status);
}

static int returns(void *status) { return *(int *)status; }

static int forks_on(void *status) {
    pid_t child = fork();
    if (child == 0) leave(3);
    int how;
    if (waitpid(child, &how, 0) != child || how != 3 << 8) return 99;
    return *(int *)status;
}

/* Waits until the first thread of this process has ended. */
static void await_first(void) {
    char text[1024] = "", *state;
    do {
        FILE *file = fopen("/proc/self/stat", "r");
        size_t length = fread(text, 1, sizeof text - 1, file);
        text[length] = 0;
        fclose(file);
        state = strrchr(text, ')');
    } while (state && state[2] != 'Z' && !usleep(1000));
}

static void *leaves_later(void *status) {
    await_first();
    leave(is_whole() ? *(int *)status : 98);
    return 0;
}

static pid_t before; /* The thread that started this one. */

/* Leaves when it has been alone for so long that whoever looks now and then has seen it. */
static void *leaves_last(void *status) {
    while (!syscall(SYS_tgkill, getpid(), before, 0)) usleep(1000);
    sleep(1);
    leave(*(int *)status);
    return 0;
}

static void *leaves(void *status) {
    leave(*(int *)status);
    return 0;
}

static void *starts_another(void *status) {
    pthread_t thread;
    await_first();
    before = gettid();
    pthread_create(&thread, 0, leaves_last, status);
    leave(1);
    return 0;
}

static void *says_so(void *unused) {
    await_first();
    printf("the other thread, memory %s\n", is_whole() ? "whole" : "broken");
    return unused;
}

static void *executes(void *unused) {
    execl("/bin/sh", "sh", "-c", "exit 11", (char *)0);
    return unused;
}

static void *joins(void *first) {
    pthread_join((pthread_t)first, 0);
    await_first();
    leave(is_whole() ? 0 : 97);
    return 0;
}

static void start(void *(*body)(void *), void *argument) {
    pthread_t thread;
    if (pthread_create(&thread, 0, body, argument)) abort();
}

/* The child of `fork`. */
static int zero, seven = 7, nine = 9;
static void end(const char *way) {
    if (!strcmp(way, "exit-call")) leave(6);
    if (!strcmp(way, "exit-call-with-memory")) leave(is_whole() ? 6 : 96);
    if (!strcmp(way, "exit-call-then-thread")) start(leaves_later, &zero), leave(0);
    if (!strcmp(way, "exit-call-then-threads")) start(starts_another, &seven), leave(4);
    if (!strcmp(way, "pthread-exit")) start(says_so, 0), pthread_exit(0);
    if (!strcmp(way, "joined")) start(joins, (void *)pthread_self()), leave(0);
    if (!strcmp(way, "thread-executes")) start(executes, 0), leave(4);
    if (!strcmp(way, "thread-executes-beside")) {
        start(executes, 0);
        for (;;) pause();
    }
    if (!strcmp(way, "without-list")) {
        syscall(SYS_set_robust_list, 0, 24);
        leave(13);
    }
    if (!strcmp(way, "signal")) raise(SIGTERM);
    if (!strcmp(way, "thread-leaves")) {
        pthread_t thread;
        pthread_create(&thread, 0, leaves, &seven);
        pthread_join(thread, 0);
        _exit(is_whole() ? 2 : 95);
    }
    if (!strcmp(way, "orphan")) {
        /* Its child is told when it has gone, and then ends. */
        int ends[2];
        char byte;
        if (pipe(ends)) abort();
        if (fork() == 0) {
            sigset_t set;
            sigemptyset(&set);
            sigaddset(&set, SIGUSR1);
            sigprocmask(SIG_BLOCK, &set, 0);
            prctl(PR_SET_PDEATHSIG, SIGUSR1);
            if (write(ends[1], "x", 1) != 1) abort();
            int signal;
            sigwait(&set, &signal);
            dprintf(1, "the orphan got signal %d\n", signal);
            leave(14);
        }
        if (read(ends[0], &byte, 1) != 1) abort();
        leave(15);
    }
    abort();
}

static pid_t begin(const char *way) {
    char *stack = mmap(0, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (!strcmp(way, "clone-returns-0")) return clone(returns, stack + STACK, SIGCHLD, &zero);
    if (!strcmp(way, "clone-returns-9")) return clone(returns, stack + STACK, SIGCHLD, &nine);
    if (!strcmp(way, "clone-forks")) return clone(forks_on, stack + STACK, SIGCHLD, &nine);
    if (!strcmp(way, "clone-shares"))
        return clone(returns, stack + STACK, CLONE_VM | CLONE_VFORK | SIGCHLD, &nine);
    if (!strcmp(way, "vfork")) {
        pid_t id = vfork();
        if (id == 0) leave(8);
        return id;
    }
    if (!strcmp(way, "fork-call")) {
        pid_t id = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
        if (id == 0) leave(is_whole() ? 10 : 94);
        return id;
    }
    pid_t id = fork();
    if (id == 0) end(way);
    return id;
}

int main(int count, char **words) {
    setvbuf(stdout, 0, _IONBF, 0);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    filled = malloc(BYTES);
    fill();
    int last = 0;
    for (int at = 1; at < count; at++) {
        if (!strcmp(words[at], "main")) last = is_whole() ? 5 : 93;
        else if (!strcmp(words[at], "main-thread")) start(leaves_later, &zero), leave(0);
        else {
            pid_t id = begin(words[at]);
            /* An orphan comes to this process, before or after the child; so do engines, whose status
             * is zero. */
            int sum = 0, status;
            if (waitpid(id, &sum, 0) < 0) perror("wait");
            if (!strcmp(words[at], "orphan")) {
                do {
                    if (waitpid(-1, &status, 0) < 0) perror("wait");
                } while (status == 0);
                sum += status;
            }
            printf("%s: %s %d\n", words[at], id > 0 ? "status" : "failed", sum);
        }
    }
    if (last) leave(last);
    return is_whole() ? 0 : 92;
}
