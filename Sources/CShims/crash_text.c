/* The text of the crash record: the signal, where it was raised, and the call stack. Frames come
 * from libgcc's unwinder, which is linked in. It needs neither locks nor memory where the C
 * library finds modules without a lock (glibc 2.35 and later). Elsewhere, and where the unwinder
 * gives up at once, the chain of frame pointers supplies them. Modules come from
 * /proc/self/maps, so addresses can be resolved on another machine. Any step may fault; the
 * output of the earlier steps is kept. */
#define _GNU_SOURCE 1 /* REG_RIP */
#undef _FORTIFY_SOURCE
#include "crash.h"
#include <elf.h>
#include <unwind.h>

/* ── Text ── */

typedef struct out {
    char *data;
    size_t count, size;
} out;

static void put(out *to, const char *text, size_t count) {
    size_t room = to->size - to->count;
    if (count > room) count = room;
    memcpy(to->data + to->count, text, count);
    to->count += count;
}
static void say(out *to, const char *text) { put(to, text, strlen(text)); }

static void say_hex(out *to, uint64_t value, int digits) {
    char text[16];
    for (int i = 0; i < 16; i++) text[15 - i] = "0123456789abcdef"[value >> 4 * i & 15];
    int skip = 16 - digits;
    if (digits == 0)
        for (skip = 0; skip < 15 && text[skip] == '0';) skip++;
    put(to, text + skip, (size_t)(16 - skip));
}

static void say_number(out *to, int64_t value) {
    char text[20];
    int at = 20;
    uint64_t left = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    do text[--at] = (char)('0' + left % 10);
    while ((left /= 10) != 0);
    if (value < 0) say(to, "-");
    put(to, text + at, (size_t)(20 - at));
}

static void say_address(out *to, uint64_t value) {
    say(to, "0x");
    say_hex(to, value, 16);
}

/* ── Names ── */

static const char *signal_name(int number) {
    switch (number) {
    case SIGSEGV: return "SIGSEGV";
    case SIGBUS: return "SIGBUS";
    case SIGILL: return "SIGILL";
    case SIGFPE: return "SIGFPE";
    case SIGABRT: return "SIGABRT";
    case SIGTRAP: return "SIGTRAP";
    case SIGSYS: return "SIGSYS";
    }
    return "signal";
}

static const char *code_name(int number, int code) {
    static const char *const segv[] = {"SEGV_MAPERR", "SEGV_ACCERR", "SEGV_BNDERR", "SEGV_PKUERR"};
    static const char *const bus[] = {"BUS_ADRALN", "BUS_ADRERR", "BUS_OBJERR", "BUS_MCEERR_AR",
                                      "BUS_MCEERR_AO"};
    static const char *const ill[] = {"ILL_ILLOPC", "ILL_ILLOPN", "ILL_ILLADR", "ILL_ILLTRP",
                                      "ILL_PRVOPC", "ILL_PRVREG", "ILL_COPROC", "ILL_BADSTK"};
    static const char *const fpe[] = {"FPE_INTDIV", "FPE_INTOVF", "FPE_FLTDIV", "FPE_FLTOVF",
                                      "FPE_FLTUND", "FPE_FLTRES", "FPE_FLTINV", "FPE_FLTSUB"};
    static const char *const trap[] = {"TRAP_BRKPT", "TRAP_TRACE"};
    static const char *const sys[] = {"SYS_SECCOMP"};
    switch (code) {
    case SI_USER: return "SI_USER";
    case SI_KERNEL: return "SI_KERNEL";
    case SI_QUEUE: return "SI_QUEUE";
    case SI_TIMER: return "SI_TIMER";
    case SI_TKILL: return "SI_TKILL";
    }
#define NAME_IN(list)                                                                              \
    (code >= 1 && code <= (int)(sizeof list / sizeof *list) ? list[code - 1] : "")
    switch (number) {
    case SIGSEGV: return NAME_IN(segv);
    case SIGBUS: return NAME_IN(bus);
    case SIGILL: return NAME_IN(ill);
    case SIGFPE: return NAME_IN(fpe);
    case SIGTRAP: return NAME_IN(trap);
    case SIGSYS: return NAME_IN(sys);
    }
#undef NAME_IN
    return "";
}

/* ── Registers ── */

#if defined(__x86_64__)
#define REGISTER_PC(c) (c)->uc_mcontext.gregs[REG_RIP]
#define REGISTER_SP(c) (c)->uc_mcontext.gregs[REG_RSP]
#define REGISTER_FP(c) (c)->uc_mcontext.gregs[REG_RBP]
#else
#define REGISTER_PC(c) (c)->uc_mcontext.pc
#define REGISTER_SP(c) (c)->uc_mcontext.sp
#define REGISTER_FP(c) (c)->uc_mcontext.regs[29]
#endif

static bool is_fault(const siginfo_t *info) {
    return info->si_code > 0 && info->si_signo != SIGABRT && info->si_signo != SIGSYS;
}

/* The thread called an address that holds no code: unwind from the caller. */
static bool jumped_nowhere(const crash_work *work) {
    return (work->info.si_signo == SIGSEGV || work->info.si_signo == SIGBUS) &&
           is_fault(&work->info) && (uint64_t)(uintptr_t)work->info.si_addr == work->pc;
}

/* ── Frames ── */

static void add_frame(crash_work *work, uint64_t address) {
    if (work->frames_count < CRASH_FRAMES) work->frames[work->frames_count++] = address;
}

#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 35)
static _Unwind_Reason_Code each_frame(struct _Unwind_Context *context, void *argument) {
    crash_work *work = argument;
    int exact = 0;
    uint64_t pc = _Unwind_GetIPInfo(context, &exact);
    if (!work->begun) {
        /* Our own frames come first; the interrupted frame is already recorded. */
        work->begun = pc == work->unwind_from;
        return _URC_NO_REASON;
    }
    if (pc == 0 || work->frames_count == CRASH_FRAMES) return _URC_END_OF_STACK;
    /* A return address lies after its call, but symbolizers must look up the call. */
    add_frame(work, exact ? pc : pc - 1);
    return _URC_NO_REASON;
}

static void unwind(crash_work *work) { _Unwind_Backtrace(each_frame, work); }

static _Unwind_Reason_Code one_frame(struct _Unwind_Context *context, void *argument) {
    (void)context;
    return ++*(int *)argument < 3 ? _URC_NO_REASON : _URC_END_OF_STACK;
}
void crash_warm_up(void) {
    int count = 0;
    _Unwind_Backtrace(one_frame, &count);
}
#else
static void unwind(crash_work *work) { (void)work; }
void crash_warm_up(void) {}
#endif

/* For code that keeps frame pointers in a register of their own. */
static void walk_frames(crash_work *work) {
    uint64_t frame = (uint64_t)REGISTER_FP(work->context);
    for (int i = 0; i < CRASH_FRAMES; i++) {
        if (frame == 0 || frame % 8 != 0) return;
        const volatile uint64_t *words = (const volatile uint64_t *)(uintptr_t)frame;
        uint64_t next = words[0], back = words[1];
        if (back < 4096) return;
        add_frame(work, back - 1);
        if (next <= frame || next - frame > 1 << 20) return;
        frame = next;
    }
}

/* Recovers the return address of a call to nowhere and sets the registers as if it had returned. */
static void step_out(crash_work *work) {
#if defined(__x86_64__)
    uint64_t sp = (uint64_t)REGISTER_SP(work->context);
    uint64_t back = *(const volatile uint64_t *)(uintptr_t)sp;
    REGISTER_SP(work->context) = (greg_t)(sp + 8);
    REGISTER_PC(work->context) = (greg_t)(back - 1);
#else
    REGISTER_PC(work->context) = work->context->uc_mcontext.regs[30] - 4;
#endif
}

static void find_frames(crash_work *work) {
    ucontext_t *context = work->context;
    add_frame(work, work->pc);
    if (jumped_nowhere(work)) {
        uint64_t sp = (uint64_t)REGISTER_SP(context);
        crash_guarded(work, step_out);
        work->unwind_from = (uint64_t)REGISTER_PC(context);
        if (work->unwind_from != work->pc) add_frame(work, work->unwind_from);
        crash_guarded(work, unwind);
        /* Restores the context: the host's handler and the core dump see it. */
        REGISTER_SP(context) = (__typeof__(REGISTER_SP(context)))sp;
        REGISTER_PC(context) = (__typeof__(REGISTER_PC(context)))work->pc;
    } else {
        work->unwind_from = work->pc;
        crash_guarded(work, unwind);
    }
    work->frames_sure = work->frames_count;
    if (work->frames_count <= 2) crash_guarded(work, walk_frames);
}

/* ── Modules ── */

static uint64_t read_number(const char **at, int base) {
    uint64_t value = 0;
    for (;; ++*at) {
        char c = **at;
        int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : 99;
        if (digit >= base) return value;
        value = value * (uint64_t)base + (uint64_t)digit;
    }
}

static const char *skip(const char *at, char c) {
    while (*at == c) at++;
    return at;
}

static int module_at(crash_work *work, uint64_t base, const char *path) {
    for (uint32_t i = 0; i < work->modules_count; i++)
        if (work->modules[i].base == base) return (int)i;
    if (work->modules_count == CRASH_MODULES) return -1;
    crash_module *module = &work->modules[work->modules_count];
    module->base = module->bias = base;
    module->build_id_bytes = 0;
    size_t count = strnlen(path, CRASH_PATH - 1);
    memcpy(module->path, path, count);
    module->path[count] = 0;
    return (int)work->modules_count++;
}

/* start-end perms offset device inode path */
static void take_line(crash_work *work) {
    const char *at = work->line;
    uint64_t start = read_number(&at, 16);
    if (*at++ != '-') return;
    uint64_t end = read_number(&at, 16);
    at = skip(at, ' ');
    bool code = strnlen(at, 4) == 4 && at[2] == 'x';
    while (*at && *at != ' ') at++;
    at = skip(at, ' ');
    uint64_t offset = read_number(&at, 16);
    at = skip(at, ' ');
    while (*at && *at != ' ') at++;
    at = skip(at, ' ');
    uint64_t inode = read_number(&at, 10);
    const char *path = skip(at, ' ');
    if (offset == 0) work->file_base = start, work->file_inode = inode;
    if (*path == 0) return;
    uint64_t base = start - offset;
    if (inode != 0 && inode == work->file_inode) base = work->file_base;
    for (uint32_t i = 0; i < work->frames_count; i++) {
        uint64_t address = work->frames[i];
        if (address < start || address >= end || !(code || i == 0)) continue;
        work->frame_module[i] = module_at(work, base, path);
    }
}

static void find_modules(crash_work *work) {
    int file = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    if (file < 0) return;
    size_t used = 0;
    for (;;) {
        ssize_t count = read(file, work->chunk, sizeof work->chunk);
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) break;
        for (ssize_t i = 0; i < count; i++) {
            if (work->chunk[i] != '\n') {
                if (used < sizeof work->line - 1) work->line[used++] = work->chunk[i];
                continue;
            }
            work->line[used] = 0;
            used = 0;
            take_line(work);
        }
    }
    close(file);
}

/* Reads the load bias and build id of the module that `begun` counts, from its headers in
 * memory. */
static void read_headers(crash_work *work) {
    crash_module *module = &work->modules[work->begun];
    if (module->path[0] != '/' && strcmp(module->path, "[vdso]") != 0) return;
    const Elf64_Ehdr *header = (const Elf64_Ehdr *)(uintptr_t)module->base;
    if (memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_phnum > 64) return;
    const Elf64_Phdr *parts = (const Elf64_Phdr *)(uintptr_t)(module->base + header->e_phoff);
    for (int i = 0; i < header->e_phnum; i++)
        if (parts[i].p_type == PT_LOAD && parts[i].p_offset == 0)
            module->bias = module->base - (parts[i].p_vaddr & ~(uint64_t)4095);
    for (int i = 0; i < header->e_phnum; i++) {
        if (parts[i].p_type != PT_NOTE) continue;
        const char *note = (const char *)(uintptr_t)(module->bias + parts[i].p_vaddr);
        const char *end = note + parts[i].p_memsz;
        while (end - note >= 12) {
            const Elf64_Nhdr *head = (const Elf64_Nhdr *)(const void *)note;
            size_t name = (head->n_namesz + 3u) & ~3u, bytes = (head->n_descsz + 3u) & ~3u;
            if (name + bytes > (size_t)(end - note) - 12) break;
            if (head->n_type == NT_GNU_BUILD_ID && head->n_namesz == 4 &&
                memcmp(note + 12, "GNU", 4) == 0 && head->n_descsz <= sizeof module->build_id) {
                memcpy(module->build_id, note + 12 + name, head->n_descsz);
                module->build_id_bytes = head->n_descsz;
            }
            note += 12 + name + bytes;
        }
    }
}

/* ── The report ── */

/* Writes "#1 0x00007f… (/usr/lib/libc.so.6+0x3c0de) (BuildId: 8a1b…)", the form that symbolizers
 * read. */
static void say_frames(crash_work *work, out *text) {
    uint32_t number = 0;
    for (uint32_t i = 0; i < work->frames_count; i++) {
        int which = work->frame_module[i];
        if (which < 0 && i >= work->frames_sure) continue;
        say(text, "#");
        say_number(text, number++);
        say(text, " ");
        say_address(text, work->frames[i]);
        if (which >= 0) {
            const crash_module *module = &work->modules[which];
            say(text, " (");
            say(text, module->path);
            say(text, "+0x");
            say_hex(text, work->frames[i] - module->bias, 0);
            say(text, ")");
            if (module->build_id_bytes > 0) say(text, " (BuildId: ");
            for (uint32_t k = 0; k < module->build_id_bytes; k++)
                say_hex(text, module->build_id[k], 2);
            if (module->build_id_bytes > 0) say(text, ")");
        }
        say(text, "\n");
    }
    if (text->count > 0 && text->data[text->count - 1] == '\n') text->count--;
}

typedef struct field_list {
    out bytes;
    uint16_t count;
} field_list;

static void field_head(field_list *list, uint8_t type, const char *key) {
    uint16_t length = (uint16_t)strlen(key);
    char head[4] = {(char)type, 0};
    memcpy(head + 2, &length, 2);
    put(&list->bytes, head, 4);
    say(&list->bytes, key);
    list->count++;
}

static void field_text(field_list *list, const char *key, const char *text, size_t length) {
    field_head(list, 5, key);
    uint32_t bytes = (uint32_t)length;
    put(&list->bytes, (const char *)&bytes, 4);
    put(&list->bytes, text, length);
}

static void field_number(field_list *list, const char *key, int64_t value) {
    field_head(list, 1, key);
    put(&list->bytes, (const char *)&value, 8);
}

static void field_address(field_list *list, const char *key, uint64_t value) {
    char text[18];
    out to = {text, 0, sizeof text};
    say_address(&to, value);
    field_text(list, key, text, to.count);
}

static void make_report(crash_work *work) {
    const siginfo_t *info = &work->info;
    char thread[17] = "";
    cw_thread_name(thread);
    const char *name = signal_name(info->si_signo);
    const char *code = code_name(info->si_signo, info->si_code);
    uint64_t address = (uint64_t)(uintptr_t)info->si_addr;
    bool sent = info->si_code <= 0, fault = is_fault(info);

    out message = {work->message, 0, sizeof work->message};
    say(&message, name);
    if (*code) {
        say(&message, " (");
        say(&message, code);
        say(&message, ")");
    }
    if (fault) {
        say(&message, " at ");
        say_address(&message, address);
    }
    say(&message, " in thread ");
    say(&message, thread);

    field_list list = {{(char *)work->fields, 2, sizeof work->fields}, 0};
    field_text(&list, "signal", name, strlen(name));
    field_number(&list, "signal_number", info->si_signo);
    field_number(&list, "code", info->si_code);
    if (*code) field_text(&list, "code_name", code, strlen(code));
    if (fault) field_address(&list, "address", address);
    field_address(&list, "pc", work->pc);
    field_text(&list, "thread", thread, strlen(thread));
    field_number(&list, "tid", work->tid);
    if (sent) field_number(&list, "sender_pid", info->si_pid);
    if (sent) field_number(&list, "sender_uid", info->si_uid);
    if (!sent && info->si_signo == SIGSYS)
        field_number(&list, "system_call", info->si_syscall);
    memcpy(work->fields, &list.count, 2);

    out text = {work->text, 0, sizeof work->text};
    say_frames(work, &text);
    work->report = (cwi_crash_report){
        .type = name, .type_length = strlen(name),
        .message = work->message, .message_length = message.count,
        .reason = code, .reason_length = strlen(code),
        .stack = work->text, .stack_length = text.count,
        .fields = work->fields, .fields_length = list.bytes.count,
    };
}

void crash_describe(crash_work *work) {
    work->pc = (uint64_t)REGISTER_PC(work->context);
    for (int i = 0; i < CRASH_FRAMES; i++) work->frame_module[i] = -1;
    /* Each step is guarded: if one faults, the others still report. */
    find_frames(work);
    crash_guarded(work, find_modules);
    for (work->begun = 0; work->begun < work->modules_count; work->begun++)
        crash_guarded(work, read_headers);
    make_report(work);
}
