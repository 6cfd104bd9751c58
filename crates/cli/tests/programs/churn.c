/* churn SEED MILLISECONDS THREADS MIB: changes its address space at random, from several threads,
 * and checks each page against what it wrote.
 *
 * Each thread has areas of its own: pages side by side, each with the number that it was filled from
 * (zero: none), its rights, and whether the kernel may have emptied it. One step in a few dozen
 * forks: the child checks what it got, changes some of it, and may fork, while its parent goes on.
 * What else it checks are the areas of another thread that is kept between two steps meanwhile: what
 * it did before has returned, so that the child may rely on it. All others go on during the fork.
 *
 * Ends with status 0 and a line of counts, or with 99 and a line on the first difference. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PAGE = 4096, WORDS = 512, AREAS_MAX = 40, THREADS_MAX = 64, DIFFERS = 99, CHILD_IS_RIGHT = 7 };
enum { NONE = PROT_NONE, READ = PROT_READ, BOTH = PROT_READ | PROT_WRITE };
enum { PRIVATE = MAP_PRIVATE | MAP_ANONYMOUS };

struct page {
    uint64_t number;     /* What it was filled from; zero: zeros. */
    unsigned char rights;
    unsigned char is_freed; /* The kernel may have emptied it since. */
};

struct area {
    char *start;
    int count;
    int is_mixed; /* It may be of several mappings. */
    struct page *pages;
};

struct worker {
    uint64_t random;
    int id, file, count;
    struct area areas[AREAS_MAX];
    long steps, checks, forks;
    const char *doing;
    pthread_mutex_t turn; /* Held for each step. */
};

/* Some pages of an area. */
struct part {
    struct area *area;
    int first, count;
    char *start;
    size_t bytes;
};

static struct worker workers[THREADS_MAX];
static int worker_count, pages_max;
static uint64_t seed;
static struct timespec end;

static uint64_t below(struct worker *self, uint64_t bound) {
    uint64_t mixed = self->random += 0x9E3779B97F4A7C15u;
    mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9u;
    mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EBu;
    return (mixed ^ mixed >> 31) % bound;
}

static void differ(struct worker *self, const char *what, const void *at, uint64_t want, uint64_t got) {
    dprintf(1, "BAD seed %lu, thread %d, step %ld (%s), process %d: %s at %p: %#lx in place of %#lx\n",
            seed, self->id, self->steps, self->doing, getpid(), what, at, got, want);
    if (getenv("CHURN_STOP")) pause();
    _exit(DIFFERS);
}

/* Of a call that must succeed. */
static void require(struct worker *self, int is_done, const char *what, const void *at) {
    if (!is_done) differ(self, what, at, 0, errno);
}

/* One page in four does not compress, one is the same word again and again, others in between. */
static uint64_t word(uint64_t number, int index) {
    switch (number ? number % 4 : 1) {
    case 0: return number * (2 * index + 1) ^ number >> 7;
    case 1: return number;
    default: return number + index % 16;
    }
}

static void fill(char *page, uint64_t number) {
    for (int i = 0; i < WORDS; i++) ((uint64_t *)page)[i] = word(number, i);
}

static int is_empty(const char *page) {
    const volatile uint64_t *words = (const volatile uint64_t *)page;
    for (int i = 0; i < WORDS; i++)
        if (words[i]) return 0;
    return 1;
}

static void check(struct worker *self, struct area *area, int index, int is_thorough) {
    struct page page = area->pages[index];
    if (page.rights == NONE) return;
    const char *start = area->start + (size_t)index * PAGE;
    const volatile uint64_t *words = (const volatile uint64_t *)start;
    for (int i = 0; i < WORDS; i += is_thorough ? 1 : 73) {
        uint64_t got = words[i], want = word(page.number, i);
        if (got == want) continue;
        /* Emptied between two words, perhaps: all of it is empty then. */
        if (page.is_freed && is_empty(start)) break;
        differ(self, "contents", (const void *)&words[i], want, got);
    }
    self->checks++;
}

static void check_some(struct worker *self, struct worker *whose, int times, int is_thorough) {
    for (int i = 0; i < times && whose->count; i++) {
        struct area *area = &whose->areas[below(self, whose->count)];
        check(self, area, below(self, area->count), is_thorough);
    }
}

static void write_page(struct worker *self, struct area *area, int index) {
    struct page *page = &area->pages[index];
    if (page->rights != BOTH) return;
    page->number = below(self, UINT64_MAX) + 1;
    page->is_freed = 0;
    fill(area->start + (size_t)index * PAGE, page->number);
}

static void write_some(struct worker *self, int times) {
    for (int i = 0; i < times && self->count; i++) {
        struct area *area = &self->areas[below(self, self->count)];
        write_page(self, area, below(self, area->count));
    }
}

static struct area *add(struct worker *self, char *start, int count, int is_mixed) {
    struct area *area = &self->areas[self->count++];
    *area = (struct area){start, count, is_mixed, calloc(count, sizeof *area->pages)};
    for (int i = 0; i < count; i++) area->pages[i].rights = BOTH;
    return area;
}

static void empty(struct part part, int rights) {
    for (int i = part.first; i < part.first + part.count; i++) {
        part.area->pages[i] = (struct page){0, part.area->pages[i].rights, 0};
        if (rights >= 0) part.area->pages[i].rights = rights;
    }
}

/* Takes a part out of its area, of which what is before and what is behind are left. */
static void cut(struct worker *self, struct part part) {
    struct area *area = part.area;
    int behind = area->count - part.first - part.count;
    if (behind) {
        struct area *rest = add(self, part.start + part.bytes, behind, area->is_mixed);
        memcpy(rest->pages, area->pages + part.first + part.count, behind * sizeof *rest->pages);
    }
    area->count = part.first;
    if (area->count) return;
    free(area->pages);
    *area = self->areas[--self->count];
}

static int total(struct worker *self) {
    int count = 0;
    for (int i = 0; i < self->count; i++) count += self->areas[i].count;
    return count;
}

static int has_room(struct worker *self, int areas, int pages) {
    return self->count + areas <= AREAS_MAX && total(self) + pages <= pages_max;
}

/* The operations: each on a part that was drawn. */

static void map(struct worker *self, struct part drawn) {
    (void)drawn;
    int count = 1 + below(self, below(self, 4) ? 64 : 700), rights = below(self, 8) ? BOTH : NONE;
    if (!has_room(self, 1, count)) return;
    int flags = PRIVATE | (below(self, 6) ? 0 : MAP_POPULATE) | (below(self, 4) ? 0 : MAP_NORESERVE);
    char *start = mmap(0, (size_t)count * PAGE, rights, flags, -1, 0);
    require(self, start != MAP_FAILED, "mmap", 0);
    struct area *area = add(self, start, count, 0);
    for (int i = 0; i < count; i++) area->pages[i].rights = rights;
}

static void write_part(struct worker *self, struct part part) {
    for (int i = 0; i < part.count && i < 40; i++) write_page(self, part.area, part.first + i);
}

static void check_part(struct worker *self, struct part part) {
    for (int i = 0; i < part.count && i < 60; i++)
        check(self, part.area, part.first + i, i % 8 == 0);
}

static void unmap(struct worker *self, struct part part) {
    if (!has_room(self, 1, 0)) return;
    require(self, !munmap(part.start, part.bytes), "munmap", part.start);
    cut(self, part);
}

/* To another size, perhaps elsewhere. */
static void resize(struct worker *self, struct part part) {
    struct area *area = part.area;
    int before = area->count, count = 1 + below(self, 2 * before);
    if (area->is_mixed || !has_room(self, 0, count - before)) return;
    size_t bytes = (size_t)before * PAGE;
    char *start = mremap(area->start, bytes, (size_t)count * PAGE, MREMAP_MAYMOVE);
    require(self, start != MAP_FAILED, "mremap", area->start);
    struct page *pages = calloc(count, sizeof *pages);
    for (int i = 0; i < count; i++) pages[i] = i < before ? area->pages[i] : (struct page){0, area->pages[0].rights, 0};
    free(area->pages);
    area->start = start, area->count = count, area->pages = pages;
}

/* To a place of its own. What is left is a hole, pages that are empty, or a new mapping. */
static void move(struct worker *self, struct part part) {
    struct area *area = part.area;
    if (area->is_mixed) part.count = 1, part.bytes = PAGE;
    if (!has_room(self, 2, part.count)) return;
    int kind = below(self, 3), flags = MREMAP_MAYMOVE | MREMAP_FIXED | (kind == 1 ? MREMAP_DONTUNMAP : 0);
    char *place = mmap(0, part.bytes, NONE, PRIVATE, -1, 0);
    require(self, place != MAP_FAILED, "mmap of a place", 0);
    char *start = mremap(part.start, part.bytes, part.bytes, flags, place);
    require(self, start == place, "mremap to a place", part.start);
    struct area *moved = add(self, start, part.count, 0);
    memcpy(moved->pages, area->pages + part.first, part.count * sizeof *moved->pages);
    if (kind == 2) {
        /* Unless another thread was quicker to have it. */
        char *filled = mmap(part.start, part.bytes, BOTH, PRIVATE | MAP_FIXED_NOREPLACE, -1, 0);
        require(self, filled == part.start || errno == EEXIST, "mmap of a hole", part.start);
        if (filled != part.start) kind = 0;
        area->is_mixed = 1;
    }
    kind == 0 ? cut(self, part) : empty(part, kind == 1 ? -1 : BOTH);
}

static void map_over(struct worker *self, struct part part) {
    char *start = mmap(part.start, part.bytes, BOTH, PRIVATE | MAP_FIXED, -1, 0);
    require(self, start == part.start, "mmap over another", part.start);
    empty(part, BOTH);
    part.area->is_mixed = 1;
}

static void discard(struct worker *self, struct part part) {
    require(self, !madvise(part.start, part.bytes, MADV_DONTNEED), "MADV_DONTNEED", part.start);
    empty(part, -1);
}

static void let_go(struct worker *self, struct part part) {
    require(self, !madvise(part.start, part.bytes, MADV_FREE), "MADV_FREE", part.start);
    for (int i = part.first; i < part.first + part.count; i++) part.area->pages[i].is_freed = 1;
}

/* Advice that changes no contents, whether the kernel takes it or not. */
static void advise(struct worker *self, struct part part) {
    static const int ADVICE[] = {
        MADV_WILLNEED, MADV_HUGEPAGE,  MADV_NOHUGEPAGE, 20 /* COLD */,          21 /* PAGEOUT */,       MADV_SEQUENTIAL,
        MADV_RANDOM,   MADV_DONTDUMP, MADV_MERGEABLE,  22 /* POPULATE_READ */, 23 /* POPULATE_WRITE */, 25 /* COLLAPSE */};
    part.area->is_mixed = 1;
    madvise(part.start, part.bytes, ADVICE[below(self, sizeof ADVICE / sizeof *ADVICE)]);
}

static void protect(struct worker *self, struct part part) {
    static const int RIGHTS[] = {BOTH, BOTH, BOTH, READ, NONE};
    int rights = RIGHTS[below(self, 5)];
    require(self, !mprotect(part.start, part.bytes, rights), "mprotect", part.start);
    for (int i = part.first; i < part.first + part.count; i++) part.area->pages[i].rights = rights;
    part.area->is_mixed = 1;
}

/* To a file, and back. */
static void input_and_output(struct worker *self, struct part part) {
    if (part.count > 100) part.count = 100, part.bytes = 100 * PAGE;
    struct page *pages = part.area->pages + part.first;
    int readable = 0, is_stable = 1;
    while (readable < part.count && pages[readable].rights != NONE) readable++;
    for (int i = 0; i < part.count; i++) is_stable &= pages[i].rights == BOTH && !pages[i].is_freed;
    ssize_t written = pwrite(self->file, part.start, part.bytes, 0), want = (ssize_t)readable * PAGE;
    /* Of what can be read in part, some may be written. */
    int is_refused = readable == 0 && written == -1 && errno == EFAULT;
    if (!is_refused && (written > want || (readable == part.count && written != want)))
        differ(self, "pwrite", part.start, want, written);
    if (!is_stable) return;
    memset(part.start, 0x5a, part.bytes);
    ssize_t got = pread(self->file, part.start, part.bytes, 0);
    if (got != want) differ(self, "pread", part.start, want, got);
    for (int i = 0; i < part.count; i++) check(self, part.area, part.first + i, 1);
}

/* By the kernel, from one place in memory to another. */
static void copy(struct worker *self, struct part part) {
    struct page *page = &part.area->pages[part.first];
    if (page->rights == NONE || page->is_freed) return;
    char copied[PAGE];
    struct iovec to = {copied, PAGE}, from = {part.start, PAGE};
    ssize_t got = process_vm_readv(getpid(), &to, 1, &from, 1, 0);
    if (got != PAGE) differ(self, "process_vm_readv", part.start, PAGE, got);
    for (int i = 0; i < WORDS; i++) {
        uint64_t have = ((uint64_t *)copied)[i], want = word(page->number, i);
        if (have != want) differ(self, "a copy", part.start + 8 * i, want, have);
    }
}

static void look_up(struct worker *self, struct part part) {
    unsigned char *present = malloc(part.count);
    require(self, !mincore(part.start, part.bytes, present), "mincore", part.start);
    require(self, !msync(part.start, part.bytes, MS_SYNC), "msync", part.start);
    free(present);
}

/* The C library's own memory: arenas, large blocks, and blocks that grow. */
static void allocate(struct worker *self, struct part part) {
    (void)part;
    size_t bytes = 1 + below(self, 1 << (below(self, 2) ? 20 : below(self, 20)));
    unsigned char *block = malloc(bytes), mark = 1 + self->id;
    memset(block, mark, bytes);
    block = realloc(block, bytes * 2);
    for (size_t i = 0; i < bytes; i += 97)
        if (block[i] != mark) differ(self, "malloc", block + i, mark, block[i]);
    free(block);
}

/* A process that waits for its child, or ends with it. */
static void await(struct worker *self, pid_t child) {
    int status = -1;
    pid_t ended = waitpid(child, &status, 0);
    if (ended != child || status != CHILD_IS_RIGHT << 8) differ(self, "the status of a child", 0, CHILD_IS_RIGHT << 8, status);
}

static void be_child(struct worker *self, struct worker *kept) {
    self->doing = "in a child";
    self->random ^= 0x5555;
    if (kept) check_some(self, kept, 60, 0);
    for (int i = 0; i < self->count; i++)
        for (int j = 0; j < self->areas[i].count; j += 1 + below(self, 3)) check(self, &self->areas[i], j, 0);
    write_some(self, 20);
    check_some(self, self, 40, 1);
    if (below(self, 4) == 0) {
        pid_t child = fork();
        if (child == 0) {
            self->doing = "in a child's child";
            check_some(self, self, 40, 1);
            _exit(CHILD_IS_RIGHT);
        }
        if (child > 0) await(self, child);
    }
    _exit(CHILD_IS_RIGHT);
}

static void fork_and_check(struct worker *self, struct part part) {
    (void)part;
    struct worker *kept = &workers[below(self, worker_count)];
    if (kept == self || pthread_mutex_trylock(&kept->turn)) kept = 0;
    pid_t child = fork();
    if (child == 0) be_child(self, kept);
    if (kept) pthread_mutex_unlock(&kept->turn);
    /* Too many processes, or too little memory. */
    if (child < 0) return;
    write_some(self, 10);
    await(self, child);
    self->forks++;
}

static const struct {
    const char *name;
    int weight;
    void (*run)(struct worker *, struct part);
} OPERATIONS[] = {
    {"map", 16, map},           {"write", 70, write_part},  {"check", 40, check_part},
    {"unmap", 10, unmap},       {"resize", 8, resize},      {"move", 8, move},
    {"map over", 4, map_over},  {"discard", 8, discard},    {"free", 4, let_go},
    {"advise", 6, advise},      {"protect", 8, protect},    {"write and read", 6, input_and_output},
    {"copy", 4, copy},          {"look up", 2, look_up},    {"allocate", 4, allocate},
    {"fork", 2, fork_and_check}};

static void step(struct worker *self) {
    self->steps++;
    struct part part = {0};
    if (self->count == 0) return map(self, part);
    part.area = &self->areas[below(self, self->count)];
    part.first = below(self, part.area->count);
    part.count = 1 + below(self, part.area->count - part.first);
    part.start = part.area->start + (size_t)part.first * PAGE;
    part.bytes = (size_t)part.count * PAGE;
    int drawn = below(self, 200), which = 0;
    while (drawn >= OPERATIONS[which].weight) drawn -= OPERATIONS[which++].weight;
    self->doing = OPERATIONS[which].name;
    OPERATIONS[which].run(self, part);
}

static int is_over(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec > end.tv_sec || (now.tv_sec == end.tv_sec && now.tv_nsec >= end.tv_nsec);
}

static void *work(void *argument) {
    struct worker *self = argument;
    char name[64];
    snprintf(name, sizeof name, "churn.%d.%d", getpid(), self->id);
    self->file = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    require(self, self->file >= 0 && !unlink(name), "making a file", 0);
    while (!is_over()) {
        pthread_mutex_lock(&self->turn);
        step(self);
        pthread_mutex_unlock(&self->turn);
    }
    self->doing = "at the end";
    for (int i = 0; i < self->count; i++)
        for (int j = 0; j < self->areas[i].count; j++) check(self, &self->areas[i], j, 1);
    return 0;
}

int main(int count, char **words) {
    if (count != 5 || atoi(words[3]) < 1 || atoi(words[3]) > THREADS_MAX) {
        dprintf(2, "usage: churn SEED MILLISECONDS THREADS(1 to %d) MIB\n", THREADS_MAX);
        return 2;
    }
    seed = strtoull(words[1], 0, 10);
    worker_count = atoi(words[3]);
    pages_max = atoi(words[4]) * 256 / worker_count;
    long milliseconds = atol(words[2]);
    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_nsec += milliseconds % 1000 * 1000000;
    end.tv_sec += milliseconds / 1000 + end.tv_nsec / 1000000000;
    end.tv_nsec %= 1000000000;
    pthread_t threads[THREADS_MAX];
    for (int i = 0; i < worker_count; i++) {
        workers[i].id = i, workers[i].doing = "at the start";
        workers[i].random = seed * 64 + i;
        pthread_mutex_init(&workers[i].turn, 0);
    }
    for (int i = 0; i < worker_count; i++) pthread_create(&threads[i], 0, work, &workers[i]);
    long steps = 0, checks = 0, forks = 0;
    for (int i = 0; i < worker_count; i++) {
        pthread_join(threads[i], 0);
        steps += workers[i].steps, checks += workers[i].checks, forks += workers[i].forks;
    }
    printf("%ld steps, %ld checks, %ld forks\n", steps, checks, forks);
    return 0;
}
