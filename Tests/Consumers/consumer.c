/* The smallest C host: opens argv[1], writes a text and a record, closes, closes again, and then
 * uses its old handles. Exit 0 if every call returned what cordwood.h says. */
#include <cordwood/cordwood.h>

#include <stdio.h>

static int failures;

static void expect(cw_status got, cw_status wanted, const char *what) {
    if (got != wanted) {
        char why[512] = "";
        cw_last_error(why, sizeof why);
        fprintf(stderr, "%s: %s, not %s: %s\n", what, cw_status_name(got), cw_status_name(wanted),
                why);
        failures++;
    }
}

int main(int count, char **words) {
    cw_options options;
    cw_engine *engine = NULL;
    cw_logger *log = NULL;
    cw_options_init(&options, sizeof options);
    options.directory = count > 1 ? words[1] : NULL;
    expect(cw_open(&options, &engine), CW_OK, "cw_open");
    expect(cw_logger_get(engine, "consumer.c", &log), CW_OK, "cw_logger_get");
    expect(cw_write(log, CW_LEVEL_INFO, "hello", 5), CW_OK, "cw_write");
    expect(cw_write(log, CW_LEVEL_DEBUG, "hidden", 6), CW_DISABLED, "cw_write below the level");

    cw_field fields[2] = {{{"order", 5}, CW_TYPE_INT, {0}}, {{"user", 4}, CW_TYPE_STRING, {0}}};
    fields[0].value.i = 7;
    fields[1].value.s.data = "anna";
    fields[1].value.s.length = 4;
    cw_record record = {0};
    record.struct_size = sizeof record;
    record.level = CW_LEVEL_WARN;
    record.message.data = "fields";
    record.message.length = 6;
    record.fields = fields;
    record.field_count = 2;
    expect(cw_write_record(log, &record), CW_OK, "cw_write_record");

    cw_engine *old = engine;
    expect(cw_close(&engine, 60000), CW_OK, "cw_close");
    expect(cw_close(&engine, 60000), CW_OK, "cw_close again");
    if (engine != NULL || cw_enabled(log, CW_LEVEL_FATAL)) {
        fprintf(stderr, "closed, but it does not look so\n");
        failures++;
    }
    expect(cw_write(log, CW_LEVEL_INFO, "late", 4), CW_E_CLOSED, "cw_write after close");
    expect(cw_flush(old, CW_DURABLE_MACHINE, 0), CW_E_CLOSED, "cw_flush after close");
    return failures != 0;
}
