/* The gate at which a fork waits, and the table of our descriptors (CFork.h). The linker routes
 * the runtime's locks here: tools/build.sh renames the static runtime's calls of
 * pthread_mutex_lock and of its once. Where SwiftPM links, nothing calls these functions. Any
 * thread. */
#define _GNU_SOURCE 1
#include "CAppend.h"
#include "CFork.h"

/* ── The gate ── */

enum { GATE_WAIT_NS = 2000000000, GATE_NAP_NS = 20000 };

/* Few threads touch these two words, and seldom. */
typedef struct {
    uint32_t forks;  /* A27: forks that have begun and not ended */
    uint32_t inside; /* A27: threads between enter and leave */
} gate_words;

static gate_words first_gate __attribute__((aligned(128)));
/* Lies in memory that a child sees as zero, even a child of a raw clone(2), in which no handler
 * runs. */
static gate_words *gate = &first_gate;

void cwi_fork_gate_make(void) {
    size_t bytes = (size_t)sysconf(_SC_PAGESIZE);
    void *page = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) return;
    if (madvise(page, bytes, MADV_WIPEONFORK) == 0) gate = page;
    else munmap(page, bytes);
}

static void gate_nap(uint32_t tries) {
    struct timespec nap = {0, GATE_NAP_NS};
    if (tries < 64) sched_yield();
    else nanosleep(&nap, NULL);
}

static void gate_leave(void) {
    /* ORDER: sequential. A child that is forked now sees everything done inside as complete
     * (A27). The count is zero where a handler called clone inside: the child's word was wiped. */
    uint32_t inside = __atomic_load_n(&gate->inside, __ATOMIC_RELAXED);
    while (inside != 0 && !__atomic_compare_exchange_n(&gate->inside, &inside, inside - 1, false,
                                                       __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
        continue;
}

void cwi_fork_gate_enter(void) {
    cwi_tls *tls = cwi_tls_get();
    if (tls->gate++ > 0) return;
    uint64_t bound = 0;
    for (uint32_t tries = 0;; tries++) {
        /* ORDER: sequential. Either the fork sees us inside or we see the fork (A27). */
        __atomic_fetch_add(&gate->inside, 1, __ATOMIC_SEQ_CST);
        if (__atomic_load_n(&gate->forks, __ATOMIC_SEQ_CST) == 0) return;
        uint64_t now = cw_monotonic_ns();
        if (bound == 0) bound = now + GATE_WAIT_NS;
        /* A host's own fork handler may be waiting for this thread. */
        if (now >= bound) return;
        gate_leave();
        gate_nap(tries);
    }
}

void cwi_fork_gate_leave(void) {
    cwi_tls *tls = cwi_tls_get();
    if (--tls->gate == 0) gate_leave();
}

void cwi_fork_gate_enter_own(void) {
    if (cwi_tls_get()->helper & CWI_HELPER_THREAD) cwi_fork_gate_enter();
}
void cwi_fork_gate_leave_own(void) {
    if (cwi_tls_get()->helper & CWI_HELPER_THREAD) cwi_fork_gate_leave();
}

void cwi_fork_prepare(void) {
    int error = errno;
    cwi_tls *tls = cwi_tls_get();
    /* If a handler forks in the middle of the runtime, this thread itself is inside. */
    uint32_t own = tls->gate++ > 0 ? 1 : 0;
    __atomic_fetch_add(&gate->forks, 1, __ATOMIC_SEQ_CST);
    uint64_t bound = 0;
    for (uint32_t tries = 0; __atomic_load_n(&gate->inside, __ATOMIC_SEQ_CST) > own; tries++) {
        uint64_t now = cw_monotonic_ns();
        if (bound == 0) bound = now + GATE_WAIT_NS;
        if (now >= bound) break;
        gate_nap(tries);
    }
    errno = error;
}

void cwi_fork_parent(void) {
    cwi_tls_get()->gate--;
    __atomic_fetch_sub(&gate->forks, 1, __ATOMIC_SEQ_CST);
}

static void files_forked(void);
static uint32_t generation; /* written only where no other thread is */

uint32_t cwi_fork_generation(void) { return generation; }

void cwi_fork_child(void) {
    generation++;
    /* No other thread is here. */
    uint32_t own = --cwi_tls_get()->gate > 0 ? 1 : 0;
    __atomic_store_n(&gate->forks, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&gate->inside, own, __ATOMIC_RELAXED);
    files_forked();
}

/* ── Locks of the runtime, by the linker ── */

int cwi_runtime_lock(pthread_mutex_t *mutex);
int cwi_runtime_unlock(pthread_mutex_t *mutex);
int cwi_runtime_lock(pthread_mutex_t *mutex) {
    cwi_fork_gate_enter();
    return pthread_mutex_lock(mutex);
}
int cwi_runtime_unlock(pthread_mutex_t *mutex) {
    int result = pthread_mutex_unlock(mutex);
    cwi_fork_gate_leave();
    return result;
}

/* swift::threading_impl::once_slow(once_t &, void (*)(void *), void *) */
#define ONCE_SLOW _ZN5swift14threading_impl9once_slowERNS0_6once_tEPFvPvES3_
#define JOINED_(a, b) a##b
#define JOINED(a, b) JOINED_(a, b)
#define ONCE_REAL JOINED(__real_, ONCE_SLOW)
#define ONCE_WRAP JOINED(__wrap_, ONCE_SLOW)
extern void ONCE_REAL(void *once, void (*run)(void *), void *context) __attribute__((weak));
void ONCE_WRAP(void *once, void (*run)(void *), void *context);
void ONCE_WRAP(void *once, void (*run)(void *), void *context) {
    cwi_fork_gate_enter();
    if (ONCE_REAL) ONCE_REAL(once, run, context);
    cwi_fork_gate_leave();
}

/* ── Descriptors ── */

void cwi_fd_identity(int fd, uint64_t *device, uint64_t *inode) {
    struct stat status;
    int error = errno;
    bool known = fd >= 0 && fstat(fd, &status) == 0;
    *device = known ? (uint64_t)status.st_dev : 0;
    *inode = known ? (uint64_t)status.st_ino : 0;
    errno = error;
}

bool cwi_fd_is(int fd, uint64_t device, uint64_t inode) {
    uint64_t now_device, now_inode;
    cwi_fd_identity(fd, &now_device, &now_inode);
    return inode != 0 && now_inode == inode && now_device == device;
}

enum { FILES_MAX = 4096 }; /* higher numbers are not noted */

/* The owner of a descriptor also owns its entry. inode 0: not noted. */
static struct {
    uint64_t device, inode;
} files[FILES_MAX];
static uint32_t files_top; /* above every number that was ever noted */

static int file_keep(int fd) {
    if (fd < 0 || fd >= FILES_MAX) return fd;
    uint32_t top = __atomic_load_n(&files_top, __ATOMIC_RELAXED);
    while ((uint32_t)fd >= top &&
           !__atomic_compare_exchange_n(&files_top, &top, (uint32_t)fd + 1, false,
                                        __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        continue;
    uint64_t inode;
    cwi_fd_identity(fd, &files[fd].device, &inode);
    __atomic_store_n(&files[fd].inode, inode, __ATOMIC_RELEASE);
    return fd;
}

int cwi_file_open_at(int directory, const char *name, int flags, mode_t mode) {
    cwi_fork_gate_enter();
    int fd = file_keep(cwi_open_at(directory, name, flags, mode));
    cwi_fork_gate_leave();
    return fd;
}

int cwi_file_open_own(int directory, const char *name, int flags, mode_t mode) {
    if (cwi_tls_get()->helper & CWI_HELPER_THREAD)
        return cwi_file_open_at(directory, name, flags, mode);
    return cwi_open_at(directory, name, flags, mode);
}

int cwi_file_memory(void) {
#ifdef SYS_memfd_create
    cwi_fork_gate_enter();
    int fd = file_keep((int)syscall(SYS_memfd_create, "cordwood", 1u /* MFD_CLOEXEC */));
    cwi_fork_gate_leave();
    return fd;
#else
    errno = ENOSYS;
    return -1;
#endif
}

static void file_close(int fd) {
    bool ours = true;
    if (fd < FILES_MAX && files[fd].inode != 0) {
        ours = cwi_fd_is(fd, files[fd].device, files[fd].inode);
        /* Clear the note first: the next owner of the number may note it anew. */
        __atomic_store_n(&files[fd].inode, 0, __ATOMIC_RELEASE);
    }
    if (ours) close(fd);
}

void cwi_file_close(int fd) {
    if (fd < 0) return;
    bool noted = fd < FILES_MAX && files[fd].inode != 0;
    /* A child forked in between would keep the descriptor. */
    if (noted) cwi_fork_gate_enter();
    file_close(fd);
    if (noted) cwi_fork_gate_leave();
}

static void files_forked(void) {
    for (int fd = 0; fd < (int)files_top; fd++)
        if (files[fd].inode != 0) file_close(fd);
}

static int lock_range(int fd, short type, off_t start, off_t length) {
    struct flock lock = {
        .l_type = type, .l_whence = SEEK_SET, .l_start = start, .l_len = length};
    if (fcntl(fd, F_OFD_SETLK, &lock) == 0) return 0;
    return errno == EAGAIN || errno == EACCES ? errno : 0;
}

int cwi_lock_file(int fd) { return lock_range(fd, F_WRLCK, 0, 0); }
int cwi_lock_byte(int fd, off_t byte) { return lock_range(fd, F_WRLCK, byte, 1); }
void cwi_unlock_file(int fd) { lock_range(fd, F_UNLCK, 0, 0); }
