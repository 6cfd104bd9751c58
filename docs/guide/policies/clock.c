// The clock, as a policy that is read from a file: the oldest page leaves, unless it was used since
// it was last looked at. docs/formats/policy-module-v1.md describes the functions.
//
//     clang --target=wasm32 -O2 -nostdlib -Wl,--no-entry -o clock.wasm clock.c

#define EXPORT(name) __attribute__((export_name(#name))) name
#define IMPORT(name) __attribute__((import_module("tidemark"), import_name(#name))) name
#define PAGE 65536u

int IMPORT(may_leave)(unsigned frame);
int IMPORT(take_referenced)(unsigned frame);

// A ring of frames. Its head is the entry after the last frame.
static struct { unsigned next, previous; } *ring;
static unsigned head, count;

int EXPORT(tidemark_policy_v1)(void) { return 1; } // sees bits

const char *EXPORT(summary)(void) { return "the clock, written in C: oldest first, with a second chance"; }

void EXPORT(start)(unsigned frames_max, unsigned frames, unsigned long long seed) {
    unsigned long bytes = (frames_max + 1) * sizeof *ring;
    unsigned long at = __builtin_wasm_memory_grow(0, (bytes + PAGE - 1) / PAGE);
    if (at == -1ul)
        __builtin_trap();
    ring = (void *)(at * PAGE);
    head = frames_max;
    ring[head].next = ring[head].previous = head;
}

static void push(unsigned frame) {
    unsigned last = ring[head].previous;
    ring[frame].next = head;
    ring[frame].previous = last;
    ring[last].next = ring[head].previous = frame;
}

static void take(unsigned frame) {
    ring[ring[frame].previous].next = ring[frame].next;
    ring[ring[frame].next].previous = ring[frame].previous;
}

void EXPORT(page_entered)(unsigned frame, unsigned object, unsigned long long index, int cause,
                          unsigned space, int is_external) {
    push(frame);
    count++;
}

void EXPORT(page_left)(unsigned frame, unsigned object, unsigned long long index, int departure) {
    take(frame);
    count--;
}

int EXPORT(choose)(void) {
    // One round clears every bit, so that the second finds a page if any may leave.
    for (unsigned left = 2 * count; left > 0; left--) {
        unsigned frame = ring[head].next;
        if (may_leave(frame) && !take_referenced(frame))
            return frame;
        take(frame);
        push(frame);
    }
    return -1;
}
