/* Maps a file to write to it, in many ways, and prints what it finds. That and the file are the
   same in the end, whoever keeps the pages. Words: the way, and a file to make. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGE = 4096, PAGES = 4200, TAIL = 1234 };
static const size_t SIZE = (size_t)PAGES * PAGE + TAIL, WHOLE = (size_t)(PAGES + 1) * PAGE;
static const char *path;
extern char **environ;

static void fail(const char *what) {
    printf("%s: %s\n", what, strerror(errno));
    exit(1);
}

static void say(const char *what, size_t count) {
    printf("%s: %zu\n", what, count);
    fflush(stdout);
}

static unsigned char byte_at(size_t offset) {
    size_t word = (offset / 8 + 1) * 0x9E3779B97F4A7C15u;
    return word >> (offset % 8 * 8) ^ offset / PAGE;
}

/* Every eighth page is a hole. */
static void make_file(void) {
    int file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    unsigned char block[PAGE];
    for (size_t page = 0; page < PAGES; page++) {
        for (size_t at = 0; at < PAGE; at++)
            block[at] = byte_at(page * PAGE + at);
        if (page % 8 != 3 && pwrite(file, block, PAGE, page * PAGE) != PAGE)
            fail("pwrite");
    }
    if (ftruncate(file, SIZE))
        fail("ftruncate");
    close(file);
}

static unsigned char *map_at(void *place, size_t bytes, int rights, int kind, size_t offset) {
    int file = open(path, rights & PROT_WRITE ? O_RDWR : O_RDONLY);
    unsigned char *start = mmap(place, bytes, rights, kind, file, offset);
    if (start == MAP_FAILED)
        fail("mmap");
    close(file);
    return start;
}

static unsigned char *map(void) {
    return map_at(0, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, 0);
}

/* Writes in many places, and reads in others. */
static size_t scribble(unsigned char *start, size_t from, size_t bytes, int turns, size_t seed) {
    size_t place = seed * 2 + 1, sum = 0;
    for (int turn = 0; turn < turns; turn++) {
        place = place * 6364136223846793005u + 1442695040888963407u;
        size_t at = from + (place >> 20) % (bytes - 8);
        memcpy(start + at, &place, 8);
        sum = sum * 31 + start[from + (place >> 24) % bytes];
    }
    return sum;
}

static size_t sum_of(const unsigned char *start, size_t bytes) {
    size_t sum = bytes;
    for (size_t at = 0; at < bytes; at++)
        sum = (sum ^ start[at]) * 0x100000001b3u;
    return sum;
}

static jmp_buf back;

static void jump(int number) {
    siglongjmp(back, number);
}

/* The signal that a touch meets. */
static int touch(unsigned char *at, int write) {
    struct sigaction action = {.sa_handler = jump}, bus, fault;
    sigaction(SIGBUS, &action, &bus);
    sigaction(SIGSEGV, &action, &fault);
    int number = sigsetjmp(back, 1);
    if (!number) {
        if (write)
            *(volatile unsigned char *)at = 1;
        else
            (void)*(volatile unsigned char *)at;
    }
    sigaction(SIGBUS, &bus, 0);
    sigaction(SIGSEGV, &fault, 0);
    return number;
}

/* What another process finds in the file. */
static void show(void) {
    char *words[] = {"cksum", (char *)path, 0};
    pid_t child;
    fflush(stdout);
    if (posix_spawnp(&child, "cksum", 0, 0, words, environ))
        fail("posix_spawnp");
    int status;
    waitpid(child, &status, 0);
}

static void random_writes(void) {
    unsigned char *start = map();
    say("scribbled", scribble(start, 0, SIZE, 8000, 1));
    memset(start + SIZE, 'x', WHOLE - SIZE);
    say("all", sum_of(start, SIZE));
    memset(start + 9 * PAGE, 0, 20 * PAGE);
    say("again", scribble(start, 0, SIZE, 3000, 2));
    printf("munmap %d\n", munmap(start, SIZE));
    show();
}

static void leave(void) {
    say("scribbled", scribble(map(), 0, SIZE, 5000, 3));
    exit(7);
}

static void leave_at_once(void) {
    say("scribbled", scribble(map(), 0, SIZE, 5000, 3));
    _exit(8);
}

static void die(void) {
    say("scribbled", scribble(map(), 0, SIZE, 5000, 4));
    kill(getpid(), SIGKILL);
}

static void execute(void) {
    say("scribbled", scribble(map(), 0, SIZE, 5000, 5));
    execlp("cksum", "cksum", path, (char *)0);
}

static void synchronize(void) {
    unsigned char *start = map();
    for (size_t turn = 1; turn < 4; turn++) {
        say("scribbled", scribble(start, 0, SIZE, 3000, turn));
        printf("msync %d\n", msync(start, SIZE, MS_SYNC));
        show();
    }
    scribble(start, 0, SIZE, 3000, 9);
    printf("first half %d\n", msync(start, SIZE / 2 & -PAGE, MS_SYNC));
    printf("second half %d\n", msync(start + (SIZE / 2 & -PAGE), SIZE / 2, MS_SYNC));
    show();
    printf("wrong: %d %d\n", msync(start + 1, PAGE, MS_SYNC) ? errno : 0,
           msync(start, PAGE, MS_SYNC | MS_ASYNC) ? errno : 0);
}

static void fork_here(void) {
    unsigned char *start = map();
    say("before", scribble(start, 0, SIZE, 3000, 1));
    pid_t child = fork();
    if (child == 0) {
        say("in the child", sum_of(start, SIZE));
        scribble(start, 0, 2000 * PAGE, 3000, 2);
        exit(0);
    }
    int status;
    waitpid(child, &status, 0);
    say("the child's", sum_of(start, SIZE));
    say("after", scribble(start, 2000 * PAGE, SIZE - 2000 * PAGE, 3000, 3));
    unsigned char *more = map();
    say("both", sum_of(more, SIZE) == sum_of(start, SIZE));
}

static void cut(void) {
    int file = open(path, O_RDWR);
    unsigned char *start = mmap(0, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    say("before", scribble(start, 0, SIZE, 3000, 1));
    printf("cut: %d\n", ftruncate(file, 1000 * PAGE + 17));
    printf("behind: signal %d, %d\n", touch(start + 1001 * PAGE, 0), touch(start + 3900 * PAGE, 1));
    say("left", sum_of(start, 1000 * PAGE + 17));
    say("after", scribble(start, 0, 1000 * PAGE, 3000, 2));
    printf("longer: %d\n", ftruncate(file, SIZE));
    say("all", sum_of(start, SIZE));
    say("at last", scribble(start, 0, SIZE, 3000, 3));
}

/* The file grows under its mapping. */
static void grow(void) {
    int file = open(path, O_RDWR);
    size_t more = WHOLE + 3000 * PAGE;
    unsigned char *start = mmap(0, more, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    say("before", scribble(start, 0, SIZE, 3000, 1));
    printf("behind: signal %d\n", touch(start + WHOLE + 5 * PAGE, 1));
    printf("longer: %d\n", ftruncate(file, more));
    say("new", scribble(start, WHOLE + 6 * PAGE, more - WHOLE - 6 * PAGE, 3000, 2));
    say("all", scribble(start, 0, SIZE, 3000, 3));
    munmap(start, more);
    start = mmap(0, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    scribble(start, 0, SIZE, 3000, 4);
    printf("longer again: %d\n", ftruncate(file, more + 1000 * PAGE));
    start = mremap(start, SIZE, more + 1000 * PAGE, MREMAP_MAYMOVE);
    say("moved", scribble(start, 0, more + 1000 * PAGE, 3000, 5));
    say("sum", sum_of(start, more + 1000 * PAGE));
}

static void use_descriptor(void) {
    int file = open(path, O_RDWR);
    unsigned char *start = mmap(0, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    unsigned char got[3 * PAGE];
    size_t wrong = 0;
    for (size_t turn = 0; turn < 5; turn++) {
        scribble(start, 0, SIZE, 2000, turn);
        if (pread(file, got, sizeof got, turn * 700 * PAGE + 5) != sizeof got)
            fail("pread");
        wrong += memcmp(got, start + turn * 700 * PAGE + 5, sizeof got) != 0;
    }
    say("read otherwise", wrong);
    scribble(start, 0, SIZE, 3000, 7);
    memset(got, 42, sizeof got);
    if (pwrite(file, got, 100, 900 * PAGE + 50) != 100)
        fail("pwrite");
    say("not seen", memcmp(got, start + 900 * PAGE + 50, 100) != 0);
    start[900 * PAGE + 49] = start[900 * PAGE + 150] = 'y';
    lseek(file, 77 * PAGE, SEEK_SET);
    if (write(file, got, PAGE) != PAGE)
        fail("write");
    say("not seen", memcmp(got, start + 77 * PAGE, PAGE) != 0);
    say("all", sum_of(start, SIZE));
}

static void map_twice(void) {
    /* Windows side by side, and then one over both. */
    unsigned char *first = map_at(0, 2000 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, 0);
    unsigned char *second = map_at(0, 2000 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, 2000 * PAGE);
    scribble(first, 0, 2000 * PAGE, 5000, 1);
    scribble(second, 0, 2000 * PAGE, 5000, 2);
    unsigned char *seen = map_at(0, SIZE, PROT_READ, MAP_SHARED, 0);
    say("seen", memcmp(seen, first, 2000 * PAGE) || memcmp(seen + 2000 * PAGE, second, 2000 * PAGE));
    scribble(first, 0, 2000 * PAGE, 5000, 3);
    scribble(second, 0, 2000 * PAGE, 5000, 4);
    say("later", memcmp(seen, first, 2000 * PAGE) || memcmp(seen + 2000 * PAGE, second, 2000 * PAGE));
    unsigned char *third = map();
    scribble(third, 0, SIZE, 5000, 5);
    say("last", memcmp(seen, third, SIZE) || memcmp(third, first, 2000 * PAGE));
}

/* What is only read at first must see what is written later. */
static void map_after(void) {
    unsigned char *seen = map_at(0, SIZE, PROT_READ, MAP_SHARED, 0);
    say("before", sum_of(seen, SIZE));
    unsigned char *start = map();
    scribble(start, 0, SIZE, 3000, 1);
    say("seen", memcmp(seen, start, SIZE) != 0);
}

static void take_apart(void) {
    unsigned char *start = map();
    scribble(start, 0, SIZE, 3000, 1);
    munmap(start + 1000 * PAGE, 500 * PAGE);
    scribble(start, 1500 * PAGE, 2600 * PAGE, 3000, 2);
    unsigned char *other = mmap(start + 2000 * PAGE, 64 * PAGE, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    say("something else", sum_of(other, 64 * PAGE));
    memset(other, 1, 64 * PAGE);
    unsigned char *place = mmap(0, SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    unsigned char *moved = mremap(start + 3000 * PAGE, 1000 * PAGE, 1000 * PAGE,
                                  MREMAP_MAYMOVE | MREMAP_FIXED, place);
    say("moved", scribble(moved, 0, 1000 * PAGE, 3000, 3));
    moved = mremap(moved, 1000 * PAGE, 400 * PAGE, 0);
    say("shorter", sum_of(moved, 400 * PAGE));
    say("left", sum_of(start, 1000 * PAGE));
    munmap(start, WHOLE);
    printf("msync %d\n", msync(moved, 400 * PAGE, MS_ASYNC));
    show();
    say("moved still", scribble(moved, 0, 400 * PAGE, 3000, 4));
}

static void protect(void) {
    unsigned char *start = map();
    scribble(start, 0, SIZE, 3000, 1);
    printf("closed %d: ", mprotect(start, SIZE, PROT_READ));
    printf("signal %d, %d\n", touch(start + 90 * PAGE, 0), touch(start + 91 * PAGE, 1));
    say("read", sum_of(start, SIZE));
    printf("opened %d: signal %d\n", mprotect(start, SIZE, PROT_READ | PROT_WRITE),
           touch(start + 91 * PAGE, 1));
    scribble(start, 0, SIZE, 3000, 2);
    printf("hidden %d: ", mprotect(start + 50 * PAGE, 2000 * PAGE, PROT_NONE));
    printf("signal %d, %d\n", touch(start + 900 * PAGE, 0), touch(start + 3900 * PAGE, 1));
    printf("shown %d\n", mprotect(start, SIZE, PROT_READ | PROT_WRITE));
    say("at last", scribble(start, 0, SIZE, 3000, 3));
}

static void advise(void) {
    unsigned char *start = map();
    int advices[] = {MADV_NORMAL, MADV_RANDOM, MADV_SEQUENTIAL, MADV_WILLNEED, MADV_DONTNEED};
    for (int number = 0; number < 5; number++) {
        scribble(start, 0, SIZE, 1500, number);
        printf("%d ", madvise(start, SIZE, advices[number]));
        say("sum", sum_of(start, SIZE));
    }
    scribble(start, 0, SIZE, 3000, 6);
    printf("locked %d\n", mlock(start + 100 * PAGE, 200 * PAGE));
    scribble(start, 0, SIZE, 3000, 7);
    say("sum", sum_of(start, SIZE));
}

static unsigned char *common;

static atomic_int threads_left;

static void *write_part(void *number) {
    size_t part = (size_t)number;
    for (int turn = 0; turn < 12; turn++)
        scribble(common, part * 1000 * PAGE, 1000 * PAGE, 600, part * 99 + turn);
    threads_left--;
    return 0;
}

/* Threads write while another has it written, and at last forks. */
static void share(void) {
    common = map();
    pthread_t threads[4];
    threads_left = 4;
    for (size_t number = 0; number < 4; number++)
        pthread_create(&threads[number], 0, write_part, (void *)number);
    int failed = 0;
    for (int turn = 0; turn < 4; turn++)
        failed += msync(common, SIZE, MS_SYNC) != 0;
    while (threads_left > 2)
        usleep(1000);
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    waitpid(child, 0, 0);
    for (int number = 0; number < 4; number++)
        pthread_join(threads[number], 0);
    printf("failed %d\n", failed);
    say("all", sum_of(common, SIZE));
}

/* A write that fails once: what was changed is not lost, and goes to the file the next time. */
static void fail_once(void) {
    unsigned char *start = map();
    scribble(start, 0, 400 * PAGE, 2000, 1);
    printf("fails: %d\n", msync(start, SIZE, MS_SYNC) ? errno : 0);
    say("kept", sum_of(start, SIZE));
    printf("works: %d\n", msync(start, SIZE, MS_SYNC) ? errno : 0);
    show();
}

/* The same where the program can't be told. */
static void fail_unmapped(void) {
    unsigned char *start = map();
    scribble(start, 0, 400 * PAGE, 2000, 1);
    munmap(start, SIZE);
    puts("not ended");
}

enum { HOLE = 8 << 20, ROOM = 2 << 20, REST_MOST = 32 << 20 };
static char rest[4096];

/* Maps a file that has no blocks, and leaves room on its disk for a quarter of it. Then writes to
   all of it. */
static unsigned char *fill(void) {
    static char block[1 << 16];
    int file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    snprintf(rest, sizeof rest, "%s.rest", path);
    int other = open(rest, O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (file < 0 || other < 0 || ftruncate(file, HOLE))
        fail("ftruncate");
    off_t filled = 0;
    ssize_t more = 1;
    while (filled < REST_MOST && (more = write(other, block, sizeof block)) > 0)
        filled += more;
    if (ftruncate(other, filled - ROOM))
        fail("ftruncate");
    close(other);
    unsigned char *start = map_at(0, HOLE, PROT_READ | PROT_WRITE, MAP_SHARED, 0);
    scribble(start, 0, HOLE, 20000, 1);
    return start;
}

/* Goes on when there is room. */
static void fill_and_make_room(void) {
    unsigned char *start = fill();
    printf("full: %d\n", msync(start, HOLE, MS_SYNC) ? errno : 0);
    say("kept", sum_of(start, HOLE));
    unlink(rest);
    printf("works: %d\n", msync(start, HOLE, MS_SYNC) ? errno : 0);
    show();
}

static void fill_and_unmap(void) {
    munmap(fill(), HOLE);
    puts("not ended");
}

/* Waits, with a mapping of the file, for another process that maps it. */
static void meet(void) {
    unsigned char *start = map();
    scribble(start, 0, SIZE, 3000, 1);
    char *words[] = {"written", "meet-again", (char *)path, 0};
    pid_t child;
    fflush(stdout);
    if (posix_spawn(&child, "/proc/self/exe", 0, 0, words, environ))
        fail("posix_spawn");
    int status;
    waitpid(child, &status, 0);
    say("of the other", sum_of(start, SIZE));
    say("at last", scribble(start, 0, SIZE, 3000, 3));
}

static void meet_again(void) {
    unsigned char *start = map();
    say("of the first", sum_of(start, SIZE));
    say("of the second", scribble(start, 0, SIZE, 3000, 2));
}

static const struct {
    const char *name;
    void (*run)(void);
} WAYS[] = {{"random", random_writes}, {"exit", leave},     {"exit-at-once", leave_at_once},
            {"kill", die},             {"exec", execute},   {"sync", synchronize},
            {"fork", fork_here},       {"cut", cut},        {"grow", grow},
            {"use", use_descriptor},   {"twice", map_twice}, {"after", map_after},
            {"apart", take_apart},     {"protect", protect}, {"advise", advise},
            {"threads", share},        {"fill", fill_and_make_room}, {"meet", meet},
            {"meet-again", meet_again}, {"fail-once", fail_once},
            {"fail-unmapped", fail_unmapped}, {"fill-unmapped", fill_and_unmap}};

int main(int count, char **words) {
    if (count != 3)
        return 2;
    path = words[2];
    if (strcmp(words[1], "meet-again") && strncmp(words[1], "fill", 4))
        make_file();
    for (size_t way = 0; way < sizeof WAYS / sizeof *WAYS; way++)
        if (!strcmp(words[1], WAYS[way].name))
            WAYS[way].run();
    puts("over");
    return 0;
}
