/* The last record of a process: the interface between the crash handler (crash.c) and Swift. The
 * process has one handler, a table of the loggers that asked for the record, a few stacks to run
 * on, and an alternate stack for each thread that logs. Signal handlers may call everything here
 * except cwi_crash_install. CONCURRENCY.md describes the words (C1 …). */
#ifndef CORDWOOD_CRASH_H
#define CORDWOOD_CRASH_H
#include "CAppend.h"

enum {
    CWI_CRASH_ENGINES_MAX = 64,   /* engines that get the record */
    CWI_CRASH_THREADS_MAX = 4096, /* threads that have an alternate stack of ours */
    CWI_CRASH_RECORDS_MAX = 64    /* of a host whose own handler goes on after faults */
};

/* The content of one record: text and encoded fields (FORMAT §8.2), in the crash's own memory. */
typedef struct cwi_crash_report {
    const char *type; /* "SIGSEGV" */
    const char *message;
    const char *reason; /* "SEGV_MAPERR" */
    const char *stack;  /* one frame a line */
    const uint8_t *fields;
    size_t type_length, message_length, reason_length, stack_length, fields_length;
} cwi_crash_report;

typedef void (*cwi_crash_writer)(cwi_logger *, const cwi_crash_report *);

/* Installs the handler unless it is already installed, and adds the logger. Returns 0 or an
 * errno: ENOMEM, ENOSPC (CWI_CRASH_ENGINES_MAX). */
int cwi_crash_install(cwi_logger *logger, cwi_crash_writer writer);
/* Gives the calling thread an alternate stack if it has none. A stack that is set inside a
 * signal handler is lost when the handler returns. */
void cwi_crash_thread_starts(void);
/* Takes the stack back when the thread ends. */
void cwi_crash_thread_ends(void);
/* Takes back the stacks of this process's threads that have ended. */
void cwi_crash_stacks_reap(void);

/* C1: becomes 1 when the handler is installed and never changes back. */
extern uint32_t cwi_crash_installed;
/* Checked once per chunk. */
static inline void cwi_crash_thread_logs(void) {
    /* ORDER: relaxed. A thread that sees it late gets its stack with its next chunk (C1). */
    if (__atomic_load_n(&cwi_crash_installed, __ATOMIC_RELAXED) && !cwi_tls_get()->crash_stack)
        cwi_crash_thread_starts();
}
#endif
