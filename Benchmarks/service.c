/* Records like a real service's, for archiving: service STORE RECORDS THREADS. Nine places, some of
 * which log much more than others; growing ids, prices, names, and durations with a long tail. The
 * threads take turns of a few records. Numbers and turns are the same in each run; times are the
 * clock's. */
#include <cordwood/cordwood.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS_MAX = 16, NAMES = 200, TURN_RECORDS_MAX = 16 };

static cw_logger *logger;
static char names[NAMES][16];
static unsigned thread_count;
static unsigned long records_left[THREADS_MAX];
/* Posted when a thread's turn begins. */
static sem_t turns[THREADS_MAX];

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
        if (place < 30) CW_INFO(logger, "request %d took %d us", order, duration(&state));
        else if (place < 50) CW_INFO(logger, "user %s did %d", name, (int)(step(&state) % 12));
        else if (place < 65) CW_INFO(logger, "order %d at %.2f", order++, price);
        else if (place < 77) CW_DEBUG(logger, "cache %s hit after %d us", name, duration(&state));
        else if (place < 87) CW_INFO(logger, "payment %d of %.2f accepted", order, price);
        else if (place < 93) CW_WARN(logger, "session of %s has %d items", name, (int)(i & 31));
        else if (place < 96) CW_INFO(logger, "load %.1f on %d cores", price / 10, 8);
        else if (place < 99)
            CW_INFO(logger, "read %lu bytes at %lu", (unsigned long)(place * 4096),
                    (unsigned long)(offset += place * 4096));
        else CW_INFO(logger, "heartbeat");
        turn_left--;
        records_left[thread]--;
    }
    pass_on(thread);
    return NULL;
}

int main(int count, char **arguments) {
    thread_count = count == 4 ? (unsigned)atoi(arguments[3]) : 0;
    if (!thread_count || thread_count > THREADS_MAX) return 2;
    for (unsigned i = 0; i < thread_count; i++) {
        records_left[i] = strtoul(arguments[2], NULL, 10) / thread_count;
        if (sem_init(&turns[i], 0, 0)) return 1;
    }
    for (int i = 0; i < NAMES; i++) snprintf(names[i], sizeof names[i], "customer-%d", i * i % 977);
    cw_options options;
    cw_options_init(&options, sizeof options);
    options.directory = arguments[1];
    options.level = CW_LEVEL_DEBUG;
    cw_engine *engine;
    if (cw_open(&options, &engine) || cw_logger_get(engine, "service", &logger)) return 1;
    pthread_t started[THREADS_MAX];
    for (unsigned i = 0; i < thread_count; i++)
        if (pthread_create(&started[i], NULL, work, (void *)(uintptr_t)i)) return 1;
    pass_on(thread_count - 1);
    for (unsigned i = 0; i < thread_count; i++) pthread_join(started[i], NULL);
    return cw_close(&engine, 10000) ? 1 : 0;
}
