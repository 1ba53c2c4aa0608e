/* What a fork must not catch in the midst: locks of the language's runtime, which a child would
 * find taken for ever, and descriptors of the engine's own, which an idle child would keep open.
 * Any thread; from handlers too where that is said. docs/CONCURRENCY.md, Fork. */
#ifndef CORDWOOD_FORK_H
#define CORDWOOD_FORK_H
#include "CShims.h"

/* Between enter and leave no fork(2) of this process begins, and while one runs enter waits; both
 * for a tenth of a second at most. Nests. Nothing of it is a lock. In handlers too; but what is in
 * between must not be left by a jump, so signals are blocked there where a handler may do so. */
void cwi_fork_gate_enter(void);
void cwi_fork_gate_leave(void);
/* The same where the calling thread is one of the engine's own; on others they do nothing. */
void cwi_fork_gate_enter_own(void);
void cwi_fork_gate_leave_own(void);
/* Once, when the module is loaded. */
void cwi_fork_gate_make(void);
/* The handlers of pthread_atfork; the child's runs before the engine's own. */
void cwi_fork_prepare(void);
void cwi_fork_parent(void);
void cwi_fork_child(void);
/* How many forks lie between this process and the first: a child has another than its parent. */
uint32_t cwi_fork_generation(void);

/* What file a descriptor is; 0 and 0: it is not open. */
void cwi_fd_identity(int fd, uint64_t *device, uint64_t *inode);
/* True where it still is that file. */
bool cwi_fd_is(int fd, uint64_t device, uint64_t inode);

/* Open a file that every forked child closes, which cwi_file_close closes here. What they answer is
 * cw_open_file's. The last: only where the calling thread is one of the engine's own, for what a
 * host may also have (a reader's files). */
int cwi_file_open(const char *path, int flags, mode_t mode);
int cwi_file_open_at(int directory, const char *name, int flags, mode_t mode);
int cwi_file_open_own(const char *path, int flags, mode_t mode);
/* The same of an empty file that lies in memory and has no name. */
int cwi_file_memory(void);
/* Closes it; where it was noted and is another file by now, it is the host's and stays open. */
void cwi_file_close(int fd);
/* Takes the open file's own exclusive lock, which nobody inherits but by its descriptor, and which
 * is another than flock's. 0, or an errno: somebody has it. Where the file system has none: 0. */
int cwi_lock_file(int fd);
/* The same of one byte, which need not be there; and gives back all that this open file locked. */
int cwi_lock_byte(int fd, off_t byte);
void cwi_unlock_file(int fd);
/* True where the system has no thread of that number. */
static inline bool cwi_thread_is_gone(uint32_t tid) {
    int error = errno;
    bool gone = tid != 0 && syscall(SYS_tkill, tid, 0) != 0 && errno == ESRCH;
    errno = error;
    return gone;
}

#endif
