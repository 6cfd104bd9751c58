/* Fills memory of one kind: unmanaged private|shared|threads COUNT MILLISECONDS */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void *rest(void *pause) {
    usleep(*(useconds_t *)pause);
    return NULL;
}

int main(int count, char **words) {
    if (count != 4) return 1;
    size_t amount = strtoul(words[2], NULL, 10);
    useconds_t pause = (useconds_t)strtoul(words[3], NULL, 10) * 1000;
    if (words[1][0] == 't') {
        pthread_t threads[64];
        useconds_t long_enough = pause + 100000;
        for (size_t at = 0; at < amount && at < 64; at++)
            if (pthread_create(&threads[at], NULL, rest, &long_enough)) return 2;
        for (size_t at = 0; at < amount && at < 64; at++) pthread_join(threads[at], NULL);
        return 0;
    }
    int kind = words[1][0] == 's' ? MAP_SHARED : MAP_PRIVATE;
    char *start = mmap(NULL, amount << 20, PROT_READ | PROT_WRITE, kind | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED) return 3;
    memset(start, 1, amount << 20);
    usleep(pause);
    return 0;
}
