/* The reserve of Swift's runtime (reserve.c) under the address and undefined behaviour sanitizers:
 * threads that take and give blocks of random sizes while malloc refuses, each filled and looked at
 * again; in the end all of it is free. run.py builds it. */
#define _GNU_SOURCE 1
#include <assert.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int refuses;
static void *test_malloc(size_t bytes) { return refuses ? NULL : malloc(bytes); }
static void *test_calloc(size_t count, size_t bytes) {
    return refuses ? NULL : calloc(count, bytes);
}
static void *test_realloc(void *block, size_t bytes) {
    return refuses ? NULL : realloc(block, bytes);
}
static void *test_aligned(size_t align, size_t bytes) {
    return refuses ? NULL : aligned_alloc(align, bytes);
}
#define malloc test_malloc
#define calloc test_calloc
#define realloc test_realloc
#define aligned_alloc test_aligned
#include "reserve.c"
unsigned char cwi_reserve[CWI_RESERVE_BYTES] __attribute__((aligned(4096)));
#undef malloc
#undef calloc
#undef realloc
#undef aligned_alloc

size_t __real_malloc_usable_size(void *block) { return malloc_usable_size(block); }

enum { THREADS = 4, BLOCKS = 40, ROUNDS = 20000 };
typedef struct {
    unsigned char *at;
    size_t bytes;
    unsigned char mark;
} block;

static void fill(block *b) {
    assert(__wrap_malloc_usable_size(b->at) >= b->bytes);
    memset(b->at, b->mark, b->bytes);
}

static void look(const block *b, size_t bytes) {
    for (size_t i = 0; i < bytes; i++) assert(b->at[i] == b->mark);
}

static void *work(void *argument) {
    uint64_t state = (uint64_t)(uintptr_t)argument;
    block blocks[BLOCKS] = {0};
    for (int round = 0; round < ROUNDS; round++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        block *b = &blocks[(state >> 33) % BLOCKS];
        size_t bytes = (state >> 40) % ((state >> 36) % 16 == 0 ? 20000 : 600);
        if (b->at) look(b, b->bytes);
        unsigned how = (state >> 50) % 4;
        if (b->at && how == 0) {
            size_t old = b->bytes < bytes + 1 ? b->bytes : bytes + 1;
            b->at = cwi_runtime_realloc(b->at, bytes + 1);
            look(b, old);
        } else {
            cwi_runtime_free(b->at);
            size_t align = (size_t)16 << (state >> 52) % 5;
            if (how == 1) {
                b->at = cwi_runtime_calloc(1, bytes + 1);
                for (size_t i = 0; i <= bytes; i++) assert(b->at[i] == 0);
            } else if (how == 2) {
                b->at = cwi_runtime_aligned(bytes + 1, align);
                assert((uintptr_t)b->at % align == 0);
            } else {
                b->at = cwi_runtime_malloc(bytes + 1);
            }
        }
        b->bytes = bytes + 1;
        b->mark = (unsigned char)round;
        assert(is_ours(b->at) && (uintptr_t)b->at % 16 == 0);
        fill(b);
    }
    for (int i = 0; i < BLOCKS; i++) cwi_runtime_free(blocks[i].at);
    return NULL;
}

static void is_free(void) {
    for (uint32_t region = 0; region < REGIONS; region++)
        for (uint32_t word = 0; word < regions[region].words; word++)
            assert(regions[region].bits[word] == 0);
}

int main(void) {
    pthread_t threads[THREADS];
    char *kept = cwi_runtime_strdup("kept");
    assert(!is_ours(kept) && cwi_has_room(1 << 20) && cwi_has_room((size_t)1 << 60));
    struct rlimit limit;
    assert(getrlimit(RLIMIT_AS, &limit) == 0);
    limit.rlim_cur = RLIM_INFINITY - 1; /* a limit, and more than there is */
    assert(setrlimit(RLIMIT_AS, &limit) == 0);
    assert(cwi_has_room(1 << 20) && !cwi_has_room((size_t)1 << 60));
    refuses = 1;
    kept = cwi_runtime_realloc(kept, 100);
    assert(is_ours(kept) && strcmp(kept, "kept") == 0);
    assert(cwi_runtime_realloc(kept, 0) == NULL);
    for (uintptr_t i = 0; i < THREADS; i++)
        assert(pthread_create(&threads[i], NULL, work, (void *)(i + 1)) == 0);
    for (int i = 0; i < THREADS; i++) assert(pthread_join(threads[i], NULL) == 0);
    is_free();
    /* The largest block; beyond half of the large units, there is no room for jobs. */
    void *large = cwi_runtime_malloc(LARGE * (WORD - 1));
    assert(large && !cwi_has_room(1 << 20));
    assert(cwi_runtime_malloc(SIZE_MAX / 4) == NULL);
    cwi_runtime_free(large);
    is_free();
    refuses = 0;
    assert(cwi_has_room(1 << 20));
    printf("%d threads, %d blocks each\n", THREADS, ROUNDS);
    return 0;
}
