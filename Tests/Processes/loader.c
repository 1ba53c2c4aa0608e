/* Loads modules that log, in every way in which a process may contain the library more than once:
 * modules with the static library inside, copies of the shared one, and this program's own. */
#include "host.h"

#include <dlfcn.h>

typedef int (*run_function)(const char *, const char *, size_t, int *);

static void *load(const char *path) {
    void *module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!module) {
        printf("%s\n", dlerror());
        exit(1);
    }
    return module;
}

static void find(void *module, const char *name, void *function) {
    void *address = dlsym(module, name);
    if (!address) exit(1);
    memcpy(function, &address, sizeof address);
}

static run_function entry(void *module) {
    run_function run;
    find(module, "plugin_run", &run);
    return run;
}

static void run_one(void *module) {
    uint32_t mine = slot_take();
    char text[64];
    int fails = 1;
    int n = snprintf(text, sizeof text, "w %u 0 plugin", mine);
    EXPECT(0, entry(module)(store_path, text, (size_t)n, &fails));
    EXPECT(0, fails);
    ledger[mine].returned = 1;
}

static size_t count_lines(const char *path) {
    size_t count = 0;
    FILE *file = fopen(path, "r");
    for (int c; file && (c = getc(file)) != EOF;) count += c == '\n';
    if (file) fclose(file);
    return count;
}

/* PLUGIN ROUNDS: R23 */
static void case_unload(int argc, char **argv) {
    if (argc < 2) exit(2);
    int rounds = atoi(argv[1]);
    size_t early = 0;
    for (int i = 0; i < rounds; i++) {
        void *module = load(argv[0]);
        run_one(module);
        EXPECT(0, dlclose(module));
        if (i == rounds / 2) early = count_lines("/proc/self/maps");
    }
    size_t late = count_lines("/proc/self/maps");
    printf("%d rounds, %zu and %zu mappings\n", rounds, early, late);
    HOLDS(late < early + 64); /* it stays loaded, and only once */
}

/* LIBRARY PLUGIN …: every copy at once, over the same directory, then a fork of the process. */
static void *run_many(void *module) {
    for (int i = 0; i < 20; i++) run_one(module);
    return NULL;
}

static void case_twice(int argc, char **argv) {
    void *modules[8];
    pthread_t threads[8];
    int count = argc < 8 ? argc : 8;
    for (int i = 0; i < count; i++) modules[i] = load(argv[i]);
    for (int i = 0; i < count; i++)
        for (int k = 0; k < i; k++) HOLDS(entry(modules[i]) != entry(modules[k]));
    cw_options options = options_of(store_path);
    cw_engine *engine = open_with(&options); /* the program's own copy */
    cw_logger *log = logger_of(engine, "program");
    uint32_t mine = slot_take();
    write_many(log, mine, 10);
    for (int i = 0; i < count; i++) pthread_create(&threads[i], NULL, run_many, modules[i]);
    for (int round = 0; round < 10; round++) {
        pid_t child = fork();
        if (child == 0) {
            alarm(60);
            failures = 0;
            write_many(log, slot_take(), 5);
            for (int i = 0; i < count; i++) run_one(modules[i]);
            _exit(failures ? 1 : 0);
        }
        wait_clean(child, "child");
        write_many(log, mine, 10);
    }
    for (int i = 0; i < count; i++) pthread_join(threads[i], NULL);
    EXPECT(CW_OK, cw_close(&engine, 20000));
}

/* LIBRARY PLUGIN …: a place of this program at which every copy logs in turn (A21). */
static void case_place(int argc, char **argv) {
    static const uint8_t types[] = {CW_ARG_INT, CW_ARG_NONE};
    static cw_site site = {
        NULL, "shared %d", __FILE__, __func__, types, __LINE__, 0, 0, CW_STYLE_PRINTF, 0};
    cw_options options = options_of(store_path);
    cw_engine *engine = open_with(&options);
    cw_logger *log = logger_of(engine, "program");
    int number = 0;
    for (int round = 0; round < 3; round++) {
        CW_INFO(log, "place %d", number);
        CW_INFO(log, "place %d again", number);
        const cw_arg arguments[] = {cw_arg_i(number++), cw_arg_u(0)};
        for (int i = 0; i < 3; i++)
            EXPECT(CW_OK, cw_site_write(log, CW_LEVEL_INFO, &site, arguments));
        for (int i = 0; i < argc; i++) {
            int (*place)(const char *, cw_site *, int);
            find(load(argv[i]), "plugin_place", &place);
            EXPECT(0, place(store_path, &site, number++));
        }
    }
    EXPECT(CW_OK, cw_close(&engine, 20000));
}

static const test_case cases[] = {
    {"unload", case_unload}, {"twice", case_twice}, {"place", case_place}};
MAIN(cases)
