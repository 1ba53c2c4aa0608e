/* What all programs of the benchmarks share: settings from the environment, the part of a run that
 * callgrind counts, and a clock that is the same in each run. */
#ifndef BENCH_ENVIRONMENT_H
#define BENCH_ENVIRONMENT_H

#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <valgrind/callgrind.h>

static inline uint64_t load_number(const char *name, uint64_t otherwise) {
    const char *value = getenv(name);
    return value != NULL && *value != 0 ? strtoull(value, NULL, 10) : otherwise;
}

/* With --instr-atstart=no callgrind counts what all threads do from the one to the other. */
#define COUNT_BEGIN() CALLGRIND_START_INSTRUMENTATION
#define COUNT_END() CALLGRIND_STOP_INSTRUMENTATION

/* The time of the next record, in ns of the monotonic clock, for programs that keep their engine's
 * clock (hot.h). Times take much of what an archive has of a record, so counts are the same only if
 * times are. */
static uint64_t told_ns;

/* A record's turn. One thread at a time: mostly within 2 us of the one before, one in 16 within a
 * quarter of a millisecond. */
static inline void tell_time(void) {
    static uint64_t state = 0x9E3779B97F4A7C15u;
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    uint64_t gap = (state >> 40 & 2047) << (state & 15 ? 0 : 7);
    __atomic_store_n(&told_ns, told_ns + gap, __ATOMIC_RELAXED);
}

#endif
