/* A host under remote control: reads commands from stdin, one per line, and answers each with one
 * line of numbers. harness.py drives it and keeps the model. The host counts what the engine
 * returned, so that it can be compared exactly with what is read back. Messages are "<thread>
 * <number>", padded with x. Ends by itself only at end of input: any other end is a failure. */
#define _GNU_SOURCE 1
#include <cordwood/cordwood.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

enum { THREADS_MAX = 128, TEXT_MAX = 65536, REMOVED_MAX = 65536 };

typedef struct {
    cw_logger *log;
    unsigned number; /* of the thread, in messages */
    uint64_t sent, kept, refused, other;
    uint64_t runs; /* of refusals in a row */
    int was_refused;
    uint64_t longest_ns; /* call */
    uint64_t until_ns;
    size_t bytes;
    uint64_t until_sent; /* or 0: by time */
} lane;

static cw_engine *engine;
static cw_logger *logger;
static lane lanes[THREADS_MAX];
static char store[4096];
static char *padding;

static uint64_t now_ns(void) { /* not the C library's: tests move that clock */
    struct timespec t;
    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t thread_ns(void) { /* processor time of this thread */
    struct timespec t;
    syscall(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static cw_status put_untimed(lane *l, size_t bytes) {
    char text[TEXT_MAX];
    int n = snprintf(text, 48, "%u %llu ", l->number, (unsigned long long)l->sent);
    if (bytes > (size_t)n) memcpy(text + n, padding, bytes - (size_t)n);
    else bytes = (size_t)n;
    cw_status status = cw_write(logger, CW_LEVEL_INFO, text, bytes);
    l->sent++;
    if (status == CW_E_FULL && !l->was_refused) l->runs++;
    l->was_refused = status == CW_E_FULL;
    if (status == CW_OK) l->kept++;
    else if (status == CW_E_FULL) l->refused++;
    else l->other++;
    return status;
}

static cw_status put(lane *l, size_t bytes) {
    uint64_t start = now_ns();
    cw_status status = put_untimed(l, bytes);
    uint64_t took = now_ns() - start;
    if (took > l->longest_ns) l->longest_ns = took;
    return status;
}

/* ── Removals that the callback reported ── */

static struct {
    char name[160];
    uint32_t reason;
} removed[REMOVED_MAX];
static atomic_uint removed_count;

static void on_removed(void *user, const char *archive, uint32_t reason) {
    (void)user;
    unsigned i = atomic_fetch_add(&removed_count, 1);
    if (i >= REMOVED_MAX) return;
    snprintf(removed[i].name, sizeof removed[i].name, "%s", archive);
    removed[i].reason = reason;
}

/* ── Commands ── */

static void do_open(char *words) {
    cw_options options;
    cw_options_init(&options, sizeof options);
    options.directory = store;
    options.archive_removed = on_removed;
    for (char *word = strtok(words, " "); word; word = strtok(NULL, " ")) {
        char *value = strchr(word, '=');
        if (!value) continue;
        *value++ = 0;
        unsigned long long number = strtoull(value, NULL, 10);
        if (!strcmp(word, "segment")) options.segment_bytes = number;
        if (!strcmp(word, "quota")) options.quota_bytes = number;
        if (!strcmp(word, "count")) options.archives_max = (uint32_t)number;
        if (!strcmp(word, "days")) options.expiration_days = (uint32_t)number;
        if (!strcmp(word, "age")) options.roll_age_s = (uint32_t)number;
        if (!strcmp(word, "overflow")) options.overflow = (uint32_t)number;
        if (!strcmp(word, "flags")) options.flags = (uint32_t)number;
        if (!strcmp(word, "codec")) options.codec = (uint32_t)number;
        if (!strcmp(word, "interval")) options.upload_interval_s = (uint32_t)number;
    }
    cw_status status = cw_open(&options, &engine);
    if (status == CW_OK) status = cw_logger_get(engine, "disk", &logger);
    printf("%d\n", status);
}

static void do_write(unsigned long long count, unsigned long long bytes) {
    lane *l = &lanes[0];
    uint64_t kept = l->kept, refused = l->refused, other = l->other;
    l->longest_ns = 0;
    uint64_t start = thread_ns();
    for (unsigned long long i = 0; i < count; i++) put_untimed(l, bytes);
    printf("%llu %llu %llu %llu %llu\n", (unsigned long long)(l->kept - kept),
           (unsigned long long)(l->refused - refused), (unsigned long long)(l->other - other),
           (unsigned long long)(thread_ns() - start), (unsigned long long)l->longest_ns);
}

/* Makes that many loggers with long names, which go into the lane's catalog. */
static void do_names(unsigned long long count) {
    int made = 0;
    for (unsigned long long i = 0; i < count; i++) {
        char name[80];
        cw_logger *one = NULL;
        snprintf(name, sizeof name, "a.name.that.fills.the.catalog.of.the.lane.%llu", i);
        made += cw_logger_get(engine, name, &one) == CW_OK;
    }
    printf("%d\n", made);
}

/* Writes until nothing was kept for that long: the disk is full to the last byte. */
static void do_fill(unsigned long long ms, unsigned long long bytes) {
    unsigned long long sent = 0;
    uint64_t start = now_ns(), last = start;
    while (now_ns() - last < ms * 1000000u && now_ns() - start < 60000000000u) {
        sent++;
        if (put(&lanes[0], bytes) == CW_OK) last = now_ns();
        else usleep(200);
    }
    printf("%llu %d\n", sent, lanes[0].was_refused);
}

/* Writes one record a millisecond until one is kept. Prints how long that took, in microseconds. */
static void do_resume(unsigned long long ms, unsigned long long bytes) {
    uint64_t start = now_ns();
    cw_status status = CW_E_FULL;
    while (now_ns() - start < ms * 1000000u) {
        status = put(&lanes[0], bytes);
        if (status == CW_OK) break;
        usleep(1000);
    }
    printf("%d %llu\n", status, (unsigned long long)(now_ns() - start) / 1000);
}

static atomic_int stops;

static void *run_lane(void *argument) {
    lane *l = argument;
    while (!atomic_load_explicit(&stops, memory_order_relaxed) &&
           (l->until_sent ? l->sent < l->until_sent : now_ns() < l->until_ns))
        put(l, l->bytes);
    return NULL;
}

static pthread_t runners[THREADS_MAX];
static unsigned running;

/* Threads 1 … count write until the time is over, or that many records, or until `stop`; `join`
 * waits for them. */
static void do_threads(unsigned count, unsigned long long ms, unsigned long long bytes,
                       unsigned long long records) {
    atomic_store(&stops, 0);
    for (unsigned i = 1; i <= count && i < THREADS_MAX; i++) {
        lanes[i].until_sent = records ? lanes[i].sent + records : 0;
        lanes[i].until_ns = now_ns() + ms * 1000000u;
        lanes[i].bytes = bytes;
        lanes[i].longest_ns = 0;
        if (pthread_create(&runners[i], NULL, run_lane, &lanes[i]) != 0) break;
        running = i;
    }
    printf("%u\n", running);
}

static void do_join(void) {
    uint64_t longest = 0;
    for (unsigned i = 1; i <= running; i++) {
        pthread_join(runners[i], NULL);
        if (lanes[i].longest_ns > longest) longest = lanes[i].longest_ns;
    }
    running = 0;
    printf("%llu\n", (unsigned long long)longest);
}

static void do_totals(void) {
    uint64_t sent = 0, kept = 0, refused = 0, other = 0, runs = 0;
    for (unsigned i = 0; i < THREADS_MAX; i++) {
        sent += lanes[i].sent;
        kept += lanes[i].kept;
        refused += lanes[i].refused;
        other += lanes[i].other;
        runs += lanes[i].runs;
    }
    cw_stats stats = {.struct_size = sizeof stats};
    cw_status status = engine ? cw_stats_get(engine, &stats, sizeof stats) : CW_E_CLOSED;
    printf("%llu %llu %llu %llu %d %llu %llu %llu %llu %llu %llu\n", (unsigned long long)sent,
           (unsigned long long)kept, (unsigned long long)refused, (unsigned long long)other, status,
           (unsigned long long)stats.records_dropped, (unsigned long long)stats.records_written,
           (unsigned long long)stats.archives_written, (unsigned long long)stats.archives_removed,
           (unsigned long long)stats.segments_sealed, (unsigned long long)runs);
}

/* Why the last call failed. */
static void do_words(void) {
    char text[2048];
    cw_last_error(text, sizeof text);
    printf("%s\n", text);
}

/* Refusals by cause, in the order of cw_stats. */
static void do_causes(void) {
    cw_stats stats = {.struct_size = sizeof stats};
    cw_stats_get(engine, &stats, sizeof stats);
    const uint64_t counts[] = {stats.dropped_disk_full,   stats.dropped_disk_quota,
                               stats.dropped_store_quota, stats.dropped_file_limit,
                               stats.dropped_descriptors, stats.dropped_memory,
                               stats.dropped_not_ready,   stats.dropped_permission,
                               stats.dropped_other};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        printf("%llu ", (unsigned long long)counts[i]);
    printf("\n");
}

/* The causes in the gap records, one after another; - if one names none. */
static void do_gaps(void) {
    cw_reader *reader = NULL;
    cw_status status = cw_reader_open(store, NULL, &reader);
    while (status == CW_OK) {
        cw_record_view view = {.struct_size = sizeof view};
        status = cw_reader_next(reader, &view);
        if (status != CW_OK || view.kind != CW_KIND_GAP) continue;
        const char *causes = "-";
        int length = 1;
        for (size_t i = 0; i < view.field_count; i++) {
            const cw_field *field = &view.fields[i];
            if (field->key.length != 10 || memcmp(field->key.data, "gap.causes", 10)) continue;
            causes = field->value.s.data;
            length = (int)field->value.s.length;
        }
        printf("%.*s,", length, causes);
    }
    cw_reader_close(&reader);
    printf("\n");
}

/* What the store holds: logs, gap records, the number they report as missing, records out of order
 * or twice, damaged places. A restarted thread's records continue where it stopped. */
static void do_read(void) {
    uint64_t logs = 0, gaps = 0, missing = 0, bad = 0, hurt = 0, next[THREADS_MAX] = {0};
    cw_reader *reader = NULL;
    cw_status status = cw_reader_open(store, NULL, &reader);
    while (status == CW_OK) {
        cw_record_view view = {.struct_size = sizeof view};
        cw_status got = cw_reader_next(reader, &view);
        if (got == CW_E_DAMAGED) {
            hurt++;
            continue;
        }
        if (got != CW_OK) {
            if (got != CW_END) status = got;
            break;
        }
        if (view.kind == CW_KIND_GAP) {
            gaps++;
            missing += view.field_count ? view.fields[0].value.u : 0;
        }
        if (view.kind != CW_KIND_LOG || view.logger.length != 4) continue;
        char text[64] = "";
        memcpy(text, view.message.data, view.message.length < 63 ? view.message.length : 63);
        unsigned thread;
        unsigned long long number;
        logs++;
        /* A cut in the middle of a record leaves zeros, which no checksum reveals while the segment
         * is open. */
        if (sscanf(text, "%u %llu", &thread, &number) != 2 || thread >= THREADS_MAX) hurt++;
        else if (number < next[thread]) bad++;
        else next[thread] = number + 1;
    }
    cw_reader_close(&reader);
    printf("%d %llu %llu %llu %llu %llu\n", status, (unsigned long long)logs,
           (unsigned long long)gaps, (unsigned long long)missing, (unsigned long long)bad,
           (unsigned long long)hurt);
}

/* Times as shown: the records earlier than their predecessor, the first and the last. */
static void do_times(void) {
    uint64_t count = 0, back = 0, first = 0, last = 0, number_back = 0, number_last = 0;
    cw_reader *reader = NULL;
    cw_status status = cw_reader_open(store, NULL, &reader);
    while (status == CW_OK) {
        cw_record_view view = {.struct_size = sizeof view};
        if (cw_reader_next(reader, &view) != CW_OK) break;
        if (view.kind != CW_KIND_LOG || view.logger.length != 4) continue;
        char text[64] = "";
        memcpy(text, view.message.data, view.message.length < 63 ? view.message.length : 63);
        unsigned thread;
        unsigned long long number = 0;
        sscanf(text, "%u %llu", &thread, &number);
        if (count == 0) first = view.time_ns;
        else if (view.time_ns < last) back++;
        if (count > 0 && number <= number_last) number_back++;
        number_last = number;
        last = view.time_ns;
        printf("%llu:%llu ", number, (unsigned long long)view.time_ns);
        count++;
    }
    cw_reader_close(&reader);
    printf("| %llu %llu %llu\n", (unsigned long long)count, (unsigned long long)back,
           (unsigned long long)number_back);
    (void)first;
}

static int eaten[65536];
static unsigned eaten_count;

static void do_eat(void) { /* every descriptor that the host may open */
    while (eaten_count < 65536) {
        int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
        if (fd < 0) break;
        eaten[eaten_count++] = fd;
    }
    printf("%u\n", eaten_count);
}

static void do_spew(void) {
    while (eaten_count > 0) close(eaten[--eaten_count]);
    printf("0\n");
}

static void do_limit(unsigned long long bytes) {
    struct rlimit limit;
    getrlimit(RLIMIT_FSIZE, &limit);
    limit.rlim_cur = bytes ? bytes : limit.rlim_max;
    printf("%d\n", setrlimit(RLIMIT_FSIZE, &limit));
}

static void do_memory(void) {
    unsigned long long anon = 0, file = 0, shmem = 0;
    char line[256];
    FILE *status = fopen("/proc/self/status", "r");
    while (status && fgets(line, sizeof line, status)) {
        sscanf(line, "RssAnon: %llu", &anon);
        sscanf(line, "RssFile: %llu", &file);
        sscanf(line, "RssShmem: %llu", &shmem);
    }
    if (status) fclose(status);
    printf("%llu %llu\n", anon, file + shmem);
}

static void do_removed(void) {
    unsigned count = atomic_load(&removed_count);
    for (unsigned i = 0; i < count && i < REMOVED_MAX; i++)
        printf("%s=%u ", removed[i].name, removed[i].reason);
    printf("\n");
}

/* A page of a cut file of the host's own: its handler sees the fault, ours passes it on. */
static sig_atomic_t host_faults;
static char *host_page;
static void on_host_fault(int number, siginfo_t *info, void *context) {
    (void)number, (void)context;
    if ((char *)info->si_addr != host_page) _exit(99);
    host_faults++;
    mmap(host_page, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
}
static void do_handler(void) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = on_host_fault;
    action.sa_flags = SA_SIGINFO;
    printf("%d\n", sigaction(SIGBUS, &action, NULL));
}
static void do_fault(const char *path) {
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (ftruncate(fd, 4096) != 0) _exit(98);
    host_page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    host_page[0] = 1;
    if (ftruncate(fd, 0) != 0) _exit(98);
    host_page[0] = 2;
    close(fd);
    printf("%d %d\n", (int)host_faults, host_page[0]);
}

/* A simulated processor counter: reading it traps (PR_SET_TSC) and returns two ticks per nanosecond
 * plus what `jump` added. Clocks must come from system calls (interpose.c), because the kernel's
 * vDSO page reads the counter, too. Prints 0 if that is possible. */
static volatile int64_t counter_offset;
#if defined(__x86_64__)
static uint64_t counter(void) { return now_ns() * 2 + (uint64_t)counter_offset; }
static void on_counter(int number, siginfo_t *info, void *context) {
    (void)number, (void)info;
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    const uint8_t *code = (const uint8_t *)registers[REG_RIP];
    int is_short = code[0] == 0x0F && code[1] == 0x31; /* rdtsc */
    if (!is_short && !(code[0] == 0x0F && code[1] == 0x01 && code[2] == 0xF9)) _exit(97);
    uint64_t ticks = counter();
    registers[REG_RAX] = (greg_t)(ticks & 0xFFFFFFFFu);
    registers[REG_RDX] = (greg_t)(ticks >> 32);
    if (!is_short) registers[REG_RCX] = 0;
    registers[REG_RIP] += is_short ? 2 : 3;
}
static void do_trap(void) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = on_counter;
    action.sa_flags = SA_SIGINFO | SA_NODEFER;
    sigaction(SIGSEGV, &action, NULL);
    printf("%d\n", prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0));
}
/* To zero, as after a reset, or by that many ticks. */
static void do_jump(const char *ticks) {
    if (!strcmp(ticks, "zero")) counter_offset = -(int64_t)(now_ns() * 2);
    else counter_offset += strtoll(ticks, NULL, 10);
    printf("%llu\n", (unsigned long long)counter());
}
#else
static void do_trap(void) { printf("-1\n"); }
static void do_jump(const char *ticks) { printf("%s\n", ticks); }
#endif

int main(int argc, char **argv) {
    if (argc != 2) return 2;
    snprintf(store, sizeof store, "%s", argv[1]);
    setvbuf(stdout, NULL, _IOLBF, 0);
    padding = malloc(TEXT_MAX);
    memset(padding, 'x', TEXT_MAX);
    for (unsigned i = 0; i < THREADS_MAX; i++) lanes[i].number = i;
    char line[8192];
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = 0;
        char word[32] = "";
        unsigned long long a = 0, b = 0, c = 0;
        sscanf(line, "%31s %llu %llu %llu", word, &a, &b, &c);
        char *rest = line + strlen(word);
        if (*rest == ' ') rest++;
        if (!strcmp(word, "open")) do_open(rest);
        else if (!strcmp(word, "write")) do_write(a, b);
        else if (!strcmp(word, "names")) do_names(a);
        else if (!strcmp(word, "fill")) do_fill(a, b);
        else if (!strcmp(word, "resume")) do_resume(a, b);
        else if (!strcmp(word, "threads")) do_threads((unsigned)a, b, c, 0);
        else if (!strcmp(word, "each")) do_threads((unsigned)a, 0, c, b);
        else if (!strcmp(word, "join")) do_join();
        else if (!strcmp(word, "stop")) atomic_store(&stops, 1), do_join();
        else if (!strcmp(word, "totals")) do_totals();
        else if (!strcmp(word, "read")) do_read();
        else if (!strcmp(word, "words")) do_words();
        else if (!strcmp(word, "causes")) do_causes();
        else if (!strcmp(word, "gaps")) do_gaps();
        else if (!strcmp(word, "times")) do_times();
        else if (!strcmp(word, "eat")) do_eat();
        else if (!strcmp(word, "spew")) do_spew();
        else if (!strcmp(word, "limit")) do_limit(a);
        else if (!strcmp(word, "memory")) do_memory();
        else if (!strcmp(word, "removed")) do_removed();
        else if (!strcmp(word, "handler")) do_handler();
        else if (!strcmp(word, "fault")) do_fault(rest);
        else if (!strcmp(word, "trap")) do_trap();
        else if (!strcmp(word, "jump")) do_jump(rest);
        else if (!strcmp(word, "roll")) printf("%d\n", cw_roll(engine));
        else if (!strcmp(word, "wait")) printf("%d\n", cw_archive_wait(engine, (uint32_t)a));
        else if (!strcmp(word, "flush"))
            printf("%d\n", cw_flush(engine, CW_DURABLE_MACHINE, (uint32_t)a));
        else if (!strcmp(word, "close")) printf("%d\n", cw_close(&engine, (uint32_t)a));
        else printf("? %s\n", word);
    }
    return 0;
}
