/* The cost of an idle engine to its host: idle [STORE]. Compiled without ENGINE, it is the program
 * that does nothing. Prints its resident memory, its own part of that (no pages of files, which
 * others may map, too), the time of cw_open, and how often the engine's threads woke in a second.
 * With SHORT it ends at once, so that strace counts only its start and end. */
#include "wakes.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#ifdef ENGINE
#include <cordwood/cordwood.h>
#endif

static double now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

/* A line of the process's status, in KiB; 0: there is no such line. */
static long status_kib(const char *name) {
    char line[256];
    long kib = 0;
    size_t length = strlen(name);
    FILE *file = fopen("/proc/self/status", "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, name, length) == 0 && sscanf(line + length, ": %ld", &kib) == 1) break;
    if (file != NULL) fclose(file);
    return kib;
}

int main(int argc, char **argv) {
    (void)argc;
    (void)argv;
    double begin = now_ms();
#ifdef ENGINE
    cw_options options;
    cw_options_init(&options, sizeof options);
    options.directory = argc > 1 ? argv[1] : NULL;
    cw_engine *engine = NULL;
    cw_logger *logger = NULL;
    if (cw_open(&options, &engine) != CW_OK) return 1;
    if (cw_logger_get(engine, "bench.idle", &logger) != CW_OK) return 1;
    if (cw_write(logger, CW_LEVEL_INFO, "one record", 10) != CW_OK) return 1;
#endif
    double open_ms = now_ms() - begin;
#ifndef SHORT
    /* Until the helpers have started and done their first rounds. */
    struct timespec pause = {2, 0};
    nanosleep(&pause, NULL);
    long before = helper_wakes();
    nanosleep(&pause, NULL);
    long after = helper_wakes();
    printf("{\"resident_kib\":%ld,\"own_kib\":%ld,\"open_ms\":%.2f,\"wakes_s\":%.1f}\n",
           status_kib("VmRSS"), status_kib("RssAnon"), open_ms, (double)(after - before) / 2);
#else
    (void)open_ms, (void)helper_wakes, (void)status_kib;
#endif
#ifdef ENGINE
    cw_close(&engine, 10000);
#endif
    return 0;
}
