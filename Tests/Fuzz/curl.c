/* Fuzz target: what libcurl's debug callback reports (curl_transfer.h), without libcurl. An input
 * is a run of heads, bodies and texts, made by a grammar and of arbitrary bytes, with facts beside
 * them. It is passed whole, then in pieces: each hop's records must be the same except for ids.
 * Inputs whose first byte is low are one simple exchange, whose records are compared with the
 * intended ones. */
#include <cordwood/curl_transfer.h>

#include "fuzz.h"

enum { STEPS_MAX = 24, TEXT_MAX = 8192, SAID_MAX = 1 << 18, PLAYS = 3 };

typedef struct step {
    uint32_t kind;
    size_t from, length; /* in `text` */
    cw_curl_facts facts;
} step;

static cw_engine *engine;
static char store[200];
static step steps[STEPS_MAX];
static unsigned step_count;
static char text[TEXT_MAX];
static size_t used;
static uint64_t serial, begun_ns;
/* The store's records of each play. */
static char said[PLAYS][SAID_MAX];
static size_t said_used[PLAYS];

int LLVMFuzzerInitialize(int *count, char ***arguments) {
    (void)count;
    (void)arguments;
    engine = open_small("curl", store, sizeof store);
    cw_http_options http;
    cw_http_options_init(&http, sizeof http);
    http.enabled = 1;
    http.keep_text = "* */*";
    PROMISE(cw_http_options_set(engine, &http) == CW_OK);
    return 0;
}

/* ── The run ── */

static void put(const void *bytes, size_t n) {
    if (n > TEXT_MAX - used) n = TEXT_MAX - used;
    memcpy(text + used, bytes, n);
    used += n;
}
static void puts_(const char *word) { put(word, strlen(word)); }

#define PICK(in, list) (list)[take8(in) % (sizeof(list) / sizeof *(list))]

/* Bytes of the input. If `is_head`, without an empty line, which ends a request's head. */
static void put_bytes(input *in, size_t most, bool is_head) {
    const uint8_t *from;
    size_t n = take_bytes(in, most, &from), start = used;
    put(from, n);
    for (size_t i = start; is_head && i < used; i++)
        if (text[i] == '\r') text[i] = 'r';
}

static const char *const lines[] = {
    "Host: h.test\r\n", "Transfer-Encoding: chunked\r\n", "transfer-encoding:  Chunked \r\n",
    "Content-Encoding: gzip\r\n", "Content-Type: text/plain\r\n", "X-A: b\r\n c\r\n",
    "X-A:\r\n", ": x\r\n", "no header\r\n", "\t folded\r\n", "X-B: y\n", "Content-Length: 3\r\n",
    "X-Conversation-Id: 7\r\n", "Authorization: Basic am9lOmJvYg==\r\n"};

static void put_lines(input *in) {
    for (int more = take8(in) % 6; more > 0; more--) puts_(PICK(in, lines));
}

static void put_chunks(input *in) {
    for (int more = take8(in) % 5; more > 0; more--) {
        const uint8_t *from;
        char size[24];
        size_t n = take_bytes(in, take8(in) % 40, &from);
        if (n == 0) continue;
        snprintf(size, sizeof size, more & 1 ? "%zx\r\n" : "%zX;a=b\r\n", n);
        puts_(size);
        put(from, n);
        puts_("\r\n");
    }
    if (take8(in) & 3) puts_("0\r\n\r\n");
}

static void put_request(input *in) {
    static const char *const methods[] = {"GET ", "POST ", "CONNECT ", "", " ", "M"};
    static const char *const ends[] = {" HTTP/1.1\r\n", " HTTP/2\r\n", " HTTP/1.0\r\n", "\r\n",
                                       " HTTP/3\r\n", " \r\n"};
    puts_(PICK(in, methods));
    puts_("/a");
    puts_(PICK(in, ends));
    put_lines(in);
    if (take8(in) & 7) puts_("\r\n");
}

static void put_answer(input *in) {
    static const char *const starts[] = {
        "HTTP/1.1 200 OK\r\n", "HTTP/1.1 302 Found\r\n", "HTTP/2 200 \r\n", "HTTP/1.1 100 \r\n",
        "HTTP/1.1 103 Early\r\n", "HTTP/1.0 404 No\n", "HTTP/3 503 \r\n", "ICY 200 OK\r\n",
        "HTTP/1.1 999 x\r\n", "HTTP/1.1 2\r\n", "HTTP/1.1 101 Switch\r\n", ""};
    puts_(PICK(in, starts));
    put_lines(in);
    if (take8(in) & 7) puts_("\r\n");
}

static void put_text(input *in) {
    static const char *const texts[] = {
        "Issue another request to this URL: 'http://h/'", "Failed writing body (0 != 3)",
        "Failure writing output to destination", "client returned ERROR on write",
        "Connection #0 to host h.test left intact", "", "Issue another reques"};
    puts_(PICK(in, texts));
}

static void make_step(input *in) {
    static const char *const addresses[] = {"192.0.2.1", "::1", "", NULL, "a:b:c:d:e:f:a:b:c:d:e:f:"
        "a:b:c:d:e:f:a:b:c:d:e:f:a:b:c:d:e:f:a:b:c:d:e:f"};
    step *one = &steps[step_count++];
    one->from = used;
    uint8_t how = take8(in);
    switch (how % 12) {
    case 0:
    case 1: one->kind = CW_CURL_HEADER_OUT; put_request(in); break;
    case 2:
    case 3:
    case 4: one->kind = CW_CURL_HEADER_IN; put_answer(in); break;
    case 5: one->kind = CW_CURL_DATA_IN; put_chunks(in); break;
    case 6: one->kind = CW_CURL_DATA_OUT; put_chunks(in); break;
    case 7: one->kind = CW_CURL_TEXT; put_text(in); break;
    case 8: one->kind = CW_CURL_DATA_IN; put_bytes(in, take8(in), false); break;
    case 9: one->kind = CW_CURL_HEADER_IN; put_bytes(in, take8(in), false); break;
    case 10: one->kind = CW_CURL_HEADER_OUT; put_bytes(in, take8(in), true); break;
    default: one->kind = take8(in); put_bytes(in, take8(in) % 16, true); break;
    }
    one->length = used - one->from;
    /* libcurl's clocks advance; one that lies jumps anywhere. */
    bool lies = how > 240;
    cw_curl_facts *facts = &one->facts;
    *facts = (cw_curl_facts){.struct_size = sizeof *facts, .method = how & 1 ? "PUT" : NULL};
    facts->now_ns = begun_ns + step_count * UINT64_C(1000000);
    facts->dns_us = lies ? (int64_t)take(in, 8) : step_count * 10;
    facts->connect_us = lies ? (int64_t)take(in, 8) : step_count * 30;
    facts->tls_us = lies ? (int64_t)take(in, 8) : how & 2 ? step_count * 50 : 0;
    facts->connects = how >> 4 & 1;
    facts->status = lies ? (int32_t)take32(in) : how & 32 ? 207 : 0;
    facts->port = lies ? (int32_t)take32(in) : 443;
    facts->address = PICK(in, addresses);
}

/* ── Telling it ── */

static uint64_t chance;

static size_t piece_length(int play, size_t left) {
    if (play == 0 || left == 0) return left;
    if (play == 1) return 1;
    chance = chance * 6364136223846793005u + 1442695040888963407u;
    size_t n = (size_t)(chance >> 33) % 24; /* may be 0 */
    return n < left ? n : left;
}

static void tell(cw_curl_transfer *transfer, int play, const step *one, const char *url) {
    cw_curl_facts facts = one->facts;
    facts.url = url;
    if (one->kind == CW_CURL_TEXT) play = 0;
    size_t at = 0;
    do {
        /* Nothing follows a piece: the address sanitizer catches a read past it. */
        size_t n = piece_length(play, one->length - at);
        char *piece = malloc(n ? n : 1);
        memcpy(piece, text + one->from + at, n);
        PROMISE(cw_curl_transfer_tell(transfer, one->kind, piece, n, &facts) == CW_OK);
        free(piece);
        if (play) PROMISE(cw_curl_transfer_tell(transfer, 5, "ssl", 3, &facts) == CW_OK);
        at += n;
    } while (at < one->length);
}

static void play_all(int play, const char *rest, int32_t code, bool has_facts) {
    cw_curl_transfer *transfer;
    char url[64], id[CW_CURL_ID_BYTES];
    snprintf(url, sizeof url, "http://h%llu.test/%d%s", (unsigned long long)serial, play, rest);
    PROMISE(cw_curl_transfer_begin(engine, &transfer) == CW_OK);
    for (unsigned i = 0; i < step_count; i++) tell(transfer, play, &steps[i], url);
    cw_curl_facts facts = {.struct_size = sizeof facts, .code = code, .error = "it failed",
                           .url = url, .total_us = 5000, .connect_us = 20};
    facts.now_ns = begun_ns + UINT64_C(60000000);
    PROMISE(cw_curl_transfer_end(&transfer, has_facts ? &facts : NULL, id) == CW_OK);
    PROMISE(!transfer && (strlen(id) == 16 || !*id));
}

/* ── Reading it back ── */

static bool is(cw_str key, const char *word) {
    return key.length == strlen(word) && !memcmp(key.data, word, key.length);
}

static void say(int play, const void *bytes, size_t n) {
    PROMISE(n <= SAID_MAX - 1 - said_used[play]);
    memcpy(said[play] + said_used[play], bytes, n);
    said[play][said_used[play] += n] = 0;
}

static void note(int play, const cw_record_view *view) {
    for (size_t i = 0; i < view->field_count; i++) {
        const cw_field *field = &view->fields[i];
        char number[40];
        /* Ids differ each time. The address identifies the play. */
        bool differs = is(field->key, "http.id") || is(field->key, "http.redirected_from");
        say(play, field->key.data, field->key.length);
        say(play, "=", 1);
        if (differs || is(field->key, "url.full")) continue;
        if (field->type == CW_TYPE_STRING) {
            say(play, field->value.s.data, field->value.s.length);
        } else {
            bool is_flag = field->type == CW_TYPE_BOOL;
            unsigned long long value = is_flag ? field->value.b : field->value.u;
            say(play, number, (size_t)snprintf(number, sizeof number, "%llu", value));
        }
        say(play, "|", 1);
    }
    say(play, "\n", 1);
}

static void read_plays(void) {
    cw_reader_options options = {.struct_size = sizeof options, .kinds = 1u << CW_KIND_HTTP};
    cw_reader *reader;
    char address[64];
    int length =
        snprintf(address, sizeof address, "http://h%llu.test/", (unsigned long long)serial);
    for (int play = 0; play < PLAYS; play++) said[play][said_used[play] = 0] = 0;
    PROMISE(cw_reader_open(store, &options, &reader) == CW_OK);
    for (;;) {
        cw_record_view view = {.struct_size = sizeof view};
        cw_status status = cw_reader_next(reader, &view);
        if (status == CW_END) break;
        for (size_t i = 0; status == CW_OK && i < view.field_count; i++) {
            cw_str value = view.fields[i].value.s;
            if (is(view.fields[i].key, "url.full") && value.length > (size_t)length &&
                !memcmp(value.data, address, (size_t)length))
                note(value.data[length] - '0', &view);
        }
    }
    PROMISE(cw_reader_close(&reader) == CW_OK);
}

static uint64_t dropped(void) {
    cw_stats stats;
    PROMISE(cw_stats_get(engine, &stats, sizeof stats) == CW_OK);
    return stats.records_dropped;
}

/* False: the disk had no room for some records, so there is no verdict. */
static bool compared(const char *rest, int32_t code, bool has_facts) {
    uint64_t before = dropped();
    for (int play = 0; play < PLAYS; play++) play_all(play, rest, code, has_facts);
    read_plays();
    if (dropped() != before) return false;
    for (int play = 1; play < PLAYS; play++) {
        if (!strcmp(said[0], said[play])) continue;
        fprintf(stderr, "whole:\n%s\nin pieces (%d):\n%s\n", said[0], play, said[play]);
        abort();
    }
    return true;
}

/* ── One exchange of which all is known ── */

static void add(uint32_t kind, size_t from) {
    step *one = &steps[step_count++];
    *one = (step){kind, from, used - from, {.struct_size = sizeof(cw_curl_facts)}};
    one->facts.now_ns = begun_ns + step_count;
}

static void simple(input *in) {
    static const char *const versions[] = {"HTTP/1.1", "HTTP/1.0", "HTTP/2"};
    char body[600], line[64], wanted[800];
    size_t length = take16(in) % sizeof body, from;
    int status = 200 + take8(in) % 100, hints = take8(in) % 3;
    const char *version = PICK(in, versions);
    bool is_chunked = take8(in) & 1 && version[5] == '1';
    for (size_t i = 0; i < length; i++) body[i] = "ab \ncd, "[take8(in) % 8];
    used = step_count = 0;
    puts_("GET /a HTTP/1.1\r\nHost: h.test\r\n\r\n");
    add(CW_CURL_HEADER_OUT, 0);
    from = used;
    while (hints-- > 0) puts_("HTTP/1.1 103 Early\r\nLink: x\r\n\r\n");
    snprintf(line, sizeof line, "%s %d Fine\r\nX-Here: yes\r\n", version, status);
    puts_(line);
    /* In HTTP/2 the header means nothing. */
    puts_(is_chunked || version[5] == '2' ? "Transfer-Encoding: chunked\r\n\r\n" : "\r\n");
    add(CW_CURL_HEADER_IN, from);
    from = used;
    for (size_t at = 0, n; is_chunked && at < length; at += n) {
        n = 1 + take8(in) % 40;
        if (n > length - at) n = length - at;
        snprintf(line, sizeof line, "%zx\r\n", n);
        puts_(line);
        put(body + at, n);
        puts_("\r\n");
    }
    if (is_chunked) puts_("0\r\n\r\n");
    else put(body, length);
    add(CW_CURL_DATA_IN, from);
    if (!compared("", 0, true)) return;
    snprintf(line, sizeof line, "http.response.status_code=%d|", status);
    PROMISE(strstr(said[0], line));
    PROMISE(strstr(said[0], "http.response.headers=X-Here: yes") && !strstr(said[0], "Link"));
    snprintf(wanted, sizeof wanted, "http.response.body=%.*s|", (int)length, body);
    PROMISE(!length || strstr(said[0], wanted));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const int32_t codes[] = {0, 0, 6, 23, 28, 42, 56, 60};
    static const char *const rests[] = {"", "?a=b", "/c#d"};
    input in = {data, size};
    serial++;
    begun_ns = UINT64_C(1700000000000000000) + serial % 100000 * UINT64_C(1000000000);
    uint8_t how = take8(&in);
    chance = how;
    if (how < 40) {
        simple(&in);
        return 0;
    }
    int32_t code = PICK(&in, codes);
    const char *rest = PICK(&in, rests);
    used = step_count = 0;
    while (in.left > 0 && step_count < STEPS_MAX) make_step(&in);
    compared(rest, how == 255 ? (int32_t)take32(&in) : code, how % 8 != 0);
    return 0;
}
