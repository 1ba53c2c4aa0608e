/* Memory for Swift's runtime when malloc has none (CMemory.h). tools/build.sh renames the static
 * runtime's calls of malloc and its like to those below; where SwiftPM links, nothing calls them.
 * The runtime ends the process for a NULL, so small objects then come from a reserve that the
 * script adds to the libraries' zeros: it takes address space, but no memory before it is used.
 * Blocks are bits, changed by compare-and-swap: no lock, which a forked child might find taken. A
 * block that another thread had at the fork stays taken in the child. */
#define _GNU_SOURCE 1
#include "CAppend.h"
#include "CMemory.h"

#include <stdlib.h>

/* Each word of bits divides 64 units. A block lies within one word. */
enum { SMALL = 64, MIDDLE = 1024, LARGE = 32768, WORD = 64 };
enum { SMALL_WORDS = 128, MIDDLE_WORDS = 24, LARGE_WORDS = 1 };
enum { RESERVE_BYTES = WORD * (SMALL * SMALL_WORDS + MIDDLE * MIDDLE_WORDS + LARGE * LARGE_WORDS) };
enum { LOW_UNITS = 32 }; /* of the large ones: half of them */

static uint64_t small_bits[SMALL_WORDS], middle_bits[MIDDLE_WORDS], large_bits[LARGE_WORDS];

/* Whether the machine accounts for all memory that processes have mapped, so that a mapping may be
 * refused (proc_sys_vm(5)). */
static bool is_strict(void) {
    static int known; /* 0: not yet */
    /* ORDER: relaxed. Each thread that finds nothing learns the same (A45). */
    int mode = __atomic_load_n(&known, __ATOMIC_RELAXED);
    if (mode == 0) {
        char digit = '0';
        int fd = open("/proc/sys/vm/overcommit_memory", O_RDONLY | O_CLOEXEC);
        if (fd >= 0 && read(fd, &digit, 1) < 1) digit = '0';
        if (fd >= 0) close(fd);
        mode = digit;
        __atomic_store_n(&known, mode, __ATOMIC_RELAXED);
    }
    return mode == '2';
}

/* Whether a mapping may be refused before the machine's memory is used up. If not, a mapping proves
 * nothing, and its end would delay every mmap of the host (R39). */
static bool is_limited(void) {
    struct rlimit space, data;
    if (getrlimit(RLIMIT_AS, &space) != 0 || space.rlim_cur != RLIM_INFINITY) return true;
    if (getrlimit(RLIMIT_DATA, &data) != 0 || data.rlim_cur != RLIM_INFINITY) return true;
    return is_strict();
}

bool cwi_has_room(size_t bytes) {
    int error = errno;
    /* ORDER: relaxed. How much is taken is only a guess (A45). */
    uint64_t taken = __atomic_load_n(large_bits, __ATOMIC_RELAXED);
    if (__builtin_popcountll(taken) > LOW_UNITS) return false;
    bool has = true;
    if (is_limited()) {
        void *room = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        has = room != MAP_FAILED;
        if (room != MAP_FAILED) munmap(room, bytes);
    }
    errno = error;
    return has;
}

/* NULL where the runtime keeps its own malloc, so that such programs do not hold it. */
extern unsigned char cwi_reserve[] __attribute__((weak));
_Static_assert((int)RESERVE_BYTES == CWI_RESERVE_BYTES, "the words of bits divide the reserve");

static const struct {
    uint64_t *bits;
    uint32_t unit, words, start;
} regions[] = {
    {small_bits, SMALL, SMALL_WORDS, 0},
    {middle_bits, MIDDLE, MIDDLE_WORDS, WORD * SMALL * SMALL_WORDS},
    {large_bits, LARGE, LARGE_WORDS, WORD * (SMALL * SMALL_WORDS + MIDDLE * MIDDLE_WORDS)},
};
enum { REGIONS = sizeof regions / sizeof *regions };

/* In front of each block. */
typedef struct {
    uint64_t bits;     /* the units that it takes */
    uint32_t capacity; /* bytes from its address on */
    uint16_t region, word;
} header;
_Static_assert(sizeof(header) == 16, "blocks are aligned as malloc aligns them");

static void *take_of(uint32_t region, size_t bytes, size_t align) {
    uint32_t unit = regions[region].unit;
    uint64_t units = (bytes + unit - 1) / unit;
    if (units > WORD) return NULL;
    for (uint32_t word = 0; word < regions[region].words; word++) {
        uint64_t *bits = &regions[region].bits[word];
        /* ORDER: relaxed. The exchange below decides (A45). */
        uint64_t taken = __atomic_load_n(bits, __ATOMIC_RELAXED);
        while (true) {
            /* Bit i stays if the units from i on are free. */
            uint64_t starts = ~taken;
            for (uint64_t more = 1; more < units && starts != 0; more++)
                starts &= ~taken >> more;
            if (starts == 0) break;
            uint32_t first = (uint32_t)__builtin_ctzll(starts);
            uint64_t mine = (units == WORD ? ~(uint64_t)0 : ((uint64_t)1 << units) - 1) << first;
            /* ORDER: acquire. The block's last owner is done with it. Pairs: give (A45). */
            if (!__atomic_compare_exchange_n(bits, &taken, taken | mine, false, __ATOMIC_ACQUIRE,
                                             __ATOMIC_RELAXED))
                continue;
            unsigned char *at =
                cwi_reserve + regions[region].start + ((size_t)word * WORD + first) * unit;
            uintptr_t block = ((uintptr_t)at + sizeof(header) + align - 1) & ~(align - 1);
            header *head = (header *)block - 1;
            head->bits = mine;
            head->capacity = (uint32_t)((uintptr_t)at + units * unit - block);
            head->region = (uint16_t)region;
            head->word = (uint16_t)word;
            return (void *)block;
        }
    }
    return NULL;
}

static void *take(size_t bytes, size_t align) {
    if (!cwi_reserve || bytes > RESERVE_BYTES || align > 4096) return NULL;
    bytes += sizeof(header) + (align > sizeof(header) ? align : 0);
    for (uint32_t region = 0; region < REGIONS; region++) {
        void *block = take_of(region, bytes, align);
        if (block) return block;
    }
    return NULL;
}

static bool is_ours(const void *block) {
    return (uintptr_t)block - (uintptr_t)cwi_reserve < RESERVE_BYTES && block;
}

static void give(void *block) {
    header *head = (header *)block - 1;
    uint64_t *bits = &regions[head->region].bits[head->word];
    /* ORDER: release. Pairs: take_of (A45). */
    __atomic_fetch_and(bits, ~head->bits, __ATOMIC_RELEASE);
}

/* ── For the runtime ── */

enum { NAP_NS = 10000000, HOST_NAPS = 100 };

void *cwi_runtime_aligned(size_t bytes, size_t align);
void *cwi_runtime_malloc(size_t bytes);
void *cwi_runtime_new(size_t bytes);
void *cwi_runtime_calloc(size_t count, size_t bytes);
void *cwi_runtime_realloc(void *block, size_t bytes);
void cwi_runtime_free(void *block);
void cwi_runtime_free_sized(void *block, size_t bytes);
void cwi_runtime_free_aligned(void *block, size_t bytes, size_t align);
int cwi_runtime_memalign(void **block, size_t align, size_t bytes);
/* Code that the compiler takes from Swift's library into our modules calls it, too: the linker
 * wraps it. */
extern size_t __real_malloc_usable_size(void *block) __attribute__((weak));
size_t __wrap_malloc_usable_size(void *block);
char *cwi_runtime_strdup(const char *text);

/* Where even the reserve has none, the engine's threads wait until there is some: NULL would end
 * the host. The host's threads wait for a second. */
void *cwi_runtime_aligned(size_t bytes, size_t align) {
    if (align < sizeof(header)) align = sizeof(header);
    int error = errno;
    struct timespec nap = {0, NAP_NS};
    for (uint32_t naps = 0;; naps++) {
        void *block = NULL;
        if (align > sizeof(header)) block = aligned_alloc(align, (bytes + align - 1) & -align);
        else block = malloc(bytes);
        if (!block) block = take(bytes, align);
        bool waits = (cwi_tls_get()->helper & CWI_HELPER_THREAD) || naps < HOST_NAPS;
        if (block || !waits || bytes > PTRDIFF_MAX) {
            errno = error;
            return block;
        }
        nanosleep(&nap, NULL);
    }
}

void *cwi_runtime_malloc(size_t bytes) {
    int error = errno;
    void *block = malloc(bytes);
    if (block) return block;
    errno = error;
    return cwi_runtime_aligned(bytes, sizeof(header));
}

void *cwi_runtime_new(size_t bytes) { return cwi_runtime_malloc(bytes > 0 ? bytes : 1); }

void *cwi_runtime_calloc(size_t count, size_t bytes) {
    int error = errno;
    void *block = calloc(count, bytes);
    size_t all;
    if (block || __builtin_mul_overflow(count, bytes, &all)) return block;
    errno = error;
    block = cwi_runtime_aligned(all, sizeof(header));
    return block ? memset(block, 0, all) : NULL;
}

void *cwi_runtime_realloc(void *block, size_t bytes) {
    if (block && bytes == 0) return cwi_runtime_free(block), NULL;
    int error = errno;
    void *grown = is_ours(block) ? NULL : realloc(block, bytes);
    if (grown) return grown;
    errno = error;
    grown = cwi_runtime_aligned(bytes, sizeof(header));
    if (!grown || !block) return grown;
    size_t old = __wrap_malloc_usable_size(block);
    memcpy(grown, block, old < bytes ? old : bytes);
    cwi_runtime_free(block);
    return grown;
}

void cwi_runtime_free(void *block) {
    if (is_ours(block)) give(block);
    else free(block);
}
void cwi_runtime_free_sized(void *block, size_t bytes) {
    (void)bytes;
    cwi_runtime_free(block);
}
void cwi_runtime_free_aligned(void *block, size_t bytes, size_t align) {
    (void)bytes, (void)align;
    cwi_runtime_free(block);
}

int cwi_runtime_memalign(void **block, size_t align, size_t bytes) {
    *block = cwi_runtime_aligned(bytes, align);
    return *block ? 0 : ENOMEM;
}

size_t __wrap_malloc_usable_size(void *block) {
    if (is_ours(block)) return ((header *)block - 1)->capacity;
    return __real_malloc_usable_size ? __real_malloc_usable_size(block) : 0;
}

char *cwi_runtime_strdup(const char *text) {
    size_t bytes = strlen(text) + 1;
    char *copy = cwi_runtime_malloc(bytes);
    return copy ? memcpy(copy, text, bytes) : NULL;
}
