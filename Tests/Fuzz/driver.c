/* main for a fuzz target without libFuzzer: runs every given file, then inputs mutated from them by
 * seed. Deterministic except for time: `-runs N -seed S`. An input that ends in a signal, or takes
 * over 30 s, is left as a file, with the command that runs it again.
 *     TARGET [-runs N] [-seed S] [-seconds T] [-keep FOLDER] FILE|FOLDER… */
#include <signal.h>
#include <time.h>

#include "fuzz.h"

enum { INPUTS_MAX = 4096, INPUT_MAX = 1 << 20, HANG_SECONDS = 30 };

static uint8_t *inputs[INPUTS_MAX];
static size_t sizes[INPUTS_MAX];
static unsigned count;
static uint8_t now[INPUT_MAX + 64];
static size_t now_size;
static uint64_t now_seed; /* 0: an unchanged file */
static const char *keep = ".";

static void add_file(const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file || count == INPUTS_MAX) {
        fprintf(stderr, "cannot read %s\n", path);
        exit(2);
    }
    uint8_t *bytes = malloc(INPUT_MAX);
    size_t n = fread(bytes, 1, INPUT_MAX, file);
    fclose(file);
    inputs[count] = realloc(bytes, n ? n : 1);
    sizes[count++] = n;
}

static int by_name(const struct dirent **a, const struct dirent **b) {
    return strcmp((*a)->d_name, (*b)->d_name);
}

static void add_path(const char *path) {
    struct stat status;
    if (stat(path, &status) == 0 && !S_ISDIR(status.st_mode)) {
        add_file(path);
        return;
    }
    struct dirent **entries;
    int n = scandir(path, &entries, NULL, by_name);
    for (int i = 0; i < n; i++) {
        char child[1024];
        snprintf(child, sizeof child, "%s/%s", path, entries[i]->d_name);
        if (entries[i]->d_name[0] != '.') add_file(child);
        free(entries[i]);
    }
    if (n >= 0) free(entries);
}

/* ── Trouble ── */

static void tell(const char *text) {
    if (write(2, text, strlen(text)) < 0) _exit(9);
}

static void trouble(int number) {
    char line[400], path[300];
    snprintf(path, sizeof path, "%s/crash-%llu", keep, (unsigned long long)now_seed);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (fd >= 0 && write(fd, now, now_size) >= 0) close(fd);
    snprintf(line, sizeof line, "%s on seed %llu: kept as %s\n",
             number == SIGALRM ? "no end" : strsignal(number), (unsigned long long)now_seed, path);
    tell(line);
    remove_tree(scratch);
    signal(number, SIG_DFL);
    raise(number == SIGALRM ? SIGKILL : number);
}

/* ── Mutation ── */

static uint64_t random_state;

static uint64_t next_random(void) {
    uint64_t z = random_state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}
static size_t below(size_t n) { return n ? next_random() % n : 0; }

static void mutate_once(void) {
    static const uint64_t odd[] = {0, 1, 7, 8, 16, 127, 128, 255, 256, 1024, 4096, 65535, 65536,
                                   0x7fffffff, 0x80000000, 0xffffffff, 0x100000000,
                                   0x7fffffffffffffff, 0x8000000000000000, 0xffffffffffffffff};
    size_t at = below(now_size);
    size_t room = now_size - at;
    switch (below(8)) {
    case 0:
        if (now_size) now[at] ^= (uint8_t)(1u << below(8));
        break;
    case 1:
        if (now_size) now[at] = (uint8_t)next_random();
        break;
    case 2:
    case 3: {
        size_t width = (size_t)1 << below(4);
        uint64_t value = odd[below(sizeof odd / sizeof *odd)] + below(3) - 1;
        if (room >= width) memcpy(now + at, &value, width);
        break;
    }
    case 4: { /* take some out */
        size_t n = below(room < 64 ? room : 64);
        memmove(now + at, now + at + n, room - n);
        now_size -= n;
        break;
    }
    case 5: { /* some twice */
        size_t n = below(room < 64 ? room : 64);
        if (now_size + n > INPUT_MAX) break;
        memmove(now + at + n, now + at, room);
        now_size += n;
        break;
    }
    case 6: { /* a piece of another */
        unsigned other = (unsigned)below(count);
        size_t from = below(sizes[other]);
        size_t n = below(sizes[other] - from);
        if (n > room) n = room;
        memcpy(now + at, inputs[other] + from, n);
        break;
    }
    default: { /* add to a number */
        size_t width = (size_t)1 << below(4);
        uint64_t value = 0;
        if (room < width) break;
        memcpy(&value, now + at, width);
        value += below(33) - 16;
        memcpy(now + at, &value, width);
    }
    }
}

static void run(void) {
    alarm(HANG_SECONDS);
    LLVMFuzzerTestOneInput(now, now_size);
    alarm(0);
}

static void run_input(unsigned index) {
    now_size = sizes[index];
    memcpy(now, inputs[index], now_size);
}

static void run_seed(uint64_t seed) {
    now_seed = seed;
    random_state = seed;
    run_input((unsigned)below(count));
    for (size_t i = 1 + below(6); i > 0; i--) mutate_once();
    run();
}

int main(int argc, char **argv) {
    uint64_t runs = 0, seed = 1;
    time_t seconds = 3600;
    LLVMFuzzerInitialize(&argc, &argv);
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "-runs") && i + 1 < argc) runs = strtoull(argv[++i], NULL, 10);
        else if (!strcmp(argv[i], "-seed") && i + 1 < argc) seed = strtoull(argv[++i], NULL, 10);
        else if (!strcmp(argv[i], "-seconds") && i + 1 < argc) seconds = atol(argv[++i]);
        else if (!strcmp(argv[i], "-keep") && i + 1 < argc) keep = argv[++i];
        else add_path(argv[i]);
    }
    static char stack[1 << 16];
    stack_t other = {.ss_sp = stack, .ss_size = sizeof stack};
    sigaltstack(&other, NULL);
    static const int numbers[] = {SIGSEGV, SIGBUS, SIGILL, SIGTRAP, SIGABRT, SIGFPE, SIGALRM};
    for (unsigned i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        struct sigaction action = {.sa_handler = trouble, .sa_flags = SA_ONSTACK};
        sigaction(numbers[i], &action, NULL);
    }
    time_t end = time(NULL) + seconds;
    uint64_t done = 0;
    for (unsigned i = 0; i < count; i++, done++) {
        run_input(i);
        run();
    }
    for (uint64_t i = 0; i < runs && count > 0 && time(NULL) < end; i++, done++) run_seed(seed + i);
    printf("%llu executions of %u inputs\n", (unsigned long long)done, count);
    return 0;
}
