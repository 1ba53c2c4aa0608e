/* What every program of this suite shares: the ledger, in which each writer counts its kept
 * records, in a mapping that outlives it; records that name their writer; and checks. A writer is
 * one thread of one process and owns one slot. run.py compares ledger and store. */
#ifndef CORDWOOD_TESTS_HOST_H
#define CORDWOOD_TESTS_HOST_H
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include <cordwood/cordwood.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { SLOTS_MAX = 65536 };

/* 32 bytes; run.py reads them. */
typedef struct {
    uint32_t pid;      /* the pid that its records must have */
    uint32_t used;     /* 1: a writer's */
    uint64_t returned; /* records 0 … returned - 1 are kept */
    uint64_t refused;  /* counted, not kept */
    uint64_t spare;
} slot;

/* The first slot counts the slots in `returned`. */
static slot *ledger;
static const char *store_path;
static int failures;

static inline void expect_at(const char *file, int line, const char *call, long got, long wanted) {
    if (got == wanted) return;
    char text[1024] = "";
    cw_last_error(text, sizeof text);
    printf("%s:%d: %s is %ld, not %ld (%s)\n", file, line, call, got, wanted, text);
    fflush(stdout);
    __atomic_add_fetch(&failures, 1, __ATOMIC_RELAXED);
}
#define EXPECT(wanted, call) expect_at(__FILE__, __LINE__, #call, (long)(call), (long)(wanted))
#define HOLDS(what) expect_at(__FILE__, __LINE__, #what, (what) ? 1 : 0, 1)

/* 1 in 64 bits of a linear generator: enough to be odd. */
static inline uint64_t next_random(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

static inline uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static inline void pause_us(uint64_t us) {
    struct timespec pause = {(time_t)(us / 1000000), (long)(us % 1000000 * 1000)};
    nanosleep(&pause, NULL);
}

static inline void ledger_open(const char *path) {
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || ftruncate(fd, SLOTS_MAX * (off_t)sizeof(slot)) != 0) exit(2);
    ledger = mmap(NULL, SLOTS_MAX * sizeof(slot), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (ledger == MAP_FAILED) exit(2);
    close(fd);
}

/* Takes a slot for the calling thread of this process. */
static inline uint32_t slot_take(void) {
    uint64_t index = __atomic_add_fetch(&ledger->returned, 1, __ATOMIC_RELAXED);
    if (index >= SLOTS_MAX) _exit(3);
    ledger[index].pid = (uint32_t)getpid();
    __atomic_store_n(&ledger[index].used, 1, __ATOMIC_RELEASE);
    return (uint32_t)index;
}

/* Writes record `returned` of that slot: "w <slot> <number> xxx". Returns the status. */
static inline cw_status write_next(cw_logger *log, uint32_t index) {
    slot *mine = &ledger[index];
    char text[96];
    int n = snprintf(text, sizeof text, "w %u %llu ", index, (unsigned long long)mine->returned);
    memset(text + n, 'x', 24);
    cw_status status = cw_write(log, CW_LEVEL_INFO, text, (size_t)n + 24);
    if (status == CW_OK) __atomic_store_n(&mine->returned, mine->returned + 1, __ATOMIC_RELEASE);
    else __atomic_store_n(&mine->refused, mine->refused + 1, __ATOMIC_RELEASE);
    return status;
}

static inline void write_many(cw_logger *log, uint32_t index, uint64_t count) {
    for (uint64_t i = 0; i < count; i++) EXPECT(CW_OK, write_next(log, index));
}

static inline cw_options options_of(const char *directory) {
    cw_options options;
    cw_options_init(&options, sizeof options);
    options.directory = directory;
    return options;
}

static inline cw_engine *open_with(const cw_options *options) {
    cw_engine *engine = NULL;
    EXPECT(CW_OK, cw_open(options, &engine));
    if (!engine) exit(1);
    return engine;
}

static inline cw_logger *logger_of(cw_engine *engine, const char *name) {
    cw_logger *log = NULL;
    EXPECT(CW_OK, cw_logger_get(engine, name, &log));
    if (!log) exit(1);
    return log;
}

/* On the case's store, with small segments, which roll often. */
static inline cw_engine *open_small(uint64_t segment_bytes, const char *name, cw_logger **log) {
    cw_options options = options_of(store_path);
    options.segment_bytes = segment_bytes;
    cw_engine *engine = open_with(&options);
    *log = logger_of(engine, name);
    return engine;
}

/* 0 if the process ended by exit(0); else prints why not. */
static inline int wait_clean(pid_t pid, const char *what) {
    int how = -1;
    while (waitpid(pid, &how, 0) < 0 && errno == EINTR) continue;
    if (WIFEXITED(how) && WEXITSTATUS(how) == 0) return 0;
    printf("%s %d ended with %s %d\n", what, (int)pid, WIFSIGNALED(how) ? "signal" : "status",
           WIFSIGNALED(how) ? WTERMSIG(how) : WEXITSTATUS(how));
    __atomic_add_fetch(&failures, 1, __ATOMIC_RELAXED);
    return 1;
}

/* A thread that logs until told to stop. */
typedef struct {
    cw_logger *log;
    uint32_t index;
    volatile int *stop;
    uint64_t pause_us;
    uint64_t burst; /* records between two pauses; 0: one */
    pthread_t thread;
} noise;

static inline void *noise_run(void *argument) {
    noise *n = argument;
    for (uint64_t i = 1; !*n->stop; i++) {
        EXPECT(CW_OK, write_next(n->log, n->index));
        if (n->pause_us && (n->burst == 0 || i % n->burst == 0)) pause_us(n->pause_us);
    }
    return NULL;
}

static inline void noise_start(noise *n, cw_logger *log, volatile int *stop, uint64_t pause) {
    *n = (noise){log, slot_take(), stop, pause, n->burst, 0};
    if (pthread_create(&n->thread, NULL, noise_run, n) != 0) exit(2);
}

typedef struct {
    const char *name;
    void (*run)(int argc, char **argv);
} test_case;

/* PROGRAM CASE STORE LEDGER [ARGUMENT …] */
static inline int run_cases(const test_case *cases, size_t count, int argc, char **argv) {
    if (argc < 4) return 2;
    setvbuf(stdout, NULL, _IOLBF, 0);
    store_path = argv[2];
    ledger_open(argv[3]);
    for (size_t i = 0; i < count; i++) {
        if (strcmp(cases[i].name, argv[1]) != 0) continue;
        cases[i].run(argc - 4, argv + 4);
        return failures ? 1 : 0;
    }
    return 2;
}
#define MAIN(cases)                                                                                \
    int main(int argc, char **argv) {                                                              \
        return run_cases(cases, sizeof cases / sizeof *cases, argc, argv);                         \
    }
#endif
