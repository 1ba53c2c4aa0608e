/* How requests of the host's own failed: the outcomes, the decoder of a server's errors and the
 * words that our uploads have (upload.h), over what any HTTP client gives; and a record of it that
 * is found by the transaction id. Included by cordwood.h, whose conventions hold here. docs/HTTP.md
 * is the guide; curl_error.h makes one of a libcurl transfer.
 *                                                                                 C11 and C++17. */
#ifndef CORDWOOD_H
#include "cordwood.h" /* which includes this file in its turn */
#endif
#ifndef CORDWOOD_NETWORK_H
#define CORDWOOD_NETWORK_H

#ifdef __cplusplus
extern "C" {
#endif

/* What the host knows of a request that is over. All else 0 and NULL. Everything is copied. */
typedef struct cw_network_result {
    uint32_t struct_size;
    int32_t http_status;           /* 0: no HTTP answer */
    const cw_http_header *headers; /* of the answer; Location, Retry-After and Content-Language mean
                                      something */
    size_t header_count;
    cw_str body;       /* of the answer, unpacked; of over 256 KiB nothing is decoded */
    cw_str error;      /* why there is no answer, or not all of it, in the transport's words; empty:
                          there is */
    cw_str error_type; /* "dns", "connect", "tls", "timeout", a class's name …; empty: not known */
    cw_str method;     /* "GET"; may be empty */
    cw_str url;        /* may be empty; user, query and fragment are not kept, and of one whose port
                          is no number nothing but the scheme: it may be a password */
    const char *exchange_id; /* of the captured exchange (cw_http_id); NULL: it was not captured */
    uint64_t time_ns;        /* when it ended: UTC, ns since 1970; 0: now */
} cw_network_result;

/* An error of the host's own request: `target` is scheme, host and port of its address, `archive`
 * is empty, `attempt` 0; `method`, `url` and `exchange_id` say which request it was.
 * cw_upload_error_text puts it into words, cw_upload_error_free frees it. */
typedef cw_upload_error cw_network_error;

/* Says how a request ended: REQUEST_FAILED where no answer came, or a 2xx that broke off; else what
 * the status says. An error of OData or SAP Gateway in a 4xx or 5xx is decoded; any other body
 * gives none and is no error of its own. The caller owns *out until cw_upload_error_free; it needs
 * no engine. *out is NULL unless CW_OK. Blocks: no. Signals: not safe.
 * CW_OK (it failed) · CW_END (it went well: 2xx, and no error) · CW_E_ARGUMENT (a status below 0, a
 * string or list that is not valid) · CW_E_STRUCT_SIZE · CW_E_STRUCT_TAIL · CW_E_MEMORY */
cw_status cw_network_error_from(const cw_network_result *result, const cw_network_error **out);

/* Writes a record of it under the host's logger: method, address and the English words are its
 * message; its fields are http.request.method, url.full, http.status, cause, outcome, location,
 * retry_after_s, transaction.id, error.code, error.message, error.detail (the first 8) and http.id,
 * the exchange that it belongs to; what is not known is left out. Secrets in them are replaced by
 * the engine's rules for captured exchanges (cw_http_options). more: NULL, or what the record has
 * besides, as it is: a message that stands before ours, fields behind ours, place, ids, time, an
 * exception; its level 0, or NULL: CW_LEVEL_WARN for redirections and 4xx, CW_LEVEL_ERROR for the
 * rest. Blocks, overflow: as cw_write_record. Signals: not safe.
 * CW_OK · CW_DISABLED · CW_E_ARGUMENT · CW_E_LEVEL · CW_E_STRUCT_SIZE · CW_E_STRUCT_TAIL ·
 * CW_E_CLOSED · CW_E_FULL · CW_E_LIMIT · CW_E_MEMORY */
cw_status cw_network_error_log(cw_logger *logger, const cw_network_error *error,
                               const cw_record *more);

#ifdef __cplusplus
}
#endif
#endif
