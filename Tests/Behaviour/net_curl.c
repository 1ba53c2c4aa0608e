/* A host whose libcurl requests fail, and what cw_curl_error_from says of each:
 *
 *     net_curl KIND URL [KIND URL ...]
 *
 * KIND: get, unpacks (asks for gzip), refuses (to write). Prints a line of JSON for each: CURLcode,
 * what cw_curl_error_from returns; for an error also its outcome, HTTP status, location and cause.
 * Compiles as C99 and C++17. */
#include <cordwood/cordwood.h>
#include <curl/curl.h>

#include <cordwood/curl_error.h>

#include <stdio.h>

static size_t take(char *bytes, size_t size, size_t count, void *user) {
    (void)bytes;
    return *(const bool *)user ? 0 : size * count;
}

int main(int count, char **words) {
    for (int i = 1; i + 1 < count; i += 2) {
        bool refuses = !strcmp(words[i], "refuses");
        CURL *easy = curl_easy_init();
        curl_easy_setopt(easy, CURLOPT_URL, words[i + 1]);
        curl_easy_setopt(easy, CURLOPT_NOPROXY, "*");
        curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 1L);
        curl_easy_setopt(easy, CURLOPT_MAXREDIRS, 3L);
        curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, 30000L);
        curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take);
        curl_easy_setopt(easy, CURLOPT_WRITEDATA, (void *)&refuses);
        if (!strcmp(words[i], "unpacks")) curl_easy_setopt(easy, CURLOPT_ACCEPT_ENCODING, "gzip");
        CURLcode code = curl_easy_perform(easy);
        const cw_network_error *error = (const cw_network_error *)words;
        cw_status status = cw_curl_error_from(easy, code, NULL, 0, NULL, &error);
        printf("[%d, %d", (int)code, (int)status);
        if (status == CW_OK)
            printf(", %d, %d, \"%s\", \"%s\"", (int)error->outcome, (int)error->http_status,
                   error->location.data, error->cause.data);
        else if (error)
            printf(", \"*out is not NULL\"");
        puts("]");
        cw_upload_error_free(&error);
        if (cw_curl_error_from(easy, code, NULL, 0, NULL, NULL) != CW_E_ARGUMENT) return 1;
        curl_easy_cleanup(easy);
    }
    return 0;
}
