/* ls: the files of the volume, a line each. */
#include "library.h"

int run(void)
{
    const char *name;
    for (unsigned number = 0; (name = name_of_file(number)) != NULL; number++) {
        print(name);
        print("\n");
    }
    return 0;
}
