/* A host whose libcurl requests have secrets everywhere, like those of http_clients.py.
 *
 *     http_curl_secrets STORE BASE SECRET
 *
 * Prints a line of JSON per case, [name, status], then "done", and stays until its standard input
 * ends. */
#include <cordwood/cordwood.h>
#include <cordwood/curl.h>

typedef struct pieces {
    const char *text;
    size_t first; /* the length of the first piece; 0: all at once */
    size_t at;
} pieces;

static size_t give(char *bytes, size_t size, size_t count, void *user) {
    pieces *self = user;
    size_t end = self->at < self->first ? self->first : strlen(self->text);
    size_t part = end - self->at < size * count ? end - self->at : size * count;
    memcpy(bytes, self->text + self->at, part);
    self->at += part;
    return part;
}

static size_t drop(char *bytes, size_t size, size_t count, void *user) {
    (void)bytes, (void)user;
    return size * count;
}

static cw_engine *engine;

static void run(const char *name, const char *url, const char *const *lines, pieces *body) {
    CURL *easy = curl_easy_init();
    struct curl_slist *headers = NULL;
    for (; *lines; lines++) headers = curl_slist_append(headers, *lines);
    curl_easy_setopt(easy, CURLOPT_URL, url);
    curl_easy_setopt(easy, CURLOPT_NOPROXY, "*");
    curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, 30000L);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, drop);
    if (body) {
        curl_easy_setopt(easy, CURLOPT_POST, 1L);
        curl_easy_setopt(easy, CURLOPT_READFUNCTION, give);
        curl_easy_setopt(easy, CURLOPT_READDATA, body);
        if (body->first)
            headers = curl_slist_append(headers, "Transfer-Encoding: chunked");
        else
            curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE, (long)strlen(body->text));
    }
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
    cw_curl *capture = NULL;
    cw_curl_attach(engine, easy, NULL, &capture);
    CURLcode code = curl_easy_perform(easy);
    cw_curl_done(&capture, code);
    long status = 0;
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    printf("[\"%s\", %ld]\n", name, status);
    fflush(stdout);
    curl_easy_cleanup(easy);
    curl_slist_free_all(headers);
}

static void post(const char *name, const char *base, const char *type, const char *format,
                 const char *secret, int is_split) {
    char url[512], text[1024], line[128];
    snprintf(url, sizeof url, "%s/upload?case=%s", base, name);
    snprintf(text, sizeof text, format, secret, secret, secret);
    snprintf(line, sizeof line, "Content-Type: %s", type);
    pieces body = {text, 0, 0};
    /* In the middle of the secret. */
    if (is_split) body.first = (size_t)(strstr(text, secret) - text) + strlen(secret) / 2;
    run(name, url, (const char *const[]){line, NULL}, &body);
}

int main(int count, char **words) {
    if (count != 4) return 2;
    cw_options options;
    cw_http_options http;
    cw_options_init(&options, sizeof options);
    cw_http_options_init(&http, sizeof http);
    options.directory = words[1];
    http.enabled = 1;
    if (cw_open(&options, &engine) != CW_OK) return 1;
    if (cw_http_options_set(engine, &http) != CW_OK) return 1;
    const char *base = words[2], *secret = words[3], *json = "application/json";
    char url[512], bearer[256], cookie[256];
    snprintf(url, sizeof url, "%s/split-secrets?token=%s-9&case=secret-get", base, secret);
    snprintf(bearer, sizeof bearer, "Authorization: Bearer %s-10", secret);
    snprintf(cookie, sizeof cookie, "Cookie: sid=%s-11", secret);
    run("secret-get", url, (const char *const[]){bearer, cookie, NULL}, NULL);
    post("secret-json", base, json,
         "{\"a\":{\"password\":\"%s-5\",\"list\":[{\"api_key\":\"%s-6\"}]},"
         "\"text\":\"{\\\"token\\\":\\\"%s-7\\\"}\"}",
         secret, 0);
    post("secret-escaped", base, json, "{\"p\\u0061ssword\":\"%s-12\"}", secret, 0);
    post("secret-form", base, "application/x-www-form-urlencoded",
         "user=joe&password=%s-13&x=y", secret, 0);
    post("secret-pieces", base, json, "{\"user\":\"joe\",\"password\":\"%s-8\",\"z\":1}", secret,
         1);
    puts("done");
    fflush(stdout);
    while (getchar() != EOF) {
    }
    cw_close(&engine, 1000);
    return 0;
}
