/* One record, seen from a C host: hot STORE MODE N WORKLOAD [THREADS]. The modes of load.h, and
 *
 *   costs N     allocations and system calls of the writing thread in N bursts of 100
 *   bytes N     bytes a record in its segment, over N records
 *   lines N     N times: a few records of one thread, then of another; lines.py follows the stores
 *
 * w1 a constant text, w2 an int and a double, w3 a string of 40 bytes and an int, all by CW_INFO;
 * w4 a ready message of 100 bytes by cw_write; off a CW_DEBUG below the threshold,
 * by tens.
 * With -DPLACES=TEN, w2 has 100 places, with -DPLACES=HUNDRED 1,000. With -DSHARED, both threads
 * store to one line, which lines.py must find. */
#define LOAD_OFF
#include "hot.h"
#include "load.h"

#include <signal.h>
#include <sys/prctl.h>
#include <ucontext.h>

enum { SMALL_BURST = 100, LINES_BURST = 8, LINES_WARM = 2000 };

#ifdef SHARED
static uint64_t shared_words[2]; /* one for each thread, in the same line */
static __thread size_t shared_mine;
#define SHARE() (*(volatile uint64_t *)&shared_words[shared_mine] += 1)
#else
#define SHARE() ((void)0)
#endif

WRITER write_w1(size_t first, size_t count) {
    for (size_t i = first; i < first + count; i++) {
        CW_INFO(logger, "a record of constant text");
        SHARE();
    }
}
#ifdef PLACES
/* Each record comes from another place than the 99 or 999 before it, ten functions in turn: counts
 * are whole thousands. */
#define TEN(text) text text text text text text text text text text
#define HUNDRED(text) TEN(TEN(text))
enum { IN_A_FUNCTION = PLACES(1 +) 0 };
#define PLACE CW_INFO(logger, "order %d at %f", (int)i, prices[i % VARIANTS]); i++;
#define FUNCTION(name) __attribute__((noinline)) static void name(size_t i) { PLACES(PLACE) }
FUNCTION(places_0) FUNCTION(places_1) FUNCTION(places_2) FUNCTION(places_3) FUNCTION(places_4)
FUNCTION(places_5) FUNCTION(places_6) FUNCTION(places_7) FUNCTION(places_8) FUNCTION(places_9)
WRITER write_w2(size_t first, size_t count) {
    static void (*const places[])(size_t) = {places_0, places_1, places_2, places_3, places_4,
                                             places_5, places_6, places_7, places_8, places_9};
    for (size_t i = first; i < first + count; i += IN_A_FUNCTION)
        places[i / IN_A_FUNCTION % 10](i);
}
#else
WRITER write_w2(size_t first, size_t count) {
    for (size_t i = first; i < first + count; i++) {
        CW_INFO(logger, "order %d at %f", (int)i, prices[i % VARIANTS]);
        SHARE();
    }
}
#endif
WRITER write_w3(size_t first, size_t count) {
    for (size_t i = first; i < first + count; i++) {
        CW_INFO(logger, "user %s did %d", names[i % VARIANTS], (int)i);
        SHARE();
    }
}
WRITER write_w4(size_t first, size_t count) {
    for (size_t i = first; i < first + count; i++) {
        if (cw_write(logger, CW_LEVEL_INFO, messages[i % VARIANTS], MESSAGE) != CW_OK)
            hot_fail("cw_write");
        SHARE();
    }
}
/* Ten places, so that only a tenth of the loop's counter and branch falls on each. */
WRITER write_off(size_t first, size_t count) {
#define OFF() CW_DEBUG(logger, "order %d at %f", (int)i, prices[i % VARIANTS])
    for (size_t i = first; i < first + count; i += 10) {
        OFF(); OFF(); OFF(); OFF(); OFF();
        OFF(); OFF(); OFF(); OFF(); OFF();
    }
#undef OFF
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

/* Counts the burst, lets its later calls pass, and repeats this call (2 bytes back). */
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
    size_t number = BURST * 100;
    write_some(0, number); /* until chunks have their full size */
    if (prctl(PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_ON, 0, 0, &dispatch) != 0) {
        printf("{\"unsupported\":true}\n");
        return;
    }
    uint64_t before = allocations;
    for (size_t i = 0; i < count; i++, number += SMALL_BURST) {
        dispatch = 1;
        write_some(number, SMALL_BURST);
        dispatch = 0;
    }
    uint64_t allocated = allocations - before;
    prctl(PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_OFF, 0, 0, 0);
    printf("{\"records\":%zu,\"allocations\":%llu,", count * SMALL_BURST,
           (unsigned long long)allocated);
    printf("\"bursts\":%zu,\"bursts_with_system_calls\":%llu}\n", count,
           (unsigned long long)bursts_with_calls);
}

static void bytes(size_t count) {
    cw_stats before = {.struct_size = sizeof before}, after = before;
    write_some(0, BURST);
    if (cw_stats_get(hot_engine, &before, sizeof before) != CW_OK) hot_fail("cw_stats_get");
    write_some(BURST, count);
    if (cw_stats_get(hot_engine, &after, sizeof after) != CW_OK) hot_fail("cw_stats_get");
    printf("{\"bytes_per_record\":%.2f}\n",
           (double)(after.bytes_written - before.bytes_written) / (double)count);
}

/* ── two threads in turn, for lines.py ── */

/* In a trace of all stores, those to a thread's mark begin and end its sections. The other thread
 * waits meanwhile; a section contains no system call unless a record makes one. */
typedef struct lines_thread {
    _Alignas(4096) volatile uint64_t mark;
    size_t index, count;
} lines_thread;
static lines_thread lines_threads[2];
static pthread_barrier_t lines_turn;

static void *lines_run(void *argument) {
    lines_thread *mine = argument;
    size_t number = 0;
#ifdef SHARED
    shared_mine = mine->index;
#endif
    write_some(number, LINES_WARM), number += LINES_WARM;
    for (size_t i = 0; i < mine->count * 2; i++) {
        pthread_barrier_wait(&lines_turn);
        if (i % 2 != mine->index) continue;
        mine->mark = 1;
        write_some(number, LINES_BURST);
        mine->mark = 0;
        number += LINES_BURST;
    }
    return NULL;
}

static void lines(size_t count) {
    pthread_t ids[2];
    pthread_barrier_init(&lines_turn, NULL, 2);
    fprintf(stderr, "mark %zx %zx\n", (size_t)&lines_threads[0].mark,
            (size_t)&lines_threads[1].mark);
    for (size_t i = 0; i < 2; i++) {
        lines_threads[i].index = i, lines_threads[i].count = count;
        if (pthread_create(&ids[i], NULL, lines_run, &lines_threads[i]) != 0) hot_fail("thread");
    }
    for (size_t i = 0; i < 2; i++) pthread_join(ids[i], NULL);
    printf("{\"records\":%zu}\n", 2 * (LINES_WARM + count * LINES_BURST));
    fflush(stdout);
    _exit(0); /* archiving at close would be nine tenths of the trace */
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        void (*run)(size_t);
    } further[] = {{"costs", costs}, {"bytes", bytes}, {"lines", lines}};
    for (size_t i = 0; argc == 5 && i < sizeof further / sizeof *further; i++) {
        if (strcmp(further[i].name, argv[2]) != 0) continue;
        load_data();
        write_some = load_workload(argv[4]);
        engine_open(argv[1]);
        further[i].run(strtoull(argv[3], NULL, 10));
        engine_close();
        return 0;
    }
    return load_main(argc, argv);
}
