/* What hosts do in the middle of a call: fork and longjmp at every instruction, cancel threads,
 * take system calls away. abi.c includes it. The trap flag counts single steps, so x86-64 only. */
#include <semaphore.h>
#include <stdatomic.h>
#include <ucontext.h>

enum { STEPS_OFF = 1 << 30 };
static __thread volatile int steps_left = STEPS_OFF;
static __thread void (*at_step)(void);
static __thread void (*each_step)(const unsigned char *instruction);

#if defined(__x86_64__)
#define TRAP_FLAG 0x100

static void step_begin(int signal_number, siginfo_t *info, void *context) {
    (void)signal_number, (void)info;
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL] |= TRAP_FLAG;
}

static void step(int signal_number, siginfo_t *info, void *context) {
    (void)signal_number, (void)info;
    const greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    if (each_step) each_step((const unsigned char *)(uintptr_t)registers[REG_RIP]);
    if (steps_left < STEPS_OFF / 2 && --steps_left > 0) return;
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL] &= ~TRAP_FLAG;
    if (steps_left == 0) at_step();
}

/* Until step_end. at_step runs in a handler, `count` instructions from now. */
#define step_start(count, what) (at_step = (what), steps_left = (count), (void)raise(SIGUSR1))
/* The same with signals blocked. */
static void step_here(int count, void (*what)(void)) {
    at_step = what, steps_left = count;
    __asm__ volatile("pushfq\n\torq $0x100, (%%rsp)\n\tpopfq" ::: "memory", "cc");
}
#define step_end() (void)(steps_left = STEPS_OFF)

static void steps_prepare(void) {
    struct sigaction action = {.sa_sigaction = step_begin, .sa_flags = SA_SIGINFO};
    sigaction(SIGUSR1, &action, NULL);
    action.sa_sigaction = step;
    action.sa_flags |= SA_NODEFER;
    sigaction(SIGTRAP, &action, NULL);
}
#else
#define step_start(count, what) ((void)(count), (void)(what))
#define step_here(count, what) ((void)(count), (void)(what))
#define step_end() (void)0
static void steps_prepare(void) { exit(77); }
#endif

/* ── fork ── */

static cw_logger *hazard_log;
static __thread pid_t forked_child;
static void fork_now(void) { forked_child = fork(); }

static void *fork_within(void *argument) {
    static char text[101];
    memset(text, 'f', sizeof text - 1);
    forked_child = -1;
    if (form != BY_LIBRARY) put(hazard_log, "first"); /* the header appends only into a chunk */
    step_start((int)(intptr_t)argument, fork_now);
    cw_status status = log_text(hazard_log, text, sizeof text - 1);
    step_end();
    if (forked_child == 0) _exit(cw_write(hazard_log, CW_LEVEL_INFO, "child", 5) == CW_OK ? 0 : 1);
    EXPECT(CW_OK, status);
    int exit_status = -1;
    if (forked_child > 0) waitpid(forked_child, &exit_status, 0);
    if (forked_child > 0 && exit_status != 0) {
        printf("forked before instruction %d: status %x\n", (int)(intptr_t)argument, exit_status);
        failures++;
    }
    return NULL;
}

/* Each in a thread's first record, or with the header's append in its second. */
static void fork_steps(intptr_t to, intptr_t stride) {
    cw_options options = defaults();
    cw_engine *engine = open_with(&options);
    hazard_log = logger_of(engine, "fork");
    steps_prepare();
    for (intptr_t n = 1; n < to; n += stride) {
        pthread_t thread;
        pthread_create(&thread, NULL, fork_within, (void *)n);
        pthread_join(thread, NULL);
    }
    EXPECT(CW_OK, cw_close(&engine, 60000));
}
static void case_fork_steps(void) { fork_steps(700, 3); }
static void case_fork_steps_inlined(void) {
    form = BY_CW_INFO;
    fork_steps(160, 1);
}
static void case_fork_steps_text(void) {
    form = BY_CW_WRITE;
    fork_steps(120, 1);
}
static void case_fork_steps_written(void) {
    without(SYS_fallocate, SYS_fallocate);
    fork_steps(700, 3);
}

/* A host's own handler logs in the child before the engine's handler has run. */
static void log_in_child(void) {
    if (cw_write(hazard_log, CW_LEVEL_INFO, "handler", 7) != CW_OK) _exit(3);
}

static void count_each(const cw_record_view *view, void *user) {
    (void)view;
    ++*(size_t *)user;
}

/* The child must end well. Then the parent closes. */
static void close_behind(pid_t child, cw_engine *engine) {
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT(0, status);
    EXPECT(CW_OK, cw_close(&engine, 60000));
}

static void case_fork_handler(void) {
    pthread_atfork(NULL, NULL, log_in_child);
    cw_options options = defaults();
    cw_engine *engine = open_with(&options);
    hazard_log = logger_of(engine, "fork");
    put(hazard_log, "parent");
    pid_t child = fork();
    if (child == 0) {
        for (int i = 0; i < 3; i++)
            if (cw_write(hazard_log, CW_LEVEL_INFO, "child", 5) != CW_OK) _exit(4);
        _exit(0);
    }
    close_behind(child, engine);
    size_t count = 0;
    EXPECT(5, read_logs(count_each, &count));
}

/* A child that may have no further thread: closing says so and closes nothing, and records stay
 * kept. */
static void case_fork_alone(void) {
    cw_options options = defaults();
    cw_engine *engine = open_with(&options);
    hazard_log = logger_of(engine, "fork");
    pid_t child = fork();
    if (child == 0) {
        failures = 0;
        without(SYS_clone, SYS_clone3);
        put(hazard_log, "before");
        EXPECT(CW_E_TIMEOUT, cw_close(&engine, 100));
        char text[200] = "";
        cw_last_error(text, sizeof text);
        EXPECT(1, strstr(text, "did not start") != NULL);
        EXPECT(1, engine != NULL);
        put(hazard_log, "after");
        _exit(failures ? 1 : 0);
    }
    close_behind(child, engine);
    size_t count = 0;
    EXPECT(2, read_logs(count_each, &count));
}

/* A child's lane names the loggers that the parent created. */
static void named_each(const cw_record_view *view, void *user) {
    size_t *right = user;
    *right += view->logger.length == view->message.length &&
              memcmp(view->logger.data, view->message.data, view->message.length) == 0;
}

static void case_fork_names(void) {
    cw_options options = defaults();
    cw_engine *engine = open_with(&options);
    cw_logger *logs[10];
    char name[16];
    for (int i = 0; i < 10; i++) {
        snprintf(name, sizeof name, "name.%d", i);
        logs[i] = logger_of(engine, name);
    }
    pid_t child = fork();
    if (child == 0) {
        failures = 0;
        for (int i = 0; i < 10; i++) {
            snprintf(name, sizeof name, "name.%d", i);
            put(logs[i], name);
        }
        _exit(failures ? 1 : 0);
    }
    close_behind(child, engine);
    size_t right = 0;
    EXPECT(10, read_logs(named_each, &right));
    EXPECT(10, right);
}

/* ── longjmp ── */

enum { IDLE_THREADS = 500 };
static __thread sigjmp_buf jump_out;
static sem_t jump_go[IDLE_THREADS], jump_done;
static atomic_int jump_ready;
static void jump_now(void) { siglongjmp(jump_out, 1); }

/* The thread's chunk was settled and its segment released while the thread was idle. */
static void *jump_within(void *argument) {
    intptr_t n = (intptr_t)argument;
    put(hazard_log, "idle");
    jump_ready++;
    while (sem_wait(&jump_go[n]) != 0) continue;
    if (sigsetjmp(jump_out, 1) == 0) {
        step_start((int)n + 1, jump_now);
        log_text(hazard_log, "jumped", 6);
        step_end();
    }
    if (n % 2) put(hazard_log, "after"); /* the others leave it to the thread's end */
    sem_post(&jump_done);
    return NULL;
}

static void case_jump_steps(void) {
    cw_options options = defaults();
    cw_engine *engine = open_with(&options);
    hazard_log = logger_of(engine, "jump");
    steps_prepare();
    put(hazard_log, "first");
    EXPECT(CW_OK, cw_roll(engine));
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 64 << 10);
    pthread_t threads[IDLE_THREADS];
    for (intptr_t n = 0; n < IDLE_THREADS; n++) {
        sem_init(&jump_go[n], 0, 0);
        EXPECT(0, pthread_create(&threads[n], &small, jump_within, (void *)n));
    }
    while (jump_ready < IDLE_THREADS) sched_yield();
    EXPECT(CW_OK, cw_roll(engine));
    put(hazard_log, "second");
    EXPECT(CW_OK, cw_archive_wait(engine, ARCHIVE_WAIT_MS));
    EXPECT(CW_OK, cw_roll(engine));
    for (int n = 0; n < IDLE_THREADS; n++) {
        sem_post(&jump_go[n]);
        while (sem_wait(&jump_done) != 0) continue;
        pthread_join(threads[n], NULL);
    }
    EXPECT(CW_OK, cw_close(&engine, 20000));
}

/* A handler interrupts an append. A second interrupts the handler's append and jumps out of it. */
static sigjmp_buf jump_inner;
static void leave_inner(void) { siglongjmp(jump_inner, 1); }
static void log_nested(void) {
    for (volatile int k = 0; k < 6; k++) {
        if (sigsetjmp(jump_inner, 1) == 0) {
            step_start(200 + 40 * k, leave_inner);
            log_text(hazard_log, "left", 4);
            step_end();
        }
    }
    put(hazard_log, "nested");
}

static void case_jump_nested(void) {
    cw_options options = defaults();
    cw_engine *engine = open_with(&options);
    hazard_log = logger_of(engine, "jump");
    steps_prepare();
    put(hazard_log, "first");
    for (int n = 20; n < 100; n += 8) {
        step_start(n, log_nested);
        put(hazard_log, "own");
        step_end();
    }
    EXPECT(CW_OK, cw_close(&engine, 60000));
}

BY_MACRO(jump_steps)
BY_TEXT(jump_steps)
BY_MACRO(jump_nested)

/* A jump out of an append in a function with a large frame. The frame is further from the next
 * append than any that a handler interrupts (append.h). */
static sigjmp_buf jump_large;
static void leave_large(void) { siglongjmp(jump_large, 1); }
static int steps_counted;
static void count_step(const unsigned char *instruction) {
    (void)instruction;
    steps_counted++;
}

__attribute__((noinline)) static void log_from_large(int steps) {
    volatile char frame[256 << 10];
    frame[0] = frame[sizeof frame - 1] = 'x';
    if (steps > 0) step_start(steps, leave_large);
    CW_INFO(hazard_log, "%c%c", frame[0], frame[sizeof frame - 1]);
    if (steps > 0) step_end();
}

static void case_jump_large(void) {
    cw_options options = defaults();
    cw_engine *engine = open_with(&options);
    hazard_log = logger_of(engine, "jump");
    steps_prepare();
    for (int i = 0; i < 2; i++) log_from_large(0);
    for (volatile int n = 1; n < 150; n++) {
        if (sigsetjmp(jump_large, 1) == 0) log_from_large(n);
        int least = STEPS_OFF; /* one of them may begin a chunk */
        for (int i = 0; i < 3; i++) {
            steps_counted = 0;
            each_step = count_step;
            log_from_large(STEPS_OFF / 4);
            each_step = NULL;
            if (steps_counted < least) least = steps_counted;
        }
        HOLDS(least > 30 && least < 300); /* nesting does not grow without end */
    }
    EXPECT(CW_OK, cw_close(&engine, 60000));
}

/* ── Cancellation ── */

static void *cancel_write(void *argument) {
    (void)argument;
    for (uint64_t i = 0;; i++) {
        numbered(hazard_log, 1, i);
        pthread_testcancel();
    }
    return NULL;
}
static void *cancel_write_anywhere(void *argument) {
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
    return cancel_write(argument);
}
static void *cancel_wait(void *argument) {
    for (;;) {
        cw_archive_wait(argument, 1);
        pthread_testcancel();
    }
    return NULL;
}
static void *cancel_roll(void *argument) {
    for (;;) {
        cw_roll(argument);
        pthread_testcancel();
    }
    return NULL;
}

static void case_cancel(void) { /* leaves no lock held and nothing half made */
    cw_options options = defaults();
    options.segment_bytes = 64u << 10;
    cw_engine *engine = open_with(&options);
    hazard_log = logger_of(engine, "cancel");
    void *(*bodies[])(void *) = {cancel_write, cancel_write_anywhere, cancel_wait, cancel_roll};
    for (int round = 0; round < 60; round++) {
        pthread_t thread;
        pthread_create(&thread, NULL, bodies[round % 4], engine);
        struct timespec pause = {0, 1000 * 1000 * (1 + round % 7)};
        nanosleep(&pause, NULL);
        pthread_cancel(thread);
        pthread_join(thread, NULL);
    }
    put(hazard_log, "alive");
    EXPECT(CW_OK, cw_roll(engine));
    EXPECT(CW_OK, cw_archive_wait(engine, ARCHIVE_WAIT_MS));
    EXPECT(CW_OK, cw_close(&engine, 60000));
}

/* Already cancelled, in a call full of cancellation points: the call returns. */
static void *cancelled_write(void *argument) {
    volatile int *returned = argument;
    pthread_cancel(pthread_self());
    *returned += cw_write(hazard_log, CW_LEVEL_INFO, "cancelled", 9) == CW_OK;
    pthread_testcancel();
    return NULL;
}

static void case_cancel_pending(void) {
    without(SYS_fallocate, SYS_fallocate); /* each record is written by pwrite(2) */
    cw_options options = defaults();
    cw_engine *engine = open_with(&options);
    hazard_log = logger_of(engine, "cancel");
    volatile int returned = 0;
    for (int i = 0; i < 20; i++) {
        pthread_t thread;
        void *result = NULL;
        pthread_create(&thread, NULL, cancelled_write, (void *)(uintptr_t)&returned);
        pthread_join(thread, &result);
        HOLDS(result == PTHREAD_CANCELED);
    }
    EXPECT(20, returned);
    EXPECT(CW_OK, cw_close(&engine, 60000));
    EXPECT(20, read_logs(NULL, NULL));
}

/* ── System calls that are refused ── */

static void case_no_links(void) { /* FAT, VirtualBox, many user-space file systems */
    without(SYS_linkat, SYS_renameat2);
    rolls_case(60000, NULL);
}

/* A filter that the host installs after open, for all its threads. */
static void lose_membarrier(void) {
    if (!refuse(SECCOMP_RET_ERRNO | EPERM, SECCOMP_FILTER_FLAG_TSYNC, SYS_membarrier,
                SYS_membarrier))
        exit(77);
}
static void case_membarrier_lost(void) { rolls_case(60000, lose_membarrier); }
