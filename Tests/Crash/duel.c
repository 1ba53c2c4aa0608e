/* Two threads brought to one moment by single steps, then death (R1, R2): a thread stands M
 * instructions into an append; another seals its segment and stands D instructions before it stores
 * the chunk's length; the append goes on, is cut off, is written again and returns; the process is
 * killed. Without ASLR, so that the second run finds the instructions of the first.
 *     duel program STORE KEPT_FILE SEED   the process: stops itself by int3 at its marks
 *     duel find STORE KEPT_FILE SEED M      prints the sealer's last instructions before the length
 *     duel kill STORE KEPT_FILE SEED M ADDRESS
 * Ends 0 where the moment was reached, 3 where not. x86-64. */
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

enum { LAST = 40, STEPS_MAX = 400000, PATIENCE_S = 120 };

/* ── The process ── */

static cw_logger *logger;
static uint64_t *kept;
static uint64_t seed;

static void write_one(void) {
    char message[MESSAGE_MAX];
    uint64_t number = kept[0];
    size_t length = make_message(message, seed, 0, number);
    if (number == 1) __asm__ volatile("int3");
    if (cw_write(logger, CW_LEVEL_INFO, message, length) != CW_OK) _exit(9);
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

/* The appender's chunk's length, in the lane file. NULL: not found. */
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

/* One instruction. 0: the thread is gone. */
static int step(pid_t thread) {
    int status;
    if (ptrace(PTRACE_SINGLESTEP, thread, 0, 0) != 0) return 0;
    return waitpid(thread, &status, __WALL) == thread && WIFSTOPPED(status);
}

static uint64_t address_of(pid_t thread) {
    struct user_regs_struct registers;
    return ptrace(PTRACE_GETREGS, thread, 0, &registers) == 0 ? registers.rip : 0;
}

/* Until both stand at their marks. The engine's own threads are stopped then, too. */
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
        int status;
        if (thread == 0 || thread == process || thread == appender) continue;
        syscall(SYS_tgkill, process, thread, SIGSTOP);
        while (waitpid(thread, &status, __WALL) == thread && WIFSTOPPED(status) &&
               WSTOPSIG(status) != SIGSTOP)
            ptrace(PTRACE_CONT, thread, 0, 0);
    }
    if (tasks != NULL) closedir(tasks);
    return 1;
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
    /* It returned before it could be cut off. */
    if (__atomic_load_n(kept, __ATOMIC_ACQUIRE) > 1) return give_up(3);
    volatile const uint32_t *final = find_final(store);
    if (final == NULL) return give_up(4);
    uint64_t last[LAST] = {0};
    for (long i = 0; i < STEPS_MAX && *final == 0; i++) {
        uint64_t now = address_of(process);
        if (moment != 0 && now == moment) {
            /* The sealer stands; the append goes on to its second mark. */
            ptrace(PTRACE_CONT, appender, 0, 0);
            pid_t thread;
            while ((thread = waitpid(appender, &status, __WALL)) == appender &&
                   WIFSTOPPED(status) && WSTOPSIG(status) != SIGTRAP)
                ptrace(PTRACE_CONT, appender, 0, WSTOPSIG(status));
            return give_up(thread == appender && WIFSTOPPED(status) ? 0 : 4);
        }
        last[i % LAST] = now;
        if (!step(process)) return give_up(4);
        if (*final != 0 && moment == 0) {
            for (long n = 0; n < LAST; n++)
                printf("%#llx\n", (unsigned long long)last[(i + LAST - n) % LAST]);
            return give_up(0);
        }
    }
    return give_up(3);
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
