/* Hosts that fork: from four threads under load, right after open, as daemons, by vfork,
 * posix_spawn and a raw clone(2), with idle children, with grandchildren. One case a run. Every
 * child has a bounded lifetime, and run.py compares the kept records with the store. */
#include "host.h"
#include "../TestSupport/refuse.h"

#include <spawn.h>

extern char **environ;

enum { CHILD_SECONDS = 60 };

/* What a child does after its records. Each must end in bounded time. */
enum { LEAVES, CLOSES, EXITS, ROLLS, HAS_CHILD, WAYS };

static uint64_t *timeouts, *slowest_ns; /* shared with the children */

static void child_work(cw_engine *engine, cw_logger *log, int way, uint64_t records) {
    alarm(CHILD_SECONDS); /* a child that hangs is killed, and shows */
    failures = 0;
    uint64_t begun = now_ns();
    write_many(log, slot_take(), records);
    cw_status status = CW_OK;
    if (way == CLOSES) status = cw_close(&engine, 20000);
    if (way == ROLLS) status = cw_roll(engine);
    if (status == CW_E_TIMEOUT) __atomic_add_fetch(timeouts, 1, __ATOMIC_RELAXED);
    else EXPECT(CW_OK, status);
    uint64_t took = now_ns() - begun;
    uint64_t seen = __atomic_load_n(slowest_ns, __ATOMIC_RELAXED);
    while (took > seen && !__atomic_compare_exchange_n(slowest_ns, &seen, took, 0,
                                                       __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        continue;
}

static void child_life(cw_engine *engine, cw_logger *log, int way, uint64_t records) {
    child_work(engine, log, way, records);
    if (way == HAS_CHILD) {
        pid_t grandchild = fork();
        if (grandchild == 0) {
            child_work(engine, log, CLOSES, records);
            _exit(failures ? 1 : 0);
        }
        wait_clean(grandchild, "grandchild");
    }
    if (way == EXITS) exit(failures ? 1 : 0);
    _exit(failures ? 1 : 0);
}

static void shared_words(void) {
    uint64_t *words = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (words == MAP_FAILED) exit(2);
    timeouts = words;
    slowest_ns = words + 1;
}

/* ── Forks from four threads, each of which logs between them ── */

typedef struct {
    cw_engine *engine;
    cw_logger *log;
    int forks, first;
    uint64_t slowest_fork_ns;
    pthread_t thread;
} forker;

static void *fork_often(void *argument) {
    forker *f = argument;
    uint32_t mine = slot_take();
    pid_t waiting[4];
    for (int i = 0; i < f->forks; i++) {
        write_many(f->log, mine, 20);
        uint64_t begun = now_ns();
        pid_t child = fork();
        if (child == 0) child_life(f->engine, f->log, (f->first + i) % WAYS, 5);
        uint64_t took = now_ns() - begun;
        if (took > f->slowest_fork_ns) f->slowest_fork_ns = took;
        HOLDS(child > 0);
        write_many(f->log, mine, 5);
        if (i >= 4) wait_clean(waiting[i % 4], "child"); /* a few live at the same time */
        waiting[i % 4] = child;
    }
    for (int i = f->forks > 4 ? f->forks - 4 : 0; i < f->forks; i++)
        wait_clean(waiting[i % 4], "child");
    return NULL;
}

/* COUNT */
static void case_storm(int argc, char **argv) {
    int count = argc > 0 ? atoi(argv[0]) : 1000;
    shared_words();
    cw_logger *log;
    cw_engine *engine = open_small(256u << 10, "storm", &log);
    volatile int stop = 0;
    noise others[2] = {0};
    for (int i = 0; i < 2; i++) noise_start(&others[i], log, &stop, 20);
    forker forkers[4];
    for (int i = 0; i < 4; i++) {
        forkers[i] = (forker){engine, log, count / 4, i, 0, 0};
        pthread_create(&forkers[i].thread, NULL, fork_often, &forkers[i]);
    }
    uint64_t slowest_fork = 0;
    for (int i = 0; i < 4; i++) {
        pthread_join(forkers[i].thread, NULL);
        if (forkers[i].slowest_fork_ns > slowest_fork) slowest_fork = forkers[i].slowest_fork_ns;
    }
    stop = 1;
    for (int i = 0; i < 2; i++) pthread_join(others[i].thread, NULL);
    EXPECT(CW_OK, cw_close(&engine, 30000));
    printf("%d forks, slowest child %.1f ms, slowest fork %.1f ms, %llu timeouts\n", count,
           (double)*slowest_ns / 1e6, (double)slowest_fork / 1e6, (unsigned long long)*timeouts);
    EXPECT(0, *timeouts);
}

/* ── Forks while the parent's helpers do everything for the first time ── */

/* DELAY_US: the children roll, which needs helpers of their own. */
static void case_early(int argc, char **argv) {
    uint64_t delay = argc > 0 ? strtoull(argv[0], NULL, 10) : 0;
    shared_words();
    cw_options options = options_of(store_path);
    cw_engine *engine = open_with(&options);
    cw_logger *log = logger_of(engine, "early");
    pid_t children[4];
    for (int i = 0; i < 4; i++) {
        if (delay) pause_us(delay);
        children[i] = fork();
        if (children[i] == 0) child_life(engine, log, i % 2 ? ROLLS : CLOSES, 1);
    }
    for (int i = 0; i < 4; i++) wait_clean(children[i], "child");
    printf("%llu timeouts\n", (unsigned long long)*timeouts);
    EXPECT(CW_OK, cw_close(&engine, 30000));
}

/* A second thread forks while this one is inside the process's first cw_open; the child opens, too.
 * DELAY_US */
static volatile int opening;
static uint64_t fork_delay;

static void *fork_beside(void *argument) {
    (void)argument;
    while (!opening) sched_yield();
    uint64_t until = now_ns() + fork_delay * 1000;
    while (now_ns() < until) continue;
    pid_t child = fork();
    if (child == 0) {
        alarm(CHILD_SECONDS);
        failures = 0;
        cw_options options = options_of(store_path);
        cw_engine *engine = open_with(&options);
        write_many(logger_of(engine, "beside"), slot_take(), 3);
        EXPECT(CW_OK, cw_close(&engine, 20000));
        _exit(failures ? 1 : 0);
    }
    wait_clean(child, "child");
    return NULL;
}

static void case_beside(int argc, char **argv) {
    fork_delay = argc > 0 ? strtoull(argv[0], NULL, 10) : 0;
    pthread_t thread;
    pthread_create(&thread, NULL, fork_beside, NULL);
    opening = 1;
    cw_options options = options_of(store_path);
    cw_engine *engine = open_with(&options);
    write_many(logger_of(engine, "beside"), slot_take(), 3);
    pthread_join(thread, NULL);
    EXPECT(CW_OK, cw_close(&engine, 20000));
}

/* ── vfork, posix_spawn, system ── */

/* A spawned program: the same store, its own lane. */
static void case_spawned(int argc, char **argv) {
    (void)argc, (void)argv;
    cw_options options = options_of(store_path);
    cw_engine *engine = open_with(&options);
    write_many(logger_of(engine, "spawned"), slot_take(), 10);
    EXPECT(CW_OK, cw_close(&engine, 20000));
}

static void case_spawn(int argc, char **argv) {
    int rounds = argc > 1 ? atoi(argv[1]) : 20;
    char program[4096];
    ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
    if (n <= 0 || argc < 1) exit(2);
    program[n] = 0;
    cw_logger *log;
    cw_engine *engine = open_small(64u << 10, "spawn", &log);
    volatile int stop = 0;
    noise other = {0};
    noise_start(&other, log, &stop, 10);
    uint32_t mine = slot_take(), lent = slot_take();
    for (volatile int round = 0; round < rounds; round++) {
        write_many(log, mine, 10);
        pid_t child = vfork(); /* shares our memory: it acts as us, with our pid, until it ends */
        if (child == 0) {
            for (int i = 0; i < 3; i++)
                if (write_next(log, lent) != CW_OK) _exit(1);
            _exit(0);
        }
        wait_clean(child, "vfork child");
        char *words[] = {program, "spawned", (char *)(uintptr_t)store_path, argv[0], NULL};
        EXPECT(0, posix_spawn(&child, program, NULL, NULL, words, environ));
        wait_clean(child, "spawned program");
        EXPECT(0, system("exit 0"));
    }
    stop = 1;
    pthread_join(other.thread, NULL);
    EXPECT(CW_OK, cw_close(&engine, 20000));
}

/* A thread whose first record its vfork child wrote: its block has the number of an ended process,
 * and yet must not count as abandoned (Reaper: every 1,024 blocks). */
enum { IDLE_THREADS = 1040, IDLE_BEFORE = 1000, BUSY_THREADS = 20 };
static pthread_barrier_t end_of_idling;
static volatile uint32_t idling;

static void *log_once(void *argument) {
    write_many(argument, slot_take(), 1);
    return NULL;
}

static void *log_and_idle(void *argument) {
    log_once(argument);
    __atomic_add_fetch(&idling, 1, __ATOMIC_RELAXED);
    pthread_barrier_wait(&end_of_idling);
    return NULL;
}

static void log_in_vfork(cw_logger *log, uint32_t index) {
    pid_t child = vfork();
    if (child == 0) _exit(write_next(log, index) == CW_OK ? 0 : 1);
    wait_clean(child, "vfork child");
}

static void case_vfork_first(int argc, char **argv) {
    (void)argc, (void)argv;
    cw_options options = options_of(store_path);
    cw_engine *engine = open_with(&options);
    cw_logger *log = logger_of(engine, "vfork");
    uint32_t mine = slot_take();
    static pthread_t threads[IDLE_THREADS + 1];
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 128 << 10);
    EXPECT(0, pthread_create(&threads[IDLE_THREADS], &small, log_once, log));
    pthread_join(threads[IDLE_THREADS], NULL); /* leaves a free block below the others */
    pthread_barrier_init(&end_of_idling, NULL, IDLE_THREADS + 1);
    for (uint32_t i = 0; i < IDLE_THREADS; i++) {
        if (i == IDLE_BEFORE) log_in_vfork(log, slot_take());
        EXPECT(0, pthread_create(&threads[i], &small, log_and_idle, log));
        while (idling <= i) sched_yield();
    }
    pause_us(300000); /* the helper would return the block within that time */
    static noise busy[BUSY_THREADS];
    volatile int stop = 0;
    for (int i = 0; i < BUSY_THREADS; i++) noise_start(&busy[i], log, &stop, 0);
    write_many(log, mine, 20000);
    stop = 1;
    for (int i = 0; i < BUSY_THREADS; i++) pthread_join(busy[i].thread, NULL);
    pthread_barrier_wait(&end_of_idling);
    for (int i = 0; i < IDLE_THREADS; i++) pthread_join(threads[i], NULL);
    EXPECT(CW_OK, cw_close(&engine, 20000));
}

/* ── A daemon ── */

static void become_daemon(void) {
    if (fork() != 0) _exit(failures ? 1 : 0);
    setsid();
    if (fork() != 0) _exit(0);
    if (chdir("/") != 0) _exit(1);
    umask(0);
    for (int fd = 0; fd < 1024; fd++) close(fd);
}

/* FOREIGN FIRST: a file of the host's that gets the numbers of the engine's descriptors; with FIRST
 * the daemon has logged before it closed them. */
static void case_daemon(int argc, char **argv) {
    if (argc < 2) exit(2);
    bool first = atoi(argv[1]) != 0;
    cw_logger *log;
    cw_engine *engine = open_small(64u << 10, "daemon", &log);
    write_many(log, slot_take(), 10);
    pid_t child = fork();
    if (child != 0) {
        wait_clean(child, "daemon's parent");
        EXPECT(CW_OK, cw_close(&engine, 20000));
        return;
    }
    become_daemon();
    failures = 0;
    uint32_t mine = slot_take();
    if (first) {
        write_many(log, mine, 10);
        for (int fd = 0; fd < 1024; fd++) close(fd);
    }
    int held[64];
    for (int i = 0; i < 64; i++) held[i] = open(argv[0], O_RDWR);
    for (int i = 0; i < 64; i++)
        if (held[i] < 0) _exit(1);
    write_many(log, mine, 5000); /* several segments */
    cw_status status = cw_close(&engine, 20000);
    for (int i = 0; i < 64; i++)
        if (fcntl(held[i], F_GETFD) < 0) failures++; /* none of the host's was closed */
    ledger[mine].spare = status == CW_OK && failures == 0 ? 1 : 2;
    _exit(0);
}

/* ── A raw clone(2): no handler runs in the child ── */

static pid_t raw_clone(void) {
    return (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
}

static void case_clone(int argc, char **argv) {
    int count = argc > 0 ? atoi(argv[0]) : 50;
    shared_words();
    cw_options options = options_of(store_path);
    cw_engine *engine = open_with(&options);
    cw_logger *log = logger_of(engine, "clone");
    volatile int stop = 0;
    noise others[2] = {0};
    for (int i = 0; i < 2; i++) noise_start(&others[i], log, &stop, 10);
    uint32_t mine = slot_take();
    for (int i = 0; i < count; i++) {
        write_many(log, mine, 10);
        pid_t child = raw_clone();
        if (child == 0) { /* other threads' locks stay held for ever: no stdio, no malloc */
            alarm(CHILD_SECONDS);
            uint32_t own = slot_take();
            for (int k = 0; k < 20; k++)
                if (write_next(log, own) != CW_OK) _exit(1);
            _exit(0);
        }
        wait_clean(child, "cloned child");
    }
    stop = 1;
    for (int i = 0; i < 2; i++) pthread_join(others[i].thread, NULL);
    EXPECT(CW_OK, cw_close(&engine, 20000));
}

/* WAY PIDFILE: the parent is killed. An idle child lives that has inherited everything. */
static void case_orphan(int argc, char **argv) {
    if (argc < 2) exit(2);
    /* The lock then belongs to the descriptor, as in stores of older versions. */
    if (argc > 2 && !refuse_holding()) exit(3);
    cw_options options = options_of(store_path);
    cw_engine *engine = open_with(&options);
    write_many(logger_of(engine, "orphan"), slot_take(), 1000);
    pid_t child = strcmp(argv[0], "clone") == 0 ? raw_clone() : fork();
    if (child == 0) {
        for (int fd = 0; fd < 3; fd++) close(fd); /* our starter waits for their end */
        for (;;) pause();
    }
    FILE *file = fopen(argv[1], "w");
    if (!file || fprintf(file, "%d\n", (int)child) < 0 || fclose(file) != 0) exit(2);
    raise(SIGKILL);
}

/* ── A process whose first thread has ended ── */

static cw_engine *left_engine;

static void *log_later(void *argument) {
    cw_logger *log = argument;
    uint32_t mine = slot_take();
    write_many(log, mine, 10);
    char byte;
    while (read(0, &byte, 1) > 0) continue;
    write_many(log, mine, 10);
    EXPECT(CW_OK, cw_close(&left_engine, 20000));
    _exit(failures ? 1 : 0);
}

/* Another thread logs once more when our input ends. Until then the lane does not change. */
static void case_left(int argc, char **argv) {
    (void)argc, (void)argv;
    cw_options options = options_of(store_path);
    left_engine = open_with(&options);
    cw_logger *log = logger_of(left_engine, "left");
    write_many(log, slot_take(), 10);
    pthread_t thread;
    if (pthread_create(&thread, NULL, log_later, log) != 0) exit(2);
    pthread_exit(NULL);
}

/* ── Idle children and the disk ── */

/* COUNT: prints the pids of idle children, forked while segments are made, archived, removed. They
 * live until our input ends. Each child writes a byte after its fork() returned. Before that it may
 * still hold files, and on a busy machine it may not even have run. */
static void case_idle(int argc, char **argv) {
    int count = argc > 0 ? atoi(argv[0]) : 30;
    int returned[2];
    EXPECT(0, pipe(returned));
    cw_logger *log;
    cw_engine *engine = open_small(256u << 10, "idle", &log);
    volatile int stop = 0;
    noise others[2] = {{.burst = 64}, {.burst = 64}}; /* segments are made all the time */
    for (int i = 0; i < 2; i++) noise_start(&others[i], log, &stop, 100);
    uint64_t seed = (uint64_t)getpid(), slowest = 0;
    pid_t children[256];
    for (int i = 0; i < count && i < 256; i++) {
        pause_us(next_random(&seed) % 5000);
        uint64_t begun = now_ns();
        children[i] = fork();
        if (children[i] == 0) {
            close(1);
            if (write(returned[1], "", 1) != 1) _exit(1);
            close(returned[1]);
            for (;;) pause();
        }
        uint64_t took = now_ns() - begun;
        if (took > slowest) slowest = took;
        for (int k = 0; k < 16; k++) { /* names, so that the catalog grows into more files */
            char name[240];
            memset(name, 'n', sizeof name);
            snprintf(name, 16, "%d.%d.", i, k);
            name[sizeof name - 1] = 0;
            logger_of(engine, name);
        }
        if (i % 4 == 0) EXPECT(CW_OK, cw_roll(engine));
        if (i % 4 == 1) EXPECT(CW_OK, cw_flush(engine, CW_DURABLE_MACHINE, 60000));
    }
    printf("slowest fork %.1f ms\n", (double)slowest / 1e6);
    stop = 1;
    for (int i = 0; i < 2; i++) pthread_join(others[i].thread, NULL);
    EXPECT(CW_OK, cw_roll(engine));
    EXPECT(CW_OK, cw_archive_wait(engine, 60000));
    EXPECT(CW_OK, cw_close(&engine, 20000));
    close(returned[1]);
    char byte;
    for (int i = 0; i < count && i < 256; i++) EXPECT(1, read(returned[0], &byte, 1));
    printf("pids");
    for (int i = 0; i < count && i < 256; i++) printf(" %d", (int)children[i]);
    printf("\n");
    while (read(0, &byte, 1) > 0) continue;
    for (int i = 0; i < count && i < 256; i++) kill(children[i], SIGKILL);
    while (wait(NULL) > 0) continue;
}

static const test_case cases[] = {
    {"storm", case_storm},   {"early", case_early}, {"beside", case_beside},
    {"spawned", case_spawned}, {"spawn", case_spawn}, {"vfork_first", case_vfork_first},
    {"daemon", case_daemon}, {"clone", case_clone},   {"orphan", case_orphan},
    {"left", case_left}, {"idle", case_idle},
};
MAIN(cases)
