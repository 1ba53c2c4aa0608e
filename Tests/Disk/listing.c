/* Preloaded into a program: its listing of a store's lanes/ stops in the middle, as if its cursor
 * had passed some names and not the others. Names that end in `.lane` or `.sealed` come first. Then
 * it makes the file LISTING_STEP.reached. The other names follow, as they are then, once
 * LISTING_STEP.go exists. Only the LISTING_NUMBER-th listing stops. With LISTING_LOOK the program
 * stops instead at the LISTING_NUMBER-th of the moments before and after it locks or reads a lane
 * file. One thread at a time. */
#define _GNU_SOURCE 1
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static DIR *stepped;
static int passed, listings, looks;

#define REAL(name, type) ((type)dlsym(RTLD_NEXT, name))

static int comes_first(const char *name) {
    size_t length = strlen(name);
    return (length > 5 && !strcmp(name + length - 5, ".lane")) ||
           (length > 7 && !strcmp(name + length - 7, ".sealed"));
}

static void step(void) {
    char path[4096];
    const char *base = getenv("LISTING_STEP");
    snprintf(path, sizeof path, "%s.reached", base);
    close(open(path, O_WRONLY | O_CREAT, 0600));
    snprintf(path, sizeof path, "%s.go", base);
    struct timespec pause = {0, 1000000};
    for (int ms = 0; ms < 120000 && access(path, F_OK) != 0; ms++) nanosleep(&pause, NULL);
}

static void look(int file) {
    const char *number = getenv("LISTING_NUMBER");
    if (!number || !getenv("LISTING_LOOK")) return;
    char link[64], path[4096];
    int saved = errno;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, sizeof path);
    if (length > 5 && !memcmp(path + length - 5, ".lane", 5) && ++looks == atoi(number)) step();
    errno = saved;
}

int flock(int file, int operation) {
    look(file);
    int result = (int)syscall(SYS_flock, file, operation);
    look(file);
    return result;
}

ssize_t pread(int file, void *bytes, size_t count, off_t offset) {
    look(file);
    ssize_t result = syscall(SYS_pread64, file, bytes, count, offset);
    look(file);
    return result;
}

DIR *fdopendir(int file) {
    DIR *opened = REAL("fdopendir", DIR * (*)(int))(file);
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, sizeof path);
    const char *number = getenv("LISTING_NUMBER");
    if (opened && number && !getenv("LISTING_LOOK") && length > 6 &&
        !memcmp(path + length - 6, "/lanes", 6) && ++listings == atoi(number)) {
        stepped = opened;
        passed = 0;
    }
    return opened;
}

struct dirent *readdir(DIR *directory) {
    struct dirent *(*next)(DIR *) = REAL("readdir", struct dirent * (*)(DIR *));
    if (directory != stepped) return next(directory);
    for (;;) {
        struct dirent *entry = next(directory);
        if (!entry && !passed) {
            passed = 1;
            step();
            rewinddir(directory);
            continue;
        }
        if (!entry || comes_first(entry->d_name) == !passed) return entry;
    }
}

int closedir(DIR *directory) {
    if (directory == stepped) stepped = NULL;
    return REAL("closedir", int (*)(DIR *))(directory);
}
