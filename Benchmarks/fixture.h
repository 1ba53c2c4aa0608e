/* Shared by the programs that make stores for benchmarks: how they fail, and numbers that look
 * random but follow from others. */
#ifndef BENCH_FIXTURE_H
#define BENCH_FIXTURE_H

#include <cordwood/cordwood.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static inline void fail(const char *what) {
    char why[512] = "";
    cw_last_error(why, sizeof why);
    fprintf(stderr, "%s: %s\n", what, why);
    exit(1);
}

/* splitmix64 */
static inline uint64_t mix(uint64_t z) {
    z += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

#endif
