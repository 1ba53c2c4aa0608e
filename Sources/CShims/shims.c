#define _GNU_SOURCE 1 /* dladdr, RTLD_NODELETE */
#include "CShims.h"
#include <sys/uio.h>

/* ── Words of the process ── */

void *cwi_retired_rules(void) {
    static _Alignas(64) uint64_t words[65];
    return words;
}

void *cwi_exchange_pool(void) {
    static uint64_t words[8];
    return words;
}

void *cwi_exchange_counter(void) {
    static uint64_t word;
    return &word;
}

void *cwi_upload_marks(void) {
    static uint64_t words[CWI_UPLOAD_MARKS];
    return words;
}

/* ── Random numbers ── */

bool cwi_random(void *bytes, size_t count) {
    unsigned char *to = bytes;
    while (count > 0) {
        ssize_t got = getrandom(to, count < 256 ? count : 256, 0);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) break;
        to += got;
        count -= (size_t)got;
    }
    static uint64_t calls;
    uint64_t state = 0;
    for (size_t i = 0; i < count; i++) {
        if (i % 8 == 0) {
            state = cw_clock_ns(CLOCK_MONOTONIC) ^ (uint64_t)getpid() << 32 ^
                    __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED) << 48;
            /* The last steps of MurmurHash3 spread each bit over all. */
            state = (state ^ state >> 33) * 0xFF51AFD7ED558CCDu;
            state = (state ^ state >> 33) * 0xC4CEB9FE1A85EC53u;
            state ^= state >> 33;
        }
        to[i] = (unsigned char)(state >> i % 8 * 8);
    }
    return count == 0;
}

/* In the libraries of tools/build.sh, for Swift's own random numbers, whose failure would end the
 * process. */
void __wrap_swift_stdlib_random(void *bytes, size_t count);
void __wrap_swift_stdlib_random(void *bytes, size_t count) { (void)cwi_random(bytes, count); }

/* ── Threads ── */

#ifdef __GLIBC__
/* 0: the C library has registered no thread. Missing before 2.35. */
extern const unsigned int __rseq_size __attribute__((weak));

bool cwi_thread_may_start(void) {
    if (&__rseq_size == NULL || __rseq_size == 0) return true;
    /* The kernel itself refuses these arguments, and nothing changes. */
    return syscall(SYS_rseq, NULL, 0, 0, 0) == 0 || errno == EINVAL;
}
#else
bool cwi_thread_may_start(void) { return true; }
#endif

/* ── CRC-32C ── */

static uint32_t crc_table[256];
static uint32_t crc_ready; /* 0: table not made, 1: made */

static void crc_make(void) {
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t c = i;
        for (int k = 0; k < 8; k++) c = (c >> 1) ^ ((c & 1) ? 0x82F63B78u : 0);
        crc_table[i] = c;
    }
    /* Two threads may fill the table at once: both write the same values. */
    __atomic_store_n(&crc_ready, 1, __ATOMIC_RELEASE);
}

static uint32_t crc_portable(uint32_t crc, const unsigned char *p, size_t n) {
    if (!__atomic_load_n(&crc_ready, __ATOMIC_ACQUIRE)) crc_make();
    while (n--) crc = crc_table[(crc ^ *p++) & 255] ^ (crc >> 8);
    return crc;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) static uint32_t crc_one(uint32_t crc, const unsigned char *p,
                                                          size_t n) {
    uint64_t c = crc;
    for (; n >= 8; n -= 8, p += 8) {
        uint64_t v;
        memcpy(&v, p, 8);
        c = __builtin_ia32_crc32di(c, v);
    }
    uint32_t r = (uint32_t)c;
    while (n--) r = __builtin_ia32_crc32qi(r, *p++);
    return r;
}

/* Each instruction depends on the one before and takes three cycles, but three may run at once. So
 * long data is taken in three pieces, whose sums are combined. Other processors stored to a segment
 * last, and this processor's own prefetching ends with each piece; so the next three pieces are
 * prefetched meanwhile, a line of each at a time. */
enum { CRC_PIECE = 1024, CRC_LINE = 64 };
#define CRC_PAST_ONE 0x170076fau /* x^(8·1024-33) modulo the polynomial, reflected */
#define CRC_PAST_TWO 0xa51b6135u /* x^(8·2048-33) */

/* The sum after more zeros; `zeros`: CRC_PAST_… for their number. */
__attribute__((target("sse4.2,pclmul"))) static uint64_t crc_past(uint64_t crc, uint64_t zeros) {
    typedef long long pair __attribute__((vector_size(16)));
    pair product = __builtin_ia32_pclmulqdq128((pair){(long long)crc, 0},
                                               (pair){(long long)zeros, 0}, 0);
    return __builtin_ia32_crc32di(0, (uint64_t)product[0]);
}

__attribute__((target("sse4.2,pclmul"))) static uint32_t crc_three(uint32_t crc,
                                                                   const unsigned char *p,
                                                                   size_t n) {
    uint64_t a = crc;
    for (; n >= 3 * CRC_PIECE; n -= 3 * CRC_PIECE, p += 3 * CRC_PIECE) {
        uint64_t b = 0, c = 0;
        for (size_t line = 0; line < CRC_PIECE; line += CRC_LINE) {
            /* Past the end of the data, this fetches nothing and never faults. */
            for (size_t piece = 3; piece < 6; piece++)
                __builtin_prefetch((const void *)((uintptr_t)p + line + piece * CRC_PIECE));
            for (size_t i = line; i < line + CRC_LINE; i += 8) {
                uint64_t x, y, z;
                memcpy(&x, p + i, 8);
                memcpy(&y, p + i + CRC_PIECE, 8);
                memcpy(&z, p + i + 2 * CRC_PIECE, 8);
                a = __builtin_ia32_crc32di(a, x);
                b = __builtin_ia32_crc32di(b, y);
                c = __builtin_ia32_crc32di(c, z);
            }
        }
        a = crc_past(a, CRC_PAST_TWO) ^ crc_past(b, CRC_PAST_ONE) ^ c;
    }
    return crc_one((uint32_t)a, p, n);
}
#endif

uint32_t cwi_crc32c(uint32_t crc, const void *data, size_t length) {
    crc = ~crc;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("sse4.2"))
        return ~(length >= 3 * CRC_PIECE && __builtin_cpu_supports("pclmul")
                     ? crc_three(crc, data, length)
                     : crc_one(crc, data, length));
#endif
    return ~crc_portable(crc, data, length);
}

/* ── Text of deferred records ── */

#include <locale.h>

static locale_t c_locale;
static pthread_once_t c_locale_once = PTHREAD_ONCE_INIT;
static void c_locale_make(void) { c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0); }

int cwi_print(char *out, size_t size, const char *format, uint8_t type, const void *value) {
    union {
        int i;
        long long l;
        double d;
        long double x;
        void *p;
        char bytes[16];
    } v;
    static const unsigned char counts[] = {0, 4, 8, 8, sizeof(long double), 8};
    if (type < 1 || type > 5) return 0;
    memcpy(v.bytes, value, counts[type]);
    pthread_once(&c_locale_once, c_locale_make);
    locale_t old = c_locale ? uselocale(c_locale) : (locale_t)0;
    int n = 0;
    switch (type) {
    case 1: n = snprintf(out, size, format, v.i); break;
    case 2: n = snprintf(out, size, format, v.l); break;
    case 3: n = snprintf(out, size, format, v.d); break;
    case 4: n = snprintf(out, size, format, v.x); break;
    case 5: n = snprintf(out, size, format, v.p); break;
    }
    if (old) uselocale(old);
    return n;
}

size_t cwi_error_text(uint32_t number, char *out, size_t size) {
    pthread_once(&c_locale_once, c_locale_make);
    const char *text = c_locale ? strerror_l((int)number, c_locale) : "";
    size_t n = strnlen(text, size);
    memcpy(out, text, n);
    return n;
}

/* ── Files ── */

/* Never written: reading it maps the system's page of zeros, which costs no memory. */
static unsigned char zeros[64 << 10];

int cwi_write_zeros(int fd, uint64_t offset, uint64_t length) {
    enum { PARTS = 8 };
    struct iovec parts[PARTS];
    while (length > 0) {
        uint64_t planned = 0;
        int count = 0;
        for (; count < PARTS && planned < length; count++) {
            uint64_t left = length - planned;
            parts[count].iov_base = zeros;
            parts[count].iov_len = left < sizeof zeros ? (size_t)left : sizeof zeros;
            planned += parts[count].iov_len;
        }
        ssize_t done = pwritev(fd, parts, count, (off_t)offset);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) return done < 0 ? errno : EIO;
        offset += (uint64_t)done;
        length -= (uint64_t)done;
    }
    return 0;
}

/* ── Thread-local words, fork and pinning ── */
#include "CAppend.h"
#include "CFork.h"
#include <dlfcn.h>

_Static_assert(sizeof(cwi_tls) == 64, "static TLS is what dlopen lives on; cwi_copy_mark");
_Static_assert(sizeof(cwi_thread) == 256, "one thread block is two pairs of lines");
/* AppendPath.swift hard-codes these offsets. */
_Static_assert(offsetof(cwi_thread, limit) == 8 && offsetof(cwi_thread, busy) == 32 &&
                   offsetof(cwi_thread, engine) == 40 && offsetof(cwi_logger, engine) == 8,
               "the hot path's words");
/* cw_append_block and cw_append_logger of append.h. */
_Static_assert(offsetof(cwi_thread, ptr) == 0 && offsetof(cwi_thread, chunk) == 16 &&
                   offsetof(cwi_thread, base_ticks) == 24 && offsetof(cwi_thread, records) == 48 &&
                   offsetof(cwi_thread, copy) == 56 && offsetof(cwi_thread, clock) == 60 &&
                   offsetof(cwi_logger, id) == 4,
               "the words that hosts have compiled in");
_Static_assert(sizeof(cwi_segment) == 128, "one segment block is a pair of lines");

__thread cwi_tls cwi_tls_words __attribute__((tls_model("initial-exec"), visibility("hidden")));
/* What the append in hosts' objects reads: `current`, by another name. The library itself uses the
 * hidden one, so that two copies in a process never mix. */
extern __thread cwi_tls cw_append_1
    __attribute__((alias("cwi_tls_words"), tls_model("initial-exec"), visibility("default")));

cwi_process cwi_process_words;

static pthread_key_t exit_key;
static pthread_once_t exit_once = PTHREAD_ONCE_INIT;
static int exit_error;
static void (*exit_hook)(cwi_tls *);

static void exit_run(void *words) {
    /* A later destructor may log and register again. pthread then calls us again, up to a fixed
     * number of times; a block taken after that is not given back. */
    if (exit_hook) exit_hook((cwi_tls *)words);
}
static void exit_make(void) { exit_error = pthread_key_create(&exit_key, exit_run); }

int cwi_tls_prepare(void (*on_exit)(cwi_tls *)) {
    exit_hook = on_exit;
    pthread_once(&exit_once, exit_make);
    return exit_error;
}

void cwi_tls_register(void) { pthread_setspecific(exit_key, &cwi_tls_words); }

/* PTHREAD_KEY_2NDLEVEL_SIZE: the number of keys that the C library keeps in the thread's own
 * descriptor. */
enum { KEYS_IN_PLACE = 32 };
bool cwi_tls_registers_in_place(void) { return exit_key < KEYS_IN_PLACE; }

static void (*child_hook)(void);
static pthread_once_t child_once = PTHREAD_ONCE_INIT;
static void child_run(void) {
    cwi_fork_child();
    if (child_hook) child_hook();
}
static void child_make(void) {
    cwi_fork_gate_make();
    pthread_atfork(cwi_fork_prepare, cwi_fork_parent, child_run);
}

/* Runs when the module is loaded: the first open takes locks of the runtime before it gets this
 * far, and another thread may fork meanwhile. */
__attribute__((constructor)) static void child_prepare(void) {
    pthread_once(&child_once, child_make);
}

void cwi_atfork_register(void (*in_child)(void)) {
    child_hook = in_child;
    pthread_once(&child_once, child_make);
}

void cwi_pin_module(void) {
    Dl_info info;
    if (dladdr((void *)&cwi_pin_module, &info) && info.dli_fname)
        (void)dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
}

/* In the libraries of tools/build.sh, jansson's json_loadf compares a file with this: there is
 * no stdin. */
void *cwi_no_stdin;

/* And there the Swift library's own answer, with its tables of 0.5 MB, is not linked: nothing that
 * we call asks for a character's name. */
intptr_t __wrap__swift_stdlib_getScalarName(uint32_t scalar, uint8_t *name, intptr_t size);
intptr_t __wrap__swift_stdlib_getScalarName(uint32_t scalar, uint8_t *name, intptr_t size) {
    (void)scalar, (void)name, (void)size;
    return 0; /* it has none */
}

/* Likewise the texts of Swift types that we never print (tools/unprinted.txt): the empty string, as
 * Swift returns one in two registers. */
struct cwi_swift_string {
    uint64_t count, object;
};
struct cwi_swift_string cwi_no_text(void);
struct cwi_swift_string cwi_no_text(void) {
    return (struct cwi_swift_string){0, 0xE000000000000000};
}
