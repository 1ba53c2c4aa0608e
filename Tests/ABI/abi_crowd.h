/* Many threads and a signal handler log with the smallest segments, so that more appends are
 * interrupted than there are slots for segments. abi.c includes it. */
#include <time.h>

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

enum { CROWD = 34, CROWD_RECORDS = 12000, CROWD_BURST = 40 };
static cw_logger *crowd_log;
static struct {
    uint64_t kept, refused, nested_kept, nested_refused, slow, slowest_ns;
} crowd;
static __thread unsigned crowd_number;
static __thread int crowd_stat;

/* The time this thread was runnable while another one had the processor. */
static uint64_t waited_ns(void) {
    char text[96] = "";
    unsigned long long ran = 0, waited = 0;
    if (crowd_stat < 0 || pread(crowd_stat, text, sizeof text - 1, 0) <= 0) return 0;
    return sscanf(text, "%llu %llu", &ran, &waited) == 2 ? waited : 0;
}

#define CROWD_ADD(word, by) __atomic_fetch_add(&crowd.word, (by), __ATOMIC_RELAXED)

/* How long the call took, less the time the scheduler gave to others. */
static cw_status crowd_write(const char *text, size_t length, int is_timed) {
    uint64_t waited = is_timed ? waited_ns() : 0, begun = now_ns();
    cw_status status = cw_write(crowd_log, CW_LEVEL_INFO, text, length);
    uint64_t took = now_ns() - begun;
    if (!is_timed || took < 5000000) return status;
    waited = waited_ns() - waited;
    took = took > waited ? took - waited : 0;
    if (took > 10000000) CROWD_ADD(slow, 1);
    uint64_t most = __atomic_load_n(&crowd.slowest_ns, __ATOMIC_RELAXED);
    while (took > most && !__atomic_compare_exchange_n(&crowd.slowest_ns, &most, took, 0,
                                                       __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        continue;
    return status;
}

static void crowd_signal(int signal_number) {
    (void)signal_number;
    static const char text[100] = "99 nested";
    cw_status status = crowd_write(text, sizeof text, 0);
    if (status == CW_OK) CROWD_ADD(nested_kept, 1);
    else if (status == CW_E_FULL) CROWD_ADD(nested_refused, 1);
    else EXPECT(CW_OK, status);
}

static void *crowd_thread(void *argument) {
    crowd_number = (unsigned)(uintptr_t)argument;
    char path[64], text[200];
    snprintf(path, sizeof path, "/proc/self/task/%d/schedstat", (int)syscall(SYS_gettid));
    crowd_stat = open(path, O_RDONLY | O_CLOEXEC);
    memset(text, 'x', sizeof text);
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGALRM};
    event.sigev_notify_thread_id = (int)syscall(SYS_gettid);
    timer_t timer;
    EXPECT(0, timer_create(CLOCK_MONOTONIC, &event, &timer));
    long every = 300000 + 7000 * (long)crowd_number;
    struct itimerspec often = {{0, every}, {0, every}};
    EXPECT(0, timer_settime(timer, 0, &often, NULL));
    for (int i = 0; i < CROWD_RECORDS; i++) {
        cw_status status = crowd_write(text, sizeof text, 1);
        if (status == CW_OK) CROWD_ADD(kept, 1);
        else if (status == CW_E_FULL) CROWD_ADD(refused, 1);
        else EXPECT(CW_OK, status);
        struct timespec pause = {0, 500000};
        if (i % CROWD_BURST == 0) nanosleep(&pause, NULL);
    }
    timer_delete(timer);
    close(crowd_stat);
    return NULL;
}

static void crowd_each(const cw_record_view *view, void *user) {
    ++((uint64_t *)user)[view->message.length == 100];
}

static void case_storm_crowd(void) {
    cw_options options = defaults();
    options.segment_bytes = 64u << 10;
    cw_engine *engine = open_with(&options);
    crowd_log = logger_of(engine, "crowd");
    struct sigaction action = {.sa_handler = crowd_signal, .sa_flags = SA_RESTART};
    sigaction(SIGALRM, &action, NULL);
    pthread_t threads[CROWD];
    for (uintptr_t i = 0; i < CROWD; i++)
        EXPECT(0, pthread_create(&threads[i], NULL, crowd_thread, (void *)i));
    for (unsigned i = 0; i < CROWD; i++) pthread_join(threads[i], NULL);
    EXPECT(CW_OK, cw_close(&engine, 60000));
    fprintf(stderr,
            "%llu kept, %llu refused; handlers: %llu and %llu; over 10 ms: %llu, at most %.2f ms\n",
            (unsigned long long)crowd.kept, (unsigned long long)crowd.refused,
            (unsigned long long)crowd.nested_kept, (unsigned long long)crowd.nested_refused,
            (unsigned long long)crowd.slow, (double)crowd.slowest_ns / 1e6);
    HOLDS(crowd.nested_kept > 1000);
    /* One in a thousand. */
    uint64_t all = crowd.kept + crowd.refused + crowd.nested_kept + crowd.nested_refused;
    HOLDS((crowd.refused + crowd.nested_refused) * 1000 <= all);
    /* Likewise. A thread may hold a kernel lock and wait for a processor. */
    HOLDS(crowd.slow * 1000 <= crowd.kept + crowd.refused);
    uint64_t read[2] = {0, 0};
    read_logs(crowd_each, read);
    EXPECT(crowd.kept, read[0]);
    EXPECT(crowd.nested_kept, read[1]);
}
