/* Rolls and flushes beside writers at full speed: every record is there once, in order and whole.
 * abi.c includes it. The writers make their texts without printf, so that they spend most of their
 * time in appends, where a sealer meets them. */

enum { ROLL_WRITERS = 4, ROLL_BYTES = 48, ROLL_REFUSED_MAX = 1000 };

/* A record's text: writer, number, and letters derived from both. */
static void roll_text(char *text, unsigned writer, uint64_t number) {
    text[0] = (char)('0' + writer);
    for (int i = 9; i > 0; i--) {
        text[i] = (char)('0' + number % 10);
        number /= 10;
    }
    char letter = (char)('a' + (writer * 7 + (unsigned)text[9] * 3 + (unsigned)text[8]) % 26);
    memset(text + 10, letter, ROLL_BYTES - 10);
}

typedef struct {
    cw_logger *log;
    cw_engine *engine;
    unsigned writer;
    uint64_t count, rolls;
    volatile int *stop;
    uint64_t refused, numbers[ROLL_REFUSED_MAX]; /* the numbers refused */
} roll_job;

typedef struct {
    uint64_t next[ROLL_WRITERS], passed[ROLL_WRITERS], bad;
    const roll_job *jobs;
} roll_tally;

/* The next record that was kept. */
static uint64_t roll_next(roll_tally *t, unsigned writer) {
    const roll_job *j = &t->jobs[writer];
    while (t->passed[writer] < j->refused && j->numbers[t->passed[writer]] == t->next[writer])
        t->passed[writer]++, t->next[writer]++;
    return t->next[writer]++;
}

static void roll_each(const cw_record_view *view, void *user) {
    roll_tally *t = user;
    const char *text = view->message.data;
    if (view->message.length == 5) return; /* "first" */
    unsigned writer = view->message.length == ROLL_BYTES ? (unsigned)(text[0] - '0') : ROLL_WRITERS;
    char wanted[ROLL_BYTES];
    if (writer < ROLL_WRITERS) {
        roll_text(wanted, writer, roll_next(t, writer));
        if (memcmp(text, wanted, ROLL_BYTES) == 0) return;
    }
    if (t->bad++ < 8)
        printf("%.*s, where %.10s was due\n", (int)view->message.length, text,
               writer < ROLL_WRITERS ? wanted : "none");
    /* After a missing record the following ones are not reported as well. */
    if (writer < ROLL_WRITERS) {
        uint64_t number = 0;
        for (int i = 1; i < 10; i++) number = number * 10 + (uint64_t)(text[i] - '0');
        t->next[writer] = number + 1;
    }
}

static void *roll_write(void *argument) {
    roll_job *j = argument;
    char text[ROLL_BYTES];
    for (uint64_t i = 0; i < j->count; i++) {
        roll_text(text, j->writer, i);
        cw_status status = cw_write(j->log, CW_LEVEL_INFO, text, sizeof text);
        if (status == CW_OK) continue;
        /* All 256 segments waited for the sealer, which got no processor for two seconds. */
        EXPECT(CW_E_FULL, status);
        if (j->refused < ROLL_REFUSED_MAX) j->numbers[j->refused++] = i;
    }
    return NULL;
}

/* Writer 0 rolls as fast as it can. Writer 1 also flushes to the machine. */
static void *roller(void *argument) {
    roll_job *j = argument;
    while (!*j->stop) {
        EXPECT(CW_OK, cw_roll(j->engine));
        j->rolls++;
        if (j->writer) EXPECT(CW_OK, cw_flush(j->engine, CW_DURABLE_MACHINE, 60000));
    }
    return NULL;
}

/* count: records of each writer. midway: runs while they write. */
static void rolls_case(uint64_t count, void (*midway)(void)) {
    cw_options options = defaults();
    options.segment_bytes = 256u << 10;
    cw_engine *engine = open_with(&options);
    cw_logger *log = logger_of(engine, "rolls");
    put(log, "first");
    EXPECT(CW_OK, cw_roll(engine)); /* before the helper may have registered its fence */
    volatile int stop = 0;
    pthread_t threads[ROLL_WRITERS], rollers[2];
    static roll_job jobs[ROLL_WRITERS], rolling[2];
    for (unsigned i = 0; i < 2; i++) {
        rolling[i] = (roll_job){.engine = engine, .writer = i, .stop = &stop};
        pthread_create(&rollers[i], NULL, roller, &rolling[i]);
    }
    for (unsigned i = 0; i < ROLL_WRITERS; i++) {
        jobs[i] = (roll_job){.log = log, .writer = i, .count = count};
        pthread_create(&threads[i], NULL, roll_write, &jobs[i]);
    }
    if (midway) midway();
    for (unsigned i = 0; i < ROLL_WRITERS; i++) pthread_join(threads[i], NULL);
    stop = 1;
    for (unsigned i = 0; i < 2; i++) pthread_join(rollers[i], NULL);
    EXPECT(CW_OK, cw_close(&engine, 60000));
    roll_tally t = {.jobs = jobs};
    uint64_t refused = 0;
    for (unsigned i = 0; i < ROLL_WRITERS; i++) refused += jobs[i].refused;
    HOLDS(refused <= ROLL_WRITERS * count / 1000);
    EXPECT(1 + ROLL_WRITERS * count - refused, read_logs(roll_each, &t));
    EXPECT(0, t.bad);
    for (unsigned i = 0; i < ROLL_WRITERS; i++) EXPECT(count, roll_next(&t, i));
    EXPECT(0, damaged);
    fprintf(stderr, "%llu rolls, %llu refused\n",
            (unsigned long long)(rolling[0].rolls + rolling[1].rolls),
            (unsigned long long)refused);
}
static void case_rolls(void) { rolls_case(1000000, NULL); }
BY_MACRO(rolls)

/* From here on the kernel answers both system calls with ENOSYS. */
static void without(unsigned first, unsigned second) {
    if (!refuse(SECCOMP_RET_ERRNO | ENOSYS, 0, first, second)) exit(77);
}

static void case_no_membarrier(void) { /* writers fence themselves, segments are still freed */
    without(SYS_membarrier, SYS_getrandom);
    rolls_case(250000, NULL);
}

static void case_no_fallocate(void) { /* write mode: nothing is mapped, everything is written */
    without(SYS_fallocate, SYS_fallocate);
    rolls_case(60000, NULL);
}
