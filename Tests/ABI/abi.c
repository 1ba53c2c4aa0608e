/* The life-cycle cases, and main. The checks and the value cases are in abi_values.h. */
#include "abi_values.h"

static void *write_job(void *argument) {
    job *j = argument;
    for (uint64_t i = 0; i < j->count && !(j->stop && *j->stop); i++) {
        cw_status status = numbered(j->log, j->writer, i);
        if (status == CW_E_FULL) j->dropped++;
        else EXPECT(CW_OK, status);
    }
    return NULL;
}

typedef struct {
    tally t;
    uint64_t by_pid[WRITERS_MAX];
} fork_tally;

static void fork_each(const cw_record_view *view, void *user) {
    fork_tally *f = user;
    tally_each(view, &f->t);
    unsigned writer = 0;
    char text[32] = "";
    memcpy(text, view->message.data, view->message.length < 31 ? view->message.length : 31);
    sscanf(text, "%u", &writer);
    if (writer < WRITERS_MAX) {
        if (f->by_pid[writer] == 0) f->by_pid[writer] = view->process_id;
        if (f->by_pid[writer] != view->process_id) f->t.bad++;
    }
}

static void case_fork(void) {
    cw_options options = defaults();
    cw_engine *engine = open_with(&options);
    cw_logger *log = logger_of(engine, "fork");
    pthread_t threads[4];
    job jobs[4];
    for (unsigned i = 0; i < 4; i++) {
        jobs[i] = (job){log, i, 50000, 0, NULL};
        pthread_create(&threads[i], NULL, write_job, &jobs[i]);
    }
    pid_t children[8];
    for (unsigned c = 0; c < 8; c++) {
        children[c] = fork();
        if (children[c] == 0) {
            alarm(60);
            failures = 0;
            job mine = {log, 4 + c, 2000, 0, NULL};
            write_job(&mine);
            /* A runtime lock held at the fork may stop the child's helpers, never its records:
             * close still returns in time (docs/RELIABILITY.md, limits). */
            if (c % 2) {
                cw_status closed = cw_close(&engine, 2000);
                HOLDS(closed == CW_OK || closed == CW_E_TIMEOUT);
            }
            fflush(stdout);
            _exit(failures ? 1 : 0);
        }
    }
    for (unsigned c = 0; c < 8; c++) {
        int how = 0;
        waitpid(children[c], &how, 0);
        EXPECT(0, how);
    }
    for (unsigned i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        EXPECT(0, jobs[i].dropped);
    }
    EXPECT(CW_OK, cw_close(&engine, 60000));
    fork_tally f = {.t = {.unordered = WRITERS_MAX}};
    read_logs(fork_each, &f);
    EXPECT(0, f.t.bad);
    for (unsigned i = 0; i < 12; i++) {
        EXPECT(i < 4 ? 50000 : 2000, f.t.count[i]);
        EXPECT(i < 4 ? getpid() : children[i - 4], f.by_pid[i]);
    }
}
BY_MACRO(fork)

static cw_logger *storm_log;
static volatile uint64_t storm_sent, storm_dropped;

static void storm(int signal_number) {
    (void)signal_number;
    cw_status status = numbered(storm_log, 1, storm_sent + storm_dropped);
    if (status == CW_OK) storm_sent = storm_sent + 1;
    else storm_dropped = storm_dropped + 1;
}

static void storm_case(uint64_t segment_bytes) {
    cw_options options = defaults();
    options.segment_bytes = segment_bytes;
    cw_engine *engine = open_with(&options);
    storm_log = logger_of(engine, "storm");
    struct sigaction action = {.sa_handler = storm, .sa_flags = SA_RESTART};
    sigaction(SIGALRM, &action, NULL);
    struct itimerval often = {{0, 100}, {0, 100}}, never = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &often, NULL);
    uint64_t n = 0, dropped = 0;
    while (n < 500000 || storm_sent < 1000) {
        cw_status status = numbered(storm_log, 0, n++);
        if (status == CW_E_FULL) dropped++;
        else if (status != CW_OK) EXPECT(CW_OK, status);
        if (n > 50000000) break;
    }
    setitimer(ITIMER_REAL, &never, NULL);
    EXPECT(0, dropped);
    EXPECT(0, storm_dropped);
    cw_stats stats;
    EXPECT(CW_OK, cw_stats_get(engine, &stats, sizeof stats));
    EXPECT(n + storm_sent, stats.records_written);
    EXPECT(CW_OK, cw_close(&engine, 20000));
    tally t = {.unordered = 1};
    read_logs(tally_each, &t);
    EXPECT(n, t.count[0]);
    EXPECT(n * (n - 1) / 2, t.sum[0]);
    EXPECT(storm_sent, t.count[1]);
    EXPECT(storm_sent * (storm_sent - 1) / 2, t.sum[1]);
    EXPECT(0, t.bad);
}
/* ── A handler that jumps out of the append it interrupted ── */

enum { JUMP_RECORDS = 1000000 };
static sigjmp_buf away;
static volatile sig_atomic_t jumps_on;
static unsigned char jump_returned[JUMP_RECORDS + 1], jump_read[JUMP_RECORDS + 1];

static void jump(int signal_number) {
    (void)signal_number;
    if (jumps_on) siglongjmp(away, 1);
}

static void jump_each(const cw_record_view *view, void *user) {
    unsigned writer;
    unsigned long long number;
    char text[64] = "";
    memcpy(text, view->message.data, view->message.length < 63 ? view->message.length : 63);
    HOLDS(sscanf(text, "%u %llu", &writer, &number) == 2 && number <= JUMP_RECORDS);
    uint64_t *next = user;
    HOLDS(number >= *next);
    *next = number + 1;
    if (number <= JUMP_RECORDS) jump_read[number]++;
}

static void case_longjmp(void) {
    cw_options options = defaults();
    options.segment_bytes = 256u << 10;
    cw_engine *engine = open_with(&options);
    cw_logger *log = logger_of(engine, "jump");
    struct sigaction action = {.sa_handler = jump};
    sigaction(SIGALRM, &action, NULL);
    struct itimerval often = {{0, 50}, {0, 50}}, never = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &often, NULL);
    volatile uint64_t n = 0, jumps = 0;
    while (n < JUMP_RECORDS) {
        if (sigsetjmp(away, 1) != 0) {
            jumps++;
            continue;
        }
        jumps_on = 1;
        while (n < JUMP_RECORDS) {
            uint64_t number = n++;
            EXPECT(CW_OK, numbered(log, 0, number));
            jump_returned[number] = 1;
        }
    }
    jumps_on = 0;
    setitimer(ITIMER_REAL, &never, NULL);
    EXPECT(CW_OK, numbered(log, 0, JUMP_RECORDS)); /* reclaims what the last jump left */
    jump_returned[JUMP_RECORDS] = 1;
    EXPECT(CW_OK, cw_close(&engine, 20000));
    uint64_t next = 0, missing = 0, twice = 0, left = 0;
    read_logs(jump_each, &next);
    for (size_t i = 0; i <= JUMP_RECORDS; i++) {
        left += !jump_returned[i];
        missing += jump_returned[i] && jump_read[i] == 0;
        twice += jump_read[i] > 1;
    }
    EXPECT(0, missing);
    EXPECT(0, twice);
    HOLDS(jumps > 100 && left > 0);
    if (failures)
        printf("%llu jumps, %llu left\n", (unsigned long long)jumps, (unsigned long long)left);
}
BY_MACRO(longjmp)

static void case_storm(void) { storm_case(16u << 20); }
static void case_storm_small(void) { storm_case(64u << 10); }
BY_MACRO(storm)
BY_MACRO(storm_small)

static void *one_record(void *argument) {
    EXPECT(CW_OK, log_text(argument, "0 0", 3));
    return NULL;
}

static void case_churn(void) {
    cw_options options = defaults();
    cw_engine *engine = open_with(&options);
    cw_logger *log = logger_of(engine, "churn");
    for (int round = 0; round < 1250; round++) {
        pthread_t threads[8];
        for (int i = 0; i < 8; i++) pthread_create(&threads[i], NULL, one_record, log);
        for (int i = 0; i < 8; i++) pthread_join(threads[i], NULL);
    }
    EXPECT(CW_OK, cw_close(&engine, 60000));
    EXPECT(10000, read_logs(NULL, NULL));
}
BY_MACRO(churn)

static size_t count_of(const char *path, bool lines) {
    size_t count = 0;
    if (lines) {
        FILE *file = fopen(path, "r");
        int c;
        while (file && (c = getc(file)) != EOF) count += c == '\n';
        if (file) fclose(file);
        return count;
    }
    DIR *directory = opendir(path);
    while (directory && readdir(directory)) count++;
    if (directory) closedir(directory);
    return count;
}

static void case_reopen(void) {
    store = ":memory:";
    cw_options options = defaults();
    size_t files = 0, maps = 0;
    for (int i = 0; i < 1000; i++) {
        cw_engine *engine = open_with(&options);
        put(logger_of(engine, "r"), "0 1");
        EXPECT(CW_OK, cw_close(&engine, 60000));
        if (i == 0) files = count_of("/proc/self/fd", false);
        if (i == 99) maps = count_of("/proc/self/maps", true);
    }
    EXPECT(files, count_of("/proc/self/fd", false));
    size_t now = count_of("/proc/self/maps", true);
    if (now > maps + 32) {
        printf("mappings grew from %zu to %zu in 900 opens\n", maps, now);
        failures++;
    }
}

#include "abi_rolls.h"

static void case_no_fallocate_fork(void) {
    without(SYS_fallocate, SYS_fallocate);
    case_fork();
}

#include "abi_hazards.h"
#include "abi_formats.h"
#include "abi_inlined.h"
#include "abi_moves.h"

static void *close_job(void *argument) {
    job *j = argument;
    uint64_t i = 0;
    for (;; i++) {
        cw_status status = numbered(j->log, j->writer, i);
        if (status == CW_E_CLOSED) break;
        if (status == CW_E_FULL) continue; /* the disk stalled for seconds; not kept */
        EXPECT(CW_OK, status);
        __atomic_store_n(&j->count, j->count + 1, __ATOMIC_RELAXED);
    }
    return NULL;
}

static void case_close_race(void) { /* what returned CW_OK during a close is kept */
    uint64_t wanted = 0, read = 0;
    for (int round = 0; round < 20; round++) {
        cw_options options = defaults();
        options.segment_bytes = 64u << 10;
        cw_engine *engine = open_with(&options);
        cw_logger *log = logger_of(engine, "race");
        pthread_t threads[4];
        job jobs[4];
        for (unsigned i = 0; i < 4; i++) {
            jobs[i] = (job){log, i, 0, 0, NULL};
            pthread_create(&threads[i], NULL, close_job, &jobs[i]);
        }
        for (unsigned i = 0; i < 4; i++) /* each is in the middle of writing */
            while (__atomic_load_n(&jobs[i].count, __ATOMIC_RELAXED) < 100) sched_yield();
        EXPECT(CW_OK, cw_close(&engine, 20000));
        for (unsigned i = 0; i < 4; i++) {
            pthread_join(threads[i], NULL);
            wanted += jobs[i].count;
        }
    }
    read = read_logs(NULL, NULL);
    EXPECT(wanted, read);
}

/* ── Space ── */

typedef struct {
    uint64_t logs, gaps, missing;
} space_tally;

static void space_each(const cw_record_view *view, void *user) {
    space_tally *s = user;
    if (view->kind == CW_KIND_LOG) s->logs++;
    if (view->kind != CW_KIND_GAP) return;
    s->gaps++;
    const cw_field *dropped = find(view, "dropped");
    if (!dropped && view->field_count > 0) dropped = &view->fields[0];
    if (dropped) s->missing += dropped->value.u;
}

static void space_case(cw_engine *engine, void (*relieve)(void)) {
    cw_logger *log = logger_of(engine, "space");
    uint64_t sent = 0, refused = 0, after = 0;
    while (refused < 1000 && sent < 2000000) {
        cw_status status = numbered(log, 0, sent++);
        if (status == CW_E_FULL) refused++;
        else EXPECT(CW_OK, status);
    }
    EXPECT(1000, refused);
    relieve();
    for (int i = 0; i < 6000 && after < 100; i++) { /* the engine retries every 100 ms */
        usleep(10000);
        cw_status status = numbered(log, 0, sent++);
        if (status == CW_OK) after++;
        else refused++;
    }
    EXPECT(100, after);
    cw_stats stats;
    EXPECT(CW_OK, cw_stats_get(engine, &stats, sizeof stats));
    EXPECT(refused, stats.records_dropped);
    HOLDS(stats.records_written - (sent - refused) <= 1); /* and the engine's own */
    EXPECT(CW_OK, cw_close(&engine, 20000));
    space_tally s = {0};
    read_with(NULL, space_each, &s);
    EXPECT(sent - refused, s.logs);
    EXPECT(refused, s.missing);
    HOLDS(s.gaps > 0);
}

static void lift_limit(void) {
    struct rlimit limit;
    getrlimit(RLIMIT_FSIZE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_FSIZE, &limit);
}

static void case_file_limit(void) {
    struct rlimit limit;
    cw_options options = defaults();
    cw_engine *engine = open_with(&options);
    cw_logger *log = logger_of(engine, "space");
    for (uint64_t i = 0; i < 3000; i++) EXPECT(CW_OK, numbered(log, 0, i));
    getrlimit(RLIMIT_FSIZE, &limit);
    limit.rlim_cur = 60000;
    setrlimit(RLIMIT_FSIZE, &limit);
    cw_status status = cw_flush(engine, CW_DURABLE_MACHINE, 5000); /* the journal exceeds it */
    EXPECT(CW_E_FULL, status);
    lift_limit();
    EXPECT(CW_OK, cw_flush(engine, CW_DURABLE_MACHINE, 60000));
    EXPECT(CW_OK, cw_close(&engine, 20000));
}

static void case_file_limit_exact(void) {
    struct rlimit limit;
    cw_options options = defaults();
    cw_engine *engine = open_with(&options);
    getrlimit(RLIMIT_FSIZE, &limit);
    limit.rlim_cur = 60000; /* below the birth size of a segment */
    setrlimit(RLIMIT_FSIZE, &limit);
    space_case(engine, lift_limit);
}

static char ballast[4200];
static void drop_ballast(void) { unlink(ballast); }

static void case_full_disk(void) { /* run.py mounted a small tmpfs there */
    cw_options options = defaults();
    cw_engine *engine = open_with(&options);
    snprintf(ballast, sizeof ballast, "%s/../ballast", store);
    int fd = open(ballast, O_WRONLY | O_CREAT, 0600);
    if (fd < 0) exit(77);
    static char zeros[1 << 20];
    for (int i = 0; i < 5; i++)
        if (write(fd, zeros, sizeof zeros) != (ssize_t)sizeof zeros) exit(77);
    close(fd);
    space_case(engine, drop_ballast);
}

static void case_full_disk_written(void) {
    without(SYS_fallocate, SYS_fallocate);
    case_full_disk();
}

static volatile uint64_t block_sent;

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Lifts the limit once the writer has been in one call for a tenth of a second. */
static void *release_blocked(void *argument) {
    uint64_t seen = 0, since = now_ns();
    while (now_ns() - since < 100000000u) {
        if (block_sent == seen) continue;
        seen = block_sent;
        since = now_ns();
    }
    *(uint64_t *)argument = seen;
    lift_limit();
    return NULL;
}

static void case_block(void) { /* waits for space instead of refusing */
    struct rlimit limit;
    cw_options options = defaults();
    options.overflow = CW_OVERFLOW_BLOCK;
    cw_engine *engine = open_with(&options);
    cw_logger *log = logger_of(engine, "block");
    getrlimit(RLIMIT_FSIZE, &limit);
    limit.rlim_cur = 60000;
    setrlimit(RLIMIT_FSIZE, &limit);
    pthread_t thread;
    uint64_t blocked_at = 0;
    pthread_create(&thread, NULL, release_blocked, &blocked_at);
    for (uint64_t i = 0; i < 3000; i++) {
        EXPECT(CW_OK, numbered(log, 0, i));
        block_sent = i + 1;
    }
    pthread_join(thread, NULL);
    HOLDS(blocked_at < 3000);
    EXPECT(CW_OK, cw_close(&engine, 20000));
    EXPECT(3000, read_logs(NULL, NULL));
}

/* A descriptor that the system gives a thread of ours is moved at once: wait for that. */
static bool gets_free(int fd) {
    uint64_t until = now_ns() + 60000000000u;
    while (fcntl(fd, F_GETFD) != -1)
        if (now_ns() > until) return false;
    return true;
}

static void case_no_standard_streams(void) { /* no file of ours becomes the host's stderr */
    close(0);
    close(2);
    cw_options options = defaults();
    cw_engine *engine = open_with(&options);
    put(logger_of(engine, "s"), "0 1");
    EXPECT(CW_OK, cw_roll(engine));
    HOLDS(gets_free(0));
    HOLDS(gets_free(2));
    EXPECT(CW_OK, cw_close(&engine, 60000));
}

#include "abi_upload.h"
#include "abi_network.h"
#include "abi_curl.h"
#include "abi_start.h"
#include "abi_supply.h"
#include "abi_encrypt.h"
#include "abi_transactions.h"
#include "abi_steps.h"
#include "abi_files.h"
#include "abi_reused.h"
#include "abi_table.h"
#include "abi_names.h"
#include "abi_crowd.h"
#include "abi_reader.h"

static const struct {
    const char *name;
    void (*run)(void);
    const char *size;
} cases[] = {
#define CASE(name) {#name, case_##name, "core"}
#define FULL(name) {#name, case_##name, "full"} /* the core of the tests leaves it out */
    CASE(paths), CASE(sizes), CASE(values), CASE(large), CASE(large_cut), CASE(not_utf8),
    CASE(json), CASE(json_cut),
    CASE(fill), CASE(damaged), CASE(newer), CASE(memory), CASE(console_text), CASE(console_json),
    CASE(console_auto), CASE(console_sync), CASE(console_closed), CASE(context), CASE(life),
    CASE(fork), CASE(storm), FULL(longjmp), FULL(storm_small), FULL(churn), FULL(reopen),
    FULL(rolls), CASE(no_membarrier), CASE(no_fallocate), FULL(no_fallocate_fork),
    CASE(full_disk_written), FULL(close_race), CASE(file_limit), CASE(file_limit_exact),
    CASE(full_disk), CASE(block), CASE(no_standard_streams), CASE(fork_steps),
    FULL(fork_steps_written), CASE(fork_handler), CASE(jump_steps), CASE(jump_nested),
    CASE(cancel), CASE(no_links), CASE(membarrier_lost),
    CASE(formats), CASE(macros), CASE(format_refused), CASE(format_strings),
    CASE(places_storm), CASE(places_fork), CASE(errno),
    FULL(reused), FULL(reused_fork), CASE(coarse_clock), CASE(idle_threads),
    FULL(tmpfs), FULL(tmpfs_full), CASE(tmpfs_cleaned), CASE(places_alike), CASE(site_text),
    CASE(encrypt), CASE(first_failure),
    CASE(policy), CASE(transfer_errors),
    CASE(network_outcomes), CASE(network_refused), CASE(network_record),
    CASE(curl_refused), CASE(curl_pieces), CASE(curl_hops), CASE(curl_limits),
    CASE(roll_steps), CASE(seal_steps), CASE(seal_fences), CASE(append_fences),
    CASE(append_fences_missing), CASE(reused_steps), FULL(reused_idle),
    CASE(frozen_steps), CASE(publish_steps), CASE(grow_steps), CASE(alternate_steps),
    CASE(sealed_chunks), CASE(locked_first), CASE(lock_forked), CASE(gap_told_once),
    CASE(close_early), CASE(close_encrypted),
    CASE(names_synced), CASE(evicted), FULL(reused_reads), CASE(reader_keeps_file),
    CASE(close_steps),
    CASE(archive_held), CASE(fork_names), FULL(fork_alone),
    CASE(cancel_pending),
    CASE(transactions), CASE(transaction_names), CASE(transaction_threads), CASE(traceparent),
    CASE(table_steps), CASE(spare_lost), CASE(spares_removed), FULL(spares_removed_drop),
    FULL(spares_removed_tmpfs), CASE(sealed_removed), CASE(journal_closed), FULL(storm_crowd),
    CASE(origin), CASE(start_small), CASE(start_adopts),
    CASE(start_one_archive),
    CASE(inlined_places), CASE(inlined_bytes), CASE(inlined_coarse), CASE(inlined_refusals),
    CASE(every), CASE(fibers),
    CASE(ending_storm),
    FULL(fork_inlined), FULL(longjmp_inlined), FULL(churn_inlined), FULL(storm_inlined),
    FULL(storm_small_inlined), FULL(rolls_inlined), FULL(fork_steps_inlined),
    CASE(jump_steps_inlined), FULL(jump_nested_inlined), CASE(jump_large),
    FULL(table_steps_inlined), FULL(roll_steps_inlined), FULL(frozen_steps_inlined),
    FULL(reused_steps_inlined), FULL(seal_steps_inlined),
    FULL(fork_steps_text), CASE(jump_steps_text), FULL(table_steps_text),
    FULL(roll_steps_text), FULL(frozen_steps_text),
};

/* Without arguments: the names of all cases and their sizes. */
int main(int argc, char **argv) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc == 1)
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
            printf("%s %s\n", cases[i].name, cases[i].size);
    if (argc != 3) return argc == 1 ? 0 : 2;
    store = argv[2];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (strcmp(cases[i].name, argv[1]) != 0) continue;
        cases[i].run();
        return failures ? 1 : 0;
    }
    return 2;
}
