/* A host whose libcurl requests are captured by curl.h, one per pair on the command line:
 *
 *     http_curl_cases STORE CA KIND URL [KIND URL …]
 *
 * STORE "-" is an engine that could not be opened. Prints a line for each: CURLcode, status, bytes
 * received, KiB by which the process has grown, ns that the request took. Compiles as C99 and
 * C++17. */
#include <cordwood/curl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define SECRET "ZQSECRET"
#define STREAMED ((size_t)1 << 30)

typedef struct host {
    cw_engine *engine;
    const char *ca;
    char *line; /* a header of 1 MB */
} host;

typedef struct given {
    const char *const *parts;
    size_t at, left;
    bool gives_up;
    size_t got;
} given;

static const char *const json[] = {"{\"user\":\"joe\",\"passw", "ord\":\"" SECRET "\",\"z\":1}",
                                   NULL};

static size_t take(char *bytes, size_t size, size_t count, void *user) {
    given *self = (given *)user;
    (void)bytes;
    self->got += size * count;
    return self->gives_up ? 0 : size * count;
}

static size_t give(char *bytes, size_t size, size_t count, void *user) {
    given *self = (given *)user;
    const char *part = self->parts ? self->parts[self->at] : NULL;
    size_t most = size * count, length = part ? strlen(part) : self->left;
    if (self->gives_up) return CURL_READFUNC_ABORT;
    if (length > most) length = most;
    if (part) {
        self->at++;
        memcpy(bytes, part, length);
    } else {
        memset(bytes, 'u', length);
        self->left -= length;
    }
    return length;
}

static bool is(const char *kind, const char *name) {
    return strcmp(kind, name) == 0;
}

/* kinds: get · auth · late (its end is reported when as much time has passed again) · refuses (to
 * write) · aborts (an upload) · up HEADER (a chunked upload with that header) · down, streams
 * (much) · headers (1 MB) · inside (a transaction and a conversation) · copy (a duplicate of an
 * attached handle makes the request, as libcurl's own may) · sampled (half are captured from here
 * on) · post (waits for 100) · old (HTTP/0.9) · quiet (a debug function, not verbose) · never
 * (added to a multi handle and removed before it runs) */
static int calls; /* of a debug function that must not be called */

static int counted(CURL *easy, curl_infotype kind, char *bytes, size_t count, void *user) {
    (void)easy, (void)kind, (void)bytes, (void)count, (void)user;
    return calls++, 0;
}

static long long now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static void run(const host *host, const char *kind, const char *url) {
    CURL *easy = curl_easy_init();
    struct curl_slist *headers = NULL;
    given body = {NULL, 0, 0, false, 0};
    long status = 0;
    struct rusage before, after;
    cw_transaction *transaction = NULL;
    cw_curl *capture = NULL;
    curl_easy_setopt(easy, CURLOPT_URL, url);
    curl_easy_setopt(easy, CURLOPT_NOPROXY, "*");
    curl_easy_setopt(easy, CURLOPT_CAINFO, host->ca);
    curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, 60000L);
    curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 1L);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, (void *)&body);
    if (is(kind, "auth")) {
        curl_easy_setopt(easy, CURLOPT_HTTPAUTH, (long)CURLAUTH_ANY);
        curl_easy_setopt(easy, CURLOPT_USERPWD, "joe:" SECRET);
    }
    if (is(kind, "refuses") || is(kind, "aborts")) body.gives_up = true;
    if (!strncmp(kind, "up ", 3)) body.parts = json;
    if (is(kind, "streams")) body.left = STREAMED;
    if (!strncmp(kind, "up ", 3) || is(kind, "aborts") || is(kind, "streams")) {
        const char *name = body.parts ? kind + 3 : "Transfer-Encoding: chunked";
        headers = curl_slist_append(headers, name);
        curl_easy_setopt(easy, CURLOPT_UPLOAD, 1L);
        curl_easy_setopt(easy, CURLOPT_READFUNCTION, give);
        curl_easy_setopt(easy, CURLOPT_READDATA, (void *)&body);
    }
    if (is(kind, "headers")) {
        headers = curl_slist_append(headers, host->line);
        headers = curl_slist_append(headers, "X-Token: " SECRET);
    }
    if (is(kind, "post")) headers = curl_slist_append(headers, "Expect: 100-continue");
    if (is(kind, "inside")) {
        cw_transaction_begin(host->engine, 17, &transaction);
        headers = curl_slist_append(headers, "x-TRANSACTION-id: mine");
        headers = cw_curl_propagate(headers, transaction, "7d1f");
    }
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
    cw_curl_options own = {is(kind, "quiet") ? counted : NULL, NULL, false};
    curl_easy_setopt(easy, CURLOPT_DEBUGFUNCTION, own.debug);
    if (is(kind, "post")) curl_easy_setopt(easy, CURLOPT_POSTFIELDS, host->line);
#if LIBCURL_VERSION_NUM >= 0x074000
    if (is(kind, "old")) curl_easy_setopt(easy, CURLOPT_HTTP09_ALLOWED, 1L);
#endif
    if (is(kind, "sampled")) {
        cw_http_options http;
        cw_http_options_init(&http, sizeof http);
        http.enabled = 1;
        http.keep_text = "* */*";
        http.sample_per_million = 500000;
        cw_http_options_set(host->engine, &http);
    }
    const long long began = now_ns();
    cw_curl_attach(host->engine, easy, &own, &capture);
    getrusage(RUSAGE_SELF, &before);
    CURL *asks = is(kind, "copy") ? curl_easy_duphandle(easy) : easy;
    CURLcode code = curl_easy_perform(asks);
    const long long took = now_ns() - began;
    if (asks != easy) curl_easy_cleanup(asks);
    getrusage(RUSAGE_SELF, &after);
    while (is(kind, "late") && now_ns() - began < 2 * took) usleep(1000);
    cw_curl_done(&capture, code);
    if (is(kind, "quiet")) curl_easy_perform(easy);
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    if (calls) status = -calls;
    if (is(kind, "never")) {
        CURLM *multi = curl_multi_init();
        cw_curl_attach(host->engine, easy, NULL, &capture);
        curl_multi_add_handle(multi, easy);
        curl_multi_remove_handle(multi, easy);
        cw_curl_done(&capture, CURLE_ABORTED_BY_CALLBACK);
        curl_multi_cleanup(multi);
    }
    printf("[%d, %ld, %zu, %ld, %lld]\n", (int)code, status, body.got,
           after.ru_maxrss - before.ru_maxrss, took);
    cw_transaction_end(&transaction);
    curl_easy_cleanup(easy);
    curl_slist_free_all(headers);
}

/* Two uploads at once: streams of one connection if the server speaks HTTP/2. */
static void both(const host *host, const char *url) {
    CURLM *multi = curl_multi_init();
    CURL *easy[2];
    cw_curl *capture[2];
    given body[2];
    char place[512];
    int running = 1, left = 0;
    curl_multi_setopt(multi, CURLMOPT_PIPELINING, (long)CURLPIPE_MULTIPLEX);
    for (int i = 0; i < 2; i++) {
        easy[i] = curl_easy_init();
        memset(&body[i], 0, sizeof body[i]);
        body[i].left = 1000000u * (size_t)(i + 1);
        snprintf(place, sizeof place, "%s?%d", url, i);
        curl_easy_setopt(easy[i], CURLOPT_URL, place);
        curl_easy_setopt(easy[i], CURLOPT_NOPROXY, "*");
        curl_easy_setopt(easy[i], CURLOPT_CAINFO, host->ca);
        curl_easy_setopt(easy[i], CURLOPT_PIPEWAIT, 1L);
        curl_easy_setopt(easy[i], CURLOPT_UPLOAD, 1L);
        curl_easy_setopt(easy[i], CURLOPT_INFILESIZE_LARGE, (curl_off_t)body[i].left);
        curl_easy_setopt(easy[i], CURLOPT_READFUNCTION, give);
        curl_easy_setopt(easy[i], CURLOPT_READDATA, (void *)&body[i]);
        curl_easy_setopt(easy[i], CURLOPT_WRITEFUNCTION, take);
        curl_easy_setopt(easy[i], CURLOPT_WRITEDATA, (void *)&body[i]);
        cw_curl_attach(host->engine, easy[i], NULL, &capture[i]);
        curl_multi_add_handle(multi, easy[i]);
    }
    while (running && curl_multi_perform(multi, &running) == CURLM_OK && running)
        curl_multi_wait(multi, NULL, 0, 100, NULL);
    for (CURLMsg *message; (message = curl_multi_info_read(multi, &left));)
        for (int i = 0; i < 2; i++)
            if (message->msg == CURLMSG_DONE && message->easy_handle == easy[i]) {
                printf("[%d, 0, %zu, 0]\n", (int)message->data.result, body[i].got);
                cw_curl_done(&capture[i], message->data.result);
            }
    for (int i = 0; i < 2; i++) {
        curl_multi_remove_handle(multi, easy[i]);
        curl_easy_cleanup(easy[i]);
    }
    curl_multi_cleanup(multi);
}

int main(int count, char **words) {
    host host = {NULL, count > 2 ? words[2] : NULL, NULL};
    cw_options options;
    cw_http_options http;
    const size_t size = 1000000;
    if (count < 5) return 2;
    cw_options_init(&options, sizeof options);
    cw_http_options_init(&http, sizeof http);
    options.directory = words[1];
    http.enabled = 1;
    http.keep_text = "* */*";
    if (cw_open(&options, &host.engine) == CW_OK) {
        if (cw_http_options_set(host.engine, &http) != CW_OK) return 1;
    } else {
        char why[256];
        cw_last_error(why, sizeof why);
        fprintf(stderr, "requests are not captured: %s\n", why);
        host.engine = NULL;
    }
    host.line = (char *)malloc(size + 16);
    if (!host.line) return 1;
    memcpy(host.line, "X-Big: ", 7);
    memset(host.line + 7, 'h', size);
    host.line[size + 7] = 0;
    for (int i = 3; i + 1 < count; i += 2)
        if (is(words[i], "both"))
            both(&host, words[i + 1]);
        else
            run(&host, words[i], words[i + 1]);
    free(host.line);
    cw_close(&host.engine, 1000);
    return 0;
}
