/* One record, seen from the host: hot STORE MODE N WORKLOAD
 *
 *   bursts N    mean of each burst of 1,000 calls, a burst a millisecond, by one thread, then two
 *   sustained N the same without pauses: what the disk's fresh pages and the second core leave
 *   calls N     single calls at a million a second: their distribution
 *   count N     N calls and nothing else; callgrind counts instructions of two such runs
 *   costs N     allocations and system calls of the writing thread in N bursts of 100
 *   bytes N     what N records take in their segments
 *
 * w1 a constant text, w2 an int and a double, w3 a string of 40 bytes and an int, all by CW_INFO;
 * w4 a ready message of 100 bytes by cw_write; off a CW_DEBUG below the threshold.
 *
 * Prints one JSON line. Messages differ from call to call: constant data measures nothing. */
#include <cordwood/cordwood.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

enum { MESSAGE = 100, NAME = 40, VARIANTS = 64 };
enum { BURST = 1000, SMALL_BURST = 100, THREADS_MAX = 2 };

static cw_logger *logger;
static char messages[VARIANTS][MESSAGE], names[VARIANTS][NAME + 1];
static double prices[VARIANTS];

static void fail(const char *what) {
    char why[512] = "";
    cw_last_error(why, sizeof why);
    fprintf(stderr, "hot: %s: %s\n", what, why);
    exit(1);
}

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Not inlined: callgrind counts from here. */
__attribute__((noinline)) static void write_w1(size_t count) {
    for (size_t i = 0; i < count; i++) CW_INFO(logger, "a record of constant text");
}
__attribute__((noinline)) static void write_w2(size_t count) {
    for (size_t i = 0; i < count; i++)
        CW_INFO(logger, "order %d at %f", (int)i, prices[i % VARIANTS]);
}
__attribute__((noinline)) static void write_w3(size_t count) {
    for (size_t i = 0; i < count; i++)
        CW_INFO(logger, "user %s did %d", names[i % VARIANTS], (int)i);
}
__attribute__((noinline)) static void write_w4(size_t count) {
    for (size_t i = 0; i < count; i++)
        if (cw_write(logger, CW_LEVEL_INFO, messages[i % VARIANTS], MESSAGE) != CW_OK)
            fail("cw_write");
}
__attribute__((noinline)) static void write_off(size_t count) {
    for (size_t i = 0; i < count; i++)
        CW_DEBUG(logger, "order %d at %f", (int)i, prices[i % VARIANTS]);
}

static void (*write_some)(size_t count);
static const struct {
    const char *name;
    void (*run)(size_t);
} workloads[] = {
    {"w1", write_w1}, {"w2", write_w2}, {"w3", write_w3}, {"w4", write_w4}, {"off", write_off},
};

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double quantile(const double *sorted, size_t count, double part) {
    size_t at = (size_t)(part * (double)count);
    return sorted[at < count ? at : count - 1];
}

static double mean(const double *values, size_t count) {
    double sum = 0;
    for (size_t i = 0; i < count; i++) sum += values[i];
    return sum / (double)count;
}

static void print_distribution(const char *name, double *values, size_t count, const char *end) {
    double average = mean(values, count);
    qsort(values, count, sizeof *values, ascending);
    printf("\"%s\":{\"mean\":%.1f,\"p50\":%.1f,\"p99\":%.1f,\"p99.9\":%.1f,\"max\":%.0f}%s", name,
           average, quantile(values, count, 0.5), quantile(values, count, 0.99),
           quantile(values, count, 0.999), values[count - 1], end);
}

/* ── bursts ── */

typedef struct burst_job {
    double *means;
    size_t count;
    uint64_t period_ns;
    pthread_barrier_t *start;
} burst_job;

/* The pause is slept, as a host waits for its next frame or request: a million records a second and
 * thread. A host that spins instead takes a core of two from the helper threads. */
static void *burst_thread(void *argument) {
    burst_job *job = argument;
    write_some(BURST * 10);
    pthread_barrier_wait(job->start);
    uint64_t next = now_ns();
    for (size_t i = 0; i < job->count; i++) {
        uint64_t begin = now_ns();
        write_some(BURST);
        job->means[i] = (double)(now_ns() - begin) / BURST;
        next += job->period_ns;
        struct timespec until = {(time_t)(next / 1000000000u), (long)(next % 1000000000u)};
        while (job->period_ns > 0 &&
               clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR) {}
    }
    return NULL;
}

static void bursts(size_t count, uint64_t period_ns) {
    printf("{");
    for (size_t threads = 1; threads <= THREADS_MAX; threads++) {
        double *means = malloc(count * threads * sizeof *means);
        pthread_t ids[THREADS_MAX];
        burst_job jobs[THREADS_MAX];
        pthread_barrier_t start;
        pthread_barrier_init(&start, NULL, (unsigned)threads);
        for (size_t i = 0; i < threads; i++) {
            jobs[i] = (burst_job){means + i * count, count, period_ns, &start};
            if (pthread_create(&ids[i], NULL, burst_thread, &jobs[i]) != 0) fail("thread");
        }
        for (size_t i = 0; i < threads; i++) pthread_join(ids[i], NULL);
        print_distribution(threads == 1 ? "one_thread" : "two_threads", means, count * threads,
                           threads == 1 ? "," : "}\n");
        free(means);
    }
}

/* ── single calls at a million a second ── */

static void calls(size_t count) {
    double *times = malloc(count * sizeof *times);
    if (times == NULL) fail("memory");
    memset(times, 0, count * sizeof *times);
    write_some(BURST * 10);
    uint64_t next = now_ns();
    for (size_t i = 0; i < count; i++) {
        while (now_ns() < next) {}
        uint64_t begin = now_ns();
        write_some(1);
        times[i] = (double)(now_ns() - begin);
        next += 1000;
        if (now_ns() > next + 1000000) next = now_ns();
    }
    printf("{");
    print_distribution("call_with_two_clock_reads", times, count, "}\n");
    free(times);
}

/* ── allocations and system calls of this thread ── */

static __thread uint64_t allocations;
void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *malloc(size_t size) { allocations++; return __libc_malloc(size); }
void *calloc(size_t count, size_t size) { allocations++; return __libc_calloc(count, size); }
void *realloc(void *old, size_t size) { allocations++; return __libc_realloc(old, size); }

static volatile char dispatch; /* SYSCALL_DISPATCH_FILTER_ALLOW 0, _BLOCK 1 */
static volatile uint64_t bursts_with_calls;

/* Counts the burst, lets the rest of it through and makes the call again (2 bytes back). */
static void on_system_call(int number, siginfo_t *info, void *context) {
    (void)number;
    ucontext_t *machine = context;
    dispatch = 0;
    bursts_with_calls++;
    machine->uc_mcontext.gregs[REG_RAX] = info->si_syscall;
    machine->uc_mcontext.gregs[REG_RIP] -= 2;
}

static void costs(size_t count) {
    struct sigaction action = {.sa_sigaction = on_system_call, .sa_flags = SA_SIGINFO | SA_NODEFER};
    sigaction(SIGSYS, &action, NULL);
    write_some(BURST * 100); /* chunks have grown to their full size */
    if (prctl(PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_ON, 0, 0, &dispatch) != 0) {
        printf("{\"unsupported\":true}\n");
        return;
    }
    uint64_t before = allocations;
    for (size_t i = 0; i < count; i++) {
        dispatch = 1;
        write_some(SMALL_BURST);
        dispatch = 0;
    }
    uint64_t allocated = allocations - before;
    prctl(PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_OFF, 0, 0, 0);
    printf("{\"records\":%zu,\"allocations\":%llu,", count * SMALL_BURST,
           (unsigned long long)allocated);
    printf("\"bursts\":%zu,\"bursts_with_system_calls\":%llu}\n", count,
           (unsigned long long)bursts_with_calls);
}

static void bytes(cw_engine *engine, size_t count) {
    cw_stats before = {.struct_size = sizeof before}, after = before;
    write_some(BURST);
    if (cw_stats_get(engine, &before, sizeof before) != CW_OK) fail("cw_stats_get");
    write_some(count);
    if (cw_stats_get(engine, &after, sizeof after) != CW_OK) fail("cw_stats_get");
    printf("{\"bytes_per_record\":%.2f}\n",
           (double)(after.bytes_written - before.bytes_written) / (double)count);
}

int main(int argc, char **argv) {
    if (argc != 5) return 2;
    for (size_t i = 0; i < sizeof workloads / sizeof *workloads; i++)
        if (strcmp(workloads[i].name, argv[4]) == 0) write_some = workloads[i].run;
    if (write_some == NULL) return 2;
    size_t count = strtoull(argv[3], NULL, 10);
    uint64_t state = 88172645463325252u;
    for (size_t i = 0; i < sizeof messages; i++) {
        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        messages[i / MESSAGE][i % MESSAGE] = (char)(' ' + state % 95);
    }
    for (size_t i = 0; i < VARIANTS; i++) {
        memcpy(names[i], messages[i], NAME);
        prices[i] = (double)messages[i][0] * 1.25 + (double)i;
    }
    cw_options options;
    cw_options_init(&options, sizeof options);
    options.directory = argv[1];
    cw_engine *engine = NULL;
    if (cw_open(&options, &engine) != CW_OK) fail("cw_open");
    if (cw_logger_get(engine, "bench.hot", &logger) != CW_OK) fail("cw_logger_get");
    if (strcmp(argv[2], "bursts") == 0) bursts(count, 1000000);
    else if (strcmp(argv[2], "sustained") == 0) bursts(count, 0);
    else if (strcmp(argv[2], "calls") == 0) calls(count);
    else if (strcmp(argv[2], "costs") == 0) costs(count);
    else if (strcmp(argv[2], "bytes") == 0) bytes(engine, count);
    else write_some(count);
    cw_close(&engine, 10000);
    return 0;
}
