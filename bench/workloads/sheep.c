// The sheep of `sheeptest`: takes memory, touches all of it, and walks through it forwards and
// backwards, as often as told: `sheep PAGES ROUNDS`. Four of them fill the machine.
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { PAGE_BYTES = 4096, WORDS = 64 };

// Reads and writes a part of a page, so that a page takes a while.
static unsigned graze(unsigned* page)
{
    unsigned sum = 0;
    for (int word = 0; word < WORDS; word++)
        sum += page[word]++;
    return sum;
}

int main(int count, char** words)
{
    if (count != 3) {
        fprintf(stderr, "usage: sheep PAGES ROUNDS\n");
        return 2;
    }
    const long pages = atol(words[1]), rounds = atol(words[2]);
    char* field = mmap(0, pages * PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (field == MAP_FAILED) {
        perror("sheep");
        return 1;
    }
    unsigned sum = 0;
    for (long round = 0; round < rounds; round++) {
        for (long page = 0; page < pages; page++)
            sum += graze((unsigned*)(field + page * PAGE_BYTES));
        for (long page = pages - 1; page >= 0; page--)
            sum += graze((unsigned*)(field + page * PAGE_BYTES));
    }
    printf("%u\n", sum);
    return 0;
}
