/* Calls every function about pagers and stores, and makes their errors. Its arguments are a folder,
   the address of a server without the name, and the address of one that does not answer. */

#define _GNU_SOURCE
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <tidemark_memory.h>

#include "expect.h"

#define MIB ((size_t)1 << 20)
#define PAGE ((size_t)4096)
#define RW (PROT_READ | PROT_WRITE)
#define FAILED TIDEMARK_MAP_FAILED

/* Contents in plain memory, and what goes wrong with them. */
struct contents {
    unsigned char *bytes;
    size_t size;
    /* What calls that include this offset return. */
    uint64_t bad_offset;
    int bad_read, bad_write;
    /* The number of calls that return EAGAIN. */
    int busy;
    int ended;
};

static int trouble(struct contents *contents, uint64_t offset, size_t bytes, int bad)
{
    if (__atomic_load_n(&contents->busy, __ATOMIC_SEQ_CST) > 0 &&
        __atomic_fetch_sub(&contents->busy, 1, __ATOMIC_SEQ_CST) > 0)
        return EAGAIN;
    int is_there = offset <= contents->bad_offset && contents->bad_offset < offset + bytes;
    return is_there ? __atomic_load_n(&bad, __ATOMIC_SEQ_CST) : 0;
}

static int read_contents(void *context, uint64_t offset, void *into, size_t bytes)
{
    struct contents *contents = context;
    if (offset + bytes > contents->size)
        return ERANGE;
    memcpy(into, contents->bytes + offset, bytes);
    return trouble(contents, offset, bytes, contents->bad_read);
}

static int write_contents(void *context, uint64_t offset, const void *from, size_t bytes)
{
    struct contents *contents = context;
    if (offset + bytes > contents->size)
        return ERANGE;
    int error = trouble(contents, offset, bytes, contents->bad_write);
    if (error == 0)
        memcpy(contents->bytes + offset, from, bytes);
    return error;
}

static void end_contents(void *context)
{
    ((struct contents *)context)->ended++;
}

static struct contents make_contents(size_t size)
{
    struct contents made = { .bytes = malloc(size), .size = size };
    for (size_t n = 0; made.bytes != NULL && n < size; n++)
        made.bytes[n] = (unsigned char)(n * 7 >> 5);
    return made;
}

static struct tidemark_pager pager_of(struct contents *contents)
{
    return (struct tidemark_pager){ .bytes = contents->size,   .read = read_contents,
                                    .write = write_contents,   .end = end_contents,
                                    .context = contents,       .name = "the test's pager" };
}

static void test_contents(void)
{
    /* The last page is a part of one. */
    struct contents contents = make_contents(3 * MIB + 100);
    struct tidemark_pager pager = pager_of(&contents);
    pager.write = NULL;
    const unsigned char *read = tidemark_mmap_pager(NULL, &pager, PROT_READ, MAP_PRIVATE);
    EXPECT(read != FAILED && memcmp(read, contents.bytes, contents.size) == 0);
    unsigned char *copy = tidemark_mmap_pager(NULL, &pager, RW, MAP_PRIVATE);
    EXPECT(copy != FAILED);
    memset(copy + MIB, 200, MIB);
    EXPECT(memcmp(copy, contents.bytes, MIB) == 0 && copy[2 * MIB - 1] == 200);
    EXPECT(contents.bytes[MIB + 1] != 200 && contents.ended == 0);
    EXPECT(tidemark_munmap(copy, contents.size) == 0 && contents.ended == 1);
    EXPECT(tidemark_munmap((void *)read, contents.size) == 0 && contents.ended == 2);

    pager = pager_of(&contents);
    unsigned char *shared = tidemark_mmap_pager(NULL, &pager, RW, MAP_SHARED);
    EXPECT(shared != FAILED);
    contents.busy = 3;
    for (size_t n = 0; n < contents.size; n++)
        shared[n] = (unsigned char)(shared[n] + 1);
    EXPECT(contents.busy <= 0);
    EXPECT(tidemark_flush(shared, contents.size, MS_SYNC) == 0);
    EXPECT(contents.bytes[0] == 1 && memcmp(shared, contents.bytes, contents.size) == 0);
    shared[5] = 77;
    EXPECT(tidemark_munmap(shared, contents.size) == 0);
    EXPECT(contents.bytes[5] == 77 && contents.ended == 3);
    free(contents.bytes);
}

static void test_write_errors(void)
{
    struct contents contents = make_contents(64 * PAGE);
    struct tidemark_pager pager = pager_of(&contents);
    struct tidemark_failure failure = { 0 };
    unsigned char *shared = tidemark_mmap_pager(NULL, &pager, RW, MAP_SHARED);
    EXPECT(shared != FAILED);
    shared[9 * PAGE] = 99;
    EXPECT_FAILED(tidemark_failed(shared, &failure) == TIDEMARK_ARGUMENT, TIDEMARK_ARGUMENT, EINVAL,
                  "no call of a pager failed there");
    contents.bad_offset = 9 * PAGE;
    contents.bad_write = ENOSPC;
    EXPECT_FAILED(tidemark_flush(shared, contents.size, MS_SYNC) == -1, TIDEMARK_FILE_WRITE, ENOSPC,
                  "`the test's pager` can't be written at byte 36864: No space left on device");
    EXPECT(tidemark_failed(shared + 20 * PAGE, &failure) == TIDEMARK_OK);
    EXPECT(failure.region == shared && failure.offset <= 9 * PAGE && failure.is_write == 1);
    EXPECT(failure.offset + failure.bytes > 9 * PAGE && failure.error == ENOSPC);
    /* What is no errno is an error as well. */
    contents.bad_write = -7;
    EXPECT_FAILED(tidemark_flush(shared, contents.size, MS_SYNC) == -1, TIDEMARK_FILE_WRITE, EIO,
                  "it returned -7; needs 0 or an errno");
    contents.bad_write = 0;
    EXPECT(shared[9 * PAGE] == 99 && tidemark_flush(shared, contents.size, MS_SYNC) == 0);
    EXPECT(contents.bytes[9 * PAGE] == 99 && tidemark_munmap(shared, contents.size) == 0);
    free(contents.bytes);
}

static sigjmp_buf before_touch;
static const unsigned char *touched;
static struct tidemark_failure seen;

static void handle_bus_error(int signal, siginfo_t *info, void *nothing)
{
    (void)signal, (void)nothing;
    touched = info->si_addr;
    siglongjmp(before_touch, tidemark_failed(info->si_addr, &seen) == TIDEMARK_OK ? 1 : 2);
}

/* A page that can't be read is a SIGBUS, which tells what failed. */
static void test_read_error(int error)
{
    struct contents contents = make_contents(64 * PAGE);
    contents.bad_offset = 33 * PAGE + 5;
    contents.bad_read = error;
    struct tidemark_pager pager = pager_of(&contents);
    const unsigned char *read = tidemark_mmap_pager(NULL, &pager, PROT_READ, MAP_PRIVATE);
    EXPECT(read != FAILED && tidemark_advise((void *)read, contents.size, MADV_RANDOM) == 0);
    struct sigaction before, action = { .sa_sigaction = handle_bus_error, .sa_flags = SA_SIGINFO };
    EXPECT(sigaction(SIGBUS, &action, &before) == 0);
    EXPECT(memcmp(read, contents.bytes, 8 * PAGE) == 0);
    int outcome = sigsetjmp(before_touch, 1);
    if (outcome == 0)
        EXPECT(*(const volatile unsigned char *)(read + 33 * PAGE + 9) == 0 && 0);
    EXPECT(outcome == 1 && touched >= read + 33 * PAGE && touched < read + 34 * PAGE);
    EXPECT(seen.region == read && seen.error == error && seen.is_write == 0);
    EXPECT(seen.offset <= 33 * PAGE && seen.offset + seen.bytes > 33 * PAGE);
    EXPECT(sigaction(SIGBUS, &before, NULL) == 0);
    EXPECT(tidemark_munmap((void *)read, contents.size) == 0 && contents.ended == 1);
    free(contents.bytes);
}

static void test_refusals(void)
{
    struct contents contents = { .size = 64 * MIB };
    struct tidemark_pager pager = pager_of(&contents);
    EXPECT_FAILED(tidemark_mmap_pager(NULL, NULL, RW, MAP_SHARED) == FAILED, TIDEMARK_ARGUMENT,
                  EINVAL, "`pager` is NULL");
    EXPECT_FAILED(tidemark_mmap_pager(NULL, &pager, RW, MAP_PRIVATE | MAP_ANONYMOUS) == FAILED,
                  TIDEMARK_ARGUMENT, EINVAL, "without MAP_ANONYMOUS");
    EXPECT_FAILED(tidemark_mmap_pager(NULL, &pager, PROT_EXEC, MAP_PRIVATE) == FAILED,
                  TIDEMARK_ARGUMENT, EINVAL, "`prot` is 4");
    EXPECT_FAILED(tidemark_mmap_pager(NULL, &pager, RW, MAP_PRIVATE) == FAILED, TIDEMARK_NO_ROOM,
                  ENOMEM, "`bytes` is 67108864");
    pager.write = NULL;
    EXPECT_FAILED(tidemark_mmap_pager(NULL, &pager, RW, MAP_SHARED) == FAILED, TIDEMARK_ARGUMENT,
                  EINVAL, "`write` is NULL");
    pager.bytes = UINT64_MAX;
    EXPECT_FAILED(tidemark_mmap_pager(NULL, &pager, PROT_READ, MAP_SHARED) == FAILED, TIDEMARK_FILE,
                  EOVERFLOW, "needs fewer than 16 TiB");
    pager.bytes = 0;
    EXPECT_FAILED(tidemark_mmap_pager(NULL, &pager, PROT_READ, MAP_SHARED) == FAILED,
                  TIDEMARK_ARGUMENT, EINVAL, "`bytes` of the pager is 0");
    pager.read = NULL;
    EXPECT_FAILED(tidemark_mmap_pager(NULL, &pager, PROT_READ, MAP_SHARED) == FAILED,
                  TIDEMARK_ARGUMENT, EINVAL, "`read` is NULL");
    EXPECT(contents.ended == 0);
    EXPECT(tidemark_failed(&pager, NULL) == TIDEMARK_ARGUMENT);

    size_t length = 0;
    EXPECT_FAILED(tidemark_mmap_store(NULL, NULL, &length, RW, MAP_SHARED) == FAILED,
                  TIDEMARK_ARGUMENT, EINVAL, "`url` is NULL");
    EXPECT_FAILED(tidemark_mmap_store(NULL, "redis://a/0/b", NULL, RW, MAP_SHARED) == FAILED,
                  TIDEMARK_ARGUMENT, EINVAL, "`length` is NULL");
    EXPECT_FAILED(tidemark_mmap_store(NULL, "\xff", &length, RW, MAP_SHARED) == FAILED,
                  TIDEMARK_ARGUMENT, EINVAL, "`url` is not UTF-8");
    EXPECT_FAILED(tidemark_mmap_store(NULL, "gopher://a/b", &length, RW, MAP_SHARED) == FAILED,
                  TIDEMARK_ARGUMENT, EINVAL, "`gopher://a/b` is no store");
    EXPECT_FAILED(tidemark_create_store("https://a/b", MIB), TIDEMARK_ARGUMENT, EINVAL,
                  "objects are only read");
    EXPECT_FAILED(tidemark_create_store("redis://a/0/b", 0), TIDEMARK_ARGUMENT, EINVAL,
                  "`length` is 0");
}

static void test_store_names(const char *absent)
{
    struct tidemark_engine *engine = NULL;
    const char *wrong[] = { "nonsense", "\xff", "https://a/b" };
    const char *texts[] = { "`store` is `nonsense`; needs `", "`store` is not UTF-8",
                            "objects are only read" };
    struct tidemark_settings settings = { .memory = MIB, .swap_size = 8 * MIB };
    for (int n = 0; n < 3; n++) {
        settings.store = wrong[n];
        EXPECT_FAILED(tidemark_open(&settings, &engine), TIDEMARK_ARGUMENT, EINVAL, texts[n]);
    }
    settings.store = absent;
    EXPECT_FAILED(tidemark_open(&settings, &engine), TIDEMARK_STORE, EIO, absent);
    size_t length = 7;
    EXPECT_FAILED(tidemark_mmap_store(NULL, absent, &length, RW, MAP_SHARED) == FAILED,
                  TIDEMARK_STORE, EIO, absent);
    EXPECT(length == 7 && engine == NULL);
}

/* Zeros of which a part is with the store of the engine. */
static void test_engine(const char *store, const char *folder)
{
    struct tidemark_engine *engine = NULL;
    struct tidemark_settings settings = { .memory = MIB, .swap_size = 8 * MIB, .store = store,
                                          .swap_folder = folder };
    EXPECT(tidemark_open(&settings, &engine) == TIDEMARK_OK);
    uint64_t *numbers = tidemark_mmap_in(engine, NULL, 4 * MIB, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                                         0);
    size_t count = 4 * MIB / sizeof *numbers, sum = 0;
    EXPECT(numbers != FAILED);
    /* They compress well. */
    for (size_t n = 0; n < count; n++)
        numbers[n] = n / 64;
    for (size_t n = 0; n < count; n++)
        sum += numbers[n];
    EXPECT(sum == count / 64 * (count / 64 - 1) / 2 * 64);
    struct tidemark_statistics counted = { 0 };
    EXPECT(tidemark_count(engine, &counted) == TIDEMARK_OK);
    EXPECT(counted.resident_bytes <= MIB && counted.page_outs > 500 && counted.page_ins > 500);
    EXPECT(tidemark_munmap(numbers, 4 * MIB) == 0 && tidemark_close(engine) == TIDEMARK_OK);
}

static void test_server(const char *server, const char *folder)
{
    char url[200], swap[200];
    snprintf(url, sizeof url, "%s/array", server);
    snprintf(swap, sizeof swap, "%s/swap", server);
    test_engine(swap, folder);
    snprintf(swap, sizeof swap, "compressed+%s/both", server);
    test_engine(swap, folder);

    size_t length = 0, bytes = 2 * MIB + 300;
    EXPECT_FAILED(tidemark_mmap_store(NULL, url, &length, RW, MAP_SHARED) == FAILED, TIDEMARK_STORE,
                  EIO, url);
    EXPECT(tidemark_create_store(url, bytes) == TIDEMARK_OK);
    unsigned char *shared = tidemark_mmap_store(NULL, url, &length, RW, MAP_SHARED);
    EXPECT(shared != FAILED && length == bytes);
    for (size_t n = 0; n < length; n++)
        shared[n] = (unsigned char)(n >> 10);
    EXPECT(tidemark_flush(shared, length, MS_SYNC) == 0);
    EXPECT(tidemark_munmap(shared, length) == 0);

    unsigned char *copy = tidemark_mmap_store(NULL, url, &length, RW, MAP_PRIVATE);
    const unsigned char *read = tidemark_mmap_store(NULL, url, &length, PROT_READ, MAP_PRIVATE);
    EXPECT(copy != FAILED && read != FAILED && length == bytes);
    memset(copy, 3, MIB);
    int wrong = 0;
    for (size_t n = 0; n < length; n++)
        wrong += read[n] != (unsigned char)(n >> 10);
    EXPECT(wrong == 0 && copy[5] == 3 && copy[MIB] == read[MIB]);
    EXPECT(tidemark_munmap(copy, length) == 0 && tidemark_munmap((void *)read, length) == 0);
}

int main(int count, char **arguments)
{
    if (count != 4)
        return 2;
    struct tidemark_engine *engine;
    struct tidemark_settings settings = { .memory = MIB, .swap_folder = arguments[1],
                                          .swap_size = 8 * MIB, .store = "file" };
    if (tidemark_open(&settings, &engine) != TIDEMARK_OK) {
        printf("%s\n", tidemark_message());
        return strstr(tidemark_message(), "userfaultfd") ? 77 : 1;
    }
    printf("%s %zu %zu\n", tidemark_version(), sizeof(struct tidemark_pager),
           sizeof(struct tidemark_failure));
    EXPECT(tidemark_use(engine) == TIDEMARK_OK);
    test_contents();
    test_write_errors();
    test_read_error(EIO);
    test_read_error(123456);
    test_refusals();
    test_store_names(arguments[3]);
    test_engine("file", arguments[1]);
    test_engine("compressed", arguments[1]);
    test_engine("compressed+file", arguments[1]);
    if (*arguments[2] != 0)
        test_server(arguments[2], arguments[1]);
    EXPECT(tidemark_close(engine) == TIDEMARK_OK);
    printf("%d failures\n", failures);
    return failures != 0;
}
