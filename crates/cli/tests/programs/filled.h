/* More memory than there is, filled with what can be told apart page by page and turn by turn. */
#include <stdint.h>

enum { WORDS = 512, PAGES = 3 << 10 };
static uint64_t (*pages)[WORDS];

static uint64_t value(uint64_t page, uint64_t turn) {
    return (page * 0x9E3779B97F4A7C15u ^ turn * 0xBF58476D1CE4E5B9u) | 1;
}

static void fill(uint64_t turn) {
    for (uint64_t page = 0; page < PAGES; page++)
        for (int word = 0; word < WORDS; word += 64) pages[page][word] = value(page, turn) + word;
}

static int wrong(uint64_t turn) {
    int count = 0;
    for (uint64_t page = 0; page < PAGES; page++)
        for (int word = 0; word < WORDS; word += 64)
            if (pages[page][word] != value(page, turn) + word) {
                count++;
                break;
            }
    return count;
}
