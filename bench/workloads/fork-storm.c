/* Forks over and over from a process with some memory of its own, as a shell or a build does.
 *
 *     fork-storm FORKS KILOBYTES
 *
 * The parent touches so much memory once. Each child writes to a quarter of it and ends; the
 * parent waits for it. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int count, char **words)
{
    if (count != 3)
        return 2;
    long forks = atol(words[1]), bytes = atol(words[2]) * 1024;
    volatile char *memory = malloc(bytes);
    if (!memory)
        return 1;
    for (long at = 0; at < bytes; at += 4096)
        memory[at] = 1;
    for (long number = 0; number < forks; number++) {
        pid_t child = fork();
        if (child < 0)
            return 1;
        if (child == 0) {
            for (long at = 0; at < bytes; at += 4 * 4096)
                memory[at] = 2;
            _exit(0);
        }
        waitpid(child, 0, 0);
    }
    return 0;
}
