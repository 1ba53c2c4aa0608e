/* A host whose libcurl requests are captured by curl.h. Prints what it saw of each as JSON.
 *
 *     http_curl STORE|- PLAIN TLS TWO CA
 *
 * "-" means no capture, to compare. Prints "done" and stays until its standard input ends. */
#include <cordwood/cordwood.h>
#include <cordwood/curl.h>

typedef struct seen {
    size_t bytes;
    uint64_t hash;
    size_t left; /* of an upload */
} seen;

static size_t take(char *bytes, size_t size, size_t count, void *user) {
    seen *self = user;
    for (size_t i = 0; i < size * count; i++)
        self->hash = (self->hash ^ (unsigned char)bytes[i]) * 1099511628211u;
    self->bytes += size * count;
    return size * count;
}

static size_t give(char *bytes, size_t size, size_t count, void *user) {
    seen *self = user;
    size_t part = size * count < self->left ? size * count : self->left;
    memset(bytes, 'u', part);
    self->left -= part;
    return part;
}

static int broken_off(void *user, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d) {
    (void)user, (void)a, (void)b, (void)c, (void)d;
    return 1;
}

static void told(const char *name, CURLcode code, CURL *easy, const seen *got) {
    long status = 0;
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    printf("[\"%s\", [%d, %ld, %zu, \"%llx\"]]\n", name, (int)code, status, got->bytes,
           (unsigned long long)got->hash);
    fflush(stdout);
}

/* A debug function of the host's own, as many hosts have for HTTP heads. */
static int heads(CURL *easy, curl_infotype kind, char *bytes, size_t count, void *user) {
    (void)easy, (void)bytes, (void)count;
    if (kind == CURLINFO_HEADER_OUT) ++*(int *)user;
    return 0;
}

static cw_engine *engine;

static void set(CURL *easy, const char *url, seen *got) {
    curl_easy_setopt(easy, CURLOPT_URL, url);
    curl_easy_setopt(easy, CURLOPT_NOPROXY, "*");
    curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 1L);
    curl_easy_setopt(easy, CURLOPT_ACCEPT_ENCODING, "gzip");
    curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, strstr(url, "/hang") ? 1000L : 30000L);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, got);
}

/* kind: "" asks, "b" sends bytes, "c" sends chunks, "x" breaks off. */
static void run(const char *name, const char *kind, const char *base, const char *path,
                const char *ca) {
    char url[512];
    seen got = {0, 14695981039346656037u, 20u << 20};
    CURL *easy = curl_easy_init();
    struct curl_slist *headers = NULL;
    snprintf(url, sizeof url, "%s%s", base, path);
    set(easy, url, &got);
    if (*kind == 'b' || *kind == 'c') {
        curl_easy_setopt(easy, CURLOPT_UPLOAD, 1L);
        curl_easy_setopt(easy, CURLOPT_READFUNCTION, give);
        curl_easy_setopt(easy, CURLOPT_READDATA, &got);
        if (*kind == 'b') curl_easy_setopt(easy, CURLOPT_INFILESIZE_LARGE, (curl_off_t)got.left);
        if (*kind == 'c') headers = curl_slist_append(headers, "Transfer-Encoding: chunked");
        curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
    }
    if (*kind == 'x') {
        curl_easy_setopt(easy, CURLOPT_NOPROGRESS, 0L);
        curl_easy_setopt(easy, CURLOPT_XFERINFOFUNCTION, broken_off);
    }
    if (ca) curl_easy_setopt(easy, CURLOPT_CAINFO, ca);
    int sent = 0;
    const cw_curl_options own = {heads, &sent, true};
    curl_easy_setopt(easy, CURLOPT_DEBUGFUNCTION, own.debug);
    curl_easy_setopt(easy, CURLOPT_DEBUGDATA, own.debug_data);
    curl_easy_setopt(easy, CURLOPT_VERBOSE, 1L);
    cw_curl *capture = NULL;
    if (engine) cw_curl_attach(engine, easy, &own, &capture);
    CURLcode code = curl_easy_perform(easy);
    cw_curl_done(&capture, code);
    told(name, code, easy, &got);
    printf("[\"%s-heads\", %d]\n", name, sent);
    curl_easy_cleanup(easy);
    curl_slist_free_all(headers);
}

static void by_multi(const char *base) {
    char url[512];
    seen got = {0, 14695981039346656037u, 0};
    CURL *easy = curl_easy_init();
    CURLM *multi = curl_multi_init();
    snprintf(url, sizeof url, "%s/json?multi", base);
    set(easy, url, &got);
    cw_curl *capture = NULL;
    if (engine) cw_curl_attach(engine, easy, NULL, &capture);
    curl_multi_add_handle(multi, easy);
    int running = 1, left = 0;
    CURLcode code = CURLE_OK;
    while (running && curl_multi_perform(multi, &running) == CURLM_OK && running)
        curl_multi_poll(multi, NULL, 0, 100, NULL);
    for (CURLMsg *message; (message = curl_multi_info_read(multi, &left));)
        if (message->msg == CURLMSG_DONE) code = message->data.result;
    cw_curl_done(&capture, code);
    told("multi", code, easy, &got);
    curl_multi_remove_handle(multi, easy);
    curl_multi_cleanup(multi);
    curl_easy_cleanup(easy);
}

int main(int count, char **words) {
    if (count != 6) return 2;
    if (strcmp(words[1], "-")) {
        cw_options options;
        cw_http_options http;
        cw_options_init(&options, sizeof options);
        cw_http_options_init(&http, sizeof http);
        options.directory = words[1];
        http.enabled = 1;
        http.keep_text = "* */*";
        if (cw_open(&options, &engine) != CW_OK) return 1;
        if (cw_http_options_set(engine, &http) != CW_OK) return 1;
    }
    static const char *const paths[][2] = {
        {"json", "/json?case=json"}, {"odata", "/odata"}, {"hang", "/hang"},
        {"redirect", "/redirect?to=/json%3Fhop"}, {"download", "/download?bytes=20000000"},
        {"gzip", "/gzip"}, {"chunked", "/chunked"}, {"empty", "/empty"}, {"short", "/short"},
        {"close", "/close"}};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        run(paths[i][0], "", words[2], paths[i][1], NULL);
    run("tls", "", words[3], "/json", NULL);
    run("dns", "", "http://no-such-host.invalid", "/x", NULL);
    run("refused", "", "http://127.0.0.1:1", "/x", NULL);
    run("upload", "b", words[2], "/upload?as=bytes", NULL);
    run("upload-pieces", "c", words[2], "/upload?as=pieces", NULL);
    run("cancelled", "x", words[2], "/hang?cancelled", NULL);
    run("h2", "", words[4], "/two", words[5]);
    by_multi(words[2]);
    puts("done");
    fflush(stdout);
    while (getchar() != EOF) {
    }
    cw_close(&engine, 1000);
    return 0;
}
