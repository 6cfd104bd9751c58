/* Forks over and over from a process with some memory of its own, as a shell or a build does.
 *
 *     fork-storm FORKS KILOBYTES [stay]
 *
 * The parent touches so much memory once. Each child writes to a quarter of it and ends; the
 * parent waits for it. With `stay` a child reads all of it in place of that, and ends when the
 * last one has been forked: so many share every page. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGE_BYTES = 4096 };

/* A child that shares: reads everything, and stays until nobody can write to the pipe. */
static void share(volatile char *memory, long bytes, int *ends)
{
    char none;
    close(ends[1]);
    for (long at = 0; at < bytes; at += PAGE_BYTES)
        (void)memory[at];
    while (read(ends[0], &none, 1) > 0)
        ;
    _exit(0);
}

int main(int count, char **words)
{
    if (count < 3 || count > 4)
        return 2;
    int ends[2], stays = count == 4 && strcmp(words[3], "stay") == 0;
    long forks = atol(words[1]), bytes = atol(words[2]) * 1024;
    volatile char *memory = malloc(bytes);
    if (!memory || pipe(ends) != 0)
        return 1;
    for (long at = 0; at < bytes; at += PAGE_BYTES)
        memory[at] = 1;
    for (long number = 0; number < forks; number++) {
        pid_t child = fork();
        if (child < 0)
            return 1;
        if (child == 0 && stays)
            share(memory, bytes, ends);
        if (child == 0) {
            for (long at = 0; at < bytes; at += 4 * PAGE_BYTES)
                memory[at] = 2;
            _exit(0);
        }
        if (!stays)
            waitpid(child, 0, 0);
    }
    close(ends[1]);
    while (wait(0) > 0)
        ;
    return 0;
}
