/* Segment files that are reused: which ones, and what a reader sees of them. */

/* ── A file whose pages have left memory is not used again (R15) ── */

enum { EVICTED_GOAL = 40, EVICTED_BURSTS_MAX = 400, EVICTED_AT_ONCE_MAX = 1000 };
static int is_evicting;
/* Files that had lost pages just before the last archive got its name. One thread at a time
 * archives, and uses its files again before the next archive. */
static ino_t evicted[EVICTED_AT_ONCE_MAX];
static size_t evicted_count;
/* Over all archives; files that were used again, and those of them that had lost pages. */
static _Atomic int evictions, used_again, used_evicted;

/* -1: the file is gone. */
static long pages_gone(int file) {
    unsigned char states[1024];
    struct stat status;
    if (file < 0 || fstat(file, &status) != 0) return -1;
    size_t pages = ((size_t)status.st_size + 4095) / 4096;
    HOLDS(pages > 0 && pages <= sizeof states);
    void *memory = mmap(NULL, pages * 4096, PROT_READ, MAP_SHARED, file, 0);
    long gone = -1;
    if (memory != MAP_FAILED && mincore(memory, pages * 4096, states) == 0) {
        gone = 0;
        for (size_t i = 0; i < pages; i++) gone += !(states[i] & 1);
    }
    if (memory != MAP_FAILED) munmap(memory, pages * 4096);
    return gone;
}

/* Only its mapping lets go of a mapped page. Supply may unmap any of these meanwhile: then the
 * calls fail, or let other pages go, which come back when they are touched. */
static void evict_mapped(void) {
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[4600], path[4200];
    for (unsigned long start, end; maps && fgets(line, sizeof line, maps);) {
        if (sscanf(line, "%lx-%lx %*s %*s %*s %*s %4199s", &start, &end, path) != 3) continue;
        if (strstr(path, "/lanes/") == NULL || !ends_with(path, ".sealed")) continue;
        msync((void *)start, end - start, MS_SYNC);
        madvise((void *)start, end - start, MADV_PAGEOUT);
    }
    if (maps) fclose(maps);
}

static void evict_lanes(void) {
    char path[4200];
    struct stat status;
    evict_mapped();
    snprintf(path, sizeof path, "%s/lanes", store);
    DIR *lanes = opendir(path);
    for (struct dirent *entry; lanes && (entry = readdir(lanes));) {
        if (!ends_with(entry->d_name, ".sealed")) continue;
        int file = openat(dirfd(lanes), entry->d_name, O_RDWR | O_CLOEXEC);
        if (file < 0) continue;
        if (fsync(file) == 0) posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED); /* if unmapped */
        if (pages_gone(file) > 0 && evicted_count < EVICTED_AT_ONCE_MAX) {
            EXPECT(0, fstat(file, &status));
            evicted[evicted_count++] = status.st_ino;
            evictions++;
        }
        close(file);
    }
    if (lanes) closedir(lanes);
}

/* An archive has been read when it gets its name. Then its files get the names of spares. (By then
 * a store to the header has brought pages back, if any were gone.) */
static void evict_and_look(int directory, const char *from, const char *to) {
    struct stat status;
    if (ends_with(to, ".cwa")) {
        evicted_count = 0;
        if (is_evicting) evict_lanes();
    }
    if (!ends_with(from, ".sealed")) return;
    EXPECT(0, fstatat(directory, from, &status, AT_SYMLINK_NOFOLLOW));
    used_again++;
    for (size_t i = 0; i < evicted_count; i++) used_evicted += evicted[i] == status.st_ino;
}

static void case_evicted(void) {
    uint64_t number = 0;
    stand_open(128u << 10);
    at_rename = evict_and_look;
    is_evicting = 1;
    for (int burst = 0; burst < EVICTED_BURSTS_MAX && evictions < EVICTED_GOAL; burst++) {
        for (int i = 0; i < 4000; i++) EXPECT(CW_OK, numbered(hazard_log, 0, number++));
        EXPECT(CW_OK, cw_archive_wait(stand_engine, ARCHIVE_WAIT_MS));
        if (burst == 40 && evictions == 0) exit(77); /* the file system is in memory */
    }
    HOLDS(evictions >= EVICTED_GOAL);
    is_evicting = 0;
    stand_reuse(4); /* it is the pages: other files are used again at this rate */
    EXPECT(used_again, reused_so_far(stand_engine));
    EXPECT(0, used_evicted);
    fprintf(stderr, "%d evictions, %d files used again\n", evictions, used_again);
    EXPECT(CW_OK, cw_close(&stand_engine, 60000));
    at_rename = NULL;
}

/* ── A file that is reused between two reads of one reader (R11) ──
 * The reader's lock prevents it, but on a network file system each machine may keep its own. */

enum { READS_MAX = 400 };
static struct stat read_file;
static __thread int reads_to_go; /* of that file, until it is reused; 0: nothing happens */
static int read_lives;           /* how often the file had been reused by then */

static int is_read_file(int descriptor) {
    struct stat status;
    return fstat(descriptor, &status) == 0 && status.st_ino == read_file.st_ino &&
           status.st_dev == read_file.st_dev;
}

/* Two lives later the file has other bytes where the reader's were. */
static void use_again(int descriptor) {
    uint64_t salt = 0, now = 0;
    struct stat status = {.st_nlink = 1};
    EXPECT(8, syscall(SYS_pread64, descriptor, &salt, sizeof salt, 80));
    for (int i = 0; i < 40 && read_lives < 2 && status.st_nlink > 0; i++, salt = now) {
        stand_reuse(1);
        EXPECT(8, syscall(SYS_pread64, descriptor, &now, sizeof now, 80));
        EXPECT(0, fstat(descriptor, &status));
        read_lives += now != salt;
    }
}

ssize_t pread(int descriptor, void *bytes, size_t count, off_t at) {
    if (reads_to_go > 0 && is_read_file(descriptor) && --reads_to_go == 0) use_again(descriptor);
    return syscall(SYS_pread64, descriptor, bytes, count, at);
}

int flock(int descriptor, int operation) {
    if (reads_to_go > 0 && operation & LOCK_SH && is_read_file(descriptor)) return 0;
    return (int)syscall(SYS_flock, descriptor, operation);
}

static cw_reader_options since_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (cw_reader_options){
        .struct_size = sizeof(cw_reader_options), .kinds = 1u << CW_KIND_LOG,
        .since_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec - 1000000u};
}

/* Opens a reused file with some records in it. */
static int stand_put_into_reused(int records) {
    for (int tries = 0; !stand_is_reused() && tries < 100; tries++) stand_reuse(1);
    for (int i = 0; i < records; i++) stand_put(1000);
    unsigned long generation;
    int file = stand_segment(&generation);
    EXPECT(0, fstat(file, &read_file));
    read_lives = 0;
    return file;
}

/* Before each of the reader's reads in turn: it returns what was there, once and in order, from the
 * file or from its archive. */
static void case_reused_reads(void) {
    enum { RECORDS = 24 };
    stand_open(128u << 10);
    int reads = 0, reused = 0, is_over = 0;
    for (int n = 1; n < READS_MAX && !is_over; n++) {
        cw_reader_options options = since_now();
        uint64_t first = stand_next;
        int file = stand_put_into_reused(RECORDS);
        tally t = {.unordered = WRITERS_MAX};
        reads_to_go = n;
        read_with(&options, tally_each, &t);
        is_over = reads_to_go > 0;
        reads_to_go = 0;
        close(file);
        EXPECT(RECORDS, t.count[7]);
        EXPECT(stand_next - 1, t.last[7]);
        EXPECT(RECORDS * first + RECORDS * (RECORDS - 1) / 2, t.sum[7]);
        EXPECT(0, t.bad);
        EXPECT(0, damaged);
        reads++;
        reused += read_lives == 2;
    }
    HOLDS(is_over && reused >= 10);
    fprintf(stderr, "%d reads, %d beside a file used again\n", reads, reused);
    stand_end();
}

/* With its lock a reader keeps its open file. Without a reader the file is reused. */
static void case_reader_keeps_file(void) {
    enum { ROUNDS = 8, RECORDS = 24 };
    stand_open(128u << 10);
    int reused = 0;
    for (int round = 0; round < ROUNDS; round++) {
        cw_reader_options options = since_now();
        int file = stand_put_into_reused(RECORDS);
        cw_reader *reader = NULL;
        cw_record_view view = {.struct_size = sizeof view};
        if (round % 2) {
            EXPECT(CW_OK, cw_reader_open(store, &options, &reader));
            EXPECT(CW_OK, cw_reader_next(reader, &view));
        }
        use_again(file);
        if (reader) {
            EXPECT(0, read_lives);
            EXPECT(CW_OK, cw_reader_close(&reader));
        }
        reused += read_lives;
        close(file);
    }
    HOLDS(reused >= ROUNDS / 2);
    stand_end();
}
