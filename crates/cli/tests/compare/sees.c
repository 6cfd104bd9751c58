/* Appends to a file what this program sees of its world: its environment, and where libraries lie. */
#include <stdio.h>
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
    fprintf(file, "%zu %zu %p\n", variables, bytes, (void *)puts);
    return fclose(file) != 0;
}
