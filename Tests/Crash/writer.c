/* Writes at full rate from eight threads until it is killed, or dies by itself. A shared mapping,
 * which outlives the process, counts the records each thread was told are kept.
 *     writer STORE KEPT_FILE SEGMENT_BYTES SEED [written | HOW RECORDS]
 * Odd threads write by CW_INFO, even ones by cw_write. The code in the header appends three in four
 * of CW_INFO's records, the library the fourth: "%.*s" is never inlined.
 * written: on a kernel without fallocate(2), so that the engine maps nothing and writes everything.
 * HOW: main dies in this way (deaths.h) when RECORDS records are kept; return: by leaving main;
 * last: main ends its thread, then every other thread ends. */
#include "../TestSupport/refuse.h"
#include "crash.h"
#include "deaths.h"

#include <cordwood/cordwood.h>
#include <errno.h>
#include <stddef.h>
#include <sys/syscall.h>

/* A host that lives on past that many records per thread slows down, or its store would be full
 * before it is checked. */
enum { FULL_RATE_MOST = 200000 };

static cw_logger *logger;
static uint64_t *kept;
static uint64_t seed;
static uint64_t each_most = UINT64_MAX; /* records per thread */

/* With the smallest segments a disk that stalls for two seconds is reported as full. A refused
 * record is not kept: this thread ends, the others go on. */
static void *refused(const char *why) {
    fprintf(stderr, "writer: a thread ends: %s\n", why);
    return NULL;
}

static void *run(void *argument) {
    uint64_t thread = (uint64_t)(uintptr_t)argument;
    char message[MESSAGE_MAX];
    for (uint64_t number = 0; number < each_most; number++) {
        if (number > FULL_RATE_MOST) usleep(1000);
        if (thread % 2) { /* the same text, formatted when it is read */
            make_filler(message, seed, thread, number);
            if (number % 4 == 3)
                CW_INFO(logger, "t%llu n%llu %.*s", (unsigned long long)thread,
                        (unsigned long long)number, LONGEST, message);
            else
                CW_INFO(logger, "t%llu n%llu %s", (unsigned long long)thread,
                        (unsigned long long)number, message);
            char why[256];
            if (cw_last_error(why, sizeof why) > 0) return refused(why);
            note_kept(kept, thread, number + 1);
            continue;
        }
        size_t length = make_message(message, seed, thread, number);
        cw_status status = cw_write(logger, CW_LEVEL_INFO, message, length);
        if (status == CW_E_FULL) return refused(cw_status_name(status));
        if (status != CW_OK) {
            fprintf(stderr, "writer: %s\n", cw_status_name(status));
            exit(1);
        }
        note_kept(kept, thread, number + 1);
    }
    return NULL;
}

int main(int argc, char **argv) {
    if (argc < 5) return 2;
    if (argc == 6 && !refuse(SECCOMP_RET_ERRNO | EOPNOTSUPP, 0, SYS_fallocate, SYS_fallocate))
        return 3;
    const char *how = argc == 7 ? argv[5] : "";
    uint64_t records = argc == 7 ? strtoull(argv[6], NULL, 10) : 0;
    seed = strtoull(argv[4], NULL, 10);
    fill_letters();
    kept = map_kept(argv[2]);
    if (kept == NULL) return 1;
    if (strcmp(how, "last") == 0) each_most = records / THREADS;

    cw_options options;
    cw_options_init(&options, sizeof options);
    options.directory = argv[1];
    options.segment_bytes = strtoull(argv[3], NULL, 10);
    static cw_engine *engine;
    if (cw_open(&options, &engine) != CW_OK || cw_logger_get(engine, "crash", &logger) != CW_OK) {
        char why[512];
        cw_last_error(why, sizeof why);
        fprintf(stderr, "writer: %s\n", why);
        return 1;
    }
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, run, (void *)i) != 0) return 1;
    if (strcmp(how, "last") == 0) pthread_exit(NULL);
    if (*how) {
        if (!wait_until_kept(kept, records)) return 4;
        die(how);
        return 3; /* "return" */
    }
    pthread_join(threads[0], NULL);
    return 0;
}
