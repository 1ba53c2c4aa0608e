/* Records like a real service's, the same for every engine. Nine places, some of which log much
 * more than others; growing ids, prices, names, and durations with a long tail. The threads take
 * turns of a few records. Numbers and turns are the same in each run, and so are the times of an
 * engine whose clock the program keeps (environment.h). A program defines
 *
 *     void engine_open(const char *where)   where: a directory that exists and is empty
 *     void engine_close(void)               returns when all logged records are on file
 *     void engine_say(void)                 further members of the JSON object: ",\"name\":1"
 *     INFO, DEBUG, WARN(printf, braces, …)  log one record, by the one format or the other
 *     LINE(text, length)                    logs a ready message
 *
 * and ends in `int main(…) { return service_main(argc, argv); }`. Then
 *
 *     PROGRAM WHERE RECORDS THREADS
 *
 * logs RECORDS records, and prints one JSON line. With -DLINES the text of all records is made
 * first, and one thread logs it, as a host does that has only text. */
#ifndef BENCH_SERVICE_H
#define BENCH_SERVICE_H

#include "environment.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>

enum { THREADS_MAX = 16, NAMES = 200, TURN_RECORDS_MAX = 16, LINE_MAX_BYTES = 64 };

static char names[NAMES][16];
static unsigned thread_count;
static unsigned long records_left[THREADS_MAX];
/* Posted when a thread's turn begins. */
static sem_t turns[THREADS_MAX];

#ifdef LINES
static char (*lines)[LINE_MAX_BYTES];
static size_t line_count;
/* The thread whose turn it is takes the next line. */
#define SAY(printf, ...) \
    ((void)snprintf(lines[line_count++], LINE_MAX_BYTES, printf, ##__VA_ARGS__))
#define SAY_INFO(printf, braces, ...) SAY(printf, ##__VA_ARGS__)
#define SAY_DEBUG SAY_INFO
#define SAY_WARN SAY_INFO
#else
#define SAY_INFO INFO
#define SAY_DEBUG DEBUG
#define SAY_WARN WARN
#endif

static uint64_t step(uint64_t *state) {
    *state ^= *state << 13, *state ^= *state >> 7, *state ^= *state << 17;
    return *state;
}

/* Mostly short, some a thousand times as long. */
static int duration(uint64_t *state) {
    uint64_t bits = step(state);
    return (int)((bits >> 40 & 1023) + 40) << (bits & 15 ? (bits & 1) : (bits >> 8 & 7));
}

/* Begins the turn of the next thread that has records left. */
static void pass_on(unsigned thread) {
    for (unsigned i = 1; i <= thread_count; i++) {
        unsigned next = (thread + i) % thread_count;
        if (records_left[next]) {
            sem_post(&turns[next]);
            return;
        }
    }
}

static void *work(void *number) {
    unsigned thread = (unsigned)(uintptr_t)number;
    uint64_t state = 0x9E3779B97F4A7C15u * (thread + 1);
    int order = (int)thread * 100000;
    uint64_t offset = 0, turn_state = ~state;
    unsigned turn_left = 0;
    for (unsigned long i = 0; records_left[thread]; i++) {
        if (!turn_left) {
            if (i) pass_on(thread);
            sem_wait(&turns[thread]);
            turn_left = (unsigned)(step(&turn_state) % TURN_RECORDS_MAX) + 1;
        }
        unsigned place = (unsigned)(step(&state) % 100);
        const char *name = names[step(&state) % NAMES];
        double price = (double)(step(&state) % 9000 + 999) / 100;
        tell_time();
        if (place < 30)
            SAY_INFO("request %d took %d us", "request {} took {} us", order, duration(&state));
        else if (place < 50)
            SAY_INFO("user %s did %d", "user {} did {}", name, (int)(step(&state) % 12));
        else if (place < 65)
            SAY_INFO("order %d at %.2f", "order {} at {:.2f}", order++, price);
        else if (place < 77)
            SAY_DEBUG("cache %s hit after %d us", "cache {} hit after {} us", name,
                      duration(&state));
        else if (place < 87)
            SAY_INFO("payment %d of %.2f accepted", "payment {} of {:.2f} accepted", order, price);
        else if (place < 93)
            SAY_WARN("session of %s has %d items", "session of {} has {} items", name,
                     (int)(i & 31));
        else if (place < 96)
            SAY_INFO("load %.1f on %d cores", "load {:.1f} on {} cores", price / 10, 8);
        else if (place < 99)
            SAY_INFO("read %lu bytes at %lu", "read {} bytes at {}", (unsigned long)(place * 4096),
                     (unsigned long)(offset += place * 4096));
        else SAY_INFO("heartbeat", "heartbeat");
        turn_left--;
        records_left[thread]--;
    }
    pass_on(thread);
    return NULL;
}

static void serve(void) {
    pthread_t started[THREADS_MAX];
    for (unsigned i = 0; i < thread_count; i++)
        if (pthread_create(&started[i], NULL, work, (void *)(uintptr_t)i)) exit(1);
    pass_on(thread_count - 1);
    for (unsigned i = 0; i < thread_count; i++) pthread_join(started[i], NULL);
}

static int service_main(int argc, char **argv) {
    thread_count = argc == 4 ? (unsigned)atoi(argv[3]) : 0;
    if (!thread_count || thread_count > THREADS_MAX) return 2;
    unsigned long records = strtoul(argv[2], NULL, 10) / thread_count;
    for (unsigned i = 0; i < thread_count; i++) {
        records_left[i] = records;
        if (sem_init(&turns[i], 0, 0)) return 1;
    }
    for (int i = 0; i < NAMES; i++) snprintf(names[i], sizeof names[i], "customer-%d", i * i % 977);
#ifdef LINES
    lines = (char (*)[LINE_MAX_BYTES])calloc(records * thread_count, sizeof *lines);
    if (!lines) return 1;
    serve();
    engine_open(argv[1]);
    COUNT_BEGIN();
    for (size_t i = 0; i < line_count; i++) {
        tell_time();
        LINE(lines[i], strlen(lines[i]));
    }
#else
    engine_open(argv[1]);
    COUNT_BEGIN();
    serve();
#endif
    engine_close();
    COUNT_END();
    printf("{\"records\":%lu", records * thread_count);
    engine_say();
    printf("}\n");
    return 0;
}

#endif
