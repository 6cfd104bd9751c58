/* sh SCRIPT: runs the lines of a file, each a program and its arguments, separated by blanks. A `#`
   begins a comment. Ends with the status of the last that failed, and goes on behind it. */
#include "library.h"

#define WORDS_MAX 64
#define SCRIPT_BYTES_MAX (1UL << 20)

/* What stands between words. */
static int is_blank(char letter)
{
    return letter == ' ' || letter == '\t' || letter == '\r';
}

static int run_line(char *line)
{
    const char *words[WORDS_MAX + 1];
    unsigned count = 0;
    for (char *at = line; *at && *at != '#';) {
        while (is_blank(*at))
            *at++ = 0;
        if (!*at || *at == '#')
            break;
        if (count == WORDS_MAX) {
            print("sh: a line has too many words\n");
            return 2;
        }
        words[count++] = at;
        while (*at && !is_blank(*at))
            at++;
    }
    words[count] = NULL;
    if (count == 0)
        return 0;
    if (is_same(words[0], "echo")) {
        for (unsigned number = 1; number < count; number++) {
            print(words[number]);
            print(number + 1 < count ? " " : "");
        }
        print("\n");
        return 0;
    }
    long child = fork_process();
    if (child < 0) {
        print("sh: can't fork\n");
        return 1;
    }
    if (child == 0) {
        execute(words);
        print("sh: no program ");
        print(words[0]);
        print("\n");
        leave(127);
    }
    return (int)(wait_child() & 255);
}

int run(void)
{
    const char *name = argument(1);
    long file = name ? open_file(name) : -1;
    char *script = map_memory(SCRIPT_BYTES_MAX);
    size_t length = 0;
    int status = 0;
    if (file < 0 || !script) {
        print("sh: needs a script\n");
        return 2;
    }
    for (;;) {
        long got = read_file(file, script + length, SCRIPT_BYTES_MAX - 1 - length);
        if (got <= 0)
            break;
        length += (size_t)got;
    }
    if (length == SCRIPT_BYTES_MAX - 1) {
        print("sh: the script is too long\n");
        return 2;
    }
    for (size_t at = 0; at < length;) {
        char *line = script + at;
        while (at < length && script[at] != '\n')
            at++;
        script[at++] = 0;
        int ended = run_line(line);
        status = ended ? ended : status;
    }
    return status;
}
