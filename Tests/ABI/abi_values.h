/* Checks and the cases of values, sizes, console, context and reading. abi.c includes it and adds
 * the life-cycle cases: forks, signal storms, threads, close, system limits. */
/* Runs one case of the C interface: `abi CASE DIRECTORY`. Prints each broken expectation. Exit 0:
 * none, 77: the case cannot run here. run.py makes the directories and damages the files. */
#define _GNU_SOURCE 1
#include <cordwood/cordwood.h>
#include <cordwood/curl_transfer.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../TestSupport/refuse.h"
#include "abi_forms.h"

static int failures;
static const char *store;

static void expect_at(int line, const char *call, long got, long wanted) {
    if (got == wanted) return;
    char text[1024] = "";
    cw_last_error(text, sizeof text);
    printf("abi.c:%d: %s is %ld, not %ld (%s)\n", line, call, got, wanted, text);
    failures++;
}
#define EXPECT(wanted, call) expect_at(__LINE__, #call, (long)(call), (long)(wanted))
#define HOLDS(what) expect_at(__LINE__, #what, (what) ? 1 : 0, 1)

static void named_at(int line, const char *value) {
    char text[2048] = "";
    cw_last_error(text, sizeof text);
    if (strstr(text, value)) return;
    printf("abi.c:%d: cw_last_error names not '%s': %s\n", line, value, text);
    failures++;
}
#define NAMED(value) named_at(__LINE__, (value))

static cw_options defaults(void) {
    cw_options options;
    cw_options_init(&options, sizeof options);
    options.directory = store;
    return options;
}

static cw_engine *open_with(const cw_options *options) {
    cw_engine *engine = NULL;
    EXPECT(CW_OK, cw_open(options, &engine));
    if (!engine) exit(1);
    return engine;
}

static cw_logger *logger_of(cw_engine *engine, const char *name) {
    cw_logger *log = NULL;
    EXPECT(CW_OK, cw_logger_get(engine, name, &log));
    if (!log) exit(1);
    return log;
}

static void put(cw_logger *log, const char *text) {
    EXPECT(CW_OK, log_text(log, text, strlen(text)));
}

/* ── Reading back ── */

typedef void (*each_fn)(const cw_record_view *view, void *user);

static int damaged;

static size_t read_with(const cw_reader_options *options, each_fn each, void *user) {
    cw_reader *reader = NULL;
    cw_record_view view = {.struct_size = sizeof view};
    size_t count = 0;
    EXPECT(CW_OK, cw_reader_open(store, options, &reader));
    if (!reader) return 0;
    for (;;) {
        cw_status status = cw_reader_next(reader, &view);
        if (status == CW_E_DAMAGED) {
            damaged++;
            continue;
        }
        if (status != CW_OK) {
            EXPECT(CW_END, status);
            break;
        }
        /* The engine's own record about a file system whose files it may not map. */
        static const char own[] = "Cordwood.Engine";
        if (view.logger.length == sizeof own - 1 &&
            memcmp(view.logger.data, own, sizeof own - 1) == 0)
            continue;
        count++;
        if (each) each(&view, user);
    }
    EXPECT(CW_OK, cw_reader_close(&reader));
    return count;
}

static size_t read_logs(each_fn each, void *user) {
    cw_reader_options options = {.struct_size = sizeof options, .kinds = 1u << CW_KIND_LOG};
    return read_with(&options, each, user);
}

/* Messages "<writer> <number>": each exactly once, each writer's in order. */
/* The archiver runs when nothing else wants the processor, so a busy machine needs long. */
enum { ARCHIVE_WAIT_MS = 120000 };
enum { WRITERS_MAX = 16 };
typedef struct {
    uint64_t count[WRITERS_MAX], last[WRITERS_MAX], time[WRITERS_MAX], sum[WRITERS_MAX], bad;
    unsigned unordered; /* a writer that is a signal handler: two streams, merged by time */
} tally;

static void tally_each(const cw_record_view *view, void *user) {
    tally *t = user;
    unsigned writer;
    unsigned long long number;
    char text[64] = "";
    memcpy(text, view->message.data, view->message.length < 63 ? view->message.length : 63);
    if (sscanf(text, "%u %llu", &writer, &number) != 2 || writer >= WRITERS_MAX) {
        t->bad++;
        return;
    }
    t->sum[writer] += number;
    if (t->count[writer] > 0 && number <= t->last[writer] &&
        (writer != t->unordered || number == t->last[writer])) {
        if (t->bad++ < 8)
            printf("writer %u: %llu after %llu, %lld ns later\n", writer, number,
                   (unsigned long long)t->last[writer],
                   (long long)(view->time_ns - t->time[writer]));
    }
    t->time[writer] = view->time_ns;
    t->last[writer] = number;
    t->count[writer]++;
}

static cw_status numbered(cw_logger *log, unsigned writer, uint64_t number) {
    char text[256];
    int n = snprintf(text, sizeof text, "%u %llu ", writer, (unsigned long long)number);
    memset(text + n, 'x', 80);
    text[n + 80] = '\0';
    return log_text(log, text, (size_t)n + 80);
}

/* ── Bad input ── */

static void case_paths(void) {
    cw_options options = defaults();
    cw_engine *engine = NULL;
    char path[4200];
    EXPECT(CW_E_ARGUMENT, cw_open(NULL, NULL));
    EXPECT(CW_E_ARGUMENT, cw_open(&options, NULL));
    snprintf(path, sizeof path, "%s/deep/er/store", store);
    options.directory = path;
    EXPECT(CW_OK, cw_open(&options, &engine));
    EXPECT(CW_OK, cw_close(&engine, 60000));
    snprintf(path, sizeof path, "%s/file", store);
    FILE *file = fopen(path, "w");
    if (file) fclose(file);
    EXPECT(CW_E_NOT_DIRECTORY, cw_open(&options, &engine));
    NAMED(path);
    snprintf(path, sizeof path, "%s/file/below", store);
    EXPECT(CW_E_NOT_DIRECTORY, cw_open(&options, &engine));
    NAMED("/file");
    options.directory = NULL;
    unsetenv("CORDWOOD_DIR");
    EXPECT(CW_E_NO_DIRECTORY, cw_open(&options, &engine));
    NAMED("CORDWOOD_DIR");
    options.directory = "/proc/1/cordwood";
    HOLDS(cw_open(&options, &engine) < 0);
    NAMED("/proc/1/cordwood");
    snprintf(path, sizeof path, "%s/locked", store);
    mkdir(path, 0500);
    pid_t child = fork();
    if (child == 0) { /* root may write anywhere */
        failures = 0;
        if (getuid() == 0 && setuid(65534) != 0) _exit(1);
        strcat(path, "/below");
        options.directory = path;
        cw_status status = cw_open(&options, &engine);
        EXPECT(CW_E_PERMISSION, status);
        NAMED("locked");
        fflush(stdout);
        _exit(failures ? 1 : 0);
    }
    int how = 0;
    waitpid(child, &how, 0);
    EXPECT(0, how);
    HOLDS(engine == NULL);
}

static void case_sizes(void) {
    struct {
        cw_options known;
        uint64_t unknown[4];
    } later;
    cw_engine *engine = NULL;
    memset(&later, 0, sizeof later);
    later.known = defaults();
    later.known.struct_size = sizeof later.known - 1;
    EXPECT(CW_E_STRUCT_SIZE, cw_open(&later.known, &engine));
    NAMED("cw_options.struct_size");
    later.known.struct_size = sizeof later;
    later.unknown[3] = 1;
    EXPECT(CW_E_STRUCT_TAIL, cw_open(&later.known, &engine));
    later.known.struct_size = 0xFFFFFFF0u;
    EXPECT(CW_E_STRUCT_TAIL, cw_open(&later.known, &engine));
    NAMED("4294967280");
    HOLDS(engine == NULL);
    later.unknown[3] = 0;
    later.known.struct_size = sizeof later;
    EXPECT(CW_OK, cw_open(&later.known, &engine));
    EXPECT(CW_OK, cw_close(&engine, 60000));
}

static void case_values(void) {
    cw_options options = defaults();
    cw_engine *engine = NULL;
    options.level = 0;
    EXPECT(CW_E_LEVEL, cw_open(&options, &engine));
    NAMED("level 0");
    options.level = 200;
    EXPECT(CW_E_LEVEL, cw_open(&options, &engine));
    NAMED("200");
    options = defaults();
    options.codec_level = 20;
    EXPECT(CW_E_LIMIT, cw_open(&options, &engine));
    NAMED("20");
    options = defaults();
    options.archive_method = 2;
    EXPECT(CW_E_ARGUMENT, cw_open(&options, &engine));
    NAMED("archive_method 2");
    options = defaults();
    options.archive_time_step_ns = 10001;
    EXPECT(CW_E_LIMIT, cw_open(&options, &engine));
    NAMED("archive_time_step_ns 10001");
    options = defaults();
    engine = open_with(&options);
    cw_logger *log = logger_of(engine, "bad");
    EXPECT(CW_E_LEVEL, cw_write(log, 0, "x", 1));
    NAMED(": 0");
    EXPECT(CW_E_LEVEL, cw_write(log, 200, "x", 1));
    NAMED("200");
    EXPECT(CW_E_ARGUMENT, cw_write(NULL, CW_LEVEL_INFO, "x", 1));
    EXPECT(CW_E_ARGUMENT, cw_write(log, CW_LEVEL_INFO, NULL, 7));
    NAMED("the message is NULL, with length 7");
    EXPECT(CW_E_ARGUMENT, cw_write(log, CW_LEVEL_INFO, "x", SIZE_MAX));
    NAMED("the message is too long: its length is SIZE_MAX");
    EXPECT(CW_E_ARGUMENT, cw_write(log, CW_LEVEL_INFO, "x", SIZE_MAX - 1));
    NAMED("its length is over 4294967295");

    cw_field field = {{"key", 3}, 99, {0}};
    cw_record record = {.struct_size = sizeof record, .level = CW_LEVEL_INFO};
    record.fields = &field;
    record.field_count = 1;
    EXPECT(CW_E_ARGUMENT, cw_write_record(log, &record));
    NAMED("field 0 has type 99");
    field.type = 0x105;
    EXPECT(CW_E_ARGUMENT, cw_write_record(log, &record));
    NAMED("261");
    field.type = CW_TYPE_INT;
    field.key.length = SIZE_MAX;
    EXPECT(CW_E_ARGUMENT, cw_write_record(log, &record));
    NAMED("field 0 has a key that is NULL or over 65535 bytes, with length SIZE_MAX");
    field.key.length = 3;
    field.type = CW_TYPE_STRING;
    field.value.s = (cw_str){"v", SIZE_MAX};
    EXPECT(CW_E_ARGUMENT, cw_write_record(log, &record));
    NAMED("field 0 has a value that is NULL or over 1 GiB, with length SIZE_MAX");
    field.type = CW_TYPE_INT;
    record.field_count = SIZE_MAX;
    EXPECT(CW_E_LIMIT, cw_write_record(log, &record));
    NAMED("field_count SIZE_MAX is over 4096");
    record.field_count = 1;
    record.function = (cw_str){"f", SIZE_MAX};
    EXPECT(CW_E_ARGUMENT, cw_write_record(log, &record));
    NAMED("function of the record is NULL or over 1 GiB, with length SIZE_MAX");
    record.function = (cw_str){0};
    cw_stats counted;
    EXPECT(CW_E_STRUCT_SIZE, cw_stats_get(engine, &counted, SIZE_MAX));
    NAMED("size_of_stats is SIZE_MAX");
    EXPECT(CW_E_ARGUMENT, cw_policy_apply(engine, "{}", SIZE_MAX));
    NAMED("the length is SIZE_MAX");
    record.message.data = "m";
    record.message.length = SIZE_MAX / 2 + 2;
    EXPECT(CW_E_ARGUMENT, cw_write_record(log, &record));
    char tiny[4];
    HOLDS(cw_last_error(tiny, sizeof tiny) > 3 && strlen(tiny) == 3);
    char large[4096];
    HOLDS(cw_last_error(large, SIZE_MAX / 2 + 1) == strlen(large));

    cw_target_options target;
    cw_target_options_init(&target, sizeof target);
    target.url = "ftp://nowhere";
    EXPECT(CW_E_ARGUMENT, cw_target_add(engine, &target, NULL));
    NAMED("ftp://nowhere");
    target.url = "http://h:99999/";
    EXPECT(CW_E_ARGUMENT, cw_target_add(engine, &target, NULL));
    NAMED("99999");
    target.url = "http://h/";
    target.kind = "http";
    target.method = "DANCE";
    EXPECT(CW_E_ARGUMENT, cw_target_add(engine, &target, NULL));
    NAMED("DANCE");
    EXPECT(CW_OK, cw_close(&engine, 60000));
    EXPECT(CW_OK, cw_close(&engine, 60000));
}

/* ── What is kept ── */

typedef struct {
    size_t length;
    uint64_t original;
    uint32_t flags;
} shape;

static void shape_each(const cw_record_view *view, void *user) {
    *(shape *)user = (shape){view->message.length, view->original_length, view->flags};
}

static void large_message(uint64_t segment_bytes, bool whole) {
    size_t length = 10u << 20;
    char *text = malloc(length);
    if (!text) exit(1);
    memset(text, 'L', length);
    cw_options options = defaults();
    options.segment_bytes = segment_bytes;
    cw_engine *engine = open_with(&options);
    EXPECT(CW_OK, cw_write(logger_of(engine, "big"), CW_LEVEL_INFO, text, length));
    for (int closed = 0; closed < 2; closed++) {
        shape got = {0};
        EXPECT(1, read_logs(shape_each, &got));
        EXPECT(!whole, (got.flags & CW_VIEW_TRUNCATED) != 0);
        EXPECT(length, got.original);
        HOLDS(whole ? got.length == length : got.length > 40000 && got.length < 65536);
        if (!closed) EXPECT(CW_OK, cw_close(&engine, 20000));
    }
    free(text);
}
static void case_large(void) { large_message(16u << 20, true); }
static void case_large_cut(void) { large_message(64u << 10, false); }

static void utf8_each(const cw_record_view *view, void *user) {
    static const char wanted[] = "\xFF\xFE\0ok\xC3";
    HOLDS(view->message.length == 6 && memcmp(view->message.data, wanted, 6) == 0);
    HOLDS(view->flags & CW_VIEW_NOT_UTF8);
    ++*(int *)user;
}

static void case_not_utf8(void) {
    cw_options options = defaults();
    cw_engine *engine = open_with(&options);
    int seen = 0;
    EXPECT(CW_OK, cw_write(logger_of(engine, "raw"), CW_LEVEL_INFO, "\xFF\xFE\0ok\xC3", 6));
    EXPECT(1, read_logs(utf8_each, &seen));
    EXPECT(1, seen);
    EXPECT(CW_OK, cw_close(&engine, 60000));
}

static void case_newer(void) { /* after run.py raised the store's version */
    cw_options options = defaults();
    cw_engine *engine = NULL;
    cw_reader *reader = NULL;
    EXPECT(CW_E_VERSION, cw_open(&options, &engine));
    NAMED(store);
    EXPECT(CW_E_VERSION, cw_reader_open(store, NULL, &reader));
    HOLDS(engine == NULL && reader == NULL);
}

static void case_memory(void) {
    store = ":memory:";
    cw_options options = defaults();
    cw_engine *engine = open_with(&options);
    put(logger_of(engine, "m"), "0 1");
    tally t = {.unordered = WRITERS_MAX};
    EXPECT(1, read_logs(tally_each, &t));
    EXPECT(CW_OK, cw_flush(engine, CW_DURABLE_MACHINE, 60000));
    EXPECT(CW_OK, cw_close(&engine, 60000));
}

static void console_case(uint32_t console, uint32_t flags) {
    cw_options options = defaults();
    options.console = console;
    options.flags = flags;
    cw_engine *engine = open_with(&options);
    put(logger_of(engine, "echo.c"), "seen on the console");
    if (flags) {
        fflush(stdout);
        _exit(0); /* echoed before the write returned */
    }
    EXPECT(CW_OK, cw_flush(engine, CW_DURABLE_PROCESS, 60000));
    EXPECT(CW_OK, cw_close(&engine, 60000));
}
static void case_console_text(void) { console_case(CW_CONSOLE_TEXT, 0); }
static void case_console_json(void) { console_case(CW_CONSOLE_JSON, 0); }
static void case_console_auto(void) { console_case(CW_CONSOLE_AUTO, 0); }
static void case_console_sync(void) { console_case(CW_CONSOLE_TEXT, CW_FLAG_SYNC_CONSOLE); }

static void case_console_closed(void) { /* stderr is a pipe without a reader: no SIGPIPE */
    int ends[2];
    if (pipe(ends) != 0) exit(1);
    dup2(ends[1], 2);
    close(ends[0]);
    close(ends[1]);
    signal(SIGPIPE, SIG_DFL);
    cw_options options = defaults();
    options.console = CW_CONSOLE_TEXT;
    options.flags = CW_FLAG_SYNC_CONSOLE;
    cw_engine *engine = open_with(&options);
    put(logger_of(engine, "echo"), "0 1");
    EXPECT(CW_OK, cw_close(&engine, 60000));
}

/* ── Context, records ── */

static const cw_field *find(const cw_record_view *view, const char *key) {
    for (size_t i = 0; i < view->field_count; i++) {
        const cw_str *k = &view->fields[i].key;
        if (k->length == strlen(key) && memcmp(k->data, key, k->length) == 0)
            return &view->fields[i];
    }
    return NULL;
}

static bool is(const cw_field *field, const char *text) {
    return field && field->type == CW_TYPE_STRING && field->value.s.length == strlen(text) &&
           memcmp(field->value.s.data, text, strlen(text)) == 0;
}

static void context_each(const cw_record_view *view, void *user) {
    int n = (*(int *)user)++;
    static const uint8_t zero[16];
    HOLDS(n < 3 ? is(find(view, "request"), "r1") : !find(view, "request"));
    HOLDS((memcmp(view->trace_id, zero, 16) == 0) == (n >= 3));
    if (n == 1) HOLDS(find(view, "own") && find(view, "own")->value.i == -5);
    if (n == 2) {
        HOLDS(view->time_ns == 1700000000123456789u && view->line == 42);
        HOLDS(is(find(view, "exception.type"), "Oops"));
        HOLDS(is(find(view, "exception.message"), "why"));
        HOLDS(is(find(view, "exception.stacktrace"), "at f"));
    }
}

static void case_context(void) {
    cw_options options = defaults();
    cw_engine *engine = open_with(&options);
    cw_logger *log = logger_of(engine, "ctx");
    uint8_t trace[16] = "0123456789abcde", span[8] = "1234567";
    char huge[5000];
    memset(huge, 'h', sizeof huge);
    huge[4999] = 0;
    EXPECT(CW_OK, cw_context_set("request", "r1"));
    EXPECT(CW_E_LIMIT, cw_context_set("request", huge)); /* the old value stays */
    EXPECT(CW_E_ARGUMENT, cw_context_set(NULL, "x"));
    EXPECT(CW_E_ARGUMENT, cw_trace_set(NULL, span, 0));
    EXPECT(CW_OK, cw_trace_set(trace, span, 1));
    put(log, "a");
    cw_field own = {{"own", 3}, CW_TYPE_INT, {.i = -5}};
    cw_record record = {.struct_size = sizeof record, .level = CW_LEVEL_WARN, .fields = &own,
                        .field_count = 1, .message = {"b", 1}};
    EXPECT(CW_OK, cw_write_record(log, &record));
    record.field_count = 0;
    record.time_ns = 1700000000123456789u;
    record.line = 42;
    record.exception_type = (cw_str){"Oops", 4};
    record.exception_message = (cw_str){"why", 3};
    record.exception_stacktrace = (cw_str){"at f", 4};
    EXPECT(CW_OK, cw_write_record(log, &record));
    EXPECT(CW_OK, cw_context_set("request", NULL));
    EXPECT(CW_OK, cw_trace_set(NULL, NULL, 0));
    put(log, "d");
    cw_stats stats;
    EXPECT(CW_OK, cw_stats_get(engine, &stats, sizeof stats));
    EXPECT(4, stats.records_written);
    EXPECT(0, stats.records_dropped);
    int n = 0;
    EXPECT(4, read_logs(context_each, &n));
    EXPECT(CW_OK, cw_close(&engine, 60000));
}

static void case_life(void) { /* consent, stats, roll, archive, filters, follow, use after close */
    cw_options options = defaults();
    cw_engine *engine = open_with(&options), *again;
    cw_logger *log = logger_of(engine, "app.db"), *other = logger_of(engine, "app.dbx");
    EXPECT(CW_E_ARGUMENT, cw_consent_set(engine, 7));
    NAMED("7");
    EXPECT(CW_OK, cw_consent_set(engine, CW_CONSENT_DENIED));
    EXPECT(CW_OK, cw_roll(engine));
    for (uint64_t i = 0; i < 1000; i++) EXPECT(CW_OK, numbered(log, 0, i));
    EXPECT(CW_DISABLED, cw_write(log, CW_LEVEL_DEBUG, "x", 1));
    EXPECT(CW_OK, cw_write(other, CW_LEVEL_ERROR, "1 0", 3));
    EXPECT(CW_OK, cw_roll(engine));
    EXPECT(CW_OK, cw_archive_wait(engine, ARCHIVE_WAIT_MS));
    cw_stats stats;
    EXPECT(CW_OK, cw_stats_get(engine, &stats, sizeof stats));
    EXPECT(1001, stats.records_written);
    HOLDS(stats.archives_written >= 1 && stats.segments_sealed >= 1 && stats.lanes == 1);
    cw_reader_options filter = {.struct_size = sizeof filter, .level = CW_LEVEL_ERROR};
    EXPECT(1, read_with(&filter, NULL, NULL));
    filter.level = 0;
    filter.logger = "app.db";
    filter.kinds = 1u << CW_KIND_LOG;
    EXPECT(1000, read_with(&filter, NULL, NULL));
    filter.logger = "app";
    EXPECT(1001, read_with(&filter, NULL, NULL));
    filter.query = "level>=error OR i:\" 99\"";
    EXPECT(12, read_with(&filter, NULL, NULL)); /* 99, 990 to 999, and the error */
    filter.query = "level>=error";
    filter.logger = NULL;
    EXPECT(1, read_with(&filter, NULL, NULL));
    cw_reader *wrong = NULL;
    filter.query = "gr\u00fcn order>=";
    EXPECT(CW_E_ARGUMENT, cw_reader_open(store, &filter, &wrong));
    HOLDS(wrong == NULL);
    NAMED("query, column 13: a value is missing after order");
    filter.query = NULL;
    filter.until_ns = 1;
    EXPECT(0, read_with(&filter, NULL, NULL));

    cw_reader_options follow = {.struct_size = sizeof follow,
                                .flags = CW_READ_FOLLOW | CW_READ_FROM_END,
                                .kinds = 1u << CW_KIND_LOG};
    cw_reader *reader = NULL;
    cw_record_view view = {.struct_size = sizeof view};
    EXPECT(CW_OK, cw_reader_open(store, &follow, &reader));
    EXPECT(CW_AGAIN, cw_reader_next(reader, &view));
    put(log, "0 5000");
    cw_status status = CW_AGAIN;
    for (int i = 0; i < 500 && status == CW_AGAIN; i++) {
        status = cw_reader_next(reader, &view);
        if (status == CW_AGAIN) usleep(10000);
    }
    EXPECT(CW_OK, status);
    HOLDS(view.message.length == 6 && memcmp(view.message.data, "0 5000", 6) == 0);
    EXPECT(CW_OK, cw_reader_close(&reader));
    EXPECT(CW_OK, cw_reader_close(&reader));

    again = engine;
    EXPECT(CW_OK, cw_close(&engine, 60000));
    HOLDS(engine == NULL);
    EXPECT(CW_E_CLOSED, cw_write(log, CW_LEVEL_INFO, "x", 1));
    HOLDS(!cw_enabled(log, CW_LEVEL_FATAL));
    EXPECT(CW_E_CLOSED, cw_roll(again));
    EXPECT(CW_E_CLOSED, cw_flush(again, CW_DURABLE_MACHINE, 0));
    EXPECT(CW_E_CLOSED, cw_resource_set(again, "a", "b"));
    EXPECT(CW_E_CLOSED, cw_stats_get(again, &stats, sizeof stats));
    EXPECT(CW_E_CLOSED, cw_archive_wait(again, 0));
    EXPECT(CW_E_CLOSED, cw_upload(again, 0, NULL, 0));
    EXPECT(CW_OK, cw_close(&again, 0));
}

/* ── Fork, signals, threads ── */

typedef struct {
    cw_logger *log;
    unsigned writer;
    uint64_t count, dropped;
    volatile int *stop;
} job;

