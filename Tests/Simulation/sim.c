/* Runs the seeds. Some neighbouring seeds share one life of the host and so one trace. Each cuts
 * the power at its own moment and leaves its own disk, which is read, recovered and read again.
 * Every fourth disk is given to a second life of the host, whose power is cut, too.
 *     sim --work DIR [--first S] [--count N] [--save DIR] [--lie NAME]
 *     sim --work DIR --replay TRACE [--keep]
 * simulate.py builds and runs it; the last line counts. */
#define _GNU_SOURCE 1
#include "sim.h"
#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DISKS_PER_LIFE = 20, WHY_BYTES = 512, RECOVERY_MS = 60000 };

static const char *work_directory, *save_directory;
static sim_lie lie;
static bool keeps;
static uint32_t port;
static sim_counts counts;
static uint64_t passed, failed, cuts, lives;

/* ── Folders ── */

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *at) {
    (void)status, (void)kind, (void)at;
    return remove(path);
}

static const char *fresh(const char *name) {
    static char paths[8][PATH_BYTES];
    static uint32_t next;
    char *path = paths[next++ % 8];
    snprintf(path, PATH_BYTES, "%s/%s", work_directory, name);
    nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    if (mkdir(path, 0700) != 0) {
        perror(path);
        exit(2);
    }
    return path;
}

static void boot(uint32_t number) {
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s/boot", work_directory);
    FILE *file = fopen(path, "w");
    if (!file) exit(2);
    fprintf(file, "5c0de000-0000-4000-8000-%012u\n", number);
    fclose(file);
    disk_boot(path);
}

static const char *store_in(const char *root) {
    static char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s/store", root);
    return path;
}

/* ── Saved failures ── */

typedef struct {
    char magic[8];
    uint64_t seed, stage, events, start, inodes;
} saved_head;

static void save(const sim_trace *trace, const sim_model *model, uint64_t seed, uint32_t stage) {
    if (!save_directory) return;
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s/seed-%llu.trace", save_directory, (unsigned long long)seed);
    FILE *file = fopen(path, "wb");
    if (!file) return;
    saved_head head = {"CWSIM001", seed, stage, trace->count, trace->start, trace->inodes};
    fwrite(&head, sizeof head, 1, file);
    fwrite(model, sizeof *model, 1, file);
    fwrite(trace->kinds, 1, trace->inodes, file);
    for (uint64_t i = 0; i < trace->count; i++) {
        fwrite(&trace->events[i], sizeof trace->events[i], 1, file);
        fwrite(trace->events[i].data, 1, trace->events[i].bytes, file);
    }
    fclose(file);
    printf("  again: ./dev sim --replay %s\n", path);
}

static bool load(const char *path, saved_head *head, sim_trace *trace, sim_model *model) {
    FILE *file = fopen(path, "rb");
    if (!file || fread(head, sizeof *head, 1, file) != 1 ||
        memcmp(head->magic, "CWSIM001", 8) != 0 || fread(model, sizeof *model, 1, file) != 1)
        return false;
    for (uint64_t i = 0; i < head->inodes; i++) trace_inode(trace, (uint8_t)fgetc(file));
    for (uint64_t i = 0; i < head->events; i++) {
        sim_event event;
        if (fread(&event, sizeof event, 1, file) != 1) return false;
        void *data = malloc(event.bytes + 1u);
        if (fread(data, 1, event.bytes, file) != event.bytes) return false;
        trace_add(trace, event.kind, event.inode, event.subject, event.value, data, event.bytes);
        free(data);
    }
    trace->start = head->start;
    fclose(file);
    return true;
}

/* ── Recovery ── */

static uint32_t lanes_in(const char *store) {
    char path[PATH_BYTES + 16];
    snprintf(path, sizeof path, "%s/lanes", store);
    DIR *directory = opendir(path);
    uint32_t found = 0;
    struct dirent *entry;
    while (directory && (entry = readdir(directory))) {
        const char *dot = strrchr(entry->d_name, '.');
        found += dot && entry->d_name[0] != '.' && !strcmp(dot, ".lane");
    }
    if (directory) closedir(directory);
    return found;
}

/* Archives for these targets may be sent, or removed if consent was denied: not judged. */
static void forget_targets(const char *store) {
    char path[PATH_BYTES + 512];
    snprintf(path, sizeof path, "%s/targets", store);
    DIR *directory = opendir(path);
    struct dirent *entry;
    while (directory && (entry = readdir(directory))) {
        snprintf(path, sizeof path, "%s/targets/%s", store, entry->d_name);
        unlink(path);
    }
    if (directory) closedir(directory);
}

/* An engine adopts the lanes. */
static bool recover(const char *store, char *why) {
    forget_targets(store);
    cw_options options;
    cw_options_init(&options, sizeof options);
    options.directory = store;
    options.codec_level = 1;
    options.quota_bytes = 0;
    cw_engine *engine;
    cw_status status = cw_open(&options, &engine);
    if (status != CW_OK) {
        char text[256];
        cw_last_error(text, sizeof text);
        snprintf(why, WHY_BYTES, "recovery: cw_open: %s: %s", cw_status_name(status), text);
        return false;
    }
    uint32_t tries = 0;
    /* Adoption begins a second after open, or with the first upload, which has no target here. */
    cw_upload(engine, RECOVERY_MS, NULL, 0);
    while (lanes_in(store) > 1 && tries++ < RECOVERY_MS) usleep(1000);
    cw_close(&engine, 60000);
    if (tries >= RECOVERY_MS) snprintf(why, WHY_BYTES, "recovery: a dead lane was not adopted");
    return tries < RECOVERY_MS;
}

/* ── One disk ── */

static void require_all(sim_model *model) {
    sim_life *life = &model->life[model->lives - 1];
    memcpy(life->required, life->returned, sizeof life->required);
}

static bool failure(uint64_t seed, const char *when, const char *why) {
    printf("FAIL seed %llu: %s: %s\n", (unsigned long long)seed, when, why);
    return false;
}

/* Cuts, and reads as another boot. The model's last life belongs to this trace. */
static bool cut_and_read(const sim_trace *trace, sim_model *model, uint64_t seed, uint32_t stage,
                         const char *root, uint64_t *at, sim_seen *seen, char *why) {
    sim_random random = sim_seeded(seed, 50 + stage);
    *at = cut_make(trace, &random, root);
    cut_require(trace, *at, model);
    boot(model->lives + 1);
    cuts++;
    memset(seen, 0, sizeof *seen);
    return judge_read(store_in(root), model, *at, seen, &counts, why, WHY_BYTES);
}

/* The disk as the power left it, before the recovery changes it. */
static void keep_copy(const char *root) {
    char command[PATH_BYTES * 3];
    snprintf(command, sizeof command, "rm -rf '%s/cut' && cp -a '%s' '%s/cut'", work_directory,
             root, work_directory);
    if (system(command) == 0) printf("  the disk, as the cut left it: %s/cut\n", work_directory);
}

static bool check_last(const sim_trace *trace, sim_model *model, uint64_t seed, uint32_t stage) {
    static sim_seen seen;
    char why[WHY_BYTES] = "", when[64];
    uint64_t at = 0;
    const char *root = fresh(stage == 1 ? "disk" : "disk-again");
    bool good = cut_and_read(trace, model, seed, stage, root, &at, &seen, why);
    if (keeps) keep_copy(root);
    const char *step = good ? "recovered" : "read";
    good = good && recover(store_in(root), why) &&
           judge_read(store_in(root), model, at, &seen, &counts, why, WHY_BYTES);
    if (good) return true;
    snprintf(when, sizeof when, "power cut %u before event %llu, %s", stage,
             (unsigned long long)at, step);
    failure(seed, when, why);
    save(trace, model, seed, stage);
    return false;
}

/* A second life on the disk that the first cut left, and a second cut. */
static bool check_twice(const sim_trace *trace, sim_model *model, uint64_t seed) {
    static sim_seen seen;
    char why[WHY_BYTES] = "";
    uint64_t at;
    const char *root = fresh("disk");
    if (!cut_and_read(trace, model, seed, 1, root, &at, &seen, why)) {
        failure(seed, "power cut 1, read", why);
        save(trace, model, seed, 1);
        return false;
    }
    /* What was removed after the first cut is still on its disk. */
    sim_life *first = &model->life[0];
    for (uint32_t t = 0; t < THREADS_MAX; t++)
        for (uint32_t n = 0; n < RECORDS_MAX; n++)
            if (first->records[t][n].removed >= at) first->records[t][n].removed = 0;
    static sim_trace again;
    trace_clear(&again);
    const char *keep = fresh("keep-again");
    sim_host_options options = {.seed = seed ^ 0x5EC0D1, .is_short = true};
    bool good = host_run(root, keep, &options, &again, model, why, sizeof why);
    lives++;
    if (!good) failure(seed, "second life", why);
    judge_removed(keep, model, &again);
    if (good) {
        require_all(model);
        good = judge_read(store_in(root), model, again.count, NULL, &counts, why, WHY_BYTES);
        if (!good) failure(seed, "second life, closed", why);
    }
    if (good) return check_last(&again, model, seed, 2);
    save(&again, model, seed, 2);
    return false;
}

/* ── One life of the host, and the disks of its seeds ── */

static bool live(uint64_t group, sim_trace *trace, sim_model *model) {
    char why[WHY_BYTES] = "";
    const char *root = fresh("root"), *keep = fresh("keep");
    if (group % 2) (void)!mkdir(store_in(root), 0700);
    boot(1);
    sim_host_options options = {.seed = group + 1, .lie = lie, .is_plain = lie != LIE_NONE,
                                .port = lie == LIE_NONE && group % 8 == 5 ? port : 0};
    memset(model, 0, sizeof *model);
    trace_clear(trace);
    bool good = host_run(root, keep, &options, trace, model, why, sizeof why);
    lives++;
    judge_removed(keep, model, trace);
    if (good) {
        require_all(model);
        good = judge_read(store_in(root), model, trace->count, NULL, &counts, why, WHY_BYTES);
    }
    return good || failure(group * DISKS_PER_LIFE, "the life itself, without a cut", why);
}

static void run(uint64_t first, uint64_t count) {
    static sim_trace trace;
    static sim_model model, copy;
    uint64_t group = UINT64_MAX;
    bool lives_well = false;
    for (uint64_t seed = first; seed < first + count; seed++) {
        if (seed / DISKS_PER_LIFE != group) {
            group = seed / DISKS_PER_LIFE;
            lives_well = live(group, &trace, &model);
        }
        copy = model;
        bool good = lives_well;
        if (good)
            good = seed % 4 == 3 ? check_twice(&trace, &copy, seed)
                                 : check_last(&trace, &copy, seed, 1);
        good ? passed++ : failed++;
        if (seed % 10 == 9) printf("seed %llu\n", (unsigned long long)seed);
        fflush(stdout);
        if (lie && failed) return; /* it was found */
    }
}

static bool replay(const char *path) {
    static sim_trace trace;
    static sim_model model;
    saved_head head;
    if (!load(path, &head, &trace, &model)) {
        fprintf(stderr, "sim: %s is no trace\n", path);
        return false;
    }
    printf("seed %llu, power cut %llu\n", (unsigned long long)head.seed,
           (unsigned long long)head.stage);
    save_directory = NULL;
    bool good = check_last(&trace, &model, head.seed, (uint32_t)head.stage);
    good ? passed++ : failed++;
    if (keeps)
        printf("  the disk, after recovery: %s/disk%s\n", work_directory,
               head.stage == 1 ? "" : "-again");
    return good;
}

static sim_lie parse_lie(const char *name) {
    static const char *const names[] = {"none", "archives", "lanes", "journal", "part", "store"};
    for (uint32_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(names[i], name)) return (sim_lie)i;
    fprintf(stderr, "sim: no such lie: %s\n", name);
    exit(2);
}

int main(int argc, char **argv) {
    uint64_t first = 0, count = 100;
    const char *trace_path = NULL;
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        if (!strcmp(argv[i], "--keep")) keeps = true;
        else if (!strcmp(argv[i], "--work")) work_directory = value, i++;
        else if (!strcmp(argv[i], "--save")) save_directory = value, i++;
        else if (!strcmp(argv[i], "--first")) first = strtoull(value, NULL, 10), i++;
        else if (!strcmp(argv[i], "--count")) count = strtoull(value, NULL, 10), i++;
        else if (!strcmp(argv[i], "--lie")) lie = parse_lie(value), i++;
        else if (!strcmp(argv[i], "--replay")) trace_path = value, i++;
        else return 2;
    }
    if (!work_directory) return 2;
    port = server_start();
    if (trace_path) replay(trace_path);
    else run(first, count);
    printf("%llu lives, %llu cuts; records read: %llu verified, %llu unverified, %llu torn and "
           "marked, %llu removed and back; %llu damaged places\n",
           (unsigned long long)lives, (unsigned long long)cuts,
           (unsigned long long)counts.verified, (unsigned long long)counts.unverified,
           (unsigned long long)counts.torn, (unsigned long long)counts.resurrected,
           (unsigned long long)counts.damaged);
    printf("%llu passed, %llu failed\n", (unsigned long long)passed, (unsigned long long)failed);
    return failed ? 1 : 0;
}
