/* Records whose ids are compared: many threads that fork while others are killed, one record's way
 * through a store, and a fleet of devices. One case a run. identity.py reads and compares. */
#include "host.h"

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

/* Runs the commands on stdin, and answers each: `log TEXT`, `fill COUNT`, `roll`, `archive`, `die`
 * (immediately), `sealed` (seals, and dies before anything is archived, if it is fast enough). */
static void case_steps(int argc, char **argv) {
    (void)argc, (void)argv;
    cw_logger *log;
    cw_engine *engine = open_small(1u << 20, "steps", &log);
    EXPECT(CW_OK, cw_resource_set(engine, "service.name", "shop"));
    char line[256];
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
        else if (strcmp(line, "sealed") == 0) {
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

static const test_case cases[] = {
    {"storm", case_storm},
    {"steps", case_steps},
    {"devices", case_devices},
};
MAIN(cases)
