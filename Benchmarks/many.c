/* Fills a store with lanes that overlap in time: many STORE LANES RECORDS SEED. LANES processes log
 * RECORDS records each, all at the same time: each goes on only when all have begun. A record's
 * content follows from the seed, its lane and its number; one in a thousand is an error, and one of
 * all is the needle. Each process makes an archive of its lane. */
#define _GNU_SOURCE 1
#include "fixture.h"

#include <cordwood/log.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Every process logs for about two seconds. */
enum { PAUSES = 20, PAUSE_NS = 100000000, SEGMENT_BYTES = 1 << 17 };

static const char *paths[] = {"/orders", "/orders/new", "/basket", "/login", "/static/app.js"};

static void one(cw_logger *log, uint64_t r) {
    cw_level level = r % 1000 == 7 ? CW_LEVEL_ERROR : CW_LEVEL_INFO;
    char line[160];
    if (r >> 50 & 1) {
        CW_LOG(log, level, "order %d took %.3f ms", (int)(r & 0xfffff),
               (double)(r >> 30 & 0xffff) / 7);
        return;
    }
    int size = snprintf(line, sizeof line,
                        "GET %s?page=%" PRIu64 " 200 %" PRIu64 " \"Mozilla/5.0\" from 10.0.%u.%u",
                        paths[r % 5], r % 40, r >> 8 & 0xffff, (unsigned)(r >> 24 & 255),
                        (unsigned)(r >> 32 & 255));
    if (cw_write(log, level, line, (size_t)size) != CW_OK) fail("cw_write");
}

/* A byte to `ready` says that this lane has begun; `go` is closed once all have. */
static void run(char **argv, uint64_t lane, int ready, int go) {
    uint64_t lanes = strtoull(argv[2], NULL, 10), count = strtoull(argv[3], NULL, 10);
    uint64_t seed = strtoull(argv[4], NULL, 10) + lane * count;
    cw_options options;
    cw_options_init(&options, sizeof options);
    options.directory = argv[1];
    options.segment_bytes = SEGMENT_BYTES;
    options.quota_bytes = 0;
    options.expiration_days = 0;
    options.archive_method = CW_ARCHIVE_PLAIN;
    cw_engine *engine = NULL;
    cw_logger *log = NULL;
    if (cw_open(&options, &engine) != CW_OK) fail("cw_open");
    if (cw_logger_get(engine, "app.many", &log) != CW_OK) fail("cw_logger_get");
    if (cw_write(log, CW_LEVEL_INFO, "begins", 6) != CW_OK) fail("cw_write");
    char byte = 0;
    if (write(ready, &byte, 1) != 1 || read(go, &byte, 1) != 0) exit(1);
    struct timespec pause = {0, PAUSE_NS};
    for (uint64_t number = 1; number < count; number++) {
        if (lane == lanes / 3 && number == count / 3) {
            if (cw_write(log, CW_LEVEL_INFO, "the needle 7f3a in all that hay", 31) != CW_OK)
                fail("cw_write");
        } else {
            one(log, mix(seed + number));
        }
        if (number % (count / PAUSES + 1) == 0) nanosleep(&pause, NULL);
    }
    /* Each makes its own archive: dead lanes would be joined into a few. */
    if (cw_roll(engine) != CW_OK || cw_archive_wait(engine, 600000) != CW_OK) fail("cw_archive");
    _exit(0);
}

int main(int argc, char **argv) {
    if (argc != 5) return 2;
    int ready[2], go[2];
    if (pipe(ready) || pipe(go)) return 1;
    uint64_t lanes = strtoull(argv[2], NULL, 10);
    for (uint64_t lane = 0; lane < lanes; lane++) {
        pid_t child = fork();
        if (child < 0) return 1;
        if (child == 0) {
            close(go[1]);
            run(argv, lane, ready[1], go[0]);
        }
    }
    close(ready[1]);
    char byte;
    for (uint64_t lane = 0; lane < lanes; lane++)
        if (read(ready[0], &byte, 1) != 1) return 1;
    close(go[1]);
    int failed = 0, status;
    while (wait(&status) > 0) failed |= status;
    return failed != 0;
}
