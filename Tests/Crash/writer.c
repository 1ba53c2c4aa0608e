/* Writes at full rate from eight threads until it is killed. What each thread was told is kept
 * stands in a shared mapping, which outlives the process.
 *     writer STORE KEPT_FILE SEGMENT_BYTES SEED [written]
 * Odd threads write by CW_INFO, even ones by cw_write.
 * written: on a kernel without fallocate(2), so that the engine maps nothing and writes all.
 * crash.py makes the same messages from thread and number and compares. */
#include <cordwood/cordwood.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { THREADS = 8, LONGEST = 3000 };

static cw_logger *logger;
static uint64_t *kept;
static uint64_t seed;
static char letters[LONGEST + 26];

static size_t filler_length(uint64_t thread, uint64_t number) {
    if (number % 997 == 996) return LONGEST;
    return 20 + (number * 7919 + thread * 104729 + seed) % 180;
}

/* With the smallest segments a disk that stalls for two seconds is told to the caller as full. What
 * was refused is not kept: this thread ends, the others go on. */
static void *refused(const char *why) {
    fprintf(stderr, "writer: a thread ends: %s\n", why);
    return NULL;
}

static void *run(void *argument) {
    uint64_t thread = (uint64_t)(uintptr_t)argument;
    char message[LONGEST + 64];
    for (uint64_t number = 0;; number++) {
        size_t filler = filler_length(thread, number);
        if (thread % 2) { /* the same text, made when it is read */
            CW_INFO(logger, "t%llu n%llu %.*s", (unsigned long long)thread,
                    (unsigned long long)number, (int)filler, letters + number % 26);
            char why[256];
            if (cw_last_error(why, sizeof why) > 0) return refused(why);
            __atomic_store_n(&kept[thread * 8], number + 1, __ATOMIC_RELEASE);
            continue;
        }
        int head = snprintf(message, sizeof message, "t%llu n%llu ", (unsigned long long)thread,
                            (unsigned long long)number);
        memcpy(message + head, letters + number % 26, filler);
        cw_status status = cw_write(logger, CW_LEVEL_INFO, message, (size_t)head + filler);
        if (status == CW_E_FULL) return refused(cw_status_name(status));
        if (status != CW_OK) {
            fprintf(stderr, "writer: %s\n", cw_status_name(status));
            exit(1);
        }
        __atomic_store_n(&kept[thread * 8], number + 1, __ATOMIC_RELEASE);
    }
    return NULL;
}

static int without_fallocate(void) {
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fallocate, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EOPNOTSUPP),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0;
}

int main(int argc, char **argv) {
    if (argc < 5) return 2;
    if (argc == 6 && !without_fallocate()) return 3;
    seed = strtoull(argv[4], NULL, 10);
    for (size_t i = 0; i < sizeof letters; i++) letters[i] = (char)('a' + i % 26);
    int file = open(argv[2], O_RDWR | O_CREAT, 0600);
    if (file < 0 || ftruncate(file, 4096) != 0) return 1;
    kept = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (kept == MAP_FAILED) return 1;

    cw_options options;
    cw_options_init(&options, sizeof options);
    options.directory = argv[1];
    options.segment_bytes = strtoull(argv[3], NULL, 10);
    cw_engine *engine;
    if (cw_open(&options, &engine) != CW_OK || cw_logger_get(engine, "crash", &logger) != CW_OK) {
        char why[512];
        cw_last_error(why, sizeof why);
        fprintf(stderr, "writer: %s\n", why);
        return 1;
    }
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, run, (void *)i) != 0) return 1;
    pthread_join(threads[0], NULL);
    return 0;
}
