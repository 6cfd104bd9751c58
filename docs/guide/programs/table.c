/* A hash table of the last thousand of a hundred thousand keys. With -DTOMBSTONES a removed key
   leaves a mark, and marks count when the table decides to grow. */
#include <stdio.h>
#include <stdlib.h>

enum { FREE, GONE };

static unsigned long *slots, size = 4096, taken;

static unsigned long find(unsigned long key) {
    unsigned long at = key * 11400714819323198485ul >> 32;
    while (slots[at %= size] != FREE && slots[at] != key)
        at++;
    return at;
}

static void insert(unsigned long key) {
    if (2 * ++taken >= size) {
        unsigned long *old = slots, before = size;
        slots = calloc(size *= 2, sizeof *slots);
        taken = 1;
        for (unsigned long at = 0; at < before; at++)
            if (old[at] > GONE)
                slots[find(old[at])] = old[at], taken++;
        free(old);
    }
    slots[find(key)] = key;
}

int main(void) {
    slots = calloc(size, sizeof *slots);
    for (unsigned long key = 2; key < 100000; key++) {
        insert(key);
        if (key < 1002)
            continue;
        unsigned long gone = find(key - 1000);
#ifdef TOMBSTONES
        slots[gone] = GONE;
#else
        slots[gone] = FREE, taken--;
#endif
    }
    printf("%lu slots\n", size);
    return 0;
}
