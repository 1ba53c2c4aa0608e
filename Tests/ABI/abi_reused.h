/* Segment files that are reused: which ones, and what a reader sees of them. */

/* ── A file whose pages have left memory is not used again (R15) ── */

static _Atomic int pages_evicted, pages_left;

static void count_pages(void *memory, size_t size) {
    unsigned char states[4096];
    size_t pages = size / 4096;
    if (pages > sizeof states || mincore(memory, size, states) != 0) return;
    int gone = 0;
    for (size_t i = 0; i < pages; i++) gone += !(states[i] & 1);
    if (gone > 0) pages_evicted++;
    else pages_left++;
}

/* The engine has already unmapped it. */
static void evict_unmapped(const char *name) {
    char path[4600];
    snprintf(path, sizeof path, "%s/lanes/%s", store, name);
    int file = open(path, O_RDWR | O_CLOEXEC);
    struct stat status;
    if (file >= 0 && fsync(file) == 0 && fstat(file, &status) == 0 && status.st_size > 0) {
        posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
        void *memory = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_SHARED, file, 0);
        if (memory != MAP_FAILED) {
            count_pages(memory, (size_t)status.st_size);
            munmap(memory, (size_t)status.st_size);
        }
    }
    if (file >= 0) close(file);
}

/* Evicts all pages of lanes/ just before an archive gets its name, so after reading. */
static void evict_lanes(int directory, const char *from, const char *to) {
    (void)directory, (void)from;
    static char mapped[1 << 16]; /* there is one archiver */
    FILE *maps = ends_with(to, ".cwa") ? fopen("/proc/self/maps", "r") : NULL;
    if (maps == NULL) return;
    char line[4600], path[4200];
    size_t used = 0;
    mapped[0] = 0;
    for (unsigned long start, end; fgets(line, sizeof line, maps);) {
        if (sscanf(line, "%lx-%lx %*s %*s %*s %*s %4199s", &start, &end, path) != 3) continue;
        if (strstr(path, "/lanes/") == NULL || !ends_with(path, ".sealed")) continue;
        if (used + strlen(path) + 2 < sizeof mapped)
            used += (size_t)sprintf(mapped + used, "%s\n", path);
        msync((void *)start, end - start, MS_SYNC);
        madvise((void *)start, end - start, MADV_PAGEOUT);
        count_pages((void *)start, end - start);
    }
    fclose(maps);
    snprintf(path, sizeof path, "%s/lanes", store);
    DIR *lanes = opendir(path);
    for (struct dirent *entry; lanes && (entry = readdir(lanes));)
        if (ends_with(entry->d_name, ".sealed") && strstr(mapped, entry->d_name) == NULL)
            evict_unmapped(entry->d_name);
    if (lanes) closedir(lanes);
}

static void case_evicted(void) {
    cw_options options = defaults();
    options.segment_bytes = 128u << 10;
    cw_engine *engine = open_with(&options);
    cw_logger *log = logger_of(engine, "evicted");
    at_rename = evict_lanes;
    for (uint64_t i = 0; i < 40 * 4000; i++) {
        EXPECT(CW_OK, numbered(log, 0, i));
        if (i % 4000 == 3999) EXPECT(CW_OK, cw_archive_wait(engine, ARCHIVE_WAIT_MS));
    }
    at_rename = NULL;
    uint64_t reused = reused_so_far(engine);
    EXPECT(CW_OK, cw_close(&engine, 20000));
    if (pages_evicted == 0) exit(77); /* the file system is in memory */
    HOLDS(pages_evicted >= 40);
    HOLDS(reused <= (uint64_t)pages_left);
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
