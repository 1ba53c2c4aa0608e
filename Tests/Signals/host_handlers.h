/* Cases of host.c: handlers of the host's own before and after ours, engines that come and go,
 * children, and what a handler may do to an append. */

/* ── The host's handlers ── */

static void say_and_exit(int number, siginfo_t *info, void *context) {
    (void)context;
    char text[64];
    int length = snprintf(text, sizeof text, "handler %d %d %p\n", number, info->si_code,
                          info->si_addr);
    write(1, text, (size_t)length);
    _exit(42);
}
static void set_handler(void (*handler)(int, siginfo_t *, void *), int flags) {
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | flags};
    sigaction(SIGSEGV, &action, NULL);
}

static void case_handler_before(void) {
    begin_with(options_of_host());
    set_handler(say_and_exit, 0);
    install();
    read_null();
}

static struct sigaction previous;
static void pass_on(int number, siginfo_t *info, void *context) {
    write(1, "after\n", 6);
    if (previous.sa_flags & SA_SIGINFO) previous.sa_sigaction(number, info, context);
    else signal(number, SIG_DFL);
}
/* The host's handler replaces ours and calls it. A second install leaves ours where it is. */
static void case_handler_after(void) {
    begin();
    sigaction(SIGSEGV, NULL, &previous);
    set_handler(pass_on, SA_ONSTACK);
    install();
    read_null();
}

/* Jumps out of the handler and goes on, like runtimes that turn faults into exceptions. */
static sigjmp_buf away;
static void jump(int number, siginfo_t *info, void *context) {
    (void)number, (void)info, (void)context;
    siglongjmp(away, 1);
}
static void case_handler_jumps(void) {
    begin_with(options_of_host());
    set_handler(jump, SA_ONSTACK);
    install();
    const char *volatile bad = (const char *)16;
    for (volatile int i = 0; i < 100; i++) {
        if (sigsetjmp(away, 1) != 0) continue;
        if (i % 4 == 1) (cw_write)(log_of_host, CW_LEVEL_INFO, bad, 100);
        if (i % 4 == 3) cw_write(log_of_host, CW_LEVEL_INFO, bad, 100); /* the header's append */
        read_null();
    }
    put("after");
    OK(cw_close(&engine, 10000) == CW_OK);
}

/* The page becomes accessible, and the instruction is retried. */
static char *page;
static void mend(int number, siginfo_t *info, void *context) {
    (void)number, (void)info, (void)context;
    mprotect(page, 4096, PROT_READ | PROT_WRITE);
}
static void case_handler_mends(void) {
    begin_with(options_of_host());
    set_handler(mend, 0);
    install();
    page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    page[0] = 1;
    put("after");
    OK(cw_close(&engine, 10000) == CW_OK);
}

/* SA_RESETHAND: the second fault finds the default. */
static void case_handler_once(void) {
    begin_with(options_of_host());
    set_handler(mend, (int)SA_RESETHAND);
    install();
    page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    page[0] = 1;
    put("after");
    read_null();
}

static void case_ignored(void) {
    begin_with(options_of_host());
    signal(SIGSEGV, SIG_IGN);
    install();
    kill(getpid(), SIGSEGV);
    put("after");
    OK(cw_close(&engine, 10000) == CW_OK);
}
static void case_ignored_fault(void) {
    begin_with(options_of_host());
    signal(SIGSEGV, SIG_IGN);
    install();
    read_null();
}

/* ── Engines and children ── */

static void case_two_engines(void) {
    begin();
    char path[4096];
    snprintf(path, sizeof path, "%s-second", store);
    cw_options options = options_of_host();
    options.directory = path;
    engine = open_with(options);
    install(), install();
    read_null();
}

/* The handler stays without an engine to write to. */
static void case_closed(void) {
    begin();
    OK(cw_close(&engine, 10000) == CW_OK);
    read_null();
}
/* More engines than there are slots, in sequence. */
static void case_reopened(void) {
    begin();
    for (int i = 0; i < 70; i++) {
        OK(cw_close(&engine, 10000) == CW_OK);
        engine = open_with(options_of_host());
        install();
    }
    read_null();
}

static void await(pid_t child) {
    int status = 0;
    waitpid(child, &status, 0);
    printf("child %d %d\n", (int)child, status);
    fflush(stdout);
}
static void case_child(void) {
    begin();
    pid_t child = fork();
    if (child == 0) read_null();
    await(child);
    put("after");
    OK(cw_close(&engine, 10000) == CW_OK);
}
static void case_grandchild(void) {
    begin();
    pid_t child = fork();
    if (child == 0) {
        put("child");
        pid_t next = fork();
        if (next == 0) read_null();
        await(next);
        call_null();
    }
    await(child);
    OK(cw_close(&engine, 10000) == CW_OK);
}

static void case_off(void) {
    begin();
    OK(cw_level_set(engine, "Cordwood.Crash", CW_LEVEL_OFF) == CW_OK);
    read_null();
}

static void case_bad_arguments(void) {
    OK(cw_crash_handler_install(NULL) == CW_E_ARGUMENT);
    begin();
    cw_engine *closed = engine;
    OK(cw_close(&engine, 10000) == CW_OK);
    OK(cw_crash_handler_install(closed) == CW_E_CLOSED);
}

/* ── Threads ── */

static void *log_and_end(void *argument) {
    put("thread");
    stack_t present;
    OK(sigaltstack(NULL, &present) == 0);
    OK(plain == !!(present.ss_flags & SS_DISABLE));
    return argument;
}
/* A host's own alternate stack stays. */
static void *with_own_stack(void *argument) {
    static char memory[64 << 10];
    stack_t own = {.ss_sp = memory, .ss_size = sizeof memory}, present;
    OK(sigaltstack(&own, NULL) == 0);
    put("thread");
    OK(sigaltstack(NULL, &present) == 0 && present.ss_sp == memory);
    return argument;
}
static size_t mappings(void) {
    FILE *file = fopen("/proc/self/maps", "r");
    size_t count = 0;
    for (int c; (c = getc(file)) != EOF;) count += c == '\n';
    fclose(file);
    return count;
}
/* The engine's own threads may start meanwhile: each has a stack and a malloc arena, four
 * mappings. */
enum { ENGINE_MAPPINGS = 16 };
static void case_threads_end(void) {
    begin();
    size_t before = 0;
    for (int i = 0; i < 2000; i++) {
        run_thread(log_and_end, NULL);
        if (i == 10) before = mappings();
    }
    run_thread(with_own_stack, NULL);
    size_t now = mappings();
    if (now > before + ENGINE_MAPPINGS) printf("%zu mappings, %zu before\n", now, before);
    OK(now <= before + ENGINE_MAPPINGS);
    OK(cw_close(&engine, 10000) == CW_OK);
}

/* Threads that cannot return their resources: the engine notices that they have ended. */
static void *log_and_look(void *argument) {
    put("thread");
    stack_t present;
    OK(sigaltstack(NULL, &present) == 0);
    *(bool *)argument = !(present.ss_flags & SS_DISABLE);
    return NULL;
}
enum { REAPED_THREADS = 34000 }; /* more than the engine has blocks and stacks for */
static void case_threads_reaped(void) {
    take_keys(), begin();
    bool has_stack = false;
    for (int i = 0; i < REAPED_THREADS; i++) run_thread(log_and_look, &has_stack);
    while (!plain && !has_stack) run_thread(log_and_look, &has_stack);
    OK(cw_close(&engine, 10000) == CW_OK);
}

/* ── Two signals nested in an append, no spare segments (R17) ── */

enum { NESTED_RECORDS = 200000 };
static volatile unsigned nested_sent[3]; /* by handlers, too */
static void numbered(unsigned writer) {
    char text[64];
    int length = snprintf(text, sizeof text, "%u %u %0*d", writer, nested_sent[writer], 30, 0);
    OK(cw_write(log_of_host, CW_LEVEL_INFO, text, (size_t)length) == CW_OK);
    nested_sent[writer]++;
}
static void inner(int number) {
    (void)number;
    numbered(2);
}
static void outer(int number) {
    (void)number;
    for (int i = 0; i < 3; i++) numbered(1);
}
/* One timer's handler interrupts the other's. 64 KiB segments run out at once. */
static void case_nested(void) {
    cw_options options = options_of_host();
    options.segment_bytes = 64 << 10;
    begin_with(options);
    install();
    struct sigaction action = {.sa_handler = outer, .sa_flags = SA_RESTART};
    sigaction(SIGALRM, &action, NULL);
    action.sa_handler = inner;
    sigaction(SIGPROF, &action, NULL);
    struct itimerval often = {{0, 100}, {0, 100}}, never = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &often, NULL);
    setitimer(ITIMER_PROF, &often, NULL);
    while (nested_sent[0] < NESTED_RECORDS || nested_sent[1] < 600 || nested_sent[2] < 50)
        numbered(0);
    setitimer(ITIMER_REAL, &never, NULL);
    setitimer(ITIMER_PROF, &never, NULL);
    /* A pending one may still come. */
    sigset_t both;
    sigemptyset(&both), sigaddset(&both, SIGALRM), sigaddset(&both, SIGPROF);
    sigprocmask(SIG_BLOCK, &both, NULL);
    printf("sent %u %u %u\n", nested_sent[0], nested_sent[1], nested_sent[2]);
    OK(cw_close(&engine, 20000) == CW_OK);
}
