/* Runs a program and kills it at one of its numbered crash points: before or after a system call
 * that changes a file of the store, or a number of instructions after it. The program does not
 * know: a seccomp filter stops each of its threads at those calls (ptrace).
 *     killer record STORE -- PROGRAM…                       prints the label of each call, in order
 *     killer before|after STORE NTH STEPS LABEL -- PROGRAM… kills at the nth call of that label
 * A label is the call and its operands: `renameat lanes/OWN.N-N.seg lanes/OWN.N-N.sealed`. Exits
 * with 0 if the point was reached, 3 if the program ended by itself, 4 if it hung. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PATH_BYTES = 4096, PATIENCE_S = 60, POPULATE_WRITE = 23, MARK = 0x7ead };

/* The positions of a call's operands. */
typedef enum { AT, AT_AT, PATH, PATH_PATH, LINK_AT, FILE_DESCRIPTOR, OPEN_AT, MAP, ADVISE, MARKED }
    shape;

typedef struct {
    long number;
    const char *name;
    shape about;
} call;

static const call calls[] = {
    {SYS_openat, "openat", OPEN_AT},
    {SYS_mkdirat, "mkdirat", AT},
    {SYS_unlinkat, "unlinkat", AT},
    {SYS_renameat, "renameat", AT_AT},
    {SYS_renameat2, "renameat", AT_AT},
    {SYS_symlinkat, "symlinkat", LINK_AT},
#ifdef SYS_open
    {SYS_mkdir, "mkdirat", PATH},
    {SYS_unlink, "unlinkat", PATH},
    {SYS_rmdir, "rmdir", PATH},
    {SYS_rename, "renameat", PATH_PATH},
#endif
    {SYS_write, "write", FILE_DESCRIPTOR},
    {SYS_pwrite64, "pwrite", FILE_DESCRIPTOR},
    {SYS_ftruncate, "ftruncate", FILE_DESCRIPTOR},
    {SYS_fallocate, "fallocate", FILE_DESCRIPTOR},
    {SYS_fsync, "fsync", FILE_DESCRIPTOR},
    {SYS_fdatasync, "fdatasync", FILE_DESCRIPTOR},
    {SYS_flock, "flock", FILE_DESCRIPTOR},
    {SYS_sendto, "sendto", FILE_DESCRIPTOR},
    {SYS_connect, "connect", FILE_DESCRIPTOR},
    {SYS_mmap, "mmap", MAP},
    {SYS_madvise, "populate", ADVISE},
    {SYS_getpgid, "mark", MARKED},
};
enum { CALLS = sizeof calls / sizeof *calls };

static const char *store;
static pid_t program;

/* ── What a call is about ── */

static void read_text(pid_t thread, uint64_t address, char *out) {
    for (size_t done = 0; done < PATH_BYTES - 1;) {
        size_t part = 256 - (size_t)((address + done) & 255); /* never crosses the end of a page */
        if (part > PATH_BYTES - 1 - done) part = PATH_BYTES - 1 - done;
        struct iovec to = {out + done, part}, from = {(void *)(uintptr_t)(address + done), part};
        ssize_t got = process_vm_readv(thread, &to, 1, &from, 1, 0);
        if (got <= 0) {
            out[done] = 0;
            return;
        }
        if (memchr(out + done, 0, (size_t)got) != NULL) return;
        done += (size_t)got;
    }
    out[PATH_BYTES - 1] = 0;
}

static void descriptor_path(pid_t thread, int descriptor, char *out) {
    char link[64];
    snprintf(link, sizeof link, "/proc/%d/fd/%d", thread, descriptor);
    ssize_t size = readlink(link, out, PATH_BYTES - 1);
    out[size < 0 ? 0 : size] = 0;
    char *deleted = strstr(out, " (deleted)");
    if (deleted != NULL) *deleted = 0;
}

static void at_path(pid_t thread, int directory, uint64_t name, char *out) {
    char text[PATH_BYTES], folder[PATH_BYTES] = "";
    read_text(thread, name, text);
    if (text[0] != '/' && directory != AT_FDCWD) descriptor_path(thread, directory, folder);
    snprintf(out, PATH_BYTES, "%.2000s%s%.2000s", folder, *folder ? "/" : "", text);
}

static size_t lane_name(const char *text) { /* YYYYMMDDThhmmssZ-pid-random; 0: none */
    for (size_t i = 0; i < 16; i++)
        if (i == 8 ? text[i] != 'T' : i == 15 ? text[i] != 'Z' : !isdigit((unsigned char)text[i]))
            return 0;
    size_t length = 17 + strspn(text + 17, "0123456789");
    if (text[16] != '-' || text[length] != '-') return 0;
    return strspn(text + length + 1, "0123456789abcdef") == 16 ? length + 17 : 0;
}

/* The path within the store, with its varying parts replaced. 0: it is outside. */
static int normal(const char *path, char *out, size_t room) {
    static const char memory[] = "/dev/shm/cordwood-segments-";
    size_t length = strlen(store), used = 0;
    if (strncmp(path, "socket:", 7) == 0) return snprintf(out, room, "socket") > 0;
    if (strncmp(path, memory, sizeof memory - 1) == 0) return snprintf(out, room, "memory") > 0;
    if (strncmp(path, store, length) != 0 || (path[length] != '/' && path[length] != 0)) return 0;
    path += length;
    while (*path == '/') path++;
    if (*path == 0) return snprintf(out, room, "store") > 0;
    while (*path && used + 8 < room) {
        size_t lane = lane_name(path), hex = strspn(path, "0123456789abcdef");
        if (lane > 0) {
            int is_own = atol(path + 17) == program;
            used += (size_t)snprintf(out + used, room - used, is_own ? "OWN" : "DEAD");
            path += lane;
        } else if (hex >= 16 && !isalpha((unsigned char)path[hex])) {
            out[used++] = 'R';
            path += hex;
        } else if (isdigit((unsigned char)*path)) {
            out[used++] = 'N';
            path += strspn(path, "0123456789");
        } else {
            out[used++] = *path++;
        }
    }
    out[used] = 0;
    return 1;
}

/* 0: not one of these calls. */
static int label_of(pid_t thread, const struct user_regs_struct *r, char *out, size_t room) {
    const call *c = NULL;
    for (size_t i = 0; i < CALLS; i++)
        if (calls[i].number == (long)r->orig_rax) c = &calls[i];
    if (c == NULL) return 0;
    char path[PATH_BYTES] = "", other[PATH_BYTES] = "", first[512], second[512] = "";
    switch (c->about) {
    case MARKED:
        if (r->rdi != MARK) return 0;
        return snprintf(out, room, "mark") > 0;
    case ADVISE:
        if (r->rdx != POPULATE_WRITE) return 0;
        return snprintf(out, room, "populate") > 0;
    case OPEN_AT:
        if ((r->rdx & (O_CREAT | O_TRUNC)) == 0) return 0;
        at_path(thread, (int)r->rdi, r->rsi, path);
        break;
    case MAP:
        if ((int)r->r8 < 0 || (r->r10 & 1) == 0) return 0;
        descriptor_path(thread, (int)r->r8, path);
        break;
    case AT: at_path(thread, (int)r->rdi, r->rsi, path); break;
    case LINK_AT: at_path(thread, (int)r->rsi, r->rdx, path); break;
    case PATH: at_path(thread, AT_FDCWD, r->rdi, path); break;
    case PATH_PATH:
        at_path(thread, AT_FDCWD, r->rdi, path);
        at_path(thread, AT_FDCWD, r->rsi, other);
        break;
    case AT_AT:
        at_path(thread, (int)r->rdi, r->rsi, path);
        at_path(thread, (int)r->rdx, r->r10, other);
        break;
    case FILE_DESCRIPTOR: descriptor_path(thread, (int)r->rdi, path); break;
    }
    if (!normal(path, first, sizeof first)) return 0;
    if (*other && !normal(other, second, sizeof second)) return 0;
    return snprintf(out, room, "%s %s%s%s", c->name, first, *second ? " " : "", second) > 0;
}

/* ── The program under the filter ── */

static int install_filter(void) {
    struct sock_filter filter[CALLS + 3];
    size_t n = 0;
    filter[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
                                               offsetof(struct seccomp_data, nr));
    for (size_t i = 0; i < CALLS; i++, n++)
        filter[n] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
                                                 (uint32_t)calls[i].number,
                                                 (uint8_t)(CALLS - i), 0);
    filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE);
    struct sock_fprog all = {(unsigned short)n, filter};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &all, 0, 0) == 0;
}

static void start(char **arguments) {
    program = fork();
    if (program == 0) {
        ptrace(PTRACE_TRACEME, 0, 0, 0);
        raise(SIGSTOP);
        if (!install_filter()) _exit(126);
        execv(arguments[0], arguments);
        _exit(127);
    }
    int status;
    if (program < 0 || waitpid(program, &status, 0) != program || !WIFSTOPPED(status)) exit(2);
    long options = PTRACE_O_EXITKILL | PTRACE_O_TRACESECCOMP | PTRACE_O_TRACECLONE |
                   PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACESYSGOOD;
    if (ptrace(PTRACE_SETOPTIONS, program, 0, options) != 0) exit(2);
    ptrace(PTRACE_CONT, program, 0, 0);
}

/* ── The point ── */

static volatile sig_atomic_t is_late;
static void late(int number) { is_late = number; }

static int kill_now(int code) {
    int status;
    kill(program, SIGKILL);
    while (waitpid(-1, &status, __WALL) > 0 || errno == EINTR) {}
    return code;
}

typedef struct {
    const char *label; /* NULL: only record */
    int is_after;
    long nth, steps;
    pid_t thread; /* at the point, once found */
} point;

/* A stop at a call. 1: the point. */
static int at_call(point *p, pid_t thread) {
    struct user_regs_struct registers;
    char label[1200];
    if (ptrace(PTRACE_GETREGS, thread, 0, &registers) != 0) return 0;
    if (!label_of(thread, &registers, label, sizeof label)) return 0;
    if (p->label == NULL) puts(label);
    if (p->label == NULL || p->thread != 0 || strcmp(label, p->label) != 0 || --p->nth > 0)
        return 0;
    p->thread = thread;
    if (p->is_after) return 1;
    registers.orig_rax = (unsigned long long)-1; /* the call must not run on the way out */
    ptrace(PTRACE_SETREGS, thread, 0, &registers);
    return 1;
}

static int follow(point *p) {
    int code = 3;
    for (;;) {
        int status;
        pid_t thread = waitpid(-1, &status, __WALL);
        if (thread < 0 && errno == EINTR) {
            if (is_late) return kill_now(p->thread != 0 ? 0 : 4);
            continue;
        }
        if (thread < 0) return code;
        if (!WIFSTOPPED(status)) {
            if (thread == program && WIFSIGNALED(status)) code = 4;
            if (thread == program && WIFEXITED(status) && WEXITSTATUS(status) != 0) code = 4;
            continue;
        }
        int signal = WSTOPSIG(status), event = status >> 16;
        if (event == PTRACE_EVENT_SECCOMP && at_call(p, thread)) {
            if (!p->is_after) return kill_now(0);
            ptrace(PTRACE_SYSCALL, thread, 0, 0);
            continue;
        }
        if (thread == p->thread && event == 0 && (signal & 0x7f) == SIGTRAP) {
            if (p->steps-- <= 0) return kill_now(0);
            alarm(1); /* it may wait for another thread, which is fine */
            ptrace(PTRACE_SINGLESTEP, thread, 0, 0);
            continue;
        }
        if (thread == p->thread && event != 0) {
            ptrace(PTRACE_SINGLESTEP, thread, 0, 0);
            continue;
        }
        int forwarded = event != 0 || signal == SIGTRAP || signal == SIGSTOP ? 0 : signal;
        ptrace(PTRACE_CONT, thread, 0, forwarded);
    }
}

int main(int argc, char **argv) {
    int at = 1;
    while (at < argc && strcmp(argv[at], "--") != 0) at++;
    if (at + 1 >= argc || (at != 3 && at != 6)) return 2;
    point p = {0};
    store = argv[2];
    if (at == 6) {
        p.is_after = strcmp(argv[1], "after") == 0;
        p.nth = atol(argv[3]);
        p.steps = atol(argv[4]);
        p.label = argv[5];
    }
    struct sigaction action = {.sa_handler = late};
    sigaction(SIGALRM, &action, NULL);
    alarm(PATIENCE_S);
    start(argv + at + 1);
    return follow(&p);
}
