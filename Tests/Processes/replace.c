/* Preloaded into an adopter: just before its first lock of a lane file, a copy of the file takes
 * that name. The locked file then has no name. One program at a time. */
#define _GNU_SOURCE 1
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static int is_done;

static void replace(int fd) {
    char link[64], path[4096], copy[4200];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 5 || memcmp(path + length - 5, ".lane", 5) != 0) return;
    path[length] = 0;
    if (__atomic_exchange_n(&is_done, 1, __ATOMIC_RELAXED)) return;
    snprintf(copy, sizeof copy, "%.4096s.copy", path);
    struct stat status;
    int to = open(copy, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    off_t from = 0;
    if (to < 0 || fstat(fd, &status) != 0) _exit(126);
    if (sendfile(to, fd, &from, (size_t)status.st_size) != status.st_size) _exit(126);
    close(to);
    if (rename(copy, path) != 0) _exit(126);
}

int fcntl(int fd, int command, ...) {
    va_list rest;
    va_start(rest, command);
    long argument = va_arg(rest, long);
    va_end(rest);
    if (command == F_OFD_SETLK) replace(fd);
    return (int)syscall(SYS_fcntl, fd, command, argument);
}
