// Fills a Redis server over a Unix socket, then reads and writes its keys by Zipf's law, and shuts it
// down: client SOCKET KEYS REQUESTS
//
// Requests go out in batches, so that the server is what takes time. Prints the number of answers and
// a hash of all of them, which depends on what the server holds alone.
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { BATCH = 64, REQUEST_MAX = 512 };

static uint64_t state = 1;
static uint64_t hash = 14695981039346656037u;
static int server;
static char answers[1 << 16];
static size_t answers_used, answers_length;

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static uint64_t next_random(void) {
    uint64_t z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

// Zipf's law with exponent 0.99, by inverting the integral of its density.
static uint64_t next_rank(uint64_t keys) {
    double uniform = (double)(next_random() >> 11) / 9007199254740992.0;
    double most = pow((double)keys, 0.01);
    uint64_t rank = (uint64_t)pow(uniform * (most - 1) + 1, 100) - 1;
    return rank < keys ? rank : keys - 1;
}

// Scatters the ranks over the keys, so that frequent ones do not lie side by side.
static uint64_t key_of(uint64_t rank, uint64_t keys) {
    return rank * 2654435761u % keys;
}

static void connect_to(const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strncpy(address.sun_path, path, sizeof address.sun_path - 1);
    for (;;) {
        server = socket(AF_UNIX, SOCK_STREAM, 0);
        if (server < 0) fail("socket");
        if (connect(server, (struct sockaddr *)&address, sizeof address) == 0) return;
        close(server);
        usleep(10000);  // It has not begun to listen; who runs this sets a limit.
    }
}

static int next_byte(void) {
    if (answers_used == answers_length) {
        ssize_t count = read(server, answers, sizeof answers);
        if (count < 0) fail("read");
        if (count == 0) return -1;
        answers_used = 0;
        answers_length = (size_t)count;
    }
    return (unsigned char)answers[answers_used++];
}

static void take_byte(void) {
    int byte = next_byte();
    if (byte < 0) {
        fprintf(stderr, "the server has gone away\n");
        exit(1);
    }
    hash = (hash ^ (uint64_t)byte) * 1099511628211u;
}

// Takes one answer: a line, and the bytes that it announces.
static void take_answer(void) {
    char line[64];
    size_t length = 0;
    do {
        take_byte();
        line[length] = answers[answers_used - 1];
    } while (line[length] != '\n' && ++length < sizeof line - 1);
    line[length] = 0;
    if (line[0] == '-') {
        fprintf(stderr, "the server says: %s\n", line);
        exit(1);
    }
    long bytes = line[0] == '$' ? strtol(line + 1, NULL, 10) : -1;
    for (long left = bytes < 0 ? 0 : bytes + 2; left > 0; left--) take_byte();
}

static void send_all(const char *text, size_t length) {
    while (length > 0) {
        ssize_t count = write(server, text, length);
        if (count < 0) fail("write");
        text += count;
        length -= (size_t)count;
    }
}

static size_t format_set(char *text, uint64_t key, uint64_t value) {
    char name[32], content[200];
    int name_length = snprintf(name, sizeof name, "user:%08llu", (unsigned long long)key);
    int length = snprintf(content, sizeof content, "{\"id\":%llu,\"visits\":%llu,\"mail\":\"user-%llx@example.org\"}",
                          (unsigned long long)key, (unsigned long long)(value % 1000),
                          (unsigned long long)(key * 2654435761u));
    return (size_t)sprintf(text, "*3\r\n$3\r\nSET\r\n$%d\r\n%s\r\n$%d\r\n%s\r\n", name_length, name, length, content);
}

static size_t format_get(char *text, uint64_t key) {
    return (size_t)sprintf(text, "*2\r\n$3\r\nGET\r\n$13\r\nuser:%08llu\r\n", (unsigned long long)key);
}

static void send_batch(uint64_t first, uint64_t count, uint64_t keys, int is_filling) {
    static char text[BATCH * REQUEST_MAX];
    size_t length = 0;
    for (uint64_t number = first; number < first + count; number++) {
        if (is_filling) {
            length += format_set(text + length, number, 0);
            continue;
        }
        uint64_t key = key_of(next_rank(keys), keys);
        int is_write = next_random() % 4 == 0;
        length += is_write ? format_set(text + length, key, number) : format_get(text + length, key);
    }
    send_all(text, length);
    for (uint64_t number = 0; number < count; number++) take_answer();
}

static void work(uint64_t requests, uint64_t keys, int is_filling) {
    for (uint64_t first = 0; first < requests; first += BATCH) {
        uint64_t left = requests - first;
        send_batch(first, left < BATCH ? left : BATCH, keys, is_filling);
    }
}

int main(int count, char **arguments) {
    if (count != 4) {
        fprintf(stderr, "usage: client SOCKET KEYS REQUESTS\n");
        return 2;
    }
    uint64_t keys = strtoull(arguments[2], NULL, 10), requests = strtoull(arguments[3], NULL, 10);
    connect_to(arguments[1]);
    work(keys, keys, 1);
    work(requests, keys, 0);
    const char *stop = "*2\r\n$8\r\nSHUTDOWN\r\n$6\r\nNOSAVE\r\n";
    send_all(stop, strlen(stop));
    while (next_byte() >= 0) {}
    printf("%llu answers, %016llx\n", (unsigned long long)(keys + requests), (unsigned long long)hash);
    return 0;
}
