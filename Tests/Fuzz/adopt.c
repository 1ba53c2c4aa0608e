/* Fuzz target: an engine opens a store made of the input and logs into it, while its helper adopts,
 * archives and retires what it finds there. The host's own records are kept in any case. */
#include "pack.h"

int LLVMFuzzerInitialize(int *count, char ***arguments) {
    (void)count;
    (void)arguments;
    plain_environment();
    make_scratch("adopt");
    read_boot_id();
    return 0;
}

static void log_and_close(void) {
    cw_options options;
    cw_options_init(&options, sizeof options);
    options.directory = scratch;
    options.segment_bytes = 1 << 16;
    cw_engine *engine = NULL;
    cw_status status = cw_open(&options, &engine);
    PROMISE((status == CW_OK) == (engine != NULL));
    if (!engine) return;
    cw_logger *log = NULL;
    PROMISE(cw_logger_get(engine, "fuzz", &log) == CW_OK);
    PROMISE(cw_write(log, CW_LEVEL_INFO, "kept beside anything", 20) == CW_OK);
    /* Adoption runs on the helper. A roll of our own wakes it. */
    PROMISE(cw_roll(engine) == CW_OK);
    cw_archive_wait(engine, 10000);
    cw_stats stats;
    stats.struct_size = sizeof stats;
    PROMISE(cw_stats_get(engine, &stats, sizeof stats) == CW_OK);
    PROMISE(cw_close(&engine, 20000) == CW_OK && engine == NULL);
}

static void find_own(void) {
    cw_reader *reader = NULL;
    if (cw_reader_open(scratch, NULL, &reader) != CW_OK) return;
    bool found = false;
    for (unsigned i = 0; i < 100000 && !found; i++) {
        cw_record_view view = {.struct_size = sizeof view};
        cw_status status = cw_reader_next(reader, &view);
        if (status == CW_END) break;
        found = status == CW_OK && view.message.length == 20 &&
                !memcmp(view.message.data, "kept beside anything", 20);
    }
    cw_reader_close(&reader);
    PROMISE(found);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    packed files[FILES_MAX];
    unsigned switches;
    unsigned count = take_files(data, size, files, &switches);
    char store[200];
    snprintf(store, sizeof store, "%s/store", scratch);
    bool broken = access(store, F_OK) == 0;
    log_and_close();
    /* A `store` file that is not ours keeps the engine out. */
    if (!broken) find_own();
    forget(files, count);
    remove_tree(scratch);
    return 0;
}
