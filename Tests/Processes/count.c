/* Preloaded into a program: counts how often it lists a directory, and prints that when it ends.
 * One program at a time; any thread. */
#define _GNU_SOURCE 1
#include <dirent.h>
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static unsigned long listed;

DIR *fdopendir(int file) {
    static DIR *(*next)(int);
    if (!next) {
        void *address = dlsym(RTLD_NEXT, "fdopendir");
        memcpy(&next, &address, sizeof next);
    }
    __atomic_add_fetch(&listed, 1, __ATOMIC_RELAXED);
    return next(file);
}

__attribute__((destructor)) static void tell(void) { fprintf(stderr, "listings %lu\n", listed); }
