#include "Counting.h"
#include <stddef.h>

static __thread uint64_t allocations;
void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);
void *malloc(size_t size) { allocations++; return __libc_malloc(size); }
void *calloc(size_t count, size_t size) { allocations++; return __libc_calloc(count, size); }
void *realloc(void *old, size_t size) { allocations++; return __libc_realloc(old, size); }
void *aligned_alloc(size_t to, size_t size) { allocations++; return __libc_memalign(to, size); }
int posix_memalign(void **out, size_t to, size_t size) {
    allocations++;
    *out = __libc_memalign(to, size);
    return *out == NULL ? 12 : 0;
}
uint64_t counting_allocations(void) { return allocations; }

#include <string.h>

#define EACH(m)                                                                                    \
    m(w1) m(w2) m(w3) m(w4) m(fields) m(context) m(off) m(swiftlog_cordwood) m(swiftlog_stream)
#define DECLARE(name) void write_##name(intptr_t count);
#define ROW(name) {#name, write_##name},
EACH(DECLARE)
static const struct {
    const char *name;
    counting_workload run;
} workloads[] = {EACH(ROW)};

counting_workload counting_find(const char *name) {
    for (size_t i = 0; i < sizeof workloads / sizeof *workloads; i++)
        if (strcmp(workloads[i].name, name) == 0) return workloads[i].run;
    return NULL;
}
