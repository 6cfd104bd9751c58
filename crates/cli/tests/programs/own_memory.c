/* The changes that a program may make to all that is mapped in it, and where nothing is. The first
   argument names one; see `own_memory.rs`. */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE 4096L
#define BYTES (12L << 20)
#define AREAS 4096

struct area {
    unsigned long start, end;
    char rights[5];
};

static struct area areas[AREAS];

/* Lists what is mapped, without mapping anything for that. */
static int list(struct area *into) {
    static char text[1 << 20];
    int file = open("/proc/self/maps", O_RDONLY), count = 0;
    long got, filled = 0;
    while ((got = read(file, text + filled, sizeof text - 1 - filled)) > 0) filled += got;
    close(file);
    text[filled] = 0;
    for (char *line = text; line && *line && count < AREAS; count++) {
        struct area *area = &into[count];
        sscanf(line, "%lx-%lx %4s", &area->start, &area->end, area->rights);
        line = strchr(line, '\n');
        line = line ? line + 1 : 0;
    }
    return count;
}

static char *map(long bytes, int flags) {
    char *at = mmap(0, bytes, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) {
        perror("mmap");
        exit(3);
    }
    return at;
}

static char *fill(void) {
    char *at = map(BYTES, MAP_PRIVATE);
    for (long page = 0; page < BYTES / PAGE; page++) *(long *)(at + page * PAGE) = page * 77 + 1;
    return at;
}

static int wrong(char *at) {
    int count = 0;
    for (long page = 0; page < BYTES / PAGE; page++)
        count += *(long *)(at + page * PAGE) != page * 77 + 1;
    return count;
}

/* By a system call that nothing can be interposed in. */
static long own_call(long number, long a, long b, long c) {
#ifdef __x86_64__
    long answer;
    __asm__ volatile("syscall" : "=a"(answer) : "a"(number), "D"(a), "S"(b), "d"(c)
                     : "rcx", "r11", "memory");
    return answer;
#else
    return syscall(number, a, b, c);
#endif
}

static long locked_kib(void) {
    char line[256];
    long kib = -1;
    FILE *status = fopen("/proc/self/status", "r");
    while (fgets(line, sizeof line, status)) sscanf(line, "VmLck: %ld", &kib);
    fclose(status);
    return kib;
}

/* Fills memory, locks all there is, and fills more. */
static int lock_all(const char *way, int flags) {
    char *before = fill();
    int answer = !strcmp(way, "library") ? mlockall(flags)
        : !strcmp(way, "number") ? (int)syscall(SYS_mlockall, flags)
        : (int)own_call(SYS_mlockall, flags, 0, 0);
    char *after = fill();
    /* The engine looks at what it was not told of once a second, at least. */
    if (!strcmp(way, "own")) sleep(3);
    int count = wrong(before) + wrong(after);
    printf("answer %d, %d pages wrong, %s\n", answer, count,
           locked_kib() < 200 << 10 ? "little locked" : "much locked");
    return munlockall();
}

/* Locks one range of more than there may be, pieces of it out, and unlocks it. */
static int lock_one(void) {
    char *at = fill(), *other = fill();
    printf("locked %d", mlock(at, BYTES));
    printf(", %ld KiB", locked_kib());
    printf(", %d pages wrong", wrong(at) + wrong(other));
    printf(", again %d", mlock2(at + PAGE, PAGE, MLOCK_ONFAULT));
    printf(", unlocked %d", munlock(at, BYTES));
    printf(", %ld KiB", locked_kib());
    sleep(2);
    printf(", %d pages wrong\n", wrong(fill()) + wrong(at) + wrong(other));
    return 0;
}

/* Locks and unlocks whatever is mapped, a mapping at a time, and then tries worse where nothing
   can be reached: see the Linux Test Project's mlock03. */
static int lock_each(void) {
    char *at = fill();
    int count = list(areas), tried = 0;
    for (int i = 0; i < count; i++) {
        if (strchr(areas[i].rights, 's') || areas[i].end < areas[i].start) continue;
        mlock((void *)areas[i].start, areas[i].end - areas[i].start);
        munlock((void *)areas[i].start, areas[i].end - areas[i].start);
    }
    for (int i = 0; i < count; i++) {
        unsigned long bytes = areas[i].end - areas[i].start;
        char *start = (char *)areas[i].start;
        if (bytes < 1L << 30 || strcmp(areas[i].rights, "---p")) continue;
        tried++;
        if (mprotect(start, PAGE, PROT_READ | PROT_WRITE) != -1) return 4;
        if (mmap(start, PAGE, PROT_READ, MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
            != MAP_FAILED) return 5;
        if (mremap(start, PAGE, 2 * PAGE, MREMAP_MAYMOVE) != MAP_FAILED) return 6;
        if (mremap(at, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, start) != MAP_FAILED) return 7;
        madvise(start, bytes, MADV_POPULATE_WRITE);
        if (munmap(start, bytes)) return 8;
        char *page = map(PAGE, MAP_PRIVATE);
        if (page >= start && page < start + bytes) return 9;
    }
    printf("tried %s, %d pages wrong, %ld KiB\n", tried ? "some" : "none", wrong(at) + wrong(fill()),
           locked_kib());
    return 0;
}

/* The mapped ranges, with neighbours taken together. */
static int cover(struct area *into) {
    int count = list(into), kept = 0;
    for (int i = 0; i < count; i++) {
        if (kept && into[kept - 1].end == into[i].start) into[kept - 1].end = into[i].end;
        else into[kept++] = into[i];
    }
    return kept;
}

static int is_covered(struct area *by, int count, struct area what) {
    for (int i = 0; i < count; i++)
        if (by[i].start <= what.start && what.end <= by[i].end) return 1;
    return 0;
}

/* True if everything that is mapped now lies where something was. */
static int is_within(struct area *before, int count) {
    static struct area now[AREAS];
    int found = cover(now);
    for (int i = 0; i < found; i++)
        if (!is_covered(before, count, now[i])) {
            printf("%lx-%lx is new\n", now[i].start, now[i].end);
            return 0;
        }
    return 1;
}

static int child_of(void (*body)(void *), void *argument) {
    int status;
    fflush(stdout);
    pid_t child = fork();
    if (!child) {
        body(argument);
        _exit(0);
    }
    waitpid(child, &status, 0);
    return WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status) + 1000;
}

static void write_to(void *at) { *(volatile char *)at = 1; }

static int covered;

/* The engine of the child has started when its memory can be used. */
static void look(void *at) {
    int count = wrong(at);
    _exit(count ? 2 : !is_within(areas, covered));
}

/* Unmaps holes of many sizes, forks, and looks for what has come there; then writes there. */
static int stray(void) {
    char *filled = fill();
    char *pages = map(3 * PAGE, MAP_SHARED);
    char *holes[12];
    for (int i = 0; i < 12; i++) holes[i] = map(PAGE << i, i % 2 ? MAP_SHARED : MAP_PRIVATE);
    for (int i = 0; i < 12; i += 2) munmap(holes[i], PAGE << i);
    /* Last, or the kernel could put one of those above here. */
    munmap(pages + PAGE, 2 * PAGE);
    covered = cover(areas);
    printf("mapped in the child: %d\n", child_of(look, filled));
    for (int i = 0; i < 12; i += 2) {
        int ending = child_of(write_to, holes[i]);
        if (ending != SIGSEGV) printf("a write to hole %d: %d\n", i, ending);
    }
    printf("a write beyond a mapping: %d\n", child_of(write_to, pages + PAGE));
    printf("mapped in the parent: %d\n", is_within(areas, covered));
    return wrong(filled);
}

/* The size of a core dump, in steps of 512 MiB. */
static int dump(void) {
    char *at = fill(), line[512];
    unsigned long start = 0, end = 0, dumped = 0;
    FILE *smaps = fopen("/proc/self/smaps", "r");
    while (fgets(line, sizeof line, smaps)) {
        unsigned long from, to;
        if (sscanf(line, "%lx-%lx ", &from, &to) == 2) start = from, end = to;
        if (!strncmp(line, "VmFlags:", 8) && !strstr(line, " dd"))
            dumped += end - start;
    }
    fclose(smaps);
    printf("%lu\n", dumped >> 29);
    return wrong(at);
}

/* Arguments of a clone3 that can't be read, or not to their end. */
static int bad_clone(void) {
    char *at = fill(), *pages = map(2 * PAGE, MAP_PRIVATE);
    munmap(pages + PAGE, PAGE);
    void *bad[] = {(void *)16, pages + PAGE, pages + PAGE - 32, pages + PAGE - 56, (void *)-1};
    for (int i = 0; i < 5; i++) {
        errno = 0;
        long answer = syscall(SYS_clone3, bad[i], 64L);
        printf("%ld %s\n", answer, strerror(errno));
    }
    return wrong(at);
}

/* As much address space as a quarter of what is permitted. */
static int reserve(void) {
    char *at = fill();
    char *large = map(256 << 20, MAP_PRIVATE);
    for (long i = 0; i < 16; i++) large[i << 24] = i;
    printf("%d pages wrong\n", wrong(at) + wrong(fill()));
    return 0;
}

/* A limit of the address space, of the program's own making. */
static int limit(void) {
    char *at = fill();
    struct rlimit limit = {1L << 30, 2L << 30}, found = {0, 0};
    if (setrlimit(RLIMIT_AS, &limit) || getrlimit(RLIMIT_AS, &found)) return 4;
    printf("%ld and %ld MiB", (long)found.rlim_cur >> 20, (long)found.rlim_max >> 20);
    char *large = mmap(0, 256 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    printf(", %s", large == MAP_FAILED ? "nothing more" : "some more");
    large = mmap(0, 1 << 30, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    printf(", %s", large == MAP_FAILED ? "not too much" : "too much");
    printf(", bad %d", setrlimit(RLIMIT_AS, (void *)8));
    printf(", %s\n", strerror(errno));
    covered = cover(areas);
    printf("a child: %d\n", child_of(look, at));
    return wrong(at);
}

int main(int count, char **arguments) {
    static char buffer[4096];
    setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
    const char *what = arguments[1];
    if (!strcmp(what, "lock-all")) return lock_all(arguments[2], atoi(arguments[3]));
    if (!strcmp(what, "lock-one")) return lock_one();
    if (!strcmp(what, "lock-each")) return lock_each();
    if (!strcmp(what, "stray")) return stray();
    if (!strcmp(what, "stray-exec")) return execl(arguments[0], arguments[0], "stray", NULL);
    if (!strcmp(what, "dump")) return dump();
    if (!strcmp(what, "bad-clone")) return bad_clone();
    if (!strcmp(what, "reserve")) return reserve();
    if (!strcmp(what, "limit")) return limit();
    return count;
}
