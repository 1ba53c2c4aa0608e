/* Captured HTTP exchanges: the requests that a program sent or served, and the answers or failures
 * that followed. Capture is off unless the host or `cordwood http enable DIR` enables it. The
 * engine writes one record of kind CW_KIND_HTTP when an exchange ends. It writes a short one when
 * the exchange begins, so that an exchange which hangs or dies is seen. It replaces secrets before
 * a byte reaches the disk.
 *
 *     cw_http_options options;
 *     cw_http_options_init(&options, sizeof options);
 *     options.enabled = 1;
 *     cw_http_options_set(engine, &options);
 *
 *     cw_http_exchange *exchange;              // NULL if it is not captured
 *     cw_http_begin(engine, &request, &exchange);
 *     cw_http_response(exchange, &response);
 *     cw_http_response_body(exchange, bytes, length);
 *     cw_http_end(&exchange, NULL);            // writes the record
 *
 * cordwood.h includes this file, and its conventions hold here. docs/HTTP.md is the guide. curl.h
 * captures libcurl handles. C11 and C++17. */
#ifndef CORDWOOD_H
#include "cordwood.h" /* which in turn includes this file */
#endif
#ifndef CORDWOOD_HTTP_H
#define CORDWOOD_HTTP_H

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cw_http_exchange cw_http_exchange; /* one request and its answer */

/* The HTTP header that links the exchanges of one conversation, unless the host names another. */
#define CW_CONVERSATION_HEADER "X-Conversation-Id"

/* The settings of capture. \n separates the items of a list. NULL and 0 select the default. The
 * engine copies strings. */
typedef struct cw_http_options {
    uint32_t struct_size;
    uint32_t enabled;             /* 1: capture; 0: do not (default). The control file overrides
                                     it */
    uint64_t body_bytes_max;      /* kept of each body; default 64 KiB; UINT64_MAX: none; at most
                                     16 MiB */
    uint32_t sample_per_million;  /* of exchanges; default 1,000,000 */
    const char *hosts;            /* only these: "api.example.com", "*.example.com" (also
                                     example.com itself), with ":8443" only that port; NULL: all */
    const char *hosts_excluded;   /* and never these */
    const char *conversation_header; /* default CW_CONVERSATION_HEADER; "": none */
    const char *redact_headers;   /* names, in addition to Authorization, Proxy-Authorization,
                                     Cookie, Set-Cookie, X-Api-Key, … (docs/HTTP.md has the list) */
    const char *redact_keys;      /* names of query items, JSON members, form fields and parts, in
                                     addition to password, token, secret, api_key, …; case does not
                                     count, and - and _ are the same. Give names with accents also
                                     without them, as decomposed Unicode is compared */
    const char *redact_patterns;  /* extended regular expressions (no back references); the engine
                                     replaces their matches in URLs, header values and bodies */
    const char *keep_text;        /* keep also bodies that are not JSON, XML, form, multipart or
                                     event stream, by host and type: "api.example.com text/plain";
                                     "* errors" is plain text in answers of 4xx and 5xx; a star
                                     after the slash: any. ',' separates, too. NULL: none */
    const char *keep_keys;        /* names that are not secrets: "name", "host/path:name"; ','
                                     separates, too. Names for the pages of lists (nextPageToken)
                                     are never secrets */
} cw_http_options;

/* Writes struct_size and the defaults named above. As cw_options_init. */
void cw_http_options_init(cw_http_options *options, size_t size_of_options);

/* Sets how this engine captures exchanges from now on. Open exchanges keep the previous settings.
 * Each call replaces the one before. Blocks: briefly. Signals: not safe.
 * CW_OK · CW_E_ARGUMENT (cw_last_error says which pattern or host is wrong) · CW_E_STRUCT_SIZE ·
 * CW_E_STRUCT_TAIL · CW_E_LIMIT (4,096 names, 64 patterns of 1,024 bytes, 64 of keep_text and of
 * keep_keys with a host, body_bytes_max) · CW_E_CLOSED */
cw_status cw_http_options_set(cw_engine *engine, const cw_http_options *options);

/* Returns true if the engine may capture an exchange that begins now. Costs one load. Signals:
 * safe. */
bool cw_http_enabled(const cw_engine *engine);

typedef struct cw_http_header {
    cw_str name;
    cw_str value;
} cw_http_header;

enum { CW_HTTP_CLIENT = 0, CW_HTTP_SERVER = 1 }; /* the side that records: asks, or answers */

/* A request. cw_http_begin copies or redacts everything before it returns. */
typedef struct cw_http_request {
    uint32_t struct_size;
    uint32_t side; /* CW_HTTP_CLIENT, CW_HTTP_SERVER */
    cw_str method; /* "GET" */
    cw_str url;    /* absolute; a password in it and secret query items are replaced */
    const cw_http_header *headers;
    size_t header_count;
    cw_str body;                 /* the part known already; cw_http_request_body adds more */
    uint64_t start_ns;           /* UTC, ns since 1970; 0: now */
    const char *redirected_from; /* id of the exchange whose answer led here; NULL: none */
    const char *protocol;        /* "http/1.1", "h2"; NULL: not known yet */
    uint32_t attempt;            /* of a repeated request, from 1; 0: not known */
    uint32_t trace_flags;        /* W3C trace flags; used if trace_id is set */
    const uint8_t *trace_id;     /* 16 bytes, or NULL: the thread's or task's current one */
    const uint8_t *span_id;      /* 8 bytes, or NULL */
    const cw_field *fields;      /* the exchange's records carry them after their own; up to 64, */
    size_t field_count;          /* 4,096 bytes in all; not redacted. Keys "http.…" are left out,
                                    except http.conversation if no header has it */
} cw_http_request;

/* Begins an exchange. CW_DISABLED means that the engine does not capture it (off, not in the
 * sample, filtered). *out is then NULL; all other calls accept that and answer CW_DISABLED. The
 * caller owns *out until cw_http_end. Threads: one at a time. Blocks, overflow: as cw_write_record.
 * Signals: not safe.
 * CW_OK · CW_DISABLED · CW_E_ARGUMENT (no method or URL) · CW_E_STRUCT_SIZE · CW_E_STRUCT_TAIL ·
 * CW_E_MEMORY · CW_E_CLOSED */
cw_status cw_http_begin(cw_engine *engine, const cw_http_request *request,
                        cw_http_exchange **out);

/* Returns the id, "9f3c5a0de1b27788", NUL-terminated, which `cordwood http show` takes, or NULL for
 * NULL. The string is valid until cw_http_end. */
const char *cw_http_id(const cw_http_exchange *exchange);

/* Adds a piece of the request's body, as the host sends it. The engine keeps only the first
 * body_bytes_max bytes and counts all. bytes NULL: the host sent that many bytes and cannot show
 * them. If the headers say Transfer-Encoding: chunked and the bytes have the framing of chunks, the
 * engine removes the framing. It does not keep a body that begins with the framing and then breaks
 * it ("not shown").
 * CW_OK · CW_DISABLED · CW_E_ARGUMENT */
cw_status cw_http_request_body(cw_http_exchange *exchange, const void *bytes, size_t length);

/* The status and headers of an answer. The struct has no typedef: the function that takes it has
 * the same name, as with stat(2). */
struct cw_http_response {
    uint32_t struct_size;
    int32_t status; /* 100 … 599 */
    const cw_http_header *headers;
    size_t header_count;
    cw_str body;          /* as in cw_http_request */
    const char *protocol; /* "http/1.1", "h2", "h3"; NULL: not known */
};

/* In C++ the function hides the struct's constructor, and GCC's -Wshadow reports that. */
#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
#endif

/* Sets the answer's status and headers. A second call replaces the first (after 100 and 103).
 * CW_OK · CW_DISABLED · CW_E_ARGUMENT · CW_E_STRUCT_SIZE · CW_E_STRUCT_TAIL */
cw_status cw_http_response(cw_http_exchange *exchange, const struct cw_http_response *response);

#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

/* Adds a piece of the answer's body, as it arrives. As cw_http_request_body. If the body is still
 * gzip or deflate, the engine unpacks it before it redacts and keeps it. It counts a body in a
 * coding that it cannot unpack (br, …) and does not keep it. */
cw_status cw_http_response_body(cw_http_exchange *exchange, const void *bytes, size_t length);

enum {
    CW_HTTP_CANCELLED = 1, /* the host cancelled the exchange */
    /* These four are for hosts that know, if the headers say chunked, whether the body they passed
     * is framed. Without them the engine looks at the bytes, and lines of hexadecimal numbers may
     * mislead it. */
    CW_HTTP_REQUEST_CHUNKS = 2,
    CW_HTTP_RESPONSE_CHUNKS = 4,
    CW_HTTP_REQUEST_BARE = 8,
    CW_HTTP_RESPONSE_BARE = 16
};

/* How an exchange ended. Durations are in ns; 0 means not known, or that the exchange did not need
 * the phase. A size of 0 means the bytes that the engine counted. */
typedef struct cw_http_outcome {
    uint32_t struct_size;
    uint32_t flags;    /* CW_HTTP_CANCELLED, CW_HTTP_…_CHUNKS or CW_HTTP_…_BARE */
    cw_str error;      /* why there is no answer, or not all of it; empty: success */
    cw_str error_type; /* "timeout", "dns", "connect", "tls", a class's name … */
    uint64_t dns_ns;
    uint64_t connect_ns; /* TCP, without DNS and TLS */
    uint64_t tls_ns;
    uint64_t send_ns;
    uint64_t wait_ns; /* from the request's last byte to the answer's first */
    uint64_t receive_ns;
    uint64_t duration_ns; /* the whole exchange; 0: since cw_http_begin */
    uint64_t request_body_bytes;
    uint64_t response_body_bytes; /* as on the wire, without the framing of chunks */
    const char *remote_address;   /* "192.0.2.1:443"; NULL: not known */
} cw_http_outcome;

/* Ends the exchange: redacts it, writes its record, frees the handle and sets *exchange to NULL.
 * outcome NULL: success. *exchange may be NULL. In a child that the process forked during the
 * exchange, the call frees the child's copy, writes nothing and answers CW_DISABLED. Blocks,
 * overflow: as cw_write_record. Signals: not safe.
 * CW_OK · CW_DISABLED · CW_E_ARGUMENT, CW_E_STRUCT_SIZE, CW_E_STRUCT_TAIL (nothing is freed) ·
 * CW_E_MEMORY, CW_E_FULL, CW_E_CLOSED (freed, not kept) */
cw_status cw_http_end(cw_http_exchange **exchange, const cw_http_outcome *outcome);

#ifdef __cplusplus
}
#endif
#endif
