/* Preloaded into a host: writes each file that is opened or made, with its flags and mode, as a
 * line into the file that OPENS names. Counts the calls of munmap(2), which delay every mmap(2) of
 * the host. The calls go on to the C library. Any thread. */
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static void note(const char *call, const char *path, int flags, unsigned mode) {
    static int file = -1;
    static int (*real)(const char *, int, ...);
    if (!real) real = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, "open");
    const char *name = getenv("OPENS");
    if (file < 0 && name) file = real(name, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    char line[1200];
    int n = snprintf(line, sizeof line, "%s %d %o %.1000s\n", call, flags, mode, path);
    if (file >= 0 && write(file, line, (size_t)n) < 0) abort();
}

#define MODE(last)                                                                                 \
    mode_t mode = 0;                                                                               \
    if (flags & (O_CREAT | O_TMPFILE)) {                                                           \
        va_list list;                                                                              \
        va_start(list, last);                                                                      \
        mode = va_arg(list, mode_t);                                                               \
        va_end(list);                                                                              \
    }

int open(const char *path, int flags, ...) {
    MODE(flags)
    static int (*real)(const char *, int, ...);
    if (!real) real = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, "open");
    note("open", path, flags, mode);
    return real(path, flags, mode);
}

/* The whole path of a name below an open directory. */
static void find_whole(char whole[1024], int at, const char *path) {
    char link[64];
    whole[0] = 0;
    if (path[0] != '/' && at >= 0) {
        snprintf(link, sizeof link, "/proc/self/fd/%d", at);
        ssize_t n = readlink(link, whole, 600);
        if (n < 0) n = 0;
        whole[n] = '/';
        whole[n + 1] = 0;
    }
    strncat(whole, path, 400);
}

int openat(int at, const char *path, int flags, ...) {
    MODE(flags)
    static int (*real)(int, const char *, int, ...);
    if (!real) real = (int (*)(int, const char *, int, ...))dlsym(RTLD_NEXT, "openat");
    char whole[1024];
    find_whole(whole, at, path);
    note("openat", whole, flags, mode);
    return real(at, path, flags, mode);
}

int mkdirat(int at, const char *path, mode_t mode) {
    static int (*real)(int, const char *, mode_t);
    if (!real) real = (int (*)(int, const char *, mode_t))dlsym(RTLD_NEXT, "mkdirat");
    char whole[1024];
    find_whole(whole, at, path);
    note("mkdirat", whole, 0, mode);
    return real(at, path, mode);
}

FILE *fopen(const char *path, const char *how) {
    static FILE *(*real)(const char *, const char *);
    if (!real) real = (FILE * (*)(const char *, const char *)) dlsym(RTLD_NEXT, "fopen");
    note("fopen", path, strchr(how, 'e') ? O_CLOEXEC : 0, 0);
    return real(path, how);
}

unsigned long unmappings(void);
static unsigned long unmapped;
unsigned long unmappings(void) { return __atomic_load_n(&unmapped, __ATOMIC_RELAXED); }

int munmap(void *start, size_t bytes) {
    __atomic_fetch_add(&unmapped, 1, __ATOMIC_RELAXED);
    return (int)syscall(SYS_munmap, start, bytes);
}
