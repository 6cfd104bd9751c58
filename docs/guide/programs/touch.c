/* Fills so many MiB of memory, and then reads the first few of them over and over:
   touch MIB HOT PASSES. */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int main(int count, char **words) {
    if (count != 4) return 2;
    size_t all = (size_t)atol(words[1]) << 20, hot = (size_t)atol(words[2]) << 20;
    long passes = atol(words[3]);
    volatile uint64_t *memory = malloc(all);
    if (!memory) return 1;
    uint64_t sum = 0;
    for (size_t at = 0; at < all / 8; at += 512) memory[at] = at;
    for (long pass = 0; pass < passes; pass++)
        for (size_t at = 0; at < hot / 8; at++) sum += memory[at];
    printf("%lu\n", (unsigned long)sum);
    return 0;
}
