/* What the programs of these tests expect, and how many times it was not so. */
static int failures;

/* Expects something to hold, and says where it does not. */
#define EXPECT(what)                                                                               \
    ((what) ? (void)0                                                                              \
            : (void)(failures++, printf("line %d: %s (%s)\n", __LINE__, #what, tidemark_message())))

/* Expects a call that failed to have come to `status` and `error`, with a message about `text`. */
#define EXPECT_FAILED(what, status, error, text)                                                   \
    do {                                                                                           \
        errno = 0;                                                                                 \
        EXPECT(what);                                                                              \
        EXPECT(errno == (error));                                                                  \
        EXPECT(tidemark_status() == (status));                                                     \
        EXPECT(strstr(tidemark_message(), (text)) != NULL);                                        \
    } while (0)
