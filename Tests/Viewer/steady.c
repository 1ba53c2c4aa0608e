/* Writes records at a steady rate, and prints their cost for the writing thread.
 *
 *   steady STORE COUNT PER_SECOND
 *
 * Prints "ready", waits for a line, writes "steady 0", "steady 1" … in bursts of 10 ms, and prints
 * the thread's page faults and its id. Under callgrind, `burst` contains its instructions. */

#define _GNU_SOURCE
#include <cordwood/cordwood.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define BURSTS_A_SECOND 100

static long faults(void) {
    struct rusage used;
    getrusage(RUSAGE_THREAD, &used);
    return used.ru_minflt + used.ru_majflt;
}

/* Not inlined: callgrind starts counting here. */
__attribute__((noinline)) static void burst(cw_logger *log, long first, long end) {
    for (long number = first; number < end; number++) CW_INFO(log, "steady %ld", number);
}

int main(int argc, char **argv) {
    if (argc != 4) return 2;
    long count = atol(argv[2]), size = atol(argv[3]) / BURSTS_A_SECOND;
    cw_options options;
    cw_options_init(&options, sizeof options);
    options.directory = argv[1];
    cw_engine *engine;
    cw_logger *log;
    if (cw_open(&options, &engine) || cw_logger_get(engine, "app", &log)) return 1;
    cw_write(log, CW_LEVEL_INFO, "begins", 6);
    puts("ready");
    fflush(stdout);
    (void)getchar();
    long before = faults();
    struct timespec next;
    clock_gettime(CLOCK_MONOTONIC, &next);
    for (long first = 0; first < count; first += size) {
        burst(log, first, first + size < count ? first + size : count);
        next.tv_nsec += 1000000000 / BURSTS_A_SECOND;
        if (next.tv_nsec >= 1000000000) {
            next.tv_nsec -= 1000000000;
            next.tv_sec++;
        }
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
    }
    printf("%ld %ld\n", faults() - before, syscall(SYS_gettid));
    fflush(stdout);
    return cw_close(&engine, 10000);
}
