/* Stands between libcordwood.so and the system: this program exports open, fsync, rename … and so
 * is called before libc. Every change below the root becomes an event of the trace, in one order
 * (one lock). Mapped stores are invisible, but only what a page held when it was written back or
 * synced reaches a disk. So the files' contents are inspected when they are synced, and at random
 * moments as the kernel would. Nothing is really synced. Any thread. */
#define _GNU_SOURCE 1
#include "sim.h"
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { INODES_MAX = 4096 };

typedef struct {
    ino_t number;
    bool is_live, is_directory, is_link;
    int descriptor; /* our own, for inspection; -1 */
    uint64_t size, failed;
    uint8_t *shadow; /* last seen content */
    uint64_t shadow_bytes;
    char name[160]; /* its last one */
} live_inode;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool is_on;
static sim_trace *trace;
static sim_disk_options options;
static sim_random looks;
static dev_t device;
static live_inode *inodes;
static uint32_t inode_count;
static uint64_t syncs, kept;
static char boot_path[PATH_BYTES];
static uint8_t *look_buffer;
static uint64_t look_room;

/* Looked up at the first call: the library's initialisers run before ours. */
static void find_real(void);
#define REAL(name) (*(real_##name ? &real_##name : (find_real(), &real_##name)))
static int (*real_open)(const char *, int, ...);
static int (*real_openat)(int, const char *, int, ...);
static int (*real_mkdirat)(int, const char *, mode_t);
static int (*real_rmdir)(const char *);
static int (*real_rename)(const char *, const char *);
static int (*real_renameat)(int, const char *, int, const char *);
static int (*real_unlink)(const char *);
static int (*real_unlinkat)(int, const char *, int);
static int (*real_symlinkat)(const char *, int, const char *);
static ssize_t (*real_write)(int, const void *, size_t);
static ssize_t (*real_pwrite)(int, const void *, size_t, off_t);
static ssize_t (*real_pwritev)(int, const struct iovec *, int, off_t);
static int (*real_ftruncate)(int, off_t);
static int (*real_fsync)(int);
static int (*real_fdatasync)(int);
static long (*real_syscall)(long, ...);

static void find_real(void) {
#define FIND(name) *(void **)&real_##name = dlsym(RTLD_NEXT, #name)
    FIND(open), FIND(openat), FIND(mkdirat), FIND(rmdir), FIND(rename), FIND(renameat);
    FIND(unlink), FIND(unlinkat), FIND(symlinkat), FIND(write), FIND(pwrite), FIND(pwritev);
    FIND(ftruncate), FIND(fsync), FIND(fdatasync), FIND(syscall);
}

/* ── Inodes ── */

static int64_t find(const struct stat *status) {
    if (status->st_dev != device) return -1;
    for (uint32_t i = inode_count; i-- > 0;)
        if (inodes[i].is_live && inodes[i].number == status->st_ino) return i;
    return -1;
}

static int64_t find_descriptor(int descriptor) {
    struct stat status;
    return fstat(descriptor, &status) == 0 ? find(&status) : -1;
}

/* The traced directory that contains a name, and the name; -1: none. */
static int64_t find_parent(int directory, const char *path, const char **name) {
    struct stat status;
    const char *slash = strrchr(path, '/');
    *name = slash ? slash + 1 : path;
    if (!slash) {
        if (directory == AT_FDCWD) return -1;
        return find_descriptor(directory);
    }
    char parent[PATH_BYTES];
    size_t length = (size_t)(slash - path);
    if (length == 0 || length >= sizeof parent) return -1;
    memcpy(parent, path, length);
    parent[length] = 0;
    return fstatat(directory, parent, &status, 0) == 0 ? find(&status) : -1;
}

static int64_t find_name(int directory, const char *path) {
    struct stat status;
    if (fstatat(directory, path, &status, AT_SYMLINK_NOFOLLOW) != 0) return -1;
    return find(&status);
}

static uint32_t take_inode(const struct stat *status, int directory, const char *path) {
    if (inode_count == INODES_MAX) {
        fprintf(stderr, "sim: too many files\n");
        abort();
    }
    bool is_directory = S_ISDIR(status->st_mode), is_link = S_ISLNK(status->st_mode);
    uint32_t id = trace_inode(
        trace, is_directory ? INODE_DIRECTORY : is_link ? INODE_LINK : INODE_FILE);
    live_inode *inode = &inodes[inode_count++];
    memset(inode, 0, sizeof *inode);
    inode->number = status->st_ino;
    inode->is_live = true;
    inode->is_directory = is_directory;
    inode->is_link = is_link;
    inode->descriptor = is_directory || is_link
                            ? -1
                            : REAL(openat)(directory, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    return id;
}

/* ── Looking at what a file holds ── */

static bool has_changed(const live_inode *inode, const uint8_t *now, uint64_t sector) {
    uint64_t at = sector * SECTOR;
    static const uint8_t zeros[SECTOR];
    const uint8_t *old = at < inode->shadow_bytes ? inode->shadow + at : zeros;
    return memcmp(old, now + at, SECTOR) != 0;
}

static void look(uint32_t id) {
    live_inode *inode = &inodes[id];
    struct stat status;
    if (inode->descriptor < 0 || fstat(inode->descriptor, &status) != 0) return;
    uint64_t size = (uint64_t)status.st_size;
    if (size != inode->size) {
        inode->size = size;
        trace_add(trace, EVENT_SIZE, id, 0, size, NULL, 0);
    }
    uint64_t sectors = (size + SECTOR - 1) / SECTOR, bytes = sectors * SECTOR;
    if (bytes > look_room) {
        look_buffer = realloc(look_buffer, bytes);
        look_room = bytes;
    }
    uint64_t got = 0;
    while (got < size) {
        ssize_t n = pread(inode->descriptor, look_buffer + got, size - got, (off_t)got);
        if (n <= 0) break;
        got += (uint64_t)n;
    }
    memset(look_buffer + got, 0, bytes - got);
    for (uint64_t first = 0; first < sectors;) {
        uint64_t end = first;
        while (end < sectors && has_changed(inode, look_buffer, end)) end++;
        if (end > first)
            trace_add(trace, EVENT_DATA, id, 0, first, look_buffer + first * SECTOR,
                      (uint32_t)((end - first) * SECTOR));
        first = end + 1;
    }
    if (bytes > inode->shadow_bytes) {
        inode->shadow = realloc(inode->shadow, bytes);
        inode->shadow_bytes = bytes;
    }
    /* Bytes beyond a shorter end stay, so that they count as changed when the file grows again. */
    memcpy(inode->shadow, look_buffer, bytes);
}

/* Like the kernel's write-back: some of the files, or all. */
static void look_around(uint64_t n) {
    if (!sim_one_in(&looks, n)) return;
    bool all = sim_one_in(&looks, 3);
    for (uint32_t i = 0; i < inode_count; i++)
        if (inodes[i].is_live && inodes[i].descriptor >= 0 && (all || sim_one_in(&looks, 4)))
            look(i);
}

static void forget(uint32_t id) {
    live_inode *inode = &inodes[id];
    if (inode->is_live && inode->descriptor >= 0) {
        look(id);
        close(inode->descriptor);
        inode->descriptor = -1;
    }
    free(inode->shadow);
    inode->shadow = NULL;
    inode->shadow_bytes = 0;
}

/* ── Start and end ── */

static void note_create(uint32_t directory, const char *name, uint32_t id) {
    snprintf(inodes[id].name, sizeof inodes[id].name, "%s", name);
    trace_add(trace, EVENT_CREATE, directory, id, 0, name, (uint32_t)strlen(name) + 1);
}

#include <dirent.h>

/* Everything that exists when a life begins is durable. */
static void take_tree(const char *path, uint32_t id) {
    DIR *directory = opendir(path);
    if (!directory) return;
    struct dirent *entry;
    while ((entry = readdir(directory))) {
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..")) continue;
        char child[PATH_BYTES * 2];
        snprintf(child, sizeof child, "%s/%s", path, entry->d_name);
        struct stat status;
        if (lstat(child, &status) != 0) continue;
        uint32_t found = take_inode(&status, AT_FDCWD, child);
        note_create(id, entry->d_name, found);
        if (S_ISLNK(status.st_mode)) {
            char target[PATH_BYTES];
            ssize_t length = readlink(child, target, sizeof target);
            trace_add(trace, EVENT_DATA, found, 0, 0, target, (uint32_t)length);
        }
        look(found);
        trace_add(trace, EVENT_SYNC, found, 0, 0, NULL, 0);
        if (S_ISDIR(status.st_mode)) take_tree(child, found);
    }
    closedir(directory);
    trace_add(trace, EVENT_SYNC, id, 0, 0, NULL, 0);
}

void disk_begin(sim_trace *into, const sim_disk_options *with) {
    pthread_mutex_lock(&lock);
    trace = into;
    options = *with;
    looks = sim_seeded(with->seed, 77);
    inodes = calloc(INODES_MAX, sizeof *inodes);
    inode_count = 0;
    syncs = kept = 0;
    struct stat status;
    if (stat(with->root, &status) != 0) abort();
    device = status.st_dev;
    take_inode(&status, AT_FDCWD, with->root);
    take_tree(with->root, 0);
    trace_add(trace, EVENT_START, 0, 0, 0, NULL, 0);
    trace->start = trace->count;
    is_on = true;
    pthread_mutex_unlock(&lock);
}

void disk_end(void) {
    pthread_mutex_lock(&lock);
    is_on = false;
    for (uint32_t i = 0; i < inode_count; i++) {
        if (inodes[i].descriptor >= 0) close(inodes[i].descriptor);
        free(inodes[i].shadow);
    }
    free(inodes);
    inodes = NULL;
    inode_count = 0;
    pthread_mutex_unlock(&lock);
}

void disk_look(void) {
    pthread_mutex_lock(&lock);
    if (is_on) look_around(1);
    pthread_mutex_unlock(&lock);
}

void disk_note(uint8_t kind, uint64_t value, const void *data, uint32_t bytes) {
    pthread_mutex_lock(&lock);
    if (is_on) trace_add(trace, kind, 0, 0, value, data, bytes);
    pthread_mutex_unlock(&lock);
}

uint64_t disk_syncs(void) { return syncs; }

void disk_boot(const char *path) { snprintf(boot_path, sizeof boot_path, "%s", path); }

/* Every call goes through here. True, with the lock held, if there may be something to note. */
static bool enter(void) {
    if (!__atomic_load_n(&is_on, __ATOMIC_ACQUIRE)) return false;
    pthread_mutex_lock(&lock);
    if (is_on) return true;
    pthread_mutex_unlock(&lock);
    return false;
}

static void leave(void) {
    int saved = errno;
    look_around(6);
    pthread_mutex_unlock(&lock);
    errno = saved;
}

/* ── Opening ── */

static int open_any(int directory, const char *path, int flags, mode_t mode) {
    if (boot_path[0] && !strcmp(path, "/proc/sys/kernel/random/boot_id")) path = boot_path;
    if (!(flags & (O_CREAT | O_TRUNC)) || !enter())
        return REAL(openat)(directory, path, flags, mode);
    const char *name;
    int64_t parent = find_parent(directory, path, &name);
    int64_t before = parent < 0 ? -1 : find_name(directory, path);
    int descriptor = REAL(openat)(directory, path, flags, mode);
    int saved = errno;
    struct stat status;
    if (parent >= 0 && descriptor >= 0 && fstat(descriptor, &status) == 0 &&
        S_ISREG(status.st_mode)) {
        /* Emptied: everything written from now on is new, even if it equals the old content. */
        if (before >= 0 && flags & O_TRUNC) {
            look((uint32_t)before);
            memset(inodes[before].shadow, 0xC3, inodes[before].shadow_bytes);
        }
        if (before < 0) {
            uint32_t id = take_inode(&status, directory, path);
            note_create((uint32_t)parent, name, id);
            before = id;
        }
        look((uint32_t)before);
    }
    leave();
    errno = saved;
    return descriptor;
}

#define MODE(flags)                                                                                \
    mode_t mode = 0;                                                                               \
    if ((flags) & O_CREAT) {                                                                       \
        va_list list;                                                                              \
        va_start(list, flags);                                                                     \
        mode = va_arg(list, mode_t);                                                               \
        va_end(list);                                                                              \
    }

int open(const char *path, int flags, ...) {
    MODE(flags)
    return open_any(AT_FDCWD, path, flags, mode);
}

int openat(int directory, const char *path, int flags, ...) {
    MODE(flags)
    return open_any(directory, path, flags, mode);
}

/* ── Contents ── */

static void changed(int descriptor) {
    if (!enter()) return;
    int64_t id = find_descriptor(descriptor);
    if (id >= 0) look((uint32_t)id);
    leave();
}

ssize_t write(int descriptor, const void *bytes, size_t count) {
    ssize_t done = REAL(write)(descriptor, bytes, count);
    int saved = errno;
    if (descriptor > 2) changed(descriptor);
    errno = saved;
    return done;
}

ssize_t pwrite(int descriptor, const void *bytes, size_t count, off_t offset) {
    ssize_t done = REAL(pwrite)(descriptor, bytes, count, offset);
    int saved = errno;
    changed(descriptor);
    errno = saved;
    return done;
}

ssize_t pwritev(int descriptor, const struct iovec *parts, int count, off_t offset) {
    ssize_t done = REAL(pwritev)(descriptor, parts, count, offset);
    int saved = errno;
    changed(descriptor);
    errno = saved;
    return done;
}

int ftruncate(int descriptor, off_t size) {
    int done = REAL(ftruncate)(descriptor, size);
    int saved = errno;
    changed(descriptor);
    errno = saved;
    return done;
}

long syscall(long number, ...) {
    long a[6];
    va_list list;
    va_start(list, number);
    for (int i = 0; i < 6; i++) a[i] = va_arg(list, long);
    va_end(list);
    if (number == SYS_fallocate && __atomic_load_n(&is_on, __ATOMIC_ACQUIRE)) {
        if (options.no_fallocate) {
            errno = EOPNOTSUPP;
            return -1;
        }
        long done = REAL(syscall)(number, a[0], a[1], a[2], a[3], a[4], a[5]);
        int saved = errno;
        changed((int)a[0]);
        errno = saved;
        return done;
    }
    return REAL(syscall)(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* ── Syncs ── */

static bool ends_with(const char *text, const char *end) {
    size_t n = strlen(text), m = strlen(end);
    return n >= m && !strcmp(text + n - m, end);
}

/* Whether the disk under test only pretends to sync. */
static bool is_lie(uint32_t id) {
    const char *name = inodes[id].name;
    bool is_directory = inodes[id].is_directory;
    switch (options.lie) {
    case LIE_ARCHIVES_SYNC: return is_directory && !strcmp(name, "archives");
    case LIE_LANES_SYNC: return is_directory && !strcmp(name, "lanes");
    case LIE_STORE_SYNC: return is_directory && (id == 0 || !strcmp(name, "store"));
    case LIE_JOURNAL_SYNC: return ends_with(name, ".journal");
    case LIE_PART_SYNC: return ends_with(name, ".part");
    default: return false;
    }
}

static int sync_any(int descriptor) {
    if (!enter()) return 0;
    int result = 0, error = 0;
    int64_t found = find_descriptor(descriptor);
    if (found >= 0) {
        uint32_t id = (uint32_t)found;
        look(id);
        syncs++;
        if (options.fail_sync && (syncs == options.fail_sync || syncs == options.fail_sync + 1)) {
            trace_add(trace, EVENT_FAILED, id, 0, 0, NULL, 0);
            error = EIO;
            result = -1;
        } else if (!is_lie(id)) {
            trace_add(trace, EVENT_SYNC, id, 0, 0, NULL, 0);
        }
    }
    leave();
    if (result != 0) errno = error;
    return result;
}

int fsync(int descriptor) { return sync_any(descriptor); }
int fdatasync(int descriptor) { return sync_any(descriptor); }

/* ── Names ── */

/* A removed archive is kept beside the store, so that its content stays known. */
static void keep_archive(int directory, const char *path, const char *name) {
    if (!options.keep || !ends_with(name, ".cwa")) return;
    char target[PATH_BYTES];
    snprintf(target, sizeof target, "%s/%llu.cwa", options.keep, (unsigned long long)++kept);
    if (linkat(directory, path, AT_FDCWD, target, 0) == 0)
        trace_add(trace, EVENT_ARCHIVE_GONE, 0, 0, kept, NULL, 0);
}

static int unlink_any(int directory, const char *path, int flags) {
    if (!enter()) return REAL(unlinkat)(directory, path, flags);
    const char *name;
    int64_t parent = find_parent(directory, path, &name);
    int64_t id = parent < 0 ? -1 : find_name(directory, path);
    if (id >= 0) look((uint32_t)id);
    if (parent >= 0 && id >= 0) keep_archive(directory, path, name);
    int result = REAL(unlinkat)(directory, path, flags);
    int saved = errno;
    if (result == 0 && id >= 0) {
        trace_add(trace, EVENT_REMOVE, (uint32_t)parent, (uint32_t)id, 0, name,
                  (uint32_t)strlen(name) + 1);
        forget((uint32_t)id);
        inodes[id].is_live = false;
    }
    leave();
    errno = saved;
    return result;
}

int unlink(const char *path) { return unlink_any(AT_FDCWD, path, 0); }
int unlinkat(int directory, const char *path, int flags) {
    return unlink_any(directory, path, flags);
}
int rmdir(const char *path) { return unlink_any(AT_FDCWD, path, AT_REMOVEDIR); }

static int rename_any(int from, const char *old_path, int to, const char *new_path) {
    if (!enter()) return REAL(renameat)(from, old_path, to, new_path);
    const char *old_name, *new_name;
    int64_t parent = find_parent(from, old_path, &old_name);
    int64_t target = find_parent(to, new_path, &new_name);
    int64_t id = parent < 0 ? -1 : find_name(from, old_path);
    int64_t replaced = target < 0 ? -1 : find_name(to, new_path);
    if (id >= 0) look((uint32_t)id);
    int result = REAL(renameat)(from, old_path, to, new_path);
    int saved = errno;
    if (result == 0 && id >= 0) {
        if (parent != target) {
            fprintf(stderr, "sim: a rename between directories is not modelled\n");
            abort();
        }
        char names[PATH_BYTES];
        uint32_t first = (uint32_t)strlen(old_name) + 1, second = (uint32_t)strlen(new_name) + 1;
        memcpy(names, old_name, first);
        memcpy(names + first, new_name, second);
        trace_add(trace, EVENT_RENAME, (uint32_t)parent, (uint32_t)id, 0, names, first + second);
        snprintf(inodes[id].name, sizeof inodes[id].name, "%s", new_name);
        if (replaced >= 0 && replaced != id) {
            forget((uint32_t)replaced);
            inodes[replaced].is_live = false;
        }
    }
    leave();
    errno = saved;
    return result;
}

int rename(const char *from, const char *to) {
    return rename_any(AT_FDCWD, from, AT_FDCWD, to);
}
int renameat(int from, const char *old_path, int to, const char *new_path) {
    return rename_any(from, old_path, to, new_path);
}

static void made(int directory, const char *path, const char *target) {
    const char *name;
    struct stat status;
    int64_t parent = find_parent(directory, path, &name);
    if (parent < 0 || fstatat(directory, path, &status, AT_SYMLINK_NOFOLLOW) != 0) return;
    uint32_t id = take_inode(&status, directory, path);
    note_create((uint32_t)parent, name, id);
    if (target) trace_add(trace, EVENT_DATA, id, 0, 0, target, (uint32_t)strlen(target));
}

int mkdirat(int directory, const char *path, mode_t mode) {
    if (!enter()) return REAL(mkdirat)(directory, path, mode);
    int result = REAL(mkdirat)(directory, path, mode), saved = errno;
    if (result == 0) made(directory, path, NULL);
    leave();
    errno = saved;
    return result;
}

int symlinkat(const char *target, int directory, const char *path) {
    if (!enter()) return REAL(symlinkat)(target, directory, path);
    int result = REAL(symlinkat)(target, directory, path), saved = errno;
    if (result == 0) made(directory, path, target);
    leave();
    errno = saved;
    return result;
}
