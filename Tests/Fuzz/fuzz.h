/* What all fuzz targets share: taking an input apart byte by byte, a folder in memory for a
 * target's files, and the one way to complain. A target defines LLVMFuzzerTestOneInput and, if it
 * keeps anything between inputs, LLVMFuzzerInitialize. It is linked with libFuzzer or with
 * driver.c. One thread. */
#ifndef CORDWOOD_FUZZ_H
#define CORDWOOD_FUZZ_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cordwood/cordwood.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *count, char ***arguments);

/* A broken promise: the fuzzer keeps the input, the driver names the seed. */
#define PROMISE(holds)                                                                            \
    do {                                                                                           \
        if (!(holds)) {                                                                            \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #holds);                    \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

/* ── The input ── */

typedef struct input {
    const uint8_t *at;
    size_t left;
} input;

/* Missing bytes read as zero, so that every input means something. */
static inline uint64_t take(input *in, size_t bytes) {
    uint64_t value = 0;
    for (size_t i = 0; i < bytes && in->left > 0; i++, in->at++, in->left--)
        value |= (uint64_t)*in->at << 8 * i;
    return value;
}
static inline uint8_t take8(input *in) { return (uint8_t)take(in, 1); }
static inline uint16_t take16(input *in) { return (uint16_t)take(in, 2); }
static inline uint32_t take24(input *in) { return (uint32_t)take(in, 3); }
static inline uint32_t take32(input *in) { return (uint32_t)take(in, 4); }

/* The next bytes, at most `most`, fewer at the end of the input. */
static inline size_t take_bytes(input *in, size_t most, const uint8_t **out) {
    size_t n = in->left < most ? in->left : most;
    *out = in->at;
    in->at += n;
    in->left -= n;
    return n;
}

/* ── Files ── */

static char scratch[128];

static inline void remove_tree(const char *path) {
    DIR *directory = opendir(path);
    if (directory) {
        struct dirent *entry;
        while ((entry = readdir(directory))) {
            if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..")) continue;
            char child[1024];
            snprintf(child, sizeof child, "%.600s/%.300s", path, entry->d_name);
            if (unlink(child) != 0) remove_tree(child);
        }
        closedir(directory);
    }
    rmdir(path);
}

static inline void remove_scratch(void) { remove_tree(scratch); }

/* A folder of this process, removed when it exits by itself. */
static inline void make_scratch(const char *target) {
    if (scratch[0]) return;
    snprintf(scratch, sizeof scratch, "/dev/shm/cordwood-fuzz-%.40s-%d", target, (int)getpid());
    if (access("/dev/shm", W_OK) != 0)
        snprintf(scratch, sizeof scratch, "/tmp/cordwood-fuzz-%.40s-%d", target, (int)getpid());
    remove_tree(scratch);
    PROMISE(mkdir(scratch, 0700) == 0);
    atexit(remove_scratch);
}

/* The environment must not name a store, and the host's own signals stay unchanged. */
static inline void plain_environment(void) {
    unsetenv("CORDWOOD_DIR");
    unsetenv("CORDWOOD_LEVEL");
    unsetenv("CORDWOOD_CONSOLE");
    unsetenv("CORDWOOD_TARGET");
}

/* An engine on a small store in the scratch folder, whose path goes to `store`. */
static inline cw_engine *open_small(const char *target, char *store, size_t size) {
    plain_environment();
    make_scratch(target);
    snprintf(store, size, "%s/store", scratch);
    cw_options options;
    cw_options_init(&options, sizeof options);
    options.directory = store;
    options.segment_bytes = 1 << 17;
    options.quota_bytes = 2 << 20;
    options.codec = CW_CODEC_NONE;
    cw_engine *engine = NULL;
    PROMISE(cw_open(&options, &engine) == CW_OK);
    return engine;
}

/* ── What a reader returns ── */

static volatile unsigned char fuzz_sink;

/* Reads every byte, so that a dangling pointer is found. */
static inline void touch(cw_str text) {
    PROMISE(text.length == 0 || text.data != NULL);
    unsigned char sum = 0;
    /* For a long text one byte per page is enough. */
    size_t step = text.length > 65536 ? 4096 : 1;
    for (size_t i = 0; i < text.length; i += step) sum ^= (unsigned char)text.data[i];
    if (text.length) sum ^= (unsigned char)text.data[text.length - 1];
    fuzz_sink = sum;
}

/* Reads at most `most` records and problems. Returns the number of records. */
static inline unsigned read_all(cw_reader *reader, unsigned most) {
    unsigned records = 0;
    for (unsigned i = 0; i < most; i++) {
        cw_record_view view;
        memset(&view, 0x5a, sizeof view);
        view.struct_size = sizeof view;
        cw_status status = cw_reader_next(reader, &view);
        if (status == CW_END || status == CW_AGAIN) break;
        if (status != CW_OK) {
            PROMISE(status == CW_E_DAMAGED || status == CW_E_VERSION || status == CW_E_IO ||
                    status == CW_E_NOT_FOUND || status == CW_E_PERMISSION ||
                    status == CW_E_MEMORY);
            continue;
        }
        records++;
        PROMISE(view.level <= 24);
        touch(view.logger);
        touch(view.message);
        touch(view.file);
        touch(view.function);
        touch(view.process_name);
        for (size_t f = 0; f < view.field_count; f++) {
            touch(view.fields[f].key);
            PROMISE(view.fields[f].type >= CW_TYPE_INT && view.fields[f].type <= CW_TYPE_JSON);
            if (view.fields[f].type >= CW_TYPE_STRING) touch(view.fields[f].value.s);
        }
    }
    return records;
}

#endif
