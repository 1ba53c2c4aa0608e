/* Handles SIGBUS from a store into a mapped file that has lost the page, because somebody
 * truncated the file or the file system refuses to write. With CW_FLAG_SIGBUS_GUARD the process
 * installs a handler that maps private memory over the segment and takes the segment out of use;
 * the interrupted append resumes, notices, and writes its record again elsewhere. The handler
 * passes faults at addresses that are not ours to the previously installed handler. Nothing here
 * takes a lock, allocates from the heap, or reads mapped files. docs/CONCURRENCY.md, A25;
 * RELIABILITY R13. */
#define _GNU_SOURCE 1 /* mremap */
#include "CAppend.h"
#include "CFork.h"

enum { LANE_FILE_BYTES = 65536, PAGE_BYTES = 4096 };

static struct sigaction before;
static uint32_t installed; /* 0 no, 1 being done, 2 yes */

static void heavy_fence(void) {
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    if (cwi_process_words.membarrier != 1) return; /* writers fence by themselves */
    if (cw_membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) == 0) return;
    cw_membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED);
    cw_membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
}

void cwi_segment_lose(cwi_engine *engine, cwi_segment *segment) {
    (void)engine;
    /* ORDER: release, before the poison: a thread that finds its limit gone also finds the
     * reason (A25). */
    __atomic_store_n(&segment->lost, 1, __ATOMIC_RELEASE);
    /* ORDER: acquire-release. From here on no claim in this segment succeeds (A5). */
    uint32_t open = CWI_SEGMENT_OPEN;
    __atomic_compare_exchange_n(&segment->state, &open, CWI_SEGMENT_SEALING, false,
                                __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
    heavy_fence();
    cwi_process *process = cwi_process_get();
    uint32_t used = __atomic_load_n(&process->pool_used, __ATOMIC_ACQUIRE);
    if (used > CWI_THREADS_MAX) used = CWI_THREADS_MAX;
    for (uint32_t i = 0; process->pool && i < used; i++) {
        cwi_thread *thread = process->pool + i;
        /* ORDER: release. Like the sealer, this writes nothing but NULL (A2). */
        if (__atomic_load_n(&thread->segment, __ATOMIC_RELAXED) == segment)
            __atomic_store_n(&thread->limit, (uint8_t *)NULL, __ATOMIC_RELEASE);
    }
    /* By now the file holds everything that an append with the old limit has published. */
    heavy_fence();
}

static int lay_zeros(uint8_t *start, size_t bytes) {
    return mmap(start, bytes, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0) != MAP_FAILED;
}

/* The lane file's memory keeps what the file still holds: counts, names. */
static int lay_copy(uint8_t *start, size_t bytes, const cwi_lane *lane) {
    uint8_t *copy = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (copy == MAP_FAILED) return 0;
    bool known = cwi_fd_is(lane->lock_fd, lane->lock_device, lane->lock_inode);
    for (size_t done = 0; known && done < bytes;) {
        ssize_t n = pread(lane->lock_fd, copy + done, bytes - done, (off_t)done);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) break;
        done += (size_t)n;
    }
    if (mremap(copy, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, start) != MAP_FAILED) return 1;
    munmap(copy, bytes);
    return 0;
}

static int lies_in(const uint8_t *address, const uint8_t *start, size_t bytes) {
    return start != NULL && address >= start && (size_t)(address - start) < bytes;
}

/* Returns 1 if the address belonged to one of our files and is now private memory. */
static int cover(cwi_engine *engine, uint8_t *address) {
    for (cwi_lane *lane = engine->lane; lane != NULL; lane = lane->previous) {
        if (!lies_in(address, lane->file, LANE_FILE_BYTES)) continue;
        if (lane->first != NULL && lane->first->in_lane) cwi_segment_lose(engine, lane->first);
        return lay_copy(lane->file, LANE_FILE_BYTES, lane);
    }
    for (int i = 0; i < CWI_SEGMENTS_MAX; i++) {
        cwi_segment *segment = &engine->segments[i];
        /* ORDER: acquire. A slot that is not free has its words set (A5). */
        if (__atomic_load_n(&segment->state, __ATOMIC_ACQUIRE) == CWI_SEGMENT_FREE) continue;
        if (segment->in_lane || !lies_in(address, segment->base, segment->size)) continue;
        cwi_segment_lose(engine, segment);
        return lay_zeros(segment->base, segment->size);
    }
    for (cwi_lane *lane = engine->lane; lane != NULL; lane = lane->previous)
        if (lies_in(address, lane->catalog, lane->catalog_bytes))
            return lay_zeros((uint8_t *)((uintptr_t)address & ~(uintptr_t)(PAGE_BYTES - 1)),
                             PAGE_BYTES);
    return 0;
}

static int cover_any(uint8_t *address) {
    cwi_process *process = cwi_process_get();
    for (int i = 0; i < CWI_ENGINES_MAX; i++) {
        cwi_engine *engine = __atomic_load_n(&process->engines[i], __ATOMIC_ACQUIRE);
        if (engine != NULL && engine->guards && cover(engine, address)) return 1;
    }
    return 0;
}

/* Acts as if this handler had never been installed. */
static void pass_on(int number, siginfo_t *info, void *context) {
    struct sigaction old = before;
    if ((old.sa_flags & SA_SIGINFO) != 0) {
        old.sa_sigaction(number, info, context);
        return;
    }
    if (old.sa_handler != SIG_DFL && old.sa_handler != SIG_IGN) {
        old.sa_handler(number);
        return;
    }
    int is_sent = info->si_code <= 0; /* by kill(2) and the like */
    if (old.sa_handler == SIG_IGN && is_sent) return;
    /* The fault recurs with its original effect, core dump included. */
    struct sigaction usual;
    memset(&usual, 0, sizeof usual);
    usual.sa_handler = SIG_DFL;
    sigaction(SIGBUS, &usual, NULL);
    if (is_sent) raise(number);
}

static void on_bus_error(int number, siginfo_t *info, void *context) {
    int error = errno;
    if (info->si_code <= 0 || !cover_any((uint8_t *)info->si_addr))
        pass_on(number, info, context);
    errno = error;
}

int cwi_guard_install(void) {
    uint32_t none = 0;
    if (!__atomic_compare_exchange_n(&installed, &none, 1, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_ACQUIRE))
        return 0;
    struct sigaction ours;
    memset(&ours, 0, sizeof ours);
    if (sigaction(SIGBUS, NULL, &before) != 0) goto failed;
    ours.sa_sigaction = on_bus_error;
    ours.sa_mask = before.sa_mask;
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK | (before.sa_flags & (SA_NODEFER | SA_RESTART));
    if (sigaction(SIGBUS, &ours, NULL) != 0) goto failed;
    __atomic_store_n(&installed, 2, __ATOMIC_RELEASE);
    return 0;
failed:
    __atomic_store_n(&installed, 0, __ATOMIC_RELEASE);
    return errno;
}
