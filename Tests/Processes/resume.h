/* A process that is resumed in a copy of its store, as a cloned virtual machine is: its memory, its
 * lane and its threads' places are those of the original, its files are the copy's. */
#ifndef CORDWOOD_TESTS_RESUME_H
#define CORDWOOD_TESTS_RESUME_H
#include "host.h"
#include <sys/mount.h>

enum { RESUME_DENIED = 77, RESUME_RANGES = 256, RESUME_INODES = 1024, RESUME_TEXT = 1 << 20 };

typedef struct {
    void *start;
    size_t bytes;
} resume_range;

/* The inodes of the copy's files, and those of the original's, which they have in the resumed
 * process: on a cloned disk, both are the same. */
static struct {
    ino_t here, was;
} resume_inodes[RESUME_INODES];
static size_t resume_inode_count;

static int resume_stat(int directory, const char *path, struct stat *status, int flags) {
    if (syscall(SYS_newfstatat, directory, path, status, flags) != 0) return -1;
    for (size_t i = 0; i < resume_inode_count; i++)
        if (resume_inodes[i].here == status->st_ino) {
            status->st_ino = resume_inodes[i].was;
            break;
        }
    return 0;
}

/* The library's calls come here. */
int fstat(int fd, struct stat *status) { return resume_stat(fd, "", status, AT_EMPTY_PATH); }
int stat(const char *restrict path, struct stat *restrict status) {
    return resume_stat(AT_FDCWD, path, status, 0);
}
int lstat(const char *restrict path, struct stat *restrict status) {
    return resume_stat(AT_FDCWD, path, status, AT_SYMLINK_NOFOLLOW);
}
int fstatat(int fd, const char *restrict path, struct stat *restrict status, int flags) {
    return resume_stat(fd, path, status, flags);
}

static void resume_inode(int fd, ino_t was) {
    struct stat here;
    if (fstat(fd, &here) != 0 || here.st_ino == was) return;
    if (resume_inode_count == RESUME_INODES) _exit(4);
    resume_inodes[resume_inode_count].here = here.st_ino;
    resume_inodes[resume_inode_count++].was = was;
}

/* A file of /proc without stdio, which may allocate. Ends with a zero byte. */
static char *resume_read(const char *path) {
    static char text[RESUME_TEXT];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = 0, more;
    while (fd >= 0 && (more = read(fd, text + length, sizeof text - 1 - (size_t)length)) > 0)
        length += more;
    if (fd < 0 || length == (ssize_t)sizeof text - 1) _exit(4);
    close(fd);
    text[length] = 0;
    return text;
}

/* The memory that a child would find empty. Returns how many ranges. */
static size_t resume_wiped(resume_range *ranges) {
    size_t count = 0;
    unsigned long start = 0, end = 0;
    char *rest = resume_read("/proc/self/smaps"), *line;
    while ((line = strsep(&rest, "\n"))) {
        unsigned long first, last;
        if (sscanf(line, "%lx-%lx ", &first, &last) == 2) start = first, end = last;
        if (strncmp(line, "VmFlags:", 8) != 0 || !strstr(line, " wf")) continue;
        if (count == RESUME_RANGES) _exit(4);
        ranges[count++] = (resume_range){(void *)start, end - start};
    }
    return count;
}

/* True of the store and of what it has. */
static bool resume_has(const char *path) {
    size_t length = strlen(store_path);
    return strncmp(path, store_path, length) == 0 && (path[length] == 0 || path[length] == '/');
}

/* The store's paths, mappings and descriptors are the copy's from now on. */
static void resume_files(const char *copy) {
    char name[64], path[4096];
    if ((unshare(CLONE_NEWNS) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) ||
        mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount(copy, store_path, NULL, MS_BIND, NULL) != 0)
        _exit(RESUME_DENIED);
    char *rest = resume_read("/proc/self/maps"), *line;
    while ((line = strsep(&rest, "\n"))) {
        unsigned long start, end, offset, inode;
        char rights[8];
        int at = 0;
        if (sscanf(line, "%lx-%lx %7s %lx %*s %lu %n", &start, &end, rights, &offset, &inode,
                   &at) < 5 ||
            !resume_has(line + at))
            continue;
        int fd = open(line + at, O_RDWR | O_CLOEXEC);
        int access = (rights[0] == 'r' ? PROT_READ : 0) | (rights[1] == 'w' ? PROT_WRITE : 0);
        if (fd < 0) continue; /* removed while it was copied: no record goes there */
        if (mmap((void *)start, end - start, access, MAP_SHARED | MAP_FIXED, fd, (off_t)offset) ==
            MAP_FAILED)
            _exit(4);
        resume_inode(fd, inode);
        close(fd);
    }
    for (int fd = 3; fd < 1024; fd++) {
        snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
        ssize_t length = readlink(name, path, sizeof path - 1);
        if (length < 0) continue;
        path[length] = 0;
        if (!resume_has(path)) continue;
        int flags = fcntl(fd, F_GETFL) & (O_ACCMODE | O_DIRECTORY | O_APPEND);
        int other = open(path, flags | O_CLOEXEC);
        struct stat was;
        if (other < 0 || fstat(fd, &was) != 0) continue;
        resume_inode(other, was.st_ino);
        dup2(other, fd);
        close(other);
    }
}

/* Returns 0 in the process that goes on in `copy`, which must not allocate and ends by
 * kill(2); else its number. */
static pid_t resume_in(const char *copy) {
    static resume_range ranges[RESUME_RANGES];
    size_t count = resume_wiped(ranges);
    enum { WIPE = 18, KEEP = 19 }; /* MADV_WIPEONFORK, MADV_KEEPONFORK */
    for (size_t i = 0; i < count; i++) madvise(ranges[i].start, ranges[i].bytes, KEEP);
    pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
    for (size_t i = 0; i < count; i++) madvise(ranges[i].start, ranges[i].bytes, WIPE);
    if (child == 0) resume_files(copy);
    return child;
}

#endif
