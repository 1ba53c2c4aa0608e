/* Writes records of every kind, by seed, as data for queries: plain texts and formats, fields of
 * every type, contexts, exceptions, places, traces, transactions, captured exchanges.
 *
 *     writer STORE SEED COUNT PROCESS [roll N] [ledger FILE]
 *
 * Rolls after every N records. With a ledger it runs until its standard input ends, numbers each
 * record in the field `n`, and stores there how many are kept. Otherwise it prints "ready" after
 * COUNT records, keeps the engine until its input ends, and then closes it. */

#define _GNU_SOURCE
#include <cordwood/cordwood.h>

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static uint64_t state;

static uint64_t draw(void) { /* SplitMix64 */
    uint64_t z = (state += 0x9E3779B97F4A7C15u);
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

static uint32_t below(uint32_t limit) { return (uint32_t)(draw() % limit); }

#define PICK(array) ((array)[below(sizeof(array) / sizeof *(array))])

static const char *const WORDS[] = {"order", "anna", "timed out", "Timeout", "true", "7", "42",
                                    "disk full", "a/b", "x=y", "gr\xc3\xbcn", "\"q\"", "zz",
                                    "\xff\xfe", "noise"};
static const char *const KEYS[] = {"order", "user", "price", "ok", "level", "file", "odd key",
                                   "host", "status", "pid"};
static const char *const LOGGERS[] = {"app", "app.db", "app.db.pool", "app.dbx", "noise", ""};
static const char *const FILES[] = {"src/db.c", "db.c", "main.c"};
static const char *const URLS[] = {"https://api.example.com/orders?id=7",
                                   "http://localhost:8080/orders/7#top",
                                   "https://shop.example.com"};

static const char *const JSON[] = {
    "{\"id\":7,\"total\":42.125,\"items\":[{\"sku\":\"zz\",\"n\":2},{\"sku\":\"a/b\"}],"
    "\"ok\":true}",
    "{ \"a.b\" : 1 , \"a\" : { \"b\" : 2, \"\" : 7 } ,\n \"gr\\u00fcn\" : \"Timeout\" }",
    "[7,\"42\",null,[true,{\"sku\":\"timed out\"}]]", "7", "\"order\"", "null", "false",
    "{\"n\":1e400,\"d\":-0.25,\"u\":18446744073709551615}", "{\"id\":\"7\",\"id\":8}", "{broken",
    "{\"id\":18446744073709551617,\"total\":12.50,\"u\":1e2,\"d\":1e20}", " 12.50 ", "1e2",
    "18446744073709551616", "-9223372036854775809",
    "[[[[[[[[[[[[[[[[[[[[[7]]]]]]]]]]]]]]]]]]]]]"};

static const int64_t INTS[] = {7, -3, 42, 0};
static const uint64_t UINTS[] = {7, 42, UINT64_MAX};
static const double DOUBLES[] = {7, 7.5, -0.25, 42.125};

static void must(cw_status status, const char *what) {
    if (status == CW_OK) return;
    char text[256];
    cw_last_error(text, sizeof text);
    fprintf(stderr, "writer: %s: %s: %s\n", what, cw_status_name(status), text);
    exit(1);
}

static cw_str str(const char *text) { return (cw_str){text, strlen(text)}; }

static const char *text(void) {
    static char made[4][128];
    static int at;
    char *out = made[at++ & 3];
    snprintf(out, sizeof made[0], "%s%s%s", PICK(WORDS), below(2) ? " " : "/",
             below(3) ? PICK(WORDS) : "");
    return out;
}

static size_t fields_of(cw_field *fields, size_t most) {
    size_t count = below((uint32_t)most + 1);
    for (size_t i = 0; i < count; i++) {
        cw_field *f = &fields[i];
        memset(f, 0, sizeof *f);
        f->key = str(PICK(KEYS));
        switch (below(8)) {
        case 6: case 7: f->type = CW_TYPE_JSON, f->value.s = str(PICK(JSON)); break;
        case 0: f->type = CW_TYPE_INT, f->value.i = PICK(INTS); break;
        case 1: f->type = CW_TYPE_UINT, f->value.u = PICK(UINTS); break;
        case 2: f->type = CW_TYPE_DOUBLE, f->value.d = PICK(DOUBLES); break;
        case 3: f->type = CW_TYPE_BOOL, f->value.b = below(2) != 0; break;
        default: f->type = CW_TYPE_STRING, f->value.s = str(below(2) ? PICK(WORDS) : text());
        }
    }
    return count;
}

static void rich(cw_logger *log, cw_level level) {
    cw_field fields[4];
    uint8_t trace[16], span[8];
    for (int i = 0; i < 16; i++) trace[i] = (uint8_t)(below(3) * 0x4b + (uint32_t)i);
    for (int i = 0; i < 8; i++) span[i] = (uint8_t)below(256);
    cw_record record = {.struct_size = sizeof record, .level = level, .message = str(text())};
    record.fields = fields;
    record.field_count = fields_of(fields, 4);
    if (below(2)) {
        record.file = str(PICK(FILES));
        record.function = str(below(2) ? "run" : "order_run");
        record.line = 40 + below(3);
    }
    if (below(3) == 0) record.trace_id = trace, record.span_id = below(2) ? span : NULL;
    if (below(4) == 0) {
        record.exception_type = str(below(2) ? "TimeoutError" : "ValueError");
        record.exception_message = str(text());
        if (below(2)) record.exception_stacktrace = str("at run\nat main");
    }
    if (below(5) == 0) record.time_ns = 1700000000000000000u + below(1000) * 1000000000u;
    must(cw_write_record(log, &record), "cw_write_record");
}

static void deferred(cw_logger *log, cw_level level) {
    switch (below(5)) {
    case 0: CW_LOG(log, level, "order %d is late", (int)below(50)); return;
    case 1: CW_LOG(log, level, "%s of %s", text(), PICK(WORDS)); return;
    case 2: CW_LOG(log, level, "took %.1f ms", below(100) / 4.0); return;
    case 3: CW_LOG(log, level, "no arguments, timed out"); return;
    default: CW_LOG(log, level, "%x/%c %llu", below(1u << 16), 'a' + (int)below(26),
                    (unsigned long long)draw());
    }
}

static void transaction(cw_engine *engine, cw_logger *log) {
    cw_transaction *one = NULL;
    must(cw_transaction_begin(engine, below(2) ? 17 : -4, &one), "cw_transaction_begin");
    must(cw_transaction_attach(one), "attach");
    rich(log, CW_LEVEL_INFO);
    const char *code = below(2) ? "42" : NULL;
    must(cw_transaction_event(one, (int32_t)below(3), code, code && below(2) ? "timed out" : NULL),
         "event");
    must(cw_transaction_detach(one), "detach");
    must(cw_transaction_end(&one), "end");
}

static void exchange(cw_engine *engine) {
    cw_http_exchange *one = NULL;
    cw_http_request request = {.struct_size = sizeof request, .side = CW_HTTP_CLIENT,
                               .method = str(below(2) ? "GET" : "POST"), .url = str(PICK(URLS))};
    must(cw_http_begin(engine, &request, &one), "cw_http_begin");
    if (below(4)) {
        struct cw_http_response answer = {.struct_size = sizeof answer,
                                          .status = (uint32_t[]){200, 404, 500, 503}[below(4)]};
        must(cw_http_response(one, &answer), "cw_http_response");
    }
    if (below(6) == 0) return; /* never ends */
    cw_http_outcome outcome = {.struct_size = sizeof outcome};
    if (below(4) == 0) outcome.error = str("timed out"), outcome.error_type = str("timeout");
    must(cw_http_end(&one, &outcome), "cw_http_end");
}

static void one_record(cw_engine *engine, cw_logger **loggers) {
    cw_logger *log = loggers[below(sizeof LOGGERS / sizeof *LOGGERS)];
    cw_level level = 1 + below(24);
    if (below(8) == 0) must(cw_context_set("user", below(2) ? PICK(WORDS) : NULL), "context");
    switch (below(10)) {
    case 0: case 1: case 2: rich(log, level); return;
    case 3: case 4: case 5: deferred(log, level); return;
    case 6: if (below(3) == 0) transaction(engine, log); else exchange(engine); return;
    default: {
        const char *message = text();
        must(cw_write(log, level, message, strlen(message)), "cw_write");
    }
    }
}

static int is_over(void) {
    struct pollfd input = {.fd = 0, .events = POLLIN};
    char byte;
    return poll(&input, 1, 0) > 0 && read(0, &byte, 1) == 0;
}

int main(int argc, char **argv) {
    if (argc < 5) return 2;
    uint64_t count = strtoull(argv[3], NULL, 10), roll = 0, kept = 0;
    int ledger = -1;
    state = strtoull(argv[2], NULL, 10);
    for (int i = 5; i + 1 < argc; i += 2) {
        if (!strcmp(argv[i], "roll")) roll = strtoull(argv[i + 1], NULL, 10);
        if (!strcmp(argv[i], "ledger")) ledger = open(argv[i + 1], O_CREAT | O_RDWR, 0600);
    }
    cw_options options;
    cw_options_init(&options, sizeof options);
    options.directory = argv[1];
    options.process_name = argv[4];
    options.level = CW_LEVEL_TRACE;
    options.segment_bytes = 64 << 10;
    cw_engine *engine = NULL;
    must(cw_open(&options, &engine), "cw_open");
    must(cw_resource_set(engine, "host.name", strcmp(argv[4], "shop") ? "dev-8" : "dev-7"), "host");
    must(cw_resource_set(engine, "service.name", argv[4]), "service");
    cw_http_options http = {.struct_size = sizeof http, .enabled = 1, .body_bytes_max = 1024,
                            .sample_per_million = 1000000};
    must(cw_http_options_set(engine, &http), "cw_http_options_set");
    cw_logger *loggers[sizeof LOGGERS / sizeof *LOGGERS];
    for (size_t i = 0; i < sizeof LOGGERS / sizeof *LOGGERS; i++)
        must(cw_logger_get(engine, LOGGERS[i], &loggers[i]), "cw_logger_get");
    for (uint64_t i = 0; ledger >= 0 ? !is_over() : i < count; i++) {
        if (ledger >= 0) {
            char number[24];
            snprintf(number, sizeof number, "%llu", (unsigned long long)i);
            must(cw_context_set("n", number), "n");
        }
        one_record(engine, loggers);
        kept = i + 1;
        if (ledger >= 0 && pwrite(ledger, &kept, sizeof kept, 0) != sizeof kept) return 3;
        if (roll && i % roll == roll - 1) must(cw_roll(engine), "cw_roll");
        if (ledger >= 0 && i > count) usleep(2000); /* goes on, but must not fill the disk */
    }
    if (ledger < 0) {
        puts("ready");
        fflush(stdout);
        while (!is_over()) usleep(1000);
    }
    must(cw_close(&engine, 60000), "cw_close");
    return 0;
}
