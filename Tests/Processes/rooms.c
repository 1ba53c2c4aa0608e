/* Hosts that enter a smaller room after they opened a store. */
#include "host.h"

#include <grp.h>

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

static const test_case cases[] = {{"drop", drop}, {"group", group}};
MAIN(cases)
