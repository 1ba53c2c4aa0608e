/* Records like a real service's, for archiving: service STORE RECORDS THREADS. Nine places, some of
 * which log much more than others; growing ids, prices, names, and durations with a long tail. The
 * numbers are the same in each run; times are the clock's. */
#include <cordwood/cordwood.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS_MAX = 16, NAMES = 200 };

static cw_logger *logger;
static char names[NAMES][16];
static unsigned long records_each;

static uint64_t step(uint64_t *state) {
    *state ^= *state << 13, *state ^= *state >> 7, *state ^= *state << 17;
    return *state;
}

/* Mostly short, some a thousand times as long. */
static int duration(uint64_t *state) {
    uint64_t bits = step(state);
    return (int)((bits >> 40 & 1023) + 40) << (bits & 15 ? (bits & 1) : (bits >> 8 & 7));
}

static void *work(void *number) {
    unsigned thread = (unsigned)(uintptr_t)number;
    uint64_t state = 0x9E3779B97F4A7C15u * (thread + 1);
    int order = (int)thread * 100000;
    uint64_t offset = 0;
    for (unsigned long i = 0; i < records_each; i++) {
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
    }
    return NULL;
}

int main(int count, char **arguments) {
    unsigned threads = count == 4 ? (unsigned)atoi(arguments[3]) : 0;
    if (!threads || threads > THREADS_MAX) return 2;
    records_each = strtoul(arguments[2], NULL, 10) / threads;
    for (int i = 0; i < NAMES; i++) snprintf(names[i], sizeof names[i], "customer-%d", i * i % 977);
    cw_options options;
    cw_options_init(&options, sizeof options);
    options.directory = arguments[1];
    options.level = CW_LEVEL_DEBUG;
    cw_engine *engine;
    if (cw_open(&options, &engine) || cw_logger_get(engine, "service", &logger)) return 1;
    pthread_t started[THREADS_MAX];
    for (unsigned i = 0; i < threads; i++)
        if (pthread_create(&started[i], NULL, work, (void *)(uintptr_t)i)) return 1;
    for (unsigned i = 0; i < threads; i++) pthread_join(started[i], NULL);
    return cw_close(&engine, 10000) ? 1 : 0;
}
