/* Finds libcurl and forwards to it. The table is written once, under pthread_once, before any
 * reader can have been told that it is there. dlclose is never called: libcurl's TLS libraries
 * leave destructors and atexit handlers behind that must stay mapped. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#define CURL_DISABLE_TYPECHECK 1
#include "CCurl.h"
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <time.h>
#undef curl_easy_setopt
#undef curl_easy_getinfo

/* INVARIANT: member names are libcurl's, without the prefix. curl_multi_poll came with 7.66. */
#define CURL_SYMBOLS(X)                                                                            \
    X(global_init) X(easy_init) X(easy_setopt) X(easy_getinfo) X(easy_reset) X(easy_cleanup)       \
    X(easy_strerror) X(multi_init) X(multi_add_handle) X(multi_remove_handle) X(multi_perform)     \
    X(multi_poll) X(multi_info_read) X(multi_cleanup) X(slist_append) X(slist_free_all)

struct curl_table {
#define X(name) __typeof__(&curl_##name) name;
    CURL_SYMBOLS(X)
#undef X
};

static struct curl_table curl;
static pthread_once_t load_once = PTHREAD_ONCE_INIT;
static int load_status = -1;
static char load_error[256];

static int resolve(void *library, struct curl_table *table, char *error, size_t bytes) {
#define X(name)                                                                                    \
    *(void **)&table->name = dlsym(library, "curl_" #name);                                        \
    if (!table->name) {                                                                            \
        snprintf(error, bytes, "libcurl is too old: it has no curl_%s", #name);                    \
        return -1;                                                                                 \
    }
    CURL_SYMBOLS(X)
#undef X
    return 0;
}

/* libcurl writes the keys of its TLS connections to the file that this names. In a program with
 * more rights than its caller, the caller has named it. Emptied in place: unsetenv would move
 * variables that other threads may be reading. */
static void forget_key_log(void) {
    char *name = getauxval(AT_SECURE) ? getenv("SSLKEYLOGFILE") : NULL;
    if (name) name[0] = 0;
}

static void load(void) {
    forget_key_log();
    static const char *const names[] = {"libcurl.so.4", "libcurl-gnutls.so.4"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        void *library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
        if (!library) continue;
        struct curl_table found;
        if (resolve(library, &found, load_error, sizeof load_error) != 0) continue;
        if (found.global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
            snprintf(load_error, sizeof load_error, "libcurl could not be initialised");
            continue;
        }
        curl = found;
        load_error[0] = 0;
        load_status = 0;
        return;
    }
    if (!load_error[0])
        snprintf(load_error, sizeof load_error,
                 "libcurl.so.4 was not found; install libcurl 7.66 or newer to upload");
}

int cwi_curl_load(void) {
    pthread_once(&load_once, load);
    return load_status;
}

const char *cwi_curl_load_error(void) { return load_status == 0 ? "" : load_error; }

int cwi_curl_probe(const char *name, char *error, size_t error_bytes) {
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        snprintf(error, error_bytes, "%s was not found", name);
        return -1;
    }
    struct curl_table found;
    return resolve(library, &found, error, error_bytes);
}

int cwi_curl_session_open(cwi_curl_session *session) {
    session->easy = curl.easy_init();
    session->multi = curl.multi_init();
    if (session->easy && session->multi) return 0;
    cwi_curl_session_close(session);
    return -1;
}

void cwi_curl_session_reset(cwi_curl_session *session) { curl.easy_reset(session->easy); }

/* A TLS library may write to a closed socket without MSG_NOSIGNAL, also for its farewell when a
 * kept connection is closed: SIGPIPE is blocked meanwhile, and one that arose here is taken off
 * again. */
struct pipe_hold {
    sigset_t before;
    bool was_pending;
};

static void hold_pipe(struct pipe_hold *hold) {
    sigset_t pipe_set, pending;
    sigemptyset(&pipe_set);
    sigaddset(&pipe_set, SIGPIPE);
    sigpending(&pending);
    hold->was_pending = sigismember(&pending, SIGPIPE) == 1;
    pthread_sigmask(SIG_BLOCK, &pipe_set, &hold->before);
}

static void release_pipe(const struct pipe_hold *hold) {
    if (!hold->was_pending) {
        sigset_t pipe_set;
        sigemptyset(&pipe_set);
        sigaddset(&pipe_set, SIGPIPE);
        struct timespec none = {0, 0};
        sigtimedwait(&pipe_set, NULL, &none);
    }
    pthread_sigmask(SIG_SETMASK, &hold->before, NULL);
}

void cwi_curl_session_close(cwi_curl_session *session) {
    struct pipe_hold hold;
    hold_pipe(&hold);
    if (session->easy) curl.easy_cleanup(session->easy);
    if (session->multi) curl.multi_cleanup(session->multi);
    release_pipe(&hold);
    session->easy = NULL;
    session->multi = NULL;
}

CURLcode cwi_curl_set_long(CURL *easy, CURLoption option, long value) {
    return curl.easy_setopt(easy, option, value);
}
CURLcode cwi_curl_set_offset(CURL *easy, CURLoption option, int64_t value) {
    return curl.easy_setopt(easy, option, (curl_off_t)value);
}
CURLcode cwi_curl_set_text(CURL *easy, CURLoption option, const char *value) {
    return curl.easy_setopt(easy, option, value);
}
CURLcode cwi_curl_set_list(CURL *easy, CURLoption option, struct curl_slist *value) {
    return curl.easy_setopt(easy, option, value);
}
CURLcode cwi_curl_set_errors(CURL *easy, char *buffer) {
    return curl.easy_setopt(easy, CURLOPT_ERRORBUFFER, buffer);
}

CURLcode cwi_curl_set_callbacks(CURL *easy, cwi_curl_read_fn read, cwi_curl_seek_fn seek,
                                cwi_curl_write_fn write, cwi_curl_write_fn header, void *user) {
    CURLcode code = CURLE_OK;
    if (!code) code = curl.easy_setopt(easy, CURLOPT_READFUNCTION, read);
    if (!code) code = curl.easy_setopt(easy, CURLOPT_READDATA, user);
    if (!code) code = curl.easy_setopt(easy, CURLOPT_SEEKFUNCTION, seek);
    if (!code) code = curl.easy_setopt(easy, CURLOPT_SEEKDATA, user);
    if (!code) code = curl.easy_setopt(easy, CURLOPT_WRITEFUNCTION, write);
    if (!code) code = curl.easy_setopt(easy, CURLOPT_WRITEDATA, user);
    if (!code) code = curl.easy_setopt(easy, CURLOPT_HEADERFUNCTION, header);
    if (!code) code = curl.easy_setopt(easy, CURLOPT_HEADERDATA, user);
    return code;
}

/* The words came with 7.85, which calls the numbers deprecated. By number, for either may be
 * missing in the header. */
CURLcode cwi_curl_only_http(CURL *easy) {
    const CURLoption words = (CURLoption)10318, numbers = (CURLoption)181;
    CURLcode code = curl.easy_setopt(easy, words, "http,https");
    if (code != CURLE_UNKNOWN_OPTION) return code;
    return curl.easy_setopt(easy, numbers, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
}

static CURLcode drive(cwi_curl_session *session, cwi_curl_tick_fn tick, void *user) {
    for (;;) {
        int running = 0;
        if (curl.multi_perform(session->multi, &running) != CURLM_OK) return CURLE_FAILED_INIT;
        int left;
        const CURLMsg *message;
        while ((message = curl.multi_info_read(session->multi, &left)))
            if (message->msg == CURLMSG_DONE) return message->data.result;
        if (!running) return CURLE_FAILED_INIT;
        if (!tick(user)) return CURLE_ABORTED_BY_CALLBACK;
        CURLMcode polled = curl.multi_poll(session->multi, NULL, 0, 50, NULL);
        if (polled != CURLM_OK) return CURLE_FAILED_INIT;
    }
}

CURLcode cwi_curl_run(cwi_curl_session *session, cwi_curl_tick_fn tick, void *user) {
    struct pipe_hold hold;
    hold_pipe(&hold);
    CURLcode code = CURLE_FAILED_INIT;
    if (curl.multi_add_handle(session->multi, session->easy) == CURLM_OK) {
        code = drive(session, tick, user);
        curl.multi_remove_handle(session->multi, session->easy);
    }
    release_pipe(&hold);
    return code;
}

long cwi_curl_response_code(CURL *easy) {
    long code = 0;
    curl.easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &code);
    return code;
}

long cwi_curl_connect_code(CURL *easy) {
    long code = 0;
    curl.easy_getinfo(easy, CURLINFO_HTTP_CONNECTCODE, &code);
    return code;
}

int64_t cwi_curl_pretransfer_us(CURL *easy) {
    curl_off_t us = 0;
    curl.easy_getinfo(easy, CURLINFO_PRETRANSFER_TIME_T, &us);
    return us;
}

const char *cwi_curl_error_text(CURLcode code) { return curl.easy_strerror(code); }

struct curl_slist *cwi_curl_list_append(struct curl_slist *list, const char *line) {
    return curl.slist_append(list, line);
}

void cwi_curl_list_free(struct curl_slist *list) {
    for (struct curl_slist *line = list; line; line = line->next)
        for (volatile char *at = line->data; *at; at++) *at = 0;
    curl.slist_free_all(list);
}
