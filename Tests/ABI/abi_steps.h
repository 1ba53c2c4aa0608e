/* A thread stands at one instruction of an append, at each in turn, while another thread rolls,
 * archives, reuses the file or reads (RELIABILITY R1 to R6, R11, R18). abi.c includes it after
 * abi_hazards.h, which has the single steps. At each moment every returned record is there once. */
#include <dlfcn.h>
#include <stdarg.h>

#if defined(__x86_64__)
#include "../TestSupport/system_call.h"
#endif

/* ── The library's calls, which bind to the program's functions ── */

static void (*at_rename)(int directory, const char *from, const char *to);
static void (*at_unlink)(const char *path);
static void (*at_fsync)(int descriptor);
static __thread void (*after_call)(long number); /* of this thread only */
enum { CLOCK_CALL = 100000 };                     /* clock_gettime, which is not a system call */

int renameat(int from, const char *old, int to, const char *new) {
    if (at_rename) at_rename(from, old, new);
    return (int)syscall(SYS_renameat, from, old, to, new);
}
#if defined(__x86_64__)
long syscall(long number, ...) {
    va_list rest;
    va_start(rest, number);
    call_arguments of = call_arguments_of(rest);
    va_end(rest);
    long result = system_call(number, of);
    if (after_call) after_call(number);
    return result;
}
#endif
int clock_gettime(clockid_t clock, struct timespec *time) {
    static int (*next)(clockid_t, struct timespec *);
    if (next == NULL) {
        void *address = dlsym(RTLD_NEXT, "clock_gettime");
        memcpy(&next, &address, sizeof next);
    }
    int result = next(clock, time);
    if (after_call) after_call(CLOCK_CALL);
    return result;
}
int unlink(const char *path) {
    if (at_unlink) at_unlink(path);
    return (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
}
int unlinkat(int directory, const char *path, int flags) {
    if (at_unlink) at_unlink(path);
    return (int)syscall(SYS_unlinkat, directory, path, flags);
}
int fsync(int descriptor) {
    if (at_fsync) at_fsync(descriptor);
    return (int)syscall(SYS_fsync, descriptor);
}

/* ── Standing ── */

enum { STAND_MAX = 200000 };
static sem_t stands, goes_on;
static volatile int stood;
static cw_engine *stand_engine;
static uint64_t stand_next;              /* the next record's number */
static uint64_t stand_number = STAND_MAX; /* of the record being written */
static unsigned char stand_seen[STAND_MAX];

static void stand(void) {
    stood = 1;
    sem_post(&stands);
    while (sem_wait(&goes_on) != 0) continue;
}

static uint64_t stand_text(char *text, size_t bytes) {
    memset(text, 'x', bytes);
    text[bytes] = '\0';
    snprintf(text, bytes, "7 %07llu", (unsigned long long)stand_next);
    text[9] = ' ';
    return stand_next++;
}

/* Writes one record. No other thread may be writing. */
static void stand_put(size_t bytes) {
    static char text[1 << 20];
    stand_text(text, bytes);
    EXPECT(CW_OK, log_text(hazard_log, text, bytes));
}

typedef struct {
    int at;                /* that many instructions after … */
    long call;             /* … this system call, or the append's beginning: -1 */
    long after;            /* … its nth call after a new name, if it is the clock's */
    int earlier;           /* records that the thread has written before */
    void (*between)(void); /* runs between those and this one */
    size_t bytes;          /* of the record in which it stands */
} stand_place;

/* Counts instructions from the nth call of that number, also while signals are blocked. */
static __thread int stand_at;
static __thread long stand_call, stand_nth;
static __thread int clocks_begun;
static void stand_from_call(long number) {
    if (number == SYS_renameat) clocks_begun = 1;
    if (stand_call == CLOCK_CALL && !clocks_begun) return;
    if (number != stand_call || --stand_nth > 0) return;
    after_call = NULL;
    step_here(stand_at, stand);
}

static void stand_from(int at, long call, long nth) {
    clocks_begun = 0;
    stand_at = at, stand_call = call, stand_nth = nth;
    after_call = stand_from_call;
}

static void *stand_within(void *argument) {
    const stand_place *place = argument;
    static char text[1 << 20];
    for (int i = 0; i < place->earlier; i++) stand_put(80);
    if (place->between) place->between();
    stand_number = stand_text(text, place->bytes);
    if (place->call >= 0) stand_from(place->at, place->call, place->after > 0 ? place->after : 1);
    else step_start(place->at, stand);
    cw_status status = log_text(hazard_log, text, place->bytes);
    step_end();
    EXPECT(CW_OK, status);
    if (!stood) sem_post(&stands);
    return NULL;
}

/* A thread runs the body. This one acts while the other stands, if it gets that far. */
static void stand_meet(void *(*body)(void *), void *argument, void (*act)(void)) {
    pthread_t thread;
    stood = 0;
    sem_init(&stands, 0, 0);
    sem_init(&goes_on, 0, 0);
    EXPECT(0, pthread_create(&thread, NULL, body, argument));
    while (sem_wait(&stands) != 0) continue;
    if (stood) act();
    sem_post(&goes_on);
    pthread_join(thread, NULL);
}

/* False: the append had already ended. */
static int stands_at(stand_place place, void (*act)(void)) {
    stand_meet(stand_within, &place, act);
    stand_number = STAND_MAX;
    return stood;
}

static void stand_each(const cw_record_view *view, void *user) {
    unsigned long long number = STAND_MAX;
    if (view->message.length < 10 || memcmp(view->message.data, "7 ", 2) != 0) return;
    sscanf((const char *)view->message.data + 2, "%llu", &number);
    HOLDS(number < STAND_MAX);
    if (number < STAND_MAX) stand_seen[number]++;
    (void)user;
}

/* Every record whose call returned is there once, and the one being written at most once. */
static void stand_look(void) {
    memset(stand_seen, 0, sizeof stand_seen);
    read_logs(stand_each, NULL);
    int lost = 0, twice = 0;
    for (uint64_t i = 0; i < STAND_MAX; i++) {
        int least = i < stand_next && i != stand_number;
        lost += stand_seen[i] < least;
        twice += stand_seen[i] > (i < stand_next);
    }
    EXPECT(0, lost);
    EXPECT(0, twice);
    EXPECT(0, damaged);
}

static void stand_open(uint64_t segment_bytes) {
    cw_options options = defaults();
    options.segment_bytes = segment_bytes;
    stand_engine = open_with(&options);
    hazard_log = logger_of(stand_engine, "stand");
    steps_prepare();
}

static void stand_close(void) {
    EXPECT(CW_OK, cw_close(&stand_engine, 20000));
    stand_look();
}

static void stand_roll(void) { EXPECT(CW_OK, cw_roll(stand_engine)); }

/* ── Sealed at every (fifth) instruction of a thread's first record, of a later one, of one whose
 * chunk was sealed while the thread was idle ── */

static void stand_roll_and_go_on(void) {
    stand_roll();
    static char text[] = "0 0 beside the one that stands";
    put(hazard_log, text); /* so that there is something to roll again */
}

static void case_roll_steps(void) {
    stand_open(64u << 10);
    int steps[3] = {0, 0, 0};
    stand_place wheres[3] = {{.call = -1, .bytes = 80},
                             {.call = -1, .bytes = 80, .earlier = 2},
                             {.call = -1, .bytes = 80, .earlier = 1, .between = stand_roll}};
    for (int which = 0; which < 3; which++) {
        for (int n = 1; n < 5000; n += which == 1 ? 1 : 5) {
            stand_put(80); /* an empty segment is not rolled */
            wheres[which].at = n;
            if (!stands_at(wheres[which], stand_roll_and_go_on)) break;
            steps[which]++;
        }
        HOLDS(steps[which] > 40);
    }
    fprintf(stderr, "%d, %d and %d instructions\n", steps[0], steps[1], steps[2]);
    stand_close();
}
BY_MACRO(roll_steps)
BY_TEXT(roll_steps)

/* ── A sealer that stands between its looks and its CAS, while the thread moves on (R2) ── */

static void *stand_roll_within(void *argument) {
    stand_from(*(int *)argument, SYS_membarrier, 2); /* then it looks at the threads' chunks */
    stand_roll();
    step_end();
    if (!stood) sem_post(&stands);
    return NULL;
}

static void stand_move_on(void) {
    for (int i = 0; i < 3; i++) stand_put(80);
}

/* The first thread writes. Another seals step by step, unless the helper is faster. */
static void case_seal_steps(void) {
    stand_open(64u << 10);
    int steps = 0;
    for (int n = 1, tries = 0; n < 300 && tries < 6000; tries++) {
        for (int i = 0; i < 5; i++) stand_put(80);
        stand_meet(stand_roll_within, &n, stand_move_on);
        for (int i = 0; i < 12; i++) stand_put(80);
        stand_roll();
        steps += stood;
        n += stood;
    }
    HOLDS(steps > 200);
    fprintf(stderr, "%d instructions\n", steps);
    stand_close();
}
BY_MACRO(seal_steps)

/* ── A file that is used again ── */

enum { STAND_BURSTS_MAX = 400 };

/* Fills segments and lets them be archived until that many more files were reused. */
static void stand_reuse(uint64_t more) {
    uint64_t goal = reused_so_far(stand_engine) + more;
    static uint64_t number;
    for (int burst = 0; burst < STAND_BURSTS_MAX && reused_so_far(stand_engine) < goal; burst++) {
        for (int i = 0; i < 4000; i++) EXPECT(CW_OK, numbered(hazard_log, 1, number++));
        EXPECT(CW_OK, cw_archive_wait(stand_engine, ARCHIVE_WAIT_MS));
    }
    HOLDS(reused_so_far(stand_engine) >= goal);
}

/* The current segment's file, `<lane>.<number>-<generation>.seg`, opened; -1: in the lane file. */
static int stand_segment(unsigned long *generation) {
    char path[4200];
    snprintf(path, sizeof path, "%s/lanes", store);
    DIR *lanes = opendir(path);
    unsigned long newest = 0;
    int file = -1;
    for (struct dirent *entry; lanes && (entry = readdir(lanes));) {
        const char *suffix = strrchr(entry->d_name, '.');
        if (entry->d_name[0] == '.' || suffix == NULL || strcmp(suffix, ".seg") != 0) continue;
        const char *part = strchr(entry->d_name, '.');
        unsigned long number = 0, g = 0;
        if (sscanf(part, ".%lu-%lu.seg", &number, &g) != 2 || number < newest) continue;
        newest = number, *generation = g;
        if (file >= 0) close(file);
        file = openat(dirfd(lanes), entry->d_name, O_RDONLY | O_CLOEXEC);
    }
    if (lanes) closedir(lanes);
    return file;
}

/* True if its file belonged to an earlier segment. */
static int stand_is_reused(void) {
    unsigned long generation = 0;
    int file = stand_segment(&generation);
    if (file >= 0) close(file);
    return generation > 1;
}

static void *stand_one(void *unused) {
    stand_put(80);
    return unused;
}

/* So many that every chunk has 1 KiB: each life of a file then has chunks at the same places. */
static void stand_crowd(void) {
    for (int i = 0; i < 40; i++) {
        pthread_t thread;
        pthread_create(&thread, NULL, stand_one, NULL);
        pthread_join(thread, NULL);
    }
}

/* Records of bursts that were read and then deleted with their archives never come back. */
typedef struct {
    uint64_t first, seen, back;
} burst_tally;
static uint64_t stand_oldest;

static void burst_each(const cw_record_view *view, void *user) {
    burst_tally *b = user;
    unsigned long long number;
    char text[32] = "";
    memcpy(text, view->message.data, view->message.length < 31 ? view->message.length : 31);
    if (sscanf(text, "1 %llu", &number) != 1) return;
    if (b->seen++ == 0 || number < b->first) b->first = number;
    b->back += number < stand_oldest;
}

/* 0: a listed archive was deleted before it was opened. */
static int read_bursts(burst_tally *b) {
    cw_reader_options options = {.struct_size = sizeof options, .kinds = 1u << CW_KIND_LOG};
    cw_reader *reader = NULL;
    cw_record_view view = {.struct_size = sizeof view};
    cw_status status = cw_reader_open(store, &options, &reader);
    while (status == CW_OK && (status = cw_reader_next(reader, &view)) == CW_OK)
        burst_each(&view, b);
    cw_reader_close(&reader);
    return status == CW_END;
}

static void stand_look_back(void) {
    burst_tally b;
    int is_read = 0;
    for (int tries = 0; tries < 100 && !is_read; tries++) {
        b = (burst_tally){0, 0, 0};
        is_read = read_bursts(&b);
    }
    EXPECT(1, is_read);
    EXPECT(0, b.back);
    if (b.seen > 0 && b.first > stand_oldest) stand_oldest = b.first;
}

/* A reader at every 16th instruction of a claim in such a file, after the archives of its earlier
 * lives are gone: nothing of them shows. It sees what would be found if the process died there. */
static void case_reused_steps(void) {
    cw_options options = defaults();
    options.segment_bytes = 128u << 10;
    options.archives_max = 1;
    stand_engine = open_with(&options);
    hazard_log = logger_of(stand_engine, "stand");
    steps_prepare();
    stand_crowd();
    int steps = 0;
    for (int n = 1; n < 5000; n += 16) {
        for (int tries = 0; !stand_is_reused() && tries < 100; tries++) stand_reuse(1);
        stand_look_back();
        if (!stands_at((stand_place){.at = n, .call = -1, .bytes = 80}, stand_look_back)) break;
        steps++;
    }
    HOLDS(steps > 20 && stand_oldest > 0);
    fprintf(stderr, "%d places\n", steps);
    EXPECT(CW_OK, cw_close(&stand_engine, 20000));
}
BY_MACRO(reused_steps)

/* Idle threads' chunks lay in files that are reused. Others' chunks now lie at the same places, and
 * what the sealer knows of the old ones must not touch them. */
static void *stand_idle(void *argument) {
    stand_put(80);
    sem_post(&stands);
    while (sem_wait(argument) != 0) continue;
    return NULL;
}

/* Closes. Everything kept is there once and in order, including the crowd's records. */
static void stand_end(void) {
    EXPECT(CW_OK, cw_close(&stand_engine, 20000));
    tally t = {.unordered = WRITERS_MAX};
    read_logs(tally_each, &t);
    EXPECT(t.last[1] + 1, t.count[1]);
    EXPECT(stand_next, t.count[7]);
    EXPECT(0, t.bad);
}

static void case_reused_idle(void) {
    enum { IDLE = 60, ROUNDS = 5 };
    stand_open(128u << 10);
    stand_crowd();
    sem_t end;
    sem_init(&end, 0, 0);
    sem_init(&stands, 0, 0);
    pthread_t threads[IDLE];
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < IDLE; i++) {
            EXPECT(0, pthread_create(&threads[i], NULL, stand_idle, &end));
            while (sem_wait(&stands) != 0) continue;
        }
        stand_reuse(60);
        for (int i = 0; i < IDLE; i++) sem_post(&end);
        for (int i = 0; i < IDLE; i++) pthread_join(threads[i], NULL);
    }
    stand_end();
}

/* A thread that stands in an append keeps its segment's file from being reused: the archive removes
 * the file's name, and it gets no other. Before and after the append it may get one. */
static int stand_kept;
static void stand_roll_and_reuse(void) {
    unsigned long generation = 0;
    struct stat status = {.st_nlink = 1};
    int file = stand_segment(&generation);
    HOLDS(file >= 0);
    stand_roll();
    EXPECT(CW_OK, cw_archive_wait(stand_engine, ARCHIVE_WAIT_MS));
    stand_reuse(4);
    EXPECT(0, fstat(file, &status));
    stand_kept += status.st_nlink == 0;
    close(file);
}

static void case_frozen_steps(void) {
    stand_open(128u << 10);
    stand_crowd();
    stand_reuse(8);
    int steps = 0;
    for (int n = 4; n < 400; n += 8) {
        if (!stands_at((stand_place){.at = n, .call = -1, .bytes = 80, .earlier = 2},
                       stand_roll_and_reuse))
            break;
        steps++;
    }
    HOLDS(stand_kept >= 4);
    fprintf(stderr, "%d places, kept in %d\n", steps, stand_kept);
    stand_end();
}
BY_MACRO(frozen_steps)
BY_TEXT(frozen_steps)

/* ── A segment in the moment before it is current (A10) ── */

static void stand_seal(void) { (void)cw_archive_wait(stand_engine, 1); }

static uint64_t stand_sealed(void) {
    cw_stats stats = {.struct_size = sizeof stats};
    EXPECT(CW_OK, cw_archive_wait(stand_engine, ARCHIVE_WAIT_MS));
    EXPECT(CW_OK, cw_stats_get(stand_engine, &stats, sizeof stats));
    return stats.segments_sealed;
}

/* Clock calls after the new name. All but the last few are for the segment's first pair, after
 * which it becomes current. */
static __thread long clocks_at_rename, clocks_after;
static void count_clocks(long number) {
    if (number == SYS_renameat) clocks_at_rename = 1;
    if (number == CLOCK_CALL && clocks_at_rename > 0) clocks_after++;
}

static void *stand_count(void *calls) {
    stand_put(40000);
    after_call = count_clocks;
    stand_put(40000);
    after_call = NULL;
    *(long *)calls = clocks_after;
    return NULL;
}

/* Each of its records fills a segment. One sealed too early has none, and counts as one more. */
static void case_publish_steps(void) {
    enum { LAST = 8 };
    stand_open(64u << 10);
    long calls = 0;
    pthread_t thread;
    pthread_create(&thread, NULL, stand_count, &calls);
    pthread_join(thread, NULL);
    HOLDS(calls > LAST);
    int steps = 0, tries = 0;
    uint64_t sealed = stand_sealed();
    for (long nth = calls - LAST; nth <= calls; nth++) {
        for (int n = 1; n < 80; n += 2) {
            stand_put(40000); /* the next of that size needs another segment */
            steps += stands_at((stand_place){.at = n, .call = CLOCK_CALL, .after = nth,
                                             .bytes = 40000}, stand_seal);
            tries++;
        }
    }
    HOLDS(steps > 100);
    EXPECT(2 * tries, (long)(stand_sealed() - sealed));
    fprintf(stderr, "%d places, %ld calls\n", steps, calls);
    stand_close();
}

/* ── A segment that grows: what another thread writes beyond its old end is there (A6) ── */

static void stand_beyond(void) {
    for (int i = 0; i < 2; i++) stand_put(300000); /* in the part that has just grown */
    stand_look();
}

static void case_grow_steps(void) {
    int steps = 0;
    for (int n = 1; n < 100; n += 2) { /* each with a new engine, whose helper is not ahead */
        stand_open(4u << 20);
        stand_put(80);
        stand_roll();
        steps += stands_at((stand_place){.at = n, .call = SYS_fallocate, .bytes = 900000},
                           stand_beyond);
        EXPECT(CW_OK, cw_close(&stand_engine, 20000));
    }
    HOLDS(steps > 30);
    stand_look();
}

/* ── A handler on another stack, above and below the thread's own (R18) ── */

static void stand_on_other(int signal_number) {
    (void)signal_number;
    stand_put(80);
}

static void stand_raise_and_note(void) {
    stood = 1;
    raise(SIGUSR2);
}

static void *stand_alternate(void *argument) {
    stack_t other = {.ss_sp = argument, .ss_size = 256 << 10};
    sigaltstack(&other, NULL);
    static char text[100];
    stand_put(80);
    for (int n = 1; n < 5000; n++) {
        stand_text(text, sizeof text);
        stood = 0;
        step_start(n, stand_raise_and_note);
        cw_status status = cw_write(hazard_log, CW_LEVEL_INFO, text, sizeof text);
        step_end();
        EXPECT(CW_OK, status);
        if (!stood) break;
    }
    other.ss_flags = SS_DISABLE;
    sigaltstack(&other, NULL);
    return NULL;
}

/* A record's number is unique to its thread, in every stream (A30). */
enum { NUMBERS_MAX = 10000 };
typedef struct {
    uint64_t thread, sequence;
} thread_number;
static thread_number thread_numbers[NUMBERS_MAX];

static void number_each(const cw_record_view *view, void *user) {
    size_t *count = user;
    if (*count < NUMBERS_MAX)
        thread_numbers[(*count)++] = (thread_number){view->thread_id, view->sequence};
}

static int by_number(const void *left, const void *right) {
    const thread_number *a = left, *b = right;
    if (a->thread != b->thread) return a->thread < b->thread ? -1 : 1;
    return a->sequence < b->sequence ? -1 : a->sequence > b->sequence;
}

static void numbers_are_unique(void) {
    size_t count = 0, twice = 0;
    read_logs(number_each, &count);
    qsort(thread_numbers, count, sizeof *thread_numbers, by_number);
    for (size_t i = 1; i < count; i++)
        twice += by_number(&thread_numbers[i - 1], &thread_numbers[i]) == 0;
    HOLDS(count > 100 && count < NUMBERS_MAX);
    EXPECT(0, twice);
}

static void case_alternate_steps(void) {
    stand_open(256u << 10);
    struct sigaction action = {.sa_handler = stand_on_other, .sa_flags = SA_ONSTACK};
    sigaction(SIGUSR2, &action, NULL);
    size_t each = 512u << 10;
    char *stacks = aligned_alloc(4096, 3 * each);
    HOLDS(stacks != NULL);
    for (int above = 0; stacks != NULL && above < 2; above++) {
        pthread_attr_t attributes;
        pthread_attr_init(&attributes);
        pthread_attr_setstack(&attributes, stacks + each, each);
        pthread_t thread;
        EXPECT(0, pthread_create(&thread, &attributes, stand_alternate,
                                 stacks + (above ? 2 * each : 0)));
        pthread_join(thread, NULL);
    }
    stand_close();
    numbers_are_unique();
    free(stacks);
}
