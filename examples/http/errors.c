/* Asks a server with libcurl, and says how the request failed: errors-c STORE URL
 *
 *     cc -std=c11 -I include examples/http/errors.c -L build/lib -lcordwood -lcurl -o errors-c
 *
 * The failure is a record of the logger "shop.net". It is found by the server's transaction id, and
 * carries the id of the captured exchange: cordwood grep ID STORE, cordwood http show ID STORE. */
#include <cordwood/cordwood.h>
#include <curl/curl.h>

#include <cordwood/curl_error.h>

typedef struct body {
    char bytes[65536]; /* an error in it is decoded if it is complete */
    size_t length;
} body;

static size_t take(char *bytes, size_t size, size_t count, void *user) {
    body *into = user;
    size_t room = sizeof into->bytes - into->length;
    size_t kept = size * count < room ? size * count : room;
    memcpy(into->bytes + into->length, bytes, kept);
    into->length += kept;
    return size * count;
}

static void tell(const cw_network_error *error) {
    static const char *const words[] = {"none",   "success", "request_failed", "redirection",
                                        "client", "server",  "unknown"};
    char text[1024];
    printf("%s %d %s %s\n", words[error->outcome], error->http_status, error->code.data,
           error->transaction_id.data);
    cw_upload_error_text(error, "en", text, sizeof text);
    puts(text);
    cw_upload_error_text(error, "de", text, sizeof text);
    puts(text);
}

int main(int count, char **words) {
    if (count != 3) return 2;
    cw_options options;
    cw_options_init(&options, sizeof options);
    options.directory = words[1];
    cw_engine *engine;
    cw_logger *log;
    if (cw_open(&options, &engine) != CW_OK) return 1;
    if (cw_logger_get(engine, "shop.net", &log) != CW_OK) return 1;
    cw_http_options http;
    cw_http_options_init(&http, sizeof http);
    http.enabled = 1;
    cw_http_options_set(engine, &http);

    static body answer;
    CURL *easy = curl_easy_init();
    curl_easy_setopt(easy, CURLOPT_URL, words[2]);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, &answer);
    cw_curl *capture;
    cw_curl_attach(engine, easy, NULL, &capture);
    CURLcode code = curl_easy_perform(easy);

    char id[CW_CURL_ID_BYTES];
    cw_curl_done_id(&capture, code, id);
    const cw_network_error *error;
    if (cw_curl_error_from(easy, code, answer.bytes, answer.length, id, &error) == CW_OK) {
        cw_network_error_log(log, error, NULL);
        tell(error);
        cw_upload_error_free(&error);
    }
    curl_easy_cleanup(easy);
    cw_close(&engine, 1000);
    return 0;
}
