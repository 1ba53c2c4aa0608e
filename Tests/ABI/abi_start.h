/* The start and the end of a small program: its threads, its limits, what it adopts. abi.c includes
 * it. */
#include <linux/membarrier.h>
#include <sys/syscall.h>

static size_t entries_of(const char *path) {
    size_t count = 0;
    DIR *folder = opendir(path);
    for (struct dirent *entry; folder != NULL && (entry = readdir(folder)) != NULL;)
        count += entry->d_name[0] != '.';
    if (folder != NULL) closedir(folder);
    return count;
}

static void one_archive(cw_engine *engine, cw_logger *log) {
    put(log, "one");
    EXPECT(CW_OK, cw_roll(engine));
    EXPECT(CW_OK, cw_archive_wait(engine, ARCHIVE_WAIT_MS));
}

/* Open registers the process while that is cheap. What logging and archiving need runs then. */
static void case_start_small(void) {
    char archives[4200];
    snprintf(archives, sizeof archives, "%s/archives", store);
    EXPECT(1, entries_of("/proc/self/task"));
    cw_options options = defaults();
    cw_engine *engine = open_with(&options);
    EXPECT(0, syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0));
    cw_logger *log = logger_of(engine, "small");
    put(log, "first");
    EXPECT(2, entries_of("/proc/self/task") - 1);
    one_archive(engine, log);
    /* The sealing thread exists, too, if supply looked before the roll had sealed. */
    size_t helpers = entries_of("/proc/self/task") - 1;
    EXPECT(1, helpers == 2 || helpers == 3);
    EXPECT(CW_OK, cw_close(&engine, 60000));

    /* Even an engine that closes at once keeps the store within its limits. */
    options.archives_max = 2;
    engine = open_with(&options);
    log = logger_of(engine, "small");
    for (int i = 0; i < 3; i++) one_archive(engine, log);
    EXPECT(CW_OK, cw_close(&engine, 60000));
    EXPECT(2, entries_of(archives));
    options.archives_max = 1;
    engine = open_with(&options);
    EXPECT(CW_OK, cw_close(&engine, 60000));
    EXPECT(1, entries_of(archives));
}

/* A dead process's lane is adopted even if there is nothing else to do. */
static void case_start_adopts(void) {
    pid_t child = fork();
    if (child == 0) {
        cw_options options = defaults();
        put(logger_of(open_with(&options), "dead"), "left");
        _exit(0);
    }
    int status = 0;
    EXPECT(child, waitpid(child, &status, 0));
    EXPECT(0, status);
    cw_options options = defaults();
    cw_engine *engine = open_with(&options);
    uint64_t begin = now_ns();
    cw_stats stats = {.struct_size = sizeof stats};
    while (stats.segments_recovered == 0 && now_ns() - begin < 60000000000u) {
        EXPECT(CW_OK, cw_stats_get(engine, &stats, sizeof stats));
        usleep(10000);
    }
    EXPECT(1, stats.segments_recovered);
    EXPECT(CW_OK, cw_close(&engine, 60000));
}

/* Segment 0 is full and waits for segment 1: a roll puts both into one archive. */
static void case_start_one_archive(void) {
    char archives[4200];
    snprintf(archives, sizeof archives, "%s/archives", store);
    for (size_t round = 1; round <= 20; round++) {
        cw_options options = defaults();
        cw_engine *engine = open_with(&options);
        cw_logger *log = logger_of(engine, "both");
        cw_stats stats = {.struct_size = sizeof stats};
        uint64_t begin = now_ns();
        while (stats.segments_sealed == 0 && now_ns() - begin < 60000000000u) {
            for (int i = 0; i < 100; i++) put(log, "a record of segment 0 or 1");
            EXPECT(CW_OK, cw_stats_get(engine, &stats, sizeof stats));
        }
        EXPECT(1, stats.segments_sealed);
        EXPECT(CW_OK, cw_roll(engine));
        EXPECT(CW_OK, cw_archive_wait(engine, ARCHIVE_WAIT_MS));
        EXPECT(CW_OK, cw_close(&engine, 60000));
        EXPECT(round, entries_of(archives));
    }
}
