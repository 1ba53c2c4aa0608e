/* Many processes on one store: writers that are killed at random, and processes that live for one
 * record. One case a run. run.py kills, reads and compares. */
#include "host.h"

#include <dirent.h>
#include <stdbool.h>

/* SEED: opens and closes engines for ever while two threads log. Killed from outside. */
static void case_writer(int argc, char **argv) {
    uint64_t seed = argc > 0 ? strtoull(argv[0], NULL, 10) : 1;
    for (;;) {
        cw_logger *log;
        cw_engine *engine = open_small(64u << 10, "many", &log);
        volatile int stop = 0;
        noise other = {0};
        noise_start(&other, log, &stop, 100 + next_random(&seed) % 400);
        uint32_t mine = slot_take();
        uint64_t count = 100 + next_random(&seed) % 3000;
        for (uint64_t i = 0; i < count; i++) {
            EXPECT(CW_OK, write_next(log, mine));
            if (i % 16 == 0) pause_us(next_random(&seed) % 300);
            if (next_random(&seed) % 2000 == 0) EXPECT(CW_OK, cw_roll(engine));
        }
        stop = 1;
        pthread_join(other.thread, NULL);
        EXPECT(CW_OK, cw_close(&engine, 60000));
        if (failures) exit(1);
    }
}

/* WAY: one record under a quota of 8 MiB; 0: closes, 1: returns from main, 2: is killed. */
static void case_brief(int argc, char **argv) {
    int way = argc > 0 ? atoi(argv[0]) : 0;
    cw_options options = options_of(store_path);
    options.quota_bytes = 8u << 20;
    cw_engine *engine = open_with(&options);
    write_many(logger_of(engine, "brief"), slot_take(), 1);
    if (way == 0) EXPECT(CW_OK, cw_close(&engine, 20000));
    if (way == 2) raise(SIGKILL);
}

/* COUNT WAYS: that many of them, forked from a process without an engine. They end in these ways in
 * turn, as "012". Prints ns for each. */
static void case_briefs(int argc, char **argv) {
    int count = argc > 0 ? atoi(argv[0]) : 100;
    const char *ways = argc > 1 ? argv[1] : "012";
    uint64_t begun = now_ns();
    for (int i = 0; i < count; i++) {
        pid_t child = fork();
        char way[2] = {ways[(size_t)i % strlen(ways)], 0}, *words[] = {way, NULL};
        if (child == 0) {
            case_brief(1, words);
            _exit(failures ? 1 : 0);
        }
        int how = 0;
        waitpid(child, &how, 0);
        if (!(WIFEXITED(how) && WEXITSTATUS(how) == 0) &&
            !(way[0] == '2' && WIFSIGNALED(how) && WTERMSIG(how) == SIGKILL)) {
            printf("child %d: %x\n", i, (unsigned)how);
            failures++;
        }
    }
    printf("%llu ns a process\n", (unsigned long long)((now_ns() - begun) / (uint64_t)count));
}

/* One of `pile`: opens engines, logs once with each, reports, and waits to be killed. */
static void pile_part(int engines, int ready) {
    for (int i = 0; i < engines; i++) {
        cw_options options = options_of(store_path);
        cw_engine *engine = open_with(&options);
        write_many(logger_of(engine, "pile"), slot_take(), 1);
    }
    if (failures || write(ready, "", 1) != 1) _exit(1);
    for (;;) pause();
}

/* COUNT: that many dead lanes at once, which no engine has adopted meanwhile. */
static void case_pile(int argc, char **argv) {
    enum { EACH = 50, PARTS_MAX = 64 };
    int count = argc > 0 ? atoi(argv[0]) : 100, ready[2];
    pid_t parts[PARTS_MAX];
    int used = 0;
    if (pipe(ready) != 0) exit(2);
    for (int left = count; left > 0 && used < PARTS_MAX; left -= EACH) {
        parts[used] = fork();
        if (parts[used] == 0) pile_part(left < EACH ? left : EACH, ready[1]);
        used++;
    }
    close(ready[1]);
    char byte;
    for (int i = 0; i < used; i++) EXPECT(1, read(ready[0], &byte, 1));
    for (int i = 0; i < used; i++) kill(parts[i], SIGKILL);
    while (wait(NULL) > 0) continue;
}

/* The number of this process's files in lanes/ that have a name. `seen`: checks only those, and a
 * missing one is a failure. */
static int own_names(char (*names)[256], int most, bool seen) {
    char path[4096], mine[32];
    snprintf(path, sizeof path, "%s/lanes", store_path);
    snprintf(mine, sizeof mine, "-%d-", (int)getpid());
    int count = 0;
    if (seen) {
        for (; count < most; count++) {
            snprintf(path, sizeof path, "%s/lanes/%s", store_path, names[count]);
            if (access(path, F_OK) == 0) continue;
            printf("%s is gone\n", names[count]);
            failures++;
        }
        return count;
    }
    DIR *directory = opendir(path);
    struct dirent *entry;
    while (directory && (entry = readdir(directory)) != NULL)
        if (strstr(entry->d_name, mine) && count < most)
            snprintf(names[count++], sizeof names[0], "%s", entry->d_name);
    if (directory) closedir(directory);
    return count;
}

/* ROUNDS: logs until it has a spare segment and a journal. All of its files must still be there
 * after adopters went through the store: ROUNDS grows by a byte each time. */
static void case_named(int argc, char **argv) {
    static char names[64][256];
    cw_logger *log;
    cw_engine *engine = open_small(64u << 10, "named", &log);
    write_many(log, slot_take(), 600);
    EXPECT(CW_OK, cw_flush(engine, CW_DURABLE_MACHINE, 60000));
    /* Surplus spares are removed as the rate falls. */
    int count = 0, spares = 0;
    for (int tries = 0; tries < 60000 && spares != 1; tries++) {
        if (tries > 0) pause_us(1000);
        count = own_names(names, 64, false);
        spares = 0;
        for (int i = 0; i < count; i++) spares += strstr(names[i], ".spare-") != NULL;
    }
    EXPECT(1, spares);
    struct stat now = {0};
    const char *rounds = argc > 0 ? argv[0] : "";
    EXPECT(0, stat(rounds, &now));
    off_t goal = now.st_size + 3; /* two adopters: one of three rounds began after this */
    for (int tries = 0; tries < 120000 && now.st_size < goal; tries++) {
        pause_us(1000);
        if (stat(rounds, &now) != 0) break;
    }
    HOLDS(now.st_size >= goal);
    own_names(names, count, true);
    EXPECT(CW_OK, cw_close(&engine, 60000));
}

static const test_case cases[] = {
    {"named", case_named},
    {"writer", case_writer},
    {"brief", case_brief},
    {"briefs", case_briefs},
    {"pile", case_pile},
};
MAIN(cases)
