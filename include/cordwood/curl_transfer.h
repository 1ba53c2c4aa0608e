/* Turns one libcurl transfer, as its debug callback reports it, into captured exchanges by the
 * calls of http.h. curl.h makes these calls. A host whose libcurl another language wraps may make
 * them itself. The library calls no libcurl on a host's handle, which may belong to another copy of
 * libcurl: the host passes the values of curl_easy_getinfo as plain numbers and strings. C11 and
 * C++17. */
#ifndef CORDWOOD_CURL_TRANSFER_H
#define CORDWOOD_CURL_TRANSFER_H

#include "cordwood.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cw_curl_transfer cw_curl_transfer; /* one transfer, redirections included */

#define CW_CURL_ID_BYTES 17 /* of an exchange's id, with its NUL */

/* The values that libcurl reports about a transfer. 0 and NULL: not known. Strings are valid during
 * the call. */
typedef struct cw_curl_facts {
    uint32_t struct_size;
    int32_t code;       /* the transfer's CURLcode; used by cw_curl_transfer_end */
    uint64_t now_ns;    /* UTC, ns since 1970; 0: the present time */
    int64_t dns_us;     /* CURLINFO_NAMELOOKUP_TIME_T: libcurl's clocks, which run from the */
    int64_t connect_us; /* CURLINFO_CONNECT_TIME_T     transfer's start over all redirections */
    int64_t tls_us;     /* CURLINFO_APPCONNECT_TIME_T */
    int64_t total_us;   /* CURLINFO_TOTAL_TIME_T */
    int64_t connects;   /* CURLINFO_NUM_CONNECTS */
    int32_t status;     /* CURLINFO_RESPONSE_CODE */
    int32_t port;       /* CURLINFO_PRIMARY_PORT */
    const char *address; /* CURLINFO_PRIMARY_IP */
    const char *url;     /* CURLINFO_EFFECTIVE_URL */
    const char *method;  /* CURLINFO_EFFECTIVE_METHOD */
    const char *error;   /* curl_easy_strerror(code); used if code is not 0 */
} cw_curl_facts;

/* The kinds of pieces, with libcurl's numbers (curl_infotype). Other kinds only say that time
 * passed. */
enum {
    CW_CURL_TEXT = 0,
    CW_CURL_HEADER_IN = 1,
    CW_CURL_HEADER_OUT = 2,
    CW_CURL_DATA_IN = 3,
    CW_CURL_DATA_OUT = 4
};

/* Begins a transfer. The caller owns *out until cw_curl_transfer_end. *out is NULL unless CW_OK.
 * Threads: one at a time. Blocks: no. Signals: not safe.
 * CW_OK · CW_DISABLED (capture is off) · CW_E_ARGUMENT · CW_E_MEMORY */
cw_status cw_curl_transfer_begin(cw_engine *engine, cw_curl_transfer **out);

/* Passes one call of the debug callback. Heads and bodies may come in pieces of any size; a text
 * comes whole. Pass facts with CW_CURL_TEXT and CW_CURL_HEADER_OUT. CW_CURL_HEADER_IN needs only
 * the status. Bodies need no facts: pass NULL. Blocks, overflow: as cw_write_record. Signals: not
 * safe.
 * CW_OK · CW_DISABLED (NULL) · CW_E_ARGUMENT · CW_E_STRUCT_SIZE · CW_E_STRUCT_TAIL */
cw_status cw_curl_transfer_tell(cw_curl_transfer *transfer, uint32_t kind, const void *bytes,
                                size_t length, const cw_curl_facts *facts);

/* Ends a transfer, frees it and sets *transfer to NULL, whatever the facts. id may be NULL;
 * otherwise the call writes the id of the last exchange, or "" if none was captured. Blocks,
 * overflow: as cw_write_record. Signals: not safe.
 * CW_OK · CW_DISABLED (NULL) · CW_E_ARGUMENT · CW_E_STRUCT_SIZE, CW_E_STRUCT_TAIL (it ended without
 * the facts) */
cw_status cw_curl_transfer_end(cw_curl_transfer **transfer, const cw_curl_facts *facts,
                               char id[CW_CURL_ID_BYTES]);

/* Returns the error type of a CURLcode other than 0: "dns", "connect", "timeout", "tls",
 * "cancelled" or "curl". is_packed says that the answer has a content coding, which libcurl may
 * have failed to undo. Never NULL. The string is static. Signals: safe. */
const char *cw_curl_error_type(int32_t code, bool is_packed);

#ifdef __cplusplus
}
#endif
#endif
