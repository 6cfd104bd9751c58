/* misbehave [CHILDREN]: children that each do what a program may not, and others that make system
   calls with arguments that mean nothing. Says how many were not ended for the former. */
#include "call.h"
#include "library.h"

static volatile uint64_t nothing;
static volatile int deepest = 1 << 20;

static int overflow(int depth)
{
    volatile char room[4096];
    room[0] = (char)depth;
    return depth < deepest ? overflow(depth + 1) + room[0] : room[0];
}

static __attribute__((noinline)) void do_wrong(int which)
{
    switch (which) {
    case 0: /* A wild pointer. */
        *(volatile uint64_t *)0x123456789000 = 1;
        break;
    case 1: /* The kernel's memory. */
        nothing = *(volatile uint64_t *)0xffffffff80000000;
        break;
    case 2: /* A write to text. */
        *(volatile char *)(uintptr_t)&run = 1;
        break;
    case 3: /* Executing variables. */
        ((void (*)(void))(uintptr_t)&nothing)();
        break;
    case 4: /* The stack's end. */
        overflow(0);
        break;
    case 5: /* An instruction of the kernel's. */
        __asm__ volatile("hlt");
        break;
    case 6: /* No instruction at all. */
        __asm__ volatile("ud2");
        break;
    case 7: /* A division by zero. */
        __asm__ volatile("div %0" : : "r"(0UL) : "rax", "rdx");
        break;
    case 8: /* An address that is none. */
        nothing = *(volatile uint64_t *)0x8000000000000000;
        break;
    case 9: /* A port. */
        __asm__ volatile("outb %b0, $0xf4" : : "a"(0));
        break;
    case 10: /* An interrupt that is the kernel's own. */
        __asm__ volatile("int $14");
        break;
    case 11: /* The null pointer. */
        nothing = *(volatile uint64_t *)0;
        break;
    case 12: /* The place after the last. */
        ((void (*)(void))0x800000000000)();
        break;
    case 13: /* No place to go on at after a call, had it come from there. */
        __asm__ volatile("mov $0x8000000000000000, %%rcx; jmp *%0" : : "r"(~0UL << 31) : "rcx");
        break;
    }
}

/* Calls with random arguments, none of which may harm anybody but the caller. */
static void call_wildly(uint64_t seed)
{
    static const uint64_t interesting[] = {
        0, 1, 3, 4095, 4096, 0x1000000000, 0x7fff00000000, 0x7fffffffffff, 0x800000000000,
        0xffff800000000000, 0xffffffff80000000, 0xffffffffffffffff,
    };
    /* So that there is a file of the lowest number. */
    const char *name = name_of_file(0);
    if (name)
        open_file(name);
    for (int count = 0; count < 2000; count++) {
        uint64_t arguments[3];
        for (int number = 0; number < 3; number++) {
            seed = seed * 6364136223846793005UL + 1442695040888963407UL;
            uint64_t random = seed >> 33;
            arguments[number] = random % 3 ? interesting[random / 3 % 12] : random;
        }
        seed = seed * 6364136223846793005UL + 1442695040888963407UL;
        uint64_t number = (seed >> 33) % 24;
        /* Not to end, nor to write on the console; and to fork or sleep a little. */
        if (number == 0 || (number == 1 && arguments[0] - 1 < 2) || (number == 7 && count % 16))
            number = 99;
        if (number == 12)
            arguments[0] %= 1000000;
        /* Nor to take away the ground it stands on. */
        if ((number == 6 || number == 15 || number == 16) && arguments[0] < 0x1000000000)
            continue;
        if (call((long)number, arguments[0], arguments[1], arguments[2]) == 0 && number == 7)
            leave(0);
    }
}

int run(void)
{
    int wrong = 0;
    for (int which = 0; which < 14; which++) {
        long child = fork_process();
        if (child < 0) {
            /* The calls are left. */
            call_wildly(1);
            print("misbehave: can't fork\n");
            return 1;
        }
        if (child == 0) {
            do_wrong(which);
            leave(0);
        }
        wrong += (wait_child() & 255) != 139;
    }
    const char *text = argument(1);
    uint64_t children = text ? parse_number(text) : 8;
    for (uint64_t seed = 1; seed <= children; seed++) {
        long child = fork_process();
        if (child < 0)
            return 1;
        if (child == 0) {
            call_wildly(seed);
            leave(0);
        }
        wait_child();
    }
    print_number((uint64_t)wrong);
    print(" misdeeds went unseen\n");
    return wrong;
}
