/* Preloaded into a program that works on a store: before its nth call by a name below the store, it
 * puts a link or a FIFO in the place of one of the store's directories or files, as the store's
 * owner may at any moment. Then it looks where each file lies that the program opens.
 *     SWAP_WORDS   a file of two words of 64 bits: calls so far, files that lie below SWAP_VICTIM
 *     SWAP_AT      n; 0: never         SWAP_STORE   the store         SWAP_OWNER   its owner
 *     SWAP_PATH    what is replaced    SWAP_TO      where the link leads; empty: it is a FIFO
 * Any thread. */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static uint64_t none[2], *words = none, at, owner;
static const char *store, *victim, *path, *to;

__attribute__((constructor)) static void begin(void) {
    const char *name = getenv("SWAP_WORDS"), *number = getenv("SWAP_AT");
    if (!name || !number) return;
    int fd = (int)syscall(SYS_openat, AT_FDCWD, name, O_RDWR | O_CLOEXEC);
    void *memory = mmap(NULL, 16, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED) abort();
    close(fd);
    store = getenv("SWAP_STORE"), victim = getenv("SWAP_VICTIM");
    path = getenv("SWAP_PATH"), to = getenv("SWAP_TO");
    at = strtoull(number, NULL, 10), owner = strtoull(getenv("SWAP_OWNER"), NULL, 10);
    words = memory;
}

static void call(int directory, const char *name) {
    if (!store || (directory == AT_FDCWD && strncmp(name, store, strlen(store)) != 0)) return;
    if (__atomic_add_fetch(&words[0], 1, __ATOMIC_RELAXED) != at) return;
    /* Root's own programs close root's store to others when they write to it. */
    struct stat now;
    if (owner == 0 && (stat(store, &now) != 0 || !(now.st_mode & 0022))) return;
    char away[4096];
    snprintf(away, sizeof away, "%s.away", path);
    syscall(SYS_renameat, AT_FDCWD, path, AT_FDCWD, away);
    if (*to) syscall(SYS_symlinkat, to, AT_FDCWD, path);
    else syscall(SYS_mknodat, AT_FDCWD, path, S_IFIFO | 0600, 0);
    syscall(SYS_fchownat, AT_FDCWD, path, owner, owner, AT_SYMLINK_NOFOLLOW);
}

static int opened(int fd) {
    char link[64], place[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    long n = fd < 0 || !victim ? 0 : syscall(SYS_readlinkat, AT_FDCWD, link, place, sizeof place);
    size_t length = victim ? strlen(victim) : 0;
    if (n > (long)length && memcmp(place, victim, length) == 0 && place[length] == '/')
        __atomic_add_fetch(&words[1], 1, __ATOMIC_RELAXED);
    return fd;
}

#define REAL(name) __typeof__(name) *real = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)

int openat(int directory, const char *name, int flags, ...) {
    va_list list;
    va_start(list, flags);
    mode_t mode = flags & O_CREAT ? va_arg(list, mode_t) : 0;
    va_end(list);
    REAL(openat);
    call(directory, name);
    return opened(real(directory, name, flags, mode));
}

int fstatat(int directory, const char *name, struct stat *facts, int flags) {
    REAL(fstatat);
    call(directory, name);
    return real(directory, name, facts, flags);
}

int unlinkat(int directory, const char *name, int flags) {
    REAL(unlinkat);
    call(directory, name);
    return real(directory, name, flags);
}

int renameat(int directory, const char *name, int other, const char *other_name) {
    REAL(renameat);
    call(directory, name);
    return real(directory, name, other, other_name);
}

int mkdirat(int directory, const char *name, mode_t mode) {
    REAL(mkdirat);
    call(directory, name);
    return real(directory, name, mode);
}

int symlinkat(const char *target, int directory, const char *name) {
    REAL(symlinkat);
    call(directory, name);
    return real(target, directory, name);
}
