/* A host that has hardly any memory left: it logs, rolls and archives under a limit on its address
 * space or its data. */
#include "host.h"
#include "../TestSupport/refuse.h"

#include <cordwood/upload.h>

/* Of /proc/self/status, in bytes. */
static uint64_t status_of(const char *name) {
    static char text[8192];
    int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
    ssize_t size = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (size <= 0) exit(2);
    close(fd);
    text[size] = 0;
    const char *at = strstr(text, name);
    if (!at) exit(2);
    return strtoull(at + strlen(name), NULL, 10) << 10;
}

static int resource;

/* So much more than this process has now; UINT64_MAX: without a limit. */
static void limit_set(uint64_t bytes) {
    struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};
    uint64_t used = status_of(resource == RLIMIT_AS ? "VmSize:" : "VmData:");
    if (bytes != UINT64_MAX) limit.rlim_cur = used + bytes;
    if (setrlimit(resource, &limit) != 0) exit(2);
}

/* A writer beside the host's first thread. */
typedef struct {
    cw_logger *log;
    uint32_t index;
    int stops;
} writer;

static void *write_on(void *argument) {
    writer *w = argument;
    while (!__atomic_load_n(&w->stops, __ATOMIC_ACQUIRE)) {
        for (int i = 0; i < 500; i++) (void)write_next(w->log, w->index);
        pause_us(1000);
    }
    return NULL;
}

/* as|data before|after KIB MS [sends]: under a limit of so much more than it had before or after it
 * opened the store, it logs and rolls for so long. Later, without a limit, all is as usual. sends:
 * it also uploads to CORDWOOD_TARGET, and keeps two archives at most. */
static void limited(int argc, char **argv) {
    if (argc < 4) exit(2);
    resource = strcmp(argv[0], "as") == 0 ? RLIMIT_AS : RLIMIT_DATA;
    uint64_t bytes = strtoull(argv[2], NULL, 10) << 10, ms = strtoull(argv[3], NULL, 10);
    cw_options options = options_of(store_path);
    options.segment_bytes = 256 << 10;
    options.quota_bytes = 0;
    bool sends = argc > 4;
    if (sends) options.archives_max = 2, options.upload_interval_s = 1;
    cw_engine *engine = NULL;
    bool opens_later = strcmp(argv[1], "before") == 0;
    if (opens_later) limit_set(bytes);
    cw_status opened = cw_open(&options, &engine);
    if (opened != CW_OK) {
        HOLDS(opens_later);
        EXPECT(CW_E_MEMORY, opened);
        limit_set(UINT64_MAX);
        engine = open_with(&options);
        limit_set(bytes);
    }
    cw_logger *log = logger_of(engine, "memory");
    writer other = {log, slot_take(), 0};
    uint32_t index = slot_take();
    for (int i = 0; i < 3000; i++) (void)write_next(log, index);
    pthread_t thread;
    bool is_beside = pthread_create(&thread, NULL, write_on, &other) == 0;
    if (!opens_later) limit_set(bytes);
    uint64_t end = now_ns() + ms * 1000000;
    while (now_ns() < end) {
        for (int i = 0; i < 5000; i++) (void)write_next(log, index);
        (void)cw_roll(engine);
        (void)cw_archive_wait(engine, 20);
        (void)cw_flush(engine, CW_DURABLE_MACHINE, 100);
        if (sends) (void)cw_upload(engine, 100, NULL, 0);
    }
    cw_stats stats = {.struct_size = sizeof stats};
    EXPECT(CW_OK, cw_stats_get(engine, &stats, sizeof stats));
    uint64_t archives = stats.archives_written;
    __atomic_store_n(&other.stops, 1, __ATOMIC_RELEASE);
    if (is_beside) pthread_join(thread, NULL);
    limit_set(UINT64_MAX);
    /* For a tenth of a second after a refusal, nobody asks the system again. */
    pause_us(200000);
    for (int i = 0; i < 1000; i++) EXPECT(CW_OK, write_next(log, index));
    EXPECT(CW_OK, cw_roll(engine));
    EXPECT(CW_OK, cw_archive_wait(engine, 120000)); /* it is nicer than others */
    EXPECT(CW_OK, cw_flush(engine, CW_DURABLE_MACHINE, 20000));
    if (sends) {
        cw_status sent = cw_upload(engine, 120000, NULL, 0);
        HOLDS(sent == CW_OK || sent == CW_END);
    }
    EXPECT(CW_OK, cw_stats_get(engine, &stats, sizeof stats));
    uint64_t refused = ledger[index].refused + ledger[other.index].refused;
    EXPECT(refused, stats.records_dropped);
    HOLDS(stats.archives_written > 0);
    EXPECT(CW_OK, cw_close(&engine, 20000));
    printf("%s %llu %llu %llu\n", cw_status_name(opened), (unsigned long long)refused,
           (unsigned long long)archives, (unsigned long long)stats.archives_written);
}

/* URL: bodies for OTLP take more than there is; a run does not begin then. */
static void bodies(int argc, char **argv) {
    if (argc < 1) exit(2);
    cw_options options = options_of(store_path);
    options.upload_interval_s = 3600;
    cw_engine *engine = open_with(&options);
    cw_target_options target;
    cw_target_options_init(&target, sizeof target);
    target.kind = "otlp";
    target.url = argv[0];
    EXPECT(CW_OK, cw_target_add(engine, &target, NULL));
    cw_logger *log = logger_of(engine, "memory");
    uint32_t index = slot_take();
    write_many(log, index, 100);
    EXPECT(CW_OK, cw_roll(engine));
    EXPECT(CW_OK, cw_archive_wait(engine, 20000));
    resource = RLIMIT_DATA;
    limit_set(40 << 20);
    EXPECT(CW_E_MEMORY, cw_upload(engine, 20000, NULL, 0));
    limit_set(UINT64_MAX);
    cw_upload_result result = {.struct_size = sizeof result};
    EXPECT(CW_OK, cw_upload(engine, 20000, &result, sizeof result));
    EXPECT(CW_OK, cw_close(&engine, 20000));
}

/* It may start no thread, and has no room for the jobs of the one that would stand in. Logs until
 * stdin ends. */
static void errand(int argc, char **argv) {
    (void)argc, (void)argv;
    cw_logger *log;
    cw_engine *engine = open_small(64 << 10, "memory", &log);
    uint32_t index = slot_take();
    write_many(log, index, 100);
    EXPECT(CW_OK, cw_roll(engine));
    EXPECT(CW_OK, cw_archive_wait(engine, 20000));
    resource = RLIMIT_AS;
    limit_set(8 << 20);
    if (!refuse(SECCOMP_RET_ERRNO | EAGAIN, SECCOMP_FILTER_FLAG_TSYNC, SYS_clone3, SYS_clone))
        exit(3);
    if (fcntl(0, F_SETFL, O_NONBLOCK) != 0) exit(2);
    printf("ready\n");
    char end;
    while (read(0, &end, 1) != 0) {
        (void)write_next(log, index);
        pause_us(1000);
    }
    limit_set(UINT64_MAX);
    EXPECT(CW_OK, cw_close(&engine, 20000));
}

static const test_case cases[] = {
    {"limited", limited}, {"errand", errand}, {"bodies", bodies}};
MAIN(cases)
