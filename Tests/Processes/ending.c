/* Preloaded into a program: kills it just before the call of this number that changes a file or
 * makes it durable (environment END_AT, from 1). END_FROM: counts from the first call on that
 * renames this file. Prints nothing; a program that makes fewer calls ends as usual. */
#define _GNU_SOURCE 1
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static long made;
static int has_begun;

static void count(void) {
    const char *end = getenv("END_AT");
    if (!__atomic_load_n(&has_begun, __ATOMIC_RELAXED) && getenv("END_FROM")) return;
    if (end && __atomic_add_fetch(&made, 1, __ATOMIC_RELAXED) == atol(end)) raise(SIGKILL);
}

ssize_t write(int fd, const void *bytes, size_t size) {
    count();
    return syscall(SYS_write, fd, bytes, size);
}

int fsync(int fd) {
    count();
    return (int)syscall(SYS_fsync, fd);
}

int fdatasync(int fd) {
    count();
    return (int)syscall(SYS_fdatasync, fd);
}

int renameat(int from_directory, const char *from, int to_directory, const char *to) {
    const char *first = getenv("END_FROM");
    if (first && !strcmp(from, first)) __atomic_store_n(&has_begun, 1, __ATOMIC_RELAXED);
    count();
    return (int)syscall(SYS_renameat, from_directory, from, to_directory, to);
}

int unlinkat(int directory, const char *name, int flags) {
    count();
    return (int)syscall(SYS_unlinkat, directory, name, flags);
}
