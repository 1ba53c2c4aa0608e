/* Makes a small store for seeds.py, with every kind of record, name and file that a writer leaves.
 *     seed FOLDER CODEC HOW     HOW: live, flushed, rolled, closed */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cordwood/cordwood.h>

static void must(cw_status status, const char *what) {
    if (status == CW_OK) return;
    char text[512];
    cw_last_error(text, sizeof text);
    fprintf(stderr, "%s: %s: %s\n", what, cw_status_name(status), text);
    exit(1);
}

static cw_logger *interrupted;

static void handler(int number) {
    (void)number;
    cw_write(interrupted, CW_LEVEL_WARN, "from a handler", 14);
}

static cw_str str(const char *s) { return (cw_str){s, strlen(s)}; }

static void every_kind(cw_engine *engine, cw_logger *log) {
    uint8_t trace[16] = {1, 2, 3}, span[8] = {4, 5};
    must(cw_write(log, CW_LEVEL_INFO, "plain text", 10), "text");
    must(cw_write(log, CW_LEVEL_DEBUG + 1, "\xff\x00 no UTF-8", 10), "bytes");
    CW_INFO(log, "order %d at %.3f from %s, %p %5.*s|", 7, 1.5, "somebody", (void *)log, 2, "abc");
    CW_WARN(log, "%Lf %ls %c %% %hhd %#llx %-10s|", 2.5L, L"wide", 'x', 300, 255ull, "left");
    must(cw_context_set("request", "42"), "context");
    must(cw_trace_set(trace, span, 1), "trace");
    cw_field fields[5] = {{.key = str("i"), .type = CW_TYPE_INT, .value.i = -1},
                          {.key = str("u"), .type = CW_TYPE_UINT, .value.u = 1},
                          {.key = str("d"), .type = CW_TYPE_DOUBLE, .value.d = 0.1},
                          {.key = str("b"), .type = CW_TYPE_BOOL, .value.b = true},
                          {.key = str("s"), .type = CW_TYPE_STRING, .value.s = str("text")}};
    cw_record record = {.struct_size = sizeof record, .level = CW_LEVEL_ERROR};
    record.message = str("with everything");
    record.fields = fields;
    record.field_count = 5;
    record.file = str("a.c");
    record.function = str("f");
    record.line = 12;
    record.time_ns = 1700000000000000000u;
    record.exception_type = str("E");
    record.exception_message = str("why");
    record.exception_stacktrace = str("at f\nat main");
    must(cw_write_record(log, &record), "record");
    static const uint8_t classes[8] = {CW_ARG_INT, CW_ARG_DOUBLE, CW_ARG_TEXT, CW_ARG_BOOL};
    static cw_site site = {0, "{0} {1:>8.2f} {2:*^9} {3:d}", "b.cpp", "g", classes, 9, 0, 0,
                           CW_STYLE_BRACES, 0};
    cw_arg values[5] = {cw_arg_i(5), cw_arg_d(3.25), {.s = {"brace", 5}}, cw_arg_u(1), cw_arg_u(0)};
    must(cw_site_write(log, CW_LEVEL_NOTICE, &site, values), "site");
    must(cw_context_set("request", NULL), "context");
    must(cw_trace_set(NULL, NULL, 0), "trace");
    raise(SIGUSR1);
    (void)engine;
}

int main(int count, char **arguments) {
    if (count != 4) return 2;
    cw_options options;
    cw_options_init(&options, sizeof options);
    options.directory = arguments[1];
    options.process_name = "seed";
    options.level = CW_LEVEL_TRACE;
    options.segment_bytes = 1 << 16;
    options.codec = (uint32_t)atoi(arguments[2]);
    cw_engine *engine;
    must(cw_open(&options, &engine), "open");
    must(cw_resource_set(engine, "service.name", "seed"), "resource");
    must(cw_logger_get(engine, "app.db", &interrupted), "logger");
    signal(SIGUSR1, handler);
    cw_logger *log;
    must(cw_logger_get(engine, "app", &log), "logger");
    every_kind(engine, log);
    if (!strcmp(arguments[3], "flushed"))
        must(cw_flush(engine, CW_DURABLE_MACHINE, 20000), "flush");
    if (!strcmp(arguments[3], "rolled")) {
        must(cw_roll(engine), "roll");
        must(cw_archive_wait(engine, 20000), "wait");
        every_kind(engine, log);
    }
    if (!strcmp(arguments[3], "closed")) {
        must(cw_roll(engine), "roll");
        must(cw_archive_wait(engine, 20000), "wait");
        must(cw_close(&engine, 20000), "close");
        return 0;
    }
    _exit(0);
}
