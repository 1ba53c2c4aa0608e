/* A host that crashes: `host CASE STORE MODE`. MODE "plain" does not install the handler, so that
 * run.py can compare how the process ends. Every case first writes "before". run.py reads what it
 * prints. alarm(2) ends a hang. */
#define _GNU_SOURCE 1
#include <cordwood/cordwood.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "../TestSupport/refuse.h"

static const char *store;
static bool plain;
static cw_engine *engine;
static cw_logger *log_of_host;

#define OK(expression)                                                                             \
    do {                                                                                           \
        if (!(expression)) {                                                                       \
            fprintf(stderr, "host.c:%d: %s\n", __LINE__, #expression);                             \
            _exit(70);                                                                             \
        }                                                                                          \
    } while (0)

static cw_options options_of_host(void) {
    cw_options options;
    cw_options_init(&options, sizeof options);
    options.directory = store;
    return options;
}

static cw_engine *open_with(cw_options options) {
    cw_engine *made = NULL;
    OK(cw_open(&options, &made) == CW_OK);
    return made;
}

static void put(const char *text) {
    OK(cw_write(log_of_host, CW_LEVEL_INFO, text, strlen(text)) == CW_OK);
}

static void install(void) {
    if (!plain) OK(cw_crash_handler_install(engine) == CW_OK);
}

static void begin_with(cw_options options) {
    engine = open_with(options);
    OK(cw_logger_get(engine, "host", &log_of_host) == CW_OK);
    put("before");
}

static void begin(void) {
    begin_with(options_of_host());
    install();
}

/* ── One signal each ── */

static volatile int zero, alarms, alarms_max;
static volatile int *volatile nothing = (volatile int *)16;
__attribute__((noinline)) static void read_null(void) { *nothing = 1; }
static void case_segv(void) { begin(), read_null(); }

static void (*volatile nowhere)(void);
__attribute__((noinline)) static void call_null(void) {
    nowhere();
    zero++;
}
static void case_null_call(void) { begin(), call_null(); }

static void case_bus(void) {
    begin();
    char name[] = "/tmp/cordwood-signals-XXXXXX";
    int file = mkstemp(name);
    unlink(name);
    char *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    memory[0] = 1;
}

__attribute__((noinline)) static void trap(void) { __builtin_trap(); }
static void case_ill(void) { begin(), trap(); }
static void case_fpe(void) { begin(), zero = alarms_max / zero; }
static void case_abort(void) { begin(), abort(); }
static void case_trap(void) {
    begin();
#if defined(__x86_64__)
    __asm__ volatile("int3");
#else
    __asm__ volatile("brk #0");
#endif
    puts("went on behind the trap");
}

static void case_sys(void) {
    begin();
    OK(refuse(SECCOMP_RET_TRAP, 0, SYS_getppid, SYS_getppid));
    getppid();
    puts("went on behind the call");
}

static void case_sent(void) {
    begin();
    kill(getpid(), SIGSEGV);
    puts("went on behind kill");
}

/* ── Stacks ── */

__attribute__((noinline)) static int deeper(volatile char *above) {
    volatile char here[512];
    here[0] = above[0];
    return deeper(here) + here[0];
}
static char first;
static void case_overflow_main(void) {
    begin();
    /* Its frames are large enough to overflow in time. */
    deeper(&first);
}

static void *overflow(void *argument) {
    if (argument) put("thread");
    deeper(&first);
    return NULL;
}
static void run_thread(void *(*body)(void *), void *argument) {
    pthread_t thread;
    OK(pthread_create(&thread, NULL, body, argument) == 0);
    pthread_join(thread, NULL);
}
static void case_overflow_thread(void) { begin(), run_thread(overflow, &first); }

/* The thread logged before the handler was installed, and fills a chunk after it. */
static pthread_barrier_t meeting;
static void *overflow_late(void *argument) {
    put("thread");
    pthread_barrier_wait(&meeting);
    pthread_barrier_wait(&meeting); /* installed */
    char text[4096];
    memset(text, 'x', sizeof text);
    for (int i = 0; i < 4; i++)
        OK(cw_write(log_of_host, CW_LEVEL_INFO, text, sizeof text) == CW_OK);
    deeper((volatile char *)argument);
    return NULL;
}
static void case_overflow_late(void) {
    begin_with(options_of_host());
    pthread_t thread;
    OK(pthread_barrier_init(&meeting, NULL, 2) == 0);
    OK(pthread_create(&thread, NULL, overflow_late, &first) == 0);
    pthread_barrier_wait(&meeting);
    install();
    pthread_barrier_wait(&meeting);
    pthread_join(thread, NULL);
}

/* A host's alternate stack with the minimum of room. */
static void case_small_stack(void) {
    begin();
    size_t bytes = getauxval(51 /* AT_MINSIGSTKSZ */) + 1536;
    char *memory = mmap(NULL, 16 << 10, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    /* It ends at a page that must not be touched. */
    size_t pages = (bytes + 4095) & ~(size_t)4095;
    OK(mprotect(memory + 4096, pages, PROT_READ | PROT_WRITE) == 0);
    stack_t small = {.ss_sp = memory + 4096, .ss_size = bytes};
    OK(sigaltstack(&small, NULL) == 0);
    read_null();
}

/* No caller can be found: the unwinder reads unmapped addresses. */
static void case_wild_stack(void) {
    begin();
#if defined(__x86_64__)
    __asm__ volatile("mov $0x10000, %%rbp\n mov $0x20000, %%rsp\n ud2" ::: "memory");
#else
    read_null();
#endif
}

/* ── In the midst of something ── */

/* Runs once inside the heap, for a thread that requests it: the thread holds the heap's lock, and
 * deadlocks if it returns to the heap. */
static pthread_mutex_t heap_lock = PTHREAD_MUTEX_INITIALIZER;
static __thread void (*volatile in_heap)(void);
extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
extern void __libc_free(void *);
/* Pieces of at least this size are refused. */
static volatile size_t refused_bytes = SIZE_MAX;
static bool is_refused(size_t bytes) {
    if (bytes < refused_bytes) return false;
    errno = ENOMEM;
    return true;
}
static void enter_heap(void) {
    if (!in_heap) return;
    pthread_mutex_lock(&heap_lock);
    in_heap();
    in_heap = NULL;
    pthread_mutex_unlock(&heap_lock);
}
void *malloc(size_t bytes) {
    enter_heap();
    return is_refused(bytes) ? NULL : __libc_malloc(bytes);
}
void *calloc(size_t count, size_t bytes) {
    enter_heap();
    return is_refused(count * bytes) ? NULL : __libc_calloc(count, bytes);
}
void *realloc(void *old, size_t bytes) {
    enter_heap();
    return is_refused(bytes) ? NULL : __libc_realloc(old, bytes);
}
void free(void *memory) {
    enter_heap();
    __libc_free(memory);
}
static void use_heap(void (*within)(void)) {
    in_heap = within;
    void *volatile memory = malloc(10);
    free(memory);
}
static void *crash_in_heap(void *argument) {
    use_heap(read_null);
    return argument;
}
static void case_malloc(void) { begin(), crash_in_heap(NULL); }

/* A thread's very first record, for which its registration with the C library needs memory. */
static void take_keys(void) {
    pthread_key_t key;
    for (int i = 0; i < 40; i++) OK(pthread_key_create(&key, NULL) == 0);
}
static void case_malloc_thread(void) {
    take_keys(), begin(), run_thread(crash_in_heap, NULL);
}
static void log_in_handler(int number) {
    (void)number;
    put("handler");
}
static void interrupt(void) { raise(SIGUSR1); }
static void *log_in_heap(void *argument) {
    use_heap(interrupt);
    put("thread");
    return argument;
}
static void case_malloc_handler(void) {
    take_keys(), begin();
    signal(SIGUSR1, log_in_handler);
    run_thread(log_in_heap, NULL);
    OK(cw_close(&engine, 10000) == CW_OK);
}

/* A forked child's very first record. */
static void case_malloc_child(void) {
    begin();
    pid_t child = fork();
    if (child == 0) crash_in_heap(NULL);
    int status = 0;
    waitpid(child, &status, 0);
    printf("child %d %d\n", (int)child, status);
    put("after");
}

/* Allocations whose size a host or a file decides are refused: nothing aborts. */
static void case_memory_of_rules(void) {
    begin();
    static char names[5000 * 6];
    for (int i = 0; i < 5000; i++) snprintf(names + i * 6, 7, "k%04d%s", i, i < 4999 ? "\n" : "");
    names[4000 * 6 - 1] = '\0'; /* 4,000 of them: a table of 256 KiB */
    cw_http_options options;
    cw_http_options_init(&options, sizeof options);
    options.redact_keys = names;
    refused_bytes = 200 << 10;
    OK(cw_http_options_set(engine, &options) == CW_E_MEMORY);
    refused_bytes = SIZE_MAX;
    OK(cw_http_options_set(engine, &options) == CW_OK);
    OK(cw_close(&engine, 10000) == CW_OK);
}
static void case_memory_of_texts(void) {
    begin();
    static const uint8_t types[8] = {CW_ARG_INT};
    static const char *const formats[] = {"{:>900000}", "{:.900000f}", "{:0900000}"};
    for (int i = 0; i < 3; i++) {
        static const uint8_t doubles[8] = {CW_ARG_DOUBLE};
        const cw_arg value = {i == 1 ? 0 : 7};
        const cw_site place = {.format = formats[i], .file = "f", .function = "g",
                               .arguments = i == 1 ? doubles : types, .line = 1 + (uint32_t)i,
                               .count = (uint32_t)strlen(formats[i]), .style = CW_STYLE_BRACES};
        OK(cw_place_write(log_of_host, CW_LEVEL_INFO, &place, &value) == CW_OK);
    }
    cw_reader *reader;
    OK(cw_reader_open(store, NULL, &reader) == CW_OK);
    cw_record_view record = {.struct_size = sizeof record};
    for (int refused = 1; refused >= 0; refused--) {
        int cut = 0, whole = 0;
        OK(refused || cw_reader_open(store, NULL, &reader) == CW_OK);
        refused_bytes = refused ? 512 << 10 : SIZE_MAX;
        while (cw_reader_next(reader, &record) == CW_OK) {
            cut += (record.flags & CW_VIEW_TRUNCATED) != 0;
            whole += record.message.length >= 900000;
        }
        refused_bytes = SIZE_MAX;
        OK(cut == 3 * refused && whole == 3 - cut);
        OK(cw_reader_close(&reader) == CW_OK);
    }
    OK(cw_close(&engine, 10000) == CW_OK);
}

/* In the engine's own copying. */
static void case_append(void) {
    begin();
    (cw_write)(log_of_host, CW_LEVEL_INFO, (const char *)16, 100);
}

static void storm(int number) {
    (void)number;
    cw_write(log_of_host, CW_LEVEL_INFO, "alarm", 5);
    if (++alarms == alarms_max) read_null();
}
static void case_storm(void) {
    begin();
    alarms_max = 50 + (int)(getpid() % 50);
    struct sigaction action = {.sa_handler = storm, .sa_flags = SA_RESTART};
    sigaction(SIGALRM, &action, NULL);
    struct itimerval often = {{0, 100}, {0, 100}};
    setitimer(ITIMER_REAL, &often, NULL);
    for (int i = 0;; i++) {
        char text[32];
        int length = snprintf(text, sizeof text, "own %d", i);
        OK(cw_write(log_of_host, CW_LEVEL_INFO, text, (size_t)length) == CW_OK);
        if (i % 1000 == 0) printf("%d\n", i), fflush(stdout);
    }
}

/* The synchronous echo takes locks, which a crash must not. */
static void case_console(void) {
    cw_options options = options_of_host();
    options.console = CW_CONSOLE_TEXT;
    options.flags = CW_FLAG_SYNC_CONSOLE;
    begin_with(options), install(), crash_in_heap(NULL);
}

static pthread_barrier_t together;
static void *crash_together(void *argument) {
    pthread_barrier_wait(&together);
    read_null();
    return argument;
}
static void case_together(void) {
    begin();
    pthread_t threads[4];
    pthread_barrier_init(&together, NULL, 4);
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, crash_together, NULL);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
}

#include "host_handlers.h"

static const struct {
    const char *name;
    void (*run)(void);
} cases[] = {
#define CASE(name) {#name, case_##name}
    CASE(segv), CASE(null_call), CASE(bus), CASE(ill), CASE(fpe), CASE(abort), CASE(trap),
    CASE(sys), CASE(sent), CASE(overflow_main), CASE(overflow_thread), CASE(overflow_late),
    CASE(small_stack), CASE(wild_stack), CASE(malloc), CASE(malloc_thread), CASE(malloc_child),
    CASE(malloc_handler), CASE(append), CASE(storm), CASE(console), CASE(together),
    CASE(handler_before),
    CASE(handler_after), CASE(handler_jumps), CASE(handler_mends), CASE(handler_once),
    CASE(ignored), CASE(ignored_fault), CASE(two_engines), CASE(closed), CASE(reopened),
    CASE(child), CASE(grandchild), CASE(off), CASE(bad_arguments),
    CASE(threads_end), CASE(threads_reaped), CASE(nested),
    CASE(memory_of_rules), CASE(memory_of_texts),
};

int main(int argc, char **argv) {
    if (argc != 4) return 2;
    store = argv[2];
    plain = strcmp(argv[3], "plain") == 0;
    alarm(300);
    setvbuf(stdout, NULL, _IOLBF, 0);
    struct rlimit stack = {1 << 20, 1 << 20};
    if (strncmp(argv[1], "overflow", 8) == 0 && getenv("HOST_STACK") == NULL) {
        setenv("HOST_STACK", "1", 1);
        setrlimit(RLIMIT_STACK, &stack);
        execv("/proc/self/exe", argv);
    }
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (strcmp(cases[i].name, argv[1]) != 0) continue;
        cases[i].run();
        return 0;
    }
    return 2;
}
