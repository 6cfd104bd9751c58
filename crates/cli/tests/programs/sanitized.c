/* Fills far more memory than there is, and does wrong what its argument says. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLOCKS 24

static char *blocks[BLOCKS];
static int shared;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile int is_racing;

__attribute__((noinline)) static void lose(void) {
    char *volatile lost = malloc(1000);
    lost[0] = 1;
    lost = 0;
}

static void *add(void *unused) {
    for (int round = 0; round < 1000; round++) {
        if (!is_racing) pthread_mutex_lock(&lock);
        shared++;
        if (!is_racing) pthread_mutex_unlock(&lock);
    }
    return unused;
}

int main(int count, char **words) {
    const char *way = count > 1 ? words[1] : "";
    for (int at = 0; at < BLOCKS; at++) {
        blocks[at] = malloc(1 << 20);
        memset(blocks[at], at, 1 << 20);
    }
    /* Reachable, through pages that are out by now, from the first block alone. */
    char *chain = 0;
    for (int link = 0; link < 10000; link++) {
        char **next = malloc(400);
        *next = chain;
        chain = (char *)next;
    }
    *(char **)blocks[0] = chain;
    chain = 0;
    pthread_t threads[2];
    is_racing = !strcmp(way, "race");
    for (int at = 0; at < 2; at++) pthread_create(&threads[at], 0, add, 0);
    for (int at = 0; at < 2; at++) pthread_join(threads[at], 0);
    if (!strcmp(way, "leak")) lose();
    if (!strcmp(way, "beyond")) {
        volatile int at = 10;
        char *small = malloc(10);
        small[at] = 1;
        free(small);
    }
    if (!strcmp(way, "overflow")) {
        volatile int most = 0x7fffffff;
        most += 1;
    }
    int wrong = 0;
    for (int at = 1; at < BLOCKS; at++) wrong += blocks[at][5000] != at;
    printf("%d wrong\n", wrong);
    return wrong;
}
