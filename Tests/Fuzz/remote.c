/* Fuzz target: what servers send. The first byte of the input selects: a policy for
 * cw_policy_apply, which must change nothing if it is refused; or, one time in eight, the body of a
 * server's answer to an upload, read back by cw_upload_last_error. The server is a thread here. */
#include "fuzz.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>

static cw_engine *engine;
static cw_logger *logger;
static int listener;
/* A background attempt may send a request while the next input comes. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint8_t body[65536];
static size_t body_bytes;

static void answer(int fd) {
    char request[65536];
    size_t n = 0, wanted = SIZE_MAX;
    while (n < wanted) {
        /* Of a long body only the length matters. */
        size_t kept = n < 16384 ? n : 16384;
        ssize_t got = recv(fd, request + kept, sizeof request - 1 - kept, 0);
        if (got <= 0) return;
        request[kept + (size_t)got] = 0;
        n += (size_t)got;
        if (wanted != SIZE_MAX) continue;
        char *end = strstr(request, "\r\n\r\n"), *length = strcasestr(request, "content-length:");
        if (end && length) wanted = (size_t)(end + 4 - request) + strtoul(length + 15, NULL, 10);
    }
    static char whole[200 + sizeof body];
    pthread_mutex_lock(&lock);
    size_t bytes = (size_t)snprintf(whole, 200,
                                    "HTTP/1.1 500 no\r\nConnection: close\r\n"
                                    "Content-Length: %zu\r\n\r\n",
                                    body_bytes);
    memcpy(whole + bytes, body, body_bytes);
    bytes += body_bytes;
    pthread_mutex_unlock(&lock);
    for (size_t sent = 0; sent < bytes;) {
        ssize_t put = send(fd, whole + sent, bytes - sent, MSG_NOSIGNAL);
        if (put <= 0) return;
        sent += (size_t)put;
    }
}

static void *serve(void *unused) {
    (void)unused;
    for (;;) {
        int fd = accept(listener, NULL, NULL);
        if (fd < 0) continue;
        answer(fd);
        close(fd);
    }
    return NULL;
}

static void start(void) {
    char path[300], url[64];
    snprintf(path, sizeof path, "%s/store", scratch);
    cw_options options;
    cw_options_init(&options, sizeof options);
    options.directory = path;
    options.upload_interval_s = 1000000;
    options.segment_bytes = 1 << 16;
    options.archives_max = 1;
    PROMISE(cw_open(&options, &engine) == CW_OK);
    PROMISE(cw_logger_get(engine, "a", &logger) == CW_OK);
    /* The engine's records about thousands of policies would be archived and sent, too. */
    PROMISE(cw_level_set(engine, "Cordwood", CW_LEVEL_OFF) == CW_OK);
    listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    PROMISE(bind(listener, (struct sockaddr *)&address, size) == 0 && listen(listener, 8) == 0);
    PROMISE(getsockname(listener, (struct sockaddr *)&address, &size) == 0);
    pthread_t thread;
    PROMISE(pthread_create(&thread, NULL, serve, NULL) == 0);
    snprintf(url, sizeof url, "http://127.0.0.1:%d/", ntohs(address.sin_port));
    cw_target_options target;
    cw_target_options_init(&target, sizeof target);
    target.kind = "http";
    target.format = "text";
    target.url = url;
    PROMISE(cw_target_add(engine, &target, NULL) == CW_OK);
    PROMISE(cw_write(logger, CW_LEVEL_INFO, "x", 1) == CW_OK);
}

int LLVMFuzzerInitialize(int *count, char ***arguments) {
    (void)count;
    (void)arguments;
    plain_environment();
    make_scratch("remote");
    return 0;
}

static void check(cw_str text) {
    PROMISE(text.data && text.data[text.length] == 0 && text.length <= 4096);
}

static void upload(input *in) {
    PROMISE(cw_policy_apply(engine, "{}", 2) == CW_OK);
    pthread_mutex_lock(&lock);
    body_bytes = in->left < sizeof body ? in->left : sizeof body;
    memcpy(body, in->at, body_bytes);
    pthread_mutex_unlock(&lock);
    /* A policy may have removed the waiting archives. */
    PROMISE(cw_write(logger, CW_LEVEL_INFO, "x", 1) == CW_OK);
    cw_status status = cw_upload(engine, 20000, NULL, 0);
    PROMISE(status == CW_E_UPLOAD);
    const cw_upload_error *error = NULL;
    PROMISE(cw_upload_last_error(engine, NULL, &error) == CW_OK);
    PROMISE(error->http_status == 500 && error->outcome == CW_OUTCOME_SERVER);
    const cw_str all[] = {error->target,  error->archive, error->cause,    error->location,
                          error->code,    error->message, error->language, error->transaction_id};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) check(all[i]);
    PROMISE(error->detail_count <= 64);
    for (size_t i = 0; i < error->detail_count; i++) {
        check(error->details[i].code);
        check(error->details[i].message);
        check(error->details[i].property);
        check(error->details[i].severity);
    }
    char words[20000];
    for (int german = 0; german < 2; german++) {
        size_t length = cw_upload_error_text(error, german ? "de" : "en", words, sizeof words);
        PROMISE(length < sizeof words && strlen(words) <= length);
        PROMISE(cw_upload_error_text(error, german ? "de" : "en", words, 5) == length);
        PROMISE(strlen(words) == 4);
    }
    PROMISE(cw_upload_error_free(&error) == CW_OK && !error);
}

static void apply(input *in) {
    static const char before[] = "{\"levels\": {\"a\": \"debug\"}, \"quota_bytes\": 9000000}";
    PROMISE(cw_policy_apply(engine, before, sizeof before - 1) == CW_OK);
    PROMISE(cw_enabled(logger, CW_LEVEL_DEBUG) && !cw_enabled(logger, CW_LEVEL_TRACE));
    /* The input ends where its memory ends: a sanitizer catches a read past it. */
    char *copy = malloc(in->left ? in->left : 1);
    PROMISE(copy);
    memcpy(copy, in->at, in->left);
    cw_status status = cw_policy_apply(engine, copy, in->left);
    free(copy);
    if (status == CW_OK) return;
    PROMISE(status == CW_E_ARGUMENT || status == CW_E_LIMIT);
    PROMISE(cw_enabled(logger, CW_LEVEL_DEBUG) && !cw_enabled(logger, CW_LEVEL_TRACE));
    char why[100];
    PROMISE(cw_last_error(why, sizeof why) > 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (!engine) start();
    input in = {data, size};
    if (take8(&in) % 8 == 0) {
        upload(&in);
    } else {
        apply(&in);
    }
    return 0;
}
