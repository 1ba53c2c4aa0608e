/* Hosts whose store is moved or removed under them. Each line on stdin makes one close all of its
 * descriptors, as daemons do; its own files take the numbers, and must be untouched in the end. */
#include "host.h"

#include <cordwood/upload.h>

#include <dirent.h>
#include <poll.h>

enum { OWN_FILES = 64 };
static const char own_text[] = "the host's own\n";
static volatile int stop, is_removed, is_quiet, wants_quiet, paused;
static int own[OWN_FILES], has_own;

static void close_all(void) {
    for (int fd = 3; fd < 1024; fd++) close(fd);
    for (int i = 0; i < OWN_FILES; i++) {
        own[i] = open(getenv("CORDWOOD_TEST_OWN"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        if (own[i] < 0 || pwrite(own[i], own_text, sizeof own_text, 0) < 0) exit(2);
    }
    has_own = 1;
}

static void check_own(void) {
    struct stat first, status;
    for (int i = 0; has_own && i < OWN_FILES; i++) {
        char text[sizeof own_text + 1] = "";
        HOLDS(fstat(own[i], i ? &status : &first) == 0);
        HOLDS(i == 0 || status.st_ino == first.st_ino);
        HOLDS(pread(own[i], text, sizeof text, 0) == sizeof own_text && !strcmp(text, own_text));
    }
}

/* A mapped file whose path is longer than what the engine reads of /proc/self/maps at once. */
static void map_deep(void) {
    enum { LEVELS = 70, NAME = 250 };
    char name[NAME + 1];
    int at[LEVELS + 1];
    memset(name, 'd', NAME);
    name[NAME] = 0;
    char *beside = strdup(getenv("CORDWOOD_TEST_OWN"));
    *strrchr(beside, '/') = 0;
    HOLDS((at[0] = open(beside, O_RDONLY | O_DIRECTORY)) >= 0);
    free(beside);
    for (int i = 0; i < LEVELS; i++) {
        HOLDS(mkdirat(at[i], name, 0700) == 0);
        HOLDS((at[i + 1] = openat(at[i], name, O_RDONLY | O_DIRECTORY)) >= 0);
    }
    int file = openat(at[LEVELS], "file", O_RDWR | O_CREAT, 0600);
    HOLDS(file >= 0 && ftruncate(file, 4096) == 0);
    /* Below all others, so that the list has it before the lane's file. */
    void *low = (void *)0x10000000;
    HOLDS(mmap(low, 4096, PROT_READ, MAP_SHARED, file, 0) == low);
    HOLDS(unlinkat(at[LEVELS], "file", 0) == 0);
    for (int i = LEVELS; i-- > 0;) HOLDS(unlinkat(at[i], name, AT_REMOVEDIR) == 0);
    close(file);
    for (int i = 0; i <= LEVELS; i++) close(at[i]);
}

static void *write_on(void *log) {
    uint32_t index = slot_take();
    for (uint64_t i = 1; !stop; i++) {
        if (wants_quiet) {
            __atomic_add_fetch(&paused, 1, __ATOMIC_SEQ_CST);
            while (wants_quiet) pause_us(1000);
            __atomic_sub_fetch(&paused, 1, __ATOMIC_SEQ_CST);
        }
        cw_status status = write_next(log, index);
        HOLDS(status == CW_OK || (is_removed && status == CW_E_FULL));
        if (i % 16 == 0) pause_us(500);
    }
    return NULL;
}

static void *roll(void *engine) {
    while (!stop) {
        is_quiet = wants_quiet;
        if (!is_quiet) {
            cw_status status = cw_roll(engine);
            HOLDS(status == CW_OK || status == CW_E_TIMEOUT || is_removed);
            if (getenv("CORDWOOD_TARGET")) (void)cw_upload(engine, 1000, NULL, 0);
        }
        pause_us(20000);
    }
    return NULL;
}

/* Whether another thread is running or waits for a disk: one of the engine's may have a file open
 * for a moment. */
static int is_busy(void) {
    DIR *tasks = opendir("/proc/self/task");
    int found = 0;
    for (struct dirent *task; tasks && (task = readdir(tasks));) {
        if (task->d_name[0] == '.' || atoi(task->d_name) == gettid()) continue;
        char path[64], state = 0;
        snprintf(path, sizeof path, "/proc/self/task/%.20s/stat", task->d_name);
        FILE *file = fopen(path, "r");
        if (!file) continue;
        if (fscanf(file, "%*d (%*[^)]) %c", &state) == 1 && state != 'S') found = 1;
        fclose(file);
    }
    if (tasks) closedir(tasks);
    return found;
}

/* Not while the engine has a file open for a moment: it would write to another one then. It looks
 * at its limits after an archive. */
static void close_all_quietly(cw_engine *engine) {
    wants_quiet = 1;
    while (!is_quiet || paused < 2) pause_us(1000);
    EXPECT(CW_OK, cw_archive_wait(engine, 20000));
    if (getenv("CORDWOOD_TARGET")) (void)cw_upload(engine, 20000, NULL, 0);
    for (int idle = 0; idle < 3; idle = is_busy() ? 0 : idle + 1) pause_us(1000);
    close_all();
    wants_quiet = 0;
    while (is_quiet) pause_us(1000);
    printf("closed\n");
}

static void finish(cw_engine *engine) {
    EXPECT(CW_OK, cw_roll(engine));
    EXPECT(CW_OK, cw_archive_wait(engine, 20000));
    cw_stats stats = {.struct_size = sizeof stats};
    EXPECT(CW_OK, cw_stats_get(engine, &stats, sizeof stats));
    printf("dropped %llu\n", (unsigned long long)stats.records_dropped);
    EXPECT(CW_OK, cw_close(&engine, 20000));
    check_own();
}

/* Two threads log, segments roll, and archives go to CORDWOOD_TARGET if it is set, until stdin
 * ends. Then it closes and prints how many records were refused. */
static void host(int argc, char **argv) {
    is_removed = argc > 0 && !strcmp(argv[0], "removed");
    cw_logger *log;
    cw_engine *engine = open_small(1 << 20, "moved", &log);
    map_deep();
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) {
        void *(*run)(void *) = i < 2 ? write_on : roll;
        if (pthread_create(&threads[i], NULL, run, i < 2 ? (void *)log : engine) != 0) exit(2);
    }
    printf("ready\n");
    while (getchar() != EOF) close_all_quietly(engine);
    stop = 1;
    for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
    finish(engine);
}

/* A daemon: the child closes what it inherited, waits for a line before its first record, and logs
 * until stdin ends. */
static void child(int argc, char **argv) {
    (void)argc, (void)argv;
    cw_logger *log;
    cw_engine *engine = open_small(1 << 20, "moved", &log);
    write_many(log, slot_take(), 100);
    if (fork() != 0) _exit(0);
    close_all();
    printf("closed\n");
    if (getchar() == EOF) exit(2);
    uint32_t index = slot_take();
    is_removed = 1;
    struct pollfd input = {.fd = 0, .events = POLLIN};
    for (int i = 0; i < 10000 || poll(&input, 1, 0) == 0; i++) {
        cw_status status = write_next(log, index);
        HOLDS(status == CW_OK || status == CW_E_FULL);
        if (i % 16 == 0) pause_us(500);
    }
    finish(engine);
}

static const test_case cases[] = {{"host", host}, {"child", child}};
MAIN(cases)
