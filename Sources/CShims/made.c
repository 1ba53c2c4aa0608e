/* Whom the files of a store belong to. */
#include "CShims.h"

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

int cwi_make_directory_at(int directory, const char *name) {
    struct stat parent, made;
    if (mkdirat(directory, name, 0700) != 0) return errno;
    if (directory == AT_FDCWD || fstat(directory, &parent) != 0) return 0;
    if (!is_others(&parent) && (parent.st_mode & SHARED) != SHARED) return 0;
    int fd = openat(directory, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    /* Another directory may have taken the name. One of ours that is closed to everybody else was
     * not moved here by others. */
    if (fd >= 0 && fstat(fd, &made) == 0 && made.st_uid == geteuid() && !(made.st_mode & 0077))
        (void)take_after(&parent, fd, geteuid() == 0, SHARED | S_IRWXU);
    if (fd >= 0) close(fd);
    return 0;
}
