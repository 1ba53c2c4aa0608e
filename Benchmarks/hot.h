/* How hot.c, hot.cpp and service.c open and close a store, with the same settings from the
 * environment:
 *   LOAD_SEGMENT_BYTES   of each segment; default the engine's
 *   LOAD_TMPFS           1: CW_FLAG_TMPFS
 *   LOAD_COARSE          1: CW_FLAG_COARSE_CLOCK
 *   LOAD_ARCHIVE         1: closing archives all records first
 * A program may set HOT_LEVEL, its threshold. With -DTOLD, records have the times of `tell_time`.
 * No quota and no expiry: all records logged are counted afterwards. */
#ifndef BENCH_HOT_H
#define BENCH_HOT_H

#include <cordwood/cordwood.h>
#include <stdio.h>

#include "environment.h"

#ifndef HOT_LEVEL
#define HOT_LEVEL CW_LEVEL_INFO
#endif
enum { HOT_ARCHIVE_WAIT_MS = 600000 };

#ifdef TOLD
#include <sys/syscall.h>
#include <unistd.h>

/* In place of the system's, for the engine, too. */
int clock_gettime(clockid_t clock, struct timespec *time) {
    uint64_t told = __atomic_load_n(&told_ns, __ATOMIC_RELAXED);
    if (clock != CLOCK_MONOTONIC_COARSE || told == 0)
        return (int)syscall(SYS_clock_gettime, clock, time);
    time->tv_sec = (time_t)(told / 1000000000u), time->tv_nsec = (long)(told % 1000000000u);
    return 0;
}

static void hot_tell(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    told_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}
#endif

static cw_engine *hot_engine;
static cw_logger *logger;
static cw_stats hot_stats;

static void hot_fail(const char *what) {
    char why[512] = "";
    cw_last_error(why, sizeof why);
    fprintf(stderr, "hot: %s: %s\n", what, why);
    exit(1);
}

static void engine_open(const char *where) {
    cw_options options;
    cw_options_init(&options, sizeof options);
    options.directory = where;
    options.level = HOT_LEVEL;
    options.quota_bytes = 0;
    options.segment_bytes = load_number("LOAD_SEGMENT_BYTES", 0);
    if (load_number("LOAD_TMPFS", 0)) options.flags |= CW_FLAG_TMPFS;
    if (load_number("LOAD_COARSE", 0)) options.flags |= CW_FLAG_COARSE_CLOCK;
#ifdef TOLD
    hot_tell();
    options.flags |= CW_FLAG_COARSE_CLOCK;
#endif
    if (cw_open(&options, &hot_engine) != CW_OK) hot_fail("cw_open");
    if (cw_logger_get(hot_engine, "bench.hot", &logger) != CW_OK) hot_fail("cw_logger_get");
}

static void engine_close(void) {
    if (load_number("LOAD_ARCHIVE", 0)
        && (cw_roll(hot_engine) != CW_OK
            || cw_archive_wait(hot_engine, HOT_ARCHIVE_WAIT_MS) != CW_OK))
        hot_fail("cw_archive_wait");
    hot_stats.struct_size = sizeof hot_stats;
    if (cw_stats_get(hot_engine, &hot_stats, sizeof hot_stats) != CW_OK) hot_fail("cw_stats_get");
    if (cw_close(&hot_engine, 60000) != CW_OK) hot_fail("cw_close");
}

static void engine_say(void) {
    printf(",\"dropped\":%llu,\"segment_bytes\":%llu,\"slow_appends\":%llu",
           (unsigned long long)hot_stats.records_dropped,
           (unsigned long long)hot_stats.bytes_written, (unsigned long long)hot_stats.slow_appends);
    printf(",\"archive_bytes_in\":%llu,\"archive_bytes_out\":%llu",
           (unsigned long long)hot_stats.archive_bytes_in,
           (unsigned long long)hot_stats.archive_bytes_out);
}

#endif
