/* Captures what a libcurl easy handle sends and receives, by the calls of http.h. Header only, not
 * in cordwood.h: include <curl/curl.h>, libcurl 7.61 or later, is the host's own.
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
#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

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

/* --- private -------------------------------------------------------------------------------- */

/* Of a head; what is beyond is not kept, and the body behind it not shown: whether it is packed or
 * in chunks could stand there. The engine looks at as many headers. */
#define CW_CURL_HEAD_BYTES_MAX ((size_t)1 << 20)
#define CW_CURL_HEADERS_MAX ((size_t)100000)

/* A message's start line and headers, as they went by. */
typedef struct cw_curl_head {
    char *bytes;
    size_t count;
    size_t room;
    bool is_cut; /* some of it is not here */
} cw_curl_head;

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
    cw_curl_times before; /* what the clocks said when the last hop ended */
    bool is_sending;      /* the request's head goes out */
    bool is_connect;      /* it is a proxy's CONNECT */
    bool is_begun;        /* the engine knows of it, captured or not */
    bool has_answer;      /* the exchange's, in full; what follows is its body */
    bool is_framed;       /* its body comes in chunks where its headers say so: not HTTP/2 and 3 */
    bool is_packed;       /* it is in a content coding, which libcurl may fail to undo */
    bool is_refused;      /* libcurl said that a callback did not write */
    bool hides_out, hides_in; /* bodies whose heads are not known whole */
    char tail[4];         /* the last of the request's head */
    int status;           /* of the head that comes in; 0: none */
    uint32_t attempt;     /* of the next request; 0: it is no repeated one */
    char previous[17];    /* the exchange whose answer sent us here; "": none */
    uint64_t begun_ns, last_ns; /* when libcurl first and last told something; UTC */
    uint64_t hop_ns;      /* when the present hop began, its head went out, */
    uint64_t head_ns, sent_ns, first_ns; /* its last byte did, and its answer's first came */
} cw_curl;

static inline uint64_t cw_curl_now(void) {
    struct timeval now;
    gettimeofday(&now, NULL);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_usec * 1000u;
}

/* 0 where a clock was set back. */
static inline uint64_t cw_curl_between(uint64_t from, uint64_t to) {
    return to > from ? to - from : 0;
}

static inline void cw_curl_keep(cw_curl_head *head, const char *bytes, size_t count) {
    if (head->is_cut || count > CW_CURL_HEAD_BYTES_MAX - head->count) {
        head->is_cut = true;
        return;
    }
    if (head->count + count > head->room) {
        size_t room = (head->count + count) * 2;
        char *grown = (char *)realloc(head->bytes, room);
        head->is_cut = !grown;
        if (!grown) return;
        head->bytes = grown;
        head->room = room;
    }
    if (count) memcpy(head->bytes + head->count, bytes, count);
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

static inline bool cw_curl_is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

/* The line that begins at `at`, without its end; `at` is moved behind it. */
static inline cw_str cw_curl_line(const cw_curl_head *head, size_t *at) {
    cw_str line = {NULL, 0};
    if (*at >= head->count) return line;
    const char *start = head->bytes + *at;
    const char *end = (const char *)memchr(start, '\n', head->count - *at);
    line.data = start;
    line.length = end ? (size_t)(end - start) : head->count - *at;
    *at += line.length + (end ? 1u : 0u);
    if (line.length && start[line.length - 1] == '\r') line.length--;
    return line;
}

/* The headers behind the start line, for free(); NULL: none, or no memory, which cuts the head. A
 * line that begins with a blank is part of the value before it. */
static inline cw_http_header *cw_curl_headers(cw_curl_head *head, size_t *count) {
    size_t at = 0, lines = 0, found = 0;
    bool is_open = false;
    *count = 0;
    for (size_t i = 0; i < head->count; i++) lines += head->bytes[i] == '\n';
    if (lines > CW_CURL_HEADERS_MAX) {
        lines = CW_CURL_HEADERS_MAX;
        head->is_cut = true;
    }
    if (!head->count) return NULL;
    cw_http_header *list = (cw_http_header *)malloc((lines + 1) * sizeof *list);
    if (!list) {
        head->is_cut = true;
        return NULL;
    }
    cw_curl_line(head, &at);
    while (at < head->count && found <= lines) {
        cw_str line = cw_curl_line(head, &at);
        const char *end = line.data + line.length;
        while (end > line.data && cw_curl_is_blank(end[-1])) end--;
        if (line.length && (line.data[0] == ' ' || line.data[0] == '\t')) {
            cw_str *value = &list[found ? found - 1 : 0].value;
            if (is_open && end > value->data) value->length = (size_t)(end - value->data);
            continue;
        }
        const char *colon =
            line.length ? (const char *)memchr(line.data, ':', line.length) : NULL;
        is_open = colon && colon != line.data && found < lines;
        if (!is_open) continue;
        const char *value = colon + 1;
        while (value < end && cw_curl_is_blank(*value)) value++;
        list[found].name.data = line.data;
        list[found].name.length = (size_t)(colon - line.data);
        list[found].value.data = value;
        list[found++].value.length = end > value ? (size_t)(end - value) : 0;
    }
    *count = found;
    return list;
}

/* "http/1.1" of "HTTP/1.1 200 OK" and "GET / HTTP/1.1". */
static inline const char *cw_curl_protocol(cw_str line, bool is_answer) {
    static const char *const known[][2] = {
        {"HTTP/1.1", "http/1.1"}, {"HTTP/2", "h2"}, {"HTTP/3", "h3"}, {"HTTP/1.0", "http/1.0"}};
    size_t at = 0;
    if (!is_answer)
        for (size_t i = 0; i < line.length; i++)
            if (line.data[i] == ' ') at = i + 1;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        size_t length = strlen(known[i][0]);
        if (length <= line.length - at && !memcmp(line.data + at, known[i][0], length))
            return known[i][1];
    }
    return NULL;
}

static inline cw_str cw_curl_text(const char *text) {
    cw_str out = {text ? text : "", text ? strlen(text) : 0};
    return out;
}

static inline curl_off_t cw_curl_clock(CURL *easy, CURLINFO which) {
    curl_off_t value = 0;
    return curl_easy_getinfo(easy, which, &value) == CURLE_OK && value > 0 ? value : 0;
}

static inline cw_curl_times cw_curl_clocks(CURL *easy) {
    cw_curl_times now = {cw_curl_clock(easy, CURLINFO_NAMELOOKUP_TIME_T),
                         cw_curl_clock(easy, CURLINFO_CONNECT_TIME_T),
                         cw_curl_clock(easy, CURLINFO_APPCONNECT_TIME_T)};
    return now;
}

static inline uint64_t cw_curl_ns(curl_off_t from, curl_off_t to) {
    return to > from ? (uint64_t)(to - from) * 1000u : 0;
}

/* The phases of the hop that ends: what its clocks went on by since the last one's answer. */
static inline void cw_curl_phases(cw_curl *self, uint64_t end, cw_http_outcome *outcome) {
    cw_curl_times now = cw_curl_clocks(self->easy), was = self->before;
    curl_off_t dns = now.dns - was.dns, connect = now.connect - was.connect;
    curl_off_t tls = now.tls - was.tls;
    long fresh = 0;
    curl_easy_getinfo(self->easy, CURLINFO_NUM_CONNECTS, &fresh);
    if (fresh > 0 && connect > 0) {
        outcome->dns_ns = cw_curl_ns(0, dns);
        outcome->connect_ns = cw_curl_ns(dns, connect);
        if (tls > 0) outcome->tls_ns = cw_curl_ns(connect, tls);
    }
    outcome->duration_ns = cw_curl_between(self->hop_ns, end);
    if (!outcome->duration_ns) outcome->duration_ns = 1; /* 0: since begin */
    if (self->head_ns) outcome->send_ns = cw_curl_between(self->head_ns, self->sent_ns);
    if (self->first_ns) {
        outcome->wait_ns = cw_curl_between(self->sent_ns, self->first_ns);
        outcome->receive_ns = cw_curl_between(self->first_ns, end);
    }
}

/* A callback of the host's said no: to write, to go on, to send (CURL_READFUNC_ABORT). Libcurl has
 * CURLE_WRITE_ERROR for packed bodies that it cannot unpack, too. */
static inline bool cw_curl_is_cancelled(const cw_curl *self, CURLcode code) {
    return code == CURLE_ABORTED_BY_CALLBACK ||
           (code == CURLE_WRITE_ERROR && (self->is_refused || !self->is_packed));
}

static inline const char *cw_curl_error_type(const cw_curl *self, CURLcode code) {
    if (cw_curl_is_cancelled(self, code)) return "cancelled";
    switch (code) {
    case CURLE_COULDNT_RESOLVE_HOST: case CURLE_COULDNT_RESOLVE_PROXY: return "dns";
    case CURLE_COULDNT_CONNECT: return "connect";
    case CURLE_OPERATION_TIMEDOUT: return "timeout";
    case CURLE_SSL_CONNECT_ERROR: case CURLE_SSL_CERTPROBLEM: case CURLE_SSL_CIPHER:
    case CURLE_PEER_FAILED_VERIFICATION: case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_ISSUER_ERROR: return "tls";
    default: return "curl";
    }
}

/* Tells the answer that came in, as far as it did. */
static inline void cw_curl_answer(cw_curl *self) {
    size_t at = 0;
    cw_str line = cw_curl_line(&self->in, &at);
    struct cw_http_response response;
    memset(&response, 0, sizeof response);
    response.struct_size = (uint32_t)sizeof response;
    response.status = self->status;
    response.protocol = line.data ? cw_curl_protocol(line, true) : NULL;
    self->is_framed = !response.protocol || !strncmp(response.protocol, "http/1", 6);
    cw_http_header *headers = cw_curl_headers(&self->in, &response.header_count);
    response.headers = headers;
    for (size_t i = 0; i < response.header_count; i++)
        if (cw_curl_is(headers[i].name, "content-encoding")) self->is_packed = true;
    self->has_answer = true;
    self->hides_in =
        cw_http_response(self->exchange, &response) != CW_OK || self->in.is_cut;
    free(headers);
}

/* Ends the exchange that is under way, the transfer's last or one that it goes on after. */
static inline void cw_curl_end(cw_curl *self, CURLcode code, bool is_last, uint64_t end) {
    if (!self->exchange) return;
    if (!self->has_answer && self->status) cw_curl_answer(self);
    cw_http_outcome outcome;
    memset(&outcome, 0, sizeof outcome);
    outcome.struct_size = (uint32_t)sizeof outcome;
    cw_curl_phases(self, end, &outcome);
    char address[80] = "", *peer = NULL;
    long port = 0;
    curl_easy_getinfo(self->easy, CURLINFO_PRIMARY_IP, &peer);
    curl_easy_getinfo(self->easy, CURLINFO_PRIMARY_PORT, &port);
    if (self->begun_ns && peer && *peer) {
        snprintf(address, sizeof address, strchr(peer, ':') ? "[%.60s]:%ld" : "%.60s:%ld", peer,
                 port);
        outcome.remote_address = address;
    }
    outcome.flags = self->is_framed ? CW_HTTP_RESPONSE_CHUNKS : CW_HTTP_RESPONSE_BARE;
    if (cw_curl_is_cancelled(self, code)) outcome.flags |= CW_HTTP_CANCELLED;
    if (code != CURLE_OK) {
        outcome.error = cw_curl_text(curl_easy_strerror(code));
        outcome.error_type = cw_curl_text(cw_curl_error_type(self, code));
    } else if (!self->has_answer && !is_last) { /* HTTP/0.9 has none, and is one */
        outcome.error = cw_curl_text("the connection was closed before an answer");
        outcome.error_type = cw_curl_text("closed");
    }
    cw_http_end(&self->exchange, &outcome);
}

/* An exchange of the request in `out`, or of one that libcurl never got to send. */
static inline void cw_curl_begin(cw_curl *self) {
    cw_http_header *headers = NULL;
    cw_http_request request;
    memset(&request, 0, sizeof request);
    request.struct_size = (uint32_t)sizeof request;
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
        request.protocol = cw_curl_protocol(line, false);
        headers = cw_curl_headers(&self->out, &request.header_count);
        request.headers = headers;
    } else {
#if LIBCURL_VERSION_NUM >= 0x074800
        curl_easy_getinfo(self->easy, CURLINFO_EFFECTIVE_METHOD, &method);
#endif
        request.method = cw_curl_text(method && *method ? method : "GET");
    }
    self->hides_out = self->out.is_cut;
    request.start_ns = self->hop_ns;
    request.attempt = self->attempt;
    request.redirected_from = *self->previous ? self->previous : NULL;
    self->is_begun = true;
    cw_http_begin(self->engine, &request, &self->exchange);
    free(headers);
    *self->previous = 0;
}

/* The end of the hop before, where libcurl goes on by itself, and the state of a new one. */
static inline void cw_curl_turn(cw_curl *self) {
    if (self->is_begun) {
        const char *id = cw_http_id(self->exchange);
        bool redirects = self->status >= 300 && self->status <= 399 && self->status != 304;
        if (id && redirects) snprintf(self->previous, sizeof self->previous, "%s", id);
        self->attempt = redirects ? 0 : self->attempt ? self->attempt + 1 : 2;
        cw_curl_end(self, CURLE_OK, false, self->last_ns);
        self->hop_ns = self->last_ns;
        self->before = cw_curl_clocks(self->easy);
    }
    self->out.count = self->in.count = 0;
    self->out.is_cut = self->in.is_cut = self->hides_out = self->hides_in = false;
    self->is_sending = self->is_connect = self->has_answer = self->is_framed = false;
    self->is_packed = self->is_refused = self->is_begun = false;
    self->head_ns = self->sent_ns = self->first_ns = 0;
    self->status = 0;
}

/* The first hop began before libcurl told anything: names were looked up. */
static inline void cw_curl_dated(cw_curl *self) {
    if (self->hop_ns != self->begun_ns) return;
    cw_curl_times now = cw_curl_clocks(self->easy);
    curl_off_t most = now.tls > now.connect ? now.tls : now.connect;
    if (now.dns > most) most = now.dns;
    uint64_t begun = cw_curl_between(cw_curl_ns(0, most), self->head_ns);
    if (begun < self->begun_ns) self->begun_ns = self->hop_ns = begun;
}

/* The request's head, in one piece or several; its empty line ends it. */
static inline void cw_curl_sent(cw_curl *self, const char *bytes, size_t count) {
    if (!self->is_sending) {
        cw_curl_turn(self);
        self->is_sending = true;
        self->head_ns = self->last_ns;
        memset(self->tail, 0, sizeof self->tail);
        cw_curl_dated(self);
    }
    cw_curl_keep(&self->out, bytes, count);
    self->sent_ns = self->last_ns;
    for (size_t i = count > 4 ? count - 4 : 0; i < count; i++) {
        memmove(self->tail, self->tail + 1, 3);
        self->tail[3] = bytes[i];
    }
    if (memcmp(self->tail, "\r\n\r\n", 4)) return;
    self->is_sending = false;
    self->is_connect = self->out.count > 8 && !memcmp(self->out.bytes, "CONNECT ", 8);
    if (!self->is_connect) cw_curl_begin(self);
}

/* 200 of "HTTP/1.1 200 OK"; of what libcurl takes for a status line besides, as it says. */
static inline int cw_curl_status(CURL *easy, const char *bytes, size_t count) {
    size_t at = 0;
    int status = 0;
    long said = 0;
    while (at < count && bytes[at] != ' ') at++;
    while (at < count && bytes[at] == ' ') at++;
    for (size_t end = at + 3; at < end && at < count; at++) {
        if (bytes[at] < '0' || bytes[at] > '9') break;
        status = status * 10 + (bytes[at] - '0');
    }
    if (status >= 100) return status;
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &said);
    return said >= 100 && said <= 999 ? (int)said : 0;
}

/* A line of the answer's head. Those of a CONNECT, of 1xx and trailers are no part of it. */
static inline void cw_curl_answered(cw_curl *self, const char *bytes, size_t count) {
    if (self->is_connect) return;
    bool is_head = count > 5 && !memcmp(bytes, "HTTP/", 5);
    bool was_interim = self->status >= 100 && self->status <= 199 && self->status != 101;
    if (!self->first_ns || (is_head && was_interim)) self->first_ns = self->last_ns;
    if (is_head) {
        self->in.count = 0;
        self->in.is_cut = self->has_answer = false;
        self->status = 0;
    } else if (self->has_answer) {
        return;
    }
    bool is_empty = count == 2 ? !memcmp(bytes, "\r\n", 2) : count == 1 && *bytes == '\n';
    bool is_first = !self->in.count && !self->in.is_cut;
    cw_curl_keep(&self->in, bytes, count);
    if (is_first) self->status = cw_curl_status(self->easy, bytes, count);
    if (!is_empty || !self->exchange) return;
    if (self->status >= 200 || self->status == 101) cw_curl_answer(self);
}

static inline bool cw_curl_begins(const char *bytes, size_t count, const char *word) {
    return count >= strlen(word) && !memcmp(bytes, word, strlen(word));
}

/* Texts of libcurl's, 7.61 to 8: a hop ends here (or with the next head); a callback wrote not. */
static inline void cw_curl_said(cw_curl *self, const char *bytes, size_t count) {
    if (cw_curl_begins(bytes, count, "Issue another request")) cw_curl_turn(self);
    if (cw_curl_begins(bytes, count, "Failed writing") ||
        cw_curl_begins(bytes, count, "Failure writing") ||
        cw_curl_begins(bytes, count, "client returned"))
        self->is_refused = true;
}

/* Bodies go as libcurl shows them, which is as on the wire: http.h's part is the rest. */
static inline void cw_curl_body(cw_curl *self, bool is_out, const char *bytes, size_t count) {
    if (is_out)
        cw_http_request_body(self->exchange, self->hides_out ? NULL : bytes, count);
    else if (self->has_answer)
        cw_http_response_body(self->exchange, self->hides_in ? NULL : bytes, count);
}

static inline void cw_curl_told(cw_curl *self, curl_infotype kind, const char *bytes,
                                size_t count) {
    self->last_ns = cw_curl_now();
    if (!self->hop_ns) self->begun_ns = self->hop_ns = self->last_ns;
    switch (kind) {
    case CURLINFO_HEADER_OUT: cw_curl_sent(self, bytes, count); break;
    case CURLINFO_HEADER_IN: cw_curl_answered(self, bytes, count); break;
    case CURLINFO_DATA_OUT:
        if (self->exchange) cw_curl_body(self, true, bytes, count);
        self->sent_ns = self->last_ns;
        break;
    case CURLINFO_DATA_IN:
        if (self->exchange) cw_curl_body(self, false, bytes, count);
        break;
    case CURLINFO_TEXT: cw_curl_said(self, bytes, count); break;
    default: break;
    }
}

/* libcurl's own handles, for DNS over HTTPS, and the host's duplicates have it too. */
static inline int cw_curl_debug(CURL *easy, curl_infotype kind, char *bytes, size_t count,
                                void *user) {
    cw_curl *self = (cw_curl *)user;
    if (easy == self->easy) cw_curl_told(self, kind, bytes, count);
    if (!self->host.debug || !self->host.verbose) return 0;
    return self->host.debug(easy, kind, bytes, count, self->host.debug_data);
}

/* When the transfer ended, which may be long ago: as libcurl says, or when it last told something.
 * Where nothing was sent the beginning is known by that alone. */
static inline uint64_t cw_curl_ended(cw_curl *self) {
    uint64_t now = cw_curl_now();
    uint64_t total = cw_curl_ns(0, cw_curl_clock(self->easy, CURLINFO_TOTAL_TIME_T));
    if (!self->begun_ns) { /* it never ran: what libcurl says is of the handle's last transfer */
        self->before = cw_curl_clocks(self->easy);
        return self->hop_ns = now;
    }
    uint64_t end = self->begun_ns + total;
    if (end < self->last_ns) end = self->last_ns;
    if (!self->is_begun && self->hop_ns == self->begun_ns) {
        end = self->last_ns;
        self->begun_ns = self->hop_ns = cw_curl_between(total, end);
    }
    return end < now ? end : now;
}

/* Begins the exchange of a request that failed before libcurl sent it. */
static inline void cw_curl_unsent(cw_curl *self, CURLcode code) {
    char *url = NULL;
    curl_easy_getinfo(self->easy, CURLINFO_EFFECTIVE_URL, &url);
    if (self->is_begun || code == CURLE_OK || !url || strncmp(url, "http", 4)) return;
    self->out.count = 0;
    cw_curl_begin(self);
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
 * curl_easy_reset and curl_easy_cleanup, and before the handle's next transfer, at any time behind
 * this one. A transfer that is taken out of a multi handle under way ends with
 * CURLE_ABORTED_BY_CALLBACK, after curl_multi_remove_handle.
 * CW_OK · CW_DISABLED (NULL) · CW_E_ARGUMENT */
static inline cw_status cw_curl_done(cw_curl **capture, CURLcode code) {
    if (!capture) return CW_E_ARGUMENT;
    cw_curl *self = *capture;
    *capture = NULL;
    if (!self) return CW_DISABLED;
    uint64_t end = cw_curl_ended(self);
    cw_curl_unsent(self, code);
    cw_curl_end(self, code, true, end);
    curl_easy_setopt(self->easy, CURLOPT_VERBOSE, self->host.verbose ? 1L : 0L);
    curl_easy_setopt(self->easy, CURLOPT_DEBUGFUNCTION, self->host.debug);
    curl_easy_setopt(self->easy, CURLOPT_DEBUGDATA, self->host.debug_data);
    free(self->out.bytes);
    free(self->in.bytes);
    free(self);
    return CW_OK;
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
