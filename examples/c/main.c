/* A C host of Cordwood: logs every line of a file as one record, from several threads.
 *
 *   main STORE INPUT_FILE [--threads N] [--repeat R] [--kept FILE] [--pause-us N] [--progress]
 *
 * Lines are dealt to the threads like cards. --kept names a file, mapped shared, of one u64 per
 * thread: how many of its lines the thread has kept. It is raised after each call that returned
 * CW_OK, so that after `kill -9` it says which records must be in the store. --pause-us is how long
 * a thread waits after each line, as if it had other work to do.
 * Build: cc -std=c11 -I include examples/c/main.c -L build/lib -lcordwood -lpthread
 */
#define _GNU_SOURCE
#include <cordwood/cordwood.h>

#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { THREADS_MAX = 256, FIELD_EVERY = 4 };

typedef struct line {
    const char *text;
    size_t length;
} line;

typedef struct arguments {
    const char *store;
    const char *input;
    const char *kept;
    size_t threads;
    size_t repeat;
    long pause_us;
    bool progress;
} arguments;

typedef struct job { /* what one thread writes */
    cw_logger *log;
    const line *lines;
    size_t line_count;
    size_t first;
    size_t step;
    size_t repeat;
    long pause_us;
    _Atomic uint64_t *kept;
    cw_status status;
} job;

static void fail(const char *what, const char *why) {
    fprintf(stderr, "%s: %s\n", what, why);
    exit(1);
}

static void check(cw_status status, const char *what) {
    if (status < CW_OK) {
        char why[512] = "";
        cw_last_error(why, sizeof why);
        fprintf(stderr, "%s: %s: %s\n", what, cw_status_name(status), why);
        exit(1);
    }
}

static arguments parse(int count, char **words) {
    arguments given = {.threads = 4, .repeat = 1};
    if (count < 3) {
        fail("usage", "STORE INPUT_FILE [--threads N] [--repeat R] [--kept FILE] [--pause-us N] "
                      "[--progress]");
    }
    given.store = words[1];
    given.input = words[2];
    for (int i = 3; i < count; i++) {
        const char *next = i + 1 < count ? words[i + 1] : "";
        if (strcmp(words[i], "--progress") == 0) {
            given.progress = true;
            continue;
        }
        if (strcmp(words[i], "--threads") == 0) {
            given.threads = strtoull(next, NULL, 10);
        } else if (strcmp(words[i], "--repeat") == 0) {
            given.repeat = strtoull(next, NULL, 10);
        } else if (strcmp(words[i], "--pause-us") == 0) {
            given.pause_us = strtol(next, NULL, 10);
        } else if (strcmp(words[i], "--kept") == 0) {
            given.kept = next;
        } else {
            fail(words[i], "not known");
        }
        i++;
    }
    if (given.threads < 1 || given.threads > THREADS_MAX) {
        fail("--threads", "1 to 256");
    }
    if (given.pause_us < 0 || given.pause_us > 999999) {
        fail("--pause-us", "0 to 999999");
    }
    return given;
}

/* The whole file, mapped; an empty one is "". */
static line map_input(const char *path) {
    struct stat info;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0 || fstat(file, &info) != 0) {
        fail(path, "cannot be read");
    }
    size_t size = (size_t)info.st_size;
    void *bytes = size == 0 ? NULL : mmap(NULL, size, PROT_READ, MAP_PRIVATE, file, 0);
    if (bytes == MAP_FAILED) {
        fail(path, "cannot be mapped");
    }
    close(file);
    return (line){size == 0 ? "" : bytes, size};
}

/* Lines without their newline; every other byte stays as it is. */
static line *split(line whole, size_t *count) {
    size_t room = 1024;
    line *lines = malloc(room * sizeof *lines);
    const char *at = whole.text, *end = whole.text + whole.length;
    *count = 0;
    while (lines != NULL && at < end) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        const char *stop = newline != NULL ? newline : end;
        if (*count == room) {
            room *= 2;
            lines = realloc(lines, room * sizeof *lines);
            if (lines == NULL) {
                break;
            }
        }
        lines[(*count)++] = (line){at, (size_t)(stop - at)};
        at = stop + 1;
    }
    if (lines == NULL) {
        fail("memory", "ran out");
    }
    return lines;
}

/* One counter per thread, in the file if one is named: the kernel keeps it if we are killed. */
static _Atomic uint64_t *map_counters(const char *path, size_t threads) {
    size_t size = threads * sizeof(uint64_t);
    int flags = MAP_SHARED | (path == NULL ? MAP_ANONYMOUS : 0);
    int file = -1;
    if (path != NULL) {
        file = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        if (file < 0 || ftruncate(file, (off_t)size) != 0) {
            fail(path, "cannot be made");
        }
    }
    void *counters = mmap(NULL, size, PROT_READ | PROT_WRITE, flags, file, 0);
    if (counters == MAP_FAILED) {
        fail("--kept", "cannot be mapped");
    }
    if (file >= 0) {
        close(file);
    }
    return counters;
}

static cw_status write_with_field(cw_logger *log, line text, size_t number) {
    cw_field field = {.key = {"line", 4}, .type = CW_TYPE_INT, .value.i = (int64_t)number};
    cw_record record = {
        .struct_size = sizeof record,
        .level = CW_LEVEL_INFO,
        .message = {text.text, text.length},
        .fields = &field,
        .field_count = 1,
    };
    return cw_write_record(log, &record);
}

static cw_status write_line(cw_logger *log, line text, size_t number) {
    return number % FIELD_EVERY == 0 ? write_with_field(log, text, number)
                                     : cw_write(log, CW_LEVEL_INFO, text.text, text.length);
}

static void *run(void *argument) {
    job *mine = argument;
    struct timespec pause = {0, mine->pause_us * 1000};
    uint64_t kept = 0;
    for (size_t round = 0; round < mine->repeat; round++) {
        for (size_t i = mine->first; i < mine->line_count; i += mine->step) {
            mine->status = write_line(mine->log, mine->lines[i], i + 1);
            if (mine->status != CW_OK) {
                return NULL; /* refused: not counted, so that the count stays a prefix */
            }
            kept++;
            /* A plain store: this thread alone writes its counter. */
            atomic_store_explicit(mine->kept, kept, memory_order_relaxed);
            if (mine->pause_us > 0) {
                nanosleep(&pause, NULL);
            }
        }
    }
    return NULL;
}

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static uint64_t sum(_Atomic uint64_t *counters, size_t count) {
    uint64_t total = 0;
    for (size_t i = 0; i < count; i++) {
        total += atomic_load_explicit(&counters[i], memory_order_relaxed);
    }
    return total;
}

/* Starts the threads and waits for them; returns the first bad status, or CW_OK. */
static cw_status run_all(job *jobs, size_t count, const arguments *given, uint64_t expected) {
    pthread_t threads[THREADS_MAX];
    _Atomic uint64_t *kept = jobs[0].kept;
    for (size_t i = 0; i < count; i++) {
        if (pthread_create(&threads[i], NULL, run, &jobs[i]) != 0) {
            fail("thread", "cannot be started");
        }
    }
    cw_status status = CW_OK;
    for (size_t i = 0; i < count; i++) {
        struct timespec tick;
        clock_gettime(CLOCK_REALTIME, &tick);
        tick.tv_sec += 1;
        while (given->progress && pthread_timedjoin_np(threads[i], NULL, &tick) != 0) {
            fprintf(stderr, "\r%" PRIu64 " of %" PRIu64, sum(kept, count), expected);
            tick.tv_sec += 1;
        }
        if (!given->progress) {
            pthread_join(threads[i], NULL);
        }
        status = status != CW_OK ? status : jobs[i].status;
    }
    return status;
}

int main(int count, char **words) {
    arguments given = parse(count, words);
    size_t line_count = 0;
    line *lines = split(map_input(given.input), &line_count);
    _Atomic uint64_t *kept = map_counters(given.kept, given.threads);

    cw_options options;
    cw_options_init(&options, sizeof options);
    options.directory = given.store;
    cw_engine *engine = NULL;
    cw_logger *log = NULL;
    check(cw_open(&options, &engine), "open");
    check(cw_logger_get(engine, "demo.c", &log), "logger");

    static job jobs[THREADS_MAX];
    for (size_t i = 0; i < given.threads; i++) {
        jobs[i] = (job){.log = log, .lines = lines, .line_count = line_count, .first = i,
                        .step = given.threads, .repeat = given.repeat,
                        .pause_us = given.pause_us, .kept = &kept[i]};
    }
    uint64_t begin_ns = now_ns();
    cw_status status = run_all(jobs, given.threads, &given, line_count * given.repeat);
    uint64_t elapsed_ns = now_ns() - begin_ns;
    check(status, "write");
    check(cw_close(&engine, 5000), "close");

    /* The time of one call, as its thread sees it. */
    uint64_t total = sum(kept, given.threads);
    double per_record = total == 0 ? 0 : (double)elapsed_ns * (double)given.threads / (double)total;
    printf("{\"host\":\"c\",\"kept\":%" PRIu64 ",\"ns_per_record\":%.1f}\n", total, per_record);
    free(lines);
    return 0;
}
