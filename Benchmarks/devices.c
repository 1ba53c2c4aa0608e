/* Fills folders like devices that send their archives to a collector: devices FOLDER DEVICES
 * ARCHIVES RECORDS SEED. Device N logs to FOLDER/dev-N, as host.name dev-N, and makes ARCHIVES
 * archives of RECORDS records each. A record's content follows from the seed, its device and its
 * number; one in a hundred is an error. */
#define _GNU_SOURCE 1
#include "fixture.h"

#include <cordwood/log.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BESIDE = 4, SEGMENT_BYTES = 1 << 16 };

static void check(cw_status status, const char *what) {
    if (status != CW_OK) fail(what);
}

static void run(const char *folder, uint64_t device, uint64_t archives, uint64_t records,
                uint64_t seed) {
    char path[512], name[32];
    snprintf(name, sizeof name, "dev-%" PRIu64, device);
    snprintf(path, sizeof path, "%s/%s", folder, name);
    cw_options options;
    cw_options_init(&options, sizeof options);
    options.directory = path;
    options.process_name = "shop";
    options.segment_bytes = SEGMENT_BYTES;
    options.quota_bytes = 0;
    options.expiration_days = 0;
    options.archive_method = CW_ARCHIVE_PLAIN;
    cw_engine *engine = NULL;
    cw_logger *log = NULL;
    check(cw_open(&options, &engine), "cw_open");
    check(cw_resource_set(engine, "host.name", name), "cw_resource_set");
    check(cw_resource_set(engine, "service.name", "shop"), "cw_resource_set");
    check(cw_logger_get(engine, "app.device", &log), "cw_logger_get");
    for (uint64_t archive = 0; archive < archives; archive++) {
        for (uint64_t number = 0; number < records; number++) {
            uint64_t r = mix(seed + (device * archives + archive) * records + number);
            CW_LOG(log, r % 100 == 7 ? CW_LEVEL_ERROR : CW_LEVEL_INFO, "order %d took %.3f ms",
                   (int)(r & 0xfffff), (double)(r >> 30 & 0xffff) / 7);
        }
        check(cw_roll(engine), "cw_roll");
        check(cw_archive_wait(engine, 600000), "cw_archive_wait");
    }
    check(cw_close(&engine, 10000), "cw_close");
}

int main(int argc, char **argv) {
    if (argc != 6) return 2;
    uint64_t devices = strtoull(argv[2], NULL, 10), archives = strtoull(argv[3], NULL, 10);
    uint64_t records = strtoull(argv[4], NULL, 10), seed = strtoull(argv[5], NULL, 10);
    int failed = 0, status;
    for (uint64_t device = 0; device < devices; device++) {
        if (device >= BESIDE && wait(&status) > 0) failed |= status;
        pid_t child = fork();
        if (child < 0) return 1;
        if (child == 0) {
            run(argv[1], device, archives, records, seed);
            _exit(0);
        }
    }
    while (wait(&status) > 0) failed |= status;
    return failed != 0;
}
