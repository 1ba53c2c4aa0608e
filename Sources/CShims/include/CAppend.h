/* Private memory of the append path, in the layout that signal handlers, forked children and the
 * helper rely on. docs/CONCURRENCY.md defines the protocol that these words obey; its rows (A1
 * …) are named beside the words. All of it lies in anonymous mappings that are never unmapped. */
#ifndef CORDWOOD_APPEND_H
#define CORDWOOD_APPEND_H
#include "CShims.h"

enum {
    CWI_SEGMENTS_MAX = 256,      /* segments of one engine that are mapped at once */
    CWI_SPARES_MAX = 10,
    CWI_THREADS_MAX = 32768,    /* thread blocks of a process */
    CWI_THREAD_ENGINES_MAX = 4, /* engines that one thread can log to without evicting */
    CWI_NESTING_MAX = 4,        /* appends interrupted within one another */
    CWI_LANE_NAME_MAX = 96,
    CWI_PATH_MAX = 4096
};

struct cwi_engine;
struct cwi_segment;
struct cwi_lane;

/* One thread's writing state in one engine. A forked child finds it wiped to zero
 * (MADV_WIPEONFORK), which sends the child's first append to the slow path. 256 bytes, aligned
 * to 128. The first line is part of the ABI (cw_append_block in append.h): a change there is a
 * new cw_append_2. */
typedef struct cwi_thread {
    uint8_t *ptr;              /* next byte; thread only */
    uint8_t *limit;            /* A2: end of the chunk, NULL: slow path; helper writes only NULL */
    uint8_t *chunk;            /* A4: the chunk's header; thread writes, helper reads */
    uint64_t base_ticks;       /* thread only */
    uintptr_t busy;            /* A1: 0 or the frame of the running append */
    struct cwi_engine *engine; /* owner; NULL in a forked child */
    uint64_t records;          /* A9: statistics, written by the thread */
    uint32_t copy;             /* cwi_copy_mark: which copy of the library the block belongs to */
    uint32_t clock;            /* CW_APPEND_COARSE_, or 0: records of a marked engine are calls */
    /* second line: only the slow path uses it */
    uint64_t verdict;          /* A3: claim id << 32 | open << 31 | offset; by CAS */
    struct cwi_segment *segment;
    uint32_t serial;           /* of the thread in its lane; 0: not yet */
    uint32_t chunk_sequence;   /* own block: of all its chunks, nested ones too; fetch-and-add */
    uint32_t chunk_bytes;      /* size of the present chunk */
    uint32_t claim_ms;         /* when it was claimed, ms of the monotonic clock */
    uint32_t state;            /* A8: 0 free, 1 owned, 2 orphaned by an engine */
    uint32_t tid;
    uint32_t depth;            /* 0: the thread's own, 1 …: nested appends */
    uint32_t context_stale;    /* thread only: nested block must take a new chunk */
    struct cwi_thread *nested; /* next depth */
    uint64_t slow_appends;     /* A9 */
    uint64_t seen;             /* helper only: grace periods */
    uint64_t dropped;          /* A9 */
    uint32_t lane_generation;  /* lane the serial belongs to */
    uint32_t clock_kind;
    char name[16];             /* of the thread when the block was taken */
    uint64_t salt;             /* A3: of the segment `chunk` lies in: addresses are used again */
    uint64_t settling;         /* thread only: 1 while it fixes the length of an open chunk */
    struct cwi_thread *own;    /* of a nested block: the thread's own, which counts for all */
    uint64_t record_bytes;     /* A9 */
    uint32_t pid;              /* of its taker: a child of vfork(2) may take its parent's */
    uint32_t resource;         /* thread only: the resource's version in the present chunk */
    uint8_t reserved[48];
} cwi_thread;

/* One mapped segment of this process. */
typedef struct cwi_segment {
    uint8_t *base;      /* of the mapping; the segment's byte 0 */
    uint64_t size;      /* of the mapping and the fully grown file */
    uint64_t ready;     /* A6: bytes that may be stored to; only grows */
    uint64_t salt;
    uint64_t number;
    uint32_t generation;
    uint32_t state;     /* A5 */
    int32_t fd;         /* A28 */
    uint32_t in_lane;   /* 1: segment 0, inside the lane file */
    uint64_t populated; /* A6: bytes pre-faulted; helper writes */
    uint64_t file_offset;
    uint64_t spare_id;  /* names the file while it is a spare */
    uint64_t sealed_end;
    uint64_t memory_id; /* names its file on the memory file system; 0: it lies on the disk */
    uint64_t device;    /* of its file, with which `fd` is compared before it is used (A28) */
    uint64_t inode;
    uint32_t retired;   /* under the sealing lock: 1 once its file is gone or must not be reused */
    uint32_t lost;      /* A25: 1: memory and file differ; only what the file says counts */
    struct cwi_lane *lane; /* whose names its file has; by the maker, before it is published */
} cwi_segment;

enum {
    CWI_SEGMENT_FREE = 0,     /* the slot holds nothing */
    CWI_SEGMENT_MAKING = 1,   /* being made by one thread */
    CWI_SEGMENT_SPARE = 2,    /* made, not yet published */
    CWI_SEGMENT_OPEN = 3,     /* published: claims succeed */
    CWI_SEGMENT_SEALING = 4,  /* no claim succeeds any more */
    CWI_SEGMENT_SEALED = 5,   /* every chunk is settled; waits for its grace period */
    CWI_SEGMENT_FOREIGN = 6   /* inherited over fork: never touched, overlaid */
};

/* Mutable state of one lane of this process. A forked child finds it wiped to zero. An engine
 * writes to one lane; a lane that it has left (A36) stays until no thread is inside an append
 * that began there. */
typedef struct cwi_lane {
    uint32_t state;            /* A7: CWI_LANE_… */
    uint32_t maker_tid;        /* the thread that is making it */
    cwi_segment *current;      /* A10: by CAS */
    uint8_t pad0[112];
    cwi_segment *spare[CWI_SPARES_MAX]; /* A11: by exchange */
    uint32_t next_serial;      /* fetch-and-add */
    uint32_t generation;       /* counts lanes of this engine over forks */
    int32_t lock_fd;           /* A28: the lane file */
    uint32_t process_id;
    uint8_t *file;             /* mapping of the lane file */
    uint64_t salt;
    uint64_t id[2];
    uint64_t full_until_ns;    /* refuse without asking the disk again before this */
    uint64_t name_until_ns;    /* likewise, where a ready segment could not be named */
    uint64_t wanted;           /* offset up to which a refused claim wanted room; supply takes it */
    uint32_t name_length;
    uint32_t helper_started;   /* by CAS */
    uint64_t slow_appends;     /* of threads that are gone */
    uint64_t records;
    uint64_t record_bytes;
    uint64_t dropped;
    uint32_t segment_maker;    /* A12: tid of the writer that makes a segment in line */
    uint32_t catalog_lock;     /* A20: tid of the thread that adds an entry */
    uint32_t catalog_index;    /* 0: the lane file's region */
    uint32_t services_mark;    /* names the services that this process uses; 0: none yet */
    uint8_t *catalog;          /* region being filled */
    uint64_t catalog_bytes;
    uint64_t catalog_used;
    uint64_t numbered; /* A10: highest segment number taken; by CAS */
    uint64_t lock_device;      /* of the lane file, with which `lock_fd` is compared (A28) */
    uint64_t lock_inode;
    cwi_segment *first;        /* segment 0, inside the lane file */
    struct cwi_lane *previous; /* A36: the lane that was left for this one, until it is let go */
    uint32_t catalog_set;      /* which half of the engine's `catalogs` */
    uint32_t renew;            /* A36: this lane is to be left for a new one: CWI_RENEW_… */
    uint32_t supply_late;      /* A12: 1: writers waited for supply in vain */
    uint32_t resource;         /* A44: version of the resource: the last in the catalog */
    uint32_t resource_first;   /* the version with which the lane began */
    uint32_t counts_late;      /* A17: the file lacks counts: CWI_COUNTS_… */
    void *life;                /* the page that holds the owner's lock; NULL: `lock_fd` does */
    char name[CWI_LANE_NAME_MAX];
    uint64_t reporting[64];    /* A17: by drop slot, what gap records were begun for */
    uint64_t dropped_by[9];    /* A17: refused calls by GapCause; counted on */
} cwi_lane;

enum { CWI_COUNTS_WRITTEN = 0, CWI_COUNTS_LATE = 1, CWI_COUNTS_WRITING = 2 };

enum {
    CWI_LANE_NONE = 0,
    CWI_LANE_MAKING = 1,
    CWI_LANE_READY = 2,
    CWI_LANE_CLOSED = 3,
    CWI_LANE_FAILED = 4
};

enum {
    CWI_RENEW_UNUSABLE = 1,  /* its catalog cannot be written or made durable */
    CWI_RENEW_RESOURCES = 2, /* its resource has changed too often */
};

/* A logger's handle. The first word is part of the ABI (cw_enabled). */
typedef struct cwi_logger {
    uint32_t enabled; /* 256 - threshold; 0: closed */
    uint32_t id;
    struct cwi_engine *engine;
} cwi_logger;

enum { CWI_ORIGINS_MAX = 64 };  /* as many as targets */
enum { CWI_CATALOGS_MAX = 64 }; /* FORMAT §2: one more than there may be growth files */

/* A mapped growth file of the lane's catalog. */
typedef struct cwi_catalog {
    void *base; /* NULL: none */
    uint64_t bytes;
} cwi_catalog;

/* One engine: its configuration, which survives a fork, and pointers to everything else. All
 * zero: closed. */
typedef struct cwi_engine {
    uint32_t state;        /* A13: CWI_ENGINE_… */
    uint32_t overflow;     /* CW_OVERFLOW_… */
    uint32_t clock_kind;   /* FORMAT §4 */
    uint32_t memory_only;  /* ":memory:" on a file system that is removed at close */
    uint32_t write_mode;   /* 1: the file system does not honour preallocation */
    uint32_t wake;         /* A14: futex the helper sleeps on */
    uint32_t guards;       /* 1: CW_FLAG_SIGBUS_GUARD */
    uint32_t echo;         /* console: 1 = echo in line */
    uint64_t segment_bytes; /* A31: of segments made from here on */
    uint64_t ticks_per_second;
    uint64_t rate_ticks;   /* supply only: where its measurement of the rate began */
    uint64_t rate_monotonic;
    int32_t lanes_fd;      /* A28: directory; Descriptors.lanes sees to it that it still is */
    int32_t memory_fd;     /* folder of MemorySegments, or -1 */
    uint32_t memory_uid;   /* whose */
    uint32_t ring_max;     /* A22: of `ring`; an eighth of the quota */
    uint32_t index;        /* in the process's table of engines */
    cwi_lane *lane;        /* wiped on fork */
    void *services;        /* the engine above; opaque here */
    uint64_t boot_id[2];
    uint64_t machine_id[2];
    uint32_t lane_generation;
    uint32_t lane_fork_count; /* forks that had been seen when the lane was made */
    uint32_t process_name_length;
    char process_name[128];
    uint64_t child_dropped; /* where no lane could be made */
    uint8_t *names;         /* of loggers, for lanes that are made later */
    uint64_t names_bytes;   /* A19: used; grows by the API above, under its lock */
    cwi_logger *loggers;    /* the arena of handles */
    uint32_t loggers_count;
    uint32_t ring;         /* A22: segments worth keeping mapped for reuse; supply writes */
    uint64_t made_bytes;   /* A26: of segments made and of archives begun; fetch-and-add */
    uint64_t made_limit;   /* A26: how far that may go within the quota; the helper writes */
    cwi_segment segments[CWI_SEGMENTS_MAX];
    uint64_t lanes_device; /* of `lanes_fd` */
    uint64_t lanes_inode;
    uint64_t lanes_look_ns; /* A28: monotonic; until then the directory is not looked for again */
    char lanes_path[CWI_PATH_MAX]; /* absolute, to reopen a lost `lanes_fd`; empty: too long */
    cwi_catalog catalogs[2 * CWI_CATALOGS_MAX]; /* by set, index; under a lane's catalog_lock */
    uint32_t http_on;      /* A33: 1: exchanges that begin now are captured */
    uint32_t http_host;    /* A33: what the host says: 1: on; under the services' monitor */
    uint32_t http_control; /* A33: what the control file says: 0 nothing, 1 off, 2 on; likewise */
    uint64_t http_rules;   /* A33: how; a retained object, opaque here; survives a fork */
    uint64_t uncounted;    /* A33: records that are no reason for an archive; fetch-and-add */
    uint64_t origins[CWI_ORIGINS_MAX]; /* A33: of its targets, as hashes; 0: no more */
    uint32_t renewals;     /* lanes of this process begun in place of another, made or not */
    uint32_t lanes_left;   /* those that were made */
    cwi_lane *unused_lane; /* a block for the next one, of a try that made none */
    uint64_t left_dropped; /* counts of lanes that were let go */
    uint64_t quota_bytes;  /* of the store, for messages; 0: unlimited */
    uint64_t refusal;      /* A26: why the system refused last: GapCause << 32 | errno */
    uint64_t refusal_ns;   /* A26: when */
    uint32_t holds_time;   /* 1: `held_ticks` may be set; fixed at open */
    uint32_t lanes_owner;  /* of `lanes_fd`, as it was at open */
    uint32_t lanes_group;  /* likewise */
    uint64_t held_ticks;   /* A41: time of records until it is taken back; 0: the clock's */
    uint8_t *resource;     /* two halves; one has the current attributes, as catalog payloads */
    uint64_t resource_now; /* A44: how often it changed << 32 | its bytes; odd: the second half */
} cwi_engine;

enum { CWI_ENGINES_MAX = 256, CWI_SITES_MAX = 65536, CWI_SITES_INDEX = 131072 };

/* Process-wide state: the pool of thread blocks and the table of open engines. */
typedef struct cwi_process {
    cwi_thread *pool;      /* CWI_THREADS_MAX blocks; wiped in a forked child */
    uint32_t pool_used;    /* high-water mark; fetch-and-add; meaningless in a child until reset */
    uint32_t fork_count;   /* forks that ran our child handler */
    uint32_t membarrier;   /* 0 unknown, 1 registered, 2 missing */
    uint32_t pool_floor;   /* blocks below are never taken again: a parent's threads held them */
    void (*start_helper)(cwi_engine *); /* set by the engine above; forked children call it */
    void (*echo)(cwi_engine *);         /* after a record, where the console is in line */
    cwi_engine *engines[CWI_ENGINES_MAX]; /* A15: by CAS */
    uint8_t *sites;        /* plans and definitions of call sites, one after the other */
    uint64_t sites_used;   /* A21: bytes; whole entries */
    uint32_t *sites_index; /* hash table of offsets in units of 8, plus 1 */
    uint32_t sites_count;
    uint32_t sites_lock;   /* A21: tid of the registrar */
    uint64_t monotonic_ahead; /* A43: ns by which this process's clock is ahead of the machine's */
    uint64_t boottime_ahead;  /* A43: likewise */
} cwi_process;

extern cwi_process cwi_process_words;
static inline cwi_process *cwi_process_get(void) { return &cwi_process_words; }

enum { CWI_ENGINE_CLOSED = 0, CWI_ENGINE_OPEN = 1, CWI_ENGINE_CLOSING = 2 };
enum { CWI_THREAD_FREE = 0, CWI_THREAD_OWNED = 1 };

/* Thread-local words, at most 64 bytes: dlopen lives on glibc's small surplus of static TLS. */
typedef struct cwi_tls {
    cwi_thread *current;
    cwi_thread *others[CWI_THREAD_ENGINES_MAX - 1];
    void *context;        /* ThreadContext, malloc'd */
    uint8_t registered : 1;  /* the destructor is set */
    uint8_t next_victim : 7; /* a hint */
    uint8_t helper;          /* CWI_HELPER_…: it never waits for room */
    uint8_t crash_stack;     /* 0 not asked, 1 has an alternate stack of ours, 2 has or gets none */
    uint8_t gate;            /* CFork.h: how deep inside */
    uint32_t last_detail; /* of a write's failure: index << 8 | what the value below is */
    void *last_error;     /* malloc'd text of the thread's last failure */
    int32_t last_status;  /* a failure of a write, which must not take memory: its status … */
    uint32_t last_value;  /* … and the value that was wrong */
} cwi_tls;

enum {
    CWI_HELPER_THREAD = 1, /* one of an engine's own threads */
    CWI_HELPER_WRITES = 2  /* a diagnostic of the engine's: not counted where it is refused */
};

extern __thread cwi_tls cwi_tls_words
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

/* Names this copy of the library among those of the process, in the upper half; the lower is 0.
 * Thread-local words of two copies never overlap, so their place does. */
static inline uint32_t cwi_copy_mark(void) {
    uintptr_t thread;
#if defined(__x86_64__)
    __asm__("movq %%fs:0, %0" : "=r"(thread));
#else
    thread = (uintptr_t)__builtin_thread_pointer();
#endif
    uintptr_t words = (uintptr_t)&cwi_tls_words;
    uintptr_t number = (words > thread ? words - thread : thread - words) / sizeof(cwi_tls) + 1;
    return number < 0xFFFF ? (uint32_t)number << 16 : 0xFFFF0000u;
}
/* False: too far away for a number of its own; then no place is filled for the header's append. */
static inline bool cwi_copy_has_mark(void) { return cwi_copy_mark() != 0xFFFF0000u; }

static inline cwi_tls *cwi_tls_get(void) { return &cwi_tls_words; }
static inline uintptr_t cwi_frame(void) { return (uintptr_t)__builtin_frame_address(0); }

/* Every signal but those that a thread raises itself: a host that handles those (a sandbox its
 * SIGSYS, a debugger its SIGTRAP) would die if they were blocked. */
static inline void cwi_fill_signals(sigset_t *set) {
    sigfillset(set);
    sigdelset(set, SIGSEGV);
    sigdelset(set, SIGBUS);
    sigdelset(set, SIGFPE);
    sigdelset(set, SIGILL);
    sigdelset(set, SIGTRAP);
    sigdelset(set, SIGSYS);
}
static inline void cwi_block_signals(sigset_t *old) {
    sigset_t all;
    cwi_fill_signals(&all);
    pthread_sigmask(SIG_BLOCK, &all, old);
}
static inline void cwi_restore_signals(const sigset_t *old) {
    pthread_sigmask(SIG_SETMASK, old, NULL);
}

static inline int cwi_disable_cancel(void) {
    int old = PTHREAD_CANCEL_ENABLE;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
    return old;
}
static inline void cwi_restore_cancel(int old) { pthread_setcancelstate(old, NULL); }

/* The stacks on which crashes are handled (crash.c). Both are 0 before any exists. */
extern uintptr_t cwi_crash_low, cwi_crash_high;
static inline int cwi_in_crash(void) {
    return cwi_frame() - cwi_crash_low < cwi_crash_high - cwi_crash_low;
}

/* Returns 1 on a sigaltstack(2) stack and where a crash is handled. Does not detect a stack that
 * disarms itself (SS_AUTODISARM). */
static inline int cwi_on_alternate_stack(void) {
    stack_t stack;
    if (cwi_in_crash()) return 1;
    return sigaltstack(NULL, &stack) == 0 && (stack.ss_flags & SS_ONSTACK) != 0;
}

/* Creates the key whose destructor calls on_exit when a thread with nonzero words ends. Called
 * once per process, at the first open. Returns 0, or an errno if the process has no key left. */
int cwi_tls_prepare(void (*on_exit)(cwi_tls *));
/* Sets the calling thread's destructor. May allocate from the heap. */
void cwi_tls_register(void);
/* True if registering allocates nothing. An append, even one begun in a signal handler, may then
 * register. */
bool cwi_tls_registers_in_place(void);
/* Calls in_child in a child after fork(2), and maintains the gate of CFork.h. Once per process. */
void cwi_atfork_register(void (*in_child)(void));
/* Pins the object that holds this code: dlclose never unloads it. */
void cwi_pin_module(void);

/* Installs the process's SIGBUS handler, once. Returns 0 or an errno. guard.c */
int cwi_guard_install(void);
/* Takes a segment out of use after its file was cut or refuses stores. From here on, no append
 * ends in the segment unless the file has it. Safe in a signal handler; any thread. guard.c */
void cwi_segment_lose(cwi_engine *engine, cwi_segment *segment);

static inline long cwi_futex_wait(const uint32_t *word, uint32_t value, uint64_t timeout_ns) {
    struct timespec t = {(time_t)(timeout_ns / 1000000000u), (long)(timeout_ns % 1000000000u)};
    return syscall(SYS_futex, word, 128 /* FUTEX_WAIT_PRIVATE */, value, &t, NULL, 0);
}
static inline void cwi_futex_wake(const uint32_t *word) {
    syscall(SYS_futex, word, 129 /* FUTEX_WAKE_PRIVATE */, 1 << 30, NULL, NULL, 0);
}
#endif
