/* Misses of libCacheSim's simulators, as whole numbers: its own program prints four digits of a
   ratio. And their speed. Built and run by compare-libcachesim.py.

       libcachesim-misses TRACE SIZE…
       libcachesim-misses --speed TRACE SIZE

   TRACE is an oracleGeneral file; a size is a number of objects. Prints `policy size misses`, and
   with --speed `policy size misses rate`, in million references a second of processor time, best of
   three, the trace in memory. */

#include <libCacheSim.h>
#include <libCacheSim/evictionAlgo.h>
#include <libCacheSim/simulator.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SIZES_MAX = 1000, RUNS = 3 };

typedef cache_t *(*make)(const common_cache_params_t, const char *);

static const struct {
   const char *name;
   make make;
} policies[] = {
    {"lru", LRU_init},         {"opt", Belady_init}, {"fifo", FIFO_init}, {"clock", Clock_init},
    {"sieve", Sieve_init},     {"2q", TwoQ_init},    {"arc", ARC_init},   {"lirs", LIRS_init},
    {"s3-fifo", S3FIFO_init},
};
enum { POLICIES = sizeof policies / sizeof *policies };

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

static double seconds(void)
{
   struct timespec time;
   clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
   return time.tv_sec + time.tv_nsec / 1e9;
}

/* Runs one policy over the references; says how many million a second. */
static double run(make make, uint64_t size, const request_t *references, int64_t many,
                  int64_t *misses)
{
   common_cache_params_t parameters = default_common_cache_params();
   parameters.cache_size = size;
   double best = 1e30;
   for (int i = 0; i < RUNS; i++) {
      cache_t *cache = make(parameters, NULL);
      request_t *request = new_request();
      *misses = 0;
      double start = seconds();
      for (int64_t at = 0; at < many; at++) {
         request->obj_id = references[at].obj_id;
         request->next_access_vtime = references[at].next_access_vtime;
         *misses += !cache->get(cache, request);
      }
      double took = seconds() - start;
      best = took < best ? took : best;
      free_request(request);
      cache->cache_free(cache);
   }
   return many / best / 1e6;
}

static void measure(reader_t *reader, uint64_t size)
{
   int64_t many = get_num_of_req(reader);
   request_t *references = calloc(many, sizeof *references);
   request_t *request = new_request();
   for (int64_t at = 0; at < many; at++) {
      read_one_req(reader, request);
      references[at].obj_id = request->obj_id;
      references[at].next_access_vtime = request->next_access_vtime;
   }
   free_request(request);
   for (int i = 0; i < POLICIES; i++) {
      int64_t misses;
      double rate = run(policies[i].make, size, references, many, &misses);
      printf("%s %llu %lld %.2f\n", policies[i].name, (unsigned long long)size,
             (long long)misses, rate);
   }
   free(references);
}

int main(int arguments, char **argument)
{
   uint64_t sizes[SIZES_MAX];
   bool is_speed = arguments > 1 && strcmp(argument[1], "--speed") == 0;
   char **rest = argument + 1 + is_speed;
   int many = arguments - 2 - is_speed;
   if (many < 1 || many > (is_speed ? 1 : SIZES_MAX)) {
      fprintf(stderr, "give an oracleGeneral file, and sizes; with --speed one\n");
      return 2;
   }
   for (int i = 0; i < many; i++)
      sizes[i] = strtoull(rest[i + 1], NULL, 10);
   reader_init_param_t how = default_reader_init_params();
   how.ignore_obj_size = true;
   reader_t *reader = open_trace(rest[0], ORACLE_GENERAL_TRACE, &how);
   if (is_speed)
      measure(reader, sizes[0]);
   else
      for (int i = 0; i < POLICIES; i++)
         count(reader, policies[i].name, policies[i].make, sizes, many);
   close_trace(reader);
   return 0;
}
