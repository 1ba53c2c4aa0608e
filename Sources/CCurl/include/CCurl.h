/* libcurl, opened with dlopen at the first upload and never linked: a host that does not upload
 * pays nothing for it, and a machine without it gets a status. Only libcurl's headers are needed to
 * build.
 *
 * Every function but cwi_curl_load and cwi_curl_probe may be called only after cwi_curl_load
 * answered 0. A cwi_curl_session belongs to one thread at a time. Nothing here keeps state but the
 * addresses.
 */
#ifndef CORDWOOD_CURL_H
#define CORDWOOD_CURL_H
#include <curl/curl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Loads libcurl once for the process, from any thread. 0: ready. -1: not there, or too old. */
int cwi_curl_load(void);

/* Why cwi_curl_load answered -1; "" where it did not. Static. */
const char *cwi_curl_load_error(void);

/* Tries one library by name without keeping it: 0 when it has all that is needed. For tests. */
int cwi_curl_probe(const char *name, char *error, size_t error_bytes);

/* An easy handle and the multi handle that drives it and keeps its connections. */
typedef struct cwi_curl_session {
    CURL *easy;
    CURLM *multi;
} cwi_curl_session;

/* 0, or -1 where memory ran out. */
int cwi_curl_session_open(cwi_curl_session *session);
/* Forgets all options, keeps the connections. */
void cwi_curl_session_reset(cwi_curl_session *session);
/* Closes the connections, too. SIGPIPE does not reach the host. */
void cwi_curl_session_close(cwi_curl_session *session);

CURLcode cwi_curl_set_long(CURL *easy, CURLoption option, long value);
CURLcode cwi_curl_set_offset(CURL *easy, CURLoption option, int64_t value);
/* libcurl copies text (NULL takes a default away) and only keeps the address of a list. */
CURLcode cwi_curl_set_text(CURL *easy, CURLoption option, const char *value);
CURLcode cwi_curl_set_list(CURL *easy, CURLoption option, struct curl_slist *value);
CURLcode cwi_curl_set_errors(CURL *easy, char *buffer); /* CURL_ERROR_SIZE bytes, or NULL */

/* No redirection and no URL leads to another protocol. */
CURLcode cwi_curl_only_http(CURL *easy);

/* Body out, body in, header lines in; all get `user`. `seek` gives the absolute offset to go on
 * at. */
typedef size_t (*cwi_curl_read_fn)(char *into, size_t size, size_t count, void *user);
typedef int (*cwi_curl_seek_fn)(void *user, curl_off_t offset, int origin);
typedef size_t (*cwi_curl_write_fn)(char *bytes, size_t size, size_t count, void *user);
CURLcode cwi_curl_set_callbacks(CURL *easy, cwi_curl_read_fn read, cwi_curl_seek_fn seek,
                                cwi_curl_write_fn write, cwi_curl_write_fn header, void *user);

/* Runs one transfer. `tick` is asked at least every 50 ms, on this thread, and ends it by answering
 * false (CURLE_ABORTED_BY_CALLBACK). SIGPIPE does not reach the host. */
typedef bool (*cwi_curl_tick_fn)(void *user);
CURLcode cwi_curl_run(cwi_curl_session *session, cwi_curl_tick_fn tick, void *user);

long cwi_curl_response_code(CURL *easy);
long cwi_curl_connect_code(CURL *easy);      /* a proxy's answer to CONNECT; 0: none */
int64_t cwi_curl_pretransfer_us(CURL *easy); /* 0: no connection came to stand */
const char *cwi_curl_error_text(CURLcode code);

/* NULL: memory ran out. The lines are copied, and wiped when they are freed. */
struct curl_slist *cwi_curl_list_append(struct curl_slist *list, const char *line);
void cwi_curl_list_free(struct curl_slist *list);

/* The numbers Swift cannot see because curl.h makes them in macros. */
#define CWI_CURL_ERROR_BYTES CURL_ERROR_SIZE
#endif
