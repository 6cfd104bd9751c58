/* Maps a file in many ways and checks each byte, whatever else is done to the mapping. Prints what
   it finds, which is the same whoever keeps the pages. Words: the way, and a file to make. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "own_call.h"

enum { PAGE = 4096, PAGES = 6000, TAIL = 1234 };
static const size_t SIZE = (size_t)PAGES * PAGE + TAIL, WHOLE = (size_t)(PAGES + 1) * PAGE;
static const char *path;

static void fail(const char *what) {
    printf("%s: %s\n", what, strerror(errno));
    exit(1);
}

static unsigned char byte_at(size_t offset) {
    size_t word = (offset / 8 + 1) * 0x9E3779B97F4A7C15u;
    /* Every eleventh page is zeros. */
    return offset / PAGE % 11 == 5 ? 0 : word >> (offset % 8 * 8) ^ offset / PAGE;
}

static void make_file(size_t size) {
    int file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    unsigned char *block = malloc(PAGE);
    for (size_t offset = 0; offset < size; offset += PAGE) {
        size_t bytes = size - offset < PAGE ? size - offset : PAGE;
        for (size_t at = 0; at < bytes; at++)
            block[at] = byte_at(offset + at);
        if (write(file, block, bytes) != (ssize_t)bytes)
            fail("write");
    }
    free(block);
    close(file);
}

/* The file is closed at once: the mapping does not need it. */
static unsigned char *map_at(void *place, size_t bytes, int rights, int kind, size_t offset) {
    int file = open(path, O_RDONLY);
    unsigned char *start = mmap(place, bytes, rights, kind, file, offset);
    if (start == MAP_FAILED)
        fail("mmap");
    close(file);
    return start;
}

static unsigned char *map(int rights, int kind) {
    return map_at(0, SIZE, rights, kind, 0);
}

/* The number of bytes that are not as they should be; `changed` says which pages hold something
   else, and are left out. */
static size_t wrong(const unsigned char *start, size_t offset, size_t bytes,
                    int (*changed)(size_t page)) {
    size_t count = 0;
    for (size_t at = 0; at < bytes; at++) {
        size_t place = offset + at;
        if (changed && changed(place / PAGE)) {
            at += PAGE - 1 - place % PAGE;
            continue;
        }
        count += start[at] != (place < SIZE ? byte_at(place) : 0);
    }
    return count;
}

static int is_third(size_t page) {
    return page % 3 == 0;
}

static void say(const char *what, size_t count) {
    printf("%s: %zu\n", what, count);
    fflush(stdout);
}

static void read_all(void) {
    unsigned char *shared = map(PROT_READ, MAP_SHARED), *other = map(PROT_READ, MAP_PRIVATE);
    say("shared", wrong(shared, 0, WHOLE, 0));
    say("private", wrong(other, 0, WHOLE, 0));
    size_t offset = 777 * PAGE;
    unsigned char *part = map_at(0, 100 * PAGE + 5, PROT_READ, MAP_SHARED, offset);
    say("part", wrong(part, offset, 101 * PAGE, 0));
    size_t count = 0, place = 12345;
    for (int turn = 0; turn < 20000; turn++) {
        place = place * 6364136223846793005u + 1442695040888963407u;
        size_t at = (place >> 20) % SIZE;
        count += shared[at] != byte_at(at);
    }
    say("here and there", count);
    for (size_t at = SIZE; at-- > 0; at -= at % PAGE)
        count += shared[at] != byte_at(at);
    say("backwards", count);
    int file = open("/dev/null", O_WRONLY), pipes[2];
    say("written", write(file, shared + 5, SIZE - 5) - (SIZE - 5));
    if (pipe(pipes) || write(pipes[1], shared + 4000 * PAGE + 9, 10000) != 10000)
        fail("write");
    unsigned char got[10000];
    for (size_t at = 0; at < sizeof got;)
        at += read(pipes[0], got + at, sizeof got - at);
    say("by a pipe", wrong(got, 4000 * PAGE + 9, sizeof got, 0));
    printf("msync %d\n", msync(shared, WHOLE, MS_SYNC));
}

static void change_thirds(unsigned char *start, int with) {
    for (size_t page = 0; page < PAGES; page += 3)
        memset(start + page * PAGE, with + page, PAGE);
}

static size_t wrong_thirds(const unsigned char *start, int with) {
    size_t count = 0;
    for (size_t page = 0; page < PAGES; page += 3)
        for (size_t at = 0; at < PAGE; at++)
            count += start[page * PAGE + at] != (unsigned char)(with + page);
    return count;
}

static void change(void) {
    unsigned char *start = map(PROT_READ | PROT_WRITE, MAP_PRIVATE);
    change_thirds(start, 7);
    say("others", wrong(start, 0, SIZE, is_third));
    say("changed", wrong_thirds(start, 7));
    start[SIZE] = 'x';
    /* A page that is changed to zeros is not what the file has. */
    memset(start + 10 * PAGE, 0, PAGE);
    say("others again", wrong(start + 11 * PAGE, 11 * PAGE, SIZE - 11 * PAGE, is_third));
    size_t count = 0;
    for (size_t at = 0; at < PAGE; at++)
        count += start[10 * PAGE + at] != 0;
    say("zeros", count);
    printf("behind the end %c\n", start[SIZE]);
    printf("dontneed %d\n", madvise(start + 9 * PAGE, 300 * PAGE, MADV_DONTNEED));
    say("given up", wrong(start + 9 * PAGE, 9 * PAGE, 300 * PAGE, 0));
    start[12 * PAGE] ^= 1;
    madvise(start + 12 * PAGE, PAGE, MADV_DONTNEED);
    say("given up again", wrong(start + 12 * PAGE, 12 * PAGE, PAGE, 0));
    unsigned char *other = map(PROT_READ, MAP_SHARED);
    say("the file", wrong(other, 0, WHOLE, 0));
}

enum { COPIED = 768, BEFORE_COPY = 99 };

/* What is changed in a part of the file, and what is not, after memory has been short. */
static void say_copy(const char *who, const unsigned char *start, unsigned char value) {
    size_t changed = 0, bytes = (size_t)12 << 20;
    unsigned char *much = malloc(bytes);
    memset(much, value, bytes);
    for (size_t page = 0; page < COPIED; page += 3)
        for (size_t at = 0; at < PAGE; at++)
            changed += start[page * PAGE + at] != value;
    say(who, wrong(start, BEFORE_COPY * PAGE, COPIED * PAGE, is_third));
    say("changed", changed);
    free(much);
}

/* A private mapping to write to, as of an archive of classes, in reserved space; a small one, a
   large one, and one at no place of its own. */
static void copy(void) {
    int rights = PROT_READ | PROT_WRITE;
    int kind = MAP_PRIVATE | MAP_FIXED;
    unsigned char *room = mmap(0, 2 * WHOLE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    unsigned char *start = map_at(room, COPIED * PAGE, rights, kind, BEFORE_COPY * PAGE);
    unsigned char *small = map_at(start + COPIED * PAGE, 100 * PAGE, rights, kind, 0);
    unsigned char *large = map_at(room + WHOLE, SIZE, rights, kind, 0);
    unsigned char *other = map_at(0, COPIED * PAGE, rights, MAP_PRIVATE, 0);
    small[0] = large[0] = other[0] = 5;
    for (size_t page = 0; page < COPIED; page += 3)
        memset(start + page * PAGE, 7, PAGE);
    say_copy("own", start, 7);
    pid_t child = fork();
    for (size_t page = 0; page < COPIED; page += 3)
        memset(start + page * PAGE, child ? 8 : 9, PAGE);
    if (child == 0) {
        say_copy("child's", start, 9);
        _exit(0);
    }
    waitpid(child, 0, 0);
    say_copy("parent's", start, 8);
    say("small", wrong(small, 0, 100 * PAGE, is_third));
    say("large", wrong(large, 0, WHOLE, is_third));
    say("other", wrong(other, 0, COPIED * PAGE, is_third));
    say("the file", wrong(map(PROT_READ, MAP_SHARED), 0, WHOLE, 0));
}

/* A child has a file that has no name any more, and whose mapping no other process has. */
static void orphan(void) {
    int rights = PROT_READ | PROT_WRITE, pipes[2];
    size_t bytes = COPIED * PAGE;
    unsigned char *room = mmap(0, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    unsigned char *start = map_at(room, bytes, rights, MAP_PRIVATE | MAP_FIXED, 0);
    unlink(path);
    memset(start, 7, PAGE);
    if (pipe(pipes))
        fail("pipe");
    if (fork() == 0) {
        if (fork() != 0)
            _exit(0);
        size_t count = wrong(start, 0, bytes, is_third) + (start[0] != 7);
        _exit(write(pipes[1], &count, sizeof count) != sizeof count);
    }
    close(pipes[1]);
    size_t count = 0;
    ssize_t got = read(pipes[0], &count, sizeof count);
    printf("the child has said %zd, wrong %zu\n", got, count);
}

/* Pages that are there at once are not those of the file from then on. */
static void populate(void) {
    size_t bytes = COPIED * PAGE, before = 0;
    int file = open(path, O_RDWR), rights = PROT_READ | PROT_WRITE;
    unsigned char *room = mmap(0, 2 * bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int kind = MAP_PRIVATE | MAP_FIXED | MAP_POPULATE;
    unsigned char *start = mmap(room, bytes, rights, kind, file, 0);
    unsigned char *other = map_at(room + bytes, bytes, rights, kind, 0);
    for (size_t page = 0; page < COPIED; page += 3)
        before += pwrite(file, "changed", 7, page * PAGE) != 7;
    say("not written", before);
    say("own", wrong(start, 0, bytes, 0));
    say("other", wrong(other, 0, bytes, 0));
    printf("remove: %d", madvise(other, PAGE, MADV_REMOVE));
    printf(" %s\n", strerror(errno));
}

/* The same of a file that is opened for writing later. */
static void populate_early(void) {
    size_t bytes = COPIED * PAGE, before = 0;
    unsigned char *room = mmap(0, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int kind = MAP_PRIVATE | MAP_FIXED | MAP_POPULATE;
    unsigned char *start = map_at(room, bytes, PROT_READ | PROT_WRITE, kind, 0);
    int file = open(path, O_RDWR);
    for (size_t page = 0; page < COPIED; page += 3)
        before += pwrite(file, "changed", 7, page * PAGE) != 7;
    say("not written", before);
    say("own", wrong(start, 0, bytes, 0));
}

static void fork_here(void) {
    unsigned char *start = map(PROT_READ | PROT_WRITE, MAP_PRIVATE);
    unsigned char *shared = map(PROT_READ, MAP_SHARED);
    change_thirds(start, 7);
    say("before", wrong(shared, 0, WHOLE / 3, 0));
    for (int turn = 0; turn < 2; turn++) {
        pid_t child = fork();
        if (child == 0) {
            size_t count = wrong(start, 0, SIZE, is_third) + wrong_thirds(start, 7 + turn);
            count += wrong(shared, 0, WHOLE, 0);
            change_thirds(start, 99);
            count += wrong(start, 0, SIZE, is_third) + wrong_thirds(start, 99);
            madvise(start, 30 * PAGE, MADV_DONTNEED);
            count += wrong(start, 0, 30 * PAGE, 0);
            unsigned char *more = map(PROT_READ, MAP_SHARED);
            count += wrong(more, 0, WHOLE, 0);
            say("in the child", count);
            exit(count > 0);
        }
        change_thirds(start, 8 + turn);
        say("in the parent", wrong(start, 0, SIZE, is_third) + wrong_thirds(start, 8 + turn));
        int status;
        waitpid(child, &status, 0);
        printf("status %d\n", status);
        say("after", wrong(start, 0, SIZE, is_third) + wrong_thirds(start, 8 + turn));
        say("shared after", wrong(shared, 0, WHOLE, 0));
    }
}

static void take_apart(void) {
    unsigned char *start = map(PROT_READ | PROT_WRITE, MAP_PRIVATE);
    change_thirds(start, 3);
    /* A hole, something else in the middle, and both ends. */
    munmap(start + 1000 * PAGE, 500 * PAGE);
    unsigned char *other = mmap(start + 2000 * PAGE, 64 * PAGE, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    size_t count = 0;
    for (size_t at = 0; at < 64 * PAGE; at++)
        count += other[at] != 0;
    memset(other, 1, 64 * PAGE);
    say("something else", count);
    map_at(start + 2020 * PAGE, 10 * PAGE, PROT_READ, MAP_PRIVATE | MAP_FIXED, 5 * PAGE);
    say("the file in it", wrong(start + 2020 * PAGE, 5 * PAGE, 10 * PAGE, 0));
    say("left", wrong(start, 0, 1000 * PAGE, is_third));
    say("middle", wrong(start + 1500 * PAGE, 1500 * PAGE, 500 * PAGE, is_third));
    say("right", wrong(start + 2064 * PAGE, 2064 * PAGE, SIZE - 2064 * PAGE, is_third));
    /* To another place, then shorter, then longer. */
    size_t offset = 3000 * PAGE, bytes = 2000 * PAGE;
    unsigned char *place = mmap(0, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    unsigned char *moved =
        mremap(start + offset, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, place);
    say("moved", wrong(moved, offset, bytes, is_third) + (moved != place));
    moved = mremap(moved, bytes, 1000 * PAGE, 0);
    say("shorter", wrong(moved, offset, 1000 * PAGE, is_third));
    unsigned char *shared = map_at(0, 1000 * PAGE, PROT_READ, MAP_SHARED, 3 * PAGE);
    say("first", wrong(shared, 3 * PAGE, 1000 * PAGE, 0));
    unsigned char *longer = mremap(shared, 1000 * PAGE, 5000 * PAGE, MREMAP_MAYMOVE);
    say("longer", wrong(longer, 3 * PAGE, 5000 * PAGE, 0));
    longer = mremap(longer, 5000 * PAGE, WHOLE - 3 * PAGE, MREMAP_MAYMOVE);
    say("to the end", wrong(longer, 3 * PAGE, WHOLE - 3 * PAGE, 0));
    munmap(longer, WHOLE);
    shared = map(PROT_READ, MAP_SHARED);
    say("anew", wrong(shared, 0, WHOLE, 0));
}

static sigjmp_buf out;
static volatile int signalled;

static void jump(int number) {
    signalled = number;
    siglongjmp(out, 1);
}

/* The signal that a touch ends with; zero: none. */
static int touch(unsigned char *at, int is_write) {
    struct sigaction action = {.sa_handler = jump}, bus, segment;
    sigaction(SIGBUS, &action, &bus);
    sigaction(SIGSEGV, &action, &segment);
    signalled = 0;
    if (!sigsetjmp(out, 1)) {
        if (is_write)
            *(volatile unsigned char *)at = 1;
        else
            *(volatile unsigned char *)at;
    }
    sigaction(SIGBUS, &bus, 0);
    sigaction(SIGSEGV, &segment, 0);
    return signalled;
}

static int change_rights(unsigned char *start, size_t bytes, int rights) {
    return mprotect(start, bytes, rights) ? errno : 0;
}

static void protect(void) {
    unsigned char *start = map(PROT_READ, MAP_PRIVATE);
    say("closed", wrong(start, 0, WHOLE, 0));
    printf("opened: %d\n", change_rights(start, SIZE, PROT_READ | PROT_WRITE));
    change_thirds(start, 5);
    say("others", wrong(start, 0, SIZE, is_third));
    say("changed", wrong_thirds(start, 5));
    printf("hidden: %d\n", change_rights(start + 50 * PAGE, 50 * PAGE, PROT_NONE));
    printf("signal %d\n", touch(start + 60 * PAGE, 0));
    printf("shown: %d\n", change_rights(start + 50 * PAGE, 50 * PAGE, PROT_READ));
    printf("signal %d, %d\n", touch(start + 60 * PAGE, 0), touch(start + 60 * PAGE, 1));
    say("still", wrong(start, 0, SIZE, is_third) + wrong_thirds(start, 5));
    unsigned char *shared = map(PROT_READ, MAP_SHARED);
    printf("shared: %d\n", change_rights(shared, SIZE, PROT_READ | PROT_WRITE));
    printf("as it is: %d\n", change_rights(shared, SIZE, PROT_READ));
    printf("hidden: %d\n", change_rights(shared, 40 * PAGE, PROT_NONE));
    printf("signal %d\n", touch(shared + 30 * PAGE, 0));
    printf("shown: %d\n", change_rights(shared, 40 * PAGE, PROT_READ));
    say("shared", wrong(shared, 0, WHOLE, 0));
}

static void write_closed(void) {
    unsigned char *shared = map(PROT_READ, MAP_SHARED), *own = map(PROT_READ, MAP_PRIVATE);
    printf("absent: signal %d, %d\n", touch(shared + 9 * PAGE, 1), touch(own + 9 * PAGE, 1));
    say("shared", wrong(shared, 0, WHOLE, 0));
    printf("present: signal %d, %d\n", touch(shared + WHOLE - 1, 1), touch(own, 1));
    say("own", wrong(own, 0, WHOLE, 0));
    printf("present: signal %d, %d\n", touch(shared + 90 * PAGE, 1), touch(own + WHOLE - 1, 1));
    say("shared again", wrong(shared, 0, WHOLE, 0));
    say("own again", wrong(own, 0, WHOLE, 0));
    if (fork() == 0) {
        printf("in the child: signal %d, %d\n", touch(shared + 3, 1), touch(own + 7777, 1));
        exit(0);
    }
    wait(0);
}

static void go_beyond(void) {
    unsigned char *start = map_at(0, WHOLE + 40 * PAGE, PROT_READ, MAP_SHARED, 0);
    say("all", wrong(start, 0, WHOLE, 0));
    printf("behind: signal %d, %d\n", touch(start + WHOLE, 0), touch(start + WHOLE + 7 * PAGE, 0));
    int file = open("/dev/zero", O_RDONLY), sink = open("/dev/null", O_WRONLY), pipes[2];
    if (pipe(pipes))
        fail("pipe");
    ssize_t count = write(pipes[1], start + WHOLE + 9 * PAGE, 10);
    printf("a system call: %zd, %d\n", count, errno == EFAULT);
    close(file);
    close(sink);
    unsigned char *far = map_at(0, 8 * PAGE, PROT_READ, MAP_PRIVATE, WHOLE + 8 * PAGE);
    printf("nothing: signal %d\n", touch(far + PAGE, 0));
    /* The file grows. */
    file = open(path, O_WRONLY | O_APPEND);
    unsigned char more[20 * PAGE];
    for (size_t at = 0; at < sizeof more; at++)
        more[at] = (unsigned char)(at / 7);
    if (write(file, more, sizeof more) != (ssize_t)sizeof more || fsync(file))
        fail("append");
    close(file);
    /* That it has is seen at a touch of what is new. */
    size_t wrongs = start[WHOLE + 4 * PAGE] != more[WHOLE + 4 * PAGE - SIZE];
    for (size_t at = 0; at < sizeof more; at++) {
        size_t place = SIZE + at, page = place / PAGE;
        /* What was touched behind the end stays as it is. */
        if (page != PAGES + 1 && page != PAGES + 8 && page != PAGES + 10)
            wrongs += start[place] != more[at];
    }
    say("more of it", wrongs);
}

static void advise(void) {
    unsigned char *shared = map(PROT_READ, MAP_SHARED);
    unsigned char *own = map(PROT_READ | PROT_WRITE, MAP_PRIVATE);
    int advices[] = {MADV_NORMAL, MADV_RANDOM, MADV_SEQUENTIAL, MADV_WILLNEED, MADV_DONTNEED};
    for (int number = 0; number < 5; number++) {
        int first = madvise(shared, SIZE, advices[number]);
        int second = posix_madvise(own, SIZE, number);
        say("after advice", wrong(shared, 0, SIZE / 2, 0) + wrong(own + SIZE / 2, SIZE / 2, SIZE / 2, 0));
        printf("%d, %d, %d\n", number, first, second);
    }
    int first = madvise(own, SIZE, MADV_FREE) ? errno : 0;
    int second = madvise(own, SIZE, MADV_WIPEONFORK) ? errno : 0;
    printf("free %d, wipe %d\n", first, second);
    say("filled", wrong(map(PROT_READ, MAP_SHARED | MAP_POPULATE), 0, WHOLE, 0));
    say("kept", wrong(own, 0, SIZE, 0));
}

static unsigned char *common;

static void *walk(void *start) {
    size_t place = (size_t)start, count = 0;
    for (int turn = 0; turn < 30000; turn++) {
        place = place * 6364136223846793005u + 1442695040888963407u;
        size_t at = (place >> 20) % SIZE;
        count += common[at] != byte_at(at);
    }
    return (void *)count;
}

static void share(void) {
    common = map(PROT_READ, MAP_SHARED);
    pthread_t threads[4];
    for (size_t number = 0; number < 4; number++)
        pthread_create(&threads[number], 0, walk, (void *)(number * 7919 + 1));
    size_t count = 0;
    for (int number = 0; number < 4; number++) {
        void *wrongs;
        pthread_join(threads[number], &wrongs);
        count += (size_t)wrongs;
    }
    say("by four threads", count);
}

static void lock(void) {
    unsigned char *start = map(PROT_READ, MAP_SHARED);
    say("before", wrong(start, 0, 900 * PAGE, 0));
    printf("locked: %d\n", mlock(start + 100 * PAGE, 200 * PAGE));
    say("locked", wrong(start, 0, WHOLE, 0));
    munlock(start + 100 * PAGE, 200 * PAGE);
    say("unlocked", wrong(start, 0, WHOLE, 0));
}

/* A child that nobody was told of has the right bytes or none. */
static void fork_by_call(void) {
    unsigned char *shared = map(PROT_READ, MAP_SHARED);
    unsigned char *own = map(PROT_READ | PROT_WRITE, MAP_PRIVATE);
    change_thirds(own, 7);
    long child = own_call(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (child == 0) {
        size_t count = 0;
        for (size_t page = 0; page < PAGES; page++) {
            if (!touch(shared + page * PAGE, 0))
                count += wrong(shared + page * PAGE, page * PAGE, PAGE, 0);
            if (touch(own + page * PAGE, 0))
                continue;
            for (size_t at = page * PAGE; at < (page + 1) * PAGE; at++)
                count += own[at] != (is_third(page) ? (unsigned char)(7 + page) : byte_at(at));
        }
        _exit(count > 0);
    }
    int status;
    waitpid(child, &status, 0);
    printf("status %d\n", status);
    say("in the parent", wrong(own, 0, SIZE, is_third) + wrong_thirds(own, 7));
}

/* What can't be managed. */
static void pass(void) {
    int file = open(path, O_RDWR);
    unsigned char *shared = mmap(0, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    unsigned char *seen = mmap(0, SIZE, PROT_READ, MAP_SHARED, file, 0);
    shared[5 * PAGE + 1] ^= 0xff;
    printf("seen: %d\n", seen[5 * PAGE + 1] == (byte_at(5 * PAGE + 1) ^ 0xff));
    unsigned char twenty[20];
    memset(twenty, 42, sizeof twenty);
    if (pwrite(file, twenty, sizeof twenty, 70 * PAGE) != sizeof twenty)
        fail("pwrite");
    printf("written: %d\n", memcmp(seen + 70 * PAGE, twenty, sizeof twenty));
    unsigned char *code = map_at(0, SIZE, PROT_READ | PROT_EXEC, MAP_PRIVATE, 0);
    printf("code: %d\n", memcmp(code, shared, SIZE));
    int memory = memfd_create("memory", 0);
    if (ftruncate(memory, 64 * PAGE))
        fail("ftruncate");
    unsigned char *one = mmap(0, 64 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
    unsigned char *two = mmap(0, 64 * PAGE, PROT_READ, MAP_SHARED, memory, 0);
    one[9] = 9;
    printf("memory: %d\n", two[9]);
}

/* The file is cut while it is mapped. */
static void cut(void) {
    unsigned char *start = map(PROT_READ, MAP_SHARED);
    say("all", wrong(start, 0, WHOLE, 0));
    if (truncate(path, 1000 * PAGE + 17))
        fail("truncate");
    /* Pages that are in memory may stay there for a while. */
    size_t page = 1100;
    while (page < PAGES && !touch(start + page * PAGE, 0))
        page += 50;
    printf("behind: signal %d\n", touch(start + page * PAGE, 0));
    say("left", wrong(start, 0, 1000 * PAGE + 17, 0));
}

static const struct {
    const char *name;
    void (*run)(void);
} WAYS[] = {{"read", read_all}, {"change", change},       {"fork", fork_here}, {"apart", take_apart},
            {"protect", protect}, {"closed", write_closed}, {"beyond", go_beyond},
            {"advise", advise}, {"threads", share},       {"lock", lock},      {"pass", pass},
            {"cut", cut},       {"fork-call", fork_by_call}, {"copy", copy},
            {"orphan", orphan}, {"populate", populate},
            {"populate-early", populate_early}};

int main(int count, char **words) {
    if (count != 3)
        return 2;
    path = words[2];
    make_file(SIZE);
    for (size_t way = 0; way < sizeof WAYS / sizeof *WAYS; way++)
        if (!strcmp(words[1], WAYS[way].name))
            WAYS[way].run();
    puts("over");
    return 0;
}
