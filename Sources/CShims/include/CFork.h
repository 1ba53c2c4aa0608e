/* Protects a fork from catching state halfway through a change: locks of the language runtime,
 * which a child would find taken for ever, and the engine's own descriptors, which an idle child
 * would keep open. Any thread; signal handlers too where noted. docs/CONCURRENCY.md, Fork. */
#ifndef CORDWOOD_FORK_H
#define CORDWOOD_FORK_H
#include "CShims.h"

/* Between enter and leave, no fork(2) of this process begins. While a fork runs, enter waits.
 * Each waits a tenth of a second at most. Calls nest, and no lock is involved. Signal handlers
 * may call these. The code in between must not be left by a jump, so callers block signals where
 * a handler might do so. */
void cwi_fork_gate_enter(void);
void cwi_fork_gate_leave(void);
/* The same, but only on the engine's own threads; on others they do nothing. */
void cwi_fork_gate_enter_own(void);
void cwi_fork_gate_leave_own(void);
/* Called once, when the module is loaded. */
void cwi_fork_gate_make(void);
/* The pthread_atfork handlers. The child's handler runs before the engine's own. */
void cwi_fork_prepare(void);
void cwi_fork_parent(void);
void cwi_fork_child(void);
/* The number of forks between the first process and this one: a child's differs from its
 * parent's. */
uint32_t cwi_fork_generation(void);

/* Identifies the file behind a descriptor. 0 and 0: the descriptor is not open. */
void cwi_fd_identity(int fd, uint64_t *device, uint64_t *inode);
/* True if the descriptor still refers to that file. */
bool cwi_fd_is(int fd, uint64_t device, uint64_t inode);

/* Open a file that every forked child closes; cwi_file_close closes it here. They return what
 * cwi_open_at returns. The second does so only on the engine's own threads: hosts may open such
 * files too (a reader's files). */
int cwi_file_open_at(int directory, const char *name, int flags, mode_t mode);
int cwi_file_open_own(int directory, const char *name, int flags, mode_t mode);
/* The same for an empty, nameless file in memory. */
int cwi_file_memory(void);
/* Closes the descriptor. If it was noted and now refers to another file, it belongs to the host
 * and stays open. */
void cwi_file_close(int fd);
/* Takes the open file's own exclusive lock. It can be inherited only through the descriptor, and
 * is independent of flock's. Returns 0, or an errno if another open file holds it. On a file
 * system without such locks: 0. */
int cwi_lock_file(int fd);
/* The first does the same for one byte, which need not exist. The second releases everything
 * that this open file has locked. */
int cwi_lock_byte(int fd, off_t byte);
void cwi_unlock_file(int fd);
/* True if the system has no thread with that number. */
static inline bool cwi_thread_is_gone(uint32_t tid) {
    int error = errno;
    bool gone = tid != 0 && syscall(SYS_tkill, tid, 0) != 0 && errno == ESRCH;
    errno = error;
    return gone;
}

#endif
