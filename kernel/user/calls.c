/* calls FILE: makes the calls whose results can be checked, and says which are wrong. FILE is any
   file of more than a page. Only for the kernel: Linux has other calls. */
#include "call.h"
#include "library.h"

static uint64_t wrong;

static void expect(int is_right, const char *what)
{
    if (!is_right) {
        print("wrong: ");
        print(what);
        print("\n");
        wrong++;
    }
}

/* True if a child that touches the address is ended for it. */
static int is_ended(volatile char *at, int is_write)
{
    long child = fork_process();
    if (child == 0) {
        if (is_write)
            *at = 1;
        else
            (void)*at;
        leave(0);
    }
    return (wait_child() & 255) == 139;
}

static void check_memory(void)
{
    char *memory = map_memory(3 * PAGE_BYTES);
    for (size_t page = 0; page < 3; page++)
        memory[page * PAGE_BYTES] = (char)(page + 1);
    uint64_t middle = (uint64_t)memory + PAGE_BYTES;
    expect(call(15, middle, PAGE_BYTES, 4) == 0 && memory[PAGE_BYTES] == 0, "not needed");
    expect(memory[0] == 1 && memory[2 * PAGE_BYTES] == 3, "pages beside it");
    for (uint64_t advice = 0; advice < 4; advice++)
        expect(call(15, (uint64_t)memory, 3 * PAGE_BYTES, advice) == 0, "advice");
    expect(call(15, (uint64_t)memory, PAGE_BYTES, 5) == -1, "no such advice");
    expect(call(16, middle, PAGE_BYTES, 1) == 0, "protect");
    expect(is_ended(memory + PAGE_BYTES, 1) && !is_ended(memory + PAGE_BYTES, 0), "read only");
    expect(call(16, middle, PAGE_BYTES, 2) == 0 && !is_ended(memory + PAGE_BYTES, 1), "writable");
    expect(call(16, 0x400000, PAGE_BYTES, 2) == -2, "text stays text");
    expect(call(6, middle, PAGE_BYTES, 0) == 0 && is_ended(memory + PAGE_BYTES, 0), "unmapped");
    expect(call(6, middle + 1, PAGE_BYTES, 0) == -2, "no page begins there");
    expect(is_ended(memory + 3 * PAGE_BYTES, 0), "the page behind");
    expect(call(5, 0, 0, 0) == -1 && call(5, PAGE_BYTES, 99, 0) == -3, "nothing to map");
}

static void check_files(const char *name)
{
    static char page[PAGE_BYTES];
    long file = open_file(name), other = open_file(name);
    expect(file >= 3 && other == file + 1, "numbers of files");
    char *mapped = map_file(file, 2 * PAGE_BYTES), *again = map_file(file, 2 * PAGE_BYTES);
    size_t read = 0;
    while (read < sizeof page) {
        long got = read_file(other, page + read, sizeof page - read);
        if (got <= 0)
            break;
        read += (size_t)got;
    }
    int is_equal = read == sizeof page;
    for (size_t at = 0; at < sizeof page; at++)
        is_equal &= page[at] == mapped[at];
    expect(is_equal, "what is read is what is mapped");
    mapped[0] ^= 1;
    expect(again[0] == page[0], "a private copy");
    close_file(other);
    expect(call(4, (uint64_t)other, 0, 0) == -3 && read_file(other, page, 1) == -3, "closed");
    expect(open_file("no such file") == -3 && call(3, 0, 4, 0) == -2, "no file");
    expect(read_file(file, (void *)0x400000, 16) == -2, "text is not read into");
    expect(call(1, 7, (uint64_t)page, 1) == -3 && call(1, 1, 0, 1) == -2, "nothing to write");
}

static void check_processes(void)
{
    const char *const words[] = {"no such program", NULL};
    uint64_t before = clock_ns();
    sleep_ns(20000000);
    expect(clock_ns() - before >= 20000000, "sleep");
    expect(call(10, 0, 0, 0) == 0, "yield");
    expect(wait_child() == -3, "no child");
    expect(execute(words) == -3, "no program");
    expect(call(99, 0, 0, 0) == -1 && call(14, 99, 0, 0) == -1, "no such call");
    expect(count_of(PROCESSES) == 1 && count_of(FRAMES_USED) <= count_of(FRAMES), "counts");
    expect(argument(2) == NULL, "one argument");
    long child = fork_process();
    if (child == 0)
        leave(7);
    expect(wait_child() == (child << 8 | 7), "a child's status");
}

int run(void)
{
    const char *name = argument(1);
    if (!name) {
        print("calls: needs a file\n");
        return 2;
    }
    check_files(name);
    check_memory();
    check_processes();
    print_number(wrong);
    print(" calls went wrong\n");
    return wrong != 0;
}
