/* A histogram of times, for programs that measure millions: exact to 409.5 ns in steps of 0.1 ns,
 * beyond that to 1 part in 2,048. One thread adds; another may take over once that one has ended.
 * C11 and C++17. */
#ifndef BENCH_HISTOGRAM_H
#define BENCH_HISTOGRAM_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { HISTOGRAM_LINEAR = 4096, HISTOGRAM_STEPS = 2048, HISTOGRAM_BITS = 12 };
enum { HISTOGRAM_BUCKETS = HISTOGRAM_LINEAR + (64 - HISTOGRAM_BITS) * HISTOGRAM_STEPS };

typedef struct histogram {
    uint64_t count, sum, least, most; /* in tenths of a nanosecond */
    uint64_t buckets[HISTOGRAM_BUCKETS];
} histogram;

static inline size_t histogram_bucket(uint64_t tenths) {
    if (tenths < HISTOGRAM_LINEAR) return (size_t)tenths;
    unsigned shift = 64 - HISTOGRAM_BITS - (unsigned)__builtin_clzll(tenths);
    return (size_t)(HISTOGRAM_LINEAR + (shift - 1) * HISTOGRAM_STEPS +
                    ((tenths >> shift) - HISTOGRAM_STEPS));
}

/* The middle of a bucket's range. */
static inline uint64_t histogram_value(size_t bucket) {
    if (bucket < HISTOGRAM_LINEAR) return bucket;
    size_t above = bucket - HISTOGRAM_LINEAR, shift = above / HISTOGRAM_STEPS + 1;
    uint64_t low = (uint64_t)(above % HISTOGRAM_STEPS + HISTOGRAM_STEPS) << shift;
    return low + ((uint64_t)1 << shift) / 2;
}

static inline void histogram_add(histogram *all, uint64_t tenths) {
    if (all->count == 0 || tenths < all->least) all->least = tenths;
    if (tenths > all->most) all->most = tenths;
    all->count++;
    all->sum += tenths;
    all->buckets[histogram_bucket(tenths)]++;
}

static inline void histogram_join(histogram *all, const histogram *more) {
    if (more->count == 0) return;
    if (all->count == 0 || more->least < all->least) all->least = more->least;
    if (more->most > all->most) all->most = more->most;
    all->count += more->count;
    all->sum += more->sum;
    for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++) all->buckets[i] += more->buckets[i];
}

/* By nearest rank: the least value that `part` of all do not exceed. */
static inline uint64_t histogram_quantile(const histogram *all, double part) {
    double exact = part * (double)all->count;
    uint64_t rank = (uint64_t)exact, seen = 0;
    if ((double)rank < exact || rank == 0) rank++;
    if (rank >= all->count) return all->most;
    for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
        seen += all->buckets[i];
        if (seen < rank) continue;
        uint64_t value = histogram_value(i);
        return value < all->least ? all->least : value > all->most ? all->most : value;
    }
    return all->most;
}

/* `"mean":…,"p50":…,…,"max":…` in nanoseconds, each without the clock's cost: `less` tenths. */
static inline void histogram_print(const histogram *all, uint64_t less) {
    static const struct {
        const char *name;
        double part;
    } rows[] = {{"p50", 0.5}, {"p99", 0.99}, {"p99.9", 0.999}, {"p99.99", 0.9999}, {"max", 1}};
    double mean = all->count ? (double)all->sum / (double)all->count / 10 : 0;
    printf("\"mean\":%.2f", mean > (double)less / 10 ? mean - (double)less / 10 : 0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint64_t value = histogram_quantile(all, rows[i].part);
        printf(",\"%s\":%.1f", rows[i].name, value > less ? (double)(value - less) / 10 : 0.0);
    }
}

#endif
