/* Preloaded into a program: counts how often it lists a directory, opens a file, reads at an offset
 * and asks for a file's facts, and prints that when it ends. While the program says so, whoever
 * makes an archive waits. With KILL_AT_REMOVAL=N it is killed before it removes its Nth file. One
 * program at a time; any thread. */
#define _GNU_SOURCE 1
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LISTINGS, OPENS, READS, FACTS, KINDS };
static unsigned long counted[KINDS];

static int holds;

/* Archives wait to be made until this is called with 0. The counts begin anew then. */
void count_hold(int wanted) {
    if (!wanted)
        for (int kind = 0; kind < KINDS; kind++)
            __atomic_store_n(&counted[kind], 0, __ATOMIC_RELAXED);
    __atomic_store_n(&holds, wanted, __ATOMIC_RELEASE);
}

static void count(int kind) { __atomic_add_fetch(&counted[kind], 1, __ATOMIC_RELAXED); }

/* Finds the C library's function of that name. A function pointer may not be cast from void *. */
#define NEXT(next, name)                            \
    do {                                            \
        if (!next) {                                \
            void *address = dlsym(RTLD_NEXT, name); \
            memcpy(&next, &address, sizeof next);   \
        }                                           \
    } while (0)

DIR *fdopendir(int file) {
    static DIR *(*next)(int);
    NEXT(next, "fdopendir");
    count(LISTINGS);
    return next(file);
}

int openat(int directory, const char *path, int flags, ...) {
    static int (*next)(int, const char *, int, ...);
    NEXT(next, "openat");
    count(OPENS);
    if (flags & O_CREAT && strstr(path, ".part"))
        while (__atomic_load_n(&holds, __ATOMIC_ACQUIRE)) usleep(1000);
    va_list rest;
    va_start(rest, flags);
    mode_t mode = va_arg(rest, mode_t);
    va_end(rest);
    return next(directory, path, flags, mode);
}

int unlinkat(int directory, const char *path, int flags) {
    static int (*next)(int, const char *, int);
    static unsigned long removed;
    NEXT(next, "unlinkat");
    const char *at = getenv("KILL_AT_REMOVAL");
    unsigned long number = __atomic_add_fetch(&removed, 1, __ATOMIC_RELAXED);
    if (at && number == strtoul(at, NULL, 10)) raise(SIGKILL);
    return next(directory, path, flags);
}

ssize_t pread(int file, void *room, size_t bytes, off_t at) {
    static ssize_t (*next)(int, void *, size_t, off_t);
    NEXT(next, "pread");
    count(READS);
    return next(file, room, bytes, at);
}

int fstat(int file, struct stat *facts) {
    static int (*next)(int, struct stat *);
    NEXT(next, "fstat");
    count(FACTS);
    return next(file, facts);
}

int fstatat(int directory, const char *path, struct stat *facts, int flags) {
    static int (*next)(int, const char *, struct stat *, int);
    NEXT(next, "fstatat");
    count(FACTS);
    return next(directory, path, facts, flags);
}

__attribute__((destructor)) static void tell(void) {
    fprintf(stderr, "listings %lu opens %lu reads %lu facts %lu\n", counted[LISTINGS],
            counted[OPENS], counted[READS], counted[FACTS]);
}
