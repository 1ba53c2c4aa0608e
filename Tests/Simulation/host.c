/* The program that logs until the power cut: some threads write records of every kind, flush to the
 * machine, roll, archive, set resources, all by a seed. Segments are small, so that every path is
 * met within a second. The results of all calls go into the model, the coverage of flushes into the
 * trace. Limits, consent, uploads and failing syncs take part in some lives. */
#define _GNU_SOURCE 1
#include "sim.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef struct {
    cw_engine *engine;
    sim_model *model;
    sim_life *life;
    uint32_t life_number;
    uint64_t seed;
    uint32_t records; /* of each thread */
    uint32_t flush_every, roll_every, wait_every;
    bool grows_catalog;
    bool fails_syncs;
    char why[256]; /* what must never be returned */
} host;

typedef struct {
    host *host;
    uint32_t thread;
} worker;

static uint64_t now_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static void complain(host *host, const char *call, cw_status status) {
    char text[128];
    cw_last_error(text, sizeof text);
    snprintf(host->why, sizeof host->why, "%s: %s: %s", call, cw_status_name(status), text);
}

/* ── One record ── */

/* Status of a record's slow path. A record that the header appends is kept without a call. */
static __thread cw_status site_status;
#define cw_append_slow_(logger, level, site, arguments, block)                                     \
    (site_status = (cw_append_slow_)(logger, level, site, arguments, block))

#define PLACE(k)                                                                                   \
    case k: CW_LOG(logger, level, "L%u t%u n%u %s", life, thread, number, filler); break;

static cw_status write_deferred(cw_logger *logger, cw_level level, uint32_t life, uint32_t thread,
                                uint32_t number, const char *filler) {
    site_status = CW_OK;
    switch (number % 16) {
        PLACE(0) PLACE(1) PLACE(2) PLACE(3) PLACE(4) PLACE(5) PLACE(6) PLACE(7)
        PLACE(8) PLACE(9) PLACE(10) PLACE(11) PLACE(12) PLACE(13) PLACE(14) PLACE(15)
    }
    return site_status;
}

static cw_status write_fields(cw_logger *logger, cw_level level, const char *message,
                              size_t length, uint32_t number) {
    char who[32];
    size_t bytes = (size_t)snprintf(who, sizeof who, "who %u", number);
    cw_field fields[2] = {
        {.key = {"n", 1}, .type = CW_TYPE_INT, .value.i = number},
        {.key = {"who", 3}, .type = CW_TYPE_STRING, .value.s = {who, bytes}}};
    cw_record record = {.struct_size = sizeof record, .level = level,
                        .message = {message, length}, .fields = fields, .field_count = 2};
    return cw_write_record(logger, &record);
}

static void write_one(host *host, uint32_t thread, uint32_t number) {
    char message[MESSAGE_BYTES], name[32];
    uint64_t seed = host->life->seed;
    size_t length = record_message(seed, host->life_number, thread, number, message);
    record_logger(seed, thread, number, name);
    sim_record *record = &host->life->records[thread][number];
    record->user_least = __atomic_load_n(&host->life->users_returned, __ATOMIC_ACQUIRE);
    record->user_most = UINT32_MAX;
    record->before_ns = now_ns();
    record->state = RECORD_BEGUN;
    cw_logger *logger;
    cw_status status = cw_logger_get(host->engine, name, &logger);
    cw_level level = record_level(number);
    if (status != CW_OK) {
        /* No logger, no record. */
    } else if (record_has_fields(seed, thread, number)) {
        status = write_fields(logger, level, message, length, number);
    } else if (number % 3 == 0) {
        const char *filler = message;
        for (int spaces = 0; spaces < 3; filler++) spaces += *filler == ' ';
        status = write_deferred(logger, level, host->life_number, thread, number, filler);
    } else {
        status = cw_write(logger, level, message, length);
    }
    record->after_ns = now_ns();
    record->user_most = __atomic_load_n(&host->life->users_begun, __ATOMIC_ACQUIRE);
    record->state = status == CW_OK ? RECORD_KEPT : RECORD_REFUSED;
    if (status != CW_OK && status != CW_E_FULL) complain(host, "write", status);
    __atomic_store_n(&host->life->returned[thread], number + 1, __ATOMIC_RELEASE);
}

/* ── Between records ── */

static void flush(host *host) {
    uint32_t counts[THREADS_MAX];
    for (uint32_t t = 0; t < THREADS_MAX; t++)
        counts[t] = __atomic_load_n(&host->life->returned[t], __ATOMIC_ACQUIRE);
    cw_status status = cw_flush(host->engine, CW_DURABLE_MACHINE, 60000);
    if (status == CW_OK) disk_note(EVENT_FLUSHED, 0, counts, sizeof counts);
    else if (!(host->fails_syncs && status == CW_E_IO)) complain(host, "cw_flush", status);
}

static void archive_wait(host *host) {
    cw_status status = cw_archive_wait(host->engine, 20000);
    /* A loaded machine may delay the archiver, which runs in the background. */
    if (status != CW_OK && status != CW_E_TIMEOUT && !(host->fails_syncs && status == CW_E_IO))
        complain(host, "cw_archive_wait", status);
}

/* A failed call leaves the user as he was. */
static void change_user(host *host) {
    static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&one);
    char value[16];
    uint32_t user = host->life->users_begun + 1;
    __atomic_store_n(&host->life->users_begun, user, __ATOMIC_RELEASE);
    snprintf(value, sizeof value, "%u", user);
    cw_status status = cw_resource_set(host->engine, "user", value);
    if (status == CW_OK) __atomic_store_n(&host->life->users_returned, user, __ATOMIC_RELEASE);
    else if (status != CW_E_FULL) complain(host, "cw_resource_set", status);
    pthread_mutex_unlock(&one);
}

static void between(host *host, sim_random *random) {
    if (sim_one_in(random, 8)) disk_look();
    if (sim_one_in(random, host->flush_every)) flush(host);
    if (sim_one_in(random, host->roll_every)) {
        cw_status status = cw_roll(host->engine);
        if (status != CW_OK && status != CW_E_FULL) complain(host, "cw_roll", status);
    }
    if (sim_one_in(random, host->wait_every)) archive_wait(host);
    if (sim_one_in(random, host->grows_catalog ? 6 : 400)) {
        char key[32], value[4001];
        snprintf(key, sizeof key, "resource.%llu", (unsigned long long)sim_below(random, 50));
        size_t length = host->grows_catalog ? 1 + sim_below(random, 4000) : 10;
        memset(value, 'v', length);
        value[length] = 0;
        cw_resource_set(host->engine, key, value);
    }
}

static void *run(void *argument) {
    worker *self = argument;
    sim_random random = sim_seeded(self->host->seed, 100 + self->thread);
    sim_random users = sim_seeded(self->host->seed, 200 + self->thread);
    uint32_t changes_every = 10 + (uint32_t)sim_below(&users, 300);
    for (uint32_t n = 0; n < self->host->records; n++) {
        if (sim_one_in(&users, changes_every)) change_user(self->host);
        write_one(self->host, self->thread, n);
        between(self->host, &random);
    }
    return NULL;
}

/* ── A life ── */

static void choose_limits(cw_options *options, sim_life *life, sim_random *random) {
    uint64_t kind = sim_below(random, 8);
    if (kind == 0) options->archives_max = 1 + (uint32_t)sim_below(random, 4);
    if (kind == 1) options->quota_bytes = 600000 + sim_below(random, 600000);
    life->may_remove = kind <= 1;
}

static void prepare(const sim_host_options *with, cw_options *options, host *host,
                    sim_disk_options *disk, sim_random *random) {
    static const uint32_t codecs[] = {CW_CODEC_ZSTD, CW_CODEC_LZ4, CW_CODEC_NONE};
    options->codec = codecs[sim_below(random, 3)];
    options->codec_level = 1;
    options->segment_bytes = sim_one_in(random, 6) ? 256 << 10 : 64 << 10;
    host->life->threads = 1 + (uint32_t)sim_below(random, THREADS_MAX);
    host->records = with->is_short ? 40 + (uint32_t)sim_below(random, 200)
                                   : 200 + (uint32_t)sim_below(random, 900);
    host->flush_every = 20 + (uint32_t)sim_below(random, 300);
    host->roll_every = 20 + (uint32_t)sim_below(random, 400);
    host->wait_every = 50 + (uint32_t)sim_below(random, 500);
    host->grows_catalog = sim_one_in(random, 8);
    if (with->is_plain) return;
    choose_limits(options, host->life, random);
    disk->no_fallocate = sim_one_in(random, 8);
    if (sim_one_in(random, 8)) options->flags |= CW_FLAG_TMPFS;
    if (sim_one_in(random, 5)) disk->fail_sync = 1 + (uint32_t)sim_below(random, 60);
    host->fails_syncs = disk->fail_sync != 0;
}

static void add_target(host *host, uint32_t port) {
    cw_target_options target;
    cw_target_options_init(&target, sizeof target);
    char url[64];
    snprintf(url, sizeof url, "http://127.0.0.1:%u/{name}", port);
    target.name = "sim";
    target.kind = "http";
    target.url = url;
    cw_status status = cw_target_add(host->engine, &target, NULL);
    if (status != CW_OK && !host->fails_syncs) complain(host, "cw_target_add", status);
}

static void work(host *host, const sim_host_options *with, sim_random *random) {
    pthread_t threads[THREADS_MAX];
    worker workers[THREADS_MAX];
    if (with->port) add_target(host, with->port);
    for (uint32_t t = 0; t < host->life->threads; t++) {
        workers[t] = (worker){host, t};
        if (pthread_create(&threads[t], NULL, run, &workers[t]) != 0) abort();
    }
    if (with->port) {
        for (int i = 0; i < 3; i++) cw_upload(host->engine, 5000, NULL, 0);
    } else if (host->life->may_remove && sim_one_in(random, 3)) {
        cw_consent_set(host->engine, CW_CONSENT_DENIED);
    }
    for (uint32_t t = 0; t < host->life->threads; t++) pthread_join(threads[t], NULL);
    if (sim_one_in(random, 2)) archive_wait(host);
    if (sim_one_in(random, 2)) flush(host);
    disk_look();
}

bool host_run(const char *root, const char *keep, const sim_host_options *with, sim_trace *trace,
              sim_model *model, char *why, size_t why_bytes) {
    sim_random random = sim_seeded(with->seed, 1);
    uint32_t number = model->lives++;
    sim_life *life = &model->life[number];
    memset(life, 0, sizeof *life);
    life->seed = with->seed;
    host host = {.model = model, .life = life, .life_number = number, .seed = with->seed};
    char store[PATH_BYTES];
    snprintf(store, sizeof store, "%s/store", root);
    cw_options options;
    cw_options_init(&options, sizeof options);
    options.directory = store;
    options.process_name = "sim";
    sim_disk_options disk = {.root = root, .keep = keep, .seed = with->seed, .lie = with->lie};
    prepare(with, &options, &host, &disk, &random);
    if (with->port) life->may_remove = true;
    disk_begin(trace, &disk);
    cw_status status = cw_open(&options, &host.engine);
    if (status == CW_OK) {
        work(&host, with, &random);
        cw_close(&host.engine, 60000);
    } else if (!(host.fails_syncs && status == CW_E_IO)) {
        complain(&host, "cw_open", status);
    }
    disk_end();
    snprintf(why, why_bytes, "%s", host.why);
    return host.why[0] == 0;
}
