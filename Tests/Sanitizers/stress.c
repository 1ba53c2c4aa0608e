/* The load for the sanitizers and valgrind: threads append text, deferred and rich records while
 * others roll, flush, wait for archives, read the store and come and go. Then a signal storm, a
 * forked child, and close. `stress STORE SECONDS`. Exits with 0 if every record of every thread was
 * read back. run.py builds and runs it once under each. */
#define _GNU_SOURCE 1
#include <cordwood/cordwood.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { WRITERS = 4, RECORDS_MAX = 400000 };

static const char *store;
static cw_engine *engine;
static cw_logger *logger;
static cw_transaction *transaction; /* of all writers */
static atomic_int ending;
static atomic_ullong written;
static uint64_t wrote[WRITERS];

#define OK(expression)                                                                             \
    do {                                                                                           \
        if (!(expression)) {                                                                       \
            char why[300] = "";                                                                    \
            cw_last_error(why, sizeof why);                                                        \
            fprintf(stderr, "stress.c:%d: %s: %s\n", __LINE__, #expression, why);                  \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static void *write_records(void *argument) {
    unsigned writer = (unsigned)(uintptr_t)argument;
    uint64_t count = 0;
    bool attached = false;
    while (!ending && count < RECORDS_MAX) {
        char text[200];
        int length = snprintf(text, sizeof text, "w%u %llu %0*d", writer,
                              (unsigned long long)count, (int)(count % 120), 0);
        count++;
        OK(cw_write(logger, CW_LEVEL_INFO, text, (size_t)length) == CW_OK);
        if (count % 3 == 0) {
            CW_INFO(logger, "w%u %llu of %s", writer, (unsigned long long)count, "CW_LOG");
            count++;
        }
        if (count % 16 == 0) {
            char number[24];
            int digits = snprintf(number, sizeof number, "w%u %llu", writer,
                                  (unsigned long long)count);
            count++;
            cw_field field = {{"key", 3}, CW_TYPE_INT, {.i = (int64_t)count}};
            cw_record record = {.struct_size = sizeof record, .level = CW_LEVEL_WARN,
                                .message = {number, (size_t)digits}, .fields = &field,
                                .field_count = 1, .line = 7, .file = {"stress.c", 8}};
            OK(cw_write_record(logger, &record) == CW_OK);
        }
        if (!attached && count % 64 < 20) {
            OK(cw_transaction_attach(transaction) == CW_OK);
            attached = true;
            OK(cw_transaction_event(transaction, 1, count % 128 ? "42" : NULL, NULL) == CW_OK);
        }
        if (attached && count % 64 >= 20) {
            OK(cw_transaction_detach(transaction) == CW_OK);
            attached = false;
        }
        if (count % 1000 < 2) cw_context_set("batch", count % 2 ? "odd" : NULL);
    }
    if (attached) OK(cw_transaction_detach(transaction) == CW_OK);
    wrote[writer] = count;
    written += count;
    return NULL;
}

/* Threads that log once: their blocks are returned and reused. */
static void *write_once(void *argument) {
    OK(cw_write(logger, CW_LEVEL_INFO, "once", 4) == CW_OK);
    return argument;
}
static void *come_and_go(void *argument) {
    while (!ending) {
        pthread_t thread;
        OK(pthread_create(&thread, NULL, write_once, NULL) == 0);
        pthread_join(thread, NULL);
        usleep(500);
    }
    return argument;
}

static void *roll(void *argument) {
    for (int i = 0; !ending; i++) {
        OK(cw_roll(engine) == CW_OK);
        if (i % 4 == 0) OK(cw_archive_wait(engine, 60000) == CW_OK);
        if (i % 4 == 2) OK(cw_flush(engine, CW_DURABLE_MACHINE, 60000) == CW_OK);
        cw_stats stats;
        OK(cw_stats_get(engine, &stats, sizeof stats) == CW_OK);
        OK(cw_level_set(engine, "other", i % 2 ? CW_LEVEL_DEBUG : CW_LEVEL_WARN) == CW_OK);
        char name[32];
        snprintf(name, sizeof name, "other.%d", i % 50);
        cw_transaction_name names[] = {{17, 1, name}, {17, i, "new"}};
        OK(cw_transaction_names_set(engine, names, i < 4000 ? 2 : 1) == CW_OK);
        cw_logger *found = NULL;
        OK(cw_logger_get(engine, name, &found) == CW_OK);
        cw_write(found, CW_LEVEL_DEBUG, "sometimes", 9);
        usleep(5000);
    }
    return argument;
}

static uint64_t read_all(uint64_t counts[WRITERS], bool in_order) {
    cw_reader *reader = NULL;
    uint64_t records = 0;
    OK(cw_reader_open(store, NULL, &reader) == CW_OK);
    cw_record_view view = {.struct_size = sizeof view};
    while (cw_reader_next(reader, &view) == CW_OK) {
        records++;
        char text[32] = "";
        unsigned writer;
        unsigned long long number;
        memcpy(text, view.message.data, view.message.length < 31 ? view.message.length : 31);
        if (sscanf(text, "w%u %llu", &writer, &number) != 2 || writer >= WRITERS) continue;
        if (in_order) counts[writer]++;
    }
    OK(cw_reader_close(&reader) == CW_OK);
    return records;
}
static void *read_along(void *argument) {
    uint64_t counts[WRITERS] = {0};
    while (!ending) {
        read_all(counts, false);
        usleep(20000);
    }
    return argument;
}

static void on_alarm(int number) {
    (void)number;
    cw_write(logger, CW_LEVEL_INFO, "alarm", 5);
}

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    store = argv[1];
    cw_options options;
    cw_options_init(&options, sizeof options);
    options.directory = store;
    options.segment_bytes = 256 << 10;
    OK(cw_open(&options, &engine) == CW_OK);
    OK(cw_logger_get(engine, "stress", &logger) == CW_OK);
    OK(cw_transaction_begin(engine, 17, &transaction) == CW_OK);
    struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
    sigaction(SIGALRM, &action, NULL);
    struct itimerval often = {{0, 2000}, {0, 2000}}, never = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &often, NULL);

    pthread_t threads[WRITERS + 3];
    for (uintptr_t i = 0; i < WRITERS; i++)
        OK(pthread_create(&threads[i], NULL, write_records, (void *)i) == 0);
    OK(pthread_create(&threads[WRITERS], NULL, come_and_go, NULL) == 0);
    OK(pthread_create(&threads[WRITERS + 1], NULL, roll, NULL) == 0);
    OK(pthread_create(&threads[WRITERS + 2], NULL, read_along, NULL) == 0);
    struct timespec bound, now;
    clock_gettime(CLOCK_MONOTONIC, &bound);
    bound.tv_sec += atoi(argv[2]);
    do {
        usleep(50000);
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while (now.tv_sec < bound.tv_sec);
    ending = 1;
    setitimer(ITIMER_REAL, &never, NULL);
    for (int i = 0; i < WRITERS + 3; i++) pthread_join(threads[i], NULL);
    OK(cw_transaction_end(&transaction) == CW_OK);
    OK(cw_close(&engine, 60000) == CW_OK);
    OK(cw_write(logger, CW_LEVEL_INFO, "late", 4) == CW_E_CLOSED);

    uint64_t counts[WRITERS] = {0};
    uint64_t records = read_all(counts, true);
    for (int i = 0; i < WRITERS; i++)
        if (counts[i] != wrote[i]) {
            fprintf(stderr, "writer %d: %llu of %llu\n", i, (unsigned long long)counts[i],
                    (unsigned long long)wrote[i]);
            return 1;
        }
    printf("%llu records, %llu of writers\n", (unsigned long long)records,
           (unsigned long long)written);
    return 0;
}
