/* Files removed under a running engine: spares, and sealed segments that wait for the archiver.
 * abi.c includes it. */

/* Removes the files in lanes/ whose names contain `part`, except `keep`. Returns how many. */
static int remove_named(const char *part, int keep) {
    char path[4200], full[4500];
    snprintf(path, sizeof path, "%s/lanes", store);
    DIR *directory = opendir(path);
    int removed = 0;
    for (struct dirent *entry; directory && (entry = readdir(directory));) {
        if (!strstr(entry->d_name, part)) continue;
        if (keep-- > 0) continue;
        snprintf(full, sizeof full, "%s/%s", path, entry->d_name);
        removed += unlink(full) == 0;
    }
    if (directory) closedir(directory);
    return removed;
}

static volatile int names_stop;
static volatile int names_removed;
static void *remove_spares(void *argument) {
    (void)argument;
    while (!names_stop) {
        names_removed += remove_named(".spare-", 0);
        usleep(500);
    }
    return NULL;
}

/* Spares vanish all the time. Hardly anything is refused, unless none may be made in line. */
static void spares_removed_case(uint32_t flags, uint32_t overflow) {
    cw_options options = defaults();
    options.segment_bytes = 256u << 10;
    options.flags = flags;
    options.overflow = overflow;
    cw_engine *engine = open_with(&options);
    cw_logger *log = logger_of(engine, "names");
    pthread_t remover, threads[2];
    pthread_create(&remover, NULL, remove_spares, NULL);
    job jobs[2];
    for (unsigned i = 0; i < 2; i++) {
        jobs[i] = (job){log, i, 200000, 0, NULL};
        pthread_create(&threads[i], NULL, write_job, &jobs[i]);
    }
    for (unsigned i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    /* Writers that are refused may end before the first spare is made. */
    uint64_t kept = 0, until = now_ns() + 60000000000u;
    while (names_removed == 0 && now_ns() < until) kept += numbered(log, 2, kept) == CW_OK;
    names_stop = 1;
    pthread_join(remover, NULL);
    uint64_t refused = jobs[0].dropped + jobs[1].dropped;
    fprintf(stderr, "%d spares removed, %llu refused\n", names_removed,
            (unsigned long long)refused);
    HOLDS(names_removed > 0);
    /* Refused if spares vanish between making and naming a dozen times in a row. */
    if (overflow != CW_OVERFLOW_DROP) HOLDS(refused * 20 <= 400000);
    /* Once the removals stop, refusals stop. */
    cw_status status = CW_E_FULL;
    until = now_ns() + 60000000000u;
    while (status == CW_E_FULL && now_ns() < until) {
        status = numbered(log, 2, kept);
        if (status != CW_OK) usleep(10000);
    }
    EXPECT(CW_OK, status);
    EXPECT(CW_OK, cw_close(&engine, 60000));
    tally t = {.unordered = WRITERS_MAX};
    read_logs(tally_each, &t);
    EXPECT(0, t.bad);
    for (unsigned i = 0; i < 2; i++) EXPECT(200000 - jobs[i].dropped, t.count[i]);
    EXPECT(kept + 1, t.count[2]);
}
static void case_spares_removed(void) { spares_removed_case(0, CW_OVERFLOW_GROW); }
static void case_spares_removed_drop(void) { spares_removed_case(0, CW_OVERFLOW_DROP); }
static void case_spares_removed_tmpfs(void) {
    spares_removed_case(CW_FLAG_TMPFS, CW_OVERFLOW_GROW);
}

/* All spares lose their names at once, unnoticed until they are needed. */
static void case_spare_lost(void) {
    cw_options options = defaults();
    options.segment_bytes = 64u << 10;
    cw_engine *engine = open_with(&options);
    cw_logger *log = logger_of(engine, "names");
    uint64_t sent = 0;
    int removed = 0;
    for (int i = 0; i < 60000; i++) {
        if (i % 97 == 0) removed += remove_named(".spare-", 0);
        EXPECT(CW_OK, numbered(log, 0, sent++));
    }
    HOLDS(removed > 0);
    EXPECT(CW_OK, cw_close(&engine, 60000));
    tally t = {.unordered = WRITERS_MAX};
    read_logs(tally_each, &t);
    EXPECT(sent, t.count[0]);
    EXPECT(0, t.bad);
}

typedef struct {
    tally t;
    int reported;
} lost_tally;

static void lost_each(const cw_record_view *view, void *user) {
    lost_tally *lost = user;
    static const char wanted[] = "a segment was removed before it was archived";
    if (view->message.length >= sizeof wanted - 1
        && memcmp(view->message.data, wanted, sizeof wanted - 1) == 0)
        lost->reported++;
    else tally_each(view, &lost->t);
}

typedef struct {
    uint64_t since;
    int gaps, early;
} gap_times;

static void gap_times_each(const cw_record_view *view, void *user) {
    gap_times *times = user;
    if (view->kind != CW_KIND_GAP || view->field_count < 2) return;
    times->gaps++;
    times->early += view->fields[1].value.u < times->since;
}

/* Sealed segments vanish before they are archived. Each is reported once, with a time that this
 * engine has seen, and everything logged after them is archived. */
static void case_sealed_removed(void) {
    cw_options options = defaults();
    options.segment_bytes = 64u << 10;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    gap_times times = {.since = (uint64_t)now.tv_sec * 1000000000u};
    cw_engine *engine = open_with(&options);
    cw_logger *log = logger_of(engine, "names");
    lost_tally all = {.t = {.unordered = WRITERS_MAX}};
    uint64_t sent = 0;
    int removed = 0;
    for (int burst = 0; burst < 400 && removed < 20; burst++) {
        for (int i = 0; i < 1500; i++) EXPECT(CW_OK, numbered(log, 0, sent++));
        removed += remove_named(".sealed", 1);
    }
    HOLDS(removed > 0);
    EXPECT(CW_OK, cw_roll(engine));
    EXPECT(CW_OK, cw_archive_wait(engine, 60000));
    uint64_t later = 20000;
    for (uint64_t i = 0; i < later; i++) EXPECT(CW_OK, numbered(log, 1, i));
    EXPECT(CW_OK, cw_roll(engine));
    EXPECT(CW_OK, cw_archive_wait(engine, 60000));
    EXPECT(CW_OK, cw_close(&engine, 60000));
    read_logs(lost_each, &all);
    EXPECT(0, all.t.bad);
    EXPECT(later, all.t.count[1]);
    fprintf(stderr, "%d removed, %d reported, %llu of %llu records left\n", removed, all.reported,
            (unsigned long long)all.t.count[0], (unsigned long long)sent);
    /* Some were archived before they vanished. Some were still mapped and got a file again. */
    HOLDS(all.reported <= removed);
    HOLDS(all.t.count[0] == sent || all.reported > 0);
    read_with(NULL, gap_times_each, &times);
    HOLDS(times.gaps > 0 || all.reported == 0);
    EXPECT(0, times.early);
}

/* A daemon closes all descriptors. The files it opens next get their numbers. */
static void case_journal_closed(void) {
    cw_options options = defaults();
    cw_engine *engine = open_with(&options);
    cw_logger *log = logger_of(engine, "names");
    EXPECT(CW_OK, numbered(log, 0, 0));
    EXPECT(CW_OK, cw_flush(engine, CW_DURABLE_MACHINE, 20000));
    char path[4200];
    snprintf(path, sizeof path, "%s/of-the-host", store);
    for (int fd = 3; fd < 256; fd++) close(fd);
    int own = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    while (own >= 0 && own < 64) own = dup(own);
    EXPECT(CW_OK, numbered(log, 0, 1));
    EXPECT(CW_OK, cw_flush(engine, CW_DURABLE_MACHINE, 20000));
    struct stat status;
    EXPECT(0, stat(path, &status));
    EXPECT(0, status.st_size);
    EXPECT(CW_OK, cw_close(&engine, 20000));
    tally t = {.unordered = WRITERS_MAX};
    read_logs(tally_each, &t);
    EXPECT(2, t.count[0]);
}
