/* What a store's files contain at moments that readers on a healthy disk never notice: chunks of a
 * sealed segment, locks, the order of system calls, gap records of a process that is killed later;
 * and fences. abi.c includes it after abi_steps.h, which intercepts the library's calls. */

#include <sys/file.h>
#include <sys/mman.h>
#ifndef MADV_PAGEOUT
#define MADV_PAGEOUT 21
#endif

static int ends_with(const char *text, const char *end) {
    size_t length = strlen(text), most = strlen(end);
    return length >= most && strcmp(text + length - most, end) == 0;
}

/* The first file in lanes/ with that ending, opened; or -1. */
static int open_in_lanes(const char *suffix, char *name, size_t room) {
    char path[4200];
    snprintf(path, sizeof path, "%s/lanes", store);
    DIR *lanes = opendir(path);
    int file = -1;
    for (struct dirent *entry; file < 0 && lanes && (entry = readdir(lanes));) {
        if (entry->d_name[0] == '.' || !ends_with(entry->d_name, suffix)) continue;
        file = openat(dirfd(lanes), entry->d_name, O_RDWR | O_CLOEXEC);
        snprintf(name, room, "%s", entry->d_name);
    }
    if (lanes) closedir(lanes);
    return file;
}

/* ── Fences, counted: with few processors a race that lacks one is usually won by luck ── */

static __thread int membarriers;
static void count_membarrier(long number) { membarriers += number == SYS_membarrier; }

/* A seal has two (docs/CONCURRENCY.md, Claim against seal), and no append has one. */
static void case_seal_fences(void) {
    stand_open(64u << 10);
    int seals = 0;
    for (int i = 0; i < 4000 && seals < 20; i++) {
        after_call = count_membarrier;
        membarriers = 0;
        stand_put(80);
        EXPECT(0, membarriers);
        stand_roll();
        /* 0: the helper was faster. The first may have to register the process. */
        HOLDS(seals == 0 || membarriers == 0 || membarriers == 2);
        seals += membarriers == 2;
        after_call = NULL;
    }
    EXPECT(20, seals);
    stand_close();
}

static __thread int fences;
static void count_fence(const unsigned char *at) {
    static const unsigned char mfence[] = {0x0f, 0xae, 0xf0};
    static const unsigned char lock_or_stack[] = {0xf0, 0x83, 0x4c, 0x24};
    fences += memcmp(at, mfence, sizeof mfence) == 0 ||
              memcmp(at, lock_or_stack, sizeof lock_or_stack) == 0;
}

/* Without membarrier an append has two: once it is busy, and after `committed`. */
static int fences_of_an_append(void) { /* the minimum: some take a new chunk */
    char text[64];
    memset(text, 'x', sizeof text);
    int least = 1000;
    for (int i = 0; i < 20; i++) {
        fences = 0;
        each_step = count_fence;
        step_start(STEPS_OFF / 4, stand);
        cw_status status = cw_write(hazard_log, CW_LEVEL_INFO, text, sizeof text);
        step_end();
        each_step = NULL;
        EXPECT(CW_OK, status);
        if (fences < least) least = fences;
    }
    return least;
}

static void hold_archive(int directory, const char *from, const char *to) {
    (void)directory, (void)from;
    while (ends_with(to, ".cwa") && sem_wait(&goes_on) != 0) continue;
}

static void case_append_fences(void) {
    stand_open(64u << 10);
    EXPECT(0, fences_of_an_append());
    /* The next thread that needs a fence notices and marks all threads: here the one that checks
     * whether an archived segment can be reused. This thread's chunk is in another segment. */
    sem_init(&goes_on, 0, 0);
    at_rename = hold_archive;
    stand_roll();
    stand_put(80);
    lose_membarrier();
    sem_post(&goes_on);
    EXPECT(CW_OK, cw_archive_wait(stand_engine, ARCHIVE_WAIT_MS));
    at_rename = NULL;
    EXPECT(2, fences_of_an_append());
    EXPECT(CW_OK, cw_close(&stand_engine, 20000));
    /* In another process: this one has already asked. */
    pid_t child = fork();
    if (child == 0) {
        execl("/proc/self/exe", "abi", "append_fences_missing", store, (char *)NULL);
        _exit(2);
    }
    int how = -1;
    waitpid(child, &how, 0);
    EXPECT(0, how);
}

static void case_append_fences_missing(void) {
    stand_open(64u << 10);
    EXPECT(2, fences_of_an_append());
    EXPECT(CW_OK, cw_close(&stand_engine, 20000));
}

/* ── Every chunk of a sealed segment has its length and its checksum (FORMAT §6.2) ── */

static uint32_t crc32c(uint32_t crc, const unsigned char *bytes, size_t count) {
    crc = ~crc;
    for (size_t i = 0; i < count; i++) {
        crc ^= bytes[i];
        for (int k = 0; k < 8; k++) crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
    }
    return ~crc;
}

static uint32_t word_at(const unsigned char *start, size_t at) {
    uint32_t word;
    memcpy(&word, start + at, sizeof word);
    return word;
}

/* The number of chunks. */
static int check_sealed(const unsigned char *segment, size_t size) {
    int chunks = 0;
    EXPECT(3, word_at(segment, 112)); /* state: sealed */
    for (size_t at = 4096; at + 128 <= size;) {
        const unsigned char *chunk = segment + at;
        if (memcmp(chunk, segment + 80, 8) != 0 || word_at(chunk, 16) != at) {
            at += 1024;
            continue;
        }
        uint32_t committed = word_at(chunk, 8), bytes = word_at(chunk, 12);
        uint32_t final = word_at(chunk, 64);
        EXPECT(committed, final);
        HOLDS(final >= 128 && final <= bytes);
        if (final >= 128 && final <= bytes) {
            uint32_t crc = crc32c(0, chunk + 12, 52);
            EXPECT(crc32c(crc, chunk + 128, final - 128), word_at(chunk, 68));
        }
        chunks++;
        at += bytes < 1024 ? 1024 : bytes;
    }
    return chunks;
}

static void *idle_or_gone(void *argument) {
    put(hazard_log, "of a thread");
    if (argument) {
        sem_post(argument);
        for (;;) pause();
    }
    return NULL;
}

static void case_sealed_chunks(void) {
    enum { THREADS = 12 };
    cw_options options = defaults();
    options.segment_bytes = 64u << 10;
    cw_engine *engine = open_with(&options);
    hazard_log = logger_of(engine, "sealed");
    for (int segment = 0; segment < 2; segment++) {
        put(hazard_log, "of the first thread");
        sem_t ready;
        sem_init(&ready, 0, 0);
        for (int i = 0; i < THREADS; i++) {
            pthread_t thread;
            pthread_create(&thread, NULL, idle_or_gone, i % 2 ? &ready : NULL);
            if (i % 2) while (sem_wait(&ready) != 0) continue;
            else pthread_join(thread, NULL);
        }
        char name[300];
        int file = open_in_lanes(segment ? ".seg" : ".lane", name, sizeof name);
        HOLDS(file >= 0);
        EXPECT(CW_OK, cw_roll(engine));
        size_t size = segment ? 64u << 10 : 48u << 10;
        unsigned char *bytes = malloc(size);
        EXPECT(size, pread(file, bytes, size, segment ? 0 : 16384));
        EXPECT(1 + THREADS, check_sealed(bytes, size));
        free(bytes);
        close(file);
    }
    _exit(failures ? 1 : 0); /* with its idle threads */
}

/* ── A close between an append's two looks at the engine (A13) ── */

static cw_status close_answer, close_status;
static void *close_now(void *unused) {
    (void)unused;
    close_answer = cw_close(&stand_engine, 60000);
    return NULL;
}

static void *close_within(void *argument) {
    step_start(*(int *)argument, stand);
    close_status = cw_write(hazard_log, CW_LEVEL_INFO, "7 0000000 closing", 17);
    step_end();
    if (!stood) sem_post(&stands);
    return NULL;
}

/* A thread stands at each of its instructions in turn: before it is inside the call, close does not
 * wait for it; inside, close waits as long as it was told, as for a slow disk. */
static void case_close_steps(void) {
    int steps = 0;
    long held_ms = 100; /* longer once, at the first place inside */
    for (int n = 1; n < 2000; n += 3, steps++) {
        pthread_t thread, closing;
        stand_open(64u << 10);
        stood = 0;
        sem_init(&stands, 0, 0);
        sem_init(&goes_on, 0, 0);
        pthread_create(&thread, NULL, close_within, &n);
        while (sem_wait(&stands) != 0) continue;
        pthread_create(&closing, NULL, close_now, NULL);
        struct timespec later;
        clock_gettime(CLOCK_REALTIME, &later);
        later.tv_nsec += held_ms * 1000000;
        later.tv_sec += later.tv_nsec / 1000000000;
        later.tv_nsec %= 1000000000;
        int waits = pthread_timedjoin_np(closing, NULL, &later);
        sem_post(&goes_on);
        pthread_join(thread, NULL);
        if (waits == ETIMEDOUT) pthread_join(closing, NULL);
        EXPECT(CW_OK, close_answer);
        if (waits == ETIMEDOUT && close_status == CW_OK) {
            if (held_ms == 2000) break;
            held_ms = 2000;
            n -= 3;
            continue;
        }
        EXPECT(CW_E_CLOSED, close_status);
    }
    HOLDS(steps > 10);
    fprintf(stderr, "%d places\n", steps);
}

/* ── A lane's lock (R31, R32) ── */

static int unlocked_lanes;
static void look_at_lock(int directory, const char *from, const char *to) {
    if (!ends_with(to, ".lane")) return;
    int file = openat(directory, from, O_RDWR | O_CLOEXEC);
    if (file < 0) return;
    unlocked_lanes += flock(file, LOCK_EX | LOCK_NB) == 0;
    close(file);
}

/* It is locked before it has a name that others look for. */
static void case_locked_first(void) {
    cw_options options = defaults();
    at_rename = look_at_lock;
    unlocked_lanes = 0;
    cw_engine *engine = open_with(&options);
    put(logger_of(engine, "locked"), "first");
    EXPECT(0, unlocked_lanes);
    pid_t child = fork();
    if (child == 0) {
        failures = 0;
        put(logger_of(engine, "locked"), "child");
        EXPECT(0, unlocked_lanes);
        fflush(stdout);
        _exit(failures ? 1 : 0);
    }
    int how = 0;
    waitpid(child, &how, 0);
    EXPECT(0, how);
    EXPECT(CW_OK, cw_close(&engine, 60000));
}

/* One forked child lives on, one logs, one ends: the parent's lock stays. */
static void case_lock_forked(void) {
    cw_options options = defaults();
    cw_engine *engine = open_with(&options);
    cw_logger *log = logger_of(engine, "lock");
    put(log, "parent");
    char name[300];
    int file = open_in_lanes(".lane", name, sizeof name);
    HOLDS(file >= 0);
    for (int way = 0; way < 3; way++) {
        pid_t child = fork();
        if (child == 0) {
            if (way > 0) put(log, "child");
            if (way > 1) cw_close(&engine, 2000);
            _exit(flock(file, LOCK_EX | LOCK_NB) == 0);
        }
        int how = -1;
        waitpid(child, &how, 0);
        EXPECT(0, how);
        EXPECT(-1, flock(file, LOCK_EX | LOCK_NB));
    }
    close(file);
    EXPECT(CW_OK, cw_close(&engine, 60000));
}

/* Returns when only the engine's own lane is left. */
static void wait_until_adopted(cw_engine *engine) {
    cw_stats stats = {.struct_size = sizeof stats, .lanes = UINT32_MAX};
    for (int i = 0; i < 12000 && stats.lanes > 1; i++) {
        if (i > 0) usleep(5000);
        EXPECT(CW_OK, cw_stats_get(engine, &stats, sizeof stats));
    }
    HOLDS(stats.lanes <= 1);
}

/* ── A process whose close ran out of time, and that ends while it archives (A13) ── */

typedef struct {
    uint64_t compat;
    uint32_t is_closed;
    int is_locked;
} lane_state;

static lane_state state_of_lane(void) {
    lane_state found = {0, 2, 0};
    char name[300];
    int file = open_in_lanes(".lane", name, sizeof name);
    EXPECT(8, syscall(SYS_pread64, file, &found.compat, 8, 16)); /* FORMAT §3.1 */
    EXPECT(4, syscall(SYS_pread64, file, &found.is_closed, 4, 576));
    found.is_locked = flock(file, LOCK_SH | LOCK_NB) != 0;
    close(file);
    return found;
}

static _Atomic int is_archive_held;
static void hold_archive_and_tell(int directory, const char *from, const char *to) {
    is_archive_held |= ends_with(to, ".cwa");
    hold_archive(directory, from, to);
}

static void close_beside_archive(void) {
    cw_options options = defaults();
    cw_engine *engine = open_with(&options);
    cw_logger *log = logger_of(engine, "early");
    sem_init(&goes_on, 0, 0);
    at_rename = hold_archive_and_tell;
    for (uint64_t i = 0; i < 1000; i++) EXPECT(CW_OK, numbered(log, 0, i));
    EXPECT(CW_OK, cw_roll(engine));
    while (!is_archive_held) usleep(1000);
    for (uint64_t i = 1000; i < 2000; i++) EXPECT(CW_OK, numbered(log, 0, i));
    EXPECT(CW_E_TIMEOUT, cw_close(&engine, 100));
    EXPECT(CW_E_CLOSED, numbered(log, 0, 2000));
    lane_state lane = state_of_lane();
    EXPECT(1, lane.is_locked);
    EXPECT(2 * (lane.compat & 1), lane.is_closed); /* 0: where the lock is a descriptor's */
}

/* Close archives on a thread of its own, and waits for that until its time is over. */
static pthread_t closing;
static _Atomic int is_archive_on_closing;
static void hold_archive_elsewhere(int directory, const char *from, const char *to) {
    is_archive_on_closing |= ends_with(to, ".cwa") && pthread_equal(pthread_self(), closing);
    if (!is_archive_on_closing) hold_archive_and_tell(directory, from, to);
}

static void case_close_encrypted(void) {
    cw_options options = defaults();
    options.encrypt_to = AGE_RECIPIENT;
    cw_engine *engine = open_with(&options);
    for (uint64_t i = 0; i < 1000; i++) EXPECT(CW_OK, numbered(logger_of(engine, "c"), 0, i));
    sem_init(&goes_on, 0, 0);
    closing = pthread_self();
    at_rename = hold_archive_elsewhere;
    EXPECT(CW_E_TIMEOUT, cw_close(&engine, 100));
    EXPECT(0, is_archive_on_closing);
    for (int i = 0; i < 12000 && !is_archive_held && !is_archive_on_closing; i++) usleep(5000);
    EXPECT(1, is_archive_held);
    sem_post(&goes_on);
    char name[300];
    int file = open_in_lanes(".lane", name, sizeof name);
    for (int i = 0; i < 12000 && file >= 0; i++) {
        close(file);
        usleep(5000);
        file = open_in_lanes(".lane", name, sizeof name);
    }
    EXPECT(-1, file);
    at_rename = NULL;
}

static void case_close_early(void) {
    pid_t child = fork();
    if (child == 0) {
        alarm(120);
        close_beside_archive();
        fflush(stdout);
        _exit(failures ? 1 : 0);
    }
    int how = -1;
    waitpid(child, &how, 0);
    EXPECT(0, how);
    lane_state lane = state_of_lane();
    EXPECT(0, lane.is_locked);
    EXPECT(2 * (lane.compat & 1), lane.is_closed);
    cw_options options = defaults();
    for (int adopted = 0; adopted < 2; adopted++) {
        if (adopted) {
            cw_engine *engine = open_with(&options);
            wait_until_adopted(engine);
            EXPECT(CW_OK, cw_close(&engine, 60000));
        }
        tally t = {.unordered = WRITERS_MAX};
        read_logs(tally_each, &t);
        EXPECT(2000, t.count[0]);
        EXPECT(1999, t.last[0]);
        EXPECT(0, t.bad);
    }
}

/* ── What a gap record has told is not told again (A17) ── */

static void gap_writer(int told) {
    cw_options options = defaults();
    cw_engine *engine = open_with(&options);
    cw_logger *log = logger_of(engine, "gap");
    struct rlimit limit;
    getrlimit(RLIMIT_FSIZE, &limit);
    limit.rlim_cur = 60000;
    setrlimit(RLIMIT_FSIZE, &limit);
    uint64_t sent = 0, refused = 0;
    while (refused < 100 && sent < 2000000) {
        cw_status status = numbered(log, 0, sent++);
        refused += status == CW_E_FULL;
    }
    EXPECT(100, refused);
    lift_limit();
    alarm(120); /* whatever happens to the parent */
    uint64_t until = now_ns() + 20000000000u;
    while (numbered(log, 0, sent++) != CW_OK && now_ns() < until) refused++, usleep(10000);
    EXPECT(CW_OK, cw_roll(engine));
    EXPECT(CW_OK, cw_archive_wait(engine, ARCHIVE_WAIT_MS));
    put(log, "0 99999999 the last");
    uint64_t counts[2] = {refused, sent - refused + 1};
    fflush(stdout);
    if (failures || write(told, counts, sizeof counts) != sizeof counts) _exit(1);
    for (;;) pause();
}

static void case_gap_told_once(void) {
    int told[2];
    EXPECT(0, pipe(told));
    pid_t child = fork();
    if (child == 0) gap_writer(told[1]);
    close(told[1]);
    uint64_t counts[2] = {0, 0};
    EXPECT(sizeof counts, read(told[0], counts, sizeof counts));
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    for (int adopted = 0; adopted < 2; adopted++) {
        space_tally s = {0};
        read_with(NULL, space_each, &s);
        EXPECT(counts[0], s.missing);
        EXPECT(counts[1], s.logs);
        cw_options options = defaults();
        cw_engine *engine = open_with(&options);
        if (!adopted) wait_until_adopted(engine);
        EXPECT(CW_OK, cw_close(&engine, 60000));
    }
}

/* ── An archive goes when the names of what it covers are gone for good (R34) ── */

static _Atomic int names_gone, archives_gone, too_early;

static void note_name_gone(const char *path) {
    if (ends_with(path, ".sealed") || ends_with(path, ".seg") || ends_with(path, ".lane"))
        names_gone = 1;
    if (!ends_with(path, ".cwa")) return;
    archives_gone++;
    too_early += names_gone;
}
static void note_rename(int directory, const char *from, const char *to) {
    (void)directory;
    if (ends_with(from, ".sealed") && !ends_with(to, ".sealed")) names_gone = 1;
}
/* A limit does not delete an archive that another process holds (R38). */
static void case_archive_held(void) {
    cw_options options = defaults();
    options.archives_max = 1;
    cw_engine *engine = open_with(&options);
    cw_logger *log = logger_of(engine, "held");
    char path[4200], name[4500] = "";
    snprintf(path, sizeof path, "%s/archives", store);
    int file = -1;
    for (int round = 0; round < 12; round++) {
        put(log, "0 0");
        EXPECT(CW_OK, cw_roll(engine));
        EXPECT(CW_OK, cw_archive_wait(engine, ARCHIVE_WAIT_MS));
        DIR *archives = file < 0 ? opendir(path) : NULL;
        for (struct dirent *entry; archives && (entry = readdir(archives));) {
            if (entry->d_name[0] == '.' || !ends_with(entry->d_name, ".cwa")) continue;
            snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
            file = open(name, O_RDWR | O_CLOEXEC);
            struct flock all = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
            EXPECT(0, fcntl(file, F_OFD_SETLK, &all));
        }
        if (archives) closedir(archives);
    }
    HOLDS(file >= 0);
    EXPECT(0, access(name, R_OK));
    close(file);
    for (int round = 0; round < 12 && access(name, R_OK) == 0; round++) {
        put(log, "0 0");
        EXPECT(CW_OK, cw_roll(engine));
        EXPECT(CW_OK, cw_archive_wait(engine, ARCHIVE_WAIT_MS));
    }
    EXPECT(-1, access(name, R_OK));
    EXPECT(CW_OK, cw_close(&engine, 20000));
}

static void note_sync(int descriptor) {
    char link[64], path[4200];
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t length = readlink(link, path, sizeof path - 1);
    path[length < 0 ? 0 : length] = 0;
    if (ends_with(path, "/lanes")) names_gone = 0;
}

static void case_names_synced(void) {
    cw_options options = defaults();
    options.segment_bytes = 64u << 10;
    for (int dead = 0; dead < 3; dead++) { /* one with several segments, two short ones */
        pid_t child = fork();
        if (child == 0) {
            cw_engine *engine = open_with(&options);
            cw_logger *log = logger_of(engine, "dead");
            for (uint64_t i = 0; i < (dead ? 5 : 3000); i++) numbered(log, (unsigned)dead, i);
            _exit(failures ? 1 : 0);
        }
        waitpid(child, NULL, 0);
    }
    at_unlink = note_name_gone;
    at_rename = note_rename;
    at_fsync = note_sync;
    options.archives_max = 1;
    cw_engine *engine = open_with(&options);
    cw_logger *log = logger_of(engine, "names");
    for (uint64_t round = 0; round < 200 && (round < 40 || archives_gone < 20); round++) {
        for (uint64_t i = 0; i < 800; i++) EXPECT(CW_OK, numbered(log, 0, round * 800 + i));
        EXPECT(CW_OK, cw_roll(engine));
        EXPECT(CW_OK, cw_archive_wait(engine, ARCHIVE_WAIT_MS));
    }
    wait_until_adopted(engine); /* removes what the dead lanes left */
    EXPECT(CW_OK, cw_close(&engine, 20000));
    HOLDS(archives_gone >= 20);
    EXPECT(0, too_early);
}

static void *fill_last(void *log) {
    for (uint64_t i = 89900; i < 90000; i++) EXPECT(CW_OK, numbered(log, 0, i));
    return NULL;
}

static void case_fill(void) { /* what run.py damages */
    cw_options options = defaults();
    options.codec = CW_CODEC_NONE;
    cw_engine *engine = open_with(&options);
    cw_logger *log = logger_of(engine, "fill");
    for (uint64_t i = 0; i < 60000; i++) EXPECT(CW_OK, numbered(log, 0, i));
    EXPECT(CW_OK, cw_roll(engine));
    EXPECT(CW_OK, cw_archive_wait(engine, ARCHIVE_WAIT_MS));
    for (uint64_t i = 60000; i < 89900; i++) EXPECT(CW_OK, numbered(log, 0, i));
    /* Damage ends its chunk, and how large chunks are depends on time. The last records have one of
     * their own, behind all that is damaged. */
    pthread_t thread;
    EXPECT(0, pthread_create(&thread, NULL, fill_last, log));
    pthread_join(thread, NULL);
    fflush(stdout);
    _exit(failures ? 1 : 0); /* like a kill: the lane stays as it is */
}

static void case_damaged(void) { /* after run.py flipped bytes: everything else is read */
    tally t = {.unordered = WRITERS_MAX};
    read_logs(tally_each, &t);
    HOLDS(damaged > 0 || t.bad > 0);
    HOLDS(t.count[0] < 90000 || t.bad > 0); /* a changed text loses no record */
    HOLDS(t.count[0] > 45000);
    EXPECT(89999, t.last[0]);
    if (failures)
        printf("%llu records, %d damaged places\n", (unsigned long long)t.count[0], damaged);
}
