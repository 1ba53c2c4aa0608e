/* Policies and how transfers failed: invalid input, and what comes back (B-SAP-9, B-NET-3). */

static cw_status apply(cw_engine *engine, const char *json) {
    return cw_policy_apply(engine, json, strlen(json));
}

static void case_policy(void) {
    cw_options options = defaults();
    cw_engine *engine = open_with(&options);
    cw_logger *log = logger_of(engine, "app.db");
    EXPECT(CW_OK, apply(engine, "{\"levels\": {\"app\": \"debug\"}}"));
    HOLDS(cw_enabled(log, CW_LEVEL_DEBUG) && !cw_enabled(log, CW_LEVEL_TRACE));
    EXPECT(CW_E_ARGUMENT, apply(engine, "{\"levels\": {\"app\": \"off\", \"b\": 99}}"));
    NAMED("levels.b");
    EXPECT(CW_E_ARGUMENT, apply(engine, "{\"quota_bytes\": -1}"));
    NAMED("quota_bytes");
    EXPECT(CW_E_ARGUMENT, cw_policy_apply(engine, "", 0));
    EXPECT(CW_E_ARGUMENT, cw_policy_apply(engine, NULL, 0));
    NAMED("NULL");
    EXPECT(CW_E_ARGUMENT, cw_policy_apply(engine, "{}", SIZE_MAX));
    EXPECT(CW_E_LIMIT, cw_policy_apply(engine, "{}", 65537));
    NAMED("65537");
    EXPECT(CW_E_ARGUMENT, cw_policy_apply(NULL, "{}", 2));
    HOLDS(cw_enabled(log, CW_LEVEL_DEBUG) && !cw_enabled(log, CW_LEVEL_TRACE));
    /* The length counts, not a NUL. */
    EXPECT(CW_OK, cw_policy_apply(engine, "{}x", 2));
    HOLDS(!cw_enabled(log, CW_LEVEL_DEBUG));
    cw_engine *old = engine;
    EXPECT(CW_OK, cw_close(&engine, 60000));
    EXPECT(CW_E_CLOSED, apply(old, "{}"));
    options.policy_url = "gopher://h";
    EXPECT(CW_E_ARGUMENT, cw_open(&options, &engine));
    NAMED("gopher://h");
    options.policy_url = "http://127.0.0.1:9/";
    options.policy_headers = "no colon";
    EXPECT(CW_E_ARGUMENT, cw_open(&options, &engine));
    NAMED("colon");
    options.policy_headers = NULL;
    options.policy_url = "http://192.0.2.1/";
    EXPECT(CW_E_ARGUMENT, cw_open(&options, &engine));
    NAMED("policy_allow");
    options.policy_allow = CW_POLICY_HTTP;
    EXPECT(CW_OK, cw_open(&options, &engine));
    EXPECT(CW_OK, cw_close(&engine, 60000));
    options.policy_allow = 8;
    EXPECT(CW_E_ARGUMENT, cw_open(&options, &engine));
    NAMED("policy_allow 8");
    options.policy_allow = 0;
    /* No struct of the host has such a size. */
    options.policy_interval_s = 77;
    cw_options_init(&options, sizeof options - 1);
    cw_options_init(&options, 65537);
    cw_options_init(&options, SIZE_MAX);
    EXPECT(77, options.policy_interval_s);
}

static void case_transfer_errors(void) {
    cw_options options = defaults();
    cw_engine *engine = open_with(&options);
    const cw_upload_error *error = NULL;
    EXPECT(CW_END, cw_upload_last_error(engine, NULL, &error));
    EXPECT(CW_E_ARGUMENT, cw_upload_last_error(engine, NULL, NULL));
    EXPECT(CW_E_ARGUMENT, cw_upload_last_error(NULL, NULL, &error));
    EXPECT(CW_E_ARGUMENT, cw_upload_error_free(NULL));
    EXPECT(CW_OK, cw_upload_error_free(&error));
    EXPECT(0, cw_upload_error_text(NULL, "de", NULL, 0));
    cw_target_options target;
    cw_target_options_init(&target, sizeof target);
    target.name = "nobody";
    target.url = "http://127.0.0.1:9/";
    EXPECT(CW_OK, cw_target_add(engine, &target, NULL));
    put(logger_of(engine, "a"), "0 1");
    EXPECT(CW_E_UPLOAD, cw_upload(engine, 20000, NULL, 0));
    EXPECT(CW_END, cw_upload_last_error(engine, "somebody", &error));
    EXPECT(CW_OK, cw_upload_last_error(engine, "nobody", &error));
    cw_engine *old = engine;
    EXPECT(CW_OK, cw_close(&engine, 60000));
    cw_upload_result result;
    memset(&result, 0xFF, sizeof result);
    EXPECT(CW_E_CLOSED, cw_upload(old, 0, &result, sizeof result));
    HOLDS(result.struct_size == sizeof result && result.uploaded == 0 && result.refused == 0);
    memset(&result, 0xFF, sizeof result);
    EXPECT(CW_E_ARGUMENT, cw_upload(NULL, 0, &result, sizeof result));
    EXPECT(UINT32_MAX, result.uploaded);
    /* It needs no engine. */
    EXPECT(CW_OUTCOME_REQUEST_FAILED, error->outcome);
    EXPECT(0, error->http_status);
    EXPECT(1, error->attempt);
    EXPECT(sizeof *error, error->struct_size);
    HOLDS(error->retry_after_ms == UINT64_MAX && error->time_ns > 0);
    HOLDS(error->cause.length > 0 && strlen(error->cause.data) == error->cause.length);
    HOLDS(strcmp(error->target.data, "nobody") == 0 && error->detail_count == 0);
    HOLDS(error->transaction_id.length == 0 && error->transaction_id.data[0] == 0);
    char words[500], few[10];
    size_t length = cw_upload_error_text(error, "de", words, sizeof words);
    HOLDS(length == strlen(words));
    HOLDS(strncmp(words, "Der Server war nicht zu erreichen", 33) == 0);
    EXPECT(length, cw_upload_error_text(error, "de_AT.UTF-8", few, sizeof few));
    HOLDS(strcmp(few, "Der Serve") == 0);
    HOLDS(cw_upload_error_text(error, NULL, NULL, 0) > 0);
    EXPECT(CW_OK, cw_upload_error_free(&error));
    HOLDS(error == NULL);
    for (int32_t outcome = -1; outcome < 9; outcome++)
        HOLDS(strcmp(cw_outcome_text(outcome, "de"), cw_outcome_text(outcome, "fr")) != 0);
    HOLDS(strcmp(cw_outcome_text(4, NULL), "The server refused what was sent.") == 0);
    HOLDS(strcmp(cw_outcome_text(4, "DE-ch"), "Der Server hat die Daten abgelehnt.") == 0);
}
