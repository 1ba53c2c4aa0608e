/* What the header's append may do without the library, and that both write the same bytes
 * (append.h). abi.c includes it. */

#define SITE(style_, format_, ...)                                                                 \
    {                                                                                              \
        .format = (format_), .arguments = (const uint8_t[]){__VA_ARGS__ CW_ARG_NONE, 0, 0, 0},     \
        .line = __LINE__, .style = CW_STYLE_##style_                                               \
    }
static void case_inlined_places(void) { /* C7: the plan matches the classes, or it is a call */
    cw_options options = defaults();
    cw_engine *engine = open_with(&options);
    cw_logger *log = logger_of(engine, "inlined");
    cw_site plain[] = {
        SITE(PRINTF, "constant %%", ),
        SITE(PRINTF, "%d %c %hhu", CW_ARG_INT, CW_ARG_INT, CW_ARG_INT, ),
        SITE(PRINTF, "%ld %zu", CW_ARG_LONG, CW_ARG_LONG, ),
        SITE(PRINTF, "%f %a", CW_ARG_DOUBLE, CW_ARG_DOUBLE, ),
        SITE(PRINTF, "%s %20s", CW_ARG_STRING, CW_ARG_STRING, ),
        SITE(PRINTF, "%p", CW_ARG_POINTER, ),
        SITE(PRINTF, "%2$s %1$d", CW_ARG_INT, CW_ARG_STRING, ),
        SITE(PRINTF, "%*d", CW_ARG_INT, CW_ARG_INT, ),
        SITE(BRACES, "{} {} {}", CW_ARG_TEXT, CW_ARG_BOOL, CW_ARG_CHAR, ),
        SITE(BRACES, "{} {} {:x}", CW_ARG_UINT, CW_ARG_ULONG, CW_ARG_LONG, ),
        SITE(BRACES, "{} {} {}", CW_ARG_FLOAT, CW_ARG_DOUBLE, CW_ARG_POINTER, ),
    };
    cw_site called[] = {
        SITE(PRINTF, "%s", CW_ARG_POINTER, ),
        SITE(PRINTF, "%p", CW_ARG_STRING, ),
        SITE(PRINTF, "%.3s", CW_ARG_STRING, ),
        SITE(PRINTF, "%.*s", CW_ARG_INT, CW_ARG_STRING, ),
        SITE(PRINTF, "%ls", CW_ARG_POINTER, ),
        SITE(PRINTF, "%ld", CW_ARG_INT, ),
        SITE(PRINTF, "%d", CW_ARG_LONG, ),
        SITE(PRINTF, "%d", CW_ARG_INT, CW_ARG_INT, ),
        SITE(PRINTF, "%2$d", CW_ARG_INT, CW_ARG_INT, ),
        SITE(PRINTF, "%Lf", CW_ARG_LONG_DOUBLE, ),
        SITE(PRINTF, "%m", ),
        SITE(PRINTF, "%n", CW_ARG_POINTER, ),
        SITE(PRINTF, "%d %d", CW_ARG_INT, ),
        SITE(BRACES, "{}", CW_ARG_LONG_DOUBLE, ),
        SITE(BRACES, "{:d}", CW_ARG_TEXT, ),
        SITE(BRACES, "{} {}", CW_ARG_INT, ),
    };
    static const cw_arg nothing[4];
    for (int i = 0; i < 2; i++) {
        for (size_t k = 0; k < sizeof plain / sizeof *plain; k++) {
            (void)cw_site_write(log, CW_LEVEL_INFO, &plain[k], nothing);
            HOLDS(plain[k].inlined != 0);
        }
        for (size_t k = 0; k < sizeof called / sizeof *called; k++) {
            (void)cw_site_write(log, CW_LEVEL_INFO, &called[k], nothing);
            EXPECT(0, called[k].inlined);
        }
    }
    EXPECT(CW_OK, cw_close(&engine, 20000));
    EXPECT(2 * (sizeof plain / sizeof *plain + sizeof called / sizeof *called),
           read_logs(NULL, NULL));
}

/* CW_LOG_EVERY_…: a place counts over all threads. */
enum { EVERY_THREADS = 4, EVERY_CALLS = 20001, EVERY_OF = 7 };
static void *every_log(void *argument) {
    for (int i = 0; i < EVERY_CALLS; i++) {
        CW_LOG_EVERY_N((cw_logger *)argument, CW_LEVEL_INFO, EVERY_OF, "%d of them", i);
        CW_LOG_EVERY_MS((cw_logger *)argument, CW_LEVEL_INFO, 3600000, "%d of an hour", i);
    }
    return NULL;
}
static void every_count(const cw_record_view *view, void *user) {
    ((size_t *)user)[memmem(view->message.data, view->message.length, "hour", 4) != NULL]++;
}
static void case_every(void) {
    cw_options options = defaults();
    cw_engine *engine = open_with(&options);
    pthread_t threads[EVERY_THREADS];
    for (int i = 0; i < EVERY_THREADS; i++)
        pthread_create(&threads[i], NULL, every_log, logger_of(engine, "every"));
    for (int i = 0; i < EVERY_THREADS; i++) pthread_join(threads[i], NULL);
    EXPECT(CW_OK, cw_close(&engine, 20000));
    size_t found[2] = {0, 0};
    EXPECT((EVERY_THREADS * EVERY_CALLS + EVERY_OF - 1) / EVERY_OF + 1,
           read_logs(every_count, found));
    EXPECT(1, found[1]);
}

#if CW_APPEND_INLINE_
/* A record of the header's append has the same bytes as one of the library's, except for the time
 * and the place's number. Both are in the thread's chunk. */
static void case_inlined_bytes(void) {
    cw_options options = defaults();
    cw_engine *engine = open_with(&options);
    cw_logger *log = logger_of(engine, "inlined");
    cw_site site = SITE(PRINTF, "%d %s %f %lx %p %s %c", CW_ARG_INT, CW_ARG_STRING, CW_ARG_DOUBLE,
                        CW_ARG_LONG, CW_ARG_POINTER, CW_ARG_STRING, CW_ARG_INT, );
    char text[300];
    for (size_t n = 0; n < sizeof text; n++) {
        memset(text, 'a', n);
        text[n] = '\0';
        unsigned char *at[3];
        for (int turn = 0; turn < 2; turn++) { /* in the second, both places are known */
            at[0] = turn ? cw_append_1->ptr : NULL;
            CW_NOTICE(log, "%d %s %f %lx %p %s %c", -7, text, 0.1, ~0UL, (void *)&site, "", 'z');
            EXPECT(0, cw_append_1->busy);
            at[1] = cw_append_1->ptr;
            const cw_arg arguments[] = {cw_arg_i(-7), cw_arg_p(text), cw_arg_d(0.1),
                                        cw_arg_u(~0UL), cw_arg_p(&site), cw_arg_p(""),
                                        cw_arg_i('z')};
            EXPECT(CW_OK, cw_site_write(log, CW_LEVEL_NOTICE, &site, arguments));
            at[2] = cw_append_1->ptr;
        }
        if (at[1] - at[0] != at[2] - at[1]) continue; /* a chunk ended here */
        EXPECT(16 + 4 + 4 + 4 + n + 8 + 8 + 8 + 4 + 4, *(uint32_t *)(void *)at[0]);
        memcpy(at[1] + 4, at[0] + 4, 4);
        memcpy(at[1] + 16, at[0] + 16, 4);
        EXPECT(0, memcmp(at[0], at[1], *(uint32_t *)(void *)at[0]));
    }
    for (size_t n = 0; n < sizeof text; n++) {
        memset(text, 'b', n);
        unsigned char *at[3];
        at[0] = cw_append_1->ptr;
        EXPECT(CW_OK, cw_write_here_(log, CW_LEVEL_WARN, text, n));
        EXPECT(0, cw_append_1->busy);
        at[1] = cw_append_1->ptr;
        EXPECT(CW_OK, cw_write(log, CW_LEVEL_WARN, text, n));
        at[2] = cw_append_1->ptr;
        if (at[1] - at[0] != at[2] - at[1]) continue;
        EXPECT(16 + n, *(uint32_t *)(void *)at[0]);
        memcpy(at[1] + 4, at[0] + 4, 4);
        EXPECT(0, memcmp(at[0], at[1], 16 + n));
    }
    HOLDS(site.inlined != 0);
    EXPECT(CW_OK, cw_close(&engine, 20000));
    EXPECT(6 * sizeof text, read_logs(NULL, NULL));
}
/* Statuses of cw_write without a record come from the library, in both forms. */
static void case_inlined_refusals(void) {
    cw_options options = defaults();
    cw_engine *engine = open_with(&options);
    cw_logger *log = logger_of(engine, "inlined");
    for (int turn = 0; turn < 2; turn++) { /* in the second, there is a chunk */
        EXPECT(CW_E_ARGUMENT, cw_write_here_(NULL, CW_LEVEL_INFO, "x", 1));
        EXPECT(CW_E_ARGUMENT, cw_write_here_(log, CW_LEVEL_INFO, NULL, 1));
        EXPECT(CW_E_LEVEL, cw_write_here_(log, 0, "x", 1));
        EXPECT(CW_E_LEVEL, cw_write_here_(log, 25, "x", 1));
        EXPECT(CW_DISABLED, cw_write_here_(log, CW_LEVEL_TRACE, "x", 1));
        EXPECT(CW_OK, cw_write_here_(log, CW_LEVEL_INFO, "x", 1));
    }
    EXPECT(CW_OK, cw_close(&engine, 20000));
    EXPECT(CW_E_CLOSED, cw_write_here_(log, CW_LEVEL_INFO, "x", 1));
    EXPECT(2, read_logs(NULL, NULL));
}
/* True if the host's own code begins a record. Nothing of it is kept. */
static bool begins_here(const cw_logger *logger) {
    cw_append record;
    if (!cw_append_start_(&record, logger, cw_append_1, CW_LEVEL_INFO | 1u << 8, 1)) return false;
    cw_append_idle_(cw_append_1);
    return true;
}
static uint64_t coarse_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}
/* The host's own code reads the coarse clock only if the library says that the engine uses it, and
 * not if every record is to be a call. */
static void case_inlined_coarse(void) {
    cw_options options = defaults();
    options.flags = CW_FLAG_COARSE_CLOCK;
    cw_engine *engine = open_with(&options);
    cw_logger *log = logger_of(engine, "inlined");
    uint64_t here = 0, outside = 0;
    for (int i = 0; i < 10000; i++) { /* the first chunks are small */
        const uint64_t from = coarse_ns();
        unsigned char *at = cw_append_1 ? cw_append_1->ptr : NULL;
        EXPECT(CW_OK, cw_write_here_(log, CW_LEVEL_INFO, "coarse", 6));
        const uint64_t base = cw_append_1->base_ticks, to = coarse_ns();
        if (begins_here(log)) here++;
        EXPECT(0, cw_append_1->busy);
        if (cw_append_1->ptr != at + 24) continue; /* a chunk began here */
        const uint64_t time = base + *(uint32_t *)(void *)(at + 4);
        if (time < from || time > to) outside++;
    }
    HOLDS(here > 9000);
    EXPECT(0, outside);
    const uint32_t clock = cw_append_1->clock;
    cw_append_1->clock = 0; /* an older library has no such clock */
    HOLDS(!begins_here(log));
    EXPECT(0, cw_append_1->busy);
    EXPECT(CW_OK, cw_write_here_(log, CW_LEVEL_INFO, "coarse", 6));
    cw_append_1->clock = clock;
    HOLDS(begins_here(log));
    options.flags |= CW_FLAG_SYNC_CONSOLE;
    options.console = CW_CONSOLE_TEXT;
    char other[4096];
    snprintf(other, sizeof other, "%s.other", store);
    options.directory = other;
    cw_engine *echoing = open_with(&options);
    cw_logger *echoed = logger_of(echoing, "inlined");
    EXPECT(CW_OK, cw_write_here_(echoed, CW_LEVEL_INFO, "echoed", 6));
    HOLDS(!begins_here(echoed)); /* marked, too: the echo must be seen first */
    HOLDS(!begins_here(log));    /* another engine's block */
    EXPECT(CW_OK, cw_write_here_(log, CW_LEVEL_INFO, "coarse", 6));
    HOLDS(begins_here(log));
    EXPECT(CW_OK, cw_close(&echoing, 20000));
    EXPECT(CW_OK, cw_close(&engine, 20000));
    EXPECT(10002, read_logs(NULL, NULL));
}
#else
static void case_inlined_refusals(void) { exit(77); }
static void case_inlined_bytes(void) { exit(77); }
static void case_inlined_coarse(void) { exit(77); }
#endif
