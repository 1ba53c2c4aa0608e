/* The life of an engine and of threads in one process: repeated open and close, two engines at
 * once, calls after close, from thread-local destructors in any order, from atexit and destructors.
 * One case a run. */
#include "host.h"

/* The C library function by which C++'s thread_local objects are destroyed. */
extern int __cxa_thread_atexit_impl(void (*run)(void *), void *argument, void *handle);
extern void *__dso_handle;

static uint64_t status_kib(const char *name) {
    char line[256];
    uint64_t value = 0;
    FILE *file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, name, strlen(name)) == 0) value = strtoull(line + strlen(name), NULL, 10);
    if (file) fclose(file);
    return value;
}

/* ── Open and close beside writers ── */

static cw_logger *shared_log; /* of the open engine, or of the last one */
static volatile int shared_stop;
static uint64_t shared_kept, shared_late;

static void *write_shared(void *argument) {
    (void)argument;
    uint64_t kept = 0, late = 0;
    while (!shared_stop) {
        cw_logger *log = __atomic_load_n(&shared_log, __ATOMIC_ACQUIRE);
        cw_status status = log ? cw_write(log, CW_LEVEL_INFO, "round", 5) : CW_E_CLOSED;
        if (status == CW_OK) kept++;
        else if (status == CW_E_CLOSED) late++;
        else EXPECT(CW_E_CLOSED, status);
        if (late % 64 == 63) sched_yield();
    }
    __atomic_add_fetch(&shared_kept, kept, __ATOMIC_RELAXED);
    __atomic_add_fetch(&shared_late, late, __ATOMIC_RELAXED);
    return NULL;
}

/* ROUNDS: R22. Address space may leak, memory must not. Prints KiB per round. */
static void case_reopen(int argc, char **argv) {
    int rounds = argc > 0 ? atoi(argv[0]) : 400;
    pthread_t threads[8];
    cw_options options = options_of(":memory:");
    options.segment_bytes = 64u << 10;
    for (int i = 0; i < 8; i++) pthread_create(&threads[i], NULL, write_shared, NULL);
    uint64_t first_rss = 0, first_size = 0;
    int warm = 200; /* 64 closed engines and as many objects are retained: full by then */
    for (int i = 0; i < rounds; i++) {
        if (i == warm) {
            first_rss = status_kib("VmRSS:");
            first_size = status_kib("VmSize:");
        }
        cw_engine *engine = open_with(&options);
        __atomic_store_n(&shared_log, logger_of(engine, "round"), __ATOMIC_RELEASE);
        pause_us(200);
        cw_status status = cw_close(&engine, 20000);
        EXPECT(CW_OK, status);
        if (failures > 10) break;
    }
    double rss = ((double)status_kib("VmRSS:") - (double)first_rss) / (rounds - warm);
    double size = ((double)status_kib("VmSize:") - (double)first_size) / (rounds - warm);
    shared_stop = 1;
    for (int i = 0; i < 8; i++) pthread_join(threads[i], NULL);
    printf("%d rounds: %.2f KiB resident and %.0f KiB of addresses a round; %llu kept, %llu late\n",
           rounds, rss, size, (unsigned long long)shared_kept, (unsigned long long)shared_late);
    HOLDS(shared_kept > (uint64_t)rounds);
    /* Threads and heap settle. A busy machine has taken 7 MiB for that, a quiet one none. */
    HOLDS(rss * (rounds - warm) < 12288 + 0.5 * (rounds - warm));
}

/* ── Two engines ── */

typedef struct {
    cw_logger *logs[8];
    uint32_t slots[8];
    int count;
} pair_job;

static void *write_pair(void *argument) {
    pair_job *job = argument;
    for (int i = 0; i < 8; i++) job->slots[i] = slot_take();
    for (int n = 0; n < 5000; n++)
        EXPECT(CW_OK, write_next(job->logs[n % job->count], job->slots[n % job->count]));
    return NULL;
}

/* Six engines, more than a thread caches; all on one directory. */
static void case_engines(int argc, char **argv) {
    (void)argc, (void)argv;
    cw_engine *engines[6];
    pair_job jobs[4];
    pthread_t threads[4];
    for (int i = 0; i < 6; i++) {
        cw_options options = options_of(store_path);
        options.segment_bytes = 64u << 10;
        engines[i] = open_with(&options);
        for (int k = 0; k < 4; k++) jobs[k].logs[i] = logger_of(engines[i], "engines");
    }
    for (int k = 0; k < 4; k++) {
        jobs[k].count = 6;
        pthread_create(&threads[k], NULL, write_pair, &jobs[k]);
    }
    for (int i = 0; i < 20; i++) EXPECT(CW_OK, cw_roll(engines[i % 6]));
    for (int k = 0; k < 4; k++) pthread_join(threads[k], NULL);
    EXPECT(CW_OK, cw_close(&engines[2], 20000)); /* the others continue */
    EXPECT(CW_E_CLOSED, cw_write(jobs[0].logs[2], CW_LEVEL_INFO, "x", 1));
    uint32_t mine = slot_take();
    write_many(jobs[0].logs[3], mine, 100);
    for (int i = 0; i < 6; i++) EXPECT(CW_OK, cw_close(&engines[i], 20000));
}

/* ── Close in a callback ── */

static cw_engine *closing;
static int busy_closes, other_closes;

static void close_in_callback(void *user, const char *archive, uint32_t reason) {
    (void)user, (void)archive, (void)reason;
    cw_engine *engine = closing;
    bool is_busy = cw_close(&engine, 2000) == CW_E_BUSY && engine == closing;
    __atomic_add_fetch(is_busy ? &busy_closes : &other_closes, 1, __ATOMIC_RELEASE);
}

/* The thread that archives also removes: it cannot wait for its own end. */
static void case_callback(int argc, char **argv) {
    (void)argc, (void)argv;
    cw_options options = options_of(store_path);
    options.archives_max = 1;
    options.archive_removed = close_in_callback;
    cw_engine *engine = closing = open_with(&options);
    cw_logger *log = logger_of(engine, "callback");
    uint32_t mine = slot_take();
    uint64_t begun = now_ns();
    while (!__atomic_load_n(&busy_closes, __ATOMIC_ACQUIRE) && !failures && !other_closes) {
        write_many(log, mine, 10);
        EXPECT(CW_OK, cw_roll(engine));
        EXPECT(CW_OK, cw_archive_wait(engine, 20000));
        HOLDS(now_ns() - begun < 60u * 1000000000u);
    }
    EXPECT(0, other_closes);
    EXPECT(CW_OK, cw_close(&engine, 20000));
}

/* ── Thread-local destructors ── */

enum { KEYS = 4 };
static pthread_key_t keys[KEYS];
static cw_logger *tls_log;
static __thread uint32_t tls_slot;
static __thread int tls_rounds[KEYS];

static void tls_write(void) {
    EXPECT(CW_OK, write_next(tls_log, tls_slot));
}

/* Logs and requests another call, in every round there is. */
static void key_gone(void *value) {
    int key = (int)(intptr_t)value - 1;
    tls_write();
    if (++tls_rounds[key] < 8) pthread_setspecific(keys[key], value);
}

static void object_gone(void *argument) {
    (void)argument;
    tls_write();
}

static void *tls_thread(void *argument) {
    intptr_t n = (intptr_t)argument;
    tls_slot = slot_take();
    for (int k = 0; k < KEYS; k++)
        if ((n >> k & 1) == 0) pthread_setspecific(keys[k], (void *)(intptr_t)(k + 1));
    if (n % 3) tls_write(); /* the others log their first record in a destructor */
    if (n % 5 == 0) __cxa_thread_atexit_impl(object_gone, NULL, &__dso_handle);
    return NULL;
}

/* THREADS [ALL]: R20. Blocks of ended threads must be reused: there are only 32,768. EARLY: keys
 * made before the engine's own have destructors that run before it. */
static void case_keys(int argc, char **argv) {
    int count = argc > 0 ? atoi(argv[0]) : 2000;
    for (int k = 0; k < KEYS / 2; k++) pthread_key_create(&keys[k], key_gone);
    cw_options options = options_of(store_path);
    options.segment_bytes = 1u << 20;
    cw_engine *engine = open_with(&options);
    for (int k = KEYS / 2; k < KEYS; k++) pthread_key_create(&keys[k], key_gone);
    tls_log = logger_of(engine, "keys");
    for (int i = 0; i < count; i += 8) {
        pthread_t threads[8];
        for (int k = 0; k < 8; k++)
            pthread_create(&threads[k], NULL, tls_thread, (void *)(intptr_t)(i + k));
        for (int k = 0; k < 8; k++) pthread_join(threads[k], NULL);
        if (failures > 10) break;
    }
    EXPECT(CW_OK, cw_close(&engine, 20000));
}

/* The same with enough threads to exhaust the pool. Records are only counted. */
static uint64_t pool_kept, pool_refused;

static void pool_gone(void *value) {
    cw_status status = cw_write(tls_log, CW_LEVEL_INFO, "gone", 4);
    __atomic_add_fetch(status == CW_OK ? &pool_kept : &pool_refused, 1, __ATOMIC_RELAXED);
    if (++tls_rounds[0] < 4) pthread_setspecific(keys[0], value);
}

static void *pool_thread(void *argument) {
    pthread_setspecific(keys[0], argument);
    return NULL;
}

static void case_pool(int argc, char **argv) {
    int count = argc > 0 ? atoi(argv[0]) : 40000;
    cw_options options = options_of(store_path);
    cw_engine *engine = open_with(&options);
    tls_log = logger_of(engine, "pool");
    pthread_key_create(&keys[0], pool_gone);
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 64 << 10);
    for (int i = 0; i < count; i += 8) {
        pthread_t threads[8];
        for (int k = 0; k < 8; k++) pthread_create(&threads[k], &small, pool_thread, &keys[0]);
        for (int k = 0; k < 8; k++) pthread_join(threads[k], NULL);
    }
    printf("%d threads, %llu kept, %llu refused\n", count, (unsigned long long)pool_kept,
           (unsigned long long)pool_refused);
    EXPECT(0, pool_refused);
    EXPECT((uint64_t)count * 4, pool_kept);
    EXPECT(CW_OK, cw_close(&engine, 20000));
}

/* ── Short threads ── */

static uint64_t brief_kept;

static void *brief_thread(void *argument) {
    char text[32];
    uint64_t number = __atomic_fetch_add(&brief_kept, 1, __ATOMIC_RELAXED);
    int n = snprintf(text, sizeof text, "b %llu", (unsigned long long)number);
    EXPECT(CW_OK, cw_write(argument, CW_LEVEL_INFO, text, (size_t)n));
    return NULL;
}

/* THREADS: R21 */
static void case_threads(int argc, char **argv) {
    int count = argc > 0 ? atoi(argv[0]) : 20000;
    cw_options options = options_of(store_path);
    cw_engine *engine = open_with(&options);
    cw_logger *log = logger_of(engine, "brief");
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 64 << 10);
    for (int i = 0; i < count; i += 8) {
        pthread_t threads[8];
        for (int k = 0; k < 8; k++) pthread_create(&threads[k], &small, brief_thread, log);
        for (int k = 0; k < 8; k++) pthread_join(threads[k], NULL);
    }
    EXPECT(CW_OK, cw_close(&engine, 60000));
}

/* ── Threads that end while the engine is closed ── */

static void *leave_race(void *argument) {
    cw_logger *log = argument;
    uint32_t mine = slot_take();
    uint64_t count = 1 + mine * 7 % 97;
    for (uint64_t i = 0; i < count; i++) {
        cw_status status = write_next(log, mine);
        if (status == CW_E_CLOSED) break;
        EXPECT(CW_OK, status);
    }
    return NULL;
}

/* ROUNDS */
static void case_leave(int argc, char **argv) {
    int rounds = argc > 0 ? atoi(argv[0]) : 100;
    for (int round = 0; round < rounds; round++) {
        cw_logger *log;
        cw_engine *engine = open_small(64u << 10, "leave", &log);
        pthread_t threads[8];
        for (int k = 0; k < 8; k++) pthread_create(&threads[k], NULL, leave_race, log);
        pause_us((uint64_t)(round * 37 % 400));
        EXPECT(CW_OK, cw_close(&engine, 20000));
        for (int k = 0; k < 8; k++) pthread_join(threads[k], NULL);
        EXPECT(CW_E_CLOSED, cw_write(log, CW_LEVEL_INFO, "late", 4));
    }
}

/* ── The end of the process ── */

static cw_logger *exit_log;
static uint32_t exit_slot;
static int exit_expected = CW_OK;
static void exit_write(void) {
    if (!exit_log) return;
    cw_status status = write_next(exit_log, exit_slot);
    if (status != exit_expected) _exit(9);
}
__attribute__((destructor)) static void at_destruction(void) { exit_write(); }

static void *write_on(void *argument) {
    uint32_t mine = slot_take();
    for (;;) {
        cw_status status = write_next(argument, mine);
        if (status != CW_OK && status != CW_E_CLOSED) _exit(8);
        if (status == CW_E_CLOSED) sched_yield();
    }
    return NULL;
}

/* CLOSES: exit() while four threads log; handlers and destructors log, too. */
static void case_exit(int argc, char **argv) {
    bool closes = argc > 0 && atoi(argv[0]) != 0;
    atexit(exit_write); /* runs after the library's exit handlers */
    cw_logger *log;
    cw_engine *engine = open_small(64u << 10, "exit", &log);
    atexit(exit_write);
    exit_slot = slot_take();
    exit_log = log;
    pthread_t thread;
    for (int k = 0; k < 4; k++) pthread_create(&thread, NULL, write_on, log);
    write_many(log, exit_slot, 2000);
    EXPECT(CW_OK, cw_roll(engine));
    if (closes) {
        exit_expected = CW_E_CLOSED;
        EXPECT(CW_OK, cw_close(&engine, 20000));
        EXPECT(CW_OK, cw_close(&engine, 20000));
    }
    exit(failures ? 1 : 0);
}

static const test_case cases[] = {
    {"reopen", case_reopen}, {"engines", case_engines}, {"keys", case_keys},
    {"pool", case_pool},     {"threads", case_threads}, {"leave", case_leave},
    {"exit", case_exit},     {"callback", case_callback},
};
MAIN(cases)
