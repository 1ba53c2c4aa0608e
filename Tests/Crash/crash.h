/* What the C and C++ writers, the workload and the checker of the crash tests share: the messages,
 * derived from thread, number and seed (crash.py and the Swift writer make the same), and the
 * counters of kept records, which outlive the process. */
#ifndef CRASH_H
#define CRASH_H

#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { THREADS = 8, LONGEST = 3000, MESSAGE_MAX = LONGEST + 64, KEPT_BYTES = 4096 };

static char letters[LONGEST + 26];

static inline void fill_letters(void) {
    for (size_t i = 0; i < sizeof letters; i++) letters[i] = (char)('a' + i % 26);
}

static inline size_t filler_length(uint64_t seed, uint64_t thread, uint64_t number) {
    if (number % 997 == 996) return LONGEST;
    return 20 + (number * 7919 + thread * 104729 + seed) % 180;
}

/* Writes a message of at most MESSAGE_MAX bytes. Returns its length. */
static inline size_t make_message(char *out, uint64_t seed, uint64_t thread, uint64_t number) {
    size_t filler = filler_length(seed, thread, number);
    int head = snprintf(out, MESSAGE_MAX, "t%llu n%llu ", (unsigned long long)thread,
                        (unsigned long long)number);
    memcpy(out + head, letters + number % 26, filler);
    return (size_t)head + filler;
}

/* The filler of that message, as a string. */
static inline void make_filler(char *out, uint64_t seed, uint64_t thread, uint64_t number) {
    size_t filler = filler_length(seed, thread, number);
    memcpy(out, letters + number % 26, filler);
    out[filler] = '\0';
}

/* Every eighth word counts the kept records of a thread. NULL: there is no file. */
static inline uint64_t *map_kept(const char *path) {
    int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0 || ftruncate(file, KEPT_BYTES) != 0) return NULL;
    void *start = mmap(NULL, KEPT_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    return start == MAP_FAILED ? NULL : (uint64_t *)start;
}

static inline void note_kept(uint64_t *kept, uint64_t thread, uint64_t count) {
    __atomic_store_n(&kept[thread * 8], count, __ATOMIC_RELEASE);
}

static inline uint64_t sum_kept(const uint64_t *kept) {
    uint64_t sum = 0;
    for (size_t i = 0; i < THREADS; i++) sum += __atomic_load_n(&kept[i * 8], __ATOMIC_RELAXED);
    return sum;
}

/* Polls until that many records are kept. False: not within two minutes. */
static inline bool wait_until_kept(const uint64_t *kept, uint64_t records) {
    for (int turn = 0; turn < 600000; turn++) {
        if (sum_kept(kept) >= records) return true;
        usleep(200);
    }
    return false;
}

#endif
