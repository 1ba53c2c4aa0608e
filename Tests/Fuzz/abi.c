/* Fuzz target: every exported function, in any order, with odd arguments: NULLs, lengths up to the
 * memory there, sizes and enums of no version, formats that are data, handles of closed engines. A
 * pointer is NULL or points to as much memory as the call may read. The header's promises for any
 * thread at any time must hold. The engine outlives an input, so that inputs meet its past. */
#include "fuzz.h"

enum { ENGINES = 4, LOGGERS = 8, READERS = 4, TEXT = 1 << 16, SITES = 32 };

typedef struct place {
    cw_site site;
    char format[512];
    char file[64];
    uint8_t classes[48];
} place;

static char text[TEXT + 64]; /* ends in zeros, enough for wide characters */
static cw_engine *engines[ENGINES];
static cw_engine *stale[ENGINES];
static cw_logger *loggers[LOGGERS];
static cw_reader *readers[READERS];
static place places[SITES];
static unsigned opened;
static _Alignas(16) char block[1024];

int LLVMFuzzerInitialize(int *count, char ***arguments) {
    (void)count;
    (void)arguments;
    plain_environment();
    make_scratch("abi");
    for (int i = 0; i < TEXT; i++) text[i] = (char)(i % 251 + 1);
    return 0;
}

/* ── Arguments ── */

/* NULL, empty, a piece of the input, or a very long one; NUL-terminated. */
static const char *take_string(input *in, char *room, size_t size) {
    uint8_t how = take8(in);
    if (how == 0) return NULL;
    if (how == 1) return "";
    if (how == 2) return text;
    const uint8_t *from;
    size_t n = take_bytes(in, how % (size - 1), &from);
    memcpy(room, from, n);
    room[n] = 0;
    return room;
}

static cw_str take_str(input *in) {
    cw_str s = {NULL, 0};
    uint8_t how = take8(in);
    if (how == 0) return s;
    if (how == 1) {
        s.length = take16(in); /* NULL with a length */
        return s;
    }
    s.data = text + (how & 15);
    s.length = how & 16 ? TEXT - 16 : take8(in);
    return s;
}

static uint32_t take_level(input *in) {
    uint8_t how = take8(in);
    return how < 32 ? how : how < 40 ? CW_LEVEL_OFF : how < 48 ? UINT32_MAX : CW_LEVEL_INFO;
}

static uint32_t take_size(input *in, size_t real) {
    uint8_t how = take8(in);
    if (how < 200) return (uint32_t)real;
    return how < 220 ? (uint32_t)(real + how - 200) : take16(in) % 1024;
}

static uint32_t take_timeout(input *in) { return take8(in) % 8; }

static cw_engine **engine_slot(input *in) { return engines + take8(in) % ENGINES; }

static cw_engine *take_engine(input *in) {
    uint8_t how = take8(in);
    if (how == 255) return NULL;
    if (how >= 224) return stale[how % ENGINES];
    cw_engine *engine = engines[how % ENGINES];
    return engine ? engine : engines[0];
}

static cw_logger *take_logger(input *in) {
    uint8_t how = take8(in);
    return how == 255 ? NULL : loggers[how % LOGGERS];
}

static void check(cw_status status) {
    PROMISE(status <= CW_AGAIN && status >= CW_E_NOT_ENABLED);
    PROMISE(status != CW_E_INTERNAL);
    PROMISE(cw_status_name(status)[0] == 'C' && cw_strerror(status)[0] != 0);
}

/* ── Calls ── */

static void removed(void *user, const char *archive, uint32_t reason) {
    (void)user;
    PROMISE(archive && archive[0] && reason >= 1 && reason <= 4);
}

static void call_open(input *in) {
    cw_options *o = (cw_options *)(void *)block;
    memset(block, 0, sizeof block);
    cw_options_init(o, sizeof *o);
    char room[256], name[256], path[400];
    uint8_t where = take8(in);
    snprintf(path, sizeof path, "%s/%s", scratch, where % 3 ? "store" : "store/a/b");
    o->directory = where < 200 ? path : where < 210 ? ":memory:" : take_string(in, room, 40);
    /* Never outside the scratch folder. */
    if (o->directory == room && room[0]) {
        for (char *c = room; *c; c++)
            if (*c == '/') *c = '_';
        snprintf(path, sizeof path, "%s/x%s", scratch, room);
        o->directory = path;
    }
    o->process_name = take_string(in, name, sizeof name);
    o->level = take_level(in);
    uint8_t odd = take8(in);
    o->segment_bytes = odd & 1 ? take32(in) : odd & 2 ? UINT64_MAX : 1 << 16;
    if (o->segment_bytes > 1 << 22 && o->segment_bytes <= 1 << 30) o->segment_bytes = 1 << 22;
    o->quota_bytes = 1 << 20;
    if (odd & 4) o->roll_age_s = take32(in);
    if (odd & 8) o->archives_max = take32(in);
    if (odd & 16) o->expiration_days = take32(in);
    o->codec = odd & 32 ? take8(in) : odd % 3;
    o->codec_level = odd & 64 ? (int32_t)take32(in) : 0;
    o->consent = odd & 128 ? take8(in) : 0;
    uint8_t more = take8(in);
    /* BLOCK would wait for room that the quota never gives. */
    o->overflow = more & 1 ? 3u + take8(in) : more & 2 ? CW_OVERFLOW_DROP : CW_OVERFLOW_GROW;
    o->console = more & 4 ? 4u + take8(in) : CW_CONSOLE_OFF;
    o->flags = more & 8 ? take32(in) & ~(uint32_t)CW_FLAG_SYNC_CONSOLE : 0;
    o->upload_interval_s = more & 16 ? take32(in) : 0;
    o->archive_removed = more & 32 ? removed : NULL;
    o->archive_method = odd & 2 ? CW_ARCHIVE_PLAIN : more & 8 ? take8(in) : CW_ARCHIVE_DENSE;
    o->archive_time_step_ns = more & 16 ? take32(in) % 10002 : 0;
    o->struct_size = take_size(in, sizeof *o);
    if (more & 64) block[sizeof *o + take8(in)] = 1;
    cw_engine **slot = engine_slot(in);
    cw_engine *made = (cw_engine *)(void *)text;
    cw_status status = cw_open(more & 128 ? NULL : o, take8(in) == 255 ? NULL : &made);
    check(status);
    if (status != CW_OK) {
        PROMISE(made == (cw_engine *)(void *)text);
        return;
    }
    opened++;
    if (*slot) {
        cw_engine *old = *slot;
        check(cw_close(slot, 20000));
        stale[slot - engines] = old;
    }
    *slot = made;
}

static void call_close(input *in) {
    cw_engine **slot = engine_slot(in);
    cw_engine *old = *slot;
    uint8_t how = take8(in);
    if (how == 255) {
        check(cw_close(NULL, 0));
        return;
    }
    cw_status status = cw_close(slot, how > 200 ? 20000 : how % 64);
    check(status);
    if (*slot == NULL && old) stale[slot - engines] = old;
}

/* Errors made from random request results, described and logged. */
static void call_network(input *in) {
    static const char odata[] = "{\"error\": {\"code\": \"A\", \"message\": \"b\"}}";
    char id[40];
    cw_http_header headers[4];
    memset(headers, 0, sizeof headers);
    cw_network_result result;
    memset(&result, 0, sizeof result);
    uint8_t odd = take8(in);
    result.struct_size = odd & 1 ? take8(in) % sizeof result : sizeof result;
    result.http_status = odd & 2 ? (int32_t)take32(in) : take16(in) % 700;
    result.header_count = take8(in) % 5;
    for (size_t i = 0; i < result.header_count; i++) {
        headers[i].name = take8(in) & 1 ? (cw_str){"Retry-After", 11} : take_str(in);
        headers[i].value = take_str(in);
    }
    result.headers = odd & 4 ? NULL : headers;
    result.body = odd & 8 ? take_str(in) : (cw_str){odata, sizeof odata - 1};
    result.error = take_str(in);
    result.error_type = take_str(in);
    result.method = take_str(in);
    result.url = take_str(in);
    result.exchange_id = take_string(in, id, sizeof id);
    result.time_ns = odd & 16 ? take(in, 8) : 0;
    const cw_network_error *error = NULL;
    cw_status status = cw_network_error_from(&result, odd & 32 ? NULL : &error);
    check(status);
    PROMISE((status == CW_OK) == (error != NULL));
    PROMISE((cw_upload_error_text(error, "de", NULL, 0) > 0) == (error != NULL));
    cw_record more;
    memset(&more, 0, sizeof more);
    more.struct_size = sizeof more;
    more.level = take_level(in);
    more.message = take_str(in);
    check(cw_network_error_log(take_logger(in), error, odd & 64 ? &more : NULL));
    check(cw_upload_error_free(&error));
}

static void call_record(input *in) {
    memset(block, 0, sizeof block);
    cw_record *r = (cw_record *)(void *)block;
    cw_field fields[16];
    memset(fields, 0, sizeof fields);
    r->level = take_level(in);
    r->message = take_str(in);
    uint8_t odd = take8(in);
    r->field_count = take8(in) % 17;
    for (size_t i = 0; i < r->field_count; i++) {
        fields[i].key = take_str(in);
        fields[i].type = take8(in) % 8;
        fields[i].value.u = take(in, 8);
        if (fields[i].type == CW_TYPE_STRING || fields[i].type == CW_TYPE_JSON)
            fields[i].value.s = take_str(in);
    }
    r->fields = odd & 1 ? NULL : fields;
    if (odd & 2) {
        r->file = take_str(in);
        r->function = take_str(in);
        r->line = take32(in);
    }
    if (odd & 4) r->trace_id = (const uint8_t *)text;
    if (odd & 8) r->span_id = (const uint8_t *)text;
    r->trace_flags = odd & 16 ? take32(in) : 0;
    r->time_ns = odd & 32 ? take(in, 8) : 0;
    if (odd & 64) {
        r->exception_type = take_str(in);
        r->exception_message = take_str(in);
        r->exception_stacktrace = take_str(in);
    }
    r->struct_size = take_size(in, sizeof *r);
    check(cw_write_record(take_logger(in), odd & 128 && odd & 1 ? NULL : r));
}

/* A place as data. Its strings keep their addresses, like those of a reloaded module. */
static place *take_place(input *in) {
    place *p = places + take8(in) % SITES;
    uint8_t how = take8(in);
    if (how & 1) return p; /* the previous one, registered or not */
    memset(p, 0, sizeof *p);
    const uint8_t *from;
    size_t n = take_bytes(in, take16(in) % 500, &from);
    memcpy(p->format, from, n);
    size_t classes = take_bytes(in, how & 2 ? 40 : 8, &from);
    for (size_t i = 0; i < classes; i++) p->classes[i] = how & 4 ? from[i] : from[i] % 12;
    p->classes[classes] = 0;
    memcpy(p->file, "fuzz.c", 7);
    p->site.format = how & 8 ? NULL : p->format;
    p->site.file = how & 16 ? NULL : p->file;
    p->site.function = how & 32 ? NULL : p->file;
    p->site.arguments = how & 64 ? NULL : p->classes;
    p->site.line = take16(in);
    p->site.style = how & 128 ? take8(in) : (uint32_t)(how & 4 ? 0 : 2);
    return p;
}

static void take_arguments(input *in, const place *p, cw_arg *values) {
    for (unsigned i = 0; i < 48; i++) {
        memset(values + i, 0, sizeof values[i]);
        switch (p->classes[i]) {
        case CW_ARG_POINTER:
            values[i].p = take8(in) % 4 ? text + TEXT - 4 * take8(in) : NULL;
            break;
        case CW_ARG_TEXT:
            values[i].s.length = take16(in) % TEXT;
            values[i].s.data = take8(in) % 8 ? text : (values[i].s.length = 0, NULL);
            break;
        case CW_ARG_DOUBLE:
        case CW_ARG_FLOAT: {
            uint64_t bits = take(in, 8);
            memcpy(&values[i].d, &bits, 8);
            break;
        }
        case CW_ARG_LONG_DOUBLE: values[i].l = (long double)(int64_t)take(in, 8); break;
        default: values[i].u = take(in, 8);
        }
    }
}

static void call_site(input *in, unsigned which) {
    cw_arg values[48];
    place *p = take_place(in);
    cw_logger *logger = take_logger(in);
    uint32_t level = take_level(in);
    take_arguments(in, p, values);
    bool none = take8(in) == 255;
    if (which == 0) {
        check(cw_site_write(logger, level, none ? NULL : &p->site, values));
    } else if (which == 1) {
        size_t length = p->site.format ? strlen(p->site.format) : 0;
        p->site.count = (uint32_t)length;
        check(cw_place_write(logger, level, none ? NULL : &p->site, values));
        p->site.count = 0;
    } else if (which == 2) {
        cw_str s = take_str(in);
        check(cw_site_text(logger, level, none ? NULL : &p->site, s.data, (uint32_t)s.length));
    } else {
        cw_site_every_ms(none ? NULL : &p->site, take32(in));
    }
}

static void call_reader_open(input *in) {
    cw_reader **slot = readers + take8(in) % READERS;
    cw_reader *old = *slot;
    if (old) PROMISE(cw_reader_close(slot) == CW_OK && !*slot);
    memset(block, 0, sizeof block);
    cw_reader_options *o = (cw_reader_options *)(void *)block;
    char room[64], path[300];
    uint8_t how = take8(in);
    snprintf(path, sizeof path, "%s/%s", scratch, how & 1 ? "store" : "nowhere");
    o->flags = how & 2 ? take32(in) : take8(in) % 4;
    o->level = how & 4 ? take32(in) : take8(in) % 25;
    o->kinds = how & 8 ? take32(in) : 0;
    o->since_ns = how & 16 ? take(in, 8) : 0;
    o->until_ns = how & 32 ? take(in, 8) : 0;
    o->logger = take_string(in, room, sizeof room);
    if (how & 8) o->query = o->logger;
    o->struct_size = take_size(in, sizeof *o);
    check(cw_reader_open(how & 64 ? NULL : path, how & 128 ? NULL : o,
                         take8(in) == 255 ? NULL : slot));
}

static void call_reader_next(input *in) {
    cw_reader *reader = readers[take8(in) % READERS];
    uint8_t how = take8(in);
    if (how < 250) {
        read_all(reader, reader ? how : 0);
        return;
    }
    memset(block, 0, sizeof block);
    cw_record_view *view = (cw_record_view *)(void *)block;
    view->struct_size = take_size(in, sizeof *view);
    check(cw_reader_next(how & 1 ? reader : NULL, how & 2 ? view : NULL));
}

static void attempting(void *user, const char *archive, uint32_t attempt) {
    (void)user;
    PROMISE(archive && attempt > 0);
}
static void completed(void *user, const char *archive, cw_status status, int32_t http) {
    (void)user;
    (void)http;
    PROMISE(archive && status <= CW_OK);
}
static void done(void *user, cw_status status, const cw_upload_result *result) {
    (void)user;
    check(status);
    PROMISE(result != NULL);
}

/* Nothing listens on port 1 of this machine. No other address is ever used. */
static const char *const urls[] = {
    "http://127.0.0.1:1", "http://127.0.0.1:1/{id}/{name}", "", "http://", "file:///etc/passwd",
    "http://127.0.0.1:99999/", "http://[::1]:1/{", "HTTP://127.0.0.1:1/a b", "gopher://127.0.0.1:1",
    "http://127.0.0.1:1\r\nX: y", NULL};

static void call_target_add(input *in) {
    char rooms[5][128];
    memset(block, 0, sizeof block);
    cw_target_options *o = (cw_target_options *)(void *)block;
    cw_target_options_init(o, sizeof *o);
    uint8_t how = take8(in);
    o->url = urls[take8(in) % (sizeof urls / sizeof *urls)];
    o->name = take_string(in, rooms[0], 128);
    o->kind = how & 1 ? take_string(in, rooms[1], 128) : how & 2 ? "http" : "collector";
    o->format = how & 4 ? take_string(in, rooms[2], 128) : how & 8 ? "ndjson" : "archive";
    o->encoding = how & 16 ? take_string(in, rooms[3], 128) : how & 32 ? "gzip" : NULL;
    o->headers = take_string(in, rooms[4], 128);
    o->auth_token = how & 64 ? text : NULL;
    o->attempting = attempting;
    o->completed = completed;
    o->connect_timeout_ms = take_timeout(in);
    o->request_timeout_ms = take_timeout(in);
    o->struct_size = take_size(in, sizeof *o);
    uint32_t id;
    check(cw_target_add(take_engine(in), how & 128 ? NULL : o, &id));
}

static void call_upload(input *in) {
    memset(block, 0, sizeof block);
    uint8_t how = take8(in);
    cw_upload_result *result = (cw_upload_result *)(void *)block;
    size_t size = take_size(in, sizeof *result);
    result->struct_size = (uint32_t)size;
    check(cw_upload(take_engine(in), take_timeout(in), how & 1 ? NULL : result, size));
}

static void call_words(input *in) {
    cw_status number = (cw_status)take32(in);
    PROMISE(cw_status_name(number) && cw_strerror(number));
    PROMISE(cw_version() != 0 && cw_version_string()[0] != 0);
    char small[16];
    size_t n = take8(in) % 17;
    small[n ? n - 1 : 0] = 1;
    cw_last_error(n ? small : NULL, n);
    if (n) PROMISE(small[n - 1] == 0 || memchr(small, 0, n));
}

static void call(input *in) {
    char a[600], b[600];
    switch (take8(in) % 37) {
    case 0: {
        size_t size = take16(in) % sizeof block;
        cw_options_init(take8(in) == 255 ? NULL : (cw_options *)(void *)block, size);
        break;
    }
    case 1:
        if (opened < 6) call_open(in);
        break;
    case 2:
        check(cw_resource_set(take_engine(in), take_string(in, a, 250), take_string(in, b, 250)));
        break;
    case 3: {
        cw_logger **slot = loggers + take8(in) % LOGGERS;
        check(cw_logger_get(take_engine(in), take_string(in, a, 250),
                            take8(in) == 255 ? NULL : slot));
        break;
    }
    case 4:
    case 5: {
        cw_str s = take_str(in);
        check(cw_write(take_logger(in), take_level(in), s.data, s.length));
        break;
    }
    case 6:
    case 7: call_record(in); break;
    case 8:
    case 9: call_site(in, 0); break;
    case 10:
    case 11: call_site(in, 1); break;
    case 12: call_site(in, 2); break;
    case 13: call_site(in, 3); break;
    case 14: {
        uint8_t how = take8(in);
        cw_durability durability = (cw_durability)(how < 250 ? how % 2 : how);
        check(cw_flush(take_engine(in), durability, take_timeout(in)));
        break;
    }
    case 15: check(cw_roll(take_engine(in))); break;
    case 16: check(cw_archive_wait(take_engine(in), take_timeout(in))); break;
    case 17: {
        memset(block, 0, sizeof block);
        cw_stats *stats = (cw_stats *)(void *)block;
        size_t size = take_size(in, sizeof *stats);
        stats->struct_size = (uint32_t)size;
        check(cw_stats_get(take_engine(in), take8(in) == 255 ? NULL : stats, size));
        break;
    }
    case 18: call_close(in); break;
    case 19: check(cw_level_set(take_engine(in), take_string(in, a, 250), take_level(in))); break;
    case 20: check(cw_context_set(take_string(in, a, 250), take_string(in, b, 250))); break;
    case 21: {
        uint8_t how = take8(in);
        check(cw_trace_set(how & 1 ? NULL : (const uint8_t *)text,
                           how & 2 ? NULL : (const uint8_t *)text, take8(in)));
        break;
    }
    case 22: call_reader_open(in); break;
    case 23:
    case 24: call_reader_next(in); break;
    case 25: {
        cw_reader **slot = readers + take8(in) % READERS;
        check(cw_reader_close(take8(in) == 255 ? NULL : slot));
        break;
    }
    case 26: {
        size_t size = take16(in) % sizeof block;
        cw_target_options_init(take8(in) == 255 ? NULL : (cw_target_options *)(void *)block, size);
        break;
    }
    case 27: call_target_add(in); break;
    case 28: check(cw_target_remove(take_engine(in), take_string(in, a, 250))); break;
    case 29: call_upload(in); break;
    case 30: check(cw_upload_async(take_engine(in), take8(in) & 1 ? done : NULL, NULL)); break;
    case 31: {
        uint32_t consent = take8(in) < 200 ? take8(in) % 3 : take32(in);
        check(cw_consent_set(take_engine(in), consent));
        break;
    }
    case 32: {
        cw_str s = take_str(in);
        static const char some[] = "{\"levels\": {\"app\": \"debug\"}, \"max_files\": 3}";
        if (take8(in) < 128) s = (cw_str){some, sizeof some - 1};
        check(cw_policy_apply(take_engine(in), s.data, s.length));
        break;
    }
    case 33: {
        const cw_upload_error *error = NULL;
        uint8_t how = take8(in);
        const char *name = how & 1 ? NULL : take_string(in, a, 250);
        cw_status status =
            cw_upload_last_error(take_engine(in), name, how & 2 ? NULL : &error);
        check(status);
        PROMISE((status == CW_OK) == (error != NULL));
        char words[600];
        size_t n = take16(in) % sizeof words;
        size_t length = cw_upload_error_text(error, how & 4 ? NULL : "de",
                                             how & 8 ? NULL : words, how & 8 ? SIZE_MAX : n);
        PROMISE((length > 0) == (error != NULL));
        check(cw_upload_error_free(how & 16 ? NULL : &error));
        check(cw_upload_error_free(&error));
        break;
    }
    case 34: {
        const char *words = cw_outcome_text((int32_t)take32(in), take_string(in, a, 20));
        PROMISE(words && words[0] && words[strlen(words) - 1] == '.');
        break;
    }
    case 35: call_network(in); break;
    default: call_words(in); break;
    }
}

/* One engine always exists, so that most calls reach one. */
static void provide(void) {
    if (engines[0]) return;
    char path[300];
    snprintf(path, sizeof path, "%s/store", scratch);
    cw_options options;
    cw_options_init(&options, sizeof options);
    options.directory = path;
    options.segment_bytes = 1 << 16;
    options.quota_bytes = 1 << 20;
    PROMISE(cw_open(&options, &engines[0]) == CW_OK);
    for (unsigned i = 0; i < LOGGERS; i++) {
        char name[16];
        snprintf(name, sizeof name, "app.%u", i);
        if (!loggers[i]) PROMISE(cw_logger_get(engines[0], name, &loggers[i]) == CW_OK);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    input in = {data, size};
    opened = 0;
    provide();
    for (unsigned calls = 0; in.left > 0 && calls < 64; calls++) call(&in);
    for (unsigned i = 0; i < READERS; i++) PROMISE(cw_reader_close(&readers[i]) == CW_OK);
    for (unsigned i = 1; i < ENGINES; i++) {
        if (!engines[i]) continue;
        cw_engine *old = engines[i];
        check(cw_close(&engines[i], 20000));
        stale[i] = old;
    }
    /* Loggers of closed engines stay closed for ever. Fresh ones keep the rest useful. */
    if (!engines[0]) memset(loggers, 0, sizeof loggers);
    return 0;
}
