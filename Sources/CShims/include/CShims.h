/* What Swift cannot express: atomics on raw memory, the time-stamp counter, thread-local words,
 * a few variadic or macro-only system calls. All of it is in this header except for shims.c,
 * which defines the words and the fork hook, and upper.c. No other state, no policy. */
#ifndef CORDWOOD_SHIMS_H
#define CORDWOOD_SHIMS_H
/* No _GNU_SOURCE here: Swift's Glibc module is built without it, and types such as fd_set would
 * then differ between the two modules. */
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/membarrier.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/single_threaded.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

/* ── Atomics on raw memory ── */
#define CW_ATOMIC(T, N)                                                                            \
    static inline T cwa_load_relaxed_##N(const void *p) {                                          \
        return __atomic_load_n((const T *)p, __ATOMIC_RELAXED);                                    \
    }                                                                                              \
    static inline T cwa_load_acquire_##N(const void *p) {                                          \
        return __atomic_load_n((const T *)p, __ATOMIC_ACQUIRE);                                    \
    }                                                                                              \
    static inline void cwa_store_relaxed_##N(void *p, T v) {                                       \
        __atomic_store_n((T *)p, v, __ATOMIC_RELAXED);                                             \
    }                                                                                              \
    static inline void cwa_store_release_##N(void *p, T v) {                                       \
        __atomic_store_n((T *)p, v, __ATOMIC_RELEASE);                                             \
    }                                                                                              \
    static inline T cwa_add_##N(void *p, T v) {                                                    \
        return __atomic_fetch_add((T *)p, v, __ATOMIC_ACQ_REL);                                    \
    }                                                                                              \
    static inline T cwa_exchange_##N(void *p, T v) {                                               \
        return __atomic_exchange_n((T *)p, v, __ATOMIC_ACQ_REL);                                   \
    }                                                                                              \
    static inline bool cwa_cas_##N(void *p, T expected, T desired) {                               \
        return __atomic_compare_exchange_n((T *)p, &expected, desired, false, __ATOMIC_ACQ_REL,    \
                                           __ATOMIC_ACQUIRE);                                      \
    }
CW_ATOMIC(uint32_t, u32)
CW_ATOMIC(uint64_t, u64)
#undef CW_ATOMIC

static inline void cwa_fence_full(void) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
static inline void cwa_fence_compiler(void) { __atomic_signal_fence(__ATOMIC_SEQ_CST); }

/* Prefetches the line at p for writing, along with its address translation. Never faults,
 * wherever p points; a processor without the instruction does nothing. */
static inline void cwi_fetch_ahead(const void *p) {
#if defined(__x86_64__)
    __asm__ volatile("prefetchw %0" : : "m"(*(const char *)p));
#else
    __builtin_prefetch(p, 1);
#endif
}

/* True if the string equals those n bytes, which contain no NUL. NULL counts as the empty
 * string. */
static inline bool cwi_same_text(const char *text, const void *bytes, size_t n) {
    if (text == NULL) return n == 0;
    /* A shorter string may end right before unmapped memory: do not read past its page in one
     * go. */
    if (((uintptr_t)text & 4095) + n >= 4096)
        return strncmp(text, (const char *)bytes, n) == 0 && text[n] == 0;
    const char *other = (const char *)bytes;
    if (n < 8) {
        for (size_t i = 0; i < n; i++)
            if (text[i] != other[i]) return false;
        return text[n] == 0;
    }
    /* Eight at a time; the last eight overlap. */
    for (size_t i = 0;; i = i + 16 <= n ? i + 8 : n - 8) {
        uint64_t a, b;
        __builtin_memcpy(&a, text + i, 8);
        __builtin_memcpy(&b, other + i, 8);
        if (a != b) return false;
        if (i + 8 == n) return text[n] == 0;
    }
}

/* Length of a wchar_t string in units of 4 bytes, at most `most`. */
static inline size_t cwi_wcsnlen(const volatile void *start, size_t most) {
    const volatile int32_t *p = (const volatile int32_t *)start;
    size_t n = 0;
    while (n < most && p[n]) n++;
    return n;
}

/* Prints one value through a format with exactly one directive for that type (ArgumentType: 1
 * int, 2 64 bits, 3 double, 4 long double, 5 pointer), in the C locale. Returns what snprintf
 * returns. */
int cwi_print(char *out, size_t size, const char *format, uint8_t type, const void *value);
/* The text of strerror in the C locale. Returns the bytes written. */
size_t cwi_error_text(uint32_t number, char *out, size_t size);

/* ── Clock ── */
static inline uint64_t cw_ticks_tsc(void) {
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc(); /* x86intrin.h clashes with Swift's Glibc module */
#elif defined(__aarch64__)
    uint64_t v;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(v));
    return v;
#else
    return 0;
#endif
}
static inline uint64_t cw_clock_ns(clockid_t id) {
    struct timespec t;
    clock_gettime(id, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}
static inline uint64_t cw_monotonic_ns(void) { return cw_clock_ns(CLOCK_MONOTONIC); }
static inline uint64_t cw_coarse_ns(void) { return cw_clock_ns(CLOCK_MONOTONIC_COARSE); }
/* Within what 64 bits of ns hold, and a year away from their end, since times are added to it: a
 * clock before 1970 reads as 0, one after January 2553 as that. */
static inline uint64_t cw_realtime_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    if (t.tv_sec < 0) return 0;
    if (t.tv_sec > 18400000000) return 18400000000u * 1000000000u;
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ── Words of the process ── */
/* Threads share them (CordwoodTrace/HTTP/Capture, UploadMark). They are in static memory: a first
 * use takes nothing from a heap that may be exhausted. */
void *cwi_retired_rules(void);    /* 65 of 8 bytes, aligned to 64 */
void *cwi_exchange_pool(void);    /* 8 */
void *cwi_exchange_counter(void); /* 1 */
enum { CWI_UPLOAD_MARKS = 256 };   /* a power of two */
void *cwi_upload_marks(void);     /* that many */

/* ── CRC-32C (FORMAT §1): start with 0, hand the result back in to go on ── */
uint32_t cwi_crc32c(uint32_t crc, const void *data, size_t length);

/* ── System calls that Swift cannot call ── */
/* Moves a descriptor above the standard streams: a host that closed them must not get a lane as
 * its stderr. */
static inline int cw_above_standard(int fd) {
    if (fd < 0 || fd > 2) return fd;
    int above = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    int error = errno;
    close(fd);
    errno = error;
    return above;
}
static inline int cw_open_file(const char *path, int flags, mode_t mode) {
    return cw_above_standard(open(path, flags | O_CLOEXEC | O_NOFOLLOW, mode));
}
/* True if exec(2) gave the program rights that its caller lacks. */
static inline bool cw_is_privileged(void) { return getauxval(AT_SECURE) != 0; }
/* A file that O_EXCL makes in an open directory takes after it, and so does a directory in it.
 * Root's get its owner and group, so that the owner can go on with them. Its group may read them if
 * it lets its group read and hands the group on (mode 2750); otherwise files have `mode`. */
int cwi_open_at(int directory, const char *name, int flags, mode_t mode);
/* 0700 if the group may not read. Returns 0 or an errno. */
int cwi_make_directory_at(int directory, const char *name);
/* In the place of a directory that was deleted: if root makes it, it gets that one's owner. The
 * path has a slash, and is as it was afterwards. Returns 0 or an errno. */
int cwi_make_directory_again(char *path, uid_t owner, gid_t group);
enum { CWI_NO_USER = UINT32_MAX };
/* The user that this process is and can only ever be; CWI_NO_USER: root, one that may become
 * another, or one with rights that other processes of its user lack. Found out once. */
uint32_t cwi_bound_user(void);
/* The folder that holds the last part of the name: follows no link on the way there and never goes
 * up. Without a slash it is the directory itself, else a descriptor for cwi_file_close. -1: errno
 * says why. */
int cwi_enter(int directory, const char *name, const char **last);
/* What has that name, a link itself too, without rights but to ask what it is; for close(2). */
int cwi_step(int directory, const char *name);
/* The raw system call: glibc would emulate it by writing, which may leave holes. */
static inline int cw_fallocate(int fd, int mode, off_t offset, off_t length) {
    return (int)syscall(SYS_fallocate, fd, mode, offset, length);
}
/* True if the file system below an overlay provably overwrites preallocated blocks in place:
 * ext4, xfs, tmpfs. `name` is a scratch file in `directory`, which is removed at once. */
bool cwi_upper_keeps_mappings(int directory, const char *name);
/* Writes zeros from the offset on. Returns 0 or an errno. */
int cwi_write_zeros(int fd, uint64_t offset, uint64_t length);
/* The calling thread's name: 16 bytes, NUL-padded. */
static inline void cw_thread_name(void *name) {
    memset(name, 0, 16);
    prctl(PR_GET_NAME, name, 0, 0, 0);
}
/* False: the C library would end the process as a new thread begins, because a filter of system
 * calls (seccomp) that was set since it started refuses the thread's rseq(2). */
bool cwi_thread_may_start(void);
static inline void cw_set_thread_name(const char *name) { prctl(PR_SET_NAME, name, 0, 0, 0); }
/* RLIMIT_FSIZE of this process, in bytes. */
static inline uint64_t cw_file_size_limit(void) {
    struct rlimit limit;
    return getrlimit(RLIMIT_FSIZE, &limit) == 0 ? (uint64_t)limit.rlim_cur : UINT64_MAX;
}
/* Returns the free memory of all threads' heaps to the system. */
static inline void cw_heap_give_back(void) { (void)malloc_trim(0); }
/* RLIMIT_NOFILE of this process. */
static inline uint64_t cw_descriptor_limit(void) {
    struct rlimit limit;
    return getrlimit(RLIMIT_NOFILE, &limit) == 0 ? (uint64_t)limit.rlim_cur : UINT64_MAX;
}
/* Fills it with random bytes. False: the system refuses them (seccomp); then they only differ from
 * those of other calls, threads and processes. */
bool cwi_random(void *bytes, size_t count);
static inline int cw_membarrier(int command) {
    return (int)syscall(SYS_membarrier, command, 0, 0);
}
/* True if the process certainly has a single thread. */
static inline bool cwi_has_one_thread(void) { return __libc_single_threaded; }
static inline uint32_t cw_gettid(void) { return (uint32_t)syscall(SYS_gettid); }

#endif
