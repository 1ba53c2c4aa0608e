/* Captures what a libcurl easy handle sends and receives.
 *
 *     cw_curl *capture;
 *     cw_curl_attach(engine, easy, NULL, &capture);     after the host's own options
 *     CURLcode code = curl_easy_perform(easy);
 *     cw_curl_done(&capture, code);                     with CURLMsg.data.result of a multi handle
 *
 * cordwood.h does not include this header, because <curl/curl.h> is the host's own, libcurl 7.61 or
 * later. The functions here ask that libcurl; the library interprets its answers (curl_transfer.h).
 *
 * The capture listens through CURLOPT_DEBUGFUNCTION and CURLOPT_VERBOSE, and through nothing else.
 * The callbacks for writing, headers, reading and progress stay the host's. Each redirection that
 * libcurl follows, and each request that it repeats for a challenge, is an exchange of its own. A
 * proxy's CONNECT is not an exchange. If memory runs out, the capture records less and the transfer
 * continues. A host that cannot open its store reports that once, in its own way, and passes NULL
 * for the engine: requests continue, uncaptured.
 *
 * A capture belongs to its easy handle. Threads: one at a time. Duplicate a handle before
 * cw_curl_attach or after cw_curl_done: a copy has the capture's callback. C99, C++17 or later. */
#ifndef CORDWOOD_CURL_H
#define CORDWOOD_CURL_H

#include <cordwood/cordwood.h>
#include <cordwood/curl_transfer.h>
#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The host's wishes. NULL in place of the struct, and 0 in a member, select the default. */
typedef struct cw_curl_options {
    /* The host's own CURLOPT_DEBUGFUNCTION and CURLOPT_DEBUGDATA. libcurl has one of each and does
     * not say which. cw_curl_done restores them. During the capture the host's function is called
     * as libcurl would call it if `verbose`, the host's own CURLOPT_VERBOSE, is set. cw_curl_done
     * restores that, too. */
    curl_debug_callback debug;
    void *debug_data;
    bool verbose;
} cw_curl_options;

/* --- private: the questions to the host's own libcurl ----------------------------------------- */

typedef struct cw_curl {
    CURL *easy;
    cw_curl_options host;
    cw_curl_transfer *transfer;
} cw_curl;

static inline int64_t cw_curl_clock(CURL *easy, CURLINFO which) {
    curl_off_t value = 0;
    return curl_easy_getinfo(easy, which, &value) == CURLE_OK ? (int64_t)value : 0;
}

static inline int32_t cw_curl_number(CURL *easy, CURLINFO which) {
    long value = 0;
    if (curl_easy_getinfo(easy, which, &value) != CURLE_OK) return 0;
    return value > 0 && value <= INT32_MAX ? (int32_t)value : 0;
}

static inline const char *cw_curl_string(CURL *easy, CURLINFO which) {
    char *value = NULL;
    return curl_easy_getinfo(easy, which, &value) == CURLE_OK ? value : NULL;
}

static inline void cw_curl_ask(CURL *easy, cw_curl_facts *facts) {
    facts->dns_us = cw_curl_clock(easy, CURLINFO_NAMELOOKUP_TIME_T);
    facts->connect_us = cw_curl_clock(easy, CURLINFO_CONNECT_TIME_T);
    facts->tls_us = cw_curl_clock(easy, CURLINFO_APPCONNECT_TIME_T);
    facts->total_us = cw_curl_clock(easy, CURLINFO_TOTAL_TIME_T);
    facts->connects = cw_curl_number(easy, CURLINFO_NUM_CONNECTS);
    facts->port = cw_curl_number(easy, CURLINFO_PRIMARY_PORT);
    facts->address = cw_curl_string(easy, CURLINFO_PRIMARY_IP);
    facts->url = cw_curl_string(easy, CURLINFO_EFFECTIVE_URL);
#if LIBCURL_VERSION_NUM >= 0x074800
    facts->method = cw_curl_string(easy, CURLINFO_EFFECTIVE_METHOD);
#endif
}

/* libcurl's own handles, for DNS over HTTPS, and the host's duplicates have this callback, too. */
static inline int cw_curl_debug(CURL *easy, curl_infotype kind, char *bytes, size_t count,
                                void *user) {
    cw_curl *self = (cw_curl *)user;
    if (easy == self->easy) {
        cw_curl_facts facts;
        memset(&facts, 0, sizeof facts);
        facts.struct_size = (uint32_t)sizeof facts;
        if (kind == CURLINFO_HEADER_IN)
            facts.status = cw_curl_number(easy, CURLINFO_RESPONSE_CODE);
        else if (kind == CURLINFO_TEXT || kind == CURLINFO_HEADER_OUT)
            cw_curl_ask(easy, &facts);
        cw_curl_transfer_tell(self->transfer, (uint32_t)kind, bytes, count, &facts);
    }
    if (!self->host.debug || !self->host.verbose) return 0;
    return self->host.debug(easy, kind, bytes, count, self->host.debug_data);
}

static inline cw_status cw_curl_finish(cw_curl **capture, CURLcode code, char *id) {
    if (!capture) return CW_E_ARGUMENT;
    cw_curl *self = *capture;
    *capture = NULL;
    if (!self) return CW_DISABLED;
    cw_curl_facts facts;
    memset(&facts, 0, sizeof facts);
    facts.struct_size = (uint32_t)sizeof facts;
    facts.code = (int32_t)code;
    facts.error = curl_easy_strerror(code);
    cw_curl_ask(self->easy, &facts);
    cw_curl_transfer_end(&self->transfer, &facts, id);
    curl_easy_setopt(self->easy, CURLOPT_VERBOSE, self->host.verbose ? 1L : 0L);
    curl_easy_setopt(self->easy, CURLOPT_DEBUGFUNCTION, self->host.debug);
    curl_easy_setopt(self->easy, CURLOPT_DEBUGDATA, self->host.debug_data);
    free(self);
    return CW_OK;
}

/* Returns true if the list has that header, also without a value, which is the host's way to leave
 * it out. `name` is spelled as it is sent. */
static inline bool cw_curl_lists(const struct curl_slist *list, const char *name) {
    for (; list; list = list->next) {
        const char *line = list->data;
        size_t i = 0;
        for (; name[i] && line[i]; i++) {
            char a = name[i], b = line[i];
            if (a >= 'A' && a <= 'Z') a = (char)(a + 32);
            if (b >= 'A' && b <= 'Z') b = (char)(b + 32);
            if (a != b) break;
        }
        if (!name[i] && (line[i] == ':' || line[i] == ';')) return true;
    }
    return false;
}

/* Returns the list with one more header. Returns it unchanged if it has that header, if a header
 * cannot hold the value, or if memory runs out. */
static inline struct curl_slist *cw_curl_listed(struct curl_slist *list, const char *name,
                                                const char *value) {
    char line[320];
    size_t length = value ? strlen(value) : 0;
    if (!length || length > 255 || cw_curl_lists(list, name)) return list;
    for (size_t i = 0; i < length; i++)
        if (value[i] < 0x20 || value[i] > 0x7E) return list;
    snprintf(line, sizeof line, "%.40s: %s", name, value);
    struct curl_slist *grown = curl_slist_append(list, line);
    return grown ? grown : list;
}

/* --- public --------------------------------------------------------------------------------- */

/* Captures the next transfer of `easy`; cw_curl_done ends the capture. If capture is off, the call
 * sets no option and *out is NULL, which cw_curl_done accepts. Call it once for each transfer,
 * after cw_curl_done of the last one.
 * CW_OK · CW_DISABLED · CW_E_ARGUMENT · CW_E_MEMORY · CW_E_UNSUPPORTED (libcurl was built without
 * verbose strings) */
static inline cw_status cw_curl_attach(cw_engine *engine, CURL *easy,
                                       const cw_curl_options *options, cw_curl **out) {
    if (!out) return CW_E_ARGUMENT;
    *out = NULL;
    if (!easy) return CW_E_ARGUMENT;
    if (!engine) return CW_DISABLED;
    cw_curl_transfer *transfer;
    cw_status status = cw_curl_transfer_begin(engine, &transfer);
    if (status != CW_OK) return status;
    cw_curl *self = (cw_curl *)calloc(1, sizeof *self);
    if (!self) {
        cw_curl_transfer_end(&transfer, NULL, NULL);
        return CW_E_MEMORY;
    }
    self->easy = easy;
    self->transfer = transfer;
    if (options) self->host = *options;
    if (curl_easy_setopt(easy, CURLOPT_DEBUGFUNCTION, cw_curl_debug) != CURLE_OK ||
        curl_easy_setopt(easy, CURLOPT_DEBUGDATA, (void *)self) != CURLE_OK ||
        curl_easy_setopt(easy, CURLOPT_VERBOSE, 1L) != CURLE_OK) {
        cw_curl_transfer_end(&self->transfer, NULL, NULL);
        free(self);
        return CW_E_UNSUPPORTED;
    }
    *out = self;
    return CW_OK;
}

/* Ends what cw_curl_attach began, with the transfer's result, and sets *capture to NULL. Call it at
 * any time after the transfer, but before the handle's next transfer, curl_easy_reset and
 * curl_easy_cleanup. If the host removes an unfinished transfer from a multi handle, pass
 * CURLE_ABORTED_BY_CALLBACK, after curl_multi_remove_handle.
 * CW_OK · CW_DISABLED (NULL) · CW_E_ARGUMENT */
static inline cw_status cw_curl_done(cw_curl **capture, CURLcode code) {
    return cw_curl_finish(capture, code, NULL);
}

/* Appends the headers of a request made inside a transaction or a conversation to the host's own:
 * `traceparent` and CW_TRANSACTION_HEADER of the transaction, and CW_CONVERSATION_HEADER. NULL for
 * either leaves its headers out. A header that the list already has is not added. Returns the list,
 * which the host frees. The list is for CURLOPT_HTTPHEADER; libcurl sends these headers to the
 * target of a redirection, too. */
static inline struct curl_slist *cw_curl_propagate(struct curl_slist *headers,
                                                   const cw_transaction *transaction,
                                                   const char *conversation) {
    char parent[56];
    if (transaction && cw_transaction_traceparent(transaction, parent) == CW_OK)
        headers = cw_curl_listed(headers, "traceparent", parent);
    headers = cw_curl_listed(headers, CW_TRANSACTION_HEADER, cw_transaction_id(transaction));
    return cw_curl_listed(headers, CW_CONVERSATION_HEADER, conversation);
}

#ifdef __cplusplus
}
#endif
#endif
