/* held at-entry|at-exit|ended: a child fills far more memory than there is, and forks. Its parent traces
 * the thread that forks, holds it where that system call begins or ends, and looks meanwhile at what
 * the child has in memory, while another thread of the child changes some of it. Prints what came
 * of it. Or it ends the child there, and waits until it has the only engine. */
#define _GNU_SOURCE
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGE = 4096, PAGES = 6144 };
/* The parts that are changed: emptied, moved to a place of its own, written to, touched. */
enum { EMPTIED = 100, MOVED = 1000, WRITTEN = 2000, TOUCHED = 3000, COUNT = 16, NEW = 251 };

static unsigned char *filled, *place;
static int is_ready[2], is_to_fork[2], is_asked[2], is_done[2];
/* The thread that forks is held before there is a child. */
static int is_before;

static unsigned char value(int page) { return 1 + page % 250; }

static int is_in(int page, int part) { return part <= page && page < part + COUNT; }

static void require(int is_true, const char *what) {
    if (is_true) return;
    perror(what);
    abort();
}

static void send(int *pipe, char word) { require(write(pipe[1], &word, 1) == 1, "write"); }

static void await(int *pipe) {
    char word;
    require(read(pipe[0], &word, 1) == 1, "read");
}

/* Where a page is and what it begins with, if all that is done while the thread is held has been
 * done, or nothing. */
static unsigned char *address(int page, int is_changed) {
    return is_changed && is_in(page, MOVED) ? place + (page - MOVED) * PAGE : filled + page * PAGE;
}

static unsigned char wanted(int page, int is_changed) {
    if (is_changed && is_in(page, EMPTIED)) return 0;
    return is_changed && is_in(page, WRITTEN) ? NEW : value(page);
}

static int wrong(int is_changed) {
    int count = 0;
    for (int page = 0; page < PAGES; page++) {
        unsigned char *at = address(page, is_changed), want = wanted(page, is_changed);
        count += at[0] != want || at[PAGE - 1] != want;
    }
    return count;
}

/* Does what it is asked to while the other thread forks. */
static void *change(void *unused) {
    await(is_asked);
    require(!madvise(filled + EMPTIED * PAGE, COUNT * PAGE, MADV_DONTNEED), "madvise");
    send(is_done, 'e');
    await(is_asked);
    int sum = 0;
    for (int page = TOUCHED; page < TOUCHED + 2; page++) sum += *(volatile unsigned char *)address(page, 0);
    require(sum == value(TOUCHED) + value(TOUCHED + 1), "what was touched");
    send(is_done, 't');
    await(is_asked);
    int flags = MREMAP_MAYMOVE | MREMAP_FIXED, bytes = COUNT * PAGE;
    require(mremap(filled + MOVED * PAGE, bytes, bytes, flags, place) == place, "mremap");
    return unused;
}

static int be_child(void) {
    pthread_t other;
    int status;
    for (int page = 0; page < PAGES; page++) memset(filled + page * PAGE, value(page), PAGE);
    require(!pthread_create(&other, 0, change, 0), "pthread_create");
    send(is_ready, 'r');
    await(is_to_fork);
    pid_t child = fork();
    if (child == 0) _exit(wrong(is_before) != 0);
    require(waitpid(child, &status, 0) == child, "waitpid");
    pthread_join(other, 0);
    printf("child: status %d; itself: %d pages wrong\n", status, wrong(1));
    return 0;
}

static void step(pid_t thread, int how) {
    int status;
    require(!ptrace(how, thread, 0, 0), "ptrace");
    require(waitpid(thread, &status, __WALL) == thread && WIFSTOPPED(status), "a stop");
}

/* Lets a thread run until it forks, and holds it. */
static void hold(pid_t thread) {
    require(!ptrace(PTRACE_SEIZE, thread, 0, PTRACE_O_TRACESYSGOOD), "PTRACE_SEIZE");
    step(thread, PTRACE_INTERRUPT);
    send(is_to_fork, 'f');
    struct __ptrace_syscall_info call;
    int is_fork = 0;
    do {
        step(thread, PTRACE_SYSCALL);
        require(ptrace(PTRACE_GET_SYSCALL_INFO, thread, sizeof call, &call) > 0, "ptrace");
        if (call.op == PTRACE_SYSCALL_INFO_ENTRY)
            is_fork = call.entry.nr == SYS_clone && !(call.entry.args[0] & CLONE_VM);
    } while (!is_fork || (!is_before && call.op != PTRACE_SYSCALL_INFO_EXIT));
}

/* One page of the child, from outside. */
static int differs(pid_t child, int page, unsigned char want) {
    unsigned char copy[PAGE];
    struct iovec here = {copy, PAGE}, there = {filled + page * PAGE, PAGE};
    if (process_vm_readv(child, &here, 1, &there, 1, 0) != PAGE) return 1;
    return copy[0] != want || copy[PAGE - 1] != want;
}

/* Waits until something that can be written to is at `place`. */
static void await_move(pid_t child) {
    char path[64], line[512], want[64];
    sprintf(path, "/proc/%d/maps", child);
    sprintf(want, "%lx-", (unsigned long)place);
    for (int is_moved = 0; !is_moved; poll(0, 0, 1)) {
        FILE *maps = fopen(path, "r");
        require(maps != 0, path);
        while (fgets(line, sizeof line, maps))
            is_moved |= !strncmp(line, want, strlen(want)) && strstr(line, " rw-p ");
        fclose(maps);
    }
}

/* The number of engines that this process's parent has as children. */
static int count_engines(void) {
    char path[64], name[64];
    int number, count = 0;
    sprintf(path, "/proc/%d/task/%d/children", getppid(), getppid());
    FILE *children = fopen(path, "r");
    require(children != 0, path);
    while (fscanf(children, "%d", &number) == 1) {
        sprintf(path, "/proc/%d/comm", number);
        FILE *comm = fopen(path, "r");
        if (!comm) continue;
        count += fgets(name, sizeof name, comm) && !strcmp(name, "tidemark-engine\n");
        fclose(comm);
    }
    fclose(children);
    return count;
}

static void end(pid_t child) {
    int status;
    hold(child);
    kill(child, SIGKILL);
    require(waitpid(child, &status, 0) == child, "waitpid");
    while (count_engines() > 1) poll(0, 0, 1);
    printf("ended with status %d\n", status);
}

static void look(pid_t child) {
    int bad = 0, status;
    unsigned char written[PAGE];
    hold(child);
    send(is_asked, 'e');
    await(is_done);
    memset(written, NEW, PAGE);
    for (int page = WRITTEN; page < WRITTEN + COUNT; page++) {
        struct iovec here = {written, PAGE}, there = {filled + page * PAGE, PAGE};
        bad += process_vm_writev(child, &here, 1, &there, 1, 0) != PAGE;
    }
    for (int page = 0; page < PAGES; page++) bad += !is_in(page, TOUCHED) && differs(child, page, wanted(page, 1));
    send(is_asked, 't');
    await(is_done);
    send(is_asked, 'm');
    await_move(child);
    require(!ptrace(PTRACE_DETACH, child, 0, 0), "PTRACE_DETACH");
    require(waitpid(child, &status, 0) == child, "waitpid");
    printf("%d pages wrong from outside, status %d\n", bad, status);
}

int main(int count, char **words) {
    setvbuf(stdout, 0, _IONBF, 0);
    if (count != 2) abort();
    is_before = strcmp(words[1], "at-exit");
    int flags = MAP_PRIVATE | MAP_ANONYMOUS;
    filled = mmap(0, (size_t)PAGES * PAGE, PROT_READ | PROT_WRITE, flags, -1, 0);
    /* No neighbour is to become one mapping with what is moved there. */
    place = (unsigned char *)mmap(0, (COUNT + 2) * PAGE, PROT_NONE, flags, -1, 0) + PAGE;
    require(!pipe(is_ready) && !pipe(is_to_fork) && !pipe(is_asked) && !pipe(is_done), "pipe");
    pid_t child = fork();
    if (child == 0) return be_child();
    await(is_ready);
    strcmp(words[1], "ended") ? look(child) : end(child);
    return 0;
}
