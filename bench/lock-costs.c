/* The costs of contention between processors, for the `[locks]` of bench/experiments/locks.toml:
 *
 *     cc -O2 -pthread -o lock-costs bench/lock-costs.c && ./lock-costs
 *
 * Short samples, of which the twentieth part from below is shown: whatever else the machine does only
 * ever makes one longer. Needs two processors that the system leaves it. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { SAMPLES = 2000, TIMES = 50, PAGE = 4096, PAGES = 16384 };

static _Alignas(128) atomic_int turn;
static _Alignas(128) atomic_int is_over;
static double samples[SAMPLES];

static double now_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1e9 + time.tv_nsec;
}

static void stay_on(int processor) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(processor, &set);
    pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

static int compare(const void *left, const void *right) {
    double one = *(const double *)left, other = *(const double *)right;
    return (one > other) - (one < other);
}

static void show(const char *what) {
    qsort(samples, SAMPLES, sizeof *samples, compare);
    printf("%-48s %8.0f ns (median %.0f)\n", what, samples[SAMPLES / 20], samples[SAMPLES / 2]);
}

static void *answer(void *unused) {
    (void)unused;
    stay_on(1);
    while (!atomic_load_explicit(&is_over, memory_order_relaxed)) {
        if (atomic_load_explicit(&turn, memory_order_acquire) == 1)
            atomic_store_explicit(&turn, 0, memory_order_release);
    }
    return NULL;
}

static void *use(void *memory) {
    volatile char *byte = memory;
    stay_on(1);
    while (!atomic_load_explicit(&is_over, memory_order_relaxed))
        (void)*byte;
    return NULL;
}

/* There and back are two moves of the line. */
static void measure_line(void) {
    for (int sample = 0; sample < SAMPLES; sample++) {
        double begin = now_ns();
        for (int i = 0; i < TIMES; i++) {
            atomic_store_explicit(&turn, 1, memory_order_release);
            while (atomic_load_explicit(&turn, memory_order_acquire) != 0)
                ;
        }
        samples[sample] = (now_ns() - begin) / TIMES / 2;
    }
    show("a cache line from one processor to the other");
}

/* Taking a right away must be told to every processor that runs in this memory. */
static void measure_rights(char *memory, const char *what) {
    for (int sample = 0; sample < SAMPLES; sample++) {
        double begin = now_ns();
        for (int i = 0; i < TIMES; i++) {
            mprotect(memory + PAGE, PAGE, PROT_READ);
            mprotect(memory + PAGE, PAGE, PROT_READ | PROT_WRITE);
            memory[PAGE] = 1;
        }
        samples[sample] = (now_ns() - begin) / TIMES;
    }
    show(what);
}

static void measure_pages(char *memory, int is_copy) {
    unsigned at = 0;
    for (int sample = 0; sample < SAMPLES; sample++) {
        double begin = now_ns();
        for (int i = 0; i < TIMES; i++, at = (at + 4099) % PAGES) {
            if (is_copy)
                memcpy(memory + (size_t)at * PAGE, memory + (size_t)(at * 7919 % PAGES) * PAGE, PAGE);
            else
                memset(memory + (size_t)at * PAGE, 0, PAGE);
        }
        samples[sample] = (now_ns() - begin) / TIMES;
    }
    show(is_copy ? "copying a page" : "filling a page with zeros");
}

int main(void) {
    pthread_t other;
    char *memory = aligned_alloc(PAGE, (size_t)PAGES * PAGE);
    if (memory == NULL)
        return 1;
    memset(memory, 1, (size_t)PAGES * PAGE);
    stay_on(0);
    pthread_create(&other, NULL, answer, NULL);
    measure_line();
    atomic_store(&is_over, 1);
    pthread_join(other, NULL);
    measure_rights(memory, "rights of a page down and up, alone");
    atomic_store(&is_over, 0);
    pthread_create(&other, NULL, use, memory);
    measure_rights(memory, "the same while another processor runs there");
    atomic_store(&is_over, 1);
    pthread_join(other, NULL);
    measure_pages(memory, 0);
    measure_pages(memory, 1);
    return 0;
}
