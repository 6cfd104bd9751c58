/* An office's worth of a file server's day, as its memory sees it: files are made, written, read
 * again, some of them often, and cut short, all by system calls.
 *
 *     file-load ROUNDS FILES KILOBYTES
 *
 * The mix is that of the dbench of 2002: of ten operations six read, three write and one makes a
 * file anew; small files are most of them, and the most recent are used again first. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PAGE = 4096 };

static unsigned long state = 88172645463325252UL;

static unsigned long chance(unsigned long below)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state % below;
}

struct file {
    int opened;
    long pages;
};

static char bytes[PAGE];

static void make(struct file *file, int number, long pages)
{
    char name[64];
    snprintf(name, sizeof name, "clients/file-%d", number);
    if (file->opened)
        close(file->opened);
    file->opened = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (file->opened < 0)
        exit(1);
    file->pages = pages;
    for (long page = 0; page < pages; page++)
        if (write(file->opened, bytes, PAGE) != PAGE)
            exit(1);
}

int main(int count, char **words)
{
    if (count != 4)
        return 2;
    long rounds = atol(words[1]), files = atol(words[2]), pages_max = atol(words[3]) * 1024 / PAGE;
    struct file *all = calloc(files, sizeof *all);
    if (!all || (mkdir("clients", 0700) && access("clients", W_OK)))
        return 1;
    for (int number = 0; number < files; number++)
        make(&all[number], number, 1 + chance(chance(pages_max) + 1));
    long sum = 0, recent = 0;
    for (long round = 0; round < rounds; round++) {
        /* Half of all operations go to one of the four files used last. */
        long number = chance(2) ? (recent + chance(4)) % files : (long)chance(files);
        struct file *file = &all[number];
        recent = number;
        unsigned long what = chance(10);
        if (what == 0) {
            make(file, number, 1 + chance(chance(pages_max) + 1));
            continue;
        }
        for (long page = 0; page < file->pages; page++) {
            long done = what < 7 ? pread(file->opened, bytes, PAGE, page * PAGE)
                                 : pwrite(file->opened, bytes, PAGE, page * PAGE);
            if (done != PAGE)
                return 1;
            /* The work of copying the page to or from a request. */
            for (int byte = 1; byte < 512; byte++)
                sum += bytes[byte] ^ round;
        }
    }
    return sum == 42;
}
