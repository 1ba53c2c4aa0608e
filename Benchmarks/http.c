/* The cost of a captured HTTP exchange to its host: a request and an answer of 1 KB of JSON each,
 * with typical headers; begin, answer and end together.
 *   http STORE times N    one by one, in bursts with pauses, as in a client's threads; then
 *                         cw_http_begin alone with capture off. Prints a line of JSON: mean and
 *                         percentiles in ns, and the writing thread's allocations.
 *   http STORE count N    N / 4 exchanges, then N, for callgrind (load.h) */
#define _GNU_SOURCE 1
#include <cordwood/cordwood.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BURST = 50, BURSTS_MAX = 4000, OFF_CALLS = 10000000 };

static double now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static cw_str text(const char *data) {
    cw_str result = {data, strlen(data)};
    return result;
}

static cw_http_header header(const char *name, const char *value) {
    cw_http_header result = {text(name), text(value)};
    return result;
}

/* 1,000 bytes or a little more. */
static void fill(char *body, size_t size, const char *first) {
    size_t used = (size_t)snprintf(body, size, "{%s,\"items\":[", first);
    for (int i = 0; used < 985; i++)
        used += (size_t)snprintf(body + used, size - used,
                                 "%s{\"id\":%d,\"sku\":\"A-%05d\",\"price\":%d.25}", i ? "," : "",
                                 1000 + i, i * 7919, i * 3);
    snprintf(body + used, size - used, "]}");
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* ── allocations of this thread ── */

static __thread uint64_t allocations;
void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *malloc(size_t size) { allocations++; return __libc_malloc(size); }
void *calloc(size_t count, size_t size) { allocations++; return __libc_calloc(count, size); }
void *realloc(void *old, size_t size) { allocations++; return __libc_realloc(old, size); }

/* ── exchanges ── */

static char sent[1200], got[1200];
static cw_http_header asked[5], answered[4];
static cw_http_request request;
static struct cw_http_response response;
static cw_http_outcome outcome;

static void prepare(void) {
    fill(sent, sizeof sent, "\"customer\":\"C-17\",\"password\":\"hunter2\",\"express\":true");
    fill(got, sizeof got, "\"order\":4711,\"state\":\"accepted\",\"total\":129.5");
    asked[0] = header("Host", "api.example.com");
    asked[1] = header("User-Agent", "bench/1.0");
    asked[2] = header("Accept", "application/json");
    asked[3] = header("Content-Type", "application/json");
    asked[4] = header("Authorization", "Bearer 0123456789abcdef");
    answered[0] = header("Date", "Sun, 22 Nov 2026 16:00:00 GMT");
    answered[1] = header("Content-Type", "application/json; charset=utf-8");
    answered[2] = header("Content-Length", "1000");
    answered[3] = header("Set-Cookie", "session=0123456789; Path=/; HttpOnly");
    request.struct_size = sizeof request;
    request.method = text("POST");
    request.url = text("https://api.example.com/v1/orders?page=2&limit=50");
    request.headers = asked;
    request.header_count = sizeof asked / sizeof *asked;
    request.body = text(sent);
    response.struct_size = sizeof response;
    response.status = 200;
    response.headers = answered;
    response.header_count = sizeof answered / sizeof *answered;
    response.body = text(got);
    response.protocol = "http/1.1";
    outcome.struct_size = sizeof outcome;
    outcome.wait_ns = 12000000;
}

/* Not inlined: callgrind counts from here. */
__attribute__((noinline)) static void write_http(cw_engine *engine, long count) {
    for (long i = 0; i < count; i++) {
        cw_http_exchange *exchange = NULL;
        if (cw_http_begin(engine, &request, &exchange) != CW_OK ||
            cw_http_response(exchange, &response) != CW_OK ||
            cw_http_end(&exchange, &outcome) != CW_OK)
            exit(1);
    }
}

static void times(cw_engine *engine, cw_http_options *capture, long wanted) {
    static double single[BURSTS_MAX * BURST];
    long bursts = wanted / BURST < BURSTS_MAX ? wanted / BURST : BURSTS_MAX;
    struct timespec pause = {0, 2000000};
    double sum = 0;
    write_http(engine, BURST); /* until buffers and chunks have grown */
    uint64_t allocated = allocations;
    for (long burst = 0; burst < bursts; burst++) {
        double before = now_ns();
        for (int i = 0; i < BURST; i++) {
            write_http(engine, 1);
            double after = now_ns();
            single[burst * BURST + i] = after - before;
            sum += after - before;
            before = after;
        }
        nanosleep(&pause, NULL);
    }
    allocated = allocations - allocated;
    long count = bursts * BURST;
    qsort(single, (size_t)count, sizeof *single, ascending);

    capture->enabled = 0;
    if (cw_http_options_set(engine, capture) != CW_OK) exit(1);
    double before = now_ns();
    for (int i = 0; i < OFF_CALLS; i++) {
        cw_http_exchange *exchange = NULL;
        if (cw_http_begin(engine, &request, &exchange) != CW_DISABLED) exit(1);
    }
    double off = (now_ns() - before) / OFF_CALLS;
    printf("{\"exchanges\":%ld,\"mean_ns\":%.0f,\"p50_ns\":%.0f,\"p99_ns\":%.0f,\"p999_ns\":%.0f,"
           "\"off_ns\":%.2f,\"body_bytes\":%zu,\"allocations\":%llu}\n",
           count, sum / (double)count, single[count / 2], single[count * 99 / 100],
           single[count * 999 / 1000], off, strlen(sent) + strlen(got),
           (unsigned long long)allocated);
}

int main(int argc, char **argv) {
    long wanted = argc > 3 ? atol(argv[3]) : 0;
    if (wanted < BURST) return 2;
    cw_options options;
    cw_options_init(&options, sizeof options);
    options.directory = argv[1];
    cw_engine *engine = NULL;
    if (cw_open(&options, &engine) != CW_OK) return 1;
    cw_http_options capture;
    cw_http_options_init(&capture, sizeof capture);
    capture.enabled = 1;
    if (cw_http_options_set(engine, &capture) != CW_OK) return 1;
    prepare();
    if (strcmp(argv[2], "times") == 0)
        times(engine, &capture, wanted);
    else
        write_http(engine, wanted / 4), write_http(engine, wanted);
    cw_close(&engine, 10000);
    return 0;
}
