/* Uploads: targets and transfers, how transfers failed, policies, and the callbacks of hosts that
 * answer a server's challenges or send requests themselves.
 *
 *     cw_target_options options;
 *     cw_target_options_init(&options, sizeof options);
 *     options.url = "https://logs.example";
 *     cw_target_add(engine, &options, NULL); // the engine now uploads archives in the background
 *     cw_upload(engine, 10000, NULL, 0);     // seals, archives and sends everything now
 *
 * cordwood.h includes this file, and its conventions hold here. docs/UPLOADS.md has a recipe for
 * each kind of server. C11 and C++17. */
#ifndef CORDWOOD_H
#include "cordwood.h" /* which in turn includes this file */
#endif
#ifndef CORDWOOD_UPLOAD_H
#define CORDWOOD_UPLOAD_H

#ifdef __cplusplus
extern "C" {
#endif

/* ── Uploading ──────────────────────────────────────────────────────────────────────────────── */

/* How a transfer ended. */
enum {
    CW_OUTCOME_NONE = 0,           /* there was no transfer */
    CW_OUTCOME_SUCCESS = 1,        /* 2xx */
    CW_OUTCOME_REQUEST_FAILED = 2, /* no HTTP answer: DNS, connect, TLS, timeout */
    CW_OUTCOME_REDIRECTION = 3,    /* 3xx */
    CW_OUTCOME_CLIENT = 4,         /* 4xx */
    CW_OUTCOME_SERVER = 5,         /* 5xx */
    CW_OUTCOME_UNKNOWN = 6
};

/* Callbacks of a target. The engine calls them on its own threads or on the thread inside
 * cw_upload, several at a time. They may log. They must not close the engine.
 *
 *   - attempting: runs before every attempt, counted from 1.
 *   - completed: runs exactly once per archive and target, with CW_OK or the reason why the engine
 *     will not send the archive.
 *   - condition: runs before every background attempt. If it returns false, the engine does not
 *     send now and asks again within 30 s.
 *   - drained: runs when nothing waits for the target any more, after something did. */
typedef void (*cw_upload_attempting_fn)(void *user, const char *archive, uint32_t attempt);
typedef void (*cw_upload_completed_fn)(void *user, const char *archive, cw_status status,
                                       int32_t http_status);
typedef bool (*cw_upload_condition_fn)(void *user);
typedef void (*cw_upload_drained_fn)(void *user);
/* Runs when a server is overloaded (503, 429). `target` waits for delay_ms, which the server asked
 * for or the engine chose. */
typedef void (*cw_upload_busy_fn)(void *user, const char *target, uint64_t delay_ms);

/* The types of hosts that answer challenges or send in place of libcurl. Their sections are below.
 */
typedef struct cw_credentials cw_credentials;
typedef struct cw_transport_request cw_transport_request;
typedef struct cw_transport_response cw_transport_response;
typedef cw_status (*cw_credentials_fn)(void *user, const char *target, const char *challenge,
                                       cw_credentials *out);
typedef cw_status (*cw_transport_fn)(void *user, const cw_transport_request *request,
                                     cw_transport_response *response);

/* The settings of a target. docs/UPLOADS.md lists what each kind takes, its parameters and limits.
 * NULL and 0 select the default. Files are PEM. The library neither logs nor stores secrets. */
typedef struct cw_target_options {
    uint32_t struct_size;
    const char *name;     /* the key of its state; NULL: derived from kind, URL and format */
    const char *kind;     /* "collector" (default), "http", "sap", "loggly", "s3", "otlp", "loki",
                             "elasticsearch", "splunk", "datadog", "clickhouse",
                             "transactions" */
    const char *url;      /* collector, s3, otlp, loki, elasticsearch, splunk, datadog: a base, to
                             which the kind appends its own path; other kinds: the complete URL;
                             http replaces {id} by the request's id and {name} by the archive's file
                             name */
    const char *format;   /* "archive", "ndjson", "text", "sap", "json", "otlp-protobuf",
                             "otlp-json"; the default fits the kind */
    const char *encoding; /* of the body: "none", "gzip", "zstd", "lz4"; the default fits the
                             kind */
    const char *headers;  /* "Name: value" lines separated by \n; NULL: none */
    const char *auth_token;      /* sent as Authorization: Bearer, or as the kind requires */
    uint32_t connect_timeout_ms; /* default 10,000 */
    uint32_t request_timeout_ms; /* default 60,000; extended by the body's size at 100 kB/s */
    uint64_t bytes_per_s;        /* rate of background uploads; 0: unlimited (default) */
    cw_upload_attempting_fn attempting; /* may be NULL, as the other callbacks */
    cw_upload_completed_fn completed;
    void *user;                         /* the engine passes it to every callback */
    const char *method;                 /* http: "POST" (default) or "PUT" */
    const char *parameters;             /* "name=value" lines that only this kind understands */
    const char *auth_user;              /* Basic; access key of s3; user of clickhouse */
    const char *auth_password;
    const char *ca_file;                 /* certificates to trust instead of the system's */
    const char *client_certificate_file; /* shown to servers that ask for one */
    const char *client_key_file;
    const char *client_key_password;
    const char *proxy;          /* http://host:port, https://… or socks5h://…; "": no proxy; NULL:
                                   the environment's (see cw_open) */
    const char *proxy_auth;     /* "user:password" */
    uint32_t http_version;      /* 0: HTTP/2 if TLS agrees on it (default); 1: 1.1; 2: HTTP/2 */
    uint32_t level;             /* lowest level to send; 0: all. Not with format archive */
    const char *loggers;        /* names, separated by commas: send these and those below them. Not
                                   with format archive */
    uint64_t body_bytes_max;    /* of one request, before compression; 0: the kind's own limit */
    uint32_t body_records_max;
    uint32_t requests_max;      /* at a time; 0: up to 4, adapted to the server's load */
    cw_upload_condition_fn condition;
    cw_upload_drained_fn drained;
    cw_credentials_fn credentials; /* runs on 401 and 403 */
    cw_transport_fn transport;     /* sends in place of libcurl */
    cw_upload_busy_fn busy;
    const char *expect; /* http, sap, transactions: the conditions, all of which an answer must meet
                           to confirm the body: "status:202;header:X-Stored=yes;body:accepted".
                           NULL: any 2xx except a page of HTML (that only with 201 to a PUT) */
} cw_target_options;

/* Writes struct_size and the defaults named above. As cw_options_init. */
void cw_target_options_init(cw_target_options *options, size_t size_of_options);

/* Adds a target, a place to which the engine uploads archives. Uploads start at the next roll or
 * timer tick (at most 30 s), but not within 250 ms of an added target, or at once with cw_upload.
 * The store registers the name. The engine deletes an uploaded archive when every registered target
 * has it and at least one of them is not of the kind "transactions". So add all targets one after
 * another: a target that is added later gets the archives that are left. A target that `cordwood
 * target DIR remove` removed can be added again. out_target_id may be NULL. The engine copies all
 * strings. Blocks: for file creation. Signals: not safe.
 * CW_OK · CW_E_ARGUMENT (cw_last_error says what is wrong) · CW_E_STRUCT_SIZE · CW_E_STRUCT_TAIL ·
 * CW_E_EXISTS (the engine has a registered target of that name) · CW_E_UNSUPPORTED (no libcurl) ·
 * CW_E_LIMIT (64 targets) · CW_E_IO · CW_E_FULL · CW_E_CLOSED */
cw_status cw_target_add(cw_engine *engine, const cw_target_options *options,
                        uint32_t *out_target_id);

/* Removes a target: the engine stops its uploads, and deletes its registration and state from the
 * store. Archives stay.
 * CW_OK · CW_E_ARGUMENT · CW_E_NOT_FOUND · CW_E_IO · CW_E_CLOSED */
cw_status cw_target_remove(cw_engine *engine, const char *name);

/* Lets the engine retry, at the next occasion, archives that targets refused and the store keeps.
 * If a target accepted an archive except for some records, the engine retries those records alone.
 * target: its name; NULL: all targets. After CW_E_IO or CW_E_FULL, all but some can be retried;
 * call again. Any thread may call it. Blocks: for file creation. Signals: not safe.
 * CW_OK · CW_END (nothing was kept) · CW_E_NOT_FOUND (no such target) · CW_E_IO (also: another
 * process or thread has an archive at the moment) · CW_E_FULL · CW_E_CLOSED */
cw_status cw_quarantine_retry(cw_engine *engine, const char *target);

typedef struct cw_upload_result {
    uint32_t struct_size;
    uint32_t uploaded; /* pairs of archive and target that got a 2xx in this call */
    uint32_t failed;   /* pairs attempted and not delivered whole */
    uint32_t waiting;  /* pairs that the call found when it began to send, and that still wait */
    uint32_t expired;  /* archives that this engine has removed for their age since the last call,
                          before they were sent */
    uint64_t bytes_sent;
    int32_t last_http_status; /* 0: none */
    int32_t last_outcome;     /* CW_OUTCOME_… */
    uint32_t refused;         /* records that a target does not accept; the store keeps them */
    uint64_t records;         /* in bodies that got a 2xx; 0 for archives sent unchanged */
    uint32_t quarantined;     /* pairs given up, whole or for some records; archives are kept */
} cw_upload_result;

/* Seals the open segments, archives them, and makes one attempt per waiting archive and target. The
 * attempt overrides backoff and byte rate, never consent or a server's Retry-After. The call joins
 * a background attempt that is already running. Archives that other threads and processes make
 * while it sends affect neither its status nor its result; the background sends them. When
 * timeout_ms is over, the call aborts its transfers: they count as failed, and the background sends
 * those archives again. *out may be NULL; the call writes it on every return after the checks of
 * the arguments. Blocks: up to timeout_ms, and longer for work that cannot be interrupted: a
 * transport or credentials function of the host that does not return, and the name resolver of a
 * libcurl before 7.87. Signals: not safe.
 * CW_OK (all sent) · CW_END (nothing waited) · CW_E_UPLOAD (some failed or must wait) ·
 * CW_E_TIMEOUT · CW_E_CONSENT · CW_E_NOT_ENABLED · CW_E_NO_TARGET · CW_E_BUSY (another one is
 * running) · CW_E_ARGUMENT · CW_E_STRUCT_SIZE · CW_E_STRUCT_TAIL · CW_E_IO · CW_E_FULL ·
 * CW_E_MEMORY · CW_E_CLOSED */
cw_status cw_upload(cw_engine *engine, uint32_t timeout_ms, cw_upload_result *out,
                    size_t size_of_result);

/* Runs once, on a thread of the engine, with the status that cw_upload would return. */
typedef void (*cw_upload_done_fn)(void *user, cw_status status, const cw_upload_result *result);

/* As cw_upload, in the background. done may be NULL. If the call returns an error, done does not
 * run. Blocks: no.
 * CW_OK (begun) · CW_E_ARGUMENT · CW_E_BUSY · CW_E_MEMORY · CW_E_CLOSED */
cw_status cw_upload_async(cw_engine *engine, cw_upload_done_fn done, void *user);

/* Receives a piece of a body; the bytes are valid during the call. A call of length 0 ends a body.
 * Returns false to stop. */
typedef bool (*cw_bytes_fn)(void *user, const void *bytes, size_t length);

/* Shows exactly what cw_upload would send to a target, body after body, and sends nothing. Leaves
 * out what the background is sending; without consent it sends nothing, and the call shows
 * everything. Seals the open segments and archives them first. target_id: the number that
 * cw_target_add gave. Blocks: for archiving (at most 60 s) and encoding. Signals: not safe.
 * CW_OK · CW_END (nothing waits) · CW_E_ARGUMENT · CW_E_NOT_FOUND (no such target) · CW_E_BUSY (in
 * a callback) · CW_E_TIMEOUT · CW_E_DAMAGED · CW_E_IO · CW_E_FULL · CW_E_MEMORY · CW_E_CLOSED */
cw_status cw_upload_preview(cw_engine *engine, uint32_t target_id, cw_bytes_fn sink, void *user);

/* Sets the store's consent and stores it. PENDING keeps records and sends nothing. DENIED sends
 * nothing and removes what was not sent yet, within moments also from files that archives left;
 * retention governs what the host logs later. Blocks: for a file sync.
 * CW_OK · CW_E_ARGUMENT · CW_E_IO · CW_E_FULL · CW_E_CLOSED */
cw_status cw_consent_set(cw_engine *engine, cw_consent consent);

/* ── How transfers failed ───────────────────────────────────────────────────────────────────── */

/* One of the errors that a server lists beside its main one (OData: errordetails, details). */
typedef struct cw_upload_error_detail {
    cw_str code;
    cw_str message;
    cw_str property; /* the part of the request, for example "Team/Team_Identifier" */
    cw_str severity; /* "info", "warning", "error" */
} cw_upload_error_detail;

/* How a transfer failed. Every string is UTF-8 and ends in a NUL that its length does not count. A
 * string is empty if its value is not known. For uploads, no string holds path, query, header or
 * token of the target. code, message, language, transaction_id and details come from a 4xx or 5xx
 * body in the form of OData or SAP Gateway (JSON or XML). */
typedef struct cw_upload_error {
    uint32_t struct_size;    /* of the library's struct; do not read fields beyond it */
    int32_t outcome;         /* CW_OUTCOME_…, never SUCCESS */
    int32_t http_status;     /* 0: no HTTP answer */
    uint32_t attempt;        /* of that archive at that target, from 1 */
    uint64_t time_ns;        /* UTC, ns since 1970 */
    uint64_t retry_after_ms; /* the delay that the server asked for; UINT64_MAX: none */
    cw_str target;           /* its name */
    cw_str archive;          /* its file name */
    cw_str cause;            /* the transport's: DNS, connect, TLS, timeout …; or "HTTP 404" */
    cw_str location;         /* of a redirection: scheme, host and port; "/…": on that server */
    cw_str code;
    cw_str message;
    cw_str language; /* of message: "en" */
    cw_str transaction_id;
    const cw_upload_error_detail *details; /* NULL if detail_count is 0 */
    size_t detail_count;
    cw_str method;      /* of one of the host's own requests (network.h); empty for uploads */
    cw_str url;         /* likewise, without user, query and fragment */
    cw_str exchange_id; /* likewise: its captured exchange */
} cw_upload_error;

/* Gives the last failed transfer to a target since cw_open. target_name NULL: to any target. The
 * caller owns *out until cw_upload_error_free. The error never changes and needs no engine. Blocks:
 * no. Signals: not safe.
 * CW_OK · CW_END (no transfer failed) · CW_E_ARGUMENT · CW_E_MEMORY · CW_E_CLOSED */
cw_status cw_upload_last_error(cw_engine *engine, const char *target_name,
                               const cw_upload_error **out);

/* Frees an error that cw_upload_last_error gave and sets *error to NULL. Idempotent. Blocks: no.
 * Signals: not safe.
 * CW_OK · CW_E_ARGUMENT (error is NULL) */
cw_status cw_upload_error_free(const cw_upload_error **error);

/* Writes the error in words: the sentence of its outcome, and everything else that is known.
 * language is "en" or "de", also with a region ("de-AT", "de_DE.UTF-8"). NULL and other languages
 * give English. Causes and the server's message stay in their own language. As cw_last_error, it
 * writes NUL-terminated text cut to n bytes, and returns the full length without the NUL. error
 * NULL: length 0. Blocks: no. Signals: not safe. */
size_t cw_upload_error_text(const cw_upload_error *error, const char *language, char *buffer,
                            size_t n);

/* Returns one sentence about an outcome, also for unknown numbers. language as above. Never NULL.
 * The string is static. Signals: safe. */
const char *cw_outcome_text(int32_t outcome, const char *language);

/* ── Policies ───────────────────────────────────────────────────────────────────────────────── */

/* options.policy_allow: what policies may do to this engine. Without these, a policy removes no
 * archive, makes no segment smaller and turns no logger off. It may set levels up to fatal, and
 * stop uploads. */
enum {
    CW_POLICY_ERASE = 1, /* limits below the options' own: they remove archives that not all targets
                            have, or cut large records. A policy cannot set them below 16 MiB of
                            archives, 10 archives, one day and segments of 1 MiB */
    CW_POLICY_OFF = 2,   /* loggers may be off, or above fatal */
    CW_POLICY_HTTP = 4   /* policy_url may be http to another machine than this one */
};

/* Applies a policy: one JSON object, at most 64 KiB, with any of these keys.
 *
 *   enabled              true or false. false: the engine uploads nothing, cw_upload answers
 *                        CW_E_NOT_ENABLED, and `cordwood upload` sends nothing from a store that
 *                        keeps such a policy. Waiting data stays under retention. Logging
 *                        continues
 *   levels               {"prefix": level}: "debug", "INFO+2", "off", 1 … 24, 255; "" is the root;
 *                        those above fatal need CW_POLICY_OFF
 *   expiration_days, max_files, quota_bytes    as the options; 0: never, unlimited; those below the
 *                        options' own need CW_POLICY_ERASE
 *   max_file_size_bytes  of segments made from now on, as segment_bytes; less than the option needs
 *                        CW_POLICY_ERASE
 *   upload_interval_s    as the option
 *   archive_method       "dense" or "plain", of archives made from now on, as the option
 *   retry_quarantined    a word or a whole number. If it differs from the previous policy's, the
 *                        engine retries once what targets refused (cw_quarantine_retry). It retries
 *                        the rest, which it cannot retry now, when the policy is applied again
 *
 * SAP Mobile Services' keys mean: logUploadEnabled: enabled; entryExpiry: expiration_days;
 * logLevel: the root's level; maxFileNum: max_files; maxFileSize: max_file_size_bytes, in MB.
 *
 * The engine validates the policy as a whole, and then the policy takes effect at once. An invalid
 * one changes nothing; cw_last_error and the logger Cordwood.Uploader name the wrong key and the
 * reason. The engine ignores unknown keys beside known ones and reports them once at warn. A policy
 * with only unknown keys is invalid; {} is valid. A policy replaces the previous policy: keys that
 * it does not name revert to the options and cw_level_set. If the policy and cw_level_set both set
 * a threshold for one prefix, the policy's holds until cw_level_set names that prefix again. A
 * policy grants no consent and adds no target. What the host does not allow has no effect, and is
 * named in the record that Cordwood.Uploader writes of each policy, whatever levels that policy
 * sets. The store does not keep a policy applied by this function.
 *
 * With options.policy_url, a thread of the engine looks for a policy there at once and then every
 * policy_interval_s. It uses GET with the validators of the last answer; a 304 changes nothing. The
 * engine applies a policy that arrives, as above, and keeps it in the store, and the next cw_open
 * with the same URL begins with it. If no policy or an invalid one arrives, the last one holds.
 * After failures the engine looks again between a second and an hour later, at the latest at the
 * interval, or when the server says. Between a policy from the URL and one from the host, the later
 * one holds. A forked child begins with the options and the kept policy.
 *
 * length counts bytes, without a NUL. Blocks: briefly. With a new retry_quarantined, also to list
 * the store, and for a rename and an fsync(2) for each pair that is retried. Signals: not safe.
 * CW_OK · CW_E_ARGUMENT · CW_E_LIMIT (over 64 KiB, 4,096 prefixes or 255 bytes a prefix) ·
 * CW_E_CLOSED */
cw_status cw_policy_apply(cw_engine *engine, const char *json, size_t length);

/* ── Credentials ────────────────────────────────────────────────────────────────────────────── */

/* cw_credentials_fn supplies new credentials after a server answered 401 or 403. The engine calls
 * it once for each body, and once for all requests of a target that were refused together. `target`
 * is the target's name. `challenge` is the answer's WWW-Authenticate, or NULL. The function fills
 * `out`, which is valid during the call, by cw_credentials_set and returns CW_OK. The engine then
 * sends the same request again at once, with the same id. If the function returns anything else,
 * sets nothing or sets credentials that were already refused, the engine pauses the target until
 * the host adds it again or calls cw_upload. The engine calls the function on a thread of its own.
 * The function may block, and then the target's uploads and cw_target_remove wait. It may log. It
 * must not close the engine, throw or longjmp. */

/* Sets a token, or a name with its password; the others are NULL. The library copies them at once,
 * so the host may wipe its own when this returns. Signals: not safe.
 * CW_OK · CW_E_ARGUMENT (it cannot be sent: control characters, over 16,384 bytes, a token that is
 * not printable ASCII, a name with a colon) */
cw_status cw_credentials_set(cw_credentials *out, const char *token, const char *name,
                             const char *password);

/* Write the scheme, or the realm, of the first challenge in `challenge`, for example `Bearer
 * realm="shop"`. As cw_last_error, they write NUL-terminated text cut to n bytes, and return the
 * full length without the NUL, or 0 if it is missing. Blocks: no. Signals: not safe. */
size_t cw_challenge_scheme(const char *challenge, char *buffer, size_t n);
size_t cw_challenge_realm(const char *challenge, char *buffer, size_t n);

/* ── Transport ──────────────────────────────────────────────────────────────────────────────── */

/* cw_transport_fn sends a request in place of libcurl. It sends the request unchanged, does not
 * follow redirections and verifies the server's certificate. It returns CW_OK after it passed the
 * server's final status, whatever that is, to cw_transport_response_status. Anything else means
 * that no answer came; the archive waits, and the engine tries again. The engine calls the function
 * on its own threads, on several at once if the target allows that. The function may block and may
 * log. It must not close the engine, throw or longjmp. */

/* A request. The struct, and everything passed to the functions below, is valid until the
 * cw_transport_fn returns. The URL and the headers may be secrets. */
struct cw_transport_request {
    uint32_t struct_size;
    uint32_t connect_timeout_ms;
    const char *method;
    const char *url;
    const char *const *headers; /* "Name: value"; complete except Host and Content-Length */
    size_t header_count;
    uint64_t body_bytes;  /* for Content-Length */
    uint64_t timeout_ms;  /* of the whole exchange */
    const void *internal; /* belongs to the library */
};

/* Reads the body from `offset` on, at most 128 KiB at a time. Repeated reads give the same bytes.
 * Writes *out_count with CW_OK. Any thread may call it. Blocks: if the target has a byte rate.
 * Signals: not safe.
 * CW_OK · CW_END (no more) · CW_E_ARGUMENT · CW_E_IO · CW_E_CLOSED (stop the request) */
cw_status cw_transport_request_read(const cw_transport_request *request, uint64_t offset,
                                    void *buffer, size_t bytes, size_t *out_count);

/* Returns true if the transport must give up and return: the engine closes, the host removes the
 * target, or the time is over. Ask ten times a second, on the thread on which the engine called the
 * transport; another thread gets the answer that this thread got last. Blocks: no. */
bool cw_transport_request_stopped(const cw_transport_request *request);

/* Sets the server's status. A status outside 200 to 599 counts as no answer. A second call clears
 * headers and body of the first, so a transport that tries another way begins with it.
 * CW_OK · CW_E_ARGUMENT */
cw_status cw_transport_response_status(cw_transport_response *response, int32_t http_status);

/* Adds a header of the answer. The engine uses Location, Retry-After, WWW-Authenticate and ETag.
 * CW_OK · CW_E_ARGUMENT · CW_E_LIMIT (64 headers of 8 KiB; this one is left out) */
cw_status cw_transport_response_header(cw_transport_response *response, const char *name,
                                       const char *value);

/* Appends to the answer's body.
 * CW_OK · CW_E_ARGUMENT · CW_E_LIMIT (over 4 MiB; the rest is left out, and the transport need read
 * no more) */
cw_status cw_transport_response_body(cw_transport_response *response, const void *bytes,
                                     size_t count);

/* Says why no answer came. The cause is for logs and holds no URL, header or token. `unreachable`
 * means that no connection was established, so all archives wait for the target. The call revokes a
 * status set before, with its headers and body; a status set after it holds.
 * CW_OK · CW_E_ARGUMENT */
cw_status cw_transport_response_failed(cw_transport_response *response, const char *cause,
                                       bool unreachable);

#ifdef __cplusplus
}
#endif
#endif
