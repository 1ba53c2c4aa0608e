/* The workload of the crash points: one process that rolls, archives, reuses files, adopts dead
 * lanes, applies limits or uploads, step by step, so that each run makes the same calls.
 *     workload MODE STORE KEPT_FILE SEED [PORT]
 * dead     writes a lane with growth files and a journal, and dies
 * old      writes a few records and closes
 * roll, memory, written  the whole life of segments, on disk, in /dev/shm, without fallocate(2)
 * steps    first and later records, a mark before each
 * limits   one archive more than may stay
 * upload   to a collector, and as gzip lines to a second target
 * recover, recover-limits  the next process: adopts, logs, uploads what waits, and closes */
#include "../TestSupport/refuse.h"
#include "crash.h"

#include <cordwood/cordwood.h>
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>

enum { MARK = 0x7ead, PATIENCE_MS = 60000, ARCHIVES_MAX = 8, USERS = 4 };

static const char *mode, *store;
static uint64_t *kept;
static uint64_t seed;
static cw_engine *engine;
static cw_logger *logger;

static void expect(cw_status status, const char *what) {
    if (status >= CW_OK) return;
    char why[512];
    cw_last_error(why, sizeof why);
    fprintf(stderr, "workload: %s: %s: %s\n", what, cw_status_name(status), why);
    _exit(9);
}

/* Deferred text: by a call, or by the append in the header ("%.*s" is never inlined). */
static void log_by_macro(uint64_t thread, uint64_t number, bool calls) {
    char filler[MESSAGE_MAX];
    make_filler(filler, seed, thread, number);
    if (calls)
        CW_INFO(logger, "t%llu n%llu %.*s", (unsigned long long)thread, (unsigned long long)number,
                LONGEST, filler);
    else
        CW_INFO(logger, "t%llu n%llu %s", (unsigned long long)thread, (unsigned long long)number,
                filler);
}

/* Threads 0 and 1: text, and deferred text. */
static void log_records(uint64_t thread, uint64_t count) {
    char message[MESSAGE_MAX];
    uint64_t number = kept[thread * 8];
    for (uint64_t end = number + count; number < end; number++) {
        if (thread % 2) {
            log_by_macro(thread, number, number % 4 == 3);
        } else {
            size_t length = make_message(message, seed, thread, number);
            expect(cw_write(logger, CW_LEVEL_INFO, message, length), "write");
        }
        note_kept(kept, thread, number + 1);
    }
}

static void *second_thread(void *count) {
    log_records(1, (uint64_t)(uintptr_t)count);
    return NULL;
}

/* On a separate thread that ends: leaves a block and a chunk, which are taken over. */
static void log_from_another(uint64_t count) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, second_thread, (void *)(uintptr_t)count) != 0) _exit(9);
    pthread_join(thread, NULL);
}

static void open_engine(const char *name) {
    cw_options options;
    cw_options_init(&options, sizeof options);
    options.directory = store;
    options.segment_bytes = 64 << 10;
    options.expiration_days = 30;
    if (strstr(mode, "limits") != NULL) options.archives_max = ARCHIVES_MAX;
    if (strcmp(mode, "memory") == 0) options.flags = CW_FLAG_TMPFS;
    if (strcmp(mode, "encrypted") == 0) options.encrypt_to = getenv("CRASH_RECIPIENT");
    expect(cw_open(&options, &engine), "open");
    expect(cw_logger_get(engine, name, &logger), "logger");
}

static cw_stats stats(void) {
    cw_stats now = {.struct_size = sizeof now};
    expect(cw_stats_get(engine, &now, sizeof now), "stats");
    return now;
}

/* Waits until the dead are adopted: only this engine's lane is left. */
static void wait_for_adoption(void) {
    for (int ms = 0; stats().lanes > 1 && ms < PATIENCE_MS; ms++) usleep(1000);
    if (stats().lanes > 1) {
        fprintf(stderr, "workload: a dead lane is not adopted\n");
        _exit(9);
    }
}

static void roll_and_archive(void) {
    expect(cw_roll(engine), "roll");
    expect(cw_archive_wait(engine, PATIENCE_MS), "archive");
}

/* Logs the first segment's bytes, among them chunk headers with the right salt (R4). */
static void log_raw_segment(void) {
    static char bytes[32 << 10];
    char path[4200], own[32];
    snprintf(path, sizeof path, "%s/lanes", store);
    snprintf(own, sizeof own, "Z-%d-", (int)getpid());
    DIR *lanes = opendir(path);
    ssize_t count = 0;
    for (struct dirent *entry; lanes != NULL && (entry = readdir(lanes)) != NULL;) {
        const char *suffix = strrchr(entry->d_name, '.');
        if (strstr(entry->d_name, own) == NULL || strcmp(suffix, ".lane") != 0) continue;
        int file = openat(dirfd(lanes), entry->d_name, O_RDONLY | O_CLOEXEC);
        count = pread(file, bytes, sizeof bytes, 16384);
        close(file);
    }
    if (lanes != NULL) closedir(lanes);
    if (count <= 0) _exit(9);
    cw_logger *raw;
    expect(cw_logger_get(engine, "raw", &raw), "logger");
    expect(cw_write(raw, CW_LEVEL_INFO, bytes, (size_t)count), "raw");
}

/* less: divides the number of records in modes where each needs system calls. */
static void run_roll(uint64_t less) {
    wait_for_adoption();
    log_records(0, 100 / less);
    log_raw_segment();
    for (int round = 0; round < 4; round++) {
        log_records(0, 500 / less);
        log_from_another(200 / less);
        if (round == 1) expect(cw_flush(engine, CW_DURABLE_MACHINE, PATIENCE_MS), "flush");
        roll_and_archive();
    }
    log_records(0, 900); /* more than a segment, so that the next is taken in line */
    expect(cw_flush(engine, CW_DURABLE_MACHINE, PATIENCE_MS), "flush");
    expect(cw_resource_set(engine, "service.name", "crash"), "resource");
}

static void run_limits(void) {
    for (int round = 0; round < 3; round++) {
        log_records(0, 300);
        roll_and_archive();
    }
    /* Limits are applied after archiving, on the same thread: one more job waits for them. */
    log_records(0, 10);
    roll_and_archive();
}

static void add_targets(const char *port) {
    char url[128];
    cw_target_options target;
    cw_target_options_init(&target, sizeof target);
    snprintf(url, sizeof url, "http://127.0.0.1:%s", port);
    target.url = url;
    target.name = "first";
    expect(cw_target_add(engine, &target, NULL), "target");
    cw_target_options_init(&target, sizeof target);
    target.kind = "http";
    target.format = "ndjson";
    target.encoding = "gzip";
    snprintf(url, sizeof url, "http://127.0.0.1:%s/lines/{id}", port);
    target.url = url;
    target.name = "second";
    expect(cw_target_add(engine, &target, NULL), "target");
}

static void upload_all(void) {
    for (int tries = 0; tries < 40; tries++) {
        cw_upload_result result = {.struct_size = sizeof result};
        cw_status status = cw_upload(engine, PATIENCE_MS, &result, sizeof result);
        if (status == CW_END || (status == CW_OK && result.waiting == 0)) return;
        if (status != CW_OK && status != CW_E_UPLOAD) expect(status, "upload");
        usleep(20000); /* a refused archive waits; cw_upload looks again */
    }
    fprintf(stderr, "workload: uploads do not end\n");
    _exit(9);
}

static void run_upload(const char *port) {
    add_targets(port);
    for (int round = 0; round < 2; round++) {
        log_records(0, 200);
        cw_upload_result result = {.struct_size = sizeof result};
        cw_upload(engine, PATIENCE_MS, &result, sizeof result); /* some are refused */
    }
    log_records(0, 100);
    upload_all();
}

static void run_dead(void) {
    log_records(0, 300);
    char name[200];
    for (int i = 0; i < 120; i++) { /* over 8 KiB of names: growth files */
        cw_logger *other;
        snprintf(name, sizeof name, "names.%03d.%0100d", i, i);
        expect(cw_logger_get(engine, name, &other), "logger");
    }
    log_records(0, 1500);
    expect(cw_flush(engine, CW_DURABLE_MACHINE, PATIENCE_MS), "flush");
    log_records(0, 1200);
    log_from_another(700);
    _exit(0);
}

/* A mark, and soon after it a record. */
static void log_marked(uint64_t thread, bool calls) {
    char message[MESSAGE_MAX];
    uint64_t number = kept[thread * 8];
    size_t length = make_message(message, seed, thread, number);
    syscall(SYS_getpgid, MARK);
    if (thread % 2)
        log_by_macro(thread, number, calls);
    else
        expect(cw_write(logger, CW_LEVEL_INFO, message, length), "write");
    note_kept(kept, thread, number + 1);
}

static void *marked_thread(void *unused) {
    (void)unused;
    log_marked(2, true);
    return NULL;
}

/* Marks 1: a process's first record. 2, 3: an ordinary one, and with a place that is registered.
 * 4: with a known place. 5, 6: the same two for a place whose records the header appends. 7: a
 * thread's first. 8: the first of a new segment. 9: a change of the user. 10: the first record of
 * the new user, by thread USERS. */
static void run_steps(void) {
    log_marked(0, true);
    log_marked(0, true);
    for (int i = 0; i < 2; i++) log_marked(1, true);
    for (int i = 0; i < 2; i++) log_marked(1, false);
    pthread_t thread;
    if (pthread_create(&thread, NULL, marked_thread, NULL) != 0) _exit(9);
    pthread_join(thread, NULL);
    expect(cw_roll(engine), "roll");
    log_marked(0, true);
    syscall(SYS_getpgid, MARK);
    expect(cw_resource_set(engine, "user.id", "u2"), "resource");
    log_marked(USERS, true);
    syscall(SYS_getpgid, MARK);
    _exit(0);
}

int main(int argc, char **argv) {
    if (argc < 5) return 2;
    mode = argv[1];
    store = argv[2];
    seed = strtoull(argv[4], NULL, 10);
    fill_letters();
    kept = map_kept(argv[3]);
    if (kept == NULL) return 1;
    if (strcmp(mode, "written") == 0 &&
        !refuse(SECCOMP_RET_ERRNO | EOPNOTSUPP, 0, SYS_fallocate, SYS_fallocate))
        _exit(8);
    int is_recovery = strncmp(mode, "recover", 7) == 0;
    char name[64] = "crash";
    if (strcmp(mode, "dead") == 0 || strcmp(mode, "old") == 0)
        snprintf(name, sizeof name, "%s%llu", mode, (unsigned long long)seed);
    open_engine(is_recovery ? "after" : name);
    if (strcmp(mode, "dead") == 0) run_dead();
    if (strcmp(mode, "old") == 0) log_records(0, 200);
    if (strcmp(mode, "steps") == 0) run_steps();
    if (strcmp(mode, "roll") == 0 || strcmp(mode, "memory") == 0 || strcmp(mode, "written") == 0 ||
        strcmp(mode, "encrypted") == 0)
        run_roll(strcmp(mode, "written") == 0 ? 25 : 1);
    if (strcmp(mode, "limits") == 0) run_limits();
    if (strcmp(mode, "upload") == 0) run_upload(argv[5]);
    if (is_recovery) {
        wait_for_adoption();
        log_records(0, 20);
        if (argc > 5) {
            add_targets(argv[5]);
            upload_all();
        }
        roll_and_archive();
    }
    expect(cw_close(&engine, PATIENCE_MS), "close");
    return 0;
}
