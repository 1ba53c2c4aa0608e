/* Records whose ids are compared: many threads that fork while others are killed, one record's way
 * through a store, and a fleet of devices. One case a run. identity.py reads and compares. */
#include "host.h"
#include "resume.h"
#include "../TestSupport/refuse.h"

typedef struct {
    cw_logger *log;
    uint64_t count, seed;
    pthread_t thread;
} share;

/* A child of a threaded process: logs with the inherited engine in its own lane. It returns or is
 * killed. */
static void fork_one(cw_logger *log, uint64_t number) {
    pid_t child = fork();
    if (child == 0) {
        write_many(log, slot_take(), 20);
        if (number % 2) raise(SIGKILL);
        _exit(failures ? 1 : 0);
    }
    int how = 0;
    while (waitpid(child, &how, 0) < 0 && errno == EINTR) continue;
    HOLDS(number % 2 ? WIFSIGNALED(how) : WIFEXITED(how) && WEXITSTATUS(how) == 0);
}

static void *share_run(void *argument) {
    share *mine = argument;
    uint32_t index = slot_take();
    for (uint64_t i = 0; i < mine->count; i++) {
        EXPECT(CW_OK, write_next(mine->log, index));
        if (next_random(&mine->seed) % 10000 == 0) fork_one(mine->log, i);
    }
    return NULL;
}

/* SEED THREADS COUNT WAY: THREADS threads log COUNT records each; 0: closes, 1: is killed, 2:
 * reports and lives on. */
static void case_storm(int argc, char **argv) {
    enum { THREADS_MAX = 64 };
    uint64_t seed = strtoull(argv[0], NULL, 10);
    int threads = atoi(argv[1]), way = argc > 3 ? atoi(argv[3]) : 0;
    static share shares[THREADS_MAX];
    cw_logger *log;
    cw_engine *engine = open_small(1u << 20, "storm", &log);
    for (int i = 0; i < threads && i < THREADS_MAX; i++) {
        shares[i] = (share){log, strtoull(argv[2], NULL, 10), seed + (uint64_t)i, 0};
        if (pthread_create(&shares[i].thread, NULL, share_run, &shares[i]) != 0) exit(2);
    }
    for (int i = 0; i < threads && i < THREADS_MAX; i++) pthread_join(shares[i].thread, NULL);
    if (failures) exit(1);
    if (way == 1) raise(SIGKILL);
    if (way == 2) {
        printf("ready\n");
        pause();
    }
    EXPECT(CW_OK, cw_close(&engine, 60000));
}

/* COUNT COPY USER TEXT: the process goes on in that copy of its store, too, and is killed there
 * after COUNT records "TEXT <number> USER". False: the system allows no mount namespace. */
static bool steps_resume(cw_logger *log, char *words) {
    char *number = strsep(&words, " "), *copy = strsep(&words, " "), *user = strsep(&words, " ");
    char text[256];
    pid_t child = resume_in(copy);
    if (child == 0) {
        for (int i = 0; i < atoi(number); i++) {
            int length = snprintf(text, sizeof text, "%s %d %s", words, i, user);
            if (cw_write(log, CW_LEVEL_INFO, text, (size_t)length) != CW_OK) _exit(5);
        }
        kill(getpid(), SIGKILL);
    }
    int how = 0;
    while (waitpid(child, &how, 0) < 0 && errno == EINTR) continue;
    if (WIFEXITED(how) && WEXITSTATUS(how) == RESUME_DENIED) return false;
    EXPECT(SIGKILL, WIFSIGNALED(how) ? WTERMSIG(how) : -WEXITSTATUS(how));
    return true;
}

/* Runs the commands on stdin, and answers each: `log TEXT`, `fill COUNT`, `roll`, `archive`, `die`
 * (immediately), `sealed` (seals, and dies before anything is archived, if it is fast enough),
 * `user NAME` (or `nobody`), `resume COUNT COPY USER TEXT`. */
static void case_steps(int argc, char **argv) {
    (void)argc, (void)argv;
    cw_logger *log;
    cw_engine *engine = open_small(1u << 20, "steps", &log);
    EXPECT(CW_OK, cw_resource_set(engine, "service.name", "shop"));
    char line[1024];
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = 0;
        if (strncmp(line, "log ", 4) == 0)
            EXPECT(CW_OK, cw_write(log, CW_LEVEL_INFO, line + 4, strlen(line + 4)));
        else if (strncmp(line, "fill ", 5) == 0)
            write_many(log, slot_take(), strtoull(line + 5, NULL, 10));
        else if (strcmp(line, "roll") == 0)
            EXPECT(CW_OK, cw_roll(engine));
        else if (strcmp(line, "archive") == 0)
            EXPECT(CW_OK, cw_archive_wait(engine, 60000));
        else if (strncmp(line, "user ", 5) == 0)
            EXPECT(CW_OK, cw_resource_set(engine, "user.id",
                                          strcmp(line + 5, "nobody") ? line + 5 : ""));
        else if (strncmp(line, "resume ", 7) == 0) {
            if (!steps_resume(log, line + 7)) {
                printf("denied\n");
                continue;
            }
        } else if (strcmp(line, "sealed") == 0) {
            EXPECT(CW_OK, cw_roll(engine));
            raise(SIGKILL);
        } else
            raise(SIGKILL);
        printf("done\n");
    }
    EXPECT(CW_OK, cw_close(&engine, 60000));
}

/* COUNT: that many engines, each as if on its own device. */
static void case_devices(int argc, char **argv) {
    int count = argc > 0 ? atoi(argv[0]) : 1;
    for (int i = 0; i < count; i++) {
        cw_options options = options_of(store_path);
        cw_engine *engine = open_with(&options);
        char host[32], user[32], service[32];
        snprintf(host, sizeof host, "device-%d", i);
        snprintf(user, sizeof user, "user, \"%d\"", i);
        snprintf(service, sizeof service, "shop-%d", i % 4);
        EXPECT(CW_OK, cw_resource_set(engine, "host.name", host));
        EXPECT(CW_OK, cw_resource_set(engine, "user.id", user));
        EXPECT(CW_OK, cw_resource_set(engine, "service.name", service));
        EXPECT(CW_OK, cw_write(logger_of(engine, "app"), CW_LEVEL_INFO, "started", 7));
        EXPECT(CW_OK, cw_close(&engine, 60000));
    }
}

/* The user changes while threads log. Change N makes him "uN", or removes him if N is a multiple of
 * seven. `begun` is N before the call, `returned` after it. */
static cw_engine *users_engine;
static cw_logger *users_log;
static uint64_t begun, returned;
static volatile int users_end;

static void users_set(uint64_t number) {
    char user[32] = "";
    if (number % 7) snprintf(user, sizeof user, "u%llu", (unsigned long long)number);
    EXPECT(CW_OK, cw_resource_set(users_engine, "user.id", user));
}

/* "<what> <number>"; safe in a handler. */
static void users_say(char what, uint64_t number) {
    char text[32], digits[24];
    int count = 0, at = 0;
    do digits[count++] = (char)('0' + number % 10);
    while ((number /= 10) != 0);
    text[at++] = what;
    text[at++] = ' ';
    while (count) text[at++] = digits[--count];
    EXPECT(CW_OK, cw_write(users_log, CW_LEVEL_INFO, text, (size_t)at));
}

/* A record of the user after change `returned`, or of a later one. */
static void users_say_least(char what) {
    users_say(what, __atomic_load_n(&returned, __ATOMIC_ACQUIRE));
}

static void users_interrupt(int number) {
    (void)number;
    users_say_least('s');
}

/* A child has the user of the fork, and then one of its own. */
static void users_fork(void) {
    pid_t child = fork();
    if (child == 0) {
        users_say_least('l');
        users_say('m', begun);
        users_set(1000000007);
        users_say('l', 1000000007);
        users_say('m', 1000000007);
        if (begun % 2) raise(SIGKILL);
        _exit(failures ? 1 : 0);
    }
    int how = 0;
    while (waitpid(child, &how, 0) < 0 && errno == EINTR) continue;
}

static void *users_write(void *argument) {
    uint64_t seed = (uint64_t)(uintptr_t)argument;
    while (!users_end) {
        users_say_least('l');
        users_say('m', __atomic_load_n(&begun, __ATOMIC_ACQUIRE));
        uint64_t dice = next_random(&seed) % 4096;
        if (dice == 0) users_fork();
        else if (dice < 40) raise(SIGUSR1);
        else if (dice < 60) EXPECT(CW_OK, cw_roll(users_engine));
        else if (dice < 1000) pause_us(dice);
    }
    return NULL;
}

/* SEED THREADS CHANGES WAY: 0: closes, 1: is killed, + 2: without fallocate(2), so that records are
 * written, not mapped. */
static void case_users(int argc, char **argv) {
    enum { THREADS_MAX = 16 };
    uint64_t seed = strtoull(argv[0], NULL, 10), changes = strtoull(argv[2], NULL, 10);
    int threads = atoi(argv[1]), way = argc > 3 ? atoi(argv[3]) : 0;
    pthread_t writers[THREADS_MAX];
    if (way & 2 && !refuse(SECCOMP_RET_ERRNO | EOPNOTSUPP, 0, SYS_fallocate, SYS_fallocate))
        exit(77);
    struct sigaction action = {.sa_handler = users_interrupt, .sa_flags = SA_RESTART};
    sigaction(SIGUSR1, &action, NULL);
    users_engine = open_small(256u << 10, "users", &users_log);
    for (int i = 0; i < threads && i < THREADS_MAX; i++)
        if (pthread_create(&writers[i], NULL, users_write, (void *)(uintptr_t)(seed + (uint64_t)i)))
            exit(2);
    for (uint64_t number = 1; number <= changes; number++) {
        __atomic_store_n(&begun, number, __ATOMIC_RELEASE);
        users_set(number);
        __atomic_store_n(&returned, number, __ATOMIC_RELEASE);
        uint64_t dice = next_random(&seed) % 64;
        if (dice == 0) pause_us(next_random(&seed) % 20000);
        else if (dice < 8)
            EXPECT(CW_OK, cw_resource_set(users_engine, "app", dice < 4 ? "a" : "b"));
    }
    if (way & 1) raise(SIGKILL);
    users_end = 1;
    for (int i = 0; i < threads && i < THREADS_MAX; i++) pthread_join(writers[i], NULL);
    EXPECT(CW_OK, cw_close(&users_engine, 60000));
}

static const test_case cases[] = {
    {"users", case_users},
    {"storm", case_storm},
    {"steps", case_steps},
    {"devices", case_devices},
};
MAIN(cases)
