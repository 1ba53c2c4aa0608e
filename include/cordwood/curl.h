/* Captures what a libcurl easy handle sends and receives, by the calls of http.h. Header only; not
 * included by cordwood.h: include <curl/curl.h>, libcurl 7.61 or later, is the host's own.
 *
 *     cw_curl *capture;
 *     cw_curl_attach(engine, easy, NULL, &capture);     after the host's own options
 *     CURLcode code = curl_easy_perform(easy);
 *     cw_curl_done(&capture, code);                     with CURLMsg.data.result of a multi handle
 *
 * It listens by CURLOPT_DEBUGFUNCTION and CURLOPT_VERBOSE, and by nothing else: callbacks for
 * writing, headers, reading and progress are the host's. Redirections that libcurl follows, and
 * requests that it repeats for a challenge, are an exchange each. A proxy's CONNECT is none.
 * A capture belongs to its easy handle; one thread at a time.                 C11 and C++17. */
#ifndef CORDWOOD_CURL_H
#define CORDWOOD_CURL_H

#include <cordwood/cordwood.h>
#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What the host wants otherwise. NULL in its place, and 0, stand for the default. */
typedef struct cw_curl_options {
    /* The host's own CURLOPT_DEBUGFUNCTION and CURLOPT_DEBUGDATA, which libcurl has one of and does
     * not tell: called as libcurl would, and put back at the end. */
    curl_debug_callback debug;
    void *debug_data;
} cw_curl_options;

/* --- private -------------------------------------------------------------------------------- */

enum { CW_CURL_HEADERS_MAX = 256, CW_CURL_HEADER_BYTES_MAX = 1 << 20 };

/* A message's start line and headers, as they went by. */
typedef struct cw_curl_head {
    char *bytes;
    size_t count;
    size_t room;
} cw_curl_head;

/* The chunked framing of a body, taken off. left: of the chunk; line: its size line so far. */
typedef struct cw_curl_chunks {
    bool is_on, is_raw, is_over, wants_end;
    size_t left;
    char line[32];
    size_t line_count;
} cw_curl_chunks;

/* libcurl's clocks, in µs since its transfer began; they add up over redirections. */
typedef struct cw_curl_times {
    curl_off_t dns, connect, tls;
} cw_curl_times;

typedef struct cw_curl {
    cw_engine *engine;
    CURL *easy;
    cw_curl_options host;
    cw_http_exchange *exchange;
    cw_curl_head out, in;
    cw_curl_chunks out_chunks, in_chunks;
    cw_curl_times before; /* what the clocks said when the last hop ended */
    bool is_headed;       /* the request's head went out whole */
    bool is_connect;      /* it is a proxy's CONNECT */
    bool has_answer;      /* the exchange's, in full; what follows is its body */
    int status;
    char previous[17]; /* the exchange whose answer sent us here; "": none */
    uint64_t hop_ns;   /* when the present hop began, its head went out, */
    uint64_t head_ns, sent_ns, first_ns; /* its last byte did, and its answer's first came */
} cw_curl;

static inline uint64_t cw_curl_now(void) {
    struct timespec now;
    timespec_get(&now, TIME_UTC);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static inline void cw_curl_keep(cw_curl_head *head, const char *bytes, size_t count) {
    if (count > CW_CURL_HEADER_BYTES_MAX - head->count) return;
    if (head->count + count > head->room) {
        size_t room = (head->count + count) * 2;
        char *grown = (char *)realloc(head->bytes, room);
        if (!grown) return;
        head->bytes = grown;
        head->room = room;
    }
    memcpy(head->bytes + head->count, bytes, count);
    head->count += count;
}

static inline bool cw_curl_is(cw_str name, const char *lower) {
    size_t i = 0;
    for (; i < name.length && lower[i]; i++) {
        char c = name.data[i];
        if (c >= 'A' && c <= 'Z') c = (char)(c + 32);
        if (c != lower[i]) return false;
    }
    return i == name.length && !lower[i];
}

/* The line that begins at `at`, without its end; `at` is moved behind it. */
static inline cw_str cw_curl_line(const cw_curl_head *head, size_t *at) {
    cw_str line = {head->bytes + *at, 0};
    size_t end = *at;
    while (end < head->count && head->bytes[end] != '\n') end++;
    line.length = end - *at;
    *at = end < head->count ? end + 1 : end;
    if (line.length && line.data[line.length - 1] == '\r') line.length--;
    return line;
}

/* The headers behind the start line, into `out`; how many. A line that begins with a blank is part
 * of the value before it. */
static inline size_t cw_curl_headers(const cw_curl_head *head, cw_http_header *out) {
    size_t at = 0, found = 0;
    bool is_open = false;
    cw_curl_line(head, &at);
    while (at < head->count) {
        cw_str line = cw_curl_line(head, &at);
        size_t colon = 0;
        if (line.length && (line.data[0] == ' ' || line.data[0] == '\t')) {
            if (is_open)
                out[found - 1].value.length =
                    (size_t)(line.data + line.length - out[found - 1].value.data);
            continue;
        }
        is_open = false;
        if (found == CW_CURL_HEADERS_MAX) break;
        while (colon < line.length && line.data[colon] != ':') colon++;
        if (colon == 0 || colon == line.length) continue;
        size_t value = colon + 1;
        while (value < line.length && strchr(" \t", line.data[value])) value++;
        out[found].name.data = line.data;
        out[found].name.length = colon;
        out[found].value.data = line.data + value;
        out[found++].value.length = line.length - value;
        is_open = true;
    }
    return found;
}

static inline bool cw_curl_chunked(const cw_http_header *headers, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (cw_curl_is(headers[i].name, "transfer-encoding") && headers[i].value.length >= 7 &&
            !memcmp(headers[i].value.data + headers[i].value.length - 7, "chunked", 7))
            return true;
    return false;
}

/* "http/1.1" of "HTTP/1.1 200 OK" and "GET / HTTP/1.1". */
static inline const char *cw_curl_protocol(cw_str line) {
    static const char *const known[][2] = {
        {"HTTP/1.1", "http/1.1"}, {"HTTP/2", "h2"}, {"HTTP/3", "h3"}, {"HTTP/1.0", "http/1.0"}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        size_t length = strlen(known[i][0]);
        for (size_t at = 0; at + length <= line.length; at++)
            if (!memcmp(line.data + at, known[i][0], length)) return known[i][1];
    }
    return NULL;
}

static inline cw_str cw_curl_text(const char *text) {
    cw_str out = {text ? text : "", text ? strlen(text) : 0};
    return out;
}

/* Hands a part of a body on. */
static inline void cw_curl_put(cw_curl *self, bool is_out, const char *bytes, size_t count) {
    if (!count) return;
    if (is_out)
        cw_http_request_body(self->exchange, bytes, count);
    else
        cw_http_response_body(self->exchange, bytes, count);
}

/* The size line of a chunk is complete. What is none is a body without framing. */
static inline bool cw_curl_size(cw_curl_chunks *chunks) {
    char *end = NULL;
    chunks->line[chunks->line_count] = 0;
    unsigned long long size = strtoull(chunks->line, &end, 16);
    if (end == chunks->line || (*end && !strchr(" ;\t\r", *end))) return false;
    chunks->left = (size_t)size;
    chunks->is_over = size == 0;
    chunks->line_count = 0;
    return true;
}

static inline void cw_curl_body(cw_curl *self, bool is_out, const char *bytes, size_t count) {
    cw_curl_chunks *chunks = is_out ? &self->out_chunks : &self->in_chunks;
    if (!chunks->is_on || chunks->is_raw) {
        cw_curl_put(self, is_out, bytes, count);
        return;
    }
    size_t at = 0;
    while (at < count && !chunks->is_over) {
        if (chunks->left) {
            size_t part = count - at < chunks->left ? count - at : chunks->left;
            cw_curl_put(self, is_out, bytes + at, part);
            at += part;
            chunks->left -= part;
            chunks->wants_end = chunks->left == 0;
            continue;
        }
        char c = bytes[at++];
        if (chunks->wants_end) { /* the line end behind a chunk */
            if (c == '\n') chunks->wants_end = false;
        } else if (c == '\n') {
            if (!cw_curl_size(chunks)) break;
        } else if (chunks->line_count + 1 < sizeof chunks->line) {
            chunks->line[chunks->line_count++] = c;
        } else if (!memchr(chunks->line, ';', chunks->line_count)) {
            break;
        }
    }
    if (at < count && !chunks->is_over) { /* no framing: as it is */
        chunks->is_raw = true;
        cw_curl_put(self, is_out, chunks->line, chunks->line_count);
        cw_curl_put(self, is_out, bytes + at - 1, count - at + 1);
    }
}

static inline curl_off_t cw_curl_clock(CURL *easy, CURLINFO which) {
    curl_off_t value = 0;
    return curl_easy_getinfo(easy, which, &value) == CURLE_OK ? value : 0;
}

static inline cw_curl_times cw_curl_clocks(CURL *easy) {
    cw_curl_times now;
    now.dns = cw_curl_clock(easy, CURLINFO_NAMELOOKUP_TIME_T);
    now.connect = cw_curl_clock(easy, CURLINFO_CONNECT_TIME_T);
    now.tls = cw_curl_clock(easy, CURLINFO_APPCONNECT_TIME_T);
    return now;
}

static inline uint64_t cw_curl_ns(curl_off_t from, curl_off_t to) {
    return to > from ? (uint64_t)(to - from) * 1000u : 0;
}

/* The phases of the hop that ends: what its clocks went on by since the last one's answer. */
static inline void cw_curl_phases(cw_curl *self, cw_http_outcome *outcome) {
    cw_curl_times now = cw_curl_clocks(self->easy), was = self->before;
    curl_off_t dns = now.dns - was.dns, connect = now.connect - was.connect;
    curl_off_t tls = now.tls - was.tls;
    uint64_t end = cw_curl_now();
    long fresh = 0;
    curl_easy_getinfo(self->easy, CURLINFO_NUM_CONNECTS, &fresh);
    if (fresh > 0 && connect > 0) {
        outcome->dns_ns = cw_curl_ns(0, dns);
        outcome->connect_ns = cw_curl_ns(dns, connect);
        if (tls > 0) outcome->tls_ns = cw_curl_ns(connect, tls);
    }
    outcome->duration_ns = end - self->hop_ns;
    if (self->head_ns) outcome->send_ns = self->sent_ns - self->head_ns;
    if (self->first_ns > self->sent_ns) outcome->wait_ns = self->first_ns - self->sent_ns;
    if (self->first_ns) outcome->receive_ns = end - self->first_ns;
    self->before = now;
}

static inline const char *cw_curl_error_type(CURLcode code) {
    switch (code) {
    case CURLE_OK: return "";
    case CURLE_COULDNT_RESOLVE_HOST: return "dns";
    case CURLE_COULDNT_RESOLVE_PROXY: return "dns";
    case CURLE_COULDNT_CONNECT: return "connect";
    case CURLE_OPERATION_TIMEDOUT: return "timeout";
    case CURLE_ABORTED_BY_CALLBACK: return "cancelled";
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CIPHER:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_ISSUER_ERROR: return "tls";
    default: return "curl";
    }
}

/* Ends the exchange that is under way. */
static inline void cw_curl_end(cw_curl *self, CURLcode code) {
    if (!self->exchange) return;
    cw_http_outcome outcome;
    memset(&outcome, 0, sizeof outcome);
    outcome.struct_size = sizeof outcome;
    cw_curl_phases(self, &outcome);
    char address[80] = "", *peer = NULL;
    long port = 0;
    curl_easy_getinfo(self->easy, CURLINFO_PRIMARY_IP, &peer);
    curl_easy_getinfo(self->easy, CURLINFO_PRIMARY_PORT, &port);
    if (peer && *peer) {
        bool is_v6 = strchr(peer, ':') != NULL;
        snprintf(address, sizeof address, is_v6 ? "[%.60s]:%ld" : "%.60s:%ld", peer, port);
        outcome.remote_address = address;
    }
    if (code == CURLE_ABORTED_BY_CALLBACK) outcome.flags = CW_HTTP_CANCELLED;
    if (code != CURLE_OK) outcome.error = cw_curl_text(curl_easy_strerror(code));
    outcome.error_type = cw_curl_text(cw_curl_error_type(code));
    cw_http_end(&self->exchange, &outcome);
}

/* An exchange of the request in `out`, or of one that libcurl never got to send. */
static inline void cw_curl_begin(cw_curl *self) {
    cw_http_header headers[CW_CURL_HEADERS_MAX];
    cw_http_request request;
    memset(&request, 0, sizeof request);
    request.struct_size = sizeof request;
    char *url = NULL, *method = NULL;
    curl_easy_getinfo(self->easy, CURLINFO_EFFECTIVE_URL, &url);
    request.url = cw_curl_text(url);
    if (self->out.count) {
        size_t at = 0;
        cw_str line = cw_curl_line(&self->out, &at);
        request.method = line;
        request.method.length = 0;
        while (request.method.length < line.length && line.data[request.method.length] != ' ')
            request.method.length++;
        request.protocol = cw_curl_protocol(line);
        request.headers = headers;
        request.header_count = cw_curl_headers(&self->out, headers);
        self->out_chunks.is_on = cw_curl_chunked(headers, request.header_count);
    } else {
#if LIBCURL_VERSION_NUM >= 0x074800
        curl_easy_getinfo(self->easy, CURLINFO_EFFECTIVE_METHOD, &method);
#endif
        request.method = cw_curl_text(method && *method ? method : "GET");
    }
    request.start_ns = self->hop_ns;
    request.redirected_from = *self->previous ? self->previous : NULL;
    cw_http_begin(self->engine, &request, &self->exchange);
    *self->previous = 0;
}

/* The end of the hop before, where libcurl goes on by itself, and the state of a new one. */
static inline void cw_curl_turn(cw_curl *self) {
    if (self->exchange) {
        const char *id = cw_http_id(self->exchange);
        bool redirects = self->status >= 301 && self->status <= 308 && self->status != 304;
        if (id && redirects) snprintf(self->previous, sizeof self->previous, "%s", id);
        cw_curl_end(self, CURLE_OK);
        self->hop_ns = cw_curl_now();
    }
    memset(&self->out_chunks, 0, sizeof self->out_chunks);
    memset(&self->in_chunks, 0, sizeof self->in_chunks);
    self->out.count = self->in.count = 0;
    self->is_headed = self->is_connect = self->has_answer = false;
    self->head_ns = self->sent_ns = self->first_ns = 0;
    self->status = 0;
}

/* The request's head, in one piece or several; its empty line ends it. */
static inline void cw_curl_sent(cw_curl *self, const char *bytes, size_t count) {
    if (!self->out.count || self->is_headed) cw_curl_turn(self);
    if (!self->out.count) self->head_ns = cw_curl_now();
    cw_curl_keep(&self->out, bytes, count);
    self->sent_ns = cw_curl_now();
    if (self->out.count < 4 || memcmp(self->out.bytes + self->out.count - 4, "\r\n\r\n", 4)) return;
    self->is_headed = true;
    self->is_connect = self->out.count > 8 && !memcmp(self->out.bytes, "CONNECT ", 8);
    if (!self->is_connect) cw_curl_begin(self);
}

/* A line of the answer's head. Those of a CONNECT, of 1xx and trailers are no part of it. */
static inline void cw_curl_answered(cw_curl *self, const char *bytes, size_t count) {
    if (self->is_connect) return;
    if (!self->first_ns) self->first_ns = cw_curl_now();
    if (count > 5 && !memcmp(bytes, "HTTP/", 5)) {
        self->in.count = 0;
        self->has_answer = false;
    } else if (self->has_answer) {
        return;
    }
    cw_curl_keep(&self->in, bytes, count);
    bool is_empty = count == 2 ? !memcmp(bytes, "\r\n", 2) : count == 1 && *bytes == '\n';
    if (!is_empty || !self->exchange) return;
    cw_http_header headers[CW_CURL_HEADERS_MAX];
    size_t at = 0;
    cw_str line = cw_curl_line(&self->in, &at);
    struct cw_http_response response;
    memset(&response, 0, sizeof response);
    response.struct_size = sizeof response;
    for (size_t i = 0; i + 3 < line.length; i++)
        if (line.data[i] == ' ') {
            response.status = (int32_t)strtol(line.data + i + 1, NULL, 10);
            break;
        }
    if (response.status < 200 && response.status != 101) return;
    response.protocol = cw_curl_protocol(line);
    response.headers = headers;
    response.header_count = cw_curl_headers(&self->in, headers);
    self->in_chunks.is_on = cw_curl_chunked(headers, response.header_count);
    self->status = response.status;
    self->has_answer = true;
    cw_http_response(self->exchange, &response);
}

static inline int cw_curl_debug(CURL *easy, curl_infotype kind, char *bytes, size_t count,
                                void *user) {
    cw_curl *self = (cw_curl *)user;
    if (!self->hop_ns) self->hop_ns = cw_curl_now();
    switch (kind) {
    case CURLINFO_HEADER_OUT: cw_curl_sent(self, bytes, count); break;
    case CURLINFO_HEADER_IN: cw_curl_answered(self, bytes, count); break;
    case CURLINFO_DATA_OUT:
        if (self->exchange) cw_curl_body(self, true, bytes, count);
        self->sent_ns = cw_curl_now();
        break;
    case CURLINFO_DATA_IN:
        if (self->exchange && self->has_answer) cw_curl_body(self, false, bytes, count);
        break;
    case CURLINFO_TEXT: /* the hop ends here; where it does not say so, with the next head */
        if (count > 21 && !memcmp(bytes, "Issue another request", 21)) cw_curl_turn(self);
        break;
    default: break;
    }
    return self->host.debug ? self->host.debug(easy, kind, bytes, count, self->host.debug_data) : 0;
}

/* --- public --------------------------------------------------------------------------------- */

/* Captures the next transfer of `easy`, which cw_curl_done ends. Where capture is off nothing is
 * set and *out is NULL, which cw_curl_done takes. Call it for each transfer.
 * CW_OK · CW_DISABLED · CW_E_ARGUMENT · CW_E_MEMORY · CW_E_UNSUPPORTED (libcurl was built without
 * verbose strings) */
static inline cw_status cw_curl_attach(cw_engine *engine, CURL *easy,
                                       const cw_curl_options *options, cw_curl **out) {
    if (!out) return CW_E_ARGUMENT;
    *out = NULL;
    if (!easy) return CW_E_ARGUMENT;
    if (!engine || !cw_http_enabled(engine)) return CW_DISABLED;
    cw_curl *self = (cw_curl *)calloc(1, sizeof *self);
    if (!self) return CW_E_MEMORY;
    self->engine = engine;
    self->easy = easy;
    if (options) self->host = *options;
    if (curl_easy_setopt(easy, CURLOPT_DEBUGFUNCTION, cw_curl_debug) != CURLE_OK ||
        curl_easy_setopt(easy, CURLOPT_DEBUGDATA, (void *)self) != CURLE_OK ||
        curl_easy_setopt(easy, CURLOPT_VERBOSE, 1L) != CURLE_OK) {
        free(self);
        return CW_E_UNSUPPORTED;
    }
    *out = self;
    return CW_OK;
}

/* Ends what cw_curl_attach began, with the transfer's result, and sets *capture to NULL. Before
 * curl_easy_reset and curl_easy_cleanup, and before the handle's next transfer; a transfer that is
 * taken out of a multi handle ends with CURLE_ABORTED_BY_CALLBACK.
 * CW_OK · CW_DISABLED (NULL) · CW_E_ARGUMENT */
static inline cw_status cw_curl_done(cw_curl **capture, CURLcode code) {
    if (!capture) return CW_E_ARGUMENT;
    cw_curl *self = *capture;
    *capture = NULL;
    if (!self) return CW_DISABLED;
    if (!self->exchange && code != CURLE_OK) {
        char *url = NULL;
        curl_easy_getinfo(self->easy, CURLINFO_EFFECTIVE_URL, &url);
        if (url && !strncmp(url, "http", 4)) {
            self->out.count = 0;
            if (!self->hop_ns) self->hop_ns = cw_curl_now();
            cw_curl_begin(self);
        }
    }
    cw_curl_end(self, code);
    curl_easy_setopt(self->easy, CURLOPT_VERBOSE, self->host.debug ? 1L : 0L);
    curl_easy_setopt(self->easy, CURLOPT_DEBUGFUNCTION, self->host.debug);
    curl_easy_setopt(self->easy, CURLOPT_DEBUGDATA, self->host.debug_data);
    free(self->out.bytes);
    free(self->in.bytes);
    free(self);
    return CW_OK;
}

#ifdef __cplusplus
}
#endif
#endif
