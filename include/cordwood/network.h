/* Failures of the host's own requests. This header takes what any HTTP client reports and gives the
 * same outcomes, decoded server errors and words as uploads do (upload.h). It also writes a record
 * of a failure, which readers find by the transaction id.
 *
 *     const cw_network_error *error;
 *     if (cw_network_error_from(&result, &error) == CW_OK) { // the request failed
 *         cw_network_error_log(log, error, NULL);
 *         cw_upload_error_free(&error);
 *     }
 *
 * cordwood.h includes this file, and its conventions hold here. docs/HTTP.md is the guide.
 * curl_error.h makes an error from a libcurl transfer. C11 and C++17. */
#ifndef CORDWOOD_H
#include "cordwood.h" /* which in turn includes this file */
#endif
#ifndef CORDWOOD_NETWORK_H
#define CORDWOOD_NETWORK_H

#ifdef __cplusplus
extern "C" {
#endif

/* A finished request, as the host knows it. Set everything else to 0 and NULL. The library copies
 * everything. */
typedef struct cw_network_result {
    uint32_t struct_size;
    int32_t http_status;           /* 0: no HTTP answer */
    const cw_http_header *headers; /* of the answer; the library uses Location, Content-Language,
                                      and Retry-After, a date in which counts from Date */
    size_t header_count;
    cw_str body;       /* of the answer, unpacked; the library decodes none over 256 KiB */
    cw_str error;      /* why there is no answer, or not all of it, in the transport's words; empty:
                          the answer is complete */
    cw_str error_type; /* "dns", "connect", "tls", "timeout", a class's name …; empty: not known */
    cw_str method;     /* "GET"; may be empty */
    cw_str url;        /* may be empty. The library keeps no user, query or fragment. If the port is
                          not a number it may be a password, and only the scheme is kept */
    const char *exchange_id; /* of the captured exchange (cw_http_id); NULL: it was not captured */
    uint64_t time_ns;        /* when it ended: UTC, ns since 1970; 0: now */
} cw_network_result;

/* An error of the host's own request. `target` is scheme, host and port of the request's address,
 * `archive` is empty and `attempt` is 0. `method`, `url` and `exchange_id` identify the request.
 * cw_upload_error_text puts the error into words, and cw_upload_error_free frees it. */
typedef cw_upload_error cw_network_error;

/* Gives the error of a failed request. The outcome is REQUEST_FAILED if no answer came or a 2xx
 * broke off; otherwise it follows from the status. The library decodes an error of OData or SAP
 * Gateway in a 4xx or 5xx; any other body adds nothing and is not an error of its own. The caller
 * owns *out until cw_upload_error_free. The error needs no engine. *out is NULL unless CW_OK.
 * Blocks: no. Signals: not safe.
 * CW_OK (it failed) · CW_END (it succeeded: 2xx, and no error) · CW_E_ARGUMENT (a status below 0, a
 * string or list that is not valid) · CW_E_STRUCT_SIZE · CW_E_STRUCT_TAIL · CW_E_MEMORY */
cw_status cw_network_error_from(const cw_network_result *result, const cw_network_error **out);

/* Writes a record of the error under the host's logger. Its message is method, address and the
 * English words. Its fields are http.request.method, url.full, http.status, cause, outcome,
 * location, retry_after_s, transaction.id, error.code, error.message, error.detail (the first 8)
 * and http.id, the exchange that it belongs to. Fields with unknown values are left out. The
 * engine's rules for captured exchanges (cw_http_options) replace secrets in them.
 *
 * more is NULL, or holds what the record carries in addition, unchanged: a message that precedes
 * ours, fields that follow ours, place, ids, time, an exception. If its level is 0, or more is
 * NULL, the level is CW_LEVEL_WARN for redirections and 4xx, and CW_LEVEL_ERROR for the rest.
 * Blocks, overflow: as cw_write_record. Signals: not safe.
 * CW_OK · CW_DISABLED · CW_E_ARGUMENT · CW_E_LEVEL · CW_E_STRUCT_SIZE · CW_E_STRUCT_TAIL ·
 * CW_E_CLOSED · CW_E_FULL · CW_E_LIMIT · CW_E_MEMORY */
cw_status cw_network_error_log(cw_logger *logger, const cw_network_error *error,
                               const cw_record *more);

#ifdef __cplusplus
}
#endif
#endif
