/* A module that logs: built with libcordwood.a inside, or against a copy of the shared library. The
 * host loads it, calls it and lets it go, again and again. */
#include <cordwood/cordwood.h>

#include <stddef.h>

int plugin_run(const char *directory, const char *text, size_t length, int *fails);

/* Opens, logs once by a call and once by a place, closes. */
int plugin_run(const char *directory, const char *text, size_t length, int *fails) {
    cw_options options;
    cw_options_init(&options, sizeof options);
    options.directory = directory;
    options.segment_bytes = 64u << 10;
    cw_engine *engine = NULL;
    cw_logger *log = NULL;
    if (cw_open(&options, &engine) != CW_OK) return 1;
    if (cw_logger_get(engine, "plugin", &log) != CW_OK) return 2;
    if (cw_write(log, CW_LEVEL_INFO, text, length) != CW_OK) return 3;
    CW_WARN(log, "place %d", (int)length);
    if (cw_close(&engine, 20000) != CW_OK) return 4;
    if (cw_write(log, CW_LEVEL_INFO, text, length) != CW_E_CLOSED) return 5;
    *fails = 0;
    return 0;
}
