/* How long log calls take during uploads: opens a store, logs at a fixed rate, times every call.
 *     latency STORE SECONDS RECORDS_A_SECOND [URL]
 * With a URL, waiting archives of the store are sent there in the background. Prints as JSON
 * quantiles in nanoseconds, the peak of memory beyond that before, and the processor time of all
 * threads. One thread logs. */
#define _GNU_SOURCE 1
#include "../../Benchmarks/histogram.h"

#include <cordwood/cordwood.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

static uint64_t now_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static void expect(cw_status status, const char *what) {
    if (status >= CW_OK) return;
    char why[512];
    cw_last_error(why, sizeof why);
    fprintf(stderr, "latency: %s: %s: %s\n", what, cw_status_name(status), why);
    exit(1);
}

static long peak_kib(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
}

static histogram times;

int main(int argc, char **argv) {
    if (argc < 4) return 2;
    uint64_t seconds = strtoull(argv[2], NULL, 10), rate = strtoull(argv[3], NULL, 10);
    cw_options options;
    cw_options_init(&options, sizeof options);
    options.directory = argv[1];
    options.quota_bytes = 0;
    options.upload_interval_s = 1;
    cw_engine *engine;
    cw_logger *logger;
    expect(cw_open(&options, &engine), "open");
    expect(cw_logger_get(engine, "latency", &logger), "logger");
    if (argc > 4) {
        cw_target_options target;
        cw_target_options_init(&target, sizeof target);
        target.name = "t";
        target.kind = "http";
        target.url = argv[4];
        target.format = "archive";
        expect(cw_target_add(engine, &target, NULL), "target");
    }
    for (int i = 0; i < 10000; i++) CW_INFO(logger, "warm %d", i);
    long before = peak_kib();
    uint64_t start = now_ns(), step = 1000000000u / rate, count = seconds * rate, late = 0;
    for (uint64_t n = 0; n < count; n++) {
        uint64_t due = start + n * step;
        while (now_ns() < due) {}
        uint64_t begin = now_ns();
        CW_INFO(logger, "order %d at %f", (int)n, 1.5);
        uint64_t end = now_ns();
        histogram_add(&times, (end - begin) * 10);
        late += end > due + 1000000;
    }
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    cw_stats stats = {.struct_size = sizeof stats};
    expect(cw_stats_get(engine, &stats, sizeof stats), "stats");
    printf("{");
    histogram_print(&times, 0);
    printf(",\"late\":%llu,\"more_kib\":%ld,\"cpu_s\":%.3f,\"sent\":%llu,\"failed\":%llu}\n",
           (unsigned long long)late, usage.ru_maxrss - before,
           (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
               (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6,
           (unsigned long long)stats.uploads_succeeded, (unsigned long long)stats.uploads_failed);
    fflush(stdout);
    cw_close(&engine, 0);
    return 0;
}
