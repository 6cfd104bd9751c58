/* hoard: children that each have the kernel keep as much as it will: processes, tables, mappings,
   pieces of a mapping, and children that nobody asks for. Says which of them was not stopped, and
   whether a child of the same can start anew behind each. Only for the kernel: it keeps little. */
#include "call.h"
#include "library.h"

#define LARGEST (1UL << 32)
#define TABLE_BYTES (2UL << 20)
#define MOST 100000

/* Children that wait until they are told, or until their parent has ended, to end. */
static uint64_t hoard_processes(void)
{
    for (uint64_t count = 0; count < MOST; count++) {
        long child = fork_process();
        if (child < 0)
            return 1;
        if (child == 0) {
            sleep_ns(20000000);
            leave(0);
        }
    }
    return 0;
}

static uint64_t hoard_ended(void)
{
    for (uint64_t count = 0; count < MOST; count++) {
        long child = fork_process();
        if (child < 0)
            return 1;
        if (child == 0)
            leave(0);
        yield();
    }
    return 0;
}

/* A page for each table: the program is ended. */
static uint64_t hoard_tables(void)
{
    uint64_t sum = 0;
    for (uint64_t count = 0; count < MOST;) {
        char *memory = map_memory(LARGEST);
        if (!memory)
            return 1;
        for (uint64_t at = 0; at < LARGEST; at += TABLE_BYTES, count++)
            sum += *(volatile char *)(memory + at);
    }
    return sum & 0;
}

static uint64_t hoard_mappings(void)
{
    for (uint64_t count = 0; count < MOST; count++)
        if (!map_memory(PAGE_BYTES))
            return 1;
    return 0;
}

static uint64_t hoard_pieces(void)
{
    char *memory = map_memory(LARGEST);
    for (uint64_t at = 0; memory && at < LARGEST; at += 2 * PAGE_BYTES)
        if (call(16, (uint64_t)memory + at, PAGE_BYTES, 1) != 0)
            return 1;
    return 0;
}

int run(void)
{
    static uint64_t (*const hoards[])(void) = {hoard_processes, hoard_ended, hoard_tables,
                                               hoard_mappings, hoard_pieces};
    uint64_t wrong = 0;
    for (uint64_t which = 0; which < sizeof hoards / sizeof *hoards; which++) {
        long child = fork_process();
        if (child == 0)
            leave(hoards[which]() ? 0 : 1);
        long status = wait_child() & 255;
        if (status != 0 && !(hoards[which] == hoard_tables && status == 139)) {
            print_number(which);
            print(" was not stopped\n");
            wrong++;
        }
        /* What it kept is there again. */
        while (count_of(PROCESSES) > 1)
            yield();
        child = fork_process();
        if (child == 0)
            leave(map_memory(PAGE_BYTES) ? 0 : 1);
        wrong += child < 0 || (wait_child() & 255) != 0;
    }
    print_number(wrong);
    print(" hoards went wrong\n");
    return wrong != 0;
}
