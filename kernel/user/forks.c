/* forks [COUNT]: children that write to memory they share with their parent, which keeps its own. */
#include "library.h"

#define PAGES 32

int run(void)
{
    const char *text = argument(1);
    uint64_t count = text ? parse_number(text) : 200, wrong = 0;
    uint64_t *memory = map_memory(PAGES * PAGE_BYTES);
    for (size_t page = 0; page < PAGES; page++)
        memory[page * PAGE_BYTES / 8] = page;
    for (uint64_t number = 1; number <= count; number++) {
        long child = fork_process();
        if (child < 0) {
            print("forks: can't fork\n");
            return 1;
        }
        if (child == 0) {
            uint64_t sum = 0;
            for (size_t page = 0; page < PAGES; page += 2)
                memory[page * PAGE_BYTES / 8] += number;
            for (size_t page = 0; page < PAGES; page++)
                sum += memory[page * PAGE_BYTES / 8];
            leave(sum == PAGES * (PAGES - 1) / 2 + number * PAGES / 2 ? 0 : 1);
        }
        if (number % 8 == 0 || number == count)
            for (uint64_t waited = (number - 1) % 8 + 1; waited > 0; waited--)
                wrong += (wait_child() & 255) != 0;
    }
    for (size_t page = 0; page < PAGES; page++)
        wrong += memory[page * PAGE_BYTES / 8] != page;
    print_number(count);
    print(" forks, ");
    print_number(wrong);
    print(" wrong\n");
    return wrong != 0;
}
