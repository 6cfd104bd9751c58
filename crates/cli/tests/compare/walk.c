/* Walks, jumps and writes over an array, the same way each time. Arguments: how many pages; `map`
   to map the array rather than allocate it, so that an engine hears of it before its first touch,
   whatever the allocator. */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#define WORDS 512

int main(int count, char** arguments)
{
   size_t pages = count > 1 ? strtoul(arguments[1], NULL, 10) : 1;
   size_t bytes = pages * WORDS * sizeof(uint64_t);
   uint64_t* array = count > 2 ? mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
                               : malloc(bytes);
   uint64_t chance = 88172645463325252ull, sum = 0;
   if (array == NULL || array == MAP_FAILED)
      return 1;
   for (size_t page = 0; page < pages; page++)
      array[page * WORDS] = page;
   for (size_t step = 0; step < 3 * pages; step++) {
      chance ^= chance << 13;
      chance ^= chance >> 7;
      chance ^= chance << 17;
      size_t page = (chance >> 20) % pages;
      page = page * page / pages; /* low pages more often */
      sum += array[page * WORDS];
      if (chance & 1024)
         array[page * WORDS + 7] = sum;
      if (step % 4 == 0)
         for (size_t next = 0; next < 3; next++)
            sum ^= array[(step / 4 + next) % pages * WORDS + 9];
   }
   for (size_t page = 0; page < pages; page++)
      sum += array[page * WORDS + 3];
   printf("%lu\n", (unsigned long)sum);
   return 0;
}
