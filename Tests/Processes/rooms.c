/* Hosts that enter a smaller room after they opened a store. */
#include "host.h"

#include <dlfcn.h>
#include <grp.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>

/* Logs, rolls, flushes and closes: all of it must go on. */
static void go_on(cw_engine *engine, cw_logger *log, uint32_t index, uint64_t records) {
    for (int round = 0; round < 4; round++) {
        write_many(log, index, records / 4);
        EXPECT(CW_OK, cw_roll(engine));
    }
    EXPECT(CW_OK, cw_archive_wait(engine, 20000));
    EXPECT(CW_OK, cw_flush(engine, CW_DURABLE_MACHINE, 20000));
    EXPECT(CW_OK, cw_close(&engine, 20000));
}

/* drop UID [refused]: opens as root and goes on as that user, who may lack the rights. */
static void drop(int argc, char **argv) {
    gid_t id = (gid_t)atoi(argv[0]);
    cw_logger *log;
    cw_engine *engine = open_small(1 << 20, "rooms", &log);
    uint32_t index = slot_take();
    write_many(log, index, 100);
    if (setgroups(0, NULL) != 0 || setgid(id) != 0 || setuid(id) != 0) exit(2);
    if (argc < 2) {
        go_on(engine, log, index, 60000);
        return;
    }
    cw_status status = CW_OK;
    for (int i = 0; i < 60000 && status == CW_OK; i++) status = write_next(log, index);
    char why[512] = "";
    cw_last_error(why, sizeof why);
    printf("%s: %s\n", cw_status_name(status), why);
    EXPECT(CW_OK, cw_close(&engine, 20000));
}

/* group: a store that its group may read. */
static void group(int argc, char **argv) {
    (void)argc, (void)argv;
    umask(077);
    cw_options options = options_of(store_path);
    options.flags = CW_FLAG_GROUP_READ;
    cw_engine *engine = open_with(&options);
    cw_logger *log = logger_of(engine, "rooms");
    uint32_t index = slot_take();
    write_many(log, index, 100);
    EXPECT(CW_OK, cw_roll(engine));
    EXPECT(CW_OK, cw_archive_wait(engine, 20000));
    write_many(log, index, 100);
    printf("ready\n");
    while (getchar() != EOF) continue;
    EXPECT(CW_OK, cw_close(&engine, 20000));
}

/* The system calls that a filter may name. */
#define CALL(name) {#name, SYS_##name}
static const struct {
    const char *name;
    uint32_t number;
} calls[] = {
    CALL(read), CALL(write), CALL(openat), CALL(close), CALL(fstat), CALL(newfstatat), CALL(lseek),
    CALL(mmap), CALL(mprotect), CALL(munmap), CALL(brk), CALL(madvise), CALL(mremap),
    CALL(mincore), CALL(rt_sigprocmask), CALL(rt_sigaction), CALL(rt_sigreturn), CALL(ioctl),
    CALL(pread64), CALL(pwrite64), CALL(pwritev), CALL(preadv), CALL(fcntl), CALL(flock),
    CALL(fsync), CALL(fdatasync), CALL(sync_file_range), CALL(msync), CALL(ftruncate),
    CALL(fallocate), CALL(fadvise64), CALL(getdents64), CALL(renameat), CALL(renameat2),
    CALL(unlinkat), CALL(mkdirat), CALL(symlinkat), CALL(readlink), CALL(readlinkat),
    CALL(faccessat2), CALL(access), CALL(fchown), CALL(fchmod), CALL(fstatfs), CALL(statfs),
    CALL(futex), CALL(sched_yield), CALL(nanosleep), CALL(clock_nanosleep), CALL(clock_gettime),
    CALL(getrandom), CALL(getpid), CALL(gettid), CALL(geteuid), CALL(getegid), CALL(getuid),
    CALL(getgid), CALL(kill), CALL(tgkill), CALL(tkill), CALL(membarrier), CALL(prctl),
    CALL(getrlimit), CALL(prlimit64), CALL(sysinfo), CALL(uname), CALL(getcpu),
    CALL(sched_getaffinity), CALL(getpriority), CALL(setpriority), CALL(clone3), CALL(clone),
    CALL(set_robust_list),
    CALL(rseq), CALL(exit), CALL(exit_group), CALL(restart_syscall), CALL(inotify_init1),
    CALL(inotify_add_watch), CALL(inotify_rm_watch), CALL(poll), CALL(copy_file_range),
};

/* Allows those calls, of all threads, and answers others so. */
static void filter_set(uint32_t otherwise, int count, char **names) {
    struct sock_filter steps[2 * 128 + 2] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))};
    unsigned short n = 1;
    for (int i = 0; i < count; i++) {
        size_t k = 0;
        while (k < sizeof calls / sizeof *calls && strcmp(calls[k].name, names[i]) != 0) k++;
        if (k == sizeof calls / sizeof *calls || n > 2 * 128) {
            printf("%s: no such call\n", names[i]);
            exit(2);
        }
        steps[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, calls[k].number, 0, 1);
        steps[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    }
    steps[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, otherwise);
    struct sock_fprog program = {n, steps};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) exit(2);
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) != 0)
        exit(2);
}

/* filter OTHERS WHAT [NAME …]: logs, rolls, archives and flushes in rounds, each when told, under
 * a filter that allows those calls. OTHERS: what it does to others, "kill" or "refuse". WHAT:
 * "all" must go on, or a "quota" may refuse records, or the filter may ("little"). */
static void filter(int argc, char **argv) {
    if (argc < 2) exit(2);
    bool kills = strcmp(argv[0], "kill") == 0, all = strcmp(argv[1], "all") == 0;
    cw_options options = options_of(store_path);
    options.segment_bytes = 256 << 10;
    if (strcmp(argv[1], "quota") == 0) options.quota_bytes = 3 << 20;
    cw_engine *engine = open_with(&options);
    cw_logger *log = logger_of(engine, "rooms");
    uint32_t index = slot_take();
    write_many(log, index, 100);
    filter_set(kills ? SECCOMP_RET_KILL_PROCESS : SECCOMP_RET_ERRNO | EPERM, argc - 2, argv + 2);
    do {
        for (int i = 0; i < 20000; i++) {
            cw_status status = write_next(log, index);
            HOLDS(status == CW_OK || (!all && status == CW_E_FULL));
        }
        cw_status rolled = cw_roll(engine), archived = cw_archive_wait(engine, 20000);
        cw_status flushed = cw_flush(engine, CW_DURABLE_MACHINE, 20000);
        if (all) EXPECT(CW_OK, rolled), EXPECT(CW_OK, archived), EXPECT(CW_OK, flushed);
        (void)!write(1, "round\n", 6);
    } while (getchar() != EOF);
    EXPECT(CW_OK, cw_close(&engine, 20000));
    _exit(failures ? 1 : 0);
}

/* Lets archives wait to be made, or not; if count.c is preloaded. */
static void archives_hold(int wanted) {
    void (*hold)(int);
    void *address = dlsym(RTLD_DEFAULT, "count_hold");
    memcpy(&hold, &address, sizeof hold);
    if (hold) hold(wanted);
}

/* Fills that many segments. Without count.c, some of them are archived meanwhile. `each`: records
 * between two looks at the engine's counts, which list the store. */
static cw_engine *fill_segments(int argc, char **argv, uint64_t each) {
    archives_hold(1);
    uint64_t count = argc > 0 ? strtoull(argv[0], NULL, 10) : 100;
    cw_options options = options_of(store_path);
    options.segment_bytes = 64 << 10;
    cw_engine *engine = open_with(&options);
    cw_logger *log = logger_of(engine, "rooms");
    uint32_t index = slot_take();
    cw_stats stats = {.struct_size = sizeof stats};
    while (stats.segments_sealed < count && failures == 0) {
        write_many(log, index, each);
        EXPECT(CW_OK, cw_stats_get(engine, &stats, sizeof stats));
    }
    return engine;
}

/* segments COUNT: is killed then. */
static void segments(int argc, char **argv) {
    fill_segments(argc, argv, 500);
    if (failures == 0) raise(SIGKILL);
}

/* behind COUNT: archives them. */
static void behind(int argc, char **argv) {
    cw_engine *engine = fill_segments(argc, argv, 100000);
    archives_hold(0);
    EXPECT(CW_OK, cw_archive_wait(engine, 600000));
    EXPECT(CW_OK, cw_close(&engine, 60000));
}

static const test_case cases[] = {{"segments", segments}, {"behind", behind}, {"drop", drop},
                                  {"group", group},       {"filter", filter}};
MAIN(cases)
