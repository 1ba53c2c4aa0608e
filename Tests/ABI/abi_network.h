/* How requests of the host's own failed (B-NET): each outcome, what is decoded, what is refused,
 * and the record. abi.c includes it. */

static cw_str net_text(const char *text) { return (cw_str){text, strlen(text)}; }

#define NET_ODATA                                                                                  \
    "{\"error\": {\"code\": \"SY/530\", \"message\": {\"lang\": \"en\", \"value\": \"No team\"},"  \
    "\"innererror\": {\"transactionid\": \"4FDF3748\", \"errordetails\": [{\"code\": \"A/1\","     \
    "\"message\": \"wrong\", \"propertyref\": \"Team/Id\", \"severity\": \"error\"}]}}}"

static cw_network_result net_result(int32_t status, const char *body) {
    return (cw_network_result){
        .struct_size = sizeof(cw_network_result),
        .http_status = status,
        .body = net_text(body),
        .method = net_text("GET"),
        .url = net_text("https://me:hush@api.example.com:8443/teams?token=hush#top"),
    };
}

static void net_each(const cw_record_view *view, void *user) {
    char *all = user;
    size_t used = strlen(all);
    used += (size_t)snprintf(all + used, 8000 - used, "%u|%.*s", view->level,
                             (int)view->message.length, view->message.data);
    for (size_t i = 0; i < view->field_count; i++) {
        const cw_field *field = &view->fields[i];
        if (field->type == CW_TYPE_STRING)
            used += (size_t)snprintf(all + used, 8000 - used, "|%.*s=%.*s", (int)field->key.length,
                                     field->key.data, (int)field->value.s.length,
                                     field->value.s.data);
        else
            used += (size_t)snprintf(all + used, 8000 - used, "|%.*s=%lld",
                                     (int)field->key.length, field->key.data,
                                     (long long)field->value.i);
    }
    snprintf(all + used, 8000 - used, "\n");
}

static void case_network_outcomes(void) {
    const cw_network_error *error = (const cw_network_error *)"x";
    const struct {
        int32_t status, outcome;
    } cases[] = {{0, CW_OUTCOME_REQUEST_FAILED}, {100, CW_OUTCOME_UNKNOWN},
                 {302, CW_OUTCOME_REDIRECTION},  {404, CW_OUTCOME_CLIENT},
                 {503, CW_OUTCOME_SERVER},       {700, CW_OUTCOME_UNKNOWN}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cw_network_result result = net_result(cases[i].status, "");
        EXPECT(CW_OK, cw_network_error_from(&result, &error));
        EXPECT(cases[i].outcome, error->outcome);
        EXPECT(cases[i].status, error->http_status);
        HOLDS(error->struct_size == sizeof *error && error->attempt == 0 && error->time_ns > 0);
        HOLDS(error->retry_after_ms == UINT64_MAX && error->archive.length == 0);
        HOLDS(strcmp(error->target.data, "https://api.example.com:8443") == 0);
        HOLDS(strcmp(error->url.data, "https://api.example.com:8443/teams") == 0);
        HOLDS(strcmp(error->method.data, "GET") == 0 && error->exchange_id.length == 0);
        HOLDS(error->cause.length > 0);
        EXPECT(CW_OK, cw_upload_error_free(&error));
    }
    cw_network_result fine = net_result(204, "");
    EXPECT(CW_END, cw_network_error_from(&fine, &error));
    HOLDS(error == NULL);
    /* A success that broke off is a failure. A refusal that broke off is still a refusal. */
    fine.error = net_text("reset by peer");
    fine.error_type = net_text("connection");
    EXPECT(CW_OK, cw_network_error_from(&fine, &error));
    EXPECT(CW_OUTCOME_REQUEST_FAILED, error->outcome);
    EXPECT(204, error->http_status);
    HOLDS(strcmp(error->cause.data, "connection: reset by peer") == 0);
    char words[300];
    cw_upload_error_text(error, "de", words, sizeof words);
    HOLDS(strstr(words, "Ursache: connection: reset by peer.") && !strstr(words, "204"));
    EXPECT(CW_OK, cw_upload_error_free(&error));
    fine.http_status = 404;
    EXPECT(CW_OK, cw_network_error_from(&fine, &error));
    EXPECT(CW_OUTCOME_CLIENT, error->outcome);
    EXPECT(CW_OK, cw_upload_error_free(&error));
    const cw_http_header headers[] = {{net_text("LOCATION"), net_text("https://a@b.example/c?d")},
                                      {net_text("retry-After"), net_text("7")},
                                      {net_text("Set-Cookie"), net_text("hush")}};
    cw_network_result moved = net_result(301, "");
    moved.headers = headers;
    moved.header_count = 3;
    moved.exchange_id = "9f3c5a0de1b27788";
    moved.time_ns = 1800000000000000000u;
    EXPECT(CW_OK, cw_network_error_from(&moved, &error));
    HOLDS(strcmp(error->location.data, "https://b.example") == 0);
    HOLDS(strcmp(error->exchange_id.data, moved.exchange_id) == 0);
    EXPECT(7000, error->retry_after_ms);
    EXPECT(1800000000000000000u, error->time_ns);
    EXPECT(CW_OK, cw_upload_error_free(&error));
}

static void case_network_refused(void) {
    const cw_network_error *error;
    cw_network_result result = net_result(404, "");
    EXPECT(CW_E_ARGUMENT, cw_network_error_from(NULL, &error));
    EXPECT(CW_E_ARGUMENT, cw_network_error_from(&result, NULL));
    result.http_status = -1;
    EXPECT(CW_E_ARGUMENT, cw_network_error_from(&result, &error));
    NAMED("-1");
    HOLDS(error == NULL);
    result.http_status = 404;
    result.struct_size = 8;
    EXPECT(CW_E_STRUCT_SIZE, cw_network_error_from(&result, &error));
    struct {
        cw_network_result known;
        uint64_t more;
    } newer = {net_result(404, ""), 1};
    newer.known.struct_size = sizeof newer;
    EXPECT(CW_E_STRUCT_TAIL, cw_network_error_from(&newer.known, &error));
    newer.more = 0;
    EXPECT(CW_OK, cw_network_error_from(&newer.known, &error));
    EXPECT(CW_OK, cw_upload_error_free(&error));
    cw_network_result odd[] = {net_result(404, ""), net_result(404, ""), net_result(404, ""),
                               net_result(404, "")};
    odd[0].header_count = 1;
    odd[1].body = (cw_str){NULL, 7};
    odd[2].url = (cw_str){NULL, 7};
    odd[3].error.length = SIZE_MAX;
    for (size_t i = 0; i < 4; i++) {
        EXPECT(CW_E_ARGUMENT, cw_network_error_from(&odd[i], &error));
        HOLDS(error == NULL);
    }
    /* Texts without an end, and missing texts. */
    char *large = malloc(1 << 20);
    memset(large, '{', 1 << 20);
    cw_str all = {large, 1 << 20};
    cw_network_result long_one = {sizeof long_one, 400, NULL, 0, all, all, all, all, all, NULL, 0};
    EXPECT(CW_OK, cw_network_error_from(&long_one, &error));
    HOLDS(error->code.length == 0 && error->cause.length <= 4096 && error->url.length <= 2048);
    HOLDS(error->method.length <= 64);
    EXPECT(CW_OK, cw_upload_error_free(&error));
    /* Only as much of a body is read as an error may hold, however long the body is. */
    cw_network_result huge = net_result(404, "");
    huge.body = (cw_str){large, ((size_t)1 << 30) + 1};
    EXPECT(CW_OK, cw_network_error_from(&huge, &error));
    HOLDS(error->outcome == CW_OUTCOME_CLIENT && error->code.length == 0);
    EXPECT(CW_OK, cw_upload_error_free(&error));
    huge.body.length = SIZE_MAX;
    EXPECT(CW_E_ARGUMENT, cw_network_error_from(&huge, &error));
    cw_network_result empty = {.struct_size = sizeof empty};
    EXPECT(CW_OK, cw_network_error_from(&empty, &error));
    HOLDS(error->outcome == CW_OUTCOME_REQUEST_FAILED && error->target.length == 0);
    cw_options options = defaults();
    cw_engine *engine = open_with(&options);
    cw_logger *log = logger_of(engine, "net");
    EXPECT(CW_E_ARGUMENT, cw_network_error_log(NULL, error, NULL));
    EXPECT(CW_E_ARGUMENT, cw_network_error_log(log, NULL, NULL));
    cw_record more = {.struct_size = 4};
    EXPECT(CW_E_STRUCT_SIZE, cw_network_error_log(log, error, &more));
    more.struct_size = sizeof more;
    more.level = 99;
    EXPECT(CW_E_LEVEL, cw_network_error_log(log, error, &more));
    more.level = CW_LEVEL_DEBUG;
    EXPECT(CW_DISABLED, cw_network_error_log(log, error, &more));
    more.level = 0;
    more.field_count = 1;
    EXPECT(CW_E_ARGUMENT, cw_network_error_log(log, error, &more));
    EXPECT(CW_OK, cw_close(&engine, 20000));
    EXPECT(CW_E_CLOSED, cw_network_error_log(log, error, NULL));
    EXPECT(CW_OK, cw_upload_error_free(&error));
    free(large);
}

static void case_network_record(void) {
    cw_options options = defaults();
    cw_engine *engine = open_with(&options);
    cw_logger *log = logger_of(engine, "net");
    cw_network_result result = net_result(403, NET_ODATA);
    result.exchange_id = "9f3c5a0de1b27788";
    const cw_network_error *error;
    EXPECT(CW_OK, cw_network_error_from(&result, &error));
    HOLDS(strcmp(error->code.data, "SY/530") == 0 && strcmp(error->language.data, "en") == 0);
    HOLDS(strcmp(error->transaction_id.data, "4FDF3748") == 0 && error->detail_count == 1);
    HOLDS(strcmp(error->details[0].property.data, "Team/Id") == 0);
    EXPECT(CW_OK, cw_context_set("user", "ann"));
    EXPECT(CW_OK, cw_network_error_log(log, error, NULL));
    const cw_field page = {net_text("page"), CW_TYPE_INT, {.i = 2}};
    cw_record more = {.struct_size = sizeof more, .level = CW_LEVEL_FATAL,
                      .message = net_text("teams"), .fields = &page, .field_count = 1};
    EXPECT(CW_OK, cw_network_error_log(log, error, &more));
    EXPECT(CW_OK, cw_upload_error_free(&error));
    /* Secrets that a server repeats, removed by the engine's own rules. */
    cw_http_options http;
    cw_http_options_init(&http, sizeof http);
    http.redact_patterns = "ACME-[0-9]+";
    EXPECT(CW_OK, cw_http_options_set(engine, &http));
    result = net_result(500, "{\"error\": {\"code\": \"1\","
                             " \"message\": \"password=hush ACME-7\"}}");
    EXPECT(CW_OK, cw_network_error_from(&result, &error));
    EXPECT(CW_OK, cw_network_error_log(log, error, NULL));
    EXPECT(CW_OK, cw_upload_error_free(&error));
    EXPECT(CW_OK, cw_context_set("user", NULL));
    EXPECT(CW_OK, cw_close(&engine, 20000));
    static char all[8001];
    read_logs(net_each, all);
#define NET_URL "GET https://api.example.com:8443/teams"
#define NET_WORDS                                                                                  \
    NET_URL ": The server refused what was sent. HTTP 403: not allowed. The server says: "         \
            "“No team” (code SY/530, transaction 4FDF3748)."
#define NET_FIELDS                                                                                 \
    "|http.request.method=GET|url.full=https://api.example.com:8443/teams|http.status=403"         \
    "|cause=HTTP 403|outcome=client|transaction.id=4FDF3748|error.code=SY/530"                     \
    "|error.message=No team|error.detail=error A/1: wrong (Team/Id)|http.id=9f3c5a0de1b27788"
    HOLDS(strstr(all, "13|" NET_WORDS NET_FIELDS "|user=ann\n"));
    HOLDS(strstr(all, "21|teams: " NET_WORDS NET_FIELDS "|page=2|user=ann\n"));
    HOLDS(strstr(all, "17|" NET_URL ": The server had an error of its own."));
    HOLDS(strstr(all, "|error.message=password=[redacted] [redacted]|"));
    HOLDS(!strstr(all, "hush") && !strstr(all, "ACME-7"));
    if (failures) puts(all);
}
