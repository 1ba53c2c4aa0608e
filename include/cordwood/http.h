/* Captured HTTP exchanges: what a program asked of servers, what they answered, or that they did
 * not. Off unless the host or `cordwood http enable DIR` switches it on. One record of kind
 * CW_KIND_HTTP when an exchange ends (and a short one when it begins, so that one which hangs or
 * dies is seen); secrets are replaced before a byte reaches the disk. Included by cordwood.h, whose
 * conventions hold here. docs/HTTP.md is the guide; curl.h attaches to libcurl handles.
 *                                                                                 C11 and C++17. */
#ifndef CORDWOOD_H
#include "cordwood.h" /* which includes this file in its turn */
#endif
#ifndef CORDWOOD_HTTP_H
#define CORDWOOD_HTTP_H

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cw_http_exchange cw_http_exchange; /* one request and its answer */

/* The header that ties exchanges of one conversation together where the host names no other. */
#define CW_CONVERSATION_HEADER "X-Conversation-Id"

/* Lists are separated by \n. NULL and 0 stand for the default. Strings are copied. */
typedef struct cw_http_options {
    uint32_t struct_size;
    uint32_t enabled;             /* 1: capture; 0: not (default). The control file goes before */
    uint64_t body_bytes_max;      /* kept of each body; default 64 KiB; UINT64_MAX: none; at most
                                     16 MiB */
    uint32_t sample_per_million;  /* of exchanges; default 1,000,000 */
    const char *hosts;            /* only these: "api.example.com", "*.example.com" (also
                                     example.com itself), with ":8443" that port only; NULL: all */
    const char *hosts_excluded;   /* and never these */
    const char *conversation_header; /* default CW_CONVERSATION_HEADER; "": none */
    const char *redact_headers;   /* names, beside Authorization, Proxy-Authorization, Cookie,
                                     Set-Cookie, X-Api-Key, … (docs/HTTP.md has the list) */
    const char *redact_keys;      /* of query items, JSON members, form fields and parts, beside
                                     password, token, secret, api_key, …; no case, - and _ alike */
    const char *redact_patterns;  /* extended regular expressions (no back references); what they
                                     match in URLs, header values and bodies is replaced */
    const char *keep_text;        /* bodies that are kept though they are none of JSON, XML, form,
                                     multipart and event stream, by host and type:
                                     "api.example.com text/plain"; "* errors" is plain text of
                                     answers of 4xx and 5xx; a star behind the slash: any. Also
                                     separated by ','. NULL: none */
    const char *keep_keys;        /* names that are no secrets: "name", "host/path:name"; also
                                     separated by ','. Of lists' pages (nextPageToken) they never
                                     are */
} cw_http_options;

/* Writes the defaults named above and struct_size. As cw_options_init. */
void cw_http_options_init(cw_http_options *options, size_t size_of_options);

/* How exchanges of this engine are captured from now on; those under way keep what was in force.
 * Each call replaces the one before. Blocks: shortly. Signals: not safe.
 * CW_OK · CW_E_ARGUMENT (which pattern or host is wrong stands in cw_last_error) ·
 * CW_E_STRUCT_SIZE · CW_E_STRUCT_TAIL · CW_E_LIMIT (4,096 names, 64 patterns of 1,024 bytes, 64 of
 * keep_text and of keep_keys with a host, body_bytes_max) · CW_E_CLOSED */
cw_status cw_http_options_set(cw_engine *engine, const cw_http_options *options);

/* True where an exchange that begins now may be captured: one load. Signals: safe. */
bool cw_http_enabled(const cw_engine *engine);

typedef struct cw_http_header {
    cw_str name;
    cw_str value;
} cw_http_header;

enum { CW_HTTP_CLIENT = 0, CW_HTTP_SERVER = 1 }; /* who records: asks, or answers */

/* Everything is copied or redacted away before the call returns. */
typedef struct cw_http_request {
    uint32_t struct_size;
    uint32_t side; /* CW_HTTP_CLIENT, CW_HTTP_SERVER */
    cw_str method; /* "GET" */
    cw_str url;    /* absolute; a password in it and secret query items are replaced */
    const cw_http_header *headers;
    size_t header_count;
    cw_str body;                 /* what is known of it already; more by cw_http_request_body */
    uint64_t start_ns;           /* UTC, ns since 1970; 0: now */
    const char *redirected_from; /* id of the exchange whose answer sent us here; NULL: none */
    const char *protocol;        /* "http/1.1", "h2"; NULL: not known yet */
    uint32_t attempt;            /* of a repeated request, from 1; 0: not known */
    uint32_t trace_flags;        /* W3C trace flags; used where trace_id is set */
    const uint8_t *trace_id;     /* 16 bytes, or NULL: the thread's or task's as it is now */
    const uint8_t *span_id;      /* 8 bytes, or NULL */
    const cw_field *fields;      /* carried by the exchange's records behind its own; up to 64, */
    size_t field_count;          /* 4,096 bytes in all; not redacted; keys "http.…" left out, but
                                    for http.conversation where no header says it */
} cw_http_request;

/* Begins an exchange. CW_DISABLED: it is not captured (off, not in the sample, filtered); *out is
 * then NULL, which all other calls take and answer with CW_DISABLED. The caller owns *out until
 * cw_http_end; one thread at a time. Blocks, overflow: as cw_write_record. Signals: not safe.
 * CW_OK · CW_DISABLED · CW_E_ARGUMENT (no method or URL) · CW_E_STRUCT_SIZE · CW_E_STRUCT_TAIL ·
 * CW_E_MEMORY · CW_E_CLOSED */
cw_status cw_http_begin(cw_engine *engine, const cw_http_request *request,
                        cw_http_exchange **out);

/* "9f3c5a0de1b27788", NUL-terminated: what `cordwood http show` takes. NULL for NULL. Holds until
 * cw_http_end. */
const char *cw_http_id(const cw_http_exchange *exchange);

/* More of the request's body, as it goes out. Only the first body_bytes_max are kept, all are
 * counted. bytes NULL: that many were sent that the host cannot show. Where the headers say
 * Transfer-Encoding: chunked the framing of chunks is taken off if the bytes have it; what begins
 * with it and breaks it is not kept ("not shown").
 * CW_OK · CW_DISABLED · CW_E_ARGUMENT */
cw_status cw_http_request_body(cw_http_exchange *exchange, const void *bytes, size_t length);

/* No typedef: the function that takes it has its name, as stat(2) has. */
struct cw_http_response {
    uint32_t struct_size;
    int32_t status; /* 100 … 599 */
    const cw_http_header *headers;
    size_t header_count;
    cw_str body;          /* as in cw_http_request */
    const char *protocol; /* "http/1.1", "h2", "h3"; NULL: not known */
};

/* In C++ the function hides the struct's constructor, and GCC's -Wshadow says so. */
#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
#endif

/* The answer's status and headers. A second call replaces the first (after 100 and 103).
 * CW_OK · CW_DISABLED · CW_E_ARGUMENT · CW_E_STRUCT_SIZE · CW_E_STRUCT_TAIL */
cw_status cw_http_response(cw_http_exchange *exchange, const struct cw_http_response *response);

#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

/* More of the answer's body, as it arrives; as cw_http_request_body. A body that is still gzip or
 * deflate is unpacked before it is redacted and kept; one in a coding that cannot be unpacked
 * (br, …) is counted and not kept. */
cw_status cw_http_response_body(cw_http_exchange *exchange, const void *bytes, size_t length);

enum {
    CW_HTTP_CANCELLED = 1, /* the host broke it off */
    /* Of hosts that know whether the body that they handed in is framed where headers say chunked;
     * without them it is seen in the bytes, which lines of hexadecimal numbers may mislead. */
    CW_HTTP_REQUEST_CHUNKS = 2,
    CW_HTTP_RESPONSE_CHUNKS = 4,
    CW_HTTP_REQUEST_BARE = 8,
    CW_HTTP_RESPONSE_BARE = 16
};

/* Durations in ns; 0: not known, or the phase was not needed. Sizes of 0: what was counted. */
typedef struct cw_http_outcome {
    uint32_t struct_size;
    uint32_t flags;    /* CW_HTTP_CANCELLED, CW_HTTP_…_CHUNKS or CW_HTTP_…_BARE */
    cw_str error;      /* why there is no answer, or not all of it; empty: it went well */
    cw_str error_type; /* "timeout", "dns", "connect", "tls", a class's name … */
    uint64_t dns_ns;
    uint64_t connect_ns; /* TCP, without DNS and TLS */
    uint64_t tls_ns;
    uint64_t send_ns;
    uint64_t wait_ns; /* from the request's last byte to the answer's first */
    uint64_t receive_ns;
    uint64_t duration_ns; /* of all; 0: since cw_http_begin */
    uint64_t request_body_bytes;
    uint64_t response_body_bytes; /* as on the wire, without the framing of chunks */
    const char *remote_address;   /* "192.0.2.1:443"; NULL: not known */
} cw_http_outcome;

/* Ends the exchange: redacts, writes its record, frees the handle, sets *exchange to NULL. outcome
 * NULL: it went well. *exchange may be NULL. In a child that was forked under way its copy is
 * freed, nothing is written, and the answer is CW_DISABLED. Blocks, overflow: as cw_write_record.
 * Signals: not safe. CW_OK · CW_DISABLED · CW_E_ARGUMENT, CW_E_STRUCT_SIZE, CW_E_STRUCT_TAIL
 * (nothing is freed) · CW_E_MEMORY, CW_E_FULL, CW_E_CLOSED (freed, not kept) */
cw_status cw_http_end(cw_http_exchange **exchange, const cw_http_outcome *outcome);

#ifdef __cplusplus
}
#endif
#endif
