/* The crash handler. On a fatal signal it writes one last record to every engine that asked for
 * it, then gives the signal the effect that it would have had without the handler. It switches to
 * a stack of its own at once, so an alternate stack of the smallest size is enough. It takes no
 * lock, allocates no memory, and recovers from its own faults. Any thread may enter it at any
 * instruction, even inside malloc or an append. Private words: `slots` belong to the thread
 * whose id they hold (C2); `old_actions` is written before the handler can run (C1). */
#define _GNU_SOURCE 1 /* REG_RIP, siginfo's names */
#undef _FORTIFY_SOURCE /* its siglongjmp refuses to leave one stack for another */
#include "CFork.h"
#include "crash.h"
#include <sys/auxv.h>

enum { SLOTS = 4, SIGNALS = 7 };
enum {
    PAGE = 4096,
    GUARD_BYTES = PAGE,
    NESTED_BYTES = 64 << 10, /* faults of ours are handled here */
    STACK_BYTES = 192 << 10,
    WORK_BYTES = (sizeof(crash_work) + PAGE - 1) / PAGE * PAGE,
    SLOT_BYTES = GUARD_BYTES + NESTED_BYTES + GUARD_BYTES + STACK_BYTES + WORK_BYTES,
    THREAD_STACK_BYTES = 64 << 10 /* for a host's handlers, too, that ask for the alternate stack */
};

static const int signals[SIGNALS] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP, SIGSYS};

uint32_t cwi_crash_installed;
uintptr_t cwi_crash_low, cwi_crash_high;

static uint64_t slots[SLOTS]; /* C2: process id << 32 | thread id; 0: free */
static cwi_logger *loggers[CWI_CRASH_ENGINES_MAX]; /* C3 */
static cwi_crash_writer writer;
static struct sigaction old_actions[SIGNALS];
static uint32_t records;       /* C4 */
static uint32_t install_lock;  /* C1: thread id */

static struct {
    uint64_t owner; /* C5: as slots */
    void *stack;    /* the owner's; stays where it was made */
} thread_stacks[CWI_CRASH_THREADS_MAX];

static uint64_t self(void) { return (uint64_t)(uint32_t)getpid() << 32 | cw_gettid(); }

/* ── Stacks ── */

static size_t thread_stack_bytes(void) {
    size_t least = (size_t)getauxval(51 /* AT_MINSIGSTKSZ */) + (16 << 10);
    least = (least + PAGE - 1) / PAGE * PAGE;
    return least > THREAD_STACK_BYTES ? least : THREAD_STACK_BYTES;
}

/* Pages that are filled lazily, above one page that nothing may touch. */
static char *map_stack(size_t bytes) {
    char *memory = mmap(NULL, bytes + GUARD_BYTES, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return NULL;
    mprotect(memory, GUARD_BYTES, PROT_NONE);
    return memory + GUARD_BYTES;
}

void cwi_crash_thread_starts(void) {
    cwi_tls *tls = cwi_tls_get();
    int error = errno;
    stack_t present;
    tls->crash_stack = 2;
    if (sigaltstack(NULL, &present) != 0 || !(present.ss_flags & SS_DISABLE)) return;
    uint64_t id = self();
    for (int i = 0; i < CWI_CRASH_THREADS_MAX; i++) {
        /* ORDER: acquire-release. A stack's address is visible once the stack is free (C5). */
        if (__atomic_load_n(&thread_stacks[i].owner, __ATOMIC_RELAXED) != 0 ||
            !cwa_cas_u64(&thread_stacks[i].owner, 0, id))
            continue;
        if (!thread_stacks[i].stack) thread_stacks[i].stack = map_stack(thread_stack_bytes());
        stack_t stack = {.ss_sp = thread_stacks[i].stack, .ss_size = thread_stack_bytes()};
        if (stack.ss_sp && sigaltstack(&stack, NULL) == 0) tls->crash_stack = 1;
        else cwa_store_release_u64(&thread_stacks[i].owner, 0);
        break;
    }
    errno = error;
}

void cwi_crash_thread_ends(void) {
    cwi_tls *tls = cwi_tls_get();
    uint8_t had = tls->crash_stack;
    tls->crash_stack = 0;
    if (had != 1) return;
    uint64_t id = self();
    stack_t present, none = {.ss_flags = SS_DISABLE};
    if (sigaltstack(NULL, &present) != 0) return;
    for (int i = 0; i < CWI_CRASH_THREADS_MAX; i++) {
        if (__atomic_load_n(&thread_stacks[i].owner, __ATOMIC_RELAXED) != id) continue;
        /* A thread that ends while running on its stack keeps it. */
        if (present.ss_sp == thread_stacks[i].stack && !(present.ss_flags & SS_DISABLE) &&
            sigaltstack(&none, NULL) != 0)
            return;
        cwa_store_release_u64(&thread_stacks[i].owner, 0);
    }
}

void cwi_crash_stacks_reap(void) {
    if (!__atomic_load_n(&cwi_crash_installed, __ATOMIC_RELAXED)) return;
    for (int i = 0; i < CWI_CRASH_THREADS_MAX; i++) {
        uint64_t owner = __atomic_load_n(&thread_stacks[i].owner, __ATOMIC_RELAXED);
        if (owner >> 32 == (uint32_t)getpid() && cwi_thread_is_gone((uint32_t)owner))
            cwa_cas_u64(&thread_stacks[i].owner, owner, 0);
    }
}

/* Only the forking thread exists in the child: whatever other threads held is free. */
static void in_child(void) {
    stack_t present;
    uint64_t id = self();
    if (sigaltstack(NULL, &present) != 0 || present.ss_flags & SS_DISABLE) present.ss_sp = NULL;
    for (int i = 0; i < CWI_CRASH_THREADS_MAX && thread_stacks[i].stack; i++) {
        if (thread_stacks[i].owner == 0) continue;
        bool own = present.ss_sp && thread_stacks[i].stack == present.ss_sp;
        cwa_store_release_u64(&thread_stacks[i].owner, own ? id : 0);
    }
    cwa_store_release_u32(&install_lock, 0);
}

/* cwi_crash_call(top, body, argument) runs body(argument) on the stack that ends at top.
 * Unwinders find the caller through the frame pointer. */
void cwi_crash_call(void *top, void (*body)(void *), void *argument)
    __attribute__((visibility("hidden")));
#if defined(__x86_64__)
__asm__(".text\n"
        ".p2align 4\n"
        ".globl cwi_crash_call\n"
        ".hidden cwi_crash_call\n"
        ".type cwi_crash_call,@function\n"
        "cwi_crash_call:\n"
        ".cfi_startproc\n"
        "    pushq %rbp\n"
        "    .cfi_def_cfa_offset 16\n"
        "    .cfi_offset %rbp, -16\n"
        "    movq %rsp, %rbp\n"
        "    .cfi_def_cfa_register %rbp\n"
        "    movq %rdi, %rsp\n"
        "    movq %rdx, %rdi\n"
        "    callq *%rsi\n"
        "    movq %rbp, %rsp\n"
        "    popq %rbp\n"
        "    .cfi_def_cfa %rsp, 8\n"
        "    retq\n"
        ".cfi_endproc\n"
        ".size cwi_crash_call, . - cwi_crash_call\n");
#elif defined(__aarch64__)
__asm__(".text\n"
        ".p2align 4\n"
        ".globl cwi_crash_call\n"
        ".hidden cwi_crash_call\n"
        ".type cwi_crash_call,@function\n"
        "cwi_crash_call:\n"
        ".cfi_startproc\n"
        "    stp x29, x30, [sp, #-16]!\n"
        "    .cfi_def_cfa_offset 16\n"
        "    .cfi_offset x29, -16\n"
        "    .cfi_offset x30, -8\n"
        "    mov x29, sp\n"
        "    .cfi_def_cfa x29, 16\n"
        "    mov sp, x0\n"
        "    mov x0, x2\n"
        "    blr x1\n"
        "    mov sp, x29\n"
        "    .cfi_def_cfa sp, 16\n"
        "    ldp x29, x30, [sp], #16\n"
        "    .cfi_def_cfa_offset 0\n"
        "    ret\n"
        ".cfi_endproc\n"
        ".size cwi_crash_call, . - cwi_crash_call\n");
#else
#error "cwi_crash_call is not written for this processor"
#endif

/* ── One crash ── */

static crash_work *work_of(int slot) {
    return (crash_work *)(cwi_crash_low + (size_t)(slot + 1) * SLOT_BYTES - WORK_BYTES);
}

static void write_one(crash_work *work) { writer(work->logger, &work->report); }

/* Runs on the slot's stack. */
static void handle(void *argument) {
    crash_work *work = argument;
    /* If we faulted here, the kernel would start the handler at the top of the thread's
     * alternate stack and overwrite the frame that we must return to. */
    char *nested = (char *)work - STACK_BYTES - GUARD_BYTES - NESTED_BYTES;
    stack_t fresh = {.ss_sp = nested, .ss_size = NESTED_BYTES}, present;
    bool moved = sigaltstack(&fresh, &present) == 0;
    crash_describe(work);
    for (int i = 0; i < CWI_CRASH_ENGINES_MAX; i++) {
        /* ORDER: acquire. `writer` is set once a logger is visible (C3). */
        work->logger = __atomic_load_n(&loggers[i], __ATOMIC_ACQUIRE);
        if (work->logger) crash_guarded(work, write_one);
    }
    if (moved) {
        present.ss_flags &= ~SS_ONSTACK;
        sigaltstack(&present, NULL);
    }
}

/* The slot of that owner, or -1 if it has none. */
static int slot_of(uint64_t owner) {
    for (int i = 0; i < SLOTS; i++)
        if (__atomic_load_n(&slots[i], __ATOMIC_RELAXED) == owner) return i;
    return -1;
}

/* Takes a slot for the calling thread. -1: other threads are crashing in all of them. */
static int take_slot(uint64_t id) {
    for (int i = 0; i < SLOTS; i++) {
        uint64_t owner = __atomic_load_n(&slots[i], __ATOMIC_RELAXED);
        /* In a forked child, the copy of a slot that one of the parent's threads held is free. */
        if (owner != 0 && owner >> 32 == id >> 32) continue;
        /* ORDER: acquire-release. The previous owner no longer uses its memory (C2). */
        if (cwa_cas_u64(&slots[i], owner, id)) return i;
    }
    return -1;
}

static void record(int slot, siginfo_t *info, void *context) {
    crash_work *work = work_of(slot);
    memset(work, 0, offsetof(crash_work, modules));
    work->info = *info;
    work->context = context;
    work->tid = cw_gettid();
    char *top = (char *)work - 64;
    cwi_crash_call((void *)((uintptr_t)top & ~(uintptr_t)63), handle, work);
}

/* Another crashing thread also has a record to write before the process ends. */
static void wait_for_others(void) {
    uint64_t id = self();
    for (int tries = 0; tries < 500; tries++) {
        bool busy = false;
        for (int i = 0; i < SLOTS; i++) {
            uint64_t owner = __atomic_load_n(&slots[i], __ATOMIC_RELAXED);
            busy |= owner != id && owner >> 32 == id >> 32;
        }
        if (!busy) return;
        struct timespec pause = {0, 1000 * 1000};
        nanosleep(&pause, NULL);
    }
}

/* ── What would have happened without us ── */

/* The instruction itself raised the signal, and will raise it again when the handler returns. */
static bool comes_again(int number, const siginfo_t *info) {
    if (info->si_code <= 0) return false;
    if (number == SIGBUS) return info->si_code != BUS_MCEERR_AO;
    return number == SIGSEGV || number == SIGILL || number == SIGFPE;
}

static void set_default(int number, void (*handler)(int)) {
    struct sigaction action = {.sa_handler = handler};
    sigaction(number, &action, NULL);
}

static void call_old(struct sigaction *old, int number, siginfo_t *info, void *context) {
    struct sigaction action = *old;
    if (action.sa_flags & (int)SA_RESETHAND) *old = (struct sigaction){.sa_handler = SIG_DFL};
    /* The mask that the action would have run with. The kernel stores 8 bytes of a mask. */
    sigset_t mask = action.sa_mask, interrupted;
    sigemptyset(&interrupted);
    memcpy(&interrupted, &((ucontext_t *)context)->uc_sigmask, 8);
    sigorset(&mask, &mask, &interrupted);
    if (!(action.sa_flags & SA_NODEFER)) sigaddset(&mask, number);
    pthread_sigmask(SIG_SETMASK, &mask, NULL);
    if (action.sa_flags & SA_SIGINFO) action.sa_sigaction(number, info, context);
    else action.sa_handler(number);
}

static void chain(struct sigaction *old, int number, siginfo_t *info, void *context) {
    bool plain = !(old->sa_flags & SA_SIGINFO);
    bool ignored = plain && old->sa_handler == SIG_IGN;
    if (!ignored && !(plain && old->sa_handler == SIG_DFL)) {
        call_old(old, number, info, context);
        return;
    }
    /* After an ignored first signal, abort(3) raises its second one by itself. */
    if (ignored && info->si_code <= 0) return;
    wait_for_others();
    set_default(number, comes_again(number, info) ? old->sa_handler : SIG_DFL);
    if (comes_again(number, info)) return;
    /* The signal arrives when we return, at the interrupted instruction, with its siginfo
     * intact. */
    pid_t process = getpid();
    if (syscall(SYS_rt_tgsigqueueinfo, process, cw_gettid(), number, info) != 0)
        syscall(SYS_tgkill, process, cw_gettid(), number);
}

/* Another process or thread sent the signal and it was ignored: without us nothing would happen. */
static bool is_nothing(const struct sigaction *old, int number, const siginfo_t *info) {
    if (old->sa_flags & SA_SIGINFO || old->sa_handler != SIG_IGN || info->si_code > 0) return false;
    return !(number == SIGABRT && info->si_code == SI_TKILL && info->si_pid == getpid());
}

static void on_signal(int number, siginfo_t *info, void *context) {
    int error = errno, index = 0;
    while (index < SIGNALS - 1 && signals[index] != number) index++;
    struct sigaction *old = &old_actions[index];
    uint64_t id = self();
    int slot = slot_of(id);
    if (slot >= 0) {
        crash_work *work = work_of(slot);
        if (work->guarded) siglongjmp(work->guard, 1);
    } else if (!is_nothing(old, number, info) &&
               __atomic_fetch_add(&records, 1, __ATOMIC_RELAXED) < CWI_CRASH_RECORDS_MAX &&
               (slot = take_slot(id)) >= 0) {
        record(slot, info, context);
        cwa_store_release_u64(&slots[slot], 0);
    }
    chain(old, number, info, context);
    errno = error;
}

/* ── Install ── */

static bool is_ours(const struct sigaction *action) {
    return action->sa_flags & SA_SIGINFO && action->sa_sigaction == on_signal;
}

/* Leaves alone a handler that the host installed after ours: it may already chain to ours, and
 * installing ours on top of it again would chain in a circle. */
static void set_handlers(void) {
    struct sigaction ours = {.sa_sigaction = on_signal};
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    /* Our own faults must be delivered; every other signal waits. */
    cwi_fill_signals(&ours.sa_mask);
    bool first = !__atomic_load_n(&cwi_crash_installed, __ATOMIC_RELAXED);
    for (int i = 0; i < SIGNALS; i++) {
        struct sigaction present;
        if (sigaction(signals[i], NULL, &present) != 0 || is_ours(&present)) continue;
        bool plain = !(present.sa_flags & SA_SIGINFO);
        bool idle = plain && (present.sa_handler == SIG_DFL || present.sa_handler == SIG_IGN);
        if (!first && !idle) continue;
        old_actions[i] = present;
        sigaction(signals[i], &ours, NULL);
    }
}

static int add_logger(cwi_logger *logger) {
    for (int i = 0; i < CWI_CRASH_ENGINES_MAX; i++)
        if (loggers[i] == logger) return 0;
    for (int i = 0; i < CWI_CRASH_ENGINES_MAX; i++) {
        cwi_logger *there = loggers[i];
        /* ORDER: relaxed. A closed engine stays closed (A16). */
        if (there && __atomic_load_n(&there->enabled, __ATOMIC_RELAXED) != 0) continue;
        /* ORDER: release. A handler that sees the logger also sees `writer` and the stacks (C3). */
        __atomic_store_n(&loggers[i], logger, __ATOMIC_RELEASE);
        return 0;
    }
    return ENOSPC;
}

static int install(cwi_logger *logger, cwi_crash_writer write) {
    if (!cwi_crash_low) {
        char *stacks = map_stack((size_t)SLOTS * SLOT_BYTES);
        if (!stacks) return ENOMEM;
        for (int i = 0; i < SLOTS; i++) {
            char *slot = stacks + (size_t)i * SLOT_BYTES;
            mprotect(slot, GUARD_BYTES, PROT_NONE);
            mprotect(slot + GUARD_BYTES + NESTED_BYTES, GUARD_BYTES, PROT_NONE);
        }
        cwi_crash_low = (uintptr_t)stacks;
        cwi_crash_high = cwi_crash_low + (size_t)SLOTS * SLOT_BYTES;
        crash_warm_up();
    }
    writer = write;
    int error = add_logger(logger);
    if (error != 0) return error;
    set_handlers();
    __atomic_store_n(&cwi_crash_installed, 1, __ATOMIC_RELEASE);
    return 0;
}

static pthread_once_t child_once = PTHREAD_ONCE_INIT;
static void child_make(void) { pthread_atfork(NULL, NULL, in_child); }

int cwi_crash_install(cwi_logger *logger, cwi_crash_writer write) {
    int cancel = cwi_disable_cancel();
    pthread_once(&child_once, child_make);
    while (!cwa_cas_u32(&install_lock, 0, cw_gettid())) sched_yield();
    int error = install(logger, write);
    cwa_store_release_u32(&install_lock, 0);
    if (error == 0) cwi_crash_thread_logs();
    cwi_restore_cancel(cancel);
    return error;
}
