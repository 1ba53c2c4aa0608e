/* Whom the files of a store belong to. */
#include "CShims.h"

#include <sys/stat.h>

enum { SHARED = S_ISGID | S_IRGRP | S_IXGRP };

/* Gives a file that was just made to whom its directory belongs. */
static void take_after(int directory, int fd, mode_t shared) {
    struct stat parent;
    if (fstat(directory, &parent) != 0) return;
    if (geteuid() == 0 && (parent.st_uid != 0 || parent.st_gid != getegid()))
        (void)!fchown(fd, parent.st_uid, parent.st_gid);
    if ((parent.st_mode & SHARED) == SHARED) (void)!fchmod(fd, shared);
}

int cw_open_at(int directory, const char *name, int flags, mode_t mode) {
    int fd = openat(directory, name, flags | O_CLOEXEC | O_NOFOLLOW, mode);
    fd = cw_above_standard(fd);
    /* O_EXCL: this call made the file, so nobody put another one in its place. */
    if (fd >= 0 && (flags & O_EXCL) && directory != AT_FDCWD) take_after(directory, fd, 0640);
    return fd;
}

int cw_make_directory_at(int directory, const char *name) {
    if (mkdirat(directory, name, 0700) != 0) return errno;
    if (directory == AT_FDCWD) return 0;
    int fd = openat(directory, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    struct stat made;
    /* Another directory may have taken the name. One of ours that is closed to everybody else was
     * not moved here by others. */
    if (fd >= 0 && fstat(fd, &made) == 0 && made.st_uid == geteuid() && !(made.st_mode & 0077))
        take_after(directory, fd, SHARED | S_IRWXU);
    if (fd >= 0) close(fd);
    return 0;
}
