/* Cordwood: an embeddable logging engine.                                    C11 and C++17.
 *
 * A record is kept when the call returns: `kill -9` one instruction later loses nothing that
 * returned. After cw_flush(…, CW_DURABLE_MACHINE, …) power loss loses nothing before it.
 *
 * In the order in which one learns it: words and numbers · open · write · flush and close · levels
 * · context · reading · errors; then log.h (formats), upload.h (servers), transaction.h (use
 * cases), http.h (captured exchanges) and network.h (the host's requests that failed), which this
 * includes.
 * Conventions that hold for every function:
 *
 *   - A function is named for its first parameter. It returns cw_status; outputs come last and are
 *     written only on success unless its comment says otherwise.
 *   - Every pointer, length and number is checked. A bad one is a status, never a crash; the
 *     library never aborts, exits or prints unless the console is asked for.
 *   - Strings with a length need no NUL, may hold any byte, and may be NULL where the length is 0.
 *     `const char *` without a length is NUL-terminated UTF-8.
 *   - A struct starts with struct_size, which the host sets to sizeof. It may grow at its end: a
 *     smaller one than this version's first layout is refused (CW_E_STRUCT_SIZE), a larger one is
 *     accepted where all bytes unknown to the library are zero (else CW_E_STRUCT_TAIL).
 *   - Unless a comment says otherwise a function may be called by any thread at any time and in a
 *     forked child. "Signals: safe" means that a signal handler may call it.
 *   - After cw_close every handle of that engine answers CW_E_CLOSED and stays safe to use.
 *   - timeout_ms: 0 does not wait, UINT32_MAX waits for ever.
 */
#ifndef CORDWOOD_H
#define CORDWOOD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ── Words and numbers ──────────────────────────────────────────────────────────────────────── */

#define CW_VERSION_MAJOR 0
#define CW_VERSION_MINOR 1
#define CW_VERSION_PATCH 0

typedef struct cw_engine cw_engine; /* one open store directory */
typedef struct cw_logger cw_logger; /* a dotted name in an engine; interned, never freed */
typedef struct cw_reader cw_reader; /* a cursor over a store; one thread at a time */

/* Severity. Any number from 1 to 24 (OpenTelemetry's) is valid; these have names. */
typedef uint32_t cw_level;
enum {
    CW_LEVEL_TRACE = 1,
    CW_LEVEL_DEBUG = 5,
    CW_LEVEL_INFO = 9,
    CW_LEVEL_NOTICE = 10,
    CW_LEVEL_WARN = 13,
    CW_LEVEL_ERROR = 17,
    CW_LEVEL_FATAL = 21,
    CW_LEVEL_OFF = 255 /* for thresholds only: nothing is enabled */
};

/* Status. 0: done. Positive: no error. Negative: an error; numbers are never reused. */
typedef int32_t cw_status;
enum {
    CW_OK = 0,
    CW_DISABLED = 1, /* the record's level is below the logger's; nothing was written */
    CW_END = 2,      /* no more records; nothing waits to be uploaded */
    CW_AGAIN = 3,    /* a following reader has nothing now; call again later */

    CW_E_ARGUMENT = -1,      /* a pointer, length or enum is not valid */
    CW_E_LEVEL = -2,         /* a level outside 1…24 (or 255 where a threshold is meant) */
    CW_E_STRUCT_SIZE = -3,   /* struct_size is smaller than the first version of the struct */
    CW_E_STRUCT_TAIL = -4,   /* struct_size is larger than known and the unknown tail is not zero */
    CW_E_CLOSED = -5,        /* the engine of this handle was closed */
    CW_E_NO_DIRECTORY = -6,  /* neither options.directory nor CORDWOOD_DIR names a store */
    CW_E_NOT_DIRECTORY = -7, /* something that is no directory stands where the store should be */
    CW_E_NOT_FOUND = -8,     /* no such file, store, target or archive */
    CW_E_PERMISSION = -9,    /* the system refused access */
    CW_E_IO = -10,           /* a read, write or sync failed */
    CW_E_FULL = -11,         /* no room: the disk is full, or a quota or a limit of the process is
                                reached; a record was not kept, and is counted. cw_last_error and
                                cw_stats say which */
    CW_E_MEMORY = -12,       /* memory, threads or descriptors ran out */
    CW_E_LIMIT = -13,        /* a documented limit would be exceeded */
    CW_E_TIMEOUT = -14,      /* time ran out; what was begun goes on in the background */
    CW_E_BUSY = -15,         /* the same operation is already running */
    CW_E_VERSION = -16,      /* a store or file of a newer, incompatible format */
    CW_E_DAMAGED = -17,      /* damaged data; the rest of the store is still readable */
    CW_E_CONSENT = -18,      /* the store has no consent to upload */
    CW_E_NO_TARGET = -19,    /* no target was added */
    CW_E_UPLOAD = -20,       /* something was not uploaded; see cw_upload_result */
    CW_E_UNSUPPORTED = -21,  /* this build or platform cannot do it (for example: no libcurl) */
    CW_E_EXISTS = -22,       /* a target of that name exists with other settings */
    CW_E_INTERNAL = -23,     /* a broken invariant inside the library; please report */
    CW_E_ENCRYPTED = -24,    /* an archive is encrypted, and no identity that was given opens it */
    CW_E_NOT_ENABLED = -25   /* a policy has switched uploading off */
};

typedef struct cw_str {
    const char *data;
    size_t length; /* bytes */
} cw_str;

/* What a record is. */
enum {
    CW_KIND_LOG = 0,
    CW_KIND_GAP = 1,       /* what could not be kept: how many records, between which times */
    CW_KIND_LIFECYCLE = 2, /* start, unclean stop, clock step */
    CW_KIND_TRANSACTION = 3,
    CW_KIND_HTTP = 4
};

enum {
    CW_TYPE_INT = 1,
    CW_TYPE_UINT = 2,
    CW_TYPE_DOUBLE = 3,
    CW_TYPE_BOOL = 4,
    CW_TYPE_STRING = 5
};

typedef struct cw_field {
    cw_str key;
    uint32_t type; /* CW_TYPE_… */
    union {
        int64_t i;
        uint64_t u;
        double d;
        bool b;
        cw_str s;
    } value;
} cw_field;

/* ── Open ───────────────────────────────────────────────────────────────────────────────────── */

enum { CW_CODEC_ZSTD = 0, CW_CODEC_LZ4 = 1, CW_CODEC_NONE = 2 };
enum { CW_CONSENT_GRANTED = 0, CW_CONSENT_PENDING = 1, CW_CONSENT_DENIED = 2 };
typedef uint32_t cw_consent;

/* What happens to a record when a new segment is needed:
 *          no spare is ready yet                 disk full, or quota full of data not archived
 *   GROW   makes one in line (slow_appends)      refuses and counts
 *   DROP   refuses and counts                    refuses and counts
 *   BLOCK  waits                                 waits; in a signal handler, a nested call, a
 *                                                forked child or a callback of the engine's own
 *                                                threads it refuses and counts
 * A refusal makes no system call (where the engine writes by pwrite(2), one that keeps the
 * count); a full disk is asked again every 100 ms.                                              */
enum { CW_OVERFLOW_GROW = 0, CW_OVERFLOW_DROP = 1, CW_OVERFLOW_BLOCK = 2 };

/* Echo of records on stderr. AUTO: coloured text on a terminal, JSON lines elsewhere. Text is as
 * `cordwood cat` shows it: further lines of a message are marked, control characters escaped. */
enum { CW_CONSOLE_OFF = 0, CW_CONSOLE_TEXT = 1, CW_CONSOLE_JSON = 2, CW_CONSOLE_AUTO = 3 };

enum {
    CW_FLAG_SYNC_CONSOLE = 1, /* echo in line, before the write returns: for debugging */
    CW_FLAG_COARSE_CLOCK = 2, /* times to a tick of the kernel (1 to 10 ms): cheaper records */
    CW_FLAG_TMPFS = 4,        /* segments lie in memory (/dev/shm, 128 MiB a process, beyond that on
                                 disk) until they are archived or the engine is closed: no writeback
                                 under the writers. A restart of the machine takes what is neither
                                 archived nor flushed with CW_DURABLE_MACHINE */
    CW_FLAG_SIGBUS_GUARD = 8  /* where somebody cuts a file of the store, or its file system turns
                                 read-only after an error, a store into a mapped page would kill the
                                 process by SIGBUS. With this flag cw_open sets a handler of SIGBUS,
                                 once for the process and for good: the record is written elsewhere,
                                 and faults that are not ours go to the handler that was there */
};

/* Why an archive that was never uploaded left the disk. */
enum { CW_REMOVED_QUOTA = 1, CW_REMOVED_COUNT = 2, CW_REMOVED_EXPIRED = 3, CW_REMOVED_CONSENT = 4 };

/* Called on the engine's helper thread, once per archive. May log; may not close the engine. */
typedef void (*cw_archive_removed_fn)(void *user, const char *archive, uint32_t reason);

typedef struct cw_options {
    uint32_t struct_size;
    const char *directory;    /* the store; missing parents are made, 0700; ":memory:" keeps all
                                 in memory; NULL: environment CORDWOOD_DIR */
    const char *process_name; /* shown beside records; NULL: the program's own name */
    uint32_t level;           /* root threshold, 1…24 or CW_LEVEL_OFF; default CW_LEVEL_INFO */
    uint64_t segment_bytes;   /* 64 KiB … 1 GiB, rounded up to 64 KiB; 0: 16 MiB (default); at most
                                 an eighth of the quota, whatever is asked for */
    uint32_t roll_age_s;      /* roll what is older, seconds (up to a tenth earlier, so that
                                 programs part); 0: never; default 24 h */
    uint64_t quota_bytes;     /* of the disk, for all files; 0: unlimited; default 5 GiB */
    uint32_t archives_max;    /* archives kept; 0: unlimited (default) */
    uint32_t expiration_days; /* age of an archive's newest record; 0: never; default 30 */
    uint32_t codec;           /* CW_CODEC_…; default zstd */
    int32_t codec_level;      /* 1…19 for zstd, 1…12 for lz4; 0: 3 for zstd, 1 for lz4; default 3 */
    uint32_t consent;         /* CW_CONSENT_…: of a store that has none yet; default granted */
    uint32_t overflow;        /* CW_OVERFLOW_…; default grow */
    uint32_t console;         /* CW_CONSOLE_…; default off */
    uint32_t console_level;   /* threshold of the echo, 1…24; 0: all that is written (default) */
    uint32_t flags;           /* CW_FLAG_… */
    uint32_t upload_interval_s;            /* of background uploads, seconds; 0: 30 (default) */
    cw_archive_removed_fn archive_removed; /* may be NULL */
    void *user;                            /* handed to archive_removed */
    const char *encrypt_to;    /* age recipients ("age1…"), separated by spaces or commas: archives
                                  that this engine writes can then be read only with one of their
                                  identities. NULL: they are plain (default) */
    const char *identity_file; /* age identities, read at cw_open: with one of them encrypted
                                  archives go to targets that need plain records, which else wait.
                                  Kept in memory. NULL: none (default) */
    const char *policy_url;     /* where a policy is looked for (upload.h); NULL: nowhere */
    const char *policy_headers; /* "Name: value" lines separated by \n; never logged or stored */
    const char *policy_ca_file; /* PEM; NULL: the system's certificates */
    uint32_t policy_interval_s; /* of looking for it, seconds; 0: an hour (default) */
} cw_options;

/* Writes the defaults named above and struct_size. Blocks: no. Signals: safe. NULL or a size
 * smaller than the first version of the struct: does nothing. */
void cw_options_init(cw_options *options, size_t size_of_options);

/* Opens a store for writing; makes it where it is missing (directories 0700, files 0600). Several
 * engines may be open, also on one directory, in one or many processes. Starts the helper thread.
 * Adopts in the background what dead processes left in the store.
 * An open engine's threads count as threads of the process: a host whose main thread ends by
 * pthread_exit closes its engines before its last thread returns, or lives on.
 * The caller owns *out until cw_close. Options and strings are copied. Environment fills what the
 * host left unset: CORDWOOD_DIR, CORDWOOD_LEVEL ("info,app.db=debug"; names in any case, also those
 * of Python's logging, syslog and swift-log; 1…24; 30, 40 and 50 as in Python), CORDWOOD_CONSOLE
 * (off|text|json|auto), CORDWOOD_TARGET (a URL: kind collector). What nobody understands of level
 * and console is told once on stderr, and changes nothing.
 * Blocks: for file creation. Signals: not safe.
 * CW_OK · CW_E_ARGUMENT · CW_E_STRUCT_SIZE · CW_E_STRUCT_TAIL · CW_E_LEVEL · CW_E_LIMIT ·
 * CW_E_NO_DIRECTORY · CW_E_NOT_DIRECTORY · CW_E_PERMISSION · CW_E_IO · CW_E_FULL · CW_E_MEMORY ·
 * CW_E_VERSION · CW_E_UNSUPPORTED (with policy_url: no libcurl) */
cw_status cw_open(const cw_options *options, cw_engine **out);

/* Sets an attribute of the resource that logs: service.name, service.version,
 * deployment.environment, user.id … Stored once, valid for all records of this engine until set
 * again; shown by `stats`, sent by uploads. host.name, os.type, os.version, device.manufacturer and
 * device.model.identifier are filled in at cw_open. An empty value removes. Both strings are
 * copied. Blocks: shortly. Signals: not safe.
 * CW_OK · CW_E_ARGUMENT (NULL or empty key, NULL value) · CW_E_LIMIT (key over 255 bytes, value
 * over 4,096) · CW_E_FULL · CW_E_CLOSED */
cw_status cw_resource_set(cw_engine *engine, const char *key, const char *value);

/* ── Loggers and writing ────────────────────────────────────────────────────────────────────── */

/* Gives the logger of that dotted name; "" is the root. The same name gives the same handle. The
 * library owns it; it stays valid for the life of the process. Blocks: shortly. Signals: not safe.
 * CW_OK · CW_E_ARGUMENT · CW_E_LIMIT (name over 255 bytes, or 65,536 loggers) · CW_E_FULL ·
 * CW_E_MEMORY · CW_E_CLOSED */
cw_status cw_logger_get(cw_engine *engine, const char *name, cw_logger **out);

/* Writes one record of text. When it returns CW_OK the record survives the death of the process.
 * Any bytes are kept as they are. A record larger than a segment can hold is cut and marked with
 * its original length. Cost: about ten nanoseconds plus the copy; no lock, no allocation, no system
 * call but at the start of a chunk (see CW_OVERFLOW_… for what happens there).
 * Blocks: only with CW_OVERFLOW_BLOCK. Signals: safe. Fork: safe, also in a child of a threaded
 * parent.
 * CW_OK · CW_DISABLED · CW_E_ARGUMENT · CW_E_LEVEL · CW_E_FULL · CW_E_CLOSED */
cw_status cw_write(cw_logger *logger, cw_level level, const char *message, size_t length);

/* A record with everything. Unset members are zero. Everything is copied. */
typedef struct cw_record {
    uint32_t struct_size;
    cw_level level;
    cw_str message;
    const cw_field *fields; /* typed; keys need not be unique; at most 4,096 */
    size_t field_count;
    cw_str file; /* the place in the source; line 0: unknown */
    cw_str function;
    uint32_t line;
    uint32_t trace_flags;    /* W3C trace flags; used where trace_id is set */
    const uint8_t *trace_id; /* 16 bytes, or NULL: the thread's (cw_trace_set) */
    const uint8_t *span_id;  /* 8 bytes, or NULL */
    uint64_t time_ns;        /* the event's own UTC time, ns since 1970; 0: now */
    cw_str exception_type;   /* empty: no exception */
    cw_str exception_message;
    cw_str exception_stacktrace;
} cw_record;

/* Writes one record with fields, place, trace ids, own time or an exception. As cw_write, a little
 * dearer by what it carries. What no segment holds is cut and marked: the stack trace, the message,
 * then fields from the end; half of the room is the message's where both are too large.
 * Signals: safe, but the place is then kept in the record itself.
 * CW_OK · CW_DISABLED · CW_E_ARGUMENT · CW_E_STRUCT_SIZE · CW_E_STRUCT_TAIL · CW_E_LEVEL ·
 * CW_E_LIMIT · CW_E_FULL · CW_E_CLOSED */
cw_status cw_write_record(cw_logger *logger, const cw_record *record);

/* CW_LOG(logger, level, "order %d at %f from %s", id, price, who) and CW_TRACE … CW_FATAL(logger,
 * "format", …) stand in log.h, which this header includes: the format is checked by the compiler,
 * the arguments are copied raw, and text is made when somebody reads. They and bindings call the
 * functions below; hosts do not. */
typedef struct cw_site cw_site; /* one place in the source */
typedef union cw_arg cw_arg;    /* one argument */

/* Writes one record of a place; arguments as its list says. Blocks, signals, fork: as cw_write. A
 * format that does not fit its arguments is kept as it stands (CW_STYLE_BRACES: and behind it the
 * arguments); the first call then answers CW_E_ARGUMENT.
 * CW_OK · CW_DISABLED · CW_E_ARGUMENT · CW_E_LEVEL · CW_E_FULL · CW_E_CLOSED */
cw_status cw_site_write(cw_logger *logger, cw_level level, cw_site *site, const cw_arg *arguments);

/* As cw_site_write, for hosts that have no static object for each place: the library finds the
 * place again by the addresses of its strings and its line, and keeps nothing of it. count is the
 * format's length; the list of classes is zero up to a multiple of 8 bytes. */
cw_status cw_place_write(cw_logger *logger, cw_level level, const cw_site *place,
                         const cw_arg *arguments);

/* As cw_site_write, for bindings that have made the text themselves: the place's one argument is a
 * CW_ARG_TEXT, and these are its bytes; over CW_STRING_MAX they are cut. NULL with length 0 is an
 * empty text. Also CW_E_ARGUMENT: another list of arguments. */
cw_status cw_site_text(cw_logger *logger, cw_level level, cw_site *site, const char *text,
                       uint32_t length);

/* True where ms milliseconds have passed since it was true for that place. Signals: safe. */
bool cw_site_every_ms(cw_site *site, uint32_t ms);

/* ── Flush and close ────────────────────────────────────────────────────────────────────────── */

/* How much a record must survive: the death of the process (true of every record when its call
 * returns) or loss of power. */
typedef enum cw_durability { CW_DURABLE_PROCESS = 0, CW_DURABLE_MACHINE = 1 } cw_durability;

/* Makes every record whose call returned before this one began as durable as named. PROCESS returns
 * at once, after the console echo of those records is written. MACHINE syncs a journal; running
 * threads are not disturbed, and calls that wait together share one sync. After CW_E_TIMEOUT the
 * sync still runs. Blocks: up to timeout_ms. Signals: not safe. CW_OK · CW_E_ARGUMENT ·
 * CW_E_TIMEOUT · CW_E_IO · CW_E_FULL · CW_E_CLOSED */
cw_status cw_flush(cw_engine *engine, cw_durability durability, uint32_t timeout_ms);

/* Seals what is open, so that it is archived (in the background) and can be uploaded. Covers every
 * record whose call returned before. Blocks: shortly; up to 5 s where archiving and retention must
 * make room first. Signals: not safe. CW_OK (also where nothing was open) · CW_E_ARGUMENT ·
 * CW_E_IO · CW_E_FULL · CW_E_CLOSED */
cw_status cw_roll(cw_engine *engine);

/* Waits until all that was sealed before the call is archived. Blocks: up to timeout_ms.
 * Signals: not safe. CW_OK · CW_E_ARGUMENT · CW_E_TIMEOUT · CW_E_IO · CW_E_FULL · CW_E_CLOSED */
cw_status cw_archive_wait(cw_engine *engine, uint32_t timeout_ms);

typedef struct cw_stats {
    uint32_t struct_size;
    uint32_t lanes;            /* of this store now: this engine's and the dead not yet adopted */
    uint64_t records_written;  /* by this engine, its own diagnostics included */
    uint64_t records_dropped;  /* calls of the host that answered CW_E_FULL; exact */
    uint64_t bytes_written;    /* record bytes in segments, headers included */
    uint64_t slow_appends;     /* records that waited for a segment to be made in line */
    uint64_t segments_sealed;
    uint64_t segments_recovered; /* of dead processes */
    uint64_t archives_written;
    uint64_t archive_bytes_in;  /* segment bytes that went in */
    uint64_t archive_bytes_out; /* bytes of the archives made of them */
    uint64_t archives_removed;  /* by quota, count, expiry or consent */
    uint64_t uploads_succeeded;
    uint64_t uploads_failed; /* attempts */
    uint64_t upload_bytes;   /* bytes of bodies that were answered with 2xx */
    uint64_t segments_reused; /* files of archived segments that were used again */
    uint64_t records_refused; /* that a target will not take, of archives it took */
    /* Of records_dropped, by what was in the way; their sum. */
    uint64_t dropped_disk_full;   /* ENOSPC */
    uint64_t dropped_disk_quota;  /* EDQUOT: the user's, of the file system */
    uint64_t dropped_store_quota; /* cw_options.quota_bytes */
    uint64_t dropped_file_limit;  /* RLIMIT_FSIZE */
    uint64_t dropped_descriptors; /* EMFILE, ENFILE */
    uint64_t dropped_memory;      /* memory, or room in its tables */
    uint64_t dropped_not_ready;   /* CW_OVERFLOW_DROP, or sealing that is far behind */
    uint64_t dropped_other;       /* any other error of the file system */
} cw_stats;

/* Counts since cw_open. Writes as much of *out as size_of_stats covers. Blocks: no.
 * CW_OK · CW_E_ARGUMENT · CW_E_STRUCT_SIZE · CW_E_CLOSED */
cw_status cw_stats_get(const cw_engine *engine, cw_stats *out, size_t size_of_stats);

/* Closes the engine, seals its segments, stops the helper, sets *engine to NULL. Idempotent:
 * *engine may be NULL. Records of calls that returned before are kept; later calls answer
 * CW_E_CLOSED. What is not archived or uploaded yet waits in the store for the next engine or
 * `cordwood archive`. A few KiB of address space stay for ever, so that old handles stay safe.
 * Blocks: up to timeout_ms for the helper's present job. Signals: not safe. Not from a callback
 * (CW_E_BUSY). CW_OK · CW_E_ARGUMENT · CW_E_BUSY · CW_E_TIMEOUT (closed, but the helper is still
 * busy and ends by itself) */
cw_status cw_close(cw_engine **engine, uint32_t timeout_ms);

/* ── Crashes ────────────────────────────────────────────────────────────────────────────────── */

/* Opt-in: SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP and SIGSYS write a last record at FATAL
 * of the logger "Cordwood.Crash": signal, code, address, program counter, thread, and a backtrace
 * whose lines name module, offset and build id, so that it can be resolved elsewhere. Then happens
 * what would have happened: the handler that was there before is called, or the process ends by the
 * same signal, with its core dump. One handler a process, never taken out; every engine that asked
 * gets the record until it is closed, also in a forked child. It takes no lock and no memory, and
 * runs on a stack of its own; for stack overflows the calling thread, and every thread from its
 * next chunk of records on, gets an alternate stack of 64 KiB of address space where it has none.
 * A handler that is set later replaces this one, as ever; called again, this function puts itself
 * back only where the default stands. At most 64 records, where a host's handler goes on after
 * faults. The handler before is called on the alternate stack. Blocks: shortly. Signals: not safe.
 * CW_OK (also where it was done before) · CW_E_ARGUMENT · CW_E_LIMIT (64 engines) · CW_E_FULL ·
 * CW_E_MEMORY · CW_E_CLOSED */
cw_status cw_crash_handler_install(cw_engine *engine);

/* ── Levels ─────────────────────────────────────────────────────────────────────────────────── */

/* True where a record of that level would be written: one load and one branch. */
static inline bool cw_enabled(const cw_logger *logger, cw_level level) {
    /* The logger's first word is 256 - threshold, and 0 once closed. */
    return logger != NULL &&
           level + __atomic_load_n((const uint32_t *)(const void *)logger, __ATOMIC_RELAXED) > 255u;
}

/* Sets the threshold of a name and all dotted names below it ("app.db" covers app.db.pool, never
 * app.dbx); "" is the root. The longest prefix wins. Holds for loggers made later, too. Not stored.
 * level: 1…24 or CW_LEVEL_OFF. Blocks: shortly. Signals: not safe.
 * CW_OK · CW_E_ARGUMENT · CW_E_LEVEL · CW_E_LIMIT (name over 255 bytes, or 4,096 prefixes) ·
 * CW_E_CLOSED */
cw_status cw_level_set(cw_engine *engine, const char *name_prefix, cw_level level);

/* ── Context of the calling thread ──────────────────────────────────────────────────────────── */

/* Sets a field that every later record of this thread carries, in all engines; a NULL value removes
 * it. Both strings are copied. Blocks: no. Signals: not safe.
 * CW_OK · CW_E_ARGUMENT · CW_E_LIMIT (over 4,096 bytes in all) · CW_E_MEMORY */
cw_status cw_context_set(const char *key, const char *value);

/* Sets the W3C trace and span id that later records of this thread carry; NULL, NULL removes.
 * span_id may be NULL. Blocks: no. Signals: not safe. CW_OK · CW_E_ARGUMENT (span without trace) ·
 * CW_E_MEMORY */
cw_status cw_trace_set(const uint8_t trace_id[16], const uint8_t span_id[8], uint8_t flags);

/* ── Reading, also while another process writes ─────────────────────────────────────────────── */

enum {
    CW_READ_FOLLOW = 1,     /* do not end: answer CW_AGAIN and wait for more */
    CW_READ_FROM_END = 2    /* with FOLLOW: skip what is there already */
};

typedef struct cw_reader_options {
    uint32_t struct_size;
    uint32_t flags;     /* CW_READ_… */
    uint32_t level;     /* least level; 0: all */
    uint32_t kinds;     /* set of 1u << CW_KIND_…; 0: all */
    uint64_t since_ns;  /* UTC, ns since 1970, inclusive; 0: from the first */
    uint64_t until_ns;  /* exclusive; 0: to the last */
    const char *logger; /* this name and those below it; NULL: all */
    const char *identity_file; /* age identities that open encrypted archives; NULL: none */
} cw_reader_options;

enum {
    CW_VIEW_TRUNCATED = 1,  /* message was cut; original_length is what it was */
    CW_VIEW_NOT_UTF8 = 2,   /* message is kept byte for byte and is not UTF-8 */
    CW_VIEW_UNVERIFIED = 4, /* after loss of power: not covered by a sync; may be incomplete */
    CW_VIEW_LATE = 8        /* a following reader showed later records before this one */
};

/* One record. All pointers belong to the reader and hold until the next call on it. Set struct_size
 * before the first call. */
typedef struct cw_record_view {
    uint32_t struct_size;
    uint64_t time_ns; /* UTC, ns since 1970 */
    uint32_t level;
    uint32_t process_id;
    uint64_t thread_id;
    uint64_t sequence; /* grows within one thread of one process */
    cw_str logger;
    cw_str message;
    cw_str file;
    cw_str function;
    uint32_t line;
    const cw_field *fields; /* the record's own, then the thread's context, then the exception's */
    size_t field_count;
    uint8_t trace_id[16]; /* all zero: none */
    uint8_t span_id[8];
    uint32_t kind;            /* CW_KIND_… */
    uint32_t flags;           /* CW_VIEW_… */
    uint64_t original_length; /* of the message, bytes */
    cw_str process_name;
    uint32_t trace_flags;
} cw_record_view;

/* Opens a cursor over a store directory or a single segment or archive file, merged by time; within
 * a thread the order is exact. Needs no engine. The caller owns *out until cw_reader_close; one
 * thread at a time. options may be NULL. Blocks: for file access. Signals: not safe.
 * CW_OK · CW_E_ARGUMENT · CW_E_STRUCT_SIZE · CW_E_STRUCT_TAIL · CW_E_NOT_FOUND · CW_E_PERMISSION ·
 * CW_E_IO · CW_E_MEMORY · CW_E_VERSION · CW_E_DAMAGED (a single file that is nothing of ours) ·
 * CW_E_ENCRYPTED (a single file that says nothing without its key) */
cw_status cw_reader_open(const char *directory, const cw_reader_options *options, cw_reader **out);

/* Gives the next record. CW_OK · CW_END · CW_AGAIN (follow) · CW_E_ARGUMENT · CW_E_STRUCT_SIZE ·
 * CW_E_IO · CW_E_MEMORY · CW_E_DAMAGED (once per damaged place; call again for what follows it) ·
 * CW_E_ENCRYPTED (once per archive that no identity opens; likewise) */
cw_status cw_reader_next(cw_reader *reader, cw_record_view *out);

/* Closes the cursor and sets *reader to NULL. Idempotent. CW_OK · CW_E_ARGUMENT */
cw_status cw_reader_close(cw_reader **reader);

/* ── Errors and version ─────────────────────────────────────────────────────────────────────── */

/* "CW_E_FULL". Never NULL, also for unknown numbers. Static. Signals: safe. */
const char *cw_status_name(cw_status status);

/* One sentence. Never NULL. Static. Signals: safe. */
const char *cw_strerror(cw_status status);

/* Writes the calling thread's last failure, with path, value and cause, NUL-terminated, cut to n
 * bytes; returns its full length without the NUL. One line: control characters in a path are
 * escaped as on the console. buffer may be NULL where n is 0. A success does not clear it.
 * Signals: safe. */
size_t cw_last_error(char *buffer, size_t n);

/* MAJOR << 16 | MINOR << 8 | PATCH of the library in use. */
uint32_t cw_version(void);

/* "0.1.0". Static. */
const char *cw_version_string(void);

#include "log.h"
#include "upload.h"

/* ── Experimental until 1.0 ──
 * What these declare is younger than the rest: a minor version may change or remove it, with a
 * line in CHANGELOG. So may curl.h, curl_error.h and curl_transfer.h. */
#include "transaction.h"
#include "http.h"
#include "network.h"

#ifdef __cplusplus
}
#endif
#endif
