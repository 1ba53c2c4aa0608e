/* Where segments come from: files reused under writers, readers and forks, the coarse clock, what a
 * thousand idle threads hold. abi.c includes it. */

static uint64_t reused_so_far(cw_engine *engine) {
    cw_stats stats = {.struct_size = sizeof stats};
    EXPECT(CW_OK, cw_stats_get(engine, &stats, sizeof stats));
    return stats.segments_reused;
}

enum { REUSE_GOAL = 100, REUSE_BURST = 4000, REUSE_BURSTS_MAX = 4000 };

typedef struct {
    cw_logger *log;
    cw_engine *engine;
    unsigned writer;
    uint64_t written;
} reuse_job;

/* Lets the archiver catch up after each burst, so that there is something to reuse. */
static void *reuse_write(void *argument) {
    reuse_job *j = argument;
    for (int burst = 0; burst < REUSE_BURSTS_MAX; burst++) {
        for (int i = 0; i < REUSE_BURST; i++)
            EXPECT(CW_OK, numbered(j->log, j->writer, j->written++));
        EXPECT(CW_OK, cw_archive_wait(j->engine, ARCHIVE_WAIT_MS));
        if (reused_so_far(j->engine) >= REUSE_GOAL) break;
    }
    return NULL;
}

typedef struct {
    tally t;
    volatile int stop;
    uint64_t goal;
} follow_job;

static void *reuse_follow(void *argument) {
    follow_job *f = argument;
    cw_reader_options options = {.struct_size = sizeof options, .kinds = 1u << CW_KIND_LOG,
                                 .flags = CW_READ_FOLLOW};
    cw_reader *reader = NULL;
    EXPECT(CW_OK, cw_reader_open(store, &options, &reader));
    uint64_t quiet_since = 0;
    for (uint64_t n = 0; !f->stop || n < f->goal;) {
        cw_record_view view = {.struct_size = sizeof view};
        cw_status status = cw_reader_next(reader, &view);
        if (status == CW_OK) {
            tally_each(&view, &f->t);
            n++;
            quiet_since = 0;
        } else {
            EXPECT(CW_AGAIN, status);
            if (quiet_since == 0) quiet_since = now_ns();
            if (f->stop && now_ns() - quiet_since > 20000000000u) break;
            usleep(20000);
        }
    }
    EXPECT(CW_OK, cw_reader_close(&reader));
    return NULL;
}

static void reused_case(void (*at_burst)(cw_engine *, cw_logger *)) {
    cw_options options = defaults();
    options.segment_bytes = 128u << 10;
    cw_engine *engine = open_with(&options);
    cw_logger *log = logger_of(engine, "reused");
    uint64_t early = 3000;
    for (uint64_t i = 0; i < early; i++) EXPECT(CW_OK, numbered(log, 9, i));
    /* It stands at its first record while every file it has not read is reused. */
    cw_reader_options plain = {.struct_size = sizeof plain, .kinds = 1u << CW_KIND_LOG};
    cw_reader *paused = NULL;
    EXPECT(CW_OK, cw_reader_open(store, &plain, &paused));
    cw_record_view view = {.struct_size = sizeof view};
    EXPECT(CW_OK, cw_reader_next(paused, &view));
    tally seen = {.unordered = WRITERS_MAX};
    tally_each(&view, &seen);

    follow_job follow = {.t = {.unordered = WRITERS_MAX}};
    pthread_t follower, threads[2];
    pthread_create(&follower, NULL, reuse_follow, &follow);
    reuse_job jobs[2];
    for (unsigned i = 0; i < 2; i++) {
        jobs[i] = (reuse_job){log, engine, i, 0};
        pthread_create(&threads[i], NULL, reuse_write, &jobs[i]);
    }
    if (at_burst) at_burst(engine, log);
    for (unsigned i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    HOLDS(reused_so_far(engine) >= REUSE_GOAL);

    cw_status status;
    while ((status = cw_reader_next(paused, &view)) == CW_OK) tally_each(&view, &seen);
    EXPECT(CW_END, status);
    EXPECT(CW_OK, cw_reader_close(&paused));
    EXPECT(early, seen.count[9]);
    EXPECT(0, seen.bad);

    EXPECT(CW_OK, cw_close(&engine, 20000));
    follow.goal = early + jobs[0].written + jobs[1].written + (at_burst ? 20 * 500 : 0);
    follow.stop = 1;
    pthread_join(follower, NULL);
    tally all = {.unordered = WRITERS_MAX};
    read_logs(tally_each, &all);
    for (unsigned i = 0; i < 2; i++) {
        EXPECT(jobs[i].written, follow.t.count[i]);
        EXPECT(jobs[i].written, all.count[i]);
    }
    EXPECT(early, all.count[9]);
    for (unsigned c = 2; at_burst && c < 7; c++) EXPECT(2000, all.count[c]);
    EXPECT(0, follow.t.bad);
    EXPECT(0, all.bad);
}

static void case_reused(void) { reused_case(NULL); }

/* Children are forked while files are reused. Each writes as writer 2 to 6, four times in all. */
static void reuse_fork(cw_engine *engine, cw_logger *log) {
    uint64_t reused = 0;
    for (unsigned c = 0; c < 20; c++) {
        /* Each after another file was reused. The writers go on until 100 were. */
        for (uint64_t now = reused; c < 19 && now < REUSE_GOAL; now = reused_so_far(engine)) {
            if (now > reused) {
                reused = now;
                break;
            }
            sched_yield();
        }
        pid_t child = fork();
        if (child == 0) {
            alarm(60);
            failures = 0;
            for (uint64_t i = 0; i < 500; i++)
                EXPECT(CW_OK, numbered(log, 2 + c % 5, c / 5 * 500 + i));
            fflush(stdout);
            _exit(failures ? 1 : 0);
        }
        int how = 0;
        waitpid(child, &how, 0);
        EXPECT(0, how);
    }
}
static void case_reused_fork(void) { reused_case(reuse_fork); }

/* ── The coarse clock ── */

typedef struct {
    tally t;
    uint64_t from, to, outside, sites;
} coarse_tally;

static uint64_t utc_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void coarse_each(const cw_record_view *view, void *user) {
    coarse_tally *c = user;
    tally_each(view, &c->t);
    /* A kernel tick is at most 10 ms. */
    if (view->time_ns + 10000000u < c->from || view->time_ns > c->to) c->outside++;
    if (view->line > 0) c->sites++;
}

static void coarse_storm(int signal_number) {
    (void)signal_number;
    if (numbered(storm_log, 1, storm_sent) == CW_OK) storm_sent = storm_sent + 1;
}

static void case_coarse_clock(void) {
    cw_options options = defaults();
    options.flags = CW_FLAG_COARSE_CLOCK;
    options.segment_bytes = 256u << 10;
    coarse_tally c = {.t = {.unordered = 1}, .from = utc_ns()};
    cw_engine *engine = open_with(&options);
    storm_log = logger_of(engine, "coarse");
    struct sigaction action = {.sa_handler = coarse_storm, .sa_flags = SA_RESTART};
    sigaction(SIGALRM, &action, NULL);
    struct itimerval often = {{0, 500}, {0, 500}}, never = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &often, NULL);
    uint64_t sites = 0;
    for (uint64_t i = 0; i < 200000 || storm_sent < 50; i++) {
        if (i % 2) CW_INFO(storm_log, "%d %llu", 2, (unsigned long long)sites++);
        else EXPECT(CW_OK, numbered(storm_log, 0, i / 2));
        if (i > 50000000) break;
    }
    setitimer(ITIMER_REAL, &never, NULL);
    cw_stats stats = {.struct_size = sizeof stats};
    EXPECT(CW_OK, cw_stats_get(engine, &stats, sizeof stats));
    for (int closed = 0; closed < 2; closed++) {
        c.to = utc_ns();
        coarse_tally now = c;
        EXPECT(stats.records_written, read_logs(coarse_each, &now));
        EXPECT(sites, now.t.count[2]);
        EXPECT(sites, now.sites);
        EXPECT(sites + storm_sent + now.t.count[0], stats.records_written);
        EXPECT(0, now.t.bad);
        EXPECT(0, now.outside);
        if (!closed) EXPECT(CW_OK, cw_close(&engine, 20000));
    }
}

/* ── A thousand idle threads ── */

enum { THOUSAND = 1000, IDLE_KIB_MAX = 8192 };
static pthread_barrier_t idle_gate;
static cw_logger *idle_log;

static void *idle_thread(void *argument) {
    pthread_barrier_wait(&idle_gate); /* all have started, none has logged */
    pthread_barrier_wait(&idle_gate);
    EXPECT(CW_OK, numbered(idle_log, 0, (uint64_t)(uintptr_t)argument));
    pthread_barrier_wait(&idle_gate);
    pthread_barrier_wait(&idle_gate);
    return NULL;
}

static uint64_t resident_kib(void) {
    FILE *file = fopen("/proc/self/smaps_rollup", "r");
    char line[256];
    unsigned long long kib = 0;
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "Rss: %llu kB", &kib) == 1) break;
    if (file) fclose(file);
    return kib;
}

static void case_idle_threads(void) {
    cw_options options = defaults();
    cw_engine *engine = open_with(&options);
    idle_log = logger_of(engine, "idle");
    EXPECT(CW_OK, numbered(idle_log, 1, 0));
    pthread_barrier_init(&idle_gate, NULL, THOUSAND + 1);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 128u << 10);
    static pthread_t threads[THOUSAND];
    for (uintptr_t i = 0; i < THOUSAND; i++)
        EXPECT(0, pthread_create(&threads[i], &attributes, idle_thread, (void *)i));
    pthread_barrier_wait(&idle_gate);
    uint64_t before = resident_kib();
    pthread_barrier_wait(&idle_gate);
    pthread_barrier_wait(&idle_gate);
    uint64_t after = resident_kib();
    HOLDS(before > 0 && after < before + IDLE_KIB_MAX);
    fprintf(stderr, "%llu KiB for %d idle threads\n", (unsigned long long)(after - before),
            THOUSAND);
    EXPECT(CW_OK, cw_roll(engine)); /* needs none of them */
    EXPECT(CW_OK, cw_archive_wait(engine, 60000));
    pthread_barrier_wait(&idle_gate);
    for (unsigned i = 0; i < THOUSAND; i++) pthread_join(threads[i], NULL);
    EXPECT(CW_OK, cw_close(&engine, 60000));
    tally t = {.unordered = 0};
    read_logs(tally_each, &t);
    EXPECT(THOUSAND, t.count[0]);
}

/* ── Segments in memory ── */

/* Files in memory that links of this store named. Those of other stores do not count. */
static char memory_files[256][64];
static size_t memory_files_seen;
static void note_memory_file(const char *path) {
    for (size_t i = 0; i < memory_files_seen; i++)
        if (strcmp(memory_files[i], path) == 0) return;
    HOLDS(memory_files_seen < 256 && strlen(path) < sizeof *memory_files);
    if (memory_files_seen < 256) strncpy(memory_files[memory_files_seen++], path, 63);
}
static size_t files_in_memory(void) {
    size_t found = 0;
    for (size_t i = 0; i < memory_files_seen; i++) found += access(memory_files[i], R_OK) == 0;
    return found;
}

static size_t links_in(const char *folder, const char *suffix) {
    char path[4200];
    snprintf(path, sizeof path, "%s/%s", store, folder);
    DIR *directory = opendir(path);
    size_t found = 0;
    for (struct dirent *entry; directory && (entry = readdir(directory));) {
        char full[4500], target[256];
        snprintf(full, sizeof full, "%s/%s", path, entry->d_name);
        ssize_t n = readlink(full, target, sizeof target - 1);
        if (n <= 0) continue;
        target[n] = 0;
        HOLDS(strncmp(target, "/dev/shm/cordwood-segments-", 27) == 0);
        note_memory_file(target);
        size_t length = strlen(entry->d_name), end = strlen(suffix);
        found += length > end && strcmp(entry->d_name + length - end, suffix) == 0;
    }
    if (directory) closedir(directory);
    return found;
}

/* A child writes to memory, is killed, and leaves links and files. Adoption removes both. */
static void case_tmpfs(void) {
    cw_options options = defaults();
    options.segment_bytes = 1u << 20;
    options.flags = CW_FLAG_TMPFS;
    int ready[2];
    EXPECT(0, pipe(ready));
    pid_t child = fork();
    if (child == 0) {
        cw_engine *engine = open_with(&options);
        cw_logger *log = logger_of(engine, "memory");
        uint64_t n = 0;
        for (int burst = 0; burst < 40; burst++) {
            for (int i = 0; i < 10000; i++) EXPECT(CW_OK, numbered(log, 0, n++));
            if (burst == 20) EXPECT(CW_OK, cw_flush(engine, CW_DURABLE_MACHINE, 20000));
            if (burst < 36) EXPECT(CW_OK, cw_archive_wait(engine, ARCHIVE_WAIT_MS));
        }
        if (failures == 0 && write(ready[1], &n, sizeof n) == sizeof n)
            for (;;) pause();
        _exit(1);
    }
    close(ready[1]);
    uint64_t written = 0;
    EXPECT(sizeof written, read(ready[0], &written, sizeof written));
    HOLDS(links_in("lanes", "") > 0);
    HOLDS(files_in_memory() > 0);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    tally dead = {.unordered = WRITERS_MAX}, adopted = dead;
    read_logs(tally_each, &dead);
    EXPECT(written, dead.count[0]);
    EXPECT(0, dead.bad);
    options.flags = 0;
    cw_engine *engine = open_with(&options);
    for (int i = 0; i < 4000 && files_in_memory() > 0; i++) usleep(5000);
    EXPECT(0, files_in_memory());
    EXPECT(CW_OK, cw_close(&engine, 20000));
    EXPECT(0, links_in("lanes", ""));
    read_logs(tally_each, &adopted);
    EXPECT(written, adopted.count[0]);
    EXPECT(0, adopted.bad);
}

/* Segments beyond the memory limit go to the disk: nothing waits for the archiver. */
static void case_tmpfs_full(void) {
    cw_options options = defaults();
    options.segment_bytes = 32u << 20;
    options.flags = CW_FLAG_TMPFS;
    cw_engine *engine = open_with(&options);
    cw_logger *log = logger_of(engine, "memory");
    uint64_t n = 0;
    size_t most = 0;
    for (; n < 3000000; n++) {
        EXPECT(CW_OK, numbered(log, 0, n));
        if (n % 100000 != 99999) continue;
        links_in("lanes", "");
        most = files_in_memory() > most ? files_in_memory() : most;
    }
    HOLDS(most > 0 && most <= 4);
    EXPECT(CW_OK, cw_close(&engine, 60000)); /* puts what is left on the disk */
    EXPECT(0, files_in_memory());
    EXPECT(0, links_in("lanes", ""));
    tally all = {.unordered = WRITERS_MAX};
    read_logs(tally_each, &all);
    EXPECT(n, all.count[0]);
    EXPECT(0, all.bad);
}

/* Cleaning /dev/shm while the engine runs costs names, not records. */
static void case_tmpfs_cleaned(void) {
    cw_options options = defaults();
    options.segment_bytes = 1u << 20;
    options.flags = CW_FLAG_TMPFS;
    cw_engine *engine = open_with(&options);
    cw_logger *log = logger_of(engine, "memory");
    uint64_t n = 0;
    for (int burst = 0; burst < 20; burst++) {
        for (int i = 0; i < 5000; i++) EXPECT(CW_OK, numbered(log, 0, n++));
        char path[4200], full[4500], target[256];
        snprintf(path, sizeof path, "%s/lanes", store);
        DIR *directory = burst % 4 == 2 ? opendir(path) : NULL;
        for (struct dirent *entry; directory && (entry = readdir(directory));) {
            snprintf(full, sizeof full, "%s/%s", path, entry->d_name);
            ssize_t length = readlink(full, target, sizeof target - 1);
            if (length <= 0) continue;
            target[length] = 0;
            unlink(target);
        }
        if (directory) closedir(directory);
    }
    EXPECT(CW_OK, cw_roll(engine));
    /* The second attempt finds them on the disk. */
    EXPECT(CW_OK, cw_archive_wait(engine, ARCHIVE_WAIT_MS));
    for (int i = 0; i < 1000; i++) EXPECT(CW_OK, numbered(log, 0, n++));
    EXPECT(CW_OK, cw_close(&engine, 60000));
    tally all = {.unordered = WRITERS_MAX};
    read_logs(tally_each, &all);
    EXPECT(n, all.count[0]);
    EXPECT(0, all.bad);
}
