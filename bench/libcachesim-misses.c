/* Misses of libCacheSim's simulators, as whole numbers: its own program prints four digits of a
   ratio. Built and run by compare-libcachesim.py.

       libcachesim-misses TRACE SIZE…

   TRACE is an oracleGeneral file; a size is a number of objects. Prints `policy size misses`. */

#include <libCacheSim.h>
#include <libCacheSim/evictionAlgo.h>
#include <libCacheSim/simulator.h>
#include <stdio.h>
#include <stdlib.h>

enum { SIZES_MAX = 1000 };

typedef cache_t *(*make)(const common_cache_params_t, const char *);

static void count(reader_t *reader, const char *name, make make, uint64_t *sizes, int many)
{
   common_cache_params_t parameters = default_common_cache_params();
   parameters.cache_size = sizes[many - 1];
   cache_t *cache = make(parameters, NULL);
   cache_stat_t *found =
       simulate_at_multi_sizes(reader, cache, many, sizes, NULL, 0, 0, 1, false);
   for (int i = 0; i < many; i++)
      printf("%s %llu %llu\n", name, (unsigned long long)found[i].cache_size,
             (unsigned long long)found[i].n_miss);
   free(found);
   cache->cache_free(cache);
}

int main(int arguments, char **argument)
{
   uint64_t sizes[SIZES_MAX];
   int many = arguments - 2;
   if (many < 1 || many > SIZES_MAX) {
      fprintf(stderr, "give an oracleGeneral file, and sizes\n");
      return 2;
   }
   for (int i = 0; i < many; i++)
      sizes[i] = strtoull(argument[i + 2], NULL, 10);
   reader_init_param_t how = default_reader_init_params();
   how.ignore_obj_size = true;
   reader_t *reader = open_trace(argument[1], ORACLE_GENERAL_TRACE, &how);
   count(reader, "lru", LRU_init, sizes, many);
   count(reader, "opt", Belady_init, sizes, many);
   count(reader, "fifo", FIFO_init, sizes, many);
   count(reader, "clock", Clock_init, sizes, many);
   close_trace(reader);
   return 0;
}
