/* Fuzz target: readers over a store, a lane, a segment or an archive made of the input. Whatever
 * the files hold, cw_reader_open and cw_reader_next return, end, and yield what can be read. */
#include "pack.h"

int LLVMFuzzerInitialize(int *count, char ***arguments) {
    (void)count;
    (void)arguments;
    plain_environment();
    make_scratch("store");
    read_boot_id();
    return 0;
}

static void read_path(const char *path, const cw_reader_options *options) {
    cw_reader *reader = NULL;
    cw_status status = cw_reader_open(path, options, &reader);
    PROMISE((status == CW_OK) == (reader != NULL));
    if (!reader) return;
    read_all(reader, 3000);
    /* A follower returns CW_AGAIN, and looks again. */
    if (options && options->flags & CW_READ_FOLLOW) read_all(reader, 100);
    PROMISE(cw_reader_close(&reader) == CW_OK && reader == NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    packed files[FILES_MAX];
    unsigned switches;
    unsigned count = take_files(data, size, files, &switches);

    cw_reader_options options = {.struct_size = sizeof options};
    if (switches & PACK_FOLLOW) options.flags = CW_READ_FOLLOW;
    if (switches & PACK_FILTER) {
        options.level = CW_LEVEL_WARN;
        options.kinds = 3;
        options.since_ns = 1;
        options.until_ns = UINT64_MAX - 1;
        options.logger = "app";
    }
    read_path(scratch, switches & (PACK_FOLLOW | PACK_FILTER) ? &options : NULL);
    if (switches & PACK_TWICE)
        for (unsigned i = 0; i < count && i < 4; i++) read_path(files[i].path, NULL);
    for (unsigned i = 0; i < count; i++) unlink(files[i].path);
    forget(files, count);
    return 0;
}
