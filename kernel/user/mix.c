/* mix SEED OPERATIONS FILE: maps, writes, reads, protects, discards and unmaps memory at random, in
   processes that fork and execute one another, and adds up all it reads. What it prints is the same
   wherever memory works; FILE ends with its last whole page, for what lies behind differs. */
#include "library.h"

#define PIECES 12
#define PIECE_PAGES 24
#define WORDS (PAGE_BYTES / 8)
#define DEPTH_MAX 4
#define ENDED 139

enum kind { NOTHING, ZEROS, COPY, SHARED };

static struct {
    enum kind kind;
    volatile uint64_t *memory;
    size_t pages;
    int is_mapped[PIECE_PAGES];
    int is_writable[PIECE_PAGES];
} pieces[PIECES];
static uint64_t seed, sum = 14695981039346656037UL;
static const char *file_name;
static size_t file_pages;

static uint64_t random_below(uint64_t limit)
{
    seed = seed * 6364136223846793005UL + 1442695040888963407UL;
    return (seed >> 33) % limit;
}

static void add(uint64_t word)
{
    sum = (sum ^ word) * 1099511628211UL;
}

static void map_piece(size_t at, enum kind kind)
{
    size_t most = kind == ZEROS || file_pages > PIECE_PAGES ? PIECE_PAGES : file_pages;
    size_t pages = 1 + random_below(most), bytes = pages * PAGE_BYTES;
    long file = kind == ZEROS ? 0 : open_file(file_name);
    pieces[at].memory = kind == ZEROS  ? map_memory(bytes)
                        : kind == COPY ? map_file(file, bytes)
                                       : map_file_shared(file, bytes);
    if (!pieces[at].memory) {
        print("mix: can't map\n");
        leave(1);
    }
    if (kind != ZEROS)
        close_file(file);
    pieces[at].kind = kind;
    pieces[at].pages = pages;
    for (size_t page = 0; page < pages; page++)
        pieces[at].is_mapped[page] = pieces[at].is_writable[page] = 1;
}

/* Does something to some of a piece's pages. */
static void change(size_t at, uint64_t what)
{
    size_t first = random_below(pieces[at].pages);
    size_t count = 1 + random_below(pieces[at].pages - first);
    char *memory = (char *)pieces[at].memory + first * PAGE_BYTES;
    for (size_t page = first; page < first + count; page++)
        if (!pieces[at].is_mapped[page])
            return;
    if (what == 0)
        unmap_memory(memory, count * PAGE_BYTES);
    else if (what == 1 && pieces[at].kind != SHARED)
        discard_memory(memory, count * PAGE_BYTES);
    else if (what >= 2)
        add((uint64_t)protect_memory(memory, count * PAGE_BYTES, what == 2));
    for (size_t page = first; page < first + count; page++) {
        pieces[at].is_mapped[page] = what != 0;
        if (what >= 2)
            pieces[at].is_writable[page] = what == 2;
    }
}

static void use(size_t at)
{
    for (uint64_t count = 1 + random_below(40); count > 0; count--) {
        size_t page = random_below(pieces[at].pages), word = random_below(WORDS);
        if (!pieces[at].is_mapped[page])
            continue;
        add(pieces[at].memory[page * WORDS + word]);
        if (pieces[at].is_writable[page] && random_below(2))
            pieces[at].memory[page * WORDS + word] = seed;
    }
}

static void read_into(size_t at)
{
    size_t page = random_below(pieces[at].pages), offset = random_below(PAGE_BYTES);
    if (!pieces[at].is_mapped[page] || !pieces[at].is_writable[page] || pieces[at].kind == SHARED)
        return;
    long file = open_file(file_name);
    char *memory = (char *)pieces[at].memory + page * PAGE_BYTES;
    for (size_t done = offset; done < PAGE_BYTES;) {
        long got = read_file(file, memory + done, PAGE_BYTES - done);
        if (got <= 0)
            break;
        done += (size_t)got;
    }
    close_file(file);
}

static void operate(uint64_t operations, uint64_t depth);

static const char *digits_of(uint64_t number, char *end)
{
    *--end = 0;
    do {
        *--end = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    return end;
}

/* A child that goes on with what it has, or begins anew as another program. */
static void have_child(uint64_t depth)
{
    uint64_t operations = 5 + random_below(60), is_anew = random_below(4) == 0;
    long child = fork_process();
    if (child < 0) {
        print("mix: can't fork\n");
        leave(1);
    }
    if (child == 0) {
        char numbers[3][24];
        uint64_t given[3] = {random_below(1 << 20), operations, depth + 1};
        const char *texts[3];
        for (int number = 0; number < 3; number++)
            texts[number] = digits_of(given[number], numbers[number] + 24);
        const char *const words[] = {"mix", texts[0], texts[1], file_name, texts[2], NULL};
        if (is_anew)
            leave(execute(words) != 0);
        add(given[0]);
        operate(operations, depth + 1);
        leave((int)(sum & 127));
    }
    add((uint64_t)wait_child() & 255);
}

/* A child that touches what it may not. */
static void trespass(size_t at)
{
    size_t page = random_below(pieces[at].pages);
    if (pieces[at].is_mapped[page] && pieces[at].is_writable[page])
        return;
    long child = fork_process();
    if (child == 0) {
        pieces[at].memory[page * WORDS] = 1;
        leave(0);
    }
    add((wait_child() & 255) == ENDED);
}

static void operate(uint64_t operations, uint64_t depth)
{
    for (; operations > 0; operations--) {
        size_t at = random_below(PIECES);
        uint64_t what = random_below(16);
        if (pieces[at].kind == NOTHING)
            map_piece(at, ZEROS + random_below(3));
        else if (what < 4)
            change(at, what);
        else if (what == 4 && depth < DEPTH_MAX)
            have_child(depth);
        else if (what == 5)
            read_into(at);
        else if (what == 6)
            trespass(at);
        else if (what == 7 && pieces[at].kind != SHARED) {
            unmap_memory((char *)pieces[at].memory, pieces[at].pages * PAGE_BYTES);
            pieces[at].kind = NOTHING;
        } else
            use(at);
    }
}

/* The whole pages of the file. */
static size_t count_pages(void)
{
    static char page[PAGE_BYTES];
    long file = open_file(file_name), got;
    size_t bytes = 0;
    while (file >= 0 && (got = read_file(file, page, sizeof page)) > 0)
        bytes += (size_t)got;
    close_file(file);
    return bytes / PAGE_BYTES;
}

int run(void)
{
    static char name[16];
    const char *text = argument(1);
    seed = text ? parse_number(text) : 1;
    text = argument(2);
    uint64_t operations = text ? parse_number(text) : 100;
    text = argument(3);
    for (size_t at = 0; text && text[at] && at < sizeof name - 1; at++)
        name[at] = text[at];
    file_name = name;
    file_pages = count_pages();
    if (file_pages == 0) {
        print("mix: needs a file of a page\n");
        return 2;
    }
    text = argument(4);
    uint64_t depth = text ? parse_number(text) : 0;
    operate(operations, depth);
    if (depth == 0) {
        print_number(sum);
        print("\n");
    }
    return depth == 0 ? 0 : (int)(sum & 127);
}
