/* Sending what was logged: targets and uploads, how transfers failed, policies, and what a host
 * does that answers a server's challenges or sends requests itself. Included by cordwood.h, whose
 * conventions hold here. docs/UPLOADS.md has a recipe for each kind of server.
 *                                                                                 C11 and C++17. */
#ifndef CORDWOOD_H
#include "cordwood.h" /* which includes this file in its turn */
#endif
#ifndef CORDWOOD_UPLOAD_H
#define CORDWOOD_UPLOAD_H

#ifdef __cplusplus
extern "C" {
#endif

/* ── Uploading ──────────────────────────────────────────────────────────────────────────────── */

/* How a transfer ended. */
enum {
    CW_OUTCOME_NONE = 0,           /* none was made */
    CW_OUTCOME_SUCCESS = 1,        /* 2xx */
    CW_OUTCOME_REQUEST_FAILED = 2, /* no HTTP answer: DNS, connect, TLS, timeout */
    CW_OUTCOME_REDIRECTION = 3,    /* 3xx */
    CW_OUTCOME_CLIENT = 4,         /* 4xx */
    CW_OUTCOME_SERVER = 5,         /* 5xx */
    CW_OUTCOME_UNKNOWN = 6
};

/* All are called on a thread of the engine's or on the one inside cw_upload, several at a time; may
 * log, may not close the engine. attempting: before every attempt, counted from 1. completed:
 * exactly once per archive and target, with CW_OK or why it will not be sent. condition: before
 * every attempt in the background; false: not now, the engine asks again within 30 s. drained: when
 * nothing waits for the target any more, after something did. */
typedef void (*cw_upload_attempting_fn)(void *user, const char *archive, uint32_t attempt);
typedef void (*cw_upload_completed_fn)(void *user, const char *archive, cw_status status,
                                       int32_t http_status);
typedef bool (*cw_upload_condition_fn)(void *user);
typedef void (*cw_upload_drained_fn)(void *user);
/* A server has too much to do (503, 429): `target` waits for so long, as it said or as we chose. */
typedef void (*cw_upload_busy_fn)(void *user, const char *target, uint64_t delay_ms);

/* Who answers challenges, and who sends in place of libcurl: below. */
typedef struct cw_credentials cw_credentials;
typedef struct cw_transport_request cw_transport_request;
typedef struct cw_transport_response cw_transport_response;
typedef cw_status (*cw_credentials_fn)(void *user, const char *target, const char *challenge,
                                       cw_credentials *out);
typedef cw_status (*cw_transport_fn)(void *user, const cw_transport_request *request,
                                     cw_transport_response *response);

/* What each kind takes, its parameters and limits: docs/UPLOADS.md. NULL and 0 stand for the
 * default. Files are PEM. Secrets are neither logged nor stored. */
typedef struct cw_target_options {
    uint32_t struct_size;
    const char *name;     /* the key of its state; NULL: derived from kind, URL and format */
    const char *kind;     /* "collector" (default), "http", "sap", "loggly", "s3", "otlp", "loki",
                             "elasticsearch", "splunk", "datadog", "clickhouse",
                             "transactions" */
    const char *url;      /* collector, s3, otlp, loki, elasticsearch, splunk, datadog: a base,
                             their own path is appended; else complete; http: {id} and {name} stand
                             for the request's id and the archive's file name */
    const char *format;   /* "archive", "ndjson", "text", "sap", "json", "otlp-protobuf",
                             "otlp-json"; the default fits the kind */
    const char *encoding; /* of the body: "none", "gzip", "zstd", "lz4"; the default fits the
                             kind */
    const char *headers;  /* "Name: value" lines separated by \n; NULL: none */
    const char *auth_token;      /* Authorization: Bearer, or as the kind wants it */
    uint32_t connect_timeout_ms; /* default 10,000 */
    uint32_t request_timeout_ms; /* default 60,000, raised by size at 100 kB/s */
    uint64_t bytes_per_s;        /* upload rate of the background; 0: unlimited (default) */
    cw_upload_attempting_fn attempting; /* may be NULL, as the other callbacks */
    cw_upload_completed_fn completed;
    void *user;                         /* handed to all */
    const char *method;                 /* http: "POST" (default) or "PUT" */
    const char *parameters;             /* "name=value" lines of what only this kind knows */
    const char *auth_user;              /* Basic; access key of s3; user of clickhouse */
    const char *auth_password;
    const char *ca_file;                 /* certificates to trust instead of the system's */
    const char *client_certificate_file; /* what we show to servers that ask */
    const char *client_key_file;
    const char *client_key_password;
    const char *proxy;          /* http://host:port, https://… or socks5h://…; "": none; NULL: the
                                   environment's */
    const char *proxy_auth;     /* "user:password" */
    uint32_t http_version;      /* 0: HTTP/2 where TLS agrees on it (default); 1: 1.1; 2: HTTP/2 */
    uint32_t level;             /* least level that is sent; 0: all. Not for format archive, */
    const char *loggers;        /* nor this: names, separated by commas, with those below them */
    uint64_t body_bytes_max;    /* of one request, before compression; 0: the kind's own limit */
    uint32_t body_records_max;
    uint32_t requests_max;      /* at a time; 0: up to 4, as the server bears */
    cw_upload_condition_fn condition;
    cw_upload_drained_fn drained;
    cw_credentials_fn credentials; /* asked on 401 and 403 */
    cw_transport_fn transport;     /* sends in place of libcurl */
    cw_upload_busy_fn busy;
    const char *expect; /* http, sap, transactions: what an answer must be to mean that the body is
                           there: "status:202;header:X-Stored=yes;body:accepted", all of it; NULL:
                           any 2xx but a page of HTML (that only with 201 to a PUT) */
} cw_target_options;

/* Writes the defaults named above. As cw_options_init. */
void cw_target_options_init(cw_target_options *options, size_t size_of_options);

/* Adds a place where archives go. All strings are copied. Uploading starts at the first roll, timer
 * tick (at most 30 s) or cw_upload after this. The name is registered in the store: archives are
 * deleted after upload when every registered target has them, and one of them is not of the kind
 * transactions. Blocks: for file creation.
 * Signals: not safe. out_target_id may be NULL.
 * CW_OK · CW_E_ARGUMENT (what is wrong stands in cw_last_error) · CW_E_STRUCT_SIZE ·
 * CW_E_STRUCT_TAIL · CW_E_EXISTS (that name is already added here) · CW_E_UNSUPPORTED (no
 * libcurl) · CW_E_LIMIT (64 targets) · CW_E_IO · CW_E_FULL · CW_E_CLOSED */
cw_status cw_target_add(cw_engine *engine, const cw_target_options *options,
                        uint32_t *out_target_id);

/* Ends a target: no more uploads, its registration and state leave the store. Archives stay.
 * CW_OK · CW_E_ARGUMENT · CW_E_NOT_FOUND · CW_E_IO · CW_E_CLOSED */
cw_status cw_target_remove(cw_engine *engine, const char *name);

/* Lets what targets refused, and the store keeps, be tried again at the next occasion: of archives
 * that were taken but for some records those alone. target: its name; NULL: of all. Any thread.
 * After CW_E_IO or CW_E_FULL all but some can be; call again. Blocks: for file creation.
 * Signals: not safe.
 * CW_OK · CW_END (nothing was kept) · CW_E_NOT_FOUND (no such target) · CW_E_IO (also: somebody
 * else has an archive at the moment) · CW_E_FULL · CW_E_CLOSED */
cw_status cw_quarantine_retry(cw_engine *engine, const char *target);

typedef struct cw_upload_result {
    uint32_t struct_size;
    uint32_t uploaded; /* pairs of archive and target that got a 2xx in this call */
    uint32_t failed;   /* pairs attempted and not delivered whole */
    uint32_t waiting;  /* pairs still to be sent */
    uint32_t expired;  /* archives removed by expiry instead of being sent */
    uint64_t bytes_sent;
    int32_t last_http_status; /* 0: none */
    int32_t last_outcome;     /* CW_OUTCOME_… */
    uint32_t refused;         /* records that a target will not take; they are kept */
    uint64_t records;         /* in bodies that got a 2xx; 0 for archives as they are */
    uint32_t quarantined;     /* pairs given up, whole or for some records; the archives are kept */
} cw_upload_result;

/* Seals what is open, archives it, and makes one attempt per waiting archive and target, overriding
 * backoff and byte rate, never consent or a server's Retry-After. Joins a background attempt that
 * is running. *out (may be NULL) is written on every return past the checks of the arguments.
 * Blocks: up to timeout_ms, and for what does not let itself be broken off: a host's transport or
 * credentials function that does not return, the name resolver with a libcurl before 7.87.
 * Signals: not safe.
 * CW_OK (all sent) · CW_END (nothing waited) · CW_E_UPLOAD (some failed or must wait) ·
 * CW_E_TIMEOUT · CW_E_CONSENT · CW_E_NOT_ENABLED · CW_E_NO_TARGET · CW_E_BUSY (one runs) ·
 * CW_E_ARGUMENT · CW_E_STRUCT_SIZE · CW_E_STRUCT_TAIL · CW_E_IO · CW_E_FULL · CW_E_CLOSED */
cw_status cw_upload(cw_engine *engine, uint32_t timeout_ms, cw_upload_result *out,
                    size_t size_of_result);

/* Called once, on a thread of the engine's, with the status cw_upload would give. */
typedef void (*cw_upload_done_fn)(void *user, cw_status status, const cw_upload_result *result);

/* As cw_upload, in the background. done may be NULL; with an error it is not called. Blocks: no.
 * CW_OK (begun) · CW_E_ARGUMENT · CW_E_BUSY · CW_E_MEMORY · CW_E_CLOSED */
cw_status cw_upload_async(cw_engine *engine, cw_upload_done_fn done, void *user);

/* Takes a piece of what would be sent; holds during the call. A body ends with a call of length 0.
 * false: no more is wanted. */
typedef bool (*cw_bytes_fn)(void *user, const void *bytes, size_t length);

/* Shows exactly what cw_upload would send to a target, body after body, and sends nothing; also
 * without consent. Seals what is open and archives it first. target_id: what cw_target_add gave.
 * Blocks: for archiving (at most 60 s) and encoding. Signals: not safe.
 * CW_OK · CW_END (nothing waits) · CW_E_ARGUMENT · CW_E_NOT_FOUND (no such target) · CW_E_BUSY (in
 * a callback) · CW_E_TIMEOUT · CW_E_DAMAGED · CW_E_IO · CW_E_FULL · CW_E_CLOSED */
cw_status cw_upload_preview(cw_engine *engine, uint32_t target_id, cw_bytes_fn sink, void *user);

/* Sets and stores the store's consent. PENDING: keep, send nothing. DENIED: send nothing, remove
 * what is not sent yet; what is logged later is kept under retention. Blocks: for a file sync.
 * CW_OK · CW_E_ARGUMENT · CW_E_IO · CW_E_FULL · CW_E_CLOSED */
cw_status cw_consent_set(cw_engine *engine, cw_consent consent);

/* ── How transfers failed ───────────────────────────────────────────────────────────────────── */

/* One of the errors that a server lists beside its main one (OData: errordetails, details). */
typedef struct cw_upload_error_detail {
    cw_str code;
    cw_str message;
    cw_str property; /* what of the request is meant, for example "Team/Team_Identifier" */
    cw_str severity; /* "info", "warning", "error" */
} cw_upload_error_detail;

/* How a transfer failed. Every string is UTF-8, ends in a NUL that its length does not count, and
 * is empty where nothing is known; of uploads none holds path, query, header or token of the
 * target. code, message, language, transaction_id and details are from a 4xx or 5xx body in the
 * form of OData or SAP Gateway (JSON or XML). */
typedef struct cw_upload_error {
    uint32_t struct_size;    /* of the library's struct: fields beyond it are not there */
    int32_t outcome;         /* CW_OUTCOME_…, never SUCCESS */
    int32_t http_status;     /* 0: no HTTP answer */
    uint32_t attempt;        /* of that archive at that target, from 1 */
    uint64_t time_ns;        /* UTC, ns since 1970 */
    uint64_t retry_after_ms; /* what the server asked us to wait; UINT64_MAX: it did not */
    cw_str target;           /* its name */
    cw_str archive;          /* its file name */
    cw_str cause;            /* the transport's: DNS, connect, TLS, timeout …; or "HTTP 404" */
    cw_str location;         /* of a redirection: scheme, host and port; "/…": on that server */
    cw_str code;
    cw_str message;
    cw_str language; /* of message: "en" */
    cw_str transaction_id;
    const cw_upload_error_detail *details; /* NULL where detail_count is 0 */
    size_t detail_count;
    cw_str method;      /* of a request of the host's own (network.h); of uploads empty */
    cw_str url;         /* likewise, without user, query and fragment */
    cw_str exchange_id; /* likewise: its captured exchange */
} cw_upload_error;

/* Gives how the last failed transfer to a target ended, since cw_open; target_name NULL: to any.
 * The caller owns *out until cw_upload_error_free; it changes no more and needs no engine. Blocks:
 * no. Signals: not safe.
 * CW_OK · CW_END (none failed) · CW_E_ARGUMENT · CW_E_MEMORY · CW_E_CLOSED */
cw_status cw_upload_last_error(cw_engine *engine, const char *target_name,
                               const cw_upload_error **out);

/* Frees what cw_upload_last_error gave and sets *error to NULL. Idempotent. Blocks: no. Signals:
 * not safe. CW_OK · CW_E_ARGUMENT (error is NULL) */
cw_status cw_upload_error_free(const cw_upload_error **error);

/* The error in words: the sentence of its outcome, and what else is known. language: "en" or "de",
 * also with a region ("de-AT", "de_DE.UTF-8"); NULL and others: English. Causes and the server's
 * message stay in their own language. Written as by cw_last_error: NUL-terminated, cut to n bytes;
 * returns the full length without the NUL. error NULL: length 0. Blocks: no. Signals: not safe. */
size_t cw_upload_error_text(const cw_upload_error *error, const char *language, char *buffer,
                            size_t n);

/* One sentence for an outcome, also for unknown numbers; language as above. Never NULL. Static.
 * Signals: safe. */
const char *cw_outcome_text(int32_t outcome, const char *language);

/* ── Policies ───────────────────────────────────────────────────────────────────────────────── */

/* Applies a policy: one JSON object, at most 64 KiB, with any of these keys.
 *   enabled              true or false. false: nothing is uploaded (cw_upload answers
 *                        CW_E_NOT_ENABLED; `cordwood upload` sends nothing of a store that keeps
 *                        such a policy); what waits is kept under retention. Logging goes on: who
 *                        wants none sets levels {"": "off"}
 *   levels               {"prefix": level}: "debug", "INFO+2", "off", 1 … 24 or 255; "" is the root
 *   expiration_days, max_files, quota_bytes    as the options; 0: never, unlimited
 *   max_file_size_bytes  of the segments made from now on, as segment_bytes
 *   upload_interval_s    as the option
 *   retry_quarantined    a word or a whole number: whenever it is another one than in the policy
 *                        before, what targets refused is tried again, once (cw_quarantine_retry);
 *                        what of it cannot be now, when the policy is applied again
 * SAP Mobile Services' keys mean: logUploadEnabled: enabled; entryExpiry: expiration_days;
 * logLevel: the root's level; maxFileNum: max_files; maxFileSize: max_file_size_bytes, in MB.
 * The policy is validated as a whole, then takes effect at once. An invalid one changes nothing;
 * cw_last_error and the logger Cordwood.Uploader name the wrong key and the reason. Unknown keys
 * next to known ones are ignored and reported once at warn; a policy of unknown keys alone is
 * invalid, {} is valid. It replaces the previous policy: keys it does not name revert to the
 * options and cw_level_set. Of two thresholds for one prefix the policy's holds, until
 * cw_level_set names that prefix again. It grants no consent and adds no target. Not stored.
 *
 * With options.policy_url the engine looks for a policy there by itself, on a thread of its own, at
 * once and then every policy_interval_s (by GET, with the validators of the last answer: 304
 * changes nothing). A policy that came is applied as above and kept in the store: the next cw_open
 * with the same URL begins with it. Where none comes, or an invalid one, the last one holds. After
 * failures it looks again between a second and an hour later, at the latest at the interval, or
 * when the server says. The later of a policy from the URL and one from the host holds. A forked
 * child begins with the options and the kept policy.
 * length counts bytes, without a NUL. Blocks: shortly; with a new retry_quarantined also to list
 * the store, and for a rename and an fsync(2) a pair that is tried again. Signals: not safe.
 * CW_OK · CW_E_ARGUMENT · CW_E_LIMIT (over 64 KiB, 4,096 prefixes or 255 bytes a prefix) ·
 * CW_E_CLOSED */
cw_status cw_policy_apply(cw_engine *engine, const char *json, size_t length);

/* ── Credentials ────────────────────────────────────────────────────────────────────────────── */

/* cw_credentials_fn: asked for other credentials where a server answered 401 or 403, once for each
 * body, and once for all requests of a target that were refused together. `target`: its name.
 * `challenge`: the answer's WWW-Authenticate, or NULL. Fills `out`, which holds during the call, by
 * cw_credentials_set and returns CW_OK: the same request goes again at once, with the same id.
 * Anything else, nothing set, or what was refused already: the target is paused until it is added
 * anew or cw_upload is called. Called on a thread of the engine's; may block (the target's uploads
 * wait, and cw_target_remove), may log, may not close the engine, must not throw or longjmp. */

/* A token, or a name with its password; the others NULL. Copied at once: the host may wipe its own
 * when this returns. Signals: not safe.
 * CW_OK · CW_E_ARGUMENT (what cannot be sent: control characters, over 16,384 bytes, a token that
 * is not printable ASCII, a name with a colon) */
cw_status cw_credentials_set(cw_credentials *out, const char *token, const char *name,
                             const char *password);

/* What a challenge asks for, `Bearer realm="shop"`: the scheme of the first one in it, and its
 * realm. Written as by cw_last_error: NUL-terminated, cut to n bytes; returns the full length
 * without the NUL, 0 where there is none. Blocks: no. Signals: not safe. */
size_t cw_challenge_scheme(const char *challenge, char *buffer, size_t n);
size_t cw_challenge_realm(const char *challenge, char *buffer, size_t n);

/* ── Transport ──────────────────────────────────────────────────────────────────────────────── */

/* cw_transport_fn: sends a request in place of libcurl, as it is, without following redirections,
 * with the server's certificate verified. Returns CW_OK once cw_transport_response_status was
 * called with the server's final status, whatever that is. Anything else: no answer came; the
 * archive waits and is tried again. Called on threads of the engine's, on several at once where the
 * target allows that; may block, may log, may not close the engine, must not throw or longjmp. */

/* All of it, and what the functions below are handed, holds until the cw_transport_fn returns. URL
 * and headers may be secrets. */
struct cw_transport_request {
    uint32_t struct_size;
    uint32_t connect_timeout_ms;
    const char *method;
    const char *url;
    const char *const *headers; /* "Name: value"; complete but for Host and Content-Length */
    size_t header_count;
    uint64_t body_bytes;  /* for Content-Length */
    uint64_t timeout_ms;  /* of the whole exchange */
    const void *internal; /* the library's */
};

/* Reads the body from `offset` on, at most 128 KiB at a time; the same bytes however often. Waits
 * where the target has a byte rate. *out_count is written with CW_OK. Any thread. Signals: not
 * safe.
 * CW_OK · CW_END (no more) · CW_E_ARGUMENT · CW_E_IO · CW_E_CLOSED (to be broken off) */
cw_status cw_transport_request_read(const cw_transport_request *request, uint64_t offset,
                                    void *buffer, size_t bytes, size_t *out_count);

/* Whether to give up and return: the engine closes, the target goes, the time is over. To be asked
 * ten times a second, on the thread that was called; another thread is told what that one was told
 * last. Blocks: no. */
bool cw_transport_request_stopped(const cw_transport_request *request);

/* The server's status. What is not within 200 to 599 counts as no answer. A second one clears
 * headers and body of the first: who tries another way begins with it. CW_OK · CW_E_ARGUMENT */
cw_status cw_transport_response_status(cw_transport_response *response, int32_t http_status);

/* A header of the answer; Location, Retry-After, WWW-Authenticate and ETag mean something.
 * CW_OK · CW_E_ARGUMENT · CW_E_LIMIT (64 headers of 8 KiB; it is left out) */
cw_status cw_transport_response_header(cw_transport_response *response, const char *name,
                                       const char *value);

/* Appends to the answer's body. CW_OK · CW_E_ARGUMENT · CW_E_LIMIT (over 4 MiB; the rest is left
 * out, and no more need be read) */
cw_status cw_transport_response_body(cw_transport_response *response, const void *bytes,
                                     size_t count);

/* Why no answer came, for logs: no URL, header or token. `unreachable`: no connection came to
 * stand, so that all archives wait for the target. Takes a status that was set before back, with
 * its headers and body; a status set after it holds. CW_OK · CW_E_ARGUMENT */
cw_status cw_transport_response_failed(cw_transport_response *response, const char *cause,
                                       bool unreachable);

#ifdef __cplusplus
}
#endif
#endif
