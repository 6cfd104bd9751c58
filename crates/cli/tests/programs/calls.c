// Makes system calls of every kind on memory that has been paged out: arguments, buffers, lists,
// and what lists lead to. Says what each answered.
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096
#define FILLER (7 << 20)
#define PLACES 512

extern char **environ;

static char *filler;
static char *places[PLACES];
static unsigned next_place;

static void fail(const char *what) {
    printf("%s: %s\n", what, strerror(errno));
    fflush(stdout);
    _exit(1);
}

// A block on pages of its own, at an odd place in the first.
static void *block(size_t bytes) {
    char *at = places[next_place++ % PLACES] = malloc(bytes + 2 * PAGE + 300000);
    return (char *)(((uintptr_t)at + PAGE - 1) & ~(uintptr_t)(PAGE - 1)) + 64;
}

// Has all that was touched before leave memory.
static void push_out(void) {
    for (int round = 1; round < 3; round++)
        for (size_t at = 0; at < FILLER; at += PAGE)
            filler[at] += round;
}

static uint32_t sum(const void *bytes, size_t length) {
    uint32_t sum = 0;
    for (size_t at = 0; at < length; at++)
        sum = sum * 31 + ((const unsigned char *)bytes)[at];
    return sum;
}

static void fill(void *bytes, size_t length, unsigned seed) {
    for (size_t at = 0; at < length; at++)
        ((unsigned char *)bytes)[at] = (unsigned char)(seed + at * 7 + at / 251);
}

static void say(const char *name, long answer, const void *bytes, size_t length) {
    printf("%s %ld %08x\n", name, answer, length ? sum(bytes, length) : 0);
    fflush(stdout);
    push_out();
}

static char *word(const char *text) {
    return strcpy(block(strlen(text) + 1), text);
}

static void files(void) {
    char *name = word("calls.tmp");
    char *out = block(300000), *in = block(300000);
    fill(out, 300000, 1);
    memset(in, 9, 300000);
    push_out();
    int file = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (file < 0)
        fail("open");
    push_out();
    say("write", write(file, out, 300000), out, 300000);
    say("pread", pread(file, in, 300000, 0), in, 300000);
    memset(in, 9, 300000);
    push_out();
    lseek(file, 0, SEEK_SET);
    say("read", read(file, in, 300000), in, 300000);
    say("pwrite", pwrite(file, in + 5000, 100000, 17), in, 10);
    struct iovec *list = block(3 * sizeof *list);
    list[0] = (struct iovec){in, 10};
    list[1] = (struct iovec){out + 8192, 20000};
    list[2] = (struct iovec){in + 100000, 7777};
    lseek(file, 0, SEEK_SET);
    push_out();
    say("readv", readv(file, list, 3), out + 8192, 20000);
    say("writev", writev(file, list, 3), in, 10);
    say("preadv", preadv(file, list, 3, 5), in + 100000, 7777);
    say("pwritev", pwritev(file, list, 3, 70), in, 10);
    struct stat *record = block(sizeof *record);
    push_out();
    int answer = stat(name, record);
    say("stat", answer, &record->st_size, sizeof record->st_size);
    push_out();
    answer = fstat(file, record);
    say("fstat", answer, &record->st_size, sizeof record->st_size);
    char *link = word("calls.link"), *target = block(200);
    memset(target, 0, 200);
    push_out();
    say("symlink", symlink(name, link), 0, 0);
    say("readlink", readlink(link, target, 200), target, 20);
    say("unlink", unlink(link), 0, 0);
    char *entries = block(32768);
    push_out();
    int folder = open("/proc/self/fdinfo", O_RDONLY | O_DIRECTORY);
    long got = syscall(SYS_getdents64, folder, entries, 32768);
    say("getdents", got > 0, 0, 0);
    close(folder);
    char *where = block(4096);
    push_out();
    say("getcwd", getcwd(where, 4096) == where && where[0] == '/', 0, 0);
    say("unlink", unlink(name), 0, 0);
    close(file);
}

static void sockets(void) {
    int *pair = block(2 * sizeof *pair);
    push_out();
    say("socketpair", socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0, 0);
    int here = pair[0], there = pair[1];
    struct msghdr *message = block(sizeof *message);
    struct iovec *list = block(2 * sizeof *list);
    char *control = block(CMSG_SPACE(sizeof(int))), *text = block(9000), *back = block(9000);
    fill(text, 9000, 3);
    memset(back, 0, 9000);
    list[0] = (struct iovec){text, 5000};
    list[1] = (struct iovec){text + 5000, 4000};
    memset(control, 0, CMSG_SPACE(sizeof(int)));
    *message = (struct msghdr){.msg_iov = list, .msg_iovlen = 2, .msg_control = control,
                               .msg_controllen = CMSG_SPACE(sizeof(int))};
    struct cmsghdr *head = CMSG_FIRSTHDR(message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(head), &here, sizeof here);
    push_out();
    say("sendmsg", sendmsg(here, message, 0), text, 9000);
    list[0] = (struct iovec){back, 100};
    list[1] = (struct iovec){back + 100, 8900};
    push_out();
    say("recvmsg", recvmsg(there, message, MSG_WAITALL), back, 9000);
    int copy;
    memcpy(&copy, CMSG_DATA(CMSG_FIRSTHDR(message)), sizeof copy);
    push_out();
    say("send", send(copy, text, 3000, 0), 0, 0);
    say("recv", recv(there, back, 3000, MSG_WAITALL), back, 3000);
    int *waiting = block(sizeof *waiting);
    send(here, text, 77, 0);
    push_out();
    int answer = ioctl(there, FIONREAD, waiting);
    say("ioctl", answer, waiting, sizeof *waiting);
    struct pollfd *polled = block(2 * sizeof *polled);
    polled[0] = (struct pollfd){.fd = there, .events = POLLIN};
    polled[1] = (struct pollfd){.fd = here, .events = POLLIN};
    push_out();
    answer = poll(polled, 2, 1000);
    say("poll", answer, polled, 2 * sizeof *polled);
    fd_set *set = block(sizeof *set);
    struct timeval *time = block(sizeof *time);
    FD_ZERO(set);
    FD_SET(there, set);
    *time = (struct timeval){1, 0};
    push_out();
    answer = select(there + 1, set, 0, 0, time);
    say("select", answer, set, sizeof *set);
    struct epoll_event *event = block(sizeof *event), *events = block(4 * sizeof *events);
    int watch = epoll_create1(0);
    *event = (struct epoll_event){.events = EPOLLIN, .data.u64 = 42};
    memset(events, 0, 4 * sizeof *events);
    push_out();
    say("epoll_ctl", epoll_ctl(watch, EPOLL_CTL_ADD, there, event), 0, 0);
    answer = epoll_wait(watch, events, 4, 1000);
    say("epoll_wait", answer, events, sizeof *events);
    int server = socket(AF_INET, SOCK_DGRAM, 0), client = socket(AF_INET, SOCK_DGRAM, 0);
    struct sockaddr_in *address = block(sizeof *address), *from = block(sizeof *from);
    socklen_t *length = block(sizeof *length);
    *address = (struct sockaddr_in){.sin_family = AF_INET,
                                    .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    *length = sizeof *address;
    push_out();
    say("bind", bind(server, (void *)address, sizeof *address), 0, 0);
    say("getsockname", getsockname(server, (void *)address, length), length, sizeof *length);
    say("sendto", sendto(client, text, 8000, 0, (void *)address, sizeof *address), 0, 0);
    *length = sizeof *from;
    push_out();
    say("recvfrom", recvfrom(server, back, 9000, 0, (void *)from, length), back, 8000);
    int *option = block(sizeof *option);
    *option = 1;
    push_out();
    say("setsockopt", setsockopt(server, SOL_SOCKET, SO_REUSEADDR, option, sizeof *option), 0, 0);
    *length = sizeof *option;
    push_out();
    answer = getsockopt(server, SOL_SOCKET, SO_REUSEADDR, option, length);
    say("getsockopt", answer, option, sizeof *option);
    struct mmsghdr *many = block(2 * sizeof *many);
    memset(many, 0, 2 * sizeof *many);
    list[0] = (struct iovec){text, 500};
    list[1] = (struct iovec){text + 4096, 600};
    for (int at = 0; at < 2; at++)
        many[at].msg_hdr = (struct msghdr){.msg_iov = &list[at], .msg_iovlen = 1};
    push_out();
    say("sendmmsg", sendmmsg(here, many, 2, 0), 0, 0);
    close(here), close(there), close(copy), close(watch), close(server), close(client);
}

static void *pipe_reader(void *argument) {
    int *ends = argument;
    char *into = block(200000);
    memset(into, 1, 200000);
    size_t got = 0;
    while (got < 200000) {
        ssize_t more = read(ends[0], into + got, 200000 - got);
        if (more <= 0)
            fail("read of a pipe");
        got += more;
    }
    return (void *)(uintptr_t)sum(into, 200000);
}

// A thread waits in a call while its memory would leave.
static void pipes(void) {
    int *ends = block(2 * sizeof *ends);
    char *out = block(200000);
    fill(out, 200000, 5);
    push_out();
    if (pipe(ends))
        fail("pipe");
    pthread_t thread;
    if (pthread_create(&thread, 0, pipe_reader, ends))
        fail("pthread_create");
    push_out();
    usleep(20000);
    push_out();
    for (size_t done = 0; done < 200000;) {
        size_t most = 200000 - done < 7000 ? 200000 - done : 7000;
        ssize_t more = write(ends[1], out + done, most);
        if (more <= 0)
            fail("write to a pipe");
        done += more;
    }
    void *answer;
    pthread_join(thread, &answer);
    printf("pipe %08x %08x\n", (uint32_t)(uintptr_t)answer, sum(out, 200000));
}

static int futex(uint32_t *word, int operation, uint32_t value, struct timespec *limit) {
    return syscall(SYS_futex, word, operation, value, limit, 0, 0);
}

static uint32_t has_woken;

static void *waker(void *argument) {
    uint32_t *word = argument;
    usleep(20000);
    push_out();
    __atomic_store_n(word, 1, __ATOMIC_SEQ_CST);
    while (futex(word, FUTEX_WAKE_PRIVATE, 1, 0) == 0)
        usleep(1000);
    __atomic_store_n(&has_woken, 1, __ATOMIC_SEQ_CST);
    return 0;
}

static void futexes(void) {
    uint32_t *word = block(sizeof *word);
    struct timespec *limit = block(sizeof *limit);
    *word = 0;
    *limit = (struct timespec){0, 1000000};
    push_out();
    long answer = futex(word, FUTEX_WAIT_PRIVATE, 0, limit);
    printf("futex %ld %d\n", answer, answer < 0 && errno == ETIMEDOUT);
    push_out();
    answer = futex(word, FUTEX_WAIT_PRIVATE, 7, 0);
    printf("futex %ld %d\n", answer, answer < 0 && errno == EAGAIN);
    pthread_t thread;
    if (pthread_create(&thread, 0, waker, word))
        fail("pthread_create");
    push_out();
    while (__atomic_load_n(word, __ATOMIC_SEQ_CST) == 0)
        futex(word, FUTEX_WAIT_PRIVATE, 0, 0);
    // It tries until it has woken somebody.
    while (__atomic_load_n(&has_woken, __ATOMIC_SEQ_CST) == 0)
        futex(word, FUTEX_WAIT_PRIVATE, 1, &(struct timespec){0, 5000000});
    pthread_join(thread, 0);
    pthread_mutex_t *mutex = block(sizeof *mutex);
    pthread_mutex_init(mutex, 0);
    push_out();
    printf("mutex %d\n", pthread_mutex_lock(mutex));
    pthread_mutex_unlock(mutex);
}

static volatile sig_atomic_t signals;

static void handle(int number) {
    char here[2000];
    memset(here, number, sizeof here);
    signals += here[1000] == number;
}

static void signal_stacks(void) {
    stack_t *stack = block(sizeof *stack);
    char *memory = block(65536);
    *stack = (stack_t){.ss_sp = memory, .ss_size = 65536};
    push_out();
    say("sigaltstack", sigaltstack(stack, 0), 0, 0);
    struct sigaction *action = block(sizeof *action);
    memset(action, 0, sizeof *action);
    action->sa_handler = handle;
    action->sa_flags = SA_ONSTACK;
    push_out();
    say("sigaction", sigaction(SIGUSR1, action, 0), 0, 0);
    for (int round = 0; round < 3; round++) {
        push_out();
        raise(SIGUSR1);
    }
    struct itimerval *timer = block(sizeof *timer);
    *timer = (struct itimerval){.it_interval = {0, 500}, .it_value = {0, 500}};
    sigaction(SIGALRM, action, 0);
    int zeros = open("/dev/zero", O_RDONLY);
    char *into = block(100000);
    push_out();
    setitimer(ITIMER_REAL, timer, 0);
    for (int round = 0; round < 5; round++) {
        push_out();
        // A signal may cut it short.
        for (size_t done = 0; done < 100000;) {
            ssize_t more = read(zeros, into + done, 100000 - done);
            if (more <= 0 && errno != EINTR)
                fail("read under signals");
            done += more > 0 ? more : 0;
        }
    }
    *timer = (struct itimerval){0};
    // A signal may end any call that is held up before the listener has it (docs/limits.md).
    while (setitimer(ITIMER_REAL, timer, 0))
        if (errno != EINTR)
            fail("setitimer");
    close(zeros);
    say("signals", signals >= 3, 0, 0);
    *stack = (stack_t){.ss_flags = SS_DISABLE};
    say("sigaltstack", sigaltstack(stack, 0), 0, 0);
}

static void *on_own_stack(void *argument) {
    char here[50000];
    push_out();
    fill(here, sizeof here, 7);
    raise(SIGUSR2);
    return (void *)(uintptr_t)(sum(here, sizeof here) + (argument != 0));
}

static void thread_stacks(void) {
    char *stack = block(262144);
    stack = (char *)(((uintptr_t)stack + PAGE - 1) & ~(uintptr_t)(PAGE - 1));
    signal(SIGUSR2, handle);
    push_out();
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstack(&attributes, stack, 258048);
    pthread_t thread;
    if (pthread_create(&thread, &attributes, on_own_stack, stack))
        fail("pthread_create");
    push_out();
    void *answer;
    pthread_join(thread, &answer);
    printf("stack %08x\n", (uint32_t)(uintptr_t)answer);
}

static void children(void) {
    char **words = block(8 * sizeof *words), *path = word("/bin/echo");
    words[0] = word("echo");
    words[1] = word("of");
    words[2] = memset(block(9001), 'w', 9000);
    words[2][9000] = 0;
    words[3] = 0;
    int *status = block(sizeof *status);
    char *kept = block(50000);
    fill(kept, 50000, 11);
    push_out();
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        uint32_t seen = sum(kept, 50000);
        push_out();
        int file = open("/dev/null", O_WRONLY);
        _exit(write(file, kept, 50000) == 50000 && seen == sum(kept, 50000) ? 3 : 4);
    }
    push_out();
    pid_t ended = waitpid(child, status, 0);
    say("fork", ended == child, status, sizeof *status);
    child = fork();
    if (child == 0) {
        push_out();
        execve(path, words, environ);
        _exit(1);
    }
    ended = waitpid(child, status, 0);
    say("execve", ended == child, status, sizeof *status);
    pid_t *spawned = block(sizeof *spawned);
    push_out();
    int answer = posix_spawn(spawned, path, 0, 0, words, environ);
    ended = waitpid(*spawned, status, 0);
    say("spawn", answer, status, sizeof *status);
    push_out();
    child = vfork();
    if (child == 0) {
        execve(path, words, environ);
        _exit(1);
    }
    ended = waitpid(child, status, 0);
    say("vfork", ended == child, status, sizeof *status);
}

static void small_things(void) {
    struct utsname *name = block(sizeof *name);
    push_out();
    int answer = uname(name);
    say("uname", answer, name->sysname, 5);
    struct timespec *time = block(sizeof *time);
    time->tv_sec = 0;
    push_out();
    say("clock", syscall(SYS_clock_gettime, CLOCK_REALTIME, time) || time->tv_sec < 1000, 0, 0);
    *time = (struct timespec){0, 1000};
    push_out();
    say("nanosleep", syscall(SYS_nanosleep, time, 0), 0, 0);
    char *random = block(10000);
    memset(random, 0, 10000);
    push_out();
    long got = syscall(SYS_getrandom, random, 10000, 0);
    int zeros = 0;
    for (int at = 0; at < 10000; at++)
        zeros += random[at] == 0;
    say("getrandom", got == 10000 && zeros < 1000, 0, 0);
    sigset_t *set = block(sizeof *set);
    sigemptyset(set);
    push_out();
    int changed = sigprocmask(SIG_BLOCK, set, 0);
    say("sigprocmask", changed, set, 8);
    char *grown = malloc(1 << 20);
    fill(grown, 1 << 20, 13);
    for (size_t bytes = 2 << 20; bytes <= 8 << 20; bytes <<= 1) {
        push_out();
        grown = realloc(grown, bytes);
    }
    say("realloc", grown != 0, grown, 1 << 20);
    int zero = open("/dev/zero", O_RDONLY), null = open("/dev/null", O_WRONLY);
    for (size_t done = 0; done < 8 << 20;) {
        ssize_t more = read(zero, grown + done, (8 << 20) - done);
        if (more <= 0)
            fail("read of much");
        done += more;
    }
    for (size_t done = 0; done < 8 << 20;) {
        ssize_t more = write(null, grown + done, (8 << 20) - done);
        if (more <= 0)
            fail("write of much");
        done += more;
    }
    say("much", 0, grown, 8 << 20);
    close(zero), close(null);
    free(grown);
    // Memory that the program has never touched.
    char *fresh = mmap(0, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    zero = open("/proc/self/stat", O_RDONLY);
    say("fresh", read(zero, fresh + 5000, 10) == 10, 0, 0);
    close(zero);
    char *closed = mmap(0, 8 << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(closed + (1 << 20), 1 << 20, PROT_READ | PROT_WRITE);
    push_out();
    zero = open("/proc/self/stat", O_RDONLY);
    say("opened", read(zero, closed + (1 << 20) + 100, 10) == 10, 0, 0);
    lseek(zero, 0, SEEK_SET);
    got = read(zero, closed + (4 << 20), 10);
    say("closed", got < 0 && errno == EFAULT, 0, 0);
    close(zero);
}

int main(void) {
    filler = malloc(FILLER);
    memset(filler, 1, FILLER);
    files();
    sockets();
    pipes();
    futexes();
    signal_stacks();
    thread_stacks();
    children();
    small_things();
    puts("all");
    return 5;
}
