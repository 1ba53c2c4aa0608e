/* Owners of a lane that others may mistake for dead: hidden from /proc, in another namespace,
 * stopped, replaced by exec(2), without descriptors. Each notes its kept records in the ledger. */
#include "host.h"
#include "../TestSupport/refuse.h"

static volatile sig_atomic_t stopped;
static void on_term(int number) {
    (void)number;
    stopped = 1;
}

/* What a daemon does with unknown descriptors. */
static void close_all(void) {
    for (int fd = 3; fd < 256; fd++) close(fd);
}

/* OPTION …: uid=N, refuse (no fallocate(2): records are written by pwrite), close, segment=BYTES,
 * exec, pause=US. Logs until SIGTERM. Prints "ready" when the first record is kept. */
static void case_log(int argc, char **argv) {
    cw_options options = options_of(store_path);
    int closes = 0, executes = 0, cannot = 0;
    uint64_t pause = 1000;
    for (int i = 0; i < argc; i++) {
        unsigned long n;
        if (sscanf(argv[i], "uid=%lu", &n) == 1) {
            if (setgid((gid_t)n) != 0 || setuid((uid_t)n) != 0) exit(2);
        } else if (sscanf(argv[i], "segment=%lu", &n) == 1) options.segment_bytes = (uint32_t)n;
        else if (sscanf(argv[i], "pause=%lu", &n) == 1) pause = n;
        else if (strcmp(argv[i], "refuse") == 0)
            cannot = !refuse(SECCOMP_RET_ERRNO | EOPNOTSUPP, 0, SYS_fallocate, SYS_fallocate);
        else if (strcmp(argv[i], "close") == 0) closes = 1;
        else if (strcmp(argv[i], "exec") == 0) executes = 1;
        else exit(2);
    }
    if (cannot) exit(3);
    alarm(600); /* whatever happens to the starter */
    struct sigaction action = {.sa_handler = on_term};
    sigaction(SIGTERM, &action, NULL);
    cw_engine *engine = open_with(&options);
    cw_logger *log = logger_of(engine, "owner");
    uint32_t mine = slot_take();
    write_many(log, mine, 100);
    if (closes) close_all();
    puts("ready");
    if (executes) execlp("sleep", "sleep", "600", (char *)NULL);
    while (!stopped) {
        write_next(log, mine);
        pause_us(pause);
    }
    EXPECT(CW_OK, cw_close(&engine, 20000));
    ledger[mine].spare = 1;
}

static const test_case cases[] = {{"log", case_log}};
MAIN(cases)
