/* Stands between libcordwood and the C library (LD_PRELOAD): makes system calls fail or take long,
 * and moves the clocks, as the words of a shared file say. harness.py writes them while the host
 * runs. Affects only calls on the store, so that the host and the test live on. All threads. */
#define _GNU_SOURCE 1
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "../TestSupport/system_call.h"

/* One word each, in the order of these names. harness.py repeats them. */
enum { OPEN, WRITE, SYNC, RENAME, ALLOCATE, UNLINK, TRUNCATE, CALLS };
typedef struct {
    int32_t error[8];      /* errno that such a call returns; 0: it is made */
    int32_t delay_ms[8];   /* delay before that */
    uint64_t count[8];     /* calls on the store so far */
    int64_t realtime_ns;   /* added to the clocks */
    int64_t boottime_ns;
    int64_t file_system; /* 0, or what every file system says it is */
    int32_t system_clock;  /* 1: the kernel does not trust the processor's counter */
    int32_t pad;
    uint64_t passes; /* of its supply thread, which sleeps after each */
    char only[2][24]; /* not empty: only calls on paths with one of these in them fail or wait,
                         opens to read too, which otherwise never do */
    int64_t monotonic_ns; /* as realtime_ns; a wait that has a deadline does not end earlier */
} words_t;

static words_t none;
static volatile words_t *words = &none;
static char store[4096];

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("DISK_WORDS");
    const char *directory = getenv("DISK_STORE");
    if (!path || !directory) return;
    snprintf(store, sizeof store, "%s", directory);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0) return;
    void *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory != MAP_FAILED) words = memory;
    close(fd);
}

static int is_ours_path(const char *path) {
    if (!store[0] || strncmp(path, store, strlen(store)) != 0) return 0;
    int is_any = 1;
    for (int i = 0; i < 2; i++) {
        char part[24];
        for (int k = 0; k < 24; k++) part[k] = words->only[i][k];
        part[23] = 0;
        if (!part[0]) continue;
        if (strstr(path + strlen(store), part)) return 1;
        is_any = 0;
    }
    return is_any;
}

/* A name below an open directory, or the open file itself. */
static int is_ours_at(int fd, const char *name) {
    char link[64], path[4096];
    if (fd == AT_FDCWD || name[0] == '/') return is_ours_path(name);
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof path - 1);
    if (n <= 0) return 0;
    snprintf(path + n, sizeof path - (size_t)n, "%s%s", name[0] ? "/" : "", name);
    return is_ours_path(path);
}

static int is_ours(int fd) { return is_ours_at(fd, ""); }

/* -1, with errno: the call is not made. */
static int meets(int call) {
    __atomic_fetch_add(&words->count[call], 1, __ATOMIC_RELAXED);
    int delay = words->delay_ms[call];
    struct timespec pause = {delay / 1000, (long)(delay % 1000) * 1000000};
    if (delay > 0) nanosleep(&pause, NULL);
    int error = words->error[call];
    if (error == 0) return 0;
    errno = error;
    return -1;
}

#define REAL(name, type) ((type)dlsym(RTLD_NEXT, name))

ssize_t pwrite(int fd, const void *bytes, size_t count, off_t offset) {
    if (is_ours(fd) && meets(WRITE)) return -1;
    return syscall(SYS_pwrite64, fd, bytes, count, offset);
}
ssize_t write(int fd, const void *bytes, size_t count) {
    if (fd > 2 && is_ours(fd) && meets(WRITE)) return -1;
    return syscall(SYS_write, fd, bytes, count);
}
ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t offset) {
    if (is_ours(fd) && meets(WRITE)) return -1;
    return syscall(SYS_pwritev, fd, parts, count, offset, 0);
}
int fsync(int fd) {
    if (is_ours(fd) && meets(SYNC)) return -1;
    return (int)syscall(SYS_fsync, fd);
}
int fdatasync(int fd) {
    if (is_ours(fd) && meets(SYNC)) return -1;
    return (int)syscall(SYS_fdatasync, fd);
}
int renameat(int from_fd, const char *from, int to_fd, const char *to) {
    if (is_ours_at(from_fd, from) && meets(RENAME)) return -1;
    return (int)syscall(SYS_renameat, from_fd, from, to_fd, to);
}
int unlinkat(int fd, const char *path, int flags) {
    if (is_ours_at(fd, path) && meets(UNLINK)) return -1;
    return (int)syscall(SYS_unlinkat, fd, path, flags);
}
int ftruncate(int fd, off_t length) {
    if (is_ours(fd) && meets(TRUNCATE)) return -1;
    return (int)syscall(SYS_ftruncate, fd, length);
}

static int untrusted(void) { /* a file that names another clock source */
    int fd = (int)syscall(SYS_memfd_create, "clock", 1u);
    if (fd >= 0 && syscall(SYS_write, fd, "hpet\n", 5) == 5) lseek(fd, 0, SEEK_SET);
    return fd;
}

int open(const char *path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    int mode = va_arg(rest, int);
    va_end(rest);
    if (words->system_clock && strstr(path, "/current_clocksource")) return untrusted();
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}
int openat(int fd, const char *path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    int mode = va_arg(rest, int);
    va_end(rest);
    int is_met = flags & (O_WRONLY | O_RDWR | O_CREAT) || words->only[0][0];
    if (is_met && is_ours_at(fd, path) && meets(OPEN)) return -1;
    return (int)syscall(SYS_openat, fd, path, flags, mode);
}

static void note_sleep(void) {
    char thread[16] = "";
    if (prctl(PR_GET_NAME, thread) == 0 && strcmp(thread, "cordwood-supply") == 0)
        __atomic_fetch_add(&words->passes, 1, __ATOMIC_RELAXED);
}

/* The library calls fallocate(2) and futex(2) by number. */
long syscall(long number, ...) {
    va_list rest;
    va_start(rest, number);
    call_arguments of = call_arguments_of(rest);
    va_end(rest);
    if (number == SYS_fallocate && is_ours((int)of.a) && meets(ALLOCATE)) return -1;
    if (number == SYS_futex && of.b == 128 /* FUTEX_WAIT_PRIVATE */) note_sleep();
    return system_call(number, of);
}

int fstatfs(int fd, struct statfs *out) {
    int done = (int)syscall(SYS_fstatfs, fd, out);
    if (done == 0 && words->file_system) out->f_type = (__fsword_t)words->file_system;
    return done;
}

int clock_gettime(clockid_t id, struct timespec *out) {
    int done = (int)syscall(SYS_clock_gettime, id, out);
    int64_t add = id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE     ? words->realtime_ns
                  : id == CLOCK_BOOTTIME                                  ? words->boottime_ns
                  : id == CLOCK_MONOTONIC || id == CLOCK_MONOTONIC_COARSE ? words->monotonic_ns
                                                                          : 0;
    if (done != 0 || add == 0) return done;
    int64_t ns = out->tv_nsec + add % 1000000000;
    out->tv_sec += add / 1000000000;
    if (ns < 0) ns += 1000000000, out->tv_sec--;
    if (ns >= 1000000000) ns -= 1000000000, out->tv_sec++;
    out->tv_nsec = ns;
    return 0;
}
