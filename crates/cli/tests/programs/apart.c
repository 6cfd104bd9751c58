/* Fills far more memory than there is, and does what a thread or a child of somebody else's would be
 * in the way of, as its argument says. Prints what came of it. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define BYTES ((size_t)24 << 20)
#define PAGE ((size_t)4096)

unsigned char *filled;

static unsigned char value(size_t page) { return 1 + page % 250; }

static void fill(void) {
    filled = mmap(0, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (size_t page = 0; page < BYTES / PAGE; page++) memset(filled + page * PAGE, value(page), PAGE);
}

static int wrong(void) {
    int count = 0;
    for (size_t page = 0; page < BYTES / PAGE; page++) count += filled[page * PAGE] != value(page);
    return count;
}

/* What a program sees that insists on having one thread and no children. */
static void alone(void) {
    struct stat found;
    int tasks = 0;
    usleep(100000);
    stat("/proc/self/task", &found);
    DIR *list = opendir("/proc/self/task");
    for (struct dirent *entry; (entry = readdir(list));) tasks += entry->d_name[0] != '.';
    printf("%d links, %d tasks, ", (int)found.st_nlink, tasks);
    int any = waitpid(-1, 0, 0), no_child = errno == ECHILD;
    int all = waitpid(-1, 0, __WALL), none = errno == ECHILD;
    printf("wait %d %d, of all kinds %d %d\n", any, no_child, all, none);
}

#if __has_include(<sys/single_threaded.h>)
#include <sys/single_threaded.h>
#else
static char __libc_single_threaded;
#endif

static void *end_at_once(void *answer) {
    return answer;
}

/* What the C library says of the number of threads: by itself, in a child, and after a thread. */
static void single(void) {
    pthread_t thread;
    printf("single %d, ", __libc_single_threaded);
    fflush(stdout);
    if (fork() == 0) {
        printf("in a child %d, ", __libc_single_threaded);
        exit(0);
    }
    wait(0);
    pthread_create(&thread, 0, end_at_once, 0);
    printf("with a thread %d\n", __libc_single_threaded);
    pthread_join(thread, 0);
}

static volatile int is_set;

static void *call(void *answer) {
    while (!is_set) usleep(1000);
    errno = 0;
    *(long *)answer = syscall(SYS_getppid) == -1 ? errno : 0;
    return 0;
}

/* A filter for both threads at once. */
static void filter(void) {
    struct sock_filter lines[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {4, lines};
    pthread_t thread;
    long answer = -1;
    pthread_create(&thread, 0, call, &answer);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    long set = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program);
    is_set = 1;
    pthread_join(thread, 0);
    printf("set %ld, the other thread's error %ld\n", set, answer);
}

/* A child that has stopped, seen from its parent. */
static void stopped(void) {
    pid_t child = fork();
    if (child == 0) {
        fill();
        raise(SIGSTOP);
        _exit(wrong() != 0);
    }
    int status, bad = 0;
    waitpid(child, &status, WUNTRACED);
    unsigned char *copy = malloc(PAGE);
    /* It has the same addresses. */
    unsigned char *theirs = mmap(0, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (size_t page = 0; page < BYTES / PAGE; page++) {
        struct iovec here = {copy, PAGE}, there = {theirs + page * PAGE, PAGE};
        bad += process_vm_readv(child, &here, 1, &there, 1, 0) != PAGE || *copy != value(page);
    }
    int was_stopped = WIFSTOPPED(status);
    kill(child, SIGCONT);
    waitpid(child, &status, 0);
    printf("stopped %d, %d pages wrong from outside, status %d\n", was_stopped, bad, status);
}

static void *allocate(void *unused) {
    void *volatile block = malloc(100);
    free(block);
    return unused;
}

/* The C library has an arena that is free for the next thread, and its memory goes out. */
static void leave_arena(void) {
    pthread_t thread;
    pthread_create(&thread, 0, allocate, 0);
    pthread_join(thread, 0);
}

/* Another user from now on, who may not signal what was started before. */
static void gives_up_rights(void) {
    if (setgid(65534) || setuid(65534)) abort();
    for (int round = 0; round < 8; round++) {
        size_t bytes = (size_t)2 << 20;
        char *more = mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        memset(more, round, bytes);
        munmap(more, bytes);
    }
    pid_t child = fork();
    if (child == 0) _exit(wrong() != 0);
    int status;
    waitpid(child, &status, 0);
    printf("its child: status %d\n", status);
}

int main(int count, char **words) {
    setvbuf(stdout, 0, _IONBF, 0);
    for (int at = 1; at < count; at++) {
        if (!strcmp(words[at], "stopped")) {
            stopped();
            continue;
        }
        if (!strcmp(words[at], "arena")) {
            leave_arena();
            /* What comes next is for a child to do. */
            if (fork() == 0) continue;
            return wait(0) < 0;
        }
        fill();
        if (!strcmp(words[at], "alone")) alone();
        else if (!strcmp(words[at], "single")) single();
        else if (!strcmp(words[at], "filter")) filter();
        else if (!strcmp(words[at], "rights")) gives_up_rights();
        else if (!strcmp(words[at], "waits")) {
            printf("%d %p\n", getpid(), (void *)filled);
            for (int left = 600; left; left--) usleep(100000);
        } else abort();
        printf("%s: %d pages wrong\n", words[at], wrong());
    }
    return 0;
}
