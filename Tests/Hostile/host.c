/* A host inside which the engine meets a hostile store, or is inspected closely. One case a run:
 * `host CASE FOLDER`. Exits with 0, or says what is wrong. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cordwood/cordwood.h>

#define NEED(holds)                                                                               \
    do {                                                                                           \
        if (!(holds)) {                                                                            \
            char why_[400] = "";                                                                   \
            cw_last_error(why_, sizeof why_);                                                      \
            printf("%s:%d: not so: %s (%s)\n", __FILE__, __LINE__, #holds, why_);                  \
            fflush(stdout);                                                                        \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

static const char *folder;

static cw_options options_for(void) {
    cw_options options;
    cw_options_init(&options, sizeof options);
    options.directory = folder;
    options.segment_bytes = 1 << 16;
    return options;
}

static cw_engine *open_engine(uint32_t flags, cw_logger **log) {
    cw_options options = options_for();
    options.flags = flags;
    cw_engine *engine = NULL;
    NEED(cw_open(&options, &engine) == CW_OK);
    NEED(cw_logger_get(engine, "host", log) == CW_OK);
    return engine;
}

/* Logs into the given store. An engine that cannot open says so. The host goes on either way. */
static void case_log(void) {
    cw_options options = options_for();
    options.quota_bytes = 1 << 30;
    options.archives_max = 1000;
    cw_engine *engine = NULL;
    cw_status status = cw_open(&options, &engine);
    if (status != CW_OK) {
        printf("refused: %s\n", cw_status_name(status));
        return;
    }
    cw_logger *log;
    NEED(cw_logger_get(engine, "host", &log) == CW_OK);
    for (int i = 0; i < 100; i++) NEED(cw_write(log, CW_LEVEL_INFO, "of the host", 11) == CW_OK);
    NEED(cw_roll(engine) == CW_OK);
    status = cw_archive_wait(engine, 60000);
    /* A target without a server: the upload path reads archives, targets and queue. */
    cw_target_options target;
    cw_target_options_init(&target, sizeof target);
    target.name = "nobody";
    target.url = "http://127.0.0.1:1";
    if (cw_target_add(engine, &target, NULL) == CW_OK) cw_upload(engine, 20000, NULL, 0);
    cw_consent_set(engine, CW_CONSENT_DENIED);
    NEED(cw_close(&engine, 60000) == CW_OK);
    printf("logged, archived: %s\n", cw_status_name(status));
}

/* Opens the store, with the policy of a URL, and says why not. */
static void case_look(void) {
    cw_options options = options_for();
    options.policy_url = getenv("POLICY_URL");
    cw_engine *engine = NULL;
    cw_status status = cw_open(&options, &engine);
    char why[400] = "";
    if (status != CW_OK) cw_last_error(why, sizeof why);
    printf("%s: %s\n", cw_status_name(status), why);
    if (status == CW_OK) NEED(cw_close(&engine, 20000) == CW_OK);
}

/* Until standard input ends. */
static void log_on(cw_logger *log) {
    struct pollfd input = {.fd = 0, .events = POLLIN};
    while (poll(&input, 1, 1) == 0) cw_write(log, CW_LEVEL_INFO, "again", 5);
}

static void delete_store(void) {
    const char *given = getenv("DELETES");
    char command[4200];
    /* Its hosts may make a file in a directory that is about to go. */
    snprintf(command, sizeof command, "until rm -rf '%s' 2>/dev/null; do :; done", folder);
    NEED(system(given ? given : command) == 0);
}

/* Slow while it is asked to be: others may find the directory before it is given away. */
static bool slow_directories;
int mkdirat(int directory, const char *name, mode_t mode) {
    int made = (int)syscall(SYS_mkdirat, directory, name, mode);
    if (made == 0 && slow_directories) usleep(100000);
    return made;
}

static void goes_on(bool deletes) {
    cw_logger *log;
    slow_directories = true;
    cw_engine *engine = open_engine(0, &log);
    if (deletes) delete_store();
    log_on(log);
    NEED(cw_close(&engine, 20000) == CW_OK);
}

static void case_deleted(void) { goes_on(true); }
static void case_beside(void) { goes_on(false); }

/* A child that has not logged yet begins at the path of a store that was deleted. */
static void case_deleted_child(void) {
    cw_logger *log;
    cw_engine *engine = open_engine(0, &log);
    int go[2], status;
    char byte = 0;
    NEED(pipe(go) == 0);
    pid_t child = fork();
    NEED(child >= 0);
    if (child == 0) {
        NEED(read(go[0], &byte, 1) == 1);
        log_on(log);
        _exit(0);
    }
    NEED(cw_close(&engine, 20000) == CW_OK);
    delete_store();
    NEED(write(go[1], &byte, 1) == 1);
    NEED(waitpid(child, &status, 0) == child && status == 0);
}

/* Ends by itself with a segment open. */
static void case_segment(void) {
    cw_logger *log;
    open_engine(0, &log);
    char line[300];
    memset(line, 'x', sizeof line);
    for (int i = 0; i < 400; i++) NEED(cw_write(log, CW_LEVEL_INFO, line, sizeof line) == CW_OK);
    _exit(0);
}

/* Everything that opens files, for the preloaded recorder. */
static void case_life(void) {
    for (unsigned round = 0; round < 2; round++) {
        cw_logger *log;
        cw_engine *engine = open_engine(round ? CW_FLAG_TMPFS : 0, &log);
        char line[300];
        memset(line, 'x', sizeof line);
        for (int i = 0; i < 2000; i++)
            NEED(cw_write(log, CW_LEVEL_INFO, line, sizeof line) == CW_OK);
        for (int i = 0; i < 300; i++) { /* beyond the catalog's first region */
            char name[128];
            snprintf(name, sizeof name, "a.logger.with.a.long.name.number.%060d", i);
            cw_logger *other;
            NEED(cw_logger_get(engine, name, &other) == CW_OK);
            NEED(cw_write(other, CW_LEVEL_INFO, "x", 1) == CW_OK);
        }
        NEED(cw_flush(engine, CW_DURABLE_MACHINE, 30000) == CW_OK);
        NEED(cw_roll(engine) == CW_OK);
        NEED(cw_archive_wait(engine, 30000) == CW_OK);
        cw_reader *reader;
        NEED(cw_reader_open(folder, NULL, &reader) == CW_OK);
        cw_record_view view = {.struct_size = sizeof view};
        while (cw_reader_next(reader, &view) == CW_OK) {}
        cw_target_options target;
        cw_target_options_init(&target, sizeof target);
        target.name = "nobody";
        target.kind = "http";
        target.format = "ndjson";
        target.encoding = "gzip";
        target.url = "http://127.0.0.1:1";
        if (cw_target_add(engine, &target, NULL) == CW_OK) cw_upload(engine, 20000, NULL, 0);
        cw_consent_set(engine, CW_CONSENT_PENDING);
        for (int fd = 3; fd < 1024; fd++) {
            int flags = fcntl(fd, F_GETFD);
            char link[64], name[512] = "";
            snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
            if (flags < 0 || readlink(link, name, sizeof name - 1) < 0) continue;
            if (strstr(name, folder) || strstr(name, "cordwood")) NEED(flags & FD_CLOEXEC);
        }
        NEED(cw_reader_close(&reader) == CW_OK);
        cw_target_remove(engine, "nobody");
        NEED(cw_close(&engine, 30000) == CW_OK);
    }
}

/* ── Threads ── */

static volatile sig_atomic_t handled_by;

static void on_signal(int number) {
    (void)number;
    handled_by = (sig_atomic_t)gettid();
}

static uint64_t status_word(int task, const char *key) {
    char path[64], line[256];
    snprintf(path, sizeof path, "/proc/self/task/%d/status", task);
    FILE *file = fopen(path, "r");
    uint64_t value = 0;
    while (file && fgets(line, sizeof line, file))
        if (!strncmp(line, key, strlen(key))) value = strtoull(line + strlen(key) + 1, NULL, 16);
    if (file) fclose(file);
    return value;
}

static int helpers(int *out, int most) {
    DIR *tasks = opendir("/proc/self/task");
    struct dirent *entry;
    int count = 0;
    while ((entry = readdir(tasks))) {
        int task = atoi(entry->d_name);
        if (task > 0 && task != getpid() && count < most) out[count++] = task;
    }
    closedir(tasks);
    return count;
}

/* Names, blocked signals, processors and stacks of the engine's threads. */
static void case_threads(void) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(0, &one);
    NEED(sched_setaffinity(0, sizeof one, &one) == 0);
    cw_logger *log;
    cw_engine *engine = open_engine(0, &log);
    NEED(cw_write(log, CW_LEVEL_INFO, "x", 1) == CW_OK);
    NEED(cw_roll(engine) == CW_OK && cw_archive_wait(engine, 30000) == CW_OK);
    int tasks[16];
    int count = helpers(tasks, 16);
    NEED(count >= 2 && count <= 4);
    for (int i = 0; i < count; i++) {
        char path[64], name[32] = "";
        snprintf(path, sizeof path, "/proc/self/task/%d/comm", tasks[i]);
        FILE *file = fopen(path, "r");
        NEED(file && fgets(name, sizeof name, file));
        fclose(file);
        NEED(!strncmp(name, "cordwood", 8));
        uint64_t blocked = status_word(tasks[i], "SigBlk:");
        /* Signals from outside are blocked; faults of the thread itself must not be. */
        static const int own[] = {SIGKILL, SIGSTOP, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP,
                                  SIGABRT, SIGSYS};
        for (int number = 1; number <= 31; number++) {
            bool is_own = false;
            for (unsigned k = 0; k < sizeof own / sizeof *own; k++) is_own |= own[k] == number;
            if (!is_own) NEED(blocked >> (number - 1) & 1);
        }
        cpu_set_t set;
        CPU_ZERO(&set);
        NEED(sched_getaffinity(tasks[i], sizeof set, &set) == 0);
        NEED(CPU_COUNT(&set) == 1 && CPU_ISSET(0, &set));
    }
    /* Stacks: what opening maps in addition to the store is small. */
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    long resident = 0;
    NEED(file && fscanf(file, "%ld %ld", &pages, &resident) == 2);
    fclose(file);
    NEED(resident * 4096 < 64l << 20);
    NEED(cw_close(&engine, 30000) == CW_OK);
}

/* A process-directed signal reaches the host's thread, by handler and by sigwait, while the helpers
 * work. SIGTERM's default ends the host. */
static void case_signals(void) {
    struct sigaction action = {.sa_handler = on_signal};
    NEED(sigaction(SIGUSR1, &action, NULL) == 0);
    cw_logger *log;
    cw_engine *engine = open_engine(0, &log);
    /* After the open: helpers must not inherit a mask that blocks it. */
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    sigprocmask(SIG_BLOCK, &set, NULL);
    struct timespec limit = {20, 0};
    for (int i = 0; i < 2000; i++) {
        NEED(cw_write(log, CW_LEVEL_INFO, "x", 1) == CW_OK);
        if (i % 100 == 0) NEED(cw_roll(engine) == CW_OK);
        handled_by = 0;
        NEED(kill(getpid(), SIGUSR1) == 0);
        NEED(handled_by == (sig_atomic_t)getpid());
        NEED(kill(getpid(), SIGUSR2) == 0);
        NEED(sigtimedwait(&set, NULL, &limit) == SIGUSR2);
    }
    fflush(stdout);
    kill(getpid(), SIGTERM);
    pause();
}

/* Segments that come and go at a steady rate are reused: nothing is unmapped, because that delays
 * every mmap of the host (R39). From opens.c, preloaded. */
extern unsigned long unmappings(void) __attribute__((weak));
static void case_steady(void) {
    enum { WARM = 40, ROUNDS = 240, RECORDS = 500 };
    NEED(unmappings != NULL);
    cw_logger *log;
    cw_engine *engine = open_engine(0, &log);
    char text[100];
    memset(text, 'x', sizeof text);
    unsigned long before = 0;
    cw_stats stats = {.struct_size = sizeof stats};
    for (int round = 0; round < ROUNDS; round++) {
        if (round == WARM) {
            NEED(cw_stats_get(engine, &stats, sizeof stats) == CW_OK);
            before = unmappings();
        }
        for (int i = 0; i < RECORDS; i++)
            NEED(cw_write(log, CW_LEVEL_INFO, text, sizeof text) == CW_OK);
        NEED(cw_archive_wait(engine, 60000) == CW_OK);
    }
    uint64_t sealed = stats.segments_sealed;
    unsigned long count = unmappings() - before;
    NEED(cw_stats_get(engine, &stats, sizeof stats) == CW_OK);
    sealed = stats.segments_sealed - sealed;
    printf("%lu unmappings while %lu segments were sealed\n", count, (unsigned long)sealed);
    NEED(sealed > ROUNDS / 2 && count <= sealed / 20);
    NEED(cw_close(&engine, 30000) == CW_OK);
    NEED(unmappings() > before + count); /* the counter works */
}

/* exit() and return from main while helpers work: immediate. */
static void case_exit(void) {
    cw_logger *log;
    cw_engine *engine = open_engine(0, &log);
    for (int i = 0; i < 20000; i++) NEED(cw_write(log, CW_LEVEL_INFO, "at the end", 10) == CW_OK);
    NEED(cw_roll(engine) == CW_OK);
    exit(0);
}

int main(int count, char **arguments) {
    if (count != 3) return 2;
    folder = arguments[2];
    static const struct {
        const char *name;
        void (*run)(void);
    } cases[] = {{"log", case_log},         {"life", case_life}, {"threads", case_threads},
                 {"signals", case_signals}, {"exit", case_exit}, {"steady", case_steady},
                 {"look", case_look},       {"segment", case_segment},
                 {"deleted", case_deleted}, {"beside", case_beside},
                 {"deleted_child", case_deleted_child}};
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++)
        if (!strcmp(cases[i].name, arguments[1])) {
            cases[i].run();
            return 0;
        }
    return 2;
}
