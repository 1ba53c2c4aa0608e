/* Arguments of a careless host: null everywhere, wrong sizes, levels, lengths, names. Every call
 * must return the status that cordwood.h names, and cw_last_error must name the path or value. None
 * may crash. argv[1]: a directory for stores. Prints each broken expectation. Exit 0: there is
 * none. */
#define _POSIX_C_SOURCE 200809L
#include <cordwood/cordwood.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures;
static char path[4096];

static void expect_at(int line, const char *call, cw_status got, cw_status wanted) {
    if (got != wanted) {
        printf("%d: %s: %s, not %s\n", line, call, cw_status_name(got), cw_status_name(wanted));
        failures++;
    }
}
#define EXPECT(wanted, call) expect_at(__LINE__, #call, (call), (wanted))

static void expect_true_at(int line, const char *what, bool holds) {
    if (!holds) {
        printf("%d: %s does not hold\n", line, what);
        failures++;
    }
}
#define EXPECT_TRUE(what) expect_true_at(__LINE__, #what, (what))

static void expect_named_at(int line, const char *value) {
    char text[1024] = "";
    size_t length = cw_last_error(text, sizeof text);
    if (length == 0 || strstr(text, value) == NULL) {
        printf("%d: cw_last_error names not %s: %s\n", line, value, text);
        failures++;
    }
}
#define EXPECT_NAMED(value) expect_named_at(__LINE__, (value))

static const char *in(const char *directory, const char *name) {
    snprintf(path, sizeof path, "%s/%s", directory, name);
    return path;
}

static cw_options good(const char *directory) {
    cw_options options;
    cw_options_init(&options, sizeof options);
    options.directory = directory;
    return options;
}

/* ── Open ── */

static void defaults(void) {
    cw_options options;
    memset(&options, 0xEE, sizeof options);
    cw_options_init(NULL, 0);
    cw_options_init(NULL, sizeof options);
    cw_options_init(&options, 3);
    EXPECT_TRUE(options.struct_size == 0xEEEEEEEEu);
    cw_options_init(&options, sizeof options);
    EXPECT_TRUE(options.struct_size == sizeof options);
    EXPECT_TRUE(options.level == CW_LEVEL_INFO && options.directory == NULL);
    EXPECT_TRUE(options.segment_bytes == 0 || options.segment_bytes == 16u << 20);
    EXPECT_TRUE(options.roll_age_s == 86400 && options.quota_bytes == 5ull << 30);
    EXPECT_TRUE(options.archives_max == 0 && options.expiration_days == 30);
    EXPECT_TRUE(options.codec == CW_CODEC_ZSTD && options.codec_level == 3);
    EXPECT_TRUE(options.archive_method == CW_ARCHIVE_DENSE && options.archive_time_step_ns == 0);
    EXPECT_TRUE(options.consent == CW_CONSENT_GRANTED && options.console == CW_CONSOLE_OFF);
}

static void open_arguments(const char *directory) {
    cw_engine *engine = NULL;
    cw_options options = good(in(directory, "never"));
    EXPECT(CW_E_ARGUMENT, cw_open(NULL, NULL));
    EXPECT(CW_E_ARGUMENT, cw_open(&options, NULL));
    EXPECT(CW_E_ARGUMENT, cw_open(NULL, &engine));
    options.struct_size = 0;
    EXPECT(CW_E_STRUCT_SIZE, cw_open(&options, &engine));
    options.struct_size = 4;
    EXPECT(CW_E_STRUCT_SIZE, cw_open(&options, &engine));
    options.struct_size = UINT32_MAX;
    EXPECT_TRUE(cw_open(&options, &engine) < CW_OK); /* no tail of 4 GB is read */
    EXPECT_TRUE(engine == NULL);
}

/* A host compiled against a later header: its tail counts only if it is not zero. */
static void later_header(const char *directory) {
    struct later {
        cw_options known;
        uint64_t unknown[8];
    } options;
    cw_engine *engine = NULL;
    memset(&options, 0, sizeof options);
    options.known = good(in(directory, "later"));
    options.known.struct_size = sizeof options;
    options.unknown[7] = 1;
    EXPECT(CW_E_STRUCT_TAIL, cw_open(&options.known, &engine));
    EXPECT_TRUE(engine == NULL);
    options.unknown[7] = 0;
    EXPECT(CW_OK, cw_open(&options.known, &engine));
    EXPECT(CW_OK, cw_close(&engine, 60000));
}

static void open_value(const char *directory, size_t offset, uint32_t value, cw_status wanted,
                       int line) {
    cw_options options = good(in(directory, "never"));
    cw_engine *engine = NULL;
    char number[16];
    memcpy((char *)&options + offset, &value, sizeof value);
    expect_at(line, "cw_open", cw_open(&options, &engine), wanted);
    snprintf(number, sizeof number, "%lu", (unsigned long)value);
    expect_named_at(line, number);
    EXPECT_TRUE(engine == NULL);
}
#define OPEN_VALUE(member, value, wanted) \
    open_value(directory, offsetof(cw_options, member), (value), (wanted), __LINE__)

static void open_values(const char *directory) {
    OPEN_VALUE(level, 0, CW_E_LEVEL);
    OPEN_VALUE(level, 25, CW_E_LEVEL);
    OPEN_VALUE(level, 200, CW_E_LEVEL);
    OPEN_VALUE(level, 256, CW_E_LEVEL);
    OPEN_VALUE(console_level, 77, CW_E_LEVEL);
    OPEN_VALUE(codec, 99, CW_E_ARGUMENT);
    OPEN_VALUE(consent, 99, CW_E_ARGUMENT);
    OPEN_VALUE(overflow, 99, CW_E_ARGUMENT);
    OPEN_VALUE(console, 99, CW_E_ARGUMENT);

    cw_options options = good(in(directory, "never"));
    cw_engine *engine = NULL;
    options.segment_bytes = 1000;
    EXPECT(CW_E_LIMIT, cw_open(&options, &engine));
    EXPECT_NAMED("1000");
    options.segment_bytes = (1ull << 30) + 1;
    EXPECT(CW_E_LIMIT, cw_open(&options, &engine));
    options.segment_bytes = UINT64_MAX;
    EXPECT(CW_E_LIMIT, cw_open(&options, &engine));
    options = good(path);
    options.codec_level = 20;
    EXPECT(CW_E_LIMIT, cw_open(&options, &engine));
    options.codec_level = -1;
    EXPECT(CW_E_LIMIT, cw_open(&options, &engine));
    options.codec_level = 13;
    options.codec = CW_CODEC_LZ4;
    EXPECT(CW_E_LIMIT, cw_open(&options, &engine));
}

static void open_paths(void) {
    cw_engine *engine = NULL;
    cw_options options = good("/dev/null");
    EXPECT(CW_E_NOT_DIRECTORY, cw_open(&options, &engine));
    EXPECT_NAMED("/dev/null");
    options.directory = "/dev/null/below";
    EXPECT(CW_E_NOT_DIRECTORY, cw_open(&options, &engine));
    EXPECT_NAMED("/dev/null");
    unsetenv("CORDWOOD_DIR");
    options.directory = NULL;
    EXPECT(CW_E_NO_DIRECTORY, cw_open(&options, &engine));
    EXPECT_NAMED("CORDWOOD_DIR");
    char *longest = malloc(70000);
    if (longest != NULL) {
        memset(longest, 'x', 69999);
        longest[69999] = 0;
        options.directory = longest;
        EXPECT_TRUE(cw_open(&options, &engine) < CW_OK);
        free(longest);
    }
    EXPECT_TRUE(engine == NULL);
}

/* ── Every call that takes an engine, without one ── */

static void no_engine(void) {
    cw_engine *none = NULL;
    cw_logger *log = NULL;
    cw_stats stats = {0};
    cw_target_options target;
    cw_target_options_init(&target, sizeof target);
    EXPECT(CW_E_ARGUMENT, cw_resource_set(NULL, "a", "b"));
    EXPECT(CW_E_ARGUMENT, cw_logger_get(NULL, "a", &log));
    EXPECT(CW_E_ARGUMENT, cw_flush(NULL, CW_DURABLE_MACHINE, 0));
    EXPECT(CW_E_ARGUMENT, cw_roll(NULL));
    EXPECT(CW_E_ARGUMENT, cw_archive_wait(NULL, 0));
    EXPECT(CW_E_ARGUMENT, cw_stats_get(NULL, &stats, sizeof stats));
    EXPECT(CW_E_ARGUMENT, cw_level_set(NULL, "", CW_LEVEL_INFO));
    EXPECT(CW_E_ARGUMENT, cw_target_add(NULL, &target, NULL));
    EXPECT(CW_E_ARGUMENT, cw_target_remove(NULL, "x"));
    EXPECT(CW_E_ARGUMENT, cw_upload(NULL, 0, NULL, 0));
    EXPECT(CW_E_ARGUMENT, cw_upload_async(NULL, NULL, NULL));
    EXPECT(CW_E_ARGUMENT, cw_quarantine_retry(NULL, NULL));
    EXPECT(CW_E_ARGUMENT, cw_consent_set(NULL, CW_CONSENT_GRANTED));
    EXPECT(CW_E_ARGUMENT, cw_close(NULL, 0));
    EXPECT(CW_OK, cw_close(&none, 0));
    EXPECT(CW_E_ARGUMENT, cw_context_set(NULL, "x"));
    EXPECT(CW_E_ARGUMENT, cw_context_set("", "x"));
    EXPECT(CW_OK, cw_trace_set(NULL, NULL, 0));
    EXPECT(CW_E_ARGUMENT, cw_trace_set(NULL, (const uint8_t *)"12345678", 0));
}

/* ── Writing ── */

static void writing(cw_engine *engine, cw_logger *log) {
    cw_logger *other = NULL;
    char name[300];
    memset(name, 'n', sizeof name);
    name[256] = 0;
    EXPECT(CW_E_ARGUMENT, cw_logger_get(engine, NULL, &other));
    EXPECT(CW_E_ARGUMENT, cw_logger_get(engine, "a", NULL));
    EXPECT(CW_E_LIMIT, cw_logger_get(engine, name, &other));
    EXPECT_TRUE(other == NULL);
    name[255] = 0;
    EXPECT(CW_OK, cw_logger_get(engine, name, &other));

    EXPECT(CW_E_ARGUMENT, cw_write(NULL, CW_LEVEL_INFO, "x", 1));
    EXPECT(CW_E_ARGUMENT, cw_write(log, CW_LEVEL_INFO, NULL, 1));
    EXPECT(CW_OK, cw_write(log, CW_LEVEL_INFO, NULL, 0));
    EXPECT(CW_OK, cw_write(log, CW_LEVEL_INFO, "", 0));
    EXPECT(CW_E_ARGUMENT, cw_write(log, CW_LEVEL_INFO, "x", SIZE_MAX));
    EXPECT(CW_E_LEVEL, cw_write(log, 0, "x", 1));
    EXPECT(CW_E_LEVEL, cw_write(log, 25, "x", 1));
    EXPECT(CW_E_LEVEL, cw_write(log, 200, "x", 1));
    EXPECT(CW_E_LEVEL, cw_write(log, CW_LEVEL_OFF, "x", 1));
    EXPECT(CW_E_LEVEL, cw_write(log, 256, "x", 1));
    EXPECT(CW_E_LEVEL, cw_write(log, UINT32_MAX, "x", 1));
    EXPECT(CW_OK, cw_write(log, 24, "x", 1));
    EXPECT_TRUE(!cw_enabled(NULL, CW_LEVEL_FATAL));
}

static cw_record good_record(void) {
    cw_record record;
    memset(&record, 0, sizeof record);
    record.struct_size = sizeof record;
    record.level = CW_LEVEL_INFO;
    record.message.data = "m";
    record.message.length = 1;
    return record;
}

static void records(cw_logger *log) {
    cw_record record = good_record();
    EXPECT(CW_E_ARGUMENT, cw_write_record(NULL, &record));
    EXPECT(CW_E_ARGUMENT, cw_write_record(log, NULL));
    EXPECT(CW_OK, cw_write_record(log, &record));
    record.struct_size = 0;
    EXPECT(CW_E_STRUCT_SIZE, cw_write_record(log, &record));
    record.struct_size = sizeof record - 1;
    EXPECT(CW_E_STRUCT_SIZE, cw_write_record(log, &record));
    record = good_record();
    record.level = 0;
    EXPECT(CW_E_LEVEL, cw_write_record(log, &record));
    record.level = 200;
    EXPECT(CW_E_LEVEL, cw_write_record(log, &record));
    record = good_record();
    record.message.data = NULL;
    EXPECT(CW_E_ARGUMENT, cw_write_record(log, &record));
    record = good_record();
    record.file.length = 5;
    EXPECT(CW_E_ARGUMENT, cw_write_record(log, &record));
    record = good_record();
    record.exception_stacktrace.length = 5;
    EXPECT(CW_E_ARGUMENT, cw_write_record(log, &record));
    record = good_record();
    record.span_id = (const uint8_t *)"12345678";
    record.trace_flags = UINT32_MAX;
    (void)cw_write_record(log, &record); /* any status, but no crash */

    struct later {
        cw_record known;
        uint64_t unknown[4];
    } later;
    memset(&later, 0, sizeof later);
    later.known = good_record();
    later.known.struct_size = sizeof later;
    EXPECT(CW_OK, cw_write_record(log, &later.known));
    later.unknown[3] = 1;
    EXPECT(CW_E_STRUCT_TAIL, cw_write_record(log, &later.known));
}

static void record_fields(cw_logger *log) {
    static cw_field many[4097];
    cw_record record = good_record();
    cw_field field = {{"key", 3}, CW_TYPE_INT, {0}};
    record.fields = &field;
    record.field_count = 1;
    EXPECT(CW_OK, cw_write_record(log, &record));
    field.type = 0;
    EXPECT(CW_E_ARGUMENT, cw_write_record(log, &record));
    field.type = 99;
    EXPECT(CW_E_ARGUMENT, cw_write_record(log, &record));
    EXPECT_NAMED("99");
    field.type = CW_TYPE_STRING;
    field.value.s.data = NULL;
    field.value.s.length = 1;
    EXPECT(CW_E_ARGUMENT, cw_write_record(log, &record));
    field.value.s.length = 0;
    EXPECT(CW_OK, cw_write_record(log, &record));
    field.key.data = NULL;
    EXPECT(CW_E_ARGUMENT, cw_write_record(log, &record));
    record.fields = NULL;
    EXPECT(CW_E_ARGUMENT, cw_write_record(log, &record));
    record.field_count = SIZE_MAX;
    EXPECT_TRUE(cw_write_record(log, &record) < CW_OK);
    for (size_t i = 0; i < 4097; i++) {
        many[i].key.data = "k";
        many[i].key.length = 1;
        many[i].type = CW_TYPE_INT;
    }
    record.fields = many;
    record.field_count = 4097;
    EXPECT(CW_E_LIMIT, cw_write_record(log, &record));
    record.field_count = 4096;
    EXPECT(CW_OK, cw_write_record(log, &record));
}

/* ── Settings of an open engine ── */

static void settings(cw_engine *engine) {
    char key[5000];
    memset(key, 'k', sizeof key);
    key[256] = 0;
    EXPECT(CW_E_ARGUMENT, cw_resource_set(engine, NULL, "x"));
    EXPECT(CW_E_ARGUMENT, cw_resource_set(engine, "", "x"));
    EXPECT(CW_E_ARGUMENT, cw_resource_set(engine, "x", NULL));
    EXPECT(CW_E_LIMIT, cw_resource_set(engine, key, "x"));
    EXPECT(CW_E_LIMIT, cw_level_set(engine, key, CW_LEVEL_INFO));
    memset(key, 'v', sizeof key);
    key[4097] = 0;
    EXPECT(CW_E_LIMIT, cw_resource_set(engine, "x", key));
    EXPECT(CW_E_LIMIT, cw_context_set("x", key));
    EXPECT(CW_E_ARGUMENT, cw_level_set(engine, NULL, CW_LEVEL_INFO));
    EXPECT(CW_E_LEVEL, cw_level_set(engine, "a", 0));
    EXPECT(CW_E_LEVEL, cw_level_set(engine, "a", 200));
    EXPECT_NAMED("200");
    EXPECT(CW_OK, cw_level_set(engine, "a", CW_LEVEL_OFF));
    EXPECT(CW_E_ARGUMENT, cw_flush(engine, (cw_durability)7, 0));
    EXPECT(CW_E_ARGUMENT, cw_consent_set(engine, 7));

    cw_stats stats = {0};
    EXPECT(CW_E_ARGUMENT, cw_stats_get(engine, NULL, sizeof stats));
    EXPECT(CW_E_STRUCT_SIZE, cw_stats_get(engine, &stats, 0));
    EXPECT(CW_E_STRUCT_SIZE, cw_stats_get(engine, &stats, 3));
    EXPECT(CW_OK, cw_stats_get(engine, &stats, sizeof stats));
}

static void targets(cw_engine *engine) {
    cw_target_options target;
    uint32_t id = 77;
    cw_target_options_init(NULL, 0);
    cw_target_options_init(&target, sizeof target);
    EXPECT(CW_E_ARGUMENT, cw_target_add(engine, NULL, &id));
    EXPECT(CW_E_ARGUMENT, cw_target_add(engine, &target, &id)); /* no URL */
    target.url = "not a url";
    EXPECT(CW_E_ARGUMENT, cw_target_add(engine, &target, &id));
    EXPECT_NAMED("not a url");
    target.url = "http://127.0.0.1:9/x";
    target.kind = "pigeon";
    EXPECT(CW_E_ARGUMENT, cw_target_add(engine, &target, &id));
    EXPECT_NAMED("pigeon");
    target.kind = "http";
    target.format = "papyrus";
    EXPECT(CW_E_ARGUMENT, cw_target_add(engine, &target, &id));
    EXPECT_NAMED("papyrus");
    target.format = "ndjson";
    target.encoding = "rot13";
    EXPECT(CW_E_ARGUMENT, cw_target_add(engine, &target, &id));
    EXPECT_NAMED("rot13");
    target.encoding = "none";
    target.method = "DANCE";
    EXPECT(CW_E_ARGUMENT, cw_target_add(engine, &target, &id));
    EXPECT_NAMED("DANCE");
    target.method = "POST";
    target.headers = "no colon";
    EXPECT(CW_E_ARGUMENT, cw_target_add(engine, &target, &id));
    target.headers = NULL;
    target.struct_size = 4;
    EXPECT(CW_E_STRUCT_SIZE, cw_target_add(engine, &target, &id));
    EXPECT_TRUE(id == 77);
    EXPECT(CW_E_ARGUMENT, cw_target_remove(engine, NULL));
    EXPECT(CW_E_NOT_FOUND, cw_target_remove(engine, "nobody"));
    EXPECT_NAMED("nobody");

    cw_upload_result result = {0};
    EXPECT(CW_E_STRUCT_SIZE, cw_upload(engine, 0, &result, 3));
    EXPECT(CW_E_NO_TARGET, cw_upload(engine, 60000, NULL, 0));
    EXPECT(CW_E_NO_TARGET, cw_upload(engine, 60000, &result, sizeof result));
}

/* ── Reading ── */

static void reading(const char *directory) {
    cw_reader *reader = NULL;
    cw_reader_options options;
    cw_record_view view;
    memset(&options, 0, sizeof options);
    memset(&view, 0, sizeof view);
    EXPECT(CW_E_ARGUMENT, cw_reader_open(NULL, NULL, &reader));
    EXPECT(CW_E_ARGUMENT, cw_reader_open(directory, NULL, NULL));
    EXPECT(CW_E_NOT_FOUND, cw_reader_open(in(directory, "nowhere"), NULL, &reader));
    EXPECT_NAMED("nowhere");
    EXPECT(CW_E_DAMAGED, cw_reader_open("/etc/passwd", NULL, &reader));
    EXPECT_NAMED("/etc/passwd");
    EXPECT(CW_E_STRUCT_SIZE, cw_reader_open(directory, &options, &reader));
    options.struct_size = sizeof options;
    options.level = 200;
    EXPECT(CW_E_ARGUMENT, cw_reader_open(directory, &options, &reader));
    EXPECT_TRUE(reader == NULL);
    EXPECT(CW_E_ARGUMENT, cw_reader_next(NULL, &view));
    EXPECT(CW_E_ARGUMENT, cw_reader_close(NULL));
    EXPECT(CW_OK, cw_reader_close(&reader));

    EXPECT(CW_OK, cw_reader_open(in(directory, "store"), NULL, &reader));
    EXPECT(CW_E_ARGUMENT, cw_reader_next(reader, NULL));
    EXPECT(CW_E_STRUCT_SIZE, cw_reader_next(reader, &view));
    view.struct_size = sizeof view;
    EXPECT(CW_OK, cw_reader_next(reader, &view));
    EXPECT(CW_OK, cw_reader_close(&reader));
    EXPECT(CW_OK, cw_reader_close(&reader));
}

/* ── A store that is full ── */

/* After a refusal the next calls are refused or kept, and every refusal is counted. */
static void refusals(const char *directory) {
    static char message[16003];
    cw_options options = good(in(directory, "full"));
    cw_engine *engine = NULL;
    cw_logger *log = NULL;
    uint64_t refused = 0;
    options.segment_bytes = 65536;
    options.quota_bytes = 4 * 65536;
    options.overflow = CW_OVERFLOW_DROP;
    EXPECT(CW_OK, cw_open(&options, &engine));
    EXPECT(CW_OK, cw_logger_get(engine, "full", &log));
    for (int i = 0; i < 2000; i++) {
        cw_status status = cw_write(log, CW_LEVEL_INFO, message, sizeof message);
        refused += status == CW_E_FULL;
        EXPECT_TRUE(status == CW_OK || status == CW_E_FULL);
    }
    cw_stats stats = {0};
    EXPECT(CW_OK, cw_stats_get(engine, &stats, sizeof stats));
    EXPECT_TRUE(refused > 0 && stats.records_dropped == refused);
    EXPECT(CW_OK, cw_close(&engine, 60000));
}

static void words(void) {
    char small[4] = "xxx";
    EXPECT_TRUE(strcmp(cw_status_name(CW_E_FULL), "CW_E_FULL") == 0);
    EXPECT_TRUE(cw_status_name(-9999) != NULL && cw_strerror(-9999) != NULL);
    EXPECT_TRUE(cw_status_name(INT32_MIN) != NULL && cw_strerror(INT32_MAX) != NULL);
    for (cw_status status = CW_E_NOT_ENABLED; status <= CW_AGAIN; status++) {
        EXPECT_TRUE(strncmp(cw_status_name(status), "CW_", 3) == 0);
        EXPECT_TRUE(cw_strerror(status)[0] != 0);
    }
    EXPECT_TRUE(cw_last_error(NULL, 0) > 0);
    EXPECT_TRUE(cw_last_error(small, sizeof small) > 3 && strlen(small) == 3);
    EXPECT_TRUE(cw_version() >> 16 == CW_VERSION_MAJOR && cw_version_string()[0] != 0);
}

int main(int count, char **arguments) {
    const char *directory = count > 1 ? arguments[1] : "";
    cw_engine *engine = NULL;
    cw_logger *log = NULL;
    defaults();
    open_arguments(directory);
    later_header(directory);
    open_values(directory);
    open_paths();
    no_engine();

    cw_options options = good(in(directory, "store"));
    EXPECT(CW_OK, cw_open(&options, &engine));
    EXPECT(CW_OK, cw_logger_get(engine, "bad.input", &log));
    writing(engine, log);
    records(log);
    record_fields(log);
    settings(engine);
    targets(engine);
    EXPECT(CW_OK, cw_close(&engine, 60000));
    refusals(directory);
    reading(directory);
    words();
    if (failures != 0) {
        printf("%d expectations broken\n", failures);
    }
    return failures != 0;
}
