/* What a Swift log call shares with the interpolation that it evaluates, and the hooks through
 * which a task's context reaches the append path. The word is thread-local. The first
 * Context.with of the process sets the hooks, once; they never change. */
#ifndef CORDWOOD_MESSAGE_H
#define CORDWOOD_MESSAGE_H
#include "CAppend.h"

/* The frame (MessageFrame.swift) of the log call that this thread is running, or NULL. */
extern __thread void *cwi_frame_word __attribute__((tls_model("initial-exec")));
static inline void **cwi_frame_slot(void) { return &cwi_frame_word; }

/* A frame's serial number: unique among the frames of the process, and distinct from the serials
 * that have a special meaning. Bits from 40 up identify the thread, the bits below count its
 * frames. A thread takes its own bits when its next number is 0, as it is at first. */
enum { CWI_SERIAL_BITS = 40 };
extern __thread uint64_t cwi_serial_word __attribute__((tls_model("initial-exec")));
uint64_t cwi_serial_slow(void);
static inline uint64_t cwi_serial_next(void) {
    uint64_t next = cwi_serial_word + 1;
    if (next == 0) return cwi_serial_slow();
    cwi_serial_word = next;
    return next;
}

/* The calling thread's frames of messages made outside log calls (MessageKeep.swift). */
extern __thread void *cwi_keep_word __attribute__((tls_model("initial-exec")));
static inline void **cwi_keep_slot(void) { return &cwi_keep_word; }
/* Zeroed memory for that word. When the thread ends, the memory is freed after a call of
 * `release`, whose address is its first word. NULL: out of memory. */
typedef void (*cwi_keep_release)(void *memory);
void *cwi_keep_make(size_t size, cwi_keep_release release);

/* The calling thread's fallback when memory runs out: room for the head, the place and one
 * number. */
enum { CWI_SPARE_BYTES = 96 };
extern __thread uint64_t cwi_spare_words[CWI_SPARE_BYTES / 8]
    __attribute__((tls_model("initial-exec")));
static inline void *cwi_spare_frame(void) { return cwi_spare_words; }

/* The part of a record that comes from its task's context. The owner keeps the memory. */
typedef struct cwi_context_view {
    const void *fields; /* FORMAT 8.2 without the count */
    uint64_t field_bytes;
    uint32_t field_count;
    uint32_t has_trace;
    const void *trace; /* 25 bytes, FORMAT 8.4 */
} cwi_context_view;

typedef void *(*cwi_context_take)(cwi_context_view *); /* the owner, retained; NULL: no context */
typedef void (*cwi_context_drop)(void *owner);

typedef struct cwi_context_hooks {
    cwi_context_take take; /* A23: NULL until a context was ever used */
    cwi_context_drop drop;
} cwi_context_hooks;

/* The sites of Swift's log calls (MessageSites.swift), one table per process. */
typedef struct cwi_message_table {
    uint64_t *slots; /* A21: addresses of entries, which follow the slots */
    uint64_t *quick; /* A23: `slots`, or NULL once a context was ever used */
    uint64_t used;   /* bytes of entries */
    uint32_t count;
    uint32_t reserved;
} cwi_message_table;

extern cwi_message_table cwi_message_table_words;
static inline cwi_message_table *cwi_message_table_get(void) { return &cwi_message_table_words; }
static inline uint64_t *cwi_message_quick(void) {
    return __atomic_load_n(&cwi_message_table_words.quick, __ATOMIC_ACQUIRE);
}

extern cwi_context_hooks cwi_context_hooks_words;
static inline cwi_context_take cwi_context_taker(void) {
    return __atomic_load_n(&cwi_context_hooks_words.take, __ATOMIC_ACQUIRE);
}
static inline void cwi_context_let_go(void *owner) { cwi_context_hooks_words.drop(owner); }
/* Stores the table's first `quick`. */
void cwi_message_table_made(void);
void cwi_context_install(cwi_context_take take, cwi_context_drop drop);
#endif
