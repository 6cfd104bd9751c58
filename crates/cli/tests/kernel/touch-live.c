/* Touches pages of one mapping in the order of a list, as the kernel's `touch`, with the C library:
   what a live run manages is loaded into it. */
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>

static unsigned list[1 << 16];

int main(int count, char **words)
{
    FILE *file = count == 2 ? fopen(words[1], "r") : NULL;
    unsigned touches = 0, pages = 0;
    while (file && touches < sizeof list / sizeof *list && fscanf(file, "%u", &list[touches]) == 1) {
        pages = list[touches] + 1 > pages ? list[touches] + 1 : pages;
        touches++;
    }
    volatile uint64_t *memory = mmap(NULL, pages * 4096UL, PROT_READ | PROT_WRITE,
                                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return 1;
    for (unsigned touch = 0; touch < touches; touch++)
        memory[list[touch] * 512UL] = list[touch] + 1;
    return 0;
}
