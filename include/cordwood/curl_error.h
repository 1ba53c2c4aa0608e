/* Makes the errors of network.h from a failed libcurl transfer. As in curl.h, which this header
 * includes, the functions ask the host's own libcurl.
 *
 *     CURLcode code = curl_easy_perform(easy);
 *     char id[CW_CURL_ID_BYTES];
 *     cw_curl_done_id(&capture, code, id);              "" if nothing was captured
 *     const cw_network_error *error;
 *     if (cw_curl_error_from(easy, code, body, length, id, &error) == CW_OK) {
 *         cw_network_error_log(log, error, NULL);
 *         cw_upload_error_free(&error);
 *     }
 *
 * Threads: one at a time for each handle. C99, C++17 or later. */
#ifndef CORDWOOD_CURL_ERROR_H
#define CORDWOOD_CURL_ERROR_H

#include <cordwood/curl.h>

#ifdef __cplusplus
extern "C" {
#endif

static inline cw_str cw_curl_text(const char *text) {
    cw_str out = {text ? text : "", text ? strlen(text) : 0};
    return out;
}

/* As cw_curl_done. Also writes the id of the transfer's last exchange to `id`, or "" if it was not
 * captured. id NULL: CW_E_ARGUMENT. */
static inline cw_status cw_curl_done_id(cw_curl **capture, CURLcode code,
                                        char id[CW_CURL_ID_BYTES]) {
    if (!id) return CW_E_ARGUMENT;
    *id = 0;
    return cw_curl_finish(capture, code, id);
}

/* Gives the error of a transfer that ended with `code`. body is the answer's body, which the host
 * keeps. exchange_id is NULL, or the id that cw_curl_done_id gave. Call it before the handle's next
 * transfer, curl_easy_reset and curl_easy_cleanup. As cw_network_error_from: CW_END if the transfer
 * succeeded. Retry-After, Location and Content-Language are known with libcurl 7.83 or later; an
 * older libcurl reports only the first two (Retry-After from 7.66 on, a date in it by our own
 * clock). The status is 0 if a redirection led to a server that did not answer, or if no more than
 * a 1xx came. A transfer that succeeded without a status (file:) is CW_END. */
static inline cw_status cw_curl_error_from(CURL *easy, CURLcode code, const char *body,
                                           size_t length, const char *exchange_id,
                                           const cw_network_error **out) {
    if (!easy) {
        if (out) *out = NULL;
        return CW_E_ARGUMENT;
    }
    cw_network_result result;
    memset(&result, 0, sizeof result);
    result.struct_size = (uint32_t)sizeof result;
    long status = 0, redirections = 0;
    char *url = NULL, *method = NULL;
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    curl_easy_getinfo(easy, CURLINFO_REDIRECT_COUNT, &redirections);
    curl_easy_getinfo(easy, CURLINFO_EFFECTIVE_URL, &url);
#if LIBCURL_VERSION_NUM >= 0x074800
    curl_easy_getinfo(easy, CURLINFO_EFFECTIVE_METHOD, &method);
#endif
    if (code == CURLE_OK && !status && out) {
        *out = NULL;
        return CW_END;
    }
    /* The status is the last one that came. If the transfer failed, it may be that of an earlier
     * hop. */
    if (code != CURLE_OK &&
        (status / 100 == 1 ||
         (status / 100 == 3 && redirections > 0 && code != CURLE_TOO_MANY_REDIRECTS)))
        status = 0;
    result.http_status = status > 0 && status <= 0x7FFFFFFF ? (int32_t)status : 0;
    result.method = cw_curl_text(method ? method : "");
    result.url = cw_curl_text(url ? url : "");
    result.exchange_id = exchange_id && *exchange_id ? exchange_id : NULL;
    result.body.data = body;
    result.body.length = body ? length : 0;
    if (code != CURLE_OK) {
        bool is_packed = false;
#if LIBCURL_VERSION_NUM >= 0x075300
        struct curl_header *coding;
        is_packed = curl_easy_header(easy, "Content-Encoding", 0, CURLH_HEADER, -1, &coding) ==
                    CURLHE_OK;
#endif
        result.error = cw_curl_text(curl_easy_strerror(code));
        result.error_type = cw_curl_text(cw_curl_error_type((int32_t)code, is_packed));
    }
    cw_http_header headers[4];
    result.headers = headers;
#if LIBCURL_VERSION_NUM >= 0x075300
    static const char *const names[] = {"Location", "Retry-After", "Date", "Content-Language"};
    for (size_t i = 0; i < 4 && result.http_status; i++) {
        struct curl_header *found;
        if (curl_easy_header(easy, names[i], 0, CURLH_HEADER, -1, &found) != CURLHE_OK) continue;
        headers[result.header_count].name = cw_curl_text(names[i]);
        headers[result.header_count++].value = cw_curl_text(found->value);
    }
#else
    char *location = NULL;
    curl_easy_getinfo(easy, CURLINFO_REDIRECT_URL, &location);
    if (location && result.http_status) {
        headers[result.header_count].name = cw_curl_text("Location");
        headers[result.header_count++].value = cw_curl_text(location);
    }
#if LIBCURL_VERSION_NUM >= 0x074200
    curl_off_t seconds = 0;
    char digits[24];
    if (result.http_status &&
        curl_easy_getinfo(easy, CURLINFO_RETRY_AFTER, &seconds) == CURLE_OK && seconds > 0) {
        snprintf(digits, sizeof digits, "%lld", (long long)seconds);
        headers[result.header_count].name = cw_curl_text("Retry-After");
        headers[result.header_count++].value = cw_curl_text(digits);
    }
#endif
#endif
    return cw_network_error_from(&result, out);
}

#ifdef __cplusplus
}
#endif
#endif
