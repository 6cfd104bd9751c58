/* Walks and jumps over mappings of a file, and over private memory beside them, the same way each
   time. They lie at the same addresses each time, because some policies go by those. Arguments: the
   file; how many of its pages; how many pages of private memory. */

#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#define PAGE 4096
#define PLACE (1ul << 41)
#define FIXED MAP_FIXED_NOREPLACE

static uint64_t chance = 88172645463325252ull;

/* Low numbers more often. */
static size_t draw(size_t count)
{
   chance ^= chance << 13;
   chance ^= chance >> 7;
   chance ^= chance << 17;
   size_t number = (chance >> 20) % count;
   return number * number / count;
}

int main(int count, char** arguments)
{
   if (count < 4)
      return 2;
   int file = open(arguments[1], O_RDONLY);
   size_t pages = strtoul(arguments[2], NULL, 10), others = strtoul(arguments[3], NULL, 10);
   size_t half = pages / 2;
   unsigned char* own = mmap((void*)PLACE, others * PAGE, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | FIXED, -1, 0);
   unsigned char* shared = mmap((void*)(2 * PLACE), pages * PAGE, PROT_READ, MAP_SHARED | FIXED,
                                file, 0);
   /* From the middle of the file on. */
   unsigned char* copy = mmap((void*)(3 * PLACE), (pages - half) * PAGE, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | FIXED, file, half * PAGE);
   if (own == MAP_FAILED || shared == MAP_FAILED || copy == MAP_FAILED)
      return 1;
   uint64_t sum = 0;
   for (size_t page = 0; page < others; page++)
      own[page * PAGE] = page;
   for (size_t page = 0; page < pages; page++)
      sum += shared[page * PAGE + 5];
   for (size_t step = 0; step < 2 * pages; step++) {
      sum += shared[draw(pages) * PAGE + 7] + own[draw(others) * PAGE];
      size_t page = draw(pages - half);
      sum += copy[page * PAGE + 9];
      if (step % 4 == 0)
         copy[page * PAGE + 11] += sum;
      own[draw(others) * PAGE + 13] += sum;
   }
   munmap(shared, half * PAGE);
   for (size_t page = half; page < pages; page++)
      sum += shared[page * PAGE + 15] + copy[(page - half) * PAGE + 11];
   printf("%lu\n", (unsigned long)sum);
   return 0;
}
