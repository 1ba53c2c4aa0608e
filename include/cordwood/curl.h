/* Captures what a libcurl easy handle sends and receives. Not in cordwood.h: <curl/curl.h> is the
 * host's own, libcurl 7.61 or later. What has to be asked of that libcurl is here; what its answers
 * mean, in the library (curl_transfer.h).
 *     cw_curl *capture;
 *     cw_curl_attach(engine, easy, NULL, &capture);     after the host's own options
 *     CURLcode code = curl_easy_perform(easy);
 *     cw_curl_done(&capture, code);                     with CURLMsg.data.result of a multi handle
 *
 * It listens by CURLOPT_DEBUGFUNCTION and CURLOPT_VERBOSE, and by nothing else: callbacks for
 * writing, headers, reading and progress are the host's. Redirections that libcurl follows, and
 * requests that it repeats for a challenge, are an exchange each. A proxy's CONNECT is none. Where
 * memory runs out less is captured; the transfer goes on. A host whose store cannot be opened says
 * so once, in its own way, and hands in NULL for the engine: requests go on, uncaptured.
 * A capture belongs to its easy handle; one thread at a time. Duplicate a handle before
 * cw_curl_attach or after cw_curl_done: a copy has the capture's callback.  C99, C++17 or later. */
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

/* What the host wants otherwise. NULL in its place, and 0, stand for the default. */
typedef struct cw_curl_options {
    /* The host's own CURLOPT_DEBUGFUNCTION and CURLOPT_DEBUGDATA, which libcurl has one of and does
     * not tell: put back at the end, and called as libcurl would where `verbose`, the host's own
     * CURLOPT_VERBOSE, is set, which is put back, too. */
    curl_debug_callback debug;
    void *debug_data;
    bool verbose;
} cw_curl_options;

/* --- private: what has to be asked of the host's own libcurl --------------------------------- */

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

/* libcurl's own handles, for DNS over HTTPS, and the host's duplicates have it too. */
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

/* Whether the list has that header, also without a value, which is the host's way to leave it
 * out. `name` as it is sent. */
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

/* The list with one more; as it was where it has that header, the value cannot stand in one, or
 * memory is out. */
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

/* Captures the next transfer of `easy`, which cw_curl_done ends. Where capture is off nothing is
 * set and *out is NULL, which cw_curl_done takes. Once a transfer, after the last one's done.
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

/* Ends what cw_curl_attach began, with the transfer's result, and sets *capture to NULL. Before
 * curl_easy_reset and curl_easy_cleanup, and before the handle's next transfer, at any time behind
 * this one. A transfer that is taken out of a multi handle under way ends with
 * CURLE_ABORTED_BY_CALLBACK, after curl_multi_remove_handle.
 * CW_OK · CW_DISABLED (NULL) · CW_E_ARGUMENT */
static inline cw_status cw_curl_done(cw_curl **capture, CURLcode code) {
    return cw_curl_finish(capture, code, NULL);
}

/* Headers for a request made inside of a transaction or a conversation, behind the host's own:
 * `traceparent` and CW_TRANSACTION_HEADER of the transaction, CW_CONVERSATION_HEADER. NULL for
 * either leaves it out; so does a header of that name in the list. For CURLOPT_HTTPHEADER: libcurl
 * sends them to where a redirection leads, too. Returns the list, which the host frees. */
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
