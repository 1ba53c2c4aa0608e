/* The simulator of power cuts, in parts: disk.c stands between libcordwood.so and the system and
 * records every change of the store (the trace). host.c is the program that logs. cut.c builds,
 * from a trace, a moment and a seed, a disk that a power cut at that moment may leave. judge.c
 * reads such a disk and compares it with what the host was told. sim.c runs the seeds. A disk
 * depends only on its trace, so a failure is replayed exactly from the saved trace. */
#ifndef SIM_H
#define SIM_H

#include <cordwood/cordwood.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SECTOR = 512, PATH_BYTES = 512 };

/* ── Random numbers ── */

typedef struct {
    uint64_t state;
} sim_random;

sim_random sim_seeded(uint64_t seed, uint64_t stage);
uint64_t sim_next(sim_random *random);
uint64_t sim_below(sim_random *random, uint64_t bound); /* bound 0 returns 0 */
bool sim_one_in(sim_random *random, uint64_t n);

/* ── Trace ── */

enum {
    EVENT_DATA = 1, /* sectors of a file have new bytes: value is the first of them */
    EVENT_SIZE,     /* value bytes */
    EVENT_SYNC,     /* all earlier changes of that file, or of a directory's names, are durable */
    EVENT_FAILED,   /* a sync returned EIO: later ones do not cover earlier changes */
    EVENT_CREATE,   /* in directory `inode` the name `data` means `subject` */
    EVENT_REMOVE,
    EVENT_RENAME,  /* data: old name, new name */
    EVENT_FLUSHED, /* data: records of each thread that a machine-durable flush covered */
    EVENT_ARCHIVE_GONE, /* an archive was removed by retention or after upload: value is its file */
    EVENT_START         /* everything before was on the disk when the life began */
};

typedef struct {
    uint8_t kind;
    uint32_t inode, subject, bytes;
    uint64_t value;
    uint8_t *data;
} sim_event;

enum { INODE_FILE, INODE_DIRECTORY, INODE_LINK };

typedef struct {
    sim_event *events;
    uint64_t count, room, start;
    uint8_t *kinds; /* of inodes; 0 is the root */
    uint32_t inodes, inodes_room;
} sim_trace;

void trace_add(sim_trace *trace, uint8_t kind, uint32_t inode, uint32_t subject, uint64_t value,
               const void *data, uint32_t bytes);
uint32_t trace_inode(sim_trace *trace, uint8_t kind);
void trace_clear(sim_trace *trace);

/* ── Disk: stands between the library and the system ── */

typedef enum {
    LIE_NONE,          /* the simulator's own faults, which it must find: */
    LIE_ARCHIVES_SYNC, /* syncs of the directory archives/ do nothing */
    LIE_LANES_SYNC,    /* those of lanes/ */
    LIE_JOURNAL_SYNC,  /* those of a journal */
    LIE_PART_SYNC,     /* those of an archive that is being written */
    LIE_STORE_SYNC     /* those of the store's directory, and of the one above */
} sim_lie;

typedef struct {
    const char *root;     /* the directory above the store; nothing outside is traced */
    const char *keep;     /* directory for removed archives; NULL: they are not kept */
    uint64_t seed;        /* of the moments at which mapped files are inspected */
    uint32_t fail_sync;   /* the n-th sync of a file returns EIO, and so does the next; 0: none */
    bool no_fallocate;    /* records are written, not mapped */
    sim_lie lie;
} sim_disk_options;

void disk_begin(sim_trace *trace, const sim_disk_options *options);
void disk_end(void);
void disk_look(void); /* the kernel may write back mapped files now */
void disk_note(uint8_t kind, uint64_t value, const void *data, uint32_t bytes);
uint64_t disk_syncs(void);
void disk_boot(const char *path); /* the file with the id of the running boot */

/* ── Model: what the host was told ── */

enum { LIVES_MAX = 3, THREADS_MAX = 4, RECORDS_MAX = 4096 };
enum { RECORD_NONE, RECORD_BEGUN, RECORD_KEPT, RECORD_REFUSED };

typedef struct {
    uint64_t before_ns, after_ns; /* UTC around the call */
    uint64_t removed;             /* event after which its archive was removed; 0: never */
    uint32_t user_least, user_most; /* changes of the user: returned before, begun after the call */
    uint8_t state;
    uint8_t removed_life;
} sim_record;

typedef struct {
    uint64_t seed;
    uint32_t threads;
    uint32_t returned[THREADS_MAX]; /* calls that returned, in order */
    uint32_t required[THREADS_MAX]; /* of those, durable when the power went */
    uint32_t users_begun, users_returned; /* change N makes the attribute `user` N */
    bool may_remove;                /* a limit, consent or upload may remove archives */
    sim_record records[THREADS_MAX][RECORDS_MAX];
} sim_life;

typedef struct {
    uint32_t lives;
    sim_life life[LIVES_MAX];
} sim_model;

enum { MESSAGE_BYTES = 8192, LOGGERS = 12 };
size_t record_message(uint64_t seed, uint32_t life, uint32_t thread, uint32_t number, char *out);
void record_logger(uint64_t seed, uint32_t thread, uint32_t number, char out[32]);
uint32_t record_level(uint32_t number);
bool record_has_fields(uint64_t seed, uint32_t thread, uint32_t number);

/* ── Host ── */

/* A life of the program: opens the store, logs from some threads, flushes, rolls, archives, closes
 * or not. The trace is on meanwhile. false: `why` contains the reason. */
typedef struct {
    uint64_t seed;
    bool is_short;     /* adopts lanes and logs little */
    uint32_t port;     /* of the upload server; 0: none */
    sim_lie lie;
    bool is_plain;     /* no faults, no limits: the effect of a lie shows at once */
} sim_host_options;

bool host_run(const char *root, const char *keep, const sim_host_options *options,
              sim_trace *trace, sim_model *model, char *why, size_t why_bytes);
uint32_t server_start(void); /* returns its port */

/* ── Cut ── */

/* Makes the disk in `root`, an empty directory. Returns the event before which the power failed. */
uint64_t cut_make(const sim_trace *trace, sim_random *random, const char *root);
/* Stores what was durable then into `required` of the last life. */
void cut_require(const sim_trace *trace, uint64_t at, sim_model *model);

/* ── Judge ── */

typedef struct {
    uint64_t verified, unverified, torn, damaged, resurrected;
} sim_counts;

/* Reads the store and compares. `at`: when the power failed in the last life. seen, if not NULL,
 * contains the result of an earlier reading: everything verified then must still be there. It is
 * rewritten. false: `why` says what is wrong. */
typedef struct {
    uint8_t state[LIVES_MAX][THREADS_MAX][RECORDS_MAX]; /* 0 not there, 1 unverified, 2 verified */
} sim_seen;

bool judge_read(const char *store, const sim_model *model, uint64_t at, sim_seen *seen,
                sim_counts *counts, char *why, size_t why_bytes);
void judge_removed(const char *keep, sim_model *model, const sim_trace *trace);

#endif
