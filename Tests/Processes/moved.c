/* A host whose store is moved or removed under it: two threads log, segments roll, and archives go
 * to CORDWOOD_TARGET if it is set, until stdin ends. Then it closes and prints how many records
 * were refused. */
#include "host.h"

#include <cordwood/upload.h>

static volatile int stop, is_removed;

static void *write_on(void *log) {
    uint32_t index = slot_take();
    for (uint64_t i = 1; !stop; i++) {
        cw_status status = write_next(log, index);
        HOLDS(status == CW_OK || (is_removed && status == CW_E_FULL));
        if (i % 16 == 0) pause_us(500);
    }
    return NULL;
}

static void *roll(void *engine) {
    while (!stop) {
        cw_status status = cw_roll(engine);
        HOLDS(status == CW_OK || status == CW_E_TIMEOUT || is_removed);
        if (getenv("CORDWOOD_TARGET")) (void)cw_upload(engine, 1000, NULL, 0);
        pause_us(20000);
    }
    return NULL;
}

static void host(int argc, char **argv) {
    is_removed = argc > 0 && !strcmp(argv[0], "removed");
    cw_logger *log;
    cw_engine *engine = open_small(1 << 20, "moved", &log);
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) {
        void *(*run)(void *) = i < 2 ? write_on : roll;
        if (pthread_create(&threads[i], NULL, run, i < 2 ? (void *)log : engine) != 0) exit(2);
    }
    printf("ready\n");
    while (getchar() != EOF) continue;
    stop = 1;
    for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
    EXPECT(CW_OK, cw_roll(engine));
    EXPECT(CW_OK, cw_archive_wait(engine, 20000));
    cw_stats stats = {.struct_size = sizeof stats};
    EXPECT(CW_OK, cw_stats_get(engine, &stats, sizeof stats));
    printf("dropped %llu\n", (unsigned long long)stats.records_dropped);
    EXPECT(CW_OK, cw_close(&engine, 20000));
}

static const test_case cases[] = {{"host", host}};
MAIN(cases)
