/* Fills a store for reading: read STORE N SEED plain|dense. Four processes with two threads each
 * log N records in all, at the same time: deferred text with typed arguments, plain lines, fields.
 * One in a thousand is an error, and one of all is the needle. A record's content follows from the
 * seed and its number, so the same command makes the same records. */
#define _GNU_SOURCE 1
#include "fixture.h"

#include <cordwood/log.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PROCESSES = 4, THREADS = 2, WRITERS = PROCESSES * THREADS, LOGGERS = 5 };
/* About 200,000 records a second in all: a store spans minutes, not an instant. */
enum { BURST = 250, PAUSE_NS = 10000000 };

static const char *logger_names[LOGGERS] = {"app", "app.db", "app.db.pool", "web", "web.session"};
static const char *users[] = {"anna", "bo", "carla", "dmitri", "eve-lyn", "farid", "gwen", "hugo"};
static const char *paths[] = {"/orders", "/orders/new", "/basket", "/login", "/static/app.js"};

static cw_logger *loggers[LOGGERS];
static uint64_t count, seed;
static uint32_t method;
static unsigned process;

static cw_str text(const char *data) {
    cw_str result = {data, strlen(data)};
    return result;
}

static void with_fields(cw_logger *log, cw_level level, uint64_t r) {
    cw_field fields[3] = {{text("order"), CW_TYPE_UINT, {.u = r % 1000000}},
                          {text("price"), CW_TYPE_DOUBLE, {.d = (double)(r % 9973) / 4}},
                          {text("user"), CW_TYPE_STRING, {.s = text(users[r % 8])}}};
    cw_record record;
    memset(&record, 0, sizeof record);
    record.struct_size = sizeof record;
    record.level = level;
    record.message = text("order accepted");
    record.fields = fields;
    record.field_count = 3;
    if (cw_write_record(log, &record) != CW_OK) fail("cw_write_record");
}

static void plain(cw_logger *log, cw_level level, uint64_t r) {
    char line[160];
    int size = snprintf(line, sizeof line,
                        "GET %s?page=%" PRIu64 " 200 %" PRIu64 " \"Mozilla/5.0\" from 10.0.%u.%u",
                        paths[r % 5], r % 40, r >> 8 & 0xffff, (unsigned)(r >> 24 & 255),
                        (unsigned)(r >> 32 & 255));
    if (cw_write(log, level, line, (size_t)size) != CW_OK) fail("cw_write");
}

static void one(uint64_t number) {
    uint64_t r = mix(seed + number);
    cw_logger *log = loggers[r >> 40 & 3 ? r >> 40 & 3 : 4 * (r >> 42 & 1)];
    cw_level level = r % 1000 == 7 ? CW_LEVEL_ERROR : r % 50 == 3 ? CW_LEVEL_WARN : CW_LEVEL_INFO;
    if (number == count / 3) {
        if (cw_write(log, level, "the needle 7f3a in all that hay", 31) != CW_OK) fail("cw_write");
        return;
    }
    switch (r >> 50 & 7) {
    case 0: case 1: case 2:
        CW_LOG(log, level, "order %d of %s took %.3f ms", (int)(r & 0xfffff), users[r >> 20 & 7],
               (double)(r >> 30 & 0xffff) / 7);
        break;
    case 3:
        CW_LOG(log, level, "pool %u: %llu of %d connections in use", (unsigned)(r & 7),
               (unsigned long long)(r >> 8 & 63), 64);
        break;
    case 4: with_fields(log, level, r); break;
    default: plain(log, level, r);
    }
}

static void *writer(void *which) {
    uint64_t first = process * THREADS + (uint64_t)(uintptr_t)which;
    struct timespec pause = {0, PAUSE_NS};
    for (uint64_t number = first, done = 0; number < count; number += WRITERS) {
        one(number);
        if (++done % BURST == 0) nanosleep(&pause, NULL);
    }
    return NULL;
}

static void run(const char *directory) {
    cw_options options;
    cw_options_init(&options, sizeof options);
    options.directory = directory;
    options.quota_bytes = 0;
    options.expiration_days = 0;
    options.archive_method = method;
    cw_engine *engine = NULL;
    if (cw_open(&options, &engine) != CW_OK) fail("cw_open");
    for (int i = 0; i < LOGGERS; i++)
        if (cw_logger_get(engine, logger_names[i], &loggers[i]) != CW_OK) fail("cw_logger_get");
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, writer, (void *)i)) exit(1);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    if (cw_close(&engine, 60000) != CW_OK) fail("cw_close");
}

int main(int argc, char **argv) {
    if (argc != 5) return 2;
    count = strtoull(argv[2], NULL, 10);
    seed = strtoull(argv[3], NULL, 10);
    method = strcmp(argv[4], "plain") == 0 ? CW_ARCHIVE_PLAIN : CW_ARCHIVE_DENSE;
    for (process = 0; process < PROCESSES; process++) {
        pid_t child = fork();
        if (child < 0) return 1;
        if (child == 0) {
            run(argv[1]);
            return 0;
        }
    }
    int failed = 0, status;
    while (wait(&status) > 0) failed |= status;
    return failed != 0;
}
