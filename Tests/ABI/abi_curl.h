/* libcurl transfers through the C interface (B-HTTP-7), without libcurl: what is refused, and what
 * is recorded of heads in pieces, of hops, and of requests that were never sent. abi.c includes it
 * after abi_network.h. */

static cw_curl_facts curl_facts(void) {
    return (cw_curl_facts){
        .struct_size = sizeof(cw_curl_facts),
        .now_ns = UINT64_C(1700000000000000000),
        .address = "::1",
        .port = 8080,
        .url = "http://h.test/a",
    };
}

static void curl_tell(cw_curl_transfer *transfer, uint32_t kind, const char *text) {
    cw_curl_facts facts = curl_facts();
    EXPECT(CW_OK, cw_curl_transfer_tell(transfer, kind, text, strlen(text), &facts));
}

static void curl_end(cw_curl_transfer **transfer, int32_t code, bool is_captured) {
    cw_curl_facts facts = curl_facts();
    char id[CW_CURL_ID_BYTES] = "x";
    facts.code = code;
    facts.error = "in libcurl's words";
    EXPECT(CW_OK, cw_curl_transfer_end(transfer, &facts, id));
    HOLDS(strlen(id) == (is_captured ? 16 : 0) && !*transfer);
}

static cw_engine *curl_engine(void) {
    cw_options options = defaults();
    cw_engine *engine = open_with(&options);
    cw_http_options http;
    cw_http_options_init(&http, sizeof http);
    http.enabled = 1;
    http.keep_text = "* */*";
    EXPECT(CW_OK, cw_http_options_set(engine, &http));
    return engine;
}

static char curl_all[16384];
static size_t curl_used;

static void curl_put(cw_str text) {
    size_t n = text.length < 400 ? text.length : 400, room = sizeof curl_all - 1 - curl_used;
    if (n > room) n = room;
    memcpy(curl_all + curl_used, text.data, n);
    curl_all[curl_used += n] = 0;
}

/* What is known of an exchange at its end, one line each. Begin records are skipped. */
static void curl_each(const cw_record_view *view, void *user) {
    (void)user;
    for (size_t i = 0; i < view->field_count; i++) {
        cw_str key = view->fields[i].key, value = view->fields[i].value.s;
        if (key.length == 7 && !memcmp(key.data, "http.op", 7) && value.length == 5) return;
    }
    curl_put(view->message);
    for (size_t i = 0; i < view->field_count; i++) {
        const cw_field *field = &view->fields[i];
        char number[32];
        snprintf(number, sizeof number, "%lld", (long long)field->value.i);
        curl_put(net_text("|"));
        curl_put(field->key);
        curl_put(net_text("="));
        curl_put(field->type == CW_TYPE_STRING ? field->value.s : net_text(number));
    }
    curl_put(net_text("|\n"));
}

static const char *curl_read(void) {
    cw_reader_options options = {.struct_size = sizeof options, .kinds = 1u << CW_KIND_HTTP};
    curl_used = 0;
    read_with(&options, curl_each, NULL);
    return curl_all;
}

static void case_curl_refused(void) {
    cw_curl_transfer *one = (cw_curl_transfer *)"x";
    cw_options options = defaults();
    cw_engine *engine = open_with(&options);
    EXPECT(CW_E_ARGUMENT, cw_curl_transfer_begin(NULL, &one));
    HOLDS(one == NULL);
    EXPECT(CW_E_ARGUMENT, cw_curl_transfer_begin(engine, NULL));
    EXPECT(CW_DISABLED, cw_curl_transfer_begin(engine, &one));
    EXPECT(CW_DISABLED, cw_curl_transfer_tell(NULL, CW_CURL_TEXT, "x", 1, NULL));
    char id[CW_CURL_ID_BYTES] = "x";
    EXPECT(CW_E_ARGUMENT, cw_curl_transfer_end(NULL, NULL, NULL));
    EXPECT(CW_DISABLED, cw_curl_transfer_end(&one, NULL, id));
    HOLDS(!*id);
    EXPECT(CW_OK, cw_close(&engine, 20000));
    engine = curl_engine();
    EXPECT(CW_OK, cw_curl_transfer_begin(engine, &one));
    EXPECT(CW_E_ARGUMENT, cw_curl_transfer_tell(one, CW_CURL_DATA_IN, NULL, 1, NULL));
    EXPECT(CW_E_ARGUMENT, cw_curl_transfer_tell(one, CW_CURL_DATA_IN, "x", SIZE_MAX, NULL));
    EXPECT(CW_OK, cw_curl_transfer_tell(one, 77, NULL, 0, NULL));
    cw_curl_facts facts = {.struct_size = 4};
    EXPECT(CW_E_STRUCT_SIZE, cw_curl_transfer_tell(one, CW_CURL_TEXT, "x", 1, &facts));
    struct {
        cw_curl_facts known;
        uint64_t more;
    } newer = {{.struct_size = sizeof newer}, 1};
    EXPECT(CW_E_STRUCT_TAIL, cw_curl_transfer_tell(one, CW_CURL_TEXT, "x", 1, &newer.known));
    newer.more = 0;
    EXPECT(CW_OK, cw_curl_transfer_tell(one, CW_CURL_TEXT, "x", 1, &newer.known));
    /* Only odd numbers. */
    cw_curl_facts odd = {sizeof odd, INT32_MIN, UINT64_MAX, INT64_MIN, INT64_MAX, INT64_MIN,
                         INT64_MAX, INT64_MAX, INT32_MIN, INT32_MIN, "x", "", "", NULL};
    for (uint32_t kind = 0; kind < 8; kind++)
        EXPECT(CW_OK, cw_curl_transfer_tell(one, kind, "\r\n\r\n", 4, &odd));
    odd.url = "http://h.test/a";
    EXPECT(CW_OK, cw_curl_transfer_tell(one, CW_CURL_HEADER_OUT, "\r\n\r\n", 4, &odd));
    EXPECT(CW_OK, cw_curl_transfer_tell(one, CW_CURL_HEADER_IN, "\n", 1, &odd));
    EXPECT(CW_E_STRUCT_SIZE, cw_curl_transfer_end(&one, &facts, id));
    HOLDS(one == NULL);
    /* Closed in mid-transfer: the host is not disturbed. */
    EXPECT(CW_OK, cw_curl_transfer_begin(engine, &one));
    EXPECT(CW_OK, cw_close(&engine, 20000));
    curl_tell(one, CW_CURL_HEADER_OUT, "GET /a HTTP/1.1\r\n\r\n");
    curl_end(&one, 0, false);
    HOLDS(!strcmp(cw_curl_error_type(6, false), "dns"));
    HOLDS(!strcmp(cw_curl_error_type(23, false), "cancelled"));
    HOLDS(!strcmp(cw_curl_error_type(23, true), "curl"));
    HOLDS(!strcmp(cw_curl_error_type(60, false), "tls"));
    HOLDS(!strcmp(cw_curl_error_type(INT32_MIN, true), "curl"));
}

#define CURL_GET(path) "GET " path " HTTP/1.1\r\nHost: h.test\r\n\r\n"

/* Whole or byte by byte, the result is the same: folded lines, 1xx before the answer, trailers. */
static void case_curl_pieces(void) {
    static const struct {
        uint32_t kind;
        const char *text;
    } told[] = {
        {CW_CURL_HEADER_OUT, CURL_GET("/a")},
        {CW_CURL_HEADER_IN, "HTTP/1.1 103 Early\r\nLink: early\r\n\r\nHTTP/1.1 200 OK\r\n"},
        {CW_CURL_HEADER_IN, "X-Folded: a;\r\n \r\n\t b \r\nno header\r\n folded: c\r\n: d\r\n"},
        {CW_CURL_HEADER_IN, "Cookie: a=1;\r\n b: hush\r\nTransfer-Encoding: chunked\r\n\r\n"},
        {CW_CURL_DATA_IN, "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"},
        {CW_CURL_HEADER_IN, "X-Trailer: late\r\n"}};
    cw_engine *engine = curl_engine();
    for (int is_cut = 0; is_cut < 2; is_cut++) {
        cw_curl_transfer *one;
        EXPECT(CW_OK, cw_curl_transfer_begin(engine, &one));
        for (size_t i = 0; i < sizeof told / sizeof *told; i++) {
            char byte[2] = "";
            if (!is_cut) curl_tell(one, told[i].kind, told[i].text);
            for (const char *at = told[i].text; is_cut && (*byte = *at); at++)
                curl_tell(one, told[i].kind, byte);
        }
        curl_end(&one, 0, true);
    }
    EXPECT(CW_OK, cw_close(&engine, 20000));
    const char *all = curl_read();
    static const char *const parts[] = {
        "GET http://h.test/a 200 ", "|http.request.headers=Host: h.test|",
        "|http.response.headers=X-Folded: a;     \t b\nCookie: [redacted]\n"
        "Transfer-Encoding: chunked|",
        "|network.protocol=http/1.1|", "|http.response.body=abcde|", "[::1]:8080"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        const char *found = strstr(all, parts[i]);
        HOLDS(found && strstr(found + 1, parts[i]));
    }
    HOLDS(!strstr(all, "early") && !strstr(all, "late") && !strstr(all, "hush"));
    if (failures) puts(all);
}

/* Hops that libcurl follows by itself, and requests that it never sent. */
static void case_curl_hops(void) {
    cw_engine *engine = curl_engine();
    cw_curl_transfer *one;
    EXPECT(CW_OK, cw_curl_transfer_begin(engine, &one));
    curl_tell(one, CW_CURL_HEADER_OUT, "CONNECT h.test:80 HTTP/1.1\r\n\r\n");
    curl_tell(one, CW_CURL_HEADER_IN, "HTTP/1.1 200 Tunnel\r\n\r\n");
    curl_tell(one, CW_CURL_HEADER_OUT, CURL_GET("/gone"));
    curl_tell(one, CW_CURL_HEADER_OUT, CURL_GET("/moved"));
    curl_tell(one, CW_CURL_HEADER_IN, "HTTP/1.0 302 Found\r\n\r\n");
    curl_tell(one, CW_CURL_TEXT, "Issue another request to this URL: 'http://h.test/there'");
    curl_tell(one, CW_CURL_HEADER_OUT, CURL_GET("/there"));
    curl_tell(one, CW_CURL_HEADER_IN, "HTTP/1.1 204 No");
    curl_end(&one, 56, true);
    EXPECT(CW_OK, cw_curl_transfer_begin(engine, &one));
    curl_tell(one, CW_CURL_TEXT, "Could not resolve host: h.test");
    curl_end(&one, 6, true);
    /* One that never ran but ended well, one that is not HTTP, one with only an engine's error. */
    EXPECT(CW_OK, cw_curl_transfer_begin(engine, &one));
    curl_end(&one, 0, false);
    EXPECT(CW_OK, cw_curl_transfer_begin(engine, &one));
    EXPECT(CW_OK, cw_curl_transfer_end(&one, NULL, NULL));
    EXPECT(CW_OK, cw_close(&engine, 20000));
    const char *all = curl_read();
    const char *gone = strstr(all, "the connection was closed before an answer");
    const char *moved = strstr(all, " 302 "), *there = strstr(all, " 204 ");
    HOLDS(gone && moved && there && moved > gone && there > moved);
    HOLDS(gone && strstr(gone, "|error.type=closed"));
    HOLDS(moved && strstr(moved, "|http.attempt=2"));
    HOLDS(there && strstr(there, "|http.redirected_from="));
    HOLDS(strstr(all, "|error.type=dns") && strstr(all, "in libcurl's words"));
    unsigned count = 0;
    for (const char *at = all; (at = strstr(at, "|http.id=")); at++) count++;
    EXPECT(4, count);
    if (failures) puts(all);
}

/* Beyond a limit less is kept. The body behind an incomplete head is not shown. */
static void case_curl_limits(void) {
    cw_engine *engine = curl_engine();
    size_t size = 2 << 20;
    char *large = malloc(size);
    for (int lines = 0; lines < 2; lines++) {
        cw_curl_transfer *one;
        EXPECT(CW_OK, cw_curl_transfer_begin(engine, &one));
        curl_tell(one, CW_CURL_HEADER_OUT, CURL_GET("/a"));
        curl_tell(one, CW_CURL_HEADER_IN, "HTTP/1.1 200 OK\r\n");
        for (size_t i = 0; i < size; i++) large[i] = lines ? "a:b\n"[i % 4] : 'v';
        EXPECT(CW_OK, cw_curl_transfer_tell(one, CW_CURL_HEADER_IN, large,
                                            lines ? 400004 : size, NULL));
        curl_tell(one, CW_CURL_HEADER_IN, lines ? "\r\n" : "\r\n\r\n");
        curl_tell(one, CW_CURL_DATA_IN, "hush");
        curl_end(&one, 0, true);
    }
    free(large);
    EXPECT(CW_OK, cw_close(&engine, 20000));
    const char *all = curl_read();
    HOLDS(!strstr(all, "hush") && strstr(all, "http.response.body.note=not shown"));
    if (failures) puts(all);
}
