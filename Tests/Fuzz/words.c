/* Fuzz target: transaction texts from others: a traceparent, an id, a challenge, errors of events,
 * the file `deleted` of a store. The first byte selects. What is accepted keeps its spelling. What
 * is logged is read back. */
#include "fuzz.h"

static cw_engine *engine;
static char store[200];

int LLVMFuzzerInitialize(int *count, char ***arguments) {
    (void)count;
    (void)arguments;
    plain_environment();
    make_scratch("words");
    snprintf(store, sizeof store, "%s/store", scratch);
    cw_options options;
    cw_options_init(&options, sizeof options);
    options.directory = store;
    options.segment_bytes = 1 << 16;
    options.quota_bytes = 8 << 20;
    PROMISE(cw_open(&options, &engine) == CW_OK);
    return 0;
}

static void traceparent(const char *text) {
    uint8_t trace[16], span[8], flags = 0xEE;
    memset(trace, 0xEE, sizeof trace);
    if (cw_traceparent_parse(text, trace, span, &flags) != CW_OK) {
        for (size_t i = 0; i < sizeof trace; i++) PROMISE(trace[i] == 0xEE);
        return;
    }
    char again[56];
    int at = sprintf(again, "%.2s-", text);
    for (int i = 0; i < 16; i++) at += sprintf(again + at, "%02x", trace[i]);
    at += sprintf(again + at, "-");
    for (int i = 0; i < 8; i++) at += sprintf(again + at, "%02x", span[i]);
    sprintf(again + at, "-%02x", flags);
    PROMISE(strncmp(again, text, 55) == 0 && (text[55] == 0 || text[55] == '-'));
}

static void challenge(const char *text) {
    char small[4], large[8192];
    size_t scheme = cw_challenge_scheme(text, large, sizeof large);
    PROMISE(scheme == strlen(large) && strncmp(large, text + strspn(text, " \t"), scheme) == 0);
    size_t realm = cw_challenge_realm(text, small, sizeof small);
    PROMISE(strlen(small) == (realm < 3 ? realm : 3));
}

static void id(const char *text) {
    cw_transaction *one = NULL;
    cw_status status = cw_transaction_join(engine, text, &one);
    if (status == CW_OK) PROMISE(strcmp(cw_transaction_id(one), text) == 0);
    PROMISE(status == CW_OK || status == CW_E_ARGUMENT || status == CW_E_FULL);
    cw_transaction_end(&one);
}

static void event(const char *code, const char *description) {
    static cw_transaction *one;
    if (!one && cw_transaction_begin(engine, 17, &one) != CW_OK) return;
    cw_status status = cw_transaction_event(one, (int32_t)strlen(code), code, description);
    PROMISE(status == CW_OK || status == CW_E_FULL);
}

static bool look(void *user, const cw_transaction_view *one) {
    (void)user;
    PROMISE(strncmp(one->id, "TXN", 3) == 0 && one->errors <= one->events);
    return true;
}

static void deleted(const uint8_t *bytes, size_t count) {
    char path[300];
    snprintf(path, sizeof path, "%s/deleted", store);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    PROMISE(fd >= 0 && write(fd, bytes, count) == (ssize_t)count);
    close(fd);
    cw_status status = cw_transactions_list(engine, look, NULL);
    PROMISE(status == CW_OK || status == CW_END || status == CW_E_DAMAGED ||
            status == CW_E_VERSION);
    unlink(path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    input in = {data, size};
    uint8_t which = take8(&in) % 5;
    const uint8_t *bytes;
    char text[4096];
    size_t count = take_bytes(&in, sizeof text - 1, &bytes);
    memcpy(text, bytes, count);
    text[count] = 0;
    if (which == 0) traceparent(text);
    if (which == 1) challenge(text);
    if (which == 2) id(text);
    if (which == 3) event(text, strlen(text) < count ? text + strlen(text) + 1 : NULL);
    if (which == 4) deleted(bytes, count);
    return 0;
}
