/* A module that logs: built with libcordwood.a inside, or against a copy of the shared library. The
 * host loads, calls and unloads it again and again. */
#include <cordwood/cordwood.h>

#include <stddef.h>

int plugin_run(const char *directory, const char *text, size_t length, int *fails);
int plugin_place(const char *directory, cw_site *site, int number);

/* Opens, logs once by a call and once at a place, closes. */
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

/* Logs at a place that other modules share, each with its own copy of the library. C++ inline
 * functions do so: their static variables are one object per process. */
int plugin_place(const char *directory, cw_site *site, int number) {
    cw_options options;
    cw_options_init(&options, sizeof options);
    options.directory = directory;
    cw_engine *engine = NULL;
    cw_logger *log = NULL;
    if (cw_open(&options, &engine) != CW_OK) return 1;
    if (cw_logger_get(engine, "plugin", &log) != CW_OK) return 2;
    CW_WARN(log, "place %d", number); /* this copy's number 0 is another place */
    const cw_arg arguments[] = {cw_arg_i(number), cw_arg_u(0)};
    for (int i = 0; i < 3; i++)
        if (cw_site_write(log, CW_LEVEL_INFO, site, arguments) != CW_OK) return 3;
    return cw_close(&engine, 20000) == CW_OK ? 0 : 4;
}
