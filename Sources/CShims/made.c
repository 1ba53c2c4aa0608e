/* Which user owns the files that a store gets, and how a name in it is reached where others may
 * change it. */
#define _GNU_SOURCE 1
#include "CFork.h"

#include <dirent.h>
#include <limits.h>
#include <linux/capability.h>
#include <sys/auxv.h>
#include <sys/stat.h>

enum { SHARED = S_ISGID | S_IRGRP | S_IXGRP };

static bool is_others(const struct stat *folder) {
    return folder->st_uid != 0 || folder->st_gid != 0;
}

/* Gives what this process made, as root or not, to whom its directory belongs. False: the host has
 * given up root's rights since. */
static bool take_after(const struct stat *parent, int fd, bool was_root, mode_t shared) {
    if (was_root && fchown(fd, parent->st_uid, parent->st_gid) != 0 && geteuid() != 0) return false;
    if ((parent->st_mode & SHARED) == SHARED) (void)!fchmod(fd, shared);
    return true;
}

int cwi_open_at(int directory, const char *name, int flags, mode_t mode) {
    struct stat parent;
    /* O_EXCL: this call makes the file, so nobody puts another one in its place. */
    bool makes = (flags & O_EXCL) && directory != AT_FDCWD && fstat(directory, &parent) == 0;
    while (true) {
        bool is_root = makes && is_others(&parent) && geteuid() == 0;
        int fd = openat(directory, name, flags | O_CLOEXEC | O_NOFOLLOW, mode);
        fd = cw_above_standard(fd);
        if (fd < 0 || !makes || take_after(&parent, fd, is_root, 0640)) return fd;
        /* Its user could not open it again. */
        close(fd);
        if (unlinkat(directory, name, 0) != 0) return -1;
    }
}

static bool is_empty(int fd) {
    _Alignas(struct dirent64) char names[512];
    long count;
    while ((count = syscall(SYS_getdents64, fd, names, sizeof names)) > 0)
        for (long at = 0; at < count;) {
            const struct dirent64 *entry = (const void *)(names + at);
            if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) return false;
            at += entry->d_reclen;
        }
    return count == 0;
}

/* A directory that was just made by this user. Others may have put another one in its place, but
 * none of ours that is closed to them, unless it was in the same folder: then it has names. */
static int open_made(int directory, const char *name) {
    struct stat made;
    int fd = openat(directory, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (fd >= 0 && (fstat(fd, &made) != 0 || made.st_uid != geteuid() || (made.st_mode & 0077) ||
                    !is_empty(fd))) {
        close(fd);
        return -1;
    }
    return fd;
}

static void give(const struct stat *model, int directory, const char *name) {
    if (!is_others(model) && (model->st_mode & SHARED) != SHARED) return;
    int fd = open_made(directory, name);
    if (fd < 0) return;
    (void)take_after(model, fd, geteuid() == 0, SHARED | S_IRWXU);
    close(fd);
}

int cwi_make_directory_at(int directory, const char *name) {
    struct stat parent;
    bool is_in_store = directory != AT_FDCWD && fstat(directory, &parent) == 0;
    int error = mkdirat(directory, name, 0700) == 0 ? 0 : errno;
    /* Another process may have made it and not given it away yet: a file that is made in it would
     * stay this user's, and the directory, too. */
    if (is_in_store && (error == 0 || error == EEXIST)) give(&parent, directory, name);
    return error;
}

/* The directory of this name. A link leads there only out of a directory that root alone may
 * change. */
static int step_by_root(int folder, const char *name) {
    struct stat in, found;
    int next = cwi_step(folder, name);
    if (next < 0 || fstat(next, &found) != 0 || !S_ISLNK(found.st_mode)) return next;
    close(next);
    if (found.st_uid == 0 && fstat(folder, &in) == 0 && in.st_uid == 0 && !(in.st_mode & 0022))
        return openat(folder, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
    errno = ELOOP;
    return -1;
}

/* Where root makes a directory for somebody else. The path begins with a slash. */
static int open_by_root(char *path) {
    int folder = openat(AT_FDCWD, "/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    char *name = path, *slash;
    while (folder >= 0 && *(name += strspn(name, "/")) != 0) {
        if ((slash = strchr(name, '/')) != NULL) *slash = 0;
        int next = step_by_root(folder, name), error = errno;
        close(folder);
        folder = next, errno = error;
        if (slash == NULL) break;
        *slash = '/', name = slash;
    }
    return folder;
}

int cwi_make_directory_again(char *path, uid_t owner, gid_t group) {
    const struct stat model = {.st_uid = owner, .st_gid = group};
    char *slash = strrchr(path, '/');
    if (slash == NULL) return ENOENT;
    *slash = 0;
    int parent = path[0] == '/' && owner != 0 && geteuid() == 0
                     ? open_by_root(path)
                     : openat(AT_FDCWD, slash == path ? "/" : path,
                              O_PATH | O_DIRECTORY | O_CLOEXEC);
    int error = parent < 0 ? errno : 0;
    *slash = '/';
    if (parent < 0) return error;
    if (mkdirat(parent, slash + 1, 0700) == 0)
        give(&model, parent, slash + 1);
    else
        error = errno;
    close(parent);
    return error;
}

/* 0: not known yet. Else the user's number and one. */
static uint64_t bound;

uint32_t cwi_bound_user(void) {
    /* ORDER: relaxed. Every thread finds the same (A46). */
    uint64_t known = __atomic_load_n(&bound, __ATOMIC_RELAXED);
    if (known != 0) return (uint32_t)(known - 1);
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct held[2];
    uid_t real, effective, saved;
    uint32_t user = CWI_NO_USER;
    if (getauxval(AT_SECURE) == 0 && syscall(SYS_capget, &header, held) == 0 &&
        (held[0].permitted | held[1].permitted) == 0 && getresuid(&real, &effective, &saved) == 0 &&
        real == effective && real == saved && real != 0)
        user = real;
    __atomic_store_n(&bound, (uint64_t)user + 1, __ATOMIC_RELAXED);
    return user;
}

int cwi_step(int directory, const char *name) {
    return openat(directory, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
}

int cwi_enter(int directory, const char *name, const char **last) {
    int folder = directory;
    for (const char *slash; (slash = strchr(name, '/')) != NULL; name = slash + 1) {
        char part[NAME_MAX + 1];
        size_t length = (size_t)(slash - name);
        int next = -1;
        if (length > NAME_MAX) {
            errno = ENAMETOOLONG;
        } else if (length == 2 && name[0] == '.' && name[1] == '.') {
            errno = ELOOP;
        } else {
            memcpy(part, name, length);
            part[length] = 0;
            next = cwi_file_open_own(folder, part, O_PATH | O_DIRECTORY, 0);
        }
        int error = errno;
        if (folder != directory) cwi_file_close(folder);
        errno = error;
        if (next < 0) return -1;
        folder = next;
    }
    *last = name;
    return folder;
}
