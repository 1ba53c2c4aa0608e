/* Captures one libcurl request in the store: http-c STORE URL
 *
 *     cc -std=c11 -I include examples/http/main.c -L build/lib -lcordwood -lcurl -o build/http-c */
#include <cordwood/cordwood.h>
#include <curl/curl.h>

#include <cordwood/curl.h>

int main(int count, char **words) {
    if (count != 3) return 2;
    cw_options options;
    cw_options_init(&options, sizeof options);
    options.directory = words[1];
    cw_engine *engine;
    if (cw_open(&options, &engine) != CW_OK) return 1;

    cw_http_options http;
    cw_http_options_init(&http, sizeof http);
    http.enabled = 1;
    http.redact_headers = "X-Shop-Key";
    cw_http_options_set(engine, &http);

    CURL *easy = curl_easy_init();
    curl_easy_setopt(easy, CURLOPT_URL, words[2]);
    curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 1L);

    cw_curl *capture; /* the handle's own callbacks stay as they are */
    cw_curl_attach(engine, easy, NULL, &capture);
    CURLcode code = curl_easy_perform(easy);
    cw_curl_done(&capture, code);

    curl_easy_cleanup(easy);
    cw_close(&engine, 1000);
    return code == CURLE_OK ? 0 : 1;
}
