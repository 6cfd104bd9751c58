/* Text and numbers. */
#include "library.h"

size_t length_of(const char *text)
{
    size_t length = 0;
    while (text[length])
        length++;
    return length;
}

int is_same(const char *one, const char *other)
{
    while (*one && *one == *other) {
        one++;
        other++;
    }
    return *one == *other;
}

void print(const char *text)
{
    write_bytes(text, length_of(text));
}

void print_number(uint64_t number)
{
    char digits[20];
    size_t first = sizeof digits;
    do {
        digits[--first] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    write_bytes(digits + first, sizeof digits - first);
}

uint64_t parse_number(const char *text)
{
    uint64_t number = 0;
    while (*text >= '0' && *text <= '9')
        number = number * 10 + (uint64_t)(*text++ - '0');
    return number;
}

void *memcpy(void *to, const void *from, size_t count)
{
    void *start = to;
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(count) : : "memory");
    return start;
}

void *memset(void *to, int byte, size_t count)
{
    void *start = to;
    __asm__ volatile("rep stosb" : "+D"(to), "+c"(count) : "a"(byte) : "memory");
    return start;
}

void *memmove(void *to, const void *from, size_t count)
{
    unsigned char *target = to;
    const unsigned char *source = from;
    if ((uintptr_t)to - (uintptr_t)from >= count)
        return memcpy(to, from, count);
    while (count-- > 0)
        target[count] = source[count];
    return to;
}

int memcmp(const void *one, const void *other, size_t count)
{
    const unsigned char *left = one, *right = other;
    for (size_t at = 0; at < count; at++)
        if (left[at] != right[at])
            return left[at] - right[at];
    return 0;
}

int bcmp(const void *one, const void *other, size_t count)
{
    return memcmp(one, other, count);
}
