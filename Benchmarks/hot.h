/* How hot.c and hot.cpp open and close a store, with the same settings from the environment:
 *   LOAD_SEGMENT_BYTES   of each segment; default the engine's
 *   LOAD_TMPFS           1: CW_FLAG_TMPFS
 *   LOAD_COARSE          1: CW_FLAG_COARSE_CLOCK
 * No quota and no expiry: all records logged are counted afterwards. */
#ifndef BENCH_HOT_H
#define BENCH_HOT_H

#include <cordwood/cordwood.h>

#include "load.h"

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
    options.quota_bytes = 0;
    options.segment_bytes = load_number("LOAD_SEGMENT_BYTES", 0);
    if (load_number("LOAD_TMPFS", 0)) options.flags |= CW_FLAG_TMPFS;
    if (load_number("LOAD_COARSE", 0)) options.flags |= CW_FLAG_COARSE_CLOCK;
    if (cw_open(&options, &hot_engine) != CW_OK) hot_fail("cw_open");
    if (cw_logger_get(hot_engine, "bench.hot", &logger) != CW_OK) hot_fail("cw_logger_get");
}

static void engine_close(void) {
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
