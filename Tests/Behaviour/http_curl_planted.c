/* A libcurl host that gets planted bodies and sends each on, like http_planted.py.
 *
 *     http_curl_planted STORE BASE FIRST COUNT */
#include <cordwood/cordwood.h>
#include <cordwood/curl.h>

#include <stdlib.h>

typedef struct text {
    char bytes[1 << 20];
    size_t count;
    char type[256]; /* the header line that names it */
} text;

static size_t keep(char *bytes, size_t size, size_t count, void *user) {
    text *self = user;
    size_t part = size * count;
    if (part > sizeof self->bytes - self->count) return 0;
    memcpy(self->bytes + self->count, bytes, part);
    self->count += part;
    return part;
}

static size_t head(char *line, size_t size, size_t count, void *user) {
    text *self = user;
    if (size * count < sizeof self->type && strncmp(line, "Content-Type:", 13) == 0)
        snprintf(self->type, sizeof self->type, "%.*s", (int)(size * count) - 2, line);
    return size * count;
}

static void run(cw_engine *engine, const char *url, const text *body, text *answer) {
    CURL *easy = curl_easy_init();
    struct curl_slist *headers = NULL;
    curl_easy_setopt(easy, CURLOPT_URL, url);
    curl_easy_setopt(easy, CURLOPT_NOPROXY, "*");
    curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, 30000L);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, keep);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, answer);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, head);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, answer);
    if (body) {
        headers = curl_slist_append(headers, body->type[0] ? body->type : "Content-Type:");
        curl_easy_setopt(easy, CURLOPT_POSTFIELDS, body->bytes);
        curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE, (long)body->count);
        curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
    }
    cw_curl *capture = NULL;
    cw_curl_attach(engine, easy, NULL, &capture);
    cw_curl_done(&capture, curl_easy_perform(easy));
    curl_easy_cleanup(easy);
    curl_slist_free_all(headers);
}

int main(int count, char **words) {
    if (count != 5) return 2;
    cw_engine *engine = NULL;
    cw_options options;
    cw_http_options http;
    cw_options_init(&options, sizeof options);
    cw_http_options_init(&http, sizeof http);
    options.directory = words[1];
    options.segment_bytes = 1 << 20;
    http.enabled = 1;
    if (cw_open(&options, &engine) != CW_OK) return 1;
    if (cw_http_options_set(engine, &http) != CW_OK) return 1;
    long first = atol(words[3]);
    text *body = malloc(sizeof *body), *none = malloc(sizeof *none);
    if (!body || !none) return 1;
    for (long number = first; number < first + atol(words[4]); number++) {
        char url[256];
        snprintf(url, sizeof url, "%s/%ld", words[2], number);
        body->count = none->count = 0;
        body->type[0] = 0;
        run(engine, url, NULL, body);
        run(engine, url, body, none);
    }
    free(body);
    free(none);
    return cw_close(&engine, 10000) == CW_OK ? 0 : 1;
}
