/* Working memory of one crash, shared by crash.c (handler, stacks, chain) and crash_text.c (the
 * text of the record). It lies beside the stack on which the crash is handled and belongs to the
 * thread that took that stack. A fault while it is being filled jumps back to `guard`. */
#ifndef CORDWOOD_CRASH_PRIVATE_H
#define CORDWOOD_CRASH_PRIVATE_H
#include "CCrash.h"
#include <setjmp.h>
#include <ucontext.h>

enum {
    CRASH_FRAMES = 64,
    CRASH_MODULES = 24,
    CRASH_PATH = 256,
    CRASH_TEXT = 24 << 10,
    CRASH_FIELDS = 2048
};

/* A mapped file, recorded so that addresses can be resolved later. */
typedef struct crash_module {
    uint64_t base;
    uint64_t bias; /* what to take from an address to get the file's own */
    uint8_t build_id[32];
    uint32_t build_id_bytes;
    char path[CRASH_PATH];
} crash_module;

typedef struct crash_work {
    siginfo_t info;
    ucontext_t *context; /* of the interrupted code, in the signal's frame */
    uint32_t tid;
    uint64_t pc;
    /* frames */
    uint64_t unwind_from; /* the unwinder's own frames come before this address */
    uint32_t begun;
    uint32_t frames_count;
    uint32_t frames_sure; /* those after them are guesses by frame pointer */
    uint64_t frames[CRASH_FRAMES];
    int32_t frame_module[CRASH_FRAMES]; /* -1: none known */
    /* modules */
    uint32_t modules_count;
    uint64_t file_base, file_inode; /* of the last mapping that began a file */
    crash_module modules[CRASH_MODULES];
    char line[512];
    char chunk[4096];
    /* text */
    char message[256];
    char text[CRASH_TEXT];
    uint8_t fields[CRASH_FIELDS];
    cwi_crash_report report;
    cwi_logger *logger; /* being written to */
    /* While `guarded`, a fault continues after the step that raised it */
    sigjmp_buf guard;
    volatile sig_atomic_t guarded;
} crash_work;

/* Runs one step. A fault ends the step. */
__attribute__((noinline)) static void crash_guarded(crash_work *work, void (*step)(crash_work *)) {
    if (sigsetjmp(work->guard, 0) == 0) {
        work->guarded = 1;
        step(work);
    }
    work->guarded = 0;
}

/* Fills the report. The caller has set info, context and tid. */
void crash_describe(crash_work *work);
/* Makes the unwinder do its one-time setup now. */
void crash_warm_up(void);
#endif
