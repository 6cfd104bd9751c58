/* sheep [PROCESSES] [KIBIBYTES] [ROUNDS]: processes that fill memory, then go through it forward and
   backward, twice or so many times, each checking what it finds. Each lets the others go on after each walk, so that all
   want their memory at the same time, however fast the machine is. */
#include "library.h"

static int graze(uint64_t number, size_t bytes, uint64_t rounds)
{
    size_t words = bytes / 8, step = 64;
    uint64_t *memory = map_memory(bytes);
    if (!memory)
        return 1;
    for (size_t at = 0; at < words; at += step)
        memory[at] = at * 2654435761u + number;
    yield();
    for (uint64_t round = 0; round < rounds; round++) {
        for (size_t at = 0; at < words; at += step)
            if (memory[at] != at * 2654435761u + number)
                return 3;
        yield();
        for (size_t at = words; at > 0; at -= step)
            if (memory[at - step] != (at - step) * 2654435761u + number)
                return 3;
        yield();
    }
    return 0;
}

int run(void)
{
    const char *text = argument(1);
    uint64_t processes = text ? parse_number(text) : 4;
    text = argument(2);
    size_t bytes = (text ? parse_number(text) : 4096) << 10;
    text = argument(3);
    uint64_t rounds = text ? parse_number(text) : 2;
    for (uint64_t number = 0; number < processes; number++) {
        long child = fork_process();
        if (child < 0)
            return 2;
        if (child == 0)
            leave(graze(number, bytes, rounds));
    }
    uint64_t wrong = 0;
    for (uint64_t number = 0; number < processes; number++)
        if ((wait_child() & 255) != 0)
            wrong++;
    print_number(processes);
    print(" sheep, ");
    print_number(wrong);
    print(" lost\n");
    return wrong != 0;
}
