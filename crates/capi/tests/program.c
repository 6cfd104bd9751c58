/* Calls every function of the library, and every error that a program can make. Its arguments are a
   folder and a file that does not exist. */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tidemark_memory.h>

#include "expect.h"

#define MIB ((size_t)1 << 20)
#define PAGE ((size_t)4096)

#define RW (PROT_READ | PROT_WRITE)
#define ANONYMOUS (MAP_PRIVATE | MAP_ANONYMOUS)
#define FAILED TIDEMARK_MAP_FAILED

static void test_settings(const char *folder)
{
    struct tidemark_engine *engine = NULL;
    struct tidemark_settings settings = { .memory = 1 };
    EXPECT_FAILED(tidemark_open(&settings, &engine) != TIDEMARK_OK, TIDEMARK_ARGUMENT, EINVAL,
                  "`memory` is 1 bytes");
    settings = (struct tidemark_settings){ .policy = "no such" };
    EXPECT_FAILED(tidemark_open(&settings, &engine) == TIDEMARK_ARGUMENT, TIDEMARK_ARGUMENT, EINVAL,
                  "no policy called `no such`");
    settings = (struct tidemark_settings){ .policy = "\xff" };
    EXPECT_FAILED(tidemark_open(&settings, &engine) == TIDEMARK_ARGUMENT, TIDEMARK_ARGUMENT, EINVAL,
                  "`policy` is not UTF-8");
    settings = (struct tidemark_settings){ .swap_folder = "/nowhere/at/all" };
    EXPECT_FAILED(tidemark_open(&settings, &engine) == TIDEMARK_SYSTEM, TIDEMARK_SYSTEM, ENOENT,
                  "`/nowhere/at/all`");
    EXPECT_FAILED(tidemark_open(NULL, NULL) == TIDEMARK_ARGUMENT, TIDEMARK_ARGUMENT, EINVAL,
                  "`engine` is NULL");
    EXPECT(engine == NULL);
    settings = (struct tidemark_settings){
        .memory = MIB, .policy = "mach86", .swap_folder = folder, .swap_size = 8 * MIB
    };
    EXPECT(tidemark_open(&settings, &engine) == TIDEMARK_OK);
    EXPECT(tidemark_status() == TIDEMARK_OK && *tidemark_message() == 0);
    EXPECT(tidemark_close(engine) == TIDEMARK_OK);
    EXPECT_FAILED(tidemark_close(engine) == TIDEMARK_ARGUMENT, TIDEMARK_ARGUMENT, EINVAL,
                  "`engine` is not open");
    EXPECT(tidemark_use(engine) == TIDEMARK_ARGUMENT);
    EXPECT(tidemark_mmap_in(engine, NULL, PAGE, RW, ANONYMOUS, -1, 0) == FAILED);
}

static void test_zeros(void)
{
    uint64_t *numbers = tidemark_mmap(NULL, 4 * MIB, RW, ANONYMOUS, -1, 0);
    size_t count = 4 * MIB / sizeof *numbers, sum = 0;
    EXPECT(numbers != FAILED);
    for (size_t n = 0; n < count; n++)
        numbers[n] = n;
    EXPECT(tidemark_advise(numbers, 4 * MIB, MADV_SEQUENTIAL) == 0);
    for (size_t n = 0; n < count; n++)
        sum += numbers[n];
    EXPECT(sum == count * (count - 1) / 2);
    struct tidemark_statistics counted = { 0 };
    EXPECT(tidemark_count(NULL, &counted) == TIDEMARK_OK);
    EXPECT(counted.resident_bytes <= MIB && counted.region_bytes == 4 * MIB);
    EXPECT(counted.page_outs > 500 && counted.page_ins > 500 && counted.faults > 10);
    EXPECT(counted.file_page_outs == 0 && counted.zero_fills == 1024);
    EXPECT(tidemark_count(NULL, NULL) == TIDEMARK_ARGUMENT);

    char *bytes = (char *)numbers;
    EXPECT(tidemark_advise(bytes + PAGE, 2 * PAGE, MADV_DONTNEED) == 0);
    EXPECT(numbers[511] == 511 && numbers[512] == 0 && numbers[1535] == 0 && numbers[1536] == 1536);
    EXPECT(tidemark_advise(bytes, 4 * MIB, MADV_RANDOM) == 0);
    EXPECT(tidemark_advise(bytes, 4 * MIB, MADV_NORMAL) == 0);
    EXPECT(tidemark_advise(bytes, 8 * PAGE, MADV_WILLNEED) == 0);
    EXPECT(tidemark_flush(bytes, 4 * MIB, MS_SYNC) == 0);
    EXPECT_FAILED(tidemark_advise(bytes, PAGE, 77) == -1, TIDEMARK_ARGUMENT, EINVAL,
                  "`advice` is 77");
    EXPECT_FAILED(tidemark_advise(bytes + PAGE, 4 * MIB, MADV_RANDOM) == -1, TIDEMARK_ARGUMENT,
                  EINVAL, "is not within a region of 4194304 bytes");
    EXPECT_FAILED(tidemark_advise(&counted, 1, MADV_RANDOM) == -1, TIDEMARK_ARGUMENT, EINVAL,
                  "needs an address of `tidemark_mmap`");
    EXPECT_FAILED(tidemark_flush(bytes, PAGE, 64) == -1, TIDEMARK_ARGUMENT, EINVAL, "`flags` is 64");
    EXPECT_FAILED(tidemark_munmap(bytes, 2 * MIB) == -1, TIDEMARK_ARGUMENT, EINVAL,
                  "`length` is 2097152; needs 4194304");
    EXPECT(tidemark_munmap(bytes + PAGE, PAGE) == -1);
    EXPECT(tidemark_munmap(numbers, 4 * MIB) == 0);
    EXPECT(tidemark_munmap(numbers, 4 * MIB) == -1);
    EXPECT(tidemark_count(NULL, &counted) == TIDEMARK_OK && counted.region_bytes == 0);
}

static void test_refusals(int file)
{
    EXPECT_FAILED(tidemark_mmap(NULL, 0, RW, ANONYMOUS, -1, 0) == FAILED, TIDEMARK_ARGUMENT, EINVAL,
                  "`length` is 0");
    EXPECT_FAILED(tidemark_mmap(NULL, 1, PROT_NONE, ANONYMOUS, -1, 0) == FAILED, TIDEMARK_ARGUMENT,
                  EINVAL, "`prot` is 0");
    EXPECT_FAILED(tidemark_mmap(NULL, 1, RW, ANONYMOUS | MAP_FIXED, -1, 0) == FAILED,
                  TIDEMARK_ARGUMENT, EINVAL, "`flags` is 0x32");
    EXPECT_FAILED(tidemark_mmap(NULL, 1, RW, MAP_SHARED | MAP_ANONYMOUS, -1, 0) == FAILED,
                  TIDEMARK_ARGUMENT, EINVAL, "needs MAP_PRIVATE or MAP_SHARED");
    EXPECT_FAILED(tidemark_mmap(NULL, 64 * MIB, RW, ANONYMOUS, -1, 0) == FAILED, TIDEMARK_NO_ROOM,
                  ENOMEM, "`bytes` is 67108864");
    EXPECT_FAILED(tidemark_mmap(NULL, SIZE_MAX, RW, ANONYMOUS, -1, 0) == FAILED, TIDEMARK_NO_ROOM,
                  ENOMEM, "`bytes` is");
    EXPECT_FAILED(tidemark_mmap(NULL, 1, RW, MAP_SHARED, 999, 0) == FAILED, TIDEMARK_ARGUMENT, EBADF,
                  "`fd` is 999");
    EXPECT_FAILED(tidemark_mmap(NULL, 1, RW, MAP_SHARED, file, -1) == FAILED, TIDEMARK_ARGUMENT,
                  EINVAL, "`offset` is below 0");
    EXPECT_FAILED(tidemark_mmap(NULL, 1, RW, MAP_SHARED, file, 7) == FAILED, TIDEMARK_ARGUMENT,
                  EINVAL, "`offset` is 7; needs a multiple of 4096");
    EXPECT_FAILED(tidemark_mmap(NULL, 5 * MIB, RW, MAP_SHARED, file, 0) == FAILED, TIDEMARK_FILE,
                  EINVAL, "make it longer by `ftruncate`");
    EXPECT_FAILED(tidemark_mmap(NULL, 5 * MIB, PROT_READ, MAP_SHARED, file, 0) == FAILED,
                  TIDEMARK_FILE, EINVAL, "has 4194304 bytes");
    int folder = open("/", O_RDONLY | O_DIRECTORY);
    EXPECT_FAILED(tidemark_mmap(NULL, 1, PROT_READ, MAP_PRIVATE, folder, 0) == FAILED, TIDEMARK_FILE,
                  ENODEV, "`/` is not a regular file");
    EXPECT_FAILED(tidemark_mmap(NULL, 1, RW, MAP_SHARED, folder, 0) == FAILED, TIDEMARK_ARGUMENT,
                  EACCES, "needs one that is open to read and write");
    close(folder);
}

static void test_file(const char *path)
{
    int file = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
    EXPECT(file >= 0 && ftruncate(file, (off_t)(4 * MIB)) == 0);
    test_refusals(file);
    unsigned char *shared = tidemark_mmap(NULL, 4 * MIB, RW, MAP_SHARED, file, 0);
    EXPECT(shared != FAILED);
    memset(shared, 3, 4 * MIB);
    EXPECT(tidemark_flush(shared, 4 * MIB, MS_SYNC) == 0);
    unsigned char byte = 0;
    EXPECT(pread(file, &byte, 1, (off_t)(3 * MIB)) == 1 && byte == 3);
    EXPECT_FAILED(tidemark_mmap(NULL, MIB, RW, MAP_SHARED, file, 0) == FAILED, TIDEMARK_FILE_IN_USE,
                  EWOULDBLOCK, path);

    const unsigned char *read = tidemark_mmap(NULL, MIB, PROT_READ, MAP_SHARED, file, 0);
    unsigned char *copy = tidemark_mmap(NULL, MIB, RW, MAP_PRIVATE, file, (off_t)MIB);
    EXPECT(read != FAILED && copy != FAILED && read[5] == 3 && copy[5] == 3);
    copy[5] = 9;
    EXPECT(tidemark_flush(copy, MIB, MS_SYNC) == 0 && shared[MIB + 5] == 3);
    EXPECT(tidemark_advise(copy, MIB, MADV_DONTNEED) == 0 && copy[5] == 3);
    EXPECT(tidemark_munmap((void *)read, MIB) == 0 && tidemark_munmap(copy, MIB) == 0);

    shared[7] = 8;
    EXPECT(tidemark_advise(shared, 4 * MIB, MADV_DONTNEED) == 0 && shared[7] == 8);
    EXPECT(tidemark_munmap(shared, 4 * MIB) == 0);
    EXPECT(pread(file, &byte, 1, 7) == 1 && byte == 8);

    shared = tidemark_mmap(NULL, 4 * MIB, RW, MAP_SHARED, file, 0);
    EXPECT(shared != FAILED);
    memset(shared + MIB, 4, PAGE);
    EXPECT(ftruncate(file, (off_t)PAGE) == 0);
    EXPECT_FAILED(tidemark_flush(shared, 4 * MIB, MS_SYNC) == -1, TIDEMARK_FILE_CUT, EIO,
                  "was cut to 4096 bytes of 4194304");
    EXPECT(tidemark_munmap(shared, 4 * MIB) == 0);
    struct stat found;
    EXPECT(fstat(file, &found) == 0 && found.st_size == (off_t)PAGE);
    close(file);
}

static void test_fork(void)
{
    char *memory = tidemark_mmap(NULL, PAGE, RW, ANONYMOUS, -1, 0);
    EXPECT(memory != FAILED);
    memory[0] = 1;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        int before = failures;
        EXPECT_FAILED(tidemark_mmap(NULL, PAGE, RW, ANONYMOUS, -1, 0) == FAILED, TIDEMARK_FORKED,
                      EPERM, "a forked child has no engine");
        EXPECT(tidemark_advise(memory, PAGE, MADV_RANDOM) == -1);
        struct tidemark_engine *engine;
        struct tidemark_settings settings = { .memory = MIB, .swap_size = MIB };
        EXPECT(tidemark_open(&settings, &engine) == TIDEMARK_OK);
        EXPECT(tidemark_mmap_in(engine, NULL, PAGE, RW, ANONYMOUS, -1, 0) != FAILED);
        fflush(stdout);
        _exit(failures > before);
    }
    int status = -1;
    EXPECT(waitpid(child, &status, 0) == child && status == 0);
    EXPECT(memory[0] == 1 && tidemark_munmap(memory, PAGE) == 0);
}

/* A message is that of its own thread. */
static void *fail_elsewhere(void *nothing)
{
    EXPECT(tidemark_status() == TIDEMARK_OK);
    EXPECT(tidemark_close(NULL) == TIDEMARK_ARGUMENT);
    return nothing;
}

static void test_threads(void)
{
    pthread_t thread;
    EXPECT(tidemark_munmap(&thread, 123) == -1);
    EXPECT(pthread_create(&thread, NULL, fail_elsewhere, NULL) == 0);
    EXPECT(pthread_join(thread, NULL) == 0);
    EXPECT(strstr(tidemark_message(), "`addr` is 0x") != NULL);
}

int main(int count, char **arguments)
{
    if (count != 3)
        return 2;
    struct tidemark_engine *engine;
    struct tidemark_settings settings = { .memory = MIB, .swap_folder = arguments[1],
                                          .swap_size = 8 * MIB };
    if (tidemark_open(&settings, &engine) != TIDEMARK_OK) {
        printf("%s\n", tidemark_message());
        return strstr(tidemark_message(), "userfaultfd") ? 77 : 1;
    }
    printf("%s %zu %zu\n", tidemark_version(), sizeof settings, sizeof(struct tidemark_statistics));
    EXPECT(tidemark_use(engine) == TIDEMARK_OK);
    test_settings(arguments[1]);
    test_zeros();
    test_file(arguments[2]);
    test_fork();
    test_threads();
    EXPECT(tidemark_close(engine) == TIDEMARK_OK);
    /* Another is made as it is needed. */
    void *memory = tidemark_mmap(NULL, 2 * MIB, RW, ANONYMOUS, -1, 0);
    EXPECT(memory != FAILED && tidemark_munmap(memory, 2 * MIB) == 0);
    EXPECT(tidemark_use(NULL) == TIDEMARK_OK);
    printf("%d failures\n", failures);
    return failures != 0;
}
