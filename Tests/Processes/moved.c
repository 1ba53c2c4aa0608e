/* A host whose store is moved under it: two threads log and segments roll until stdin ends; then it
 * closes and prints what was refused and what the engine made. */
#include "host.h"

static volatile int stop;

static void *roll(void *engine) {
    while (!stop) {
        cw_status status = cw_roll(engine);
        HOLDS(status == CW_OK || status == CW_E_TIMEOUT);
        pause_us(20000);
    }
    return NULL;
}

static void host(int argc, char **argv) {
    (void)argc, (void)argv;
    cw_logger *log;
    cw_engine *engine = open_small(1 << 20, "moved", &log);
    noise writers[2];
    pthread_t roller;
    for (int i = 0; i < 2; i++) {
        writers[i].burst = 16;
        noise_start(&writers[i], log, &stop, 500);
    }
    if (pthread_create(&roller, NULL, roll, engine) != 0) exit(2);
    printf("ready\n");
    while (getchar() != EOF) continue;
    stop = 1;
    for (int i = 0; i < 2; i++) pthread_join(writers[i].thread, NULL);
    pthread_join(roller, NULL);
    EXPECT(CW_OK, cw_roll(engine));
    EXPECT(CW_OK, cw_archive_wait(engine, 20000));
    cw_stats stats = {.struct_size = sizeof stats};
    EXPECT(CW_OK, cw_stats_get(engine, &stats, sizeof stats));
    printf("dropped %llu archives %llu\n", (unsigned long long)stats.records_dropped,
           (unsigned long long)stats.archives_written);
    EXPECT(CW_OK, cw_close(&engine, 20000));
}

static const test_case cases[] = {{"host", host}};
MAIN(cases)
