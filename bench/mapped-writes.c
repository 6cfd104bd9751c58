/* Writes 8 bytes at random to a mapped file, and waits until all is on its disk. Words: the file, the
   number of writes, the part of its pages that nine of ten go to, in percent; and `random` for
   MADV_RANDOM. Each run writes something else. Results: results/written-files.md. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { PAGE = 4096 };

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}

int main(int count, char **words) {
    if (count < 4) {
        fprintf(stderr, "mapped-writes FILE WRITES PERCENT [random]\n");
        return 2;
    }
    struct stat found;
    int file = open(words[1], O_RDWR);
    if (file < 0 || fstat(file, &found)) {
        perror(words[1]);
        return 1;
    }
    size_t pages = found.st_size / PAGE, hot = pages * atoi(words[3]) / 100;
    unsigned char *start = mmap(0, found.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (start == MAP_FAILED || hot == 0) {
        perror("mmap");
        return 1;
    }
    if (count > 4)
        madvise(start, found.st_size, MADV_RANDOM);
    unsigned long value = 88172645463325252u ^ (unsigned long)getpid() << 17 ^ (unsigned long)time(0);
    double begun = now();
    for (long left = atol(words[2]); left > 0; left--) {
        value ^= value << 13;
        value ^= value >> 7;
        value ^= value << 17;
        size_t page = value % 10 ? (value >> 8) % hot : (value >> 8) % pages;
        memcpy(start + page * PAGE + (value >> 50) % (PAGE / 8) * 8, &value, 8);
    }
    double written = now();
    if (msync(start, found.st_size, MS_SYNC)) {
        perror("msync");
        return 1;
    }
    printf("%.2f s writing, %.2f s msync\n", written - begun, now() - written);
    return 0;
}
