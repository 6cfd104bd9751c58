/* Appends to a file what this program sees of its world: its name, its environment, whether that
   stands right behind its arguments, where libraries lie, and which of the
   allocator's places it gets. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern char **environ;

int main(int count, char **words)
{
    FILE *file = count == 2 ? fopen(words[1], "a") : NULL;
    if (file == NULL)
        return 1;
    size_t bytes = 0, variables = 0;
    for (; environ[variables] != NULL; variables++)
        bytes += strlen(environ[variables]) + 1;
    const char *behind = words[1] + strlen(words[1]) + 1;
    fprintf(file, "%s %zu %zu %d %p %lx\n", words[0], variables, bytes, environ[0] == behind,
            (void *)puts, (unsigned long)malloc(300) & 0xffff);
    return fclose(file) != 0;
}
