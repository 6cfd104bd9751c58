/* sort FILE: the lines of a file in order; prints them, or with a second argument their number and a
   sum over their order. Pieces are sorted by a heap of pointers and then merged, two and two, so
   that memory is gone through from one end to the other. */
#include "library.h"

#define PIECE_BYTES (64UL << 10)
#define PIECES_MAX 1024

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

static size_t bytes_of(const char *line)
{
    size_t bytes = 0;
    while (line[bytes++] != '\n')
        ;
    return bytes;
}

/* Sorts the lines of a piece that ends with a line, to `to`. */
static void sort_piece(const char *from, size_t bytes, char *to)
{
    static const char *lines[PIECE_BYTES];
    size_t count = 0;
    for (size_t at = 0; at < bytes; at += bytes_of(from + at))
        lines[count++] = from + at;
    sort_lines(lines, count);
    for (size_t number = 0; number < count; number++) {
        size_t length = bytes_of(lines[number]);
        memcpy(to, lines[number], length);
        to += length;
    }
}

/* Merges two runs that follow each other, the first up to `middle`. */
static void merge(const char *from, size_t middle, size_t end, char *to)
{
    size_t left = 0, right = middle;
    while (left < middle || right < end) {
        int is_right = left == middle || (right < end && is_before(from + right, from + left));
        size_t *taken = is_right ? &right : &left;
        size_t length = bytes_of(from + *taken);
        memcpy(to, from + *taken, length);
        to += length;
        *taken += length;
    }
}

/* Sorts `bytes` bytes of lines; `spare` has as much room. Answers which of both has the result. */
static char *sort_text(char *text, char *spare, size_t bytes)
{
    static size_t starts[PIECES_MAX + 1];
    size_t runs = 0;
    for (size_t at = 0; at < bytes && runs < PIECES_MAX; runs++) {
        size_t end = at + PIECE_BYTES < bytes ? at + PIECE_BYTES : bytes;
        while (end > at && text[end - 1] != '\n')
            end--;
        if (end == at) {
            print("sort: a line is too long\n");
            leave(1);
        }
        sort_piece(text + at, end - at, spare + at);
        starts[runs] = at;
        at = end;
    }
    for (starts[runs] = bytes; runs > 1; runs = (runs + 1) / 2) {
        char *from = spare;
        spare = text;
        text = from;
        for (size_t run = 0; run < runs; run += 2) {
            size_t last = run + 2 < runs ? run + 2 : runs, start = starts[run];
            merge(from + start, starts[run + 1] - start, starts[last] - start, spare + start);
            starts[run / 2] = start;
        }
        starts[(runs + 1) / 2] = bytes;
    }
    return spare;
}

int run(void)
{
    const char *name = argument(1);
    long file = name ? open_file(name) : -1;
    if (file < 0) {
        print("sort: needs a file\n");
        return 2;
    }
    size_t room = PIECES_MAX / 2 * PIECE_BYTES, length = 0;
    char *text = map_memory(room), *spare = map_memory(room);
    for (;;) {
        long got = read_file(file, text + length, room - 1 - length);
        if (got <= 0)
            break;
        length += (size_t)got;
    }
    if (length > 0 && text[length - 1] != '\n')
        text[length++] = '\n';
    text = sort_text(text, spare, length);
    if (!argument(2)) {
        write_bytes(text, length);
        return 0;
    }
    uint64_t sum = 14695981039346656037UL, lines = 0;
    for (size_t at = 0; at < length; at++) {
        sum = (sum ^ (unsigned char)text[at]) * 1099511628211UL;
        lines += text[at] == '\n';
    }
    print_number(lines);
    print(" lines, ");
    print_number(sum);
    print("\n");
    return 0;
}
