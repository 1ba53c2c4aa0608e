/* Transactions through the C interface: bad input, threads and forks, handles after close (B-TXN).
 * abi.c includes it. */

#define UUID "586AB00B-0A2C-4E61-9C53-3F4C59D1A0F7"

static bool count_transactions(void *user, const cw_transaction_view *one) {
    uint32_t *events = user;
    HOLDS(one->struct_size == sizeof *one && strlen(one->id) > 40);
    HOLDS(one->first_ns > 0 && one->first_ns <= one->last_ns && one->errors <= one->events);
    *events += one->events;
    return true;
}

static void case_transactions(void) {
    cw_options options = defaults();
    options.level = CW_LEVEL_OFF;
    cw_engine *engine = open_with(&options);
    cw_transaction *one = NULL, *two = NULL;
    EXPECT(CW_E_ARGUMENT, cw_transaction_begin(NULL, 1, &one));
    EXPECT(CW_E_ARGUMENT, cw_transaction_begin(engine, 1, NULL));
    EXPECT(CW_E_ARGUMENT, cw_transaction_join(engine, NULL, &one));
    EXPECT(CW_E_ARGUMENT, cw_transaction_join(engine, "TXN1-" UUID "x", &one));
    NAMED("TXN1-" UUID "x");
    EXPECT(CW_E_ARGUMENT, cw_transaction_join(engine, "TXN1-" UUID, NULL));
    HOLDS(one == NULL && cw_transaction_id(NULL) == NULL && cw_transaction_usecase(NULL) == 0);
    EXPECT(CW_E_ARGUMENT, cw_transaction_event(NULL, 1, NULL, NULL));
    EXPECT(CW_E_ARGUMENT, cw_transaction_attach(NULL));
    EXPECT(CW_E_ARGUMENT, cw_transaction_detach(NULL));
    EXPECT(CW_E_ARGUMENT, cw_transaction_end(NULL));
    EXPECT(CW_OK, cw_transaction_end(&one));
    EXPECT(CW_OK, cw_transaction_begin(engine, INT32_MIN, &one));
    EXPECT(CW_OK, cw_transaction_join(engine, "TXN17-" UUID, &two));
    HOLDS(strcmp(cw_transaction_id(two), "TXN17-" UUID) == 0);
    EXPECT(17, cw_transaction_usecase(two));
    EXPECT(CW_E_ARGUMENT, cw_transaction_event(one, 1, NULL, "no code"));
    NAMED("err_code");
    EXPECT(CW_OK, cw_transaction_event(one, INT32_MAX, "", ""));
    EXPECT(CW_OK, cw_transaction_event(two, INT32_MIN, NULL, NULL));
    size_t huge = 3 << 20;
    char *text = malloc(huge + 1);
    memset(text, '\xff', huge);
    text[huge] = 0;
    EXPECT(CW_OK, cw_transaction_event(one, 1, text, text));
    free(text);
    uint32_t events = 0;
    EXPECT(CW_OK, cw_transactions_list(engine, count_transactions, &events));
    EXPECT(3, events);
    EXPECT(CW_E_ARGUMENT, cw_transactions_list(engine, NULL, NULL));
    EXPECT(CW_E_ARGUMENT, cw_transactions_delete(engine, "TXN"));
    EXPECT(CW_E_ARGUMENT, cw_transactions_delete(NULL, NULL));
    EXPECT(CW_OK, cw_transactions_delete(engine, NULL));
    EXPECT(CW_END, cw_transactions_list(engine, count_transactions, &events));
    cw_upload_result result;
    EXPECT(CW_E_STRUCT_SIZE, cw_transactions_flush(engine, 0, &result, 8));
    EXPECT(CW_E_NO_TARGET, cw_transactions_flush(engine, 10000, &result, sizeof result));
    cw_engine *old = engine;
    EXPECT(CW_OK, cw_close(&engine, 60000));
    EXPECT(CW_E_CLOSED, cw_transaction_event(one, 1, NULL, NULL));
    EXPECT(CW_E_CLOSED, cw_transaction_attach(one));
    EXPECT(CW_E_CLOSED, cw_transaction_begin(old, 1, &two));
    EXPECT(CW_E_CLOSED, cw_transactions_flush(old, 0, NULL, 0));
    HOLDS(strncmp(cw_transaction_id(one), "TXN-2147483648-", 15) == 0);
    EXPECT(CW_E_CLOSED, cw_transaction_end(&one));
    EXPECT(CW_E_CLOSED, cw_transaction_end(&two));
    HOLDS(one == NULL && two == NULL);
}

static void case_transaction_names(void) {
    cw_options options = defaults();
    cw_engine *engine = open_with(&options);
    char name[257];
    memset(name, 'n', 256);
    name[256] = 0;
    cw_transaction_name names[] = {{1, CW_EVENT_NONE, "one"}, {1, 0, NULL}, {1, 2, name}};
    EXPECT(CW_OK, cw_transaction_names_set(engine, names, 2));
    EXPECT(CW_E_LIMIT, cw_transaction_names_set(engine, names, 3));
    name[255] = 0;
    EXPECT(CW_OK, cw_transaction_names_set(engine, names, 3));
    EXPECT(CW_OK, cw_transaction_names_set(engine, NULL, 0));
    EXPECT(CW_E_ARGUMENT, cw_transaction_names_set(engine, NULL, 1));
    EXPECT(CW_E_ARGUMENT, cw_transaction_names_set(engine, names, SIZE_MAX));
    cw_status status = CW_OK;
    int taken = 0;
    for (; status == CW_OK && taken < 10000; taken++) {
        cw_transaction_name more = {2, taken, "x"};
        status = cw_transaction_names_set(engine, &more, 1);
    }
    EXPECT(CW_E_LIMIT, status);
    EXPECT(4096 - 2 + 1, taken);
    EXPECT(CW_OK, cw_transaction_names_set(engine, names, 1));
    cw_engine *old = engine;
    EXPECT(CW_OK, cw_close(&engine, 60000));
    EXPECT(CW_E_CLOSED, cw_transaction_names_set(old, names, 1));
}

static void *log_events(void *transaction) {
    for (int i = 0; i < 2000; i++) {
        EXPECT(CW_OK, cw_transaction_attach(transaction));
        EXPECT(CW_OK, cw_transaction_event(transaction, i, i % 2 ? "1" : NULL, NULL));
        EXPECT(CW_OK, cw_transaction_detach(transaction));
    }
    return NULL;
}

/* One handle in many threads and in a forked child, which is another process of the same store. */
static void case_transaction_threads(void) {
    cw_options options = defaults();
    cw_engine *engine = open_with(&options);
    cw_transaction *one;
    EXPECT(CW_OK, cw_transaction_begin(engine, 3, &one));
    pthread_t threads[8];
    for (int i = 0; i < 8; i++) pthread_create(&threads[i], NULL, log_events, one);
    pid_t child = fork();
    if (child == 0) {
        log_events(one);
        _exit(failures ? 1 : 0);
    }
    for (int i = 0; i < 8; i++) pthread_join(threads[i], NULL);
    int ended = 0;
    HOLDS(waitpid(child, &ended, 0) == child && ended == 0);
    uint32_t events = 0;
    EXPECT(CW_OK, cw_transactions_list(engine, count_transactions, &events));
    EXPECT(9 * 2000, events);
    EXPECT(CW_OK, cw_transaction_end(&one));
    EXPECT(CW_OK, cw_close(&engine, 60000));
}

static void case_traceparent(void) {
    uint8_t trace[16], span[8], flags;
    static const char good[] = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    EXPECT(CW_OK, cw_traceparent_parse(good, trace, span, &flags));
    HOLDS(trace[0] == 0x4b && trace[15] == 0x36 && span[1] == 0xf0 && flags == 1);
    EXPECT(CW_E_ARGUMENT, cw_traceparent_parse(NULL, trace, span, &flags));
    EXPECT(CW_E_ARGUMENT, cw_traceparent_parse(good, NULL, span, &flags));
    EXPECT(CW_E_ARGUMENT, cw_traceparent_parse(good, trace, NULL, &flags));
    EXPECT(CW_E_ARGUMENT, cw_traceparent_parse(good, trace, span, NULL));
    EXPECT(CW_E_ARGUMENT, cw_traceparent_parse("00-", trace, span, &flags));
    NAMED("traceparent");
    char buffer[8];
    EXPECT(6, cw_challenge_scheme("Bearer realm=\"a\"", buffer, sizeof buffer));
    HOLDS(strcmp(buffer, "Bearer") == 0);
    EXPECT(12, cw_challenge_realm("Bearer realm=\"a long realm\"", buffer, sizeof buffer));
    HOLDS(strcmp(buffer, "a long ") == 0);
    EXPECT(0, cw_challenge_realm(NULL, NULL, 0));
}
