/* Reads a store back and compares every record with the one that load.h's workload wrote:
 *     check STORE WORKLOAD
 * Within a thread the records must be 0, 1, 2 … in order, each with its own data. Prints one JSON
 * line: records, threads, wrong (not the one expected), damaged (places the reader reported). */
#include <cordwood/cordwood.h>

#include "load.h"

enum { CHECK_THREADS_MAX = 16, SHOWN_MAX = 3, TEXT = 512 };

static void engine_open(const char *where) { (void)where; }
static void engine_close(void) {}
static void engine_say(void) {}
/* They make the text of record `first`, as printf would. */
static char expected[TEXT];
WRITER write_w1(size_t first, size_t count) {
    (void)first, (void)count;
    strcpy(expected, "a record of constant text");
}
WRITER write_w2(size_t first, size_t count) {
    (void)count;
    snprintf(expected, sizeof expected, "order %d at %f", (int)first, prices[first % VARIANTS]);
}
WRITER write_w3(size_t first, size_t count) {
    (void)count;
    snprintf(expected, sizeof expected, "user %s did %d", names[first % VARIANTS], (int)first);
}
WRITER write_w4(size_t first, size_t count) {
    (void)count;
    memcpy(expected, messages[first % VARIANTS], MESSAGE + 1);
}

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    load_data();
    load_writer make = load_workload(argv[2]);
    cw_reader_options options = {.struct_size = sizeof options, .logger = "bench.hot"};
    cw_reader *reader = NULL;
    if (cw_reader_open(argv[1], &options, &reader) != CW_OK) {
        char why[512] = "";
        cw_last_error(why, sizeof why);
        fprintf(stderr, "check: %s\n", why);
        return 1;
    }
    struct {
        uint64_t thread, next;
    } threads[CHECK_THREADS_MAX] = {{0, 0}};
    size_t thread_count = 0;
    uint64_t records = 0, wrong = 0, damaged = 0;
    cw_record_view view = {.struct_size = sizeof view};
    cw_status status;
    while ((status = cw_reader_next(reader, &view)) != CW_END) {
        if (status == CW_E_DAMAGED) {
            damaged++;
            continue;
        }
        if (status != CW_OK) load_fail(cw_status_name(status));
        size_t at = 0;
        while (at < thread_count && threads[at].thread != view.thread_id) at++;
        if (at == CHECK_THREADS_MAX) load_fail("more threads than the workload has");
        if (at == thread_count) threads[thread_count++].thread = view.thread_id;
        make((size_t)threads[at].next, 1);
        size_t length = strlen(expected);
        if (view.message.length != length || memcmp(view.message.data, expected, length) != 0) {
            if (++wrong <= SHOWN_MAX)
                fprintf(stderr, "check: record %llu is \"%.*s\", not \"%s\"\n",
                        (unsigned long long)threads[at].next, (int)view.message.length,
                        view.message.data, expected);
        }
        threads[at].next++;
        records++;
    }
    cw_reader_close(&reader);
    printf("{\"records\":%llu,\"threads\":%zu,\"wrong\":%llu,\"damaged\":%llu}\n",
           (unsigned long long)records, thread_count, (unsigned long long)wrong,
           (unsigned long long)damaged);
    return 0;
}
