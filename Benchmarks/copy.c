/* The lower bound for any engine: copies each record's bytes after the previous one's, into memory
 * that is already resident. The modes of load.h. No header, nothing kept: its tail is the machine's
 * own. No time either, unless built with -DTICKS: each record then begins with the processor's
 * counter, as ours do. */
#include "load.h"

enum { MEMORY_BYTES = 256 << 20 }; /* too large for the caches, like a journal's next pages */

static char *memory;
static size_t used;
static volatile char seen; /* keeps the compiler from dropping the copies */

static void engine_open(const char *where) {
    (void)where;
    memory = (char *)malloc(MEMORY_BYTES);
    if (memory == NULL) load_fail("memory");
    memset(memory, 1, MEMORY_BYTES);
}
static void engine_close(void) {
    seen = memory[used / 2];
    free(memory);
}
static void engine_say(void) { printf(",\"segment_bytes\":0"); }

#ifdef TICKS
static inline uint64_t ticks(void) {
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    uint64_t value;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(value));
    return value;
#else
    return now_ns();
#endif
}
#endif

static inline void copy(size_t number, size_t bytes) {
    if (used + bytes > MEMORY_BYTES) used = 0;
    const char *from = (const char *)messages + number % (VARIANTS - 1) * sizeof *messages;
    memcpy(memory + used, from, bytes);
#ifdef TICKS
    uint64_t now = ticks();
    memcpy(memory + used, &now, sizeof now);
#endif
    used += bytes;
}
/* As many bytes as our records take in a segment. */
WRITER write_w1(size_t first, size_t count) {
    for (size_t i = first; i < first + count; i++) copy(i, 24);
}
WRITER write_w2(size_t first, size_t count) {
    for (size_t i = first; i < first + count; i++) copy(i, 32);
}
WRITER write_w3(size_t first, size_t count) {
    for (size_t i = first; i < first + count; i++) copy(i, 72);
}
WRITER write_w4(size_t first, size_t count) {
    for (size_t i = first; i < first + count; i++) copy(i, 120);
}

int main(int argc, char **argv) { return load_main(argc, argv); }
