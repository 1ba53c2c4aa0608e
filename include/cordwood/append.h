/* The append in the host's own code, which CW_LOG and CORDWOOD_LOG use instead of a call if the
 * library allows it. log.h includes this file; call nothing here by hand. C11 and C++17.
 *
 * The code stores a record into the calling thread's chunk with the stores of the library's own
 * path (AppendPath.swift), in the same order. Every unusual case is a call: a thread's first
 * record, a full chunk, an exact clock of the system, a nested or abandoned append, a forked child,
 * another engine, a place that is not registered. docs/CONCURRENCY.md, "The append in the header",
 * says why this is safe; docs/ABI.md says what of it can never change.
 *
 * Every record is a call with -DCW_APPEND_CALL, without optimization or with -Os, under the thread,
 * memory and hardware address sanitizers, and unless this is GCC or Clang with glibc on x86-64 or
 * aarch64. */
#ifndef CORDWOOD_H
#include "cordwood.h" /* which in turn includes this file, after log.h's types */
#endif
#ifndef CORDWOOD_APPEND_HEADER_H
#define CORDWOOD_APPEND_HEADER_H

#if defined(CW_APPEND_CALL) || !defined(__GNUC__) || !defined(__OPTIMIZE__) ||                     \
    defined(__OPTIMIZE_SIZE__) || !defined(__GLIBC__) || !defined(__LP64__) ||                     \
    defined(__SANITIZE_THREAD__) || defined(__SANITIZE_HWADDRESS__)
#define CW_APPEND_INLINE_ 0
#elif defined(__x86_64__) || (defined(__aarch64__) && defined(__AARCH64EL__))
#define CW_APPEND_INLINE_ 1
#else
#define CW_APPEND_INLINE_ 0
#endif
#if defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer) ||                          \
    __has_feature(hwaddress_sanitizer)
#undef CW_APPEND_INLINE_
#define CW_APPEND_INLINE_ 0
#endif
#endif

/* The first 64 bytes of a thread's block in one engine. Only its own thread stores here, except to
 * `limit`, which the library's helper sets to NULL. A forked child finds zeros. */
typedef struct cw_append_block {
    unsigned char *ptr;   /* where the next record goes */
    unsigned char *limit; /* end of the chunk; NULL: call */
    unsigned char *chunk; /* its length so far is at byte 8 */
    uint64_t base_ticks;  /* records hold the processor's counter minus this, in 32 bits */
    uintptr_t busy;       /* 0, or the stack pointer of the append that runs */
    const void *engine;   /* another one than the logger's, or a marked one: call */
    uint64_t records;     /* statistics */
    uint32_t copy;        /* of the library; its number in the upper half */
    uint32_t clock;       /* CW_APPEND_COARSE_, or 0: where `engine` is marked, call */
} cw_append_block;

/* Of `clock`: records hold CLOCK_MONOTONIC_COARSE in ns, minus `base_ticks`, and `engine` is the
 * logger's plus 2. A library that does not know this clock leaves 0 there. */
enum { CW_APPEND_COARSE_ = 3 };

/* Returns true if the record that the calling thread has just committed is kept, although its chunk
 * was closed meanwhile. False: it is not kept, the thread is no longer busy, and the record must be
 * written again. Signals: safe. */
bool cw_append_settled(cw_append_block *block);

#if CW_APPEND_INLINE_

/* The calling thread's block. The 1 is the version of everything that is compiled into hosts. Never
 * weak: a weak thread-local word that does not exist reads as garbage. */
extern __thread cw_append_block *cw_append_1
    __attribute__((tls_model("initial-exec"), visibility("default")));

#define CW_INLINED_ static inline __attribute__((always_inline))
#define CW_FENCE_() __asm__ volatile("" : : : "memory")
/* One load, like a relaxed atomic one, for which GCC first puts each address in a register. */
#define CW_ONCE_(word) (*(const volatile __typeof__(word) *)&(word))
#define CW_LIKELY_(condition) __builtin_expect(!!(condition), 1)

struct cw_append_logger {
    uint32_t enabled;
    uint32_t id;
    const void *engine;
};

/* Read once per record: a fiber may have moved to another thread since the last one. */
CW_INLINED_ cw_append_block *cw_append_block_(void) {
#if defined(__x86_64__)
    return __atomic_load_n(&cw_append_1, __ATOMIC_RELAXED);
#else
    /* Compilers hoist the thread pointer out of loops. */
    cw_append_block *block, *place;
    __asm__ volatile("mrs %0, tpidr_el0\n\tadrp %1, :gottprel:cw_append_1\n\t"
                     "ldr %1, [%1, #:gottprel_lo12:cw_append_1]\n\tldr %0, [%0, %1]"
                     : "=&r"(block), "=&r"(place)
                     :
                     : "memory");
    return block;
#endif
}

/* The stack pointer, not the frame's address: a frame may be larger than the distance that tells an
 * append left by longjmp from one interrupted by a signal handler. */
CW_INLINED_ void cw_append_busy_(cw_append_block *block) {
#if defined(__x86_64__)
    __asm__ volatile("movq %%rsp, %0" : "=m"(block->busy) : : "memory");
#else
    uintptr_t stack;
    __asm__ volatile("mov %0, sp" : "=r"(stack) : : "memory");
    __atomic_store_n(&block->busy, stack, __ATOMIC_RELAXED);
#endif
}

CW_INLINED_ void cw_append_idle_(cw_append_block *block) {
    __atomic_store_n(&block->busy, (uintptr_t)0, __ATOMIC_RELEASE);
}

CW_INLINED_ uint64_t cw_append_ticks_(void) {
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#else
    uint64_t ticks;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
#endif
}

#if defined(__x86_64__)
/* The C library's clock_gettime; <time.h> is the host's to include. */
typedef struct cw_append_time {
    int64_t s, ns;
} cw_append_time;
#ifdef __cplusplus
extern "C" {
#endif
extern int cw_append_gettime_(int clock, cw_append_time *time) __asm__("clock_gettime");
#ifdef __cplusplus
}
#endif

/* The coarse clock, which the system keeps in memory, if it is the engine's (`clock`). Otherwise a
 * time that no record has. The thread is busy: a host's function in place of the clock may log, and
 * then makes a nested append. */
static __attribute__((noinline, cold, unused)) uint64_t
cw_append_coarse_(const struct cw_append_logger *logger, const cw_append_block *block) {
    const uintptr_t marked = (uintptr_t)__atomic_load_n(&block->engine, __ATOMIC_RELAXED);
    cw_append_time now;
    if (marked != (uintptr_t)logger->engine + 2 || block->clock != CW_APPEND_COARSE_ ||
        cw_append_gettime_(6 /* CLOCK_MONOTONIC_COARSE */, &now) != 0)
        return UINT64_MAX;
    return (uint64_t)now.s * 1000000000u + (uint64_t)now.ns;
}
#endif

/* The time of a record. UINT64_MAX, which no record has, if the block is not the engine's or the
 * library must see its records first; on aarch64, where reading the counter is cheap, also for an
 * engine with the coarse clock. */
CW_INLINED_ uint64_t cw_append_now_(const struct cw_append_logger *logger,
                                    const cw_append_block *block) {
    if (CW_LIKELY_(__atomic_load_n(&block->engine, __ATOMIC_RELAXED) == logger->engine))
        return cw_append_ticks_();
#if defined(__x86_64__)
    return cw_append_coarse_(logger, block);
#else
    return UINT64_MAX;
#endif
}

CW_INLINED_ void cw_store_u4_(unsigned char *at, uint32_t value) {
    __builtin_memcpy(at, &value, sizeof value);
}

/* A record that has begun. */
typedef struct cw_append {
    cw_append_block *block;
    unsigned char *chunk;
    unsigned char *start;
    unsigned char *at; /* where its next argument goes */
} cw_append;

/* Begins a record of `bytes` bytes after its header. `kind`: level, type, flags (FORMAT §8). The
 * caller has found the block idle. False: nothing has begun, and the caller calls the library.
 * Until cw_append_end only copies run. */
CW_INLINED_ bool cw_append_start_(cw_append *record, const cw_logger *logger,
                                  cw_append_block *block, uint32_t kind, size_t bytes) {
    const struct cw_append_logger *words = (const struct cw_append_logger *)(const void *)logger;
    record->block = NULL;
    cw_append_busy_(block);
    CW_FENCE_(); /* a handler on this thread must see busy before anything moves (A1) */
    /* After busy is set: before that, a handler may give the block to another engine (A35). */
    const uint64_t ticks = cw_append_now_(words, block);
    unsigned char *const chunk = CW_ONCE_(block->chunk);
    unsigned char *const start = CW_ONCE_(block->ptr);
    const uint64_t base = CW_ONCE_(block->base_ticks);
    /* The limit last: if it is not NULL, no handler has forked before, and the words above are not
     * a wiped block's. None of them is read again. */
    CW_FENCE_();
    unsigned char *const limit = CW_ONCE_(block->limit);
    const uint64_t delta = ticks - base;
    const uint64_t left = (uintptr_t)limit - (uintptr_t)start - (bytes + 24);
    /* One comparison tests both: there is room, of which a chunk has less than 4 GiB, and the time
     * fits. */
    if (!CW_LIKELY_((left | delta) >> 32 == 0)) {
        cw_append_idle_(block);
        return false;
    }
    cw_store_u4_(start + 4, (uint32_t)delta);
    cw_store_u4_(start + 8, words->id);
    cw_store_u4_(start + 12, kind);
    record->block = block;
    record->chunk = chunk;
    record->start = start;
    record->at = start + 16;
    return true;
}

/* Begins a record of that place, with `bytes` bytes of arguments. */
CW_INLINED_ bool cw_append_begin(cw_append *record, const cw_logger *logger, cw_level level,
                                 const cw_site *site, size_t bytes) {
    cw_append_block *block = cw_append_block_();
    record->block = NULL;
    /* Strings of that many bytes are cut, and a NULL counts as one. */
    if (level - 1 >= 24 || bytes >= CW_STRING_MAX || !CW_LIKELY_(block != NULL)) return false;
    /* The library's release: all lanes know the place (A21). */
    const uint32_t number = __atomic_load_n(&site->inlined, __ATOMIC_ACQUIRE) ^ block->copy;
    if (!CW_LIKELY_((number >> 16 | block->busy) == 0)) return false;
    if (!cw_append_start_(record, logger, block, level | 3u << 8, bytes + 4)) return false;
    cw_store_u4_(record->at, number);
    record->at += 4;
    return true;
}

/* Publishes the record, with the same `bytes`. False: the caller hands it and its block to
 * cw_append_slow_. */
CW_INLINED_ bool cw_append_finish_(const cw_append *record, size_t bytes) {
    cw_append_block *const block = record->block;
    cw_store_u4_(record->start, (uint32_t)bytes + 16);
    unsigned char *const end = record->start + ((bytes + 23) & ~(size_t)7);
    /* Before this store the record does not exist; after it the record is complete (A4). */
    __atomic_store_n((uint32_t *)(void *)(record->chunk + 8), (uint32_t)(end - record->chunk),
                     __ATOMIC_RELEASE);
    __atomic_store_n(&block->ptr, end, __ATOMIC_RELAXED);
#if defined(__x86_64__)
    __asm__ volatile("prefetchw %0" : : "m"(*(const char *)(end + 1024)));
#else
    __builtin_prefetch(end + 1024, 1);
#endif
    CW_FENCE_(); /* the helper's membarrier is the processor's half (A2) */
    /* A plain load: for an atomic one, GCC keeps the address in a register that it spills. */
    if (!CW_LIKELY_(block->limit != NULL)) return false;
    block->records++;
    cw_append_idle_(block);
    return true;
}
CW_INLINED_ bool cw_append_end(const cw_append *record, size_t bytes) {
    return cw_append_finish_(record, bytes + 4);
}

/* Not inlined, so that places stay small. `block`: busy with a record whose chunk was closed after
 * it was stored. True: that record is kept. */
static __attribute__((noinline, cold, unused)) bool cw_append_is_kept_(cw_append_block *block) {
    if (!block || !cw_append_settled(block)) return false;
    block->records++;
    cw_append_idle_(block);
    return true;
}

/* Writes a record that has not begun (block NULL), or settles one and perhaps writes it again.
 * `arguments` is not const: the element after the last argument is not set. */
static __attribute__((noinline, cold, unused)) cw_status
cw_append_slow_(cw_logger *logger, cw_level level, cw_site *site, cw_arg *arguments,
                cw_append_block *block) {
    return cw_append_is_kept_(block) ? CW_OK : cw_site_write(logger, level, site, arguments);
}

/* The length of a string before its NUL. If the string is NULL or may not be read: a length too
 * large for cw_append_begin. Only the format says whether it may be read, and the library parses
 * that: "%.5s" takes bytes without a NUL, and "%p" an address that may be invalid. */
CW_INLINED_ size_t cw_append_length(const cw_site *site, const char *text) {
    return text && __atomic_load_n(&site->inlined, __ATOMIC_RELAXED) ? __builtin_strlen(text)
                                                                     : CW_STRING_MAX;
}

/* The arguments. `length`: of a string. */
CW_INLINED_ void cw_put_bytes_(cw_append *record, const void *bytes, size_t count) {
    __builtin_memcpy(record->at, bytes, count);
    record->at += count;
}
CW_INLINED_ void cw_put_u4(cw_append *record, uint64_t value, size_t length) {
    (void)length;
    cw_store_u4_(record->at, (uint32_t)value);
    record->at += 4;
}
CW_INLINED_ void cw_put_i4(cw_append *record, int64_t value, size_t length) {
    cw_put_u4(record, (uint64_t)value, length);
}
CW_INLINED_ void cw_put_u8(cw_append *record, uint64_t value, size_t length) {
    (void)length;
    cw_put_bytes_(record, &value, sizeof value);
}
CW_INLINED_ void cw_put_i8(cw_append *record, int64_t value, size_t length) {
    cw_put_u8(record, (uint64_t)value, length);
}
CW_INLINED_ void cw_put_d(cw_append *record, double value, size_t length) {
    (void)length;
    cw_put_bytes_(record, &value, sizeof value);
}
CW_INLINED_ void cw_put_l(cw_append *record, long double value, size_t length) {
    (void)record, (void)value, (void)length; /* the library lets no such place be inlined */
}
CW_INLINED_ void cw_put_p(cw_append *record, const volatile void *value, size_t length) {
    cw_put_u8(record, (uint64_t)(uintptr_t)value, length);
}
CW_INLINED_ void cw_put_s(cw_append *record, const char *text, size_t length) {
    cw_put_u4(record, length, 0);
    cw_put_bytes_(record, text, length);
}


/* A record of text. In C, cw_write(…) is this; (cw_write)(…) and &cw_write are the library's. */
static __attribute__((noinline, cold, unused)) cw_status
cw_write_slow_(cw_logger *logger, cw_level level, const char *message, size_t length,
               cw_append_block *block) {
    return cw_append_is_kept_(block) ? CW_OK : (cw_write)(logger, level, message, length);
}
CW_INLINED_ cw_status cw_write_here_(cw_logger *logger, cw_level level, const char *message,
                                     size_t length) {
    cw_append_block *block = cw_append_block_();
    cw_append record;
    record.block = NULL;
    if (CW_LIKELY_(cw_enabled(logger, level) && level - 1 < 24 && message &&
                   length < CW_STRING_MAX && block && block->busy == 0) &&
        cw_append_start_(&record, logger, block, level | 1u << 8, length)) {
        cw_put_bytes_(&record, message, length);
        if (cw_append_finish_(&record, length)) return CW_OK;
    }
    return cw_write_slow_(logger, level, message, length, record.block);
}
#ifndef __cplusplus
#define cw_write(...) cw_write_here_(__VA_ARGS__)
#endif

#else
#define cw_write_here_ cw_write
#endif
#endif
