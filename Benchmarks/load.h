/* The workloads of every engine's program, so that all do the same work. A program defines
 *
 *     void engine_open(const char *where)   where: a directory that exists and is empty
 *     void engine_close(void)               returns when all logged records are on file
 *     WRITERS(w1 … w4): write_NAME(first, count) logs the records numbered first … first+count-1
 *     void engine_say(void)                 further members of the JSON object: ",\"name\":1"
 *
 * and ends in `int main(…) { return load_main(argc, argv); }`. Then
 *
 *     PROGRAM WHERE MODE N WORKLOAD [THREADS]
 *   bursts N     mean of each of N bursts of 1,000 calls, one every LOAD_PERIOD_NS (default 1 ms)
 *   sustained N  N records a thread without a pause, then engine_close
 *   paced N      N single calls at LOAD_RATE a second and thread (default a million)
 *   lasting N    N records a thread without a pause, then LOAD_SECONDS at LOAD_RATE a second and
 *                thread, in runs of 1,000; also the mean of the slowest second
 *   whole N      as sustained, in single calls, each at its own time (tell_time)
 *   count N      N / 4 calls, then N, each in one call of the writer, for callgrind
 *   kill N       calls until it is killed; the file LOAD_KEPT holds how many returned
 *
 * w1 a constant text, w2 an int and a double, w3 a string of 40 bytes and an int, w4 a ready
 * message of 100 bytes. Every thread numbers its records from 0. The data follows from the number,
 * so that check.c can verify each record that it reads back. Prints one JSON line. */
#ifndef BENCH_LOAD_H
#define BENCH_LOAD_H

#include "environment.h"
#include "histogram.h"
#include "wakes.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { MESSAGE = 100, NAME = 40, VARIANTS = 64 };
enum { BURST = 1000, WARM_BURSTS = 10, THREADS_MAX = 2, CLOCK_READS = 1000000 };
enum { SECONDS_MAX = 600 };

static char messages[VARIANTS][MESSAGE + 1], names[VARIANTS][NAME + 1];
static double prices[VARIANTS];

static void engine_open(const char *where);
static void engine_close(void);
static void engine_say(void);
/* Not inlined: callgrind counts from here. */
#define WRITER __attribute__((noinline)) static void
WRITER write_w1(size_t first, size_t count);
WRITER write_w2(size_t first, size_t count);
WRITER write_w3(size_t first, size_t count);
WRITER write_w4(size_t first, size_t count);
#ifdef LOAD_OFF
WRITER write_off(size_t first, size_t count);
#endif

typedef void (*load_writer)(size_t first, size_t count);
static load_writer write_some;

static inline void load_fail(const char *what) {
    fprintf(stderr, "load: %s\n", what);
    exit(1);
}

static inline uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Printable bytes that differ from message to message: constant data measures nothing. No '%' and
 * no brace, so that they are plain text to every engine. */
static inline void load_data(void) {
    uint64_t state = 88172645463325252u;
    for (size_t i = 0; i < VARIANTS * MESSAGE; i++) {
        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        messages[i / MESSAGE][i % MESSAGE] = (char)('&' + state % 85);
    }
    for (size_t i = 0; i < VARIANTS; i++) {
        memcpy(names[i], messages[i], NAME);
        prices[i] = (double)messages[i][0] * 1.25 + (double)i;
    }
}

static inline load_writer load_workload(const char *name) {
    if (strcmp(name, "w1") == 0) return write_w1;
    if (strcmp(name, "w2") == 0) return write_w2;
    if (strcmp(name, "w3") == 0) return write_w3;
    if (strcmp(name, "w4") == 0) return write_w4;
#ifdef LOAD_OFF
    if (strcmp(name, "off") == 0) return write_off;
#endif
    load_fail("no such workload");
    return NULL;
}

typedef struct load_job {
    const char *mode;
    size_t count, written, late;
    histogram *calls, *due; /* of each call; from when it was due to its return */
    uint64_t begin_ns, paced_ns, end_ns;
    long faults; /* page faults of this thread */
    double slowest; /* ns a record, of the slowest second */
    pthread_barrier_t *start;
} load_job;

/* Sleeps between bursts, as a host waits for its next frame or request. A host that spins instead
 * takes a core from the helper threads. */
static void load_bursts(load_job *job) {
    uint64_t period_ns = load_number("LOAD_PERIOD_NS", 1000000);
    uint64_t next = now_ns();
    for (size_t i = 0; i < job->count; i++) {
        uint64_t begin = now_ns();
        write_some(job->written, BURST);
        histogram_add(job->calls, (now_ns() - begin) * 10 / BURST);
        job->written += BURST;
        next += period_ns;
        struct timespec until = {(time_t)(next / 1000000000u), (long)(next % 1000000000u)};
        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR) {}
    }
}

/* A late call does not postpone those after it: their due times stay, so a pause shows in all calls
 * that had to wait for it. */
static void load_paced(load_job *job) {
    uint64_t rate = load_number("LOAD_RATE", 1000000);
    uint64_t start = now_ns();
    for (size_t i = 0; i < job->count; i++) {
        uint64_t due = start + i * 1000000000u / rate, begin;
        while ((begin = now_ns()) < due) {}
        write_some(job->written, 1);
        uint64_t end = now_ns();
        histogram_add(job->calls, (end - begin) * 10);
        histogram_add(job->due, (end - due) * 10);
        job->late += begin - due > 1000;
        job->written++;
    }
}

/* A late run does not postpone the next ones. */
static void load_lasting(load_job *job) {
    static __thread uint64_t spent[SECONDS_MAX + 1], records[SECONDS_MAX + 1];
    uint64_t rate = load_number("LOAD_RATE", 1000000), ns = load_number("LOAD_SECONDS", 60);
    if (ns > SECONDS_MAX) ns = SECONDS_MAX;
    ns *= 1000000000u;
    write_some(0, job->count), job->written = job->count;
    pthread_barrier_wait(job->start); /* until then, others write as fast as they can */
    uint64_t start = job->paced_ns = now_ns(), due = start;
    for (uint64_t i = 0; (due = start + i * BURST * 1000000000u / rate) < start + ns; i++) {
        struct timespec until = {(time_t)(due / 1000000000u), (long)(due % 1000000000u)};
        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR) {}
        uint64_t begin = now_ns();
        write_some(job->written, BURST), job->written += BURST;
        size_t second = (size_t)((due - start) / 1000000000u);
        spent[second] += now_ns() - begin, records[second] += BURST;
    }
    for (size_t i = 0; i <= SECONDS_MAX; i++) {
        double mean = records[i] ? (double)spent[i] / (double)records[i] : 0;
        if (mean > job->slowest) job->slowest = mean;
    }
}

static void load_whole(load_job *job) {
    for (size_t i = 0; i < job->count; i++) {
        tell_time();
        write_some(i, 1);
    }
    job->written = job->count;
}

static void load_kill(load_job *job) {
    const char *path = getenv("LOAD_KEPT");
    int file = open(path != NULL ? path : "", O_RDWR | O_CREAT, 0600);
    if (file < 0 || ftruncate(file, 4096) != 0) load_fail("LOAD_KEPT");
    void *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (memory == MAP_FAILED) load_fail("LOAD_KEPT");
    uint64_t *kept = (uint64_t *)memory;
    for (;;) {
        write_some(job->written, 1);
        __atomic_store_n(kept, ++job->written, __ATOMIC_RELEASE);
    }
}

static void *load_thread(void *argument) {
    load_job *job = (load_job *)argument;
    size_t warm = strcmp(job->mode, "bursts") == 0 || strcmp(job->mode, "paced") == 0;
    if (warm) write_some(0, BURST * WARM_BURSTS), job->written = BURST * WARM_BURSTS;
    struct rusage before, after;
    pthread_barrier_wait(job->start);
    getrusage(RUSAGE_THREAD, &before);
    job->begin_ns = now_ns();
    if (strcmp(job->mode, "bursts") == 0) load_bursts(job);
    else if (strcmp(job->mode, "paced") == 0) load_paced(job);
    else if (strcmp(job->mode, "lasting") == 0) load_lasting(job);
    else if (strcmp(job->mode, "whole") == 0) load_whole(job);
    else if (strcmp(job->mode, "kill") == 0) load_kill(job);
    else {
        if (strcmp(job->mode, "count") == 0) write_some(0, job->written = job->count / 4);
        write_some(job->written, job->count), job->written += job->count;
    }
    job->end_ns = now_ns();
    getrusage(RUSAGE_THREAD, &after);
    job->faults = after.ru_minflt + after.ru_majflt - before.ru_minflt - before.ru_majflt;
    return NULL;
}

/* The time between two adjacent clock reads, in tenths of ns: the median of a million. */
static inline uint64_t load_clock_cost(histogram *pairs) {
    for (size_t i = 0; i < CLOCK_READS; i++) {
        uint64_t begin = now_ns();
        histogram_add(pairs, (now_ns() - begin) * 10);
    }
    return histogram_quantile(pairs, 0.5);
}

static inline histogram *load_histogram(void) {
    histogram *all = (histogram *)malloc(sizeof *all);
    if (all == NULL) load_fail("memory");
    memset(all, 0, sizeof *all); /* touched here, so that no record's time includes a page fault */
    return all;
}

static inline double load_seconds(struct timeval time) {
    return (double)time.tv_sec + (double)time.tv_usec / 1e6;
}

static inline int load_run(const char *mode, size_t count, size_t threads) {
    load_job jobs[THREADS_MAX];
    pthread_t ids[THREADS_MAX];
    pthread_barrier_t start;
    histogram *calls = load_histogram(), *due = load_histogram(), *pairs = load_histogram();
    uint64_t clock_cost = strcmp(mode, "paced") == 0 ? load_clock_cost(pairs) : 0;
    uint64_t begin = UINT64_MAX, end = 0, written = 0, late = 0;
    long faults = 0, slept = helper_wakes();
    uint64_t paced = 0;
    double slowest = 0;
    pthread_barrier_init(&start, NULL, (unsigned)threads);
    COUNT_BEGIN();
    for (size_t i = 0; i < threads; i++) {
        load_job *job = &jobs[i];
        memset(job, 0, sizeof *job);
        job->mode = mode, job->count = count, job->start = &start;
        job->calls = load_histogram(), job->due = load_histogram();
        if (pthread_create(&ids[i], NULL, load_thread, &jobs[i]) != 0) load_fail("thread");
    }
    for (size_t i = 0; i < threads; i++) {
        pthread_join(ids[i], NULL);
        histogram_join(calls, jobs[i].calls);
        histogram_join(due, jobs[i].due);
        if (jobs[i].begin_ns < begin) begin = jobs[i].begin_ns;
        if (jobs[i].end_ns > end) end = jobs[i].end_ns;
        if (jobs[i].paced_ns > paced) paced = jobs[i].paced_ns;
        if (jobs[i].slowest > slowest) slowest = jobs[i].slowest;
        written += jobs[i].written, late += jobs[i].late, faults += jobs[i].faults;
    }
    slept = helper_wakes() - slept;
    struct rusage used;
    getrusage(RUSAGE_SELF, &used); /* all threads, including the engine's, and the warm-up */
    printf("{\"records\":%llu,\"seconds\":%.4f,\"user_s\":%.3f,\"system_s\":%.3f,\"faults\":%ld,"
           "\"writer_faults\":%ld,\"helper_wakes\":%ld,\"peak_kib\":%ld",
           (unsigned long long)written, (double)(end - begin) / 1e9, load_seconds(used.ru_utime),
           load_seconds(used.ru_stime), used.ru_minflt + used.ru_majflt, faults,
           slept, used.ru_maxrss);
    if (paced > 0)
        printf(",\"back_to_back_seconds\":%.4f,\"slowest_second\":%.1f",
               (double)(paced - begin) / 1e9, slowest);
    engine_close();
    COUNT_END();
    printf(",\"closed_seconds\":%.4f", (double)(now_ns() - begin) / 1e9);
    if (calls->count > 0) {
        printf(",\"samples\":%llu,", (unsigned long long)calls->count);
        histogram_print(calls, clock_cost);
    }
    if (due->count > 0) {
        printf(",\"clock_ns\":%.1f,\"late\":%llu,\"due\":{", (double)clock_cost / 10,
               (unsigned long long)late);
        histogram_print(due, clock_cost / 2);
        putchar('}');
    }
    engine_say();
    printf("}\n");
    return 0;
}

static inline int load_main(int argc, char **argv) {
    if (argc < 5) return 2;
    size_t threads = argc > 5 ? strtoull(argv[5], NULL, 10) : 1;
    if (threads < 1 || threads > THREADS_MAX) return 2;
    load_data();
    write_some = load_workload(argv[4]);
    engine_open(argv[1]);
    return load_run(argv[2], strtoull(argv[3], NULL, 10), threads);
}

#endif
