/* Appends of the header whose thread changes or ends: fibers that move between threads from one
 * record to the next, and threads that end while signal handlers log. abi.c includes it after
 * abi_inlined.h. */
#include <ucontext.h>

static atomic_uint_fast64_t move_next; /* a number for each record */
static cw_logger *move_log;
enum { MOVE_MAX = 2000000 };
static unsigned char move_kept[MOVE_MAX], move_read[MOVE_MAX];

/* Uses both of the header's appends, inlined into the caller's loop. */
#define MOVE_LOG()                                                                                 \
    do {                                                                                           \
        uint64_t number_ = atomic_fetch_add(&move_next, 1);                                        \
        char text_[24];                                                                            \
        int n_ = snprintf(text_, sizeof text_, "n %llu", (unsigned long long)number_);             \
        if (number_ % 2 != 0) CW_INFO(move_log, "n %llu", (unsigned long long)number_);            \
        else EXPECT(CW_OK, cw_write_here_(move_log, CW_LEVEL_INFO, text_, (size_t)n_));            \
        if (number_ < MOVE_MAX) move_kept[number_] = 1;                                            \
    } while (0)

static void move_each(const cw_record_view *view, void *user) {
    (void)user;
    char text[24] = "";
    memcpy(text, view->message.data, view->message.length < 23 ? view->message.length : 23);
    unsigned long long number = MOVE_MAX;
    HOLDS(sscanf(text, "n %llu", &number) == 1 && number < MOVE_MAX);
    if (number < MOVE_MAX) move_read[number]++;
}

static void moves_are_read(void) {
    uint64_t count = atomic_load(&move_next), wrong = 0;
    HOLDS(count < MOVE_MAX);
    EXPECT(count, read_logs(move_each, NULL));
    for (uint64_t i = 0; i < count; i++) wrong += move_kept[i] != 1 || move_read[i] != 1;
    EXPECT(0, wrong);
}

/* ── Fibers (C2) ── */

enum { FIBERS = 24, FIBER_THREADS = 3, FIBER_RECORDS = 3000, FIBER_STACK = 256 << 10 };
typedef struct {
    ucontext_t self, *back; /* of the thread that runs it */
    int done;
} fiber;
static fiber fibers[FIBERS];
static pthread_mutex_t fiber_lock = PTHREAD_MUTEX_INITIALIZER;
static fiber *fiber_queue[FIBERS];
static int fibers_waiting, fibers_left = FIBERS;
static atomic_int fiber_moves;

static pid_t __attribute__((noinline)) fiber_thread(void) { return (pid_t)syscall(SYS_gettid); }
/* Records of the current thread. */
static uint64_t __attribute__((noinline)) fiber_count(void) {
#if CW_APPEND_INLINE_
    return cw_append_1 ? cw_append_1->records : 0;
#else
    return 0;
#endif
}

static void fiber_run(unsigned index) {
    fiber *mine = &fibers[index];
    pid_t before = fiber_thread();
    for (int i = 0; i < FIBER_RECORDS; i++) {
        uint64_t count = fiber_count();
        MOVE_LOG();
        HOLDS(count == 0 || fiber_count() == count + 1);
        if (i % 3 == 0) swapcontext(&mine->self, mine->back);
        if (fiber_thread() != before) atomic_fetch_add(&fiber_moves, 1);
        before = fiber_thread();
    }
    mine->done = 1;
    swapcontext(&mine->self, mine->back);
}

static void *fiber_thread_run(void *argument) {
    ucontext_t here;
    for (;;) {
        pthread_mutex_lock(&fiber_lock);
        fiber *next = NULL;
        if (fibers_waiting > 0) { /* the one that waits longest: usually another thread's */
            next = fiber_queue[0];
            memmove(fiber_queue, fiber_queue + 1, (size_t)--fibers_waiting * sizeof *fiber_queue);
        }
        int left = fibers_left;
        pthread_mutex_unlock(&fiber_lock);
        if (!next && left == 0) return argument;
        if (!next) {
            sched_yield();
            continue;
        }
        next->back = &here;
        swapcontext(&here, &next->self);
        pthread_mutex_lock(&fiber_lock);
        if (next->done) fibers_left--;
        else fiber_queue[fibers_waiting++] = next;
        pthread_mutex_unlock(&fiber_lock);
    }
}

static void case_fibers(void) {
    cw_options options = defaults();
    options.segment_bytes = 256u << 10; /* small, so that chunks end, too */
    cw_engine *engine = open_with(&options);
    move_log = logger_of(engine, "fibers");
    for (unsigned i = 0; i < FIBERS; i++) {
        getcontext(&fibers[i].self);
        fibers[i].self.uc_stack.ss_sp = malloc(FIBER_STACK);
        fibers[i].self.uc_stack.ss_size = FIBER_STACK;
        makecontext(&fibers[i].self, (void (*)(void))fiber_run, 1, i);
        fiber_queue[fibers_waiting++] = &fibers[i];
    }
    pthread_t threads[FIBER_THREADS];
    for (int i = 0; i < FIBER_THREADS; i++)
        pthread_create(&threads[i], NULL, fiber_thread_run, NULL);
    for (int i = 0; i < FIBER_THREADS; i++) pthread_join(threads[i], NULL);
    HOLDS(atomic_load(&fiber_moves) > FIBERS);
    EXPECT(CW_OK, cw_close(&engine, 60000));
    EXPECT((uint64_t)FIBERS * FIBER_RECORDS, atomic_load(&move_next));
    moves_are_read();
}

/* ── Threads that end under a storm of signals (C10) ── */

enum { ENDING_ROUNDS = 1500 };
static pthread_key_t ending_key;
static atomic_int ending_ends, ending_signals;

static void ending_handler(int signal_number) {
    (void)signal_number;
    int saved = errno;
    atomic_fetch_add(&ending_signals, 1);
    MOVE_LOG();
    errno = saved;
}
static void ending_destructor(void *value) {
    (void)value;
    MOVE_LOG(); /* destructors run before or after the library's */
}
static void *ending_run(void *argument) {
    pthread_setspecific(ending_key, argument);
    for (int i = 0; i < 5; i++) MOVE_LOG();
    atomic_fetch_add(&ending_ends, 1);
    return NULL;
}

static void case_ending_storm(void) {
    cw_options options = defaults();
    cw_engine *engine = open_with(&options);
    move_log = logger_of(engine, "ending");
    pthread_key_create(&ending_key, ending_destructor);
    struct sigaction action = {.sa_handler = ending_handler, .sa_flags = SA_RESTART};
    sigaction(SIGUSR1, &action, NULL);
    for (int round = 0; round < ENDING_ROUNDS; round++) {
        pthread_t thread;
        int before = atomic_load(&ending_ends);
        pthread_create(&thread, NULL, ending_run, &ending_key);
        /* From its first instruction to past its last: a thread that has ended takes none. */
        for (int i = 0; i < 200 && atomic_load(&ending_ends) == before; i++)
            pthread_kill(thread, SIGUSR1);
        for (int i = 0; i < 20; i++) pthread_kill(thread, SIGUSR1);
        pthread_join(thread, NULL);
    }
    HOLDS(atomic_load(&ending_signals) > ENDING_ROUNDS);
    EXPECT(CW_OK, cw_close(&engine, 60000));
    moves_are_read();
}
