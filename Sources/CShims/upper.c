/* Finds out what lies below an overlayfs. The overlay answers fstatfs(2) with its own type,
 * whatever its upper layer is, and /proc names a path that a container cannot see. But facts
 * about a file come from the upper layer. So this code creates a scratch file there and asks it
 * questions that only the file systems that overwrite in place answer. An upper layer that gives
 * no proof counts as one that does not overwrite in place. At open only. */
#include "CFork.h"
#include "CShims.h"

#include <linux/fiemap.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

enum { PROBE_BYTES = 65536 };

/* True if the blocks are there, reserved and unwritten, as a file system with blocks of its own
 * reports them. FUSE, ZFS and memory answer EOPNOTSUPP. */
static bool has_reserved_blocks(int fd) {
    union {
        struct fiemap map;
        char bytes[sizeof(struct fiemap) + 16 * sizeof(struct fiemap_extent)];
    } asked = {.map = {.fm_length = PROBE_BYTES, .fm_extent_count = 16}};
    if (ioctl(fd, FS_IOC_FIEMAP, &asked.map) != 0) return false;
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < asked.map.fm_mapped_extents && i < 16; i++) {
        if (!(asked.map.fm_extents[i].fe_flags & FIEMAP_EXTENT_UNWRITTEN)) return false;
        bytes += asked.map.fm_extents[i].fe_length;
    }
    return bytes >= PROBE_BYTES;
}

/* Only ext4 flags files that are made of extents, and only xfs flags files with preallocated
 * blocks. */
static bool is_ext4_or_xfs(int fd) {
    long flags = 0;
    if (ioctl(fd, FS_IOC_GETFLAGS, &flags) == 0 && (flags & FS_EXTENT_FL)) return true;
    struct fsxattr extended = {0};
    return ioctl(fd, FS_IOC_FSGETXATTR, &extended) == 0 &&
           (extended.fsx_xflags & FS_XFLAG_PREALLOC);
}

/* Detects tmpfs: a page that was written, synced and asked to leave is still in memory, because
 * it has no other place. A page of a cache has left (ZFS, FUSE). This costs no disk anything:
 * where there is a disk, the checks above have already answered. */
static bool is_memory(int fd) {
    if (pwrite(fd, "memory", 6, 0) != 6 || fdatasync(fd) != 0) return false;
    if (posix_fadvise(fd, 0, PROBE_BYTES, POSIX_FADV_DONTNEED) != 0) return false;
    size_t page = (size_t)getpagesize();
    void *start = mmap(NULL, page, PROT_READ, MAP_SHARED, fd, 0);
    if (start == MAP_FAILED) return false;
    unsigned char resident = 0;
    bool done = mincore(start, page, &resident) == 0;
    munmap(start, page);
    return done && (resident & 1);
}

bool cwi_upper_keeps_mappings(int directory, const char *name) {
    int fd = cwi_file_open_at(directory, name, O_RDWR | O_CREAT | O_EXCL, 0600);
    if (fd < 0) return false;
    unlinkat(directory, name, 0);
    bool keeps = cw_file_size_limit() >= PROBE_BYTES && cw_fallocate(fd, 0, 0, PROBE_BYTES) == 0;
    if (keeps) {
        struct stat file;
        bool on_disk = has_reserved_blocks(fd);
        keeps = on_disk ? is_ext4_or_xfs(fd)
                        : fstat(fd, &file) == 0 && file.st_blocks * 512 >= PROBE_BYTES &&
                              is_memory(fd);
    }
    cwi_file_close(fd);
    return keeps;
}
