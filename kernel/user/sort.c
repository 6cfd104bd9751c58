/* sort FILE: the lines of a file in order, by a heap of pointers; prints them, or with a second
   argument their number and a sum over their order. */
#include "library.h"

static int is_before(const char *one, const char *other)
{
    while (*one == *other && *one != '\n') {
        one++;
        other++;
    }
    unsigned char left = *one == '\n' ? 0 : (unsigned char)*one;
    unsigned char right = *other == '\n' ? 0 : (unsigned char)*other;
    return left < right;
}

static void sink(const char **lines, size_t from, size_t count)
{
    const char *line = lines[from];
    for (;;) {
        size_t below = 2 * from + 1;
        if (below >= count)
            break;
        if (below + 1 < count && is_before(lines[below], lines[below + 1]))
            below++;
        if (!is_before(line, lines[below]))
            break;
        lines[from] = lines[below];
        from = below;
    }
    lines[from] = line;
}

static void sort_lines(const char **lines, size_t count)
{
    for (size_t from = count / 2; from > 0; from--)
        sink(lines, from - 1, count);
    for (size_t left = count; left > 1; left--) {
        const char *last = lines[0];
        lines[0] = lines[left - 1];
        lines[left - 1] = last;
        sink(lines, 0, left - 1);
    }
}

int run(void)
{
    const char *name = argument(1);
    long file = name ? open_file(name) : -1;
    if (file < 0) {
        print("sort: needs a file\n");
        return 2;
    }
    size_t room = 64UL << 20, length = 0;
    char *text = map_memory(room);
    for (;;) {
        long got = read_file(file, text + length, room - 1 - length);
        if (got <= 0)
            break;
        length += (size_t)got;
    }
    if (length > 0 && text[length - 1] != '\n')
        text[length++] = '\n';
    size_t count = 0;
    for (size_t at = 0; at < length; at++)
        count += text[at] == '\n';
    const char **lines = map_memory((count + 1) * sizeof *lines);
    size_t next = 0;
    for (size_t at = 0; at < length; at++)
        if (at == 0 || text[at - 1] == '\n')
            lines[next++] = text + at;
    sort_lines(lines, count);
    uint64_t sum = 14695981039346656037UL;
    int is_quiet = argument(2) != NULL;
    for (size_t number = 0; number < count; number++) {
        size_t bytes = 0;
        do {
            sum = (sum ^ (unsigned char)lines[number][bytes]) * 1099511628211UL;
        } while (lines[number][bytes++] != '\n');
        if (!is_quiet)
            write_bytes(lines[number], bytes);
    }
    if (is_quiet) {
        print_number(count);
        print(" lines, ");
        print_number(sum);
        print("\n");
    }
    return 0;
}
