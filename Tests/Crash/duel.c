/* Single steps bring two threads to one moment, then the process dies (R1, R2). One thread stands M
 * instructions into an append. Another seals its segment and stands D instructions before it stores
 * the chunk's length. The append goes on, is cut off, is written again and returns. Then the
 * process is killed. Without ASLR, so that the second run finds the instructions of the first.
 *     duel program STORE KEPT_FILE SEED   the process: stops itself by int3 at its marks
 *     duel find STORE KEPT_FILE SEED M      prints the sealer's last instructions before the length
 *     duel kill STORE KEPT_FILE SEED M ADDRESS
 * The append is cw_write's; with an odd seed, it is the header's, compiled into this program. Exits
 * with 0 if the moment was reached, else with 3. x86-64. */
#include "crash.h"

#include <cordwood/cordwood.h>
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/personality.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>

enum { LAST = 40, STEPS_MAX = 400000, PATIENCE_S = 60 };

/* ── The process ── */

static cw_logger *logger;
static uint64_t *kept;
static uint64_t seed;

static void write_one(void) {
    char message[MESSAGE_MAX];
    uint64_t number = kept[0];
    size_t length = make_message(message, seed, 0, number);
    char filler[MESSAGE_MAX];
    make_filler(filler, seed, 0, number);
    if (number == 1) __asm__ volatile("int3");
    if (seed % 2 != 0)
        CW_INFO(logger, "t0 n%llu %s", (unsigned long long)number, filler);
    else if (cw_write(logger, CW_LEVEL_INFO, message, length) != CW_OK)
        _exit(9);
    note_kept(kept, 0, number + 1);
    if (number == 1) __asm__ volatile("int3");
}

static void *writer(void *unused) {
    write_one();
    write_one();
    pause();
    return unused;
}

static int program(const char *store) {
    cw_options options;
    cw_options_init(&options, sizeof options);
    options.directory = store;
    options.segment_bytes = 64 << 10;
    cw_engine *engine;
    if (cw_open(&options, &engine) != CW_OK || cw_logger_get(engine, "crash", &logger) != CW_OK)
        return 9;
    pthread_t thread;
    if (pthread_create(&thread, NULL, writer, NULL) != 0) return 9;
    __asm__ volatile("int3");
    cw_roll(engine);
    __asm__ volatile("int3");
    pause();
    return 9;
}

/* ── Who steps it ── */

static pid_t process, appender;

static int give_up(int code) {
    int status;
    kill(process, SIGKILL);
    while (waitpid(-1, &status, __WALL) > 0 || errno == EINTR) {}
    return code;
}

/* The length of the appender's chunk, in the lane file. NULL: not found. */
static volatile const uint32_t *find_final(const char *store) {
    char path[4200];
    snprintf(path, sizeof path, "%s/lanes", store);
    DIR *lanes = opendir(path);
    volatile const uint32_t *found = NULL;
    for (struct dirent *e; lanes != NULL && (e = readdir(lanes)) != NULL;) {
        const char *suffix = strrchr(e->d_name, '.');
        if (e->d_name[0] == '.' || strcmp(suffix, ".lane") != 0) continue;
        int file = openat(dirfd(lanes), e->d_name, O_RDONLY | O_CLOEXEC);
        const char *start = mmap(NULL, 65536, PROT_READ, MAP_SHARED, file, 0);
        close(file);
        if (start == MAP_FAILED) continue;
        for (size_t at = 16384 + 4096; at < 65536; at += 1024) {
            uint32_t thread;
            memcpy(&thread, start + at + 40, 4);
            if (thread == (uint32_t)appender) found = (const uint32_t *)(start + at + 64);
        }
    }
    if (lanes != NULL) closedir(lanes);
    return found;
}

/* One instruction. 0: the thread has ended. */
static int step(pid_t thread) {
    int status;
    if (ptrace(PTRACE_SINGLESTEP, thread, 0, 0) != 0) return 0;
    return waitpid(thread, &status, __WALL) == thread && WIFSTOPPED(status);
}

/* Lets a thread run to its next int3. 0: it has ended. */
static int run_to_trap(pid_t thread) {
    int status, signal = 0;
    for (;;) {
        ptrace(PTRACE_CONT, thread, 0, signal);
        if (waitpid(thread, &status, __WALL) != thread || !WIFSTOPPED(status)) return 0;
        signal = WSTOPSIG(status);
        if (signal == SIGTRAP) return 1;
    }
}

static uint64_t address_of(pid_t thread) {
    struct user_regs_struct registers;
    return ptrace(PTRACE_GETREGS, thread, 0, &registers) == 0 ? registers.rip : 0;
}

static char state_of(pid_t thread) {
    char path[64], line[256];
    snprintf(path, sizeof path, "/proc/%d/task/%d/stat", process, thread);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = file < 0 ? 0 : read(file, line, sizeof line - 1);
    if (file >= 0) close(file);
    line[length > 0 ? length : 0] = 0;
    const char *name_end = strrchr(line, ')');
    return name_end != NULL && name_end[1] != 0 ? name_end[2] : 0;
}

/* Stops a thread of the engine once it waits for work. Stopped in the middle of work, it may hold
 * what the sealer or the append needs, and neither would reach its moment. */
static void stop_at_rest(pid_t thread) {
    for (int tries = 0; state_of(thread) != 'S' && tries < 10000; tries++) usleep(200);
    syscall(SYS_tgkill, process, thread, SIGSTOP);
    int status;
    while (waitpid(thread, &status, __WALL) == thread && WIFSTOPPED(status) &&
           WSTOPSIG(status) != SIGSTOP)
        ptrace(PTRACE_CONT, thread, 0, 0);
}

/* Runs until both stand at their marks. The engine's own threads are stopped then, too. */
static int bring_to_marks(void) {
    int main_stands = 0;
    while (!main_stands || appender == 0) {
        int status;
        pid_t thread = waitpid(-1, &status, __WALL);
        if (thread < 0 || !WIFSTOPPED(status)) return 0;
        if (WSTOPSIG(status) == SIGTRAP && status >> 16 == 0 && thread == process) main_stands = 1;
        else if (WSTOPSIG(status) == SIGTRAP && status >> 16 == 0) appender = thread;
        else ptrace(PTRACE_CONT, thread, 0, 0);
    }
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task", process);
    DIR *tasks = opendir(path);
    for (struct dirent *e; tasks != NULL && (e = readdir(tasks)) != NULL;) {
        pid_t thread = atoi(e->d_name);
        if (thread != 0 && thread != process && thread != appender) stop_at_rest(thread);
    }
    if (tasks != NULL) closedir(tasks);
    return 1;
}

/* Steps the sealer until it has stored the length. */
static int print_moments(volatile const uint32_t *final) {
    uint64_t last[LAST] = {0};
    for (long i = 0; i < STEPS_MAX; i++) {
        last[i % LAST] = address_of(process);
        if (!step(process)) return give_up(4);
        if (*final == 0) continue;
        for (long n = 0; n < LAST; n++)
            printf("%#llx\n", (unsigned long long)last[(i + LAST - n) % LAST]);
        return give_up(0);
    }
    return give_up(3);
}

/* The sealer runs to the moment, where an int3 holds it; then the append to its second mark. */
static int meet(uint64_t moment, volatile const uint32_t *final) {
    errno = 0;
    long code = ptrace(PTRACE_PEEKTEXT, process, moment, 0);
    if (errno != 0 || ptrace(PTRACE_POKETEXT, process, moment, (code & ~0xffL) | 0xcc) != 0)
        return give_up(4);
    if (!run_to_trap(process)) return give_up(4);
    struct user_regs_struct registers;
    ptrace(PTRACE_GETREGS, process, 0, &registers);
    ptrace(PTRACE_POKETEXT, process, moment, code);
    if (registers.rip != moment + 1 || *final != 0) return give_up(3);
    registers.rip = moment;
    ptrace(PTRACE_SETREGS, process, 0, &registers);
    return give_up(run_to_trap(appender) ? 0 : 4);
}

static int duel(const char *store, char **arguments, long steps, uint64_t moment) {
    process = fork();
    if (process == 0) {
        personality(ADDR_NO_RANDOMIZE);
        ptrace(PTRACE_TRACEME, 0, 0, 0);
        raise(SIGSTOP);
        execv("/proc/self/exe", arguments);
        _exit(127);
    }
    int status;
    if (process < 0 || waitpid(process, &status, 0) != process) return 2;
    ptrace(PTRACE_SETOPTIONS, process, 0,
           PTRACE_O_EXITKILL | PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC);
    ptrace(PTRACE_CONT, process, 0, 0);
    if (!bring_to_marks()) return give_up(4);
    for (long i = 0; i < steps; i++)
        if (!step(appender)) return give_up(4);
    /* The append returned before it could be cut off. */
    if (__atomic_load_n(kept, __ATOMIC_ACQUIRE) > 1) return give_up(3);
    volatile const uint32_t *final = find_final(store);
    if (final == NULL) return give_up(4);
    return moment != 0 ? meet(moment, final) : print_moments(final);
}

static void late(int number) {
    (void)number;
    kill(process, SIGKILL);
    _exit(4);
}

int main(int argc, char **argv) {
    if (argc < 5) return 2;
    seed = strtoull(argv[4], NULL, 10);
    fill_letters();
    kept = map_kept(argv[3]);
    if (kept == NULL) return 9;
    if (strcmp(argv[1], "program") == 0) return program(argv[2]);
    if (argc < 6) return 2;
    char *arguments[] = {argv[0], "program", argv[2], argv[3], argv[4], NULL};
    signal(SIGALRM, late);
    alarm(PATIENCE_S);
    uint64_t moment = argc > 6 ? strtoull(argv[6], NULL, 16) : 0;
    return duel(argv[2], arguments, atol(argv[5]), moment);
}
