/* Cordwood: an embeddable logging engine. C11 and C++17.
 *
 * A program links Cordwood and writes records into a store, which is a directory. A record is kept
 * when the call returns: `kill -9` one instruction later loses no record whose call returned. After
 * cw_flush(…, CW_DURABLE_MACHINE, …), power loss loses no record written before that call.
 *
 *     #include <cordwood/cordwood.h>
 *
 *     int main(void) {
 *         cw_options options;
 *         cw_options_init(&options, sizeof options);
 *         options.directory = "logs";
 *         cw_engine *engine;
 *         cw_logger *log;
 *         if (cw_open(&options, &engine) || cw_logger_get(engine, "app", &log)) return 1;
 *         cw_write(log, CW_LEVEL_INFO, "hello from C", 12); // kept when the call returns
 *         CW_WARN(log, "order %d is %.1f s late", 7, 2.5);  // formatted when somebody reads it
 *         return cw_close(&engine, 1000);
 *     }
 *
 * Threads append records to segments, which are mapped files. The engine's helper thread compresses
 * sealed segments into archives and uploads the archives to targets. A reader shows the whole store
 * at any time, also while other processes write.
 *
 * This header is in the order in which a newcomer needs it: words and numbers · open · loggers and
 * writing · flush and close · crashes · levels · context · reading · errors and version. It then
 * includes log.h (CW_LOG and formats), upload.h (sending to servers), transaction.h (use cases),
 * http.h (captured exchanges) and network.h (failures of the host's own requests). The host is the
 * program that links Cordwood.
 *
 * These conventions hold for every function:
 *
 *   - A function is named for its first parameter. It returns cw_status. Outputs come last, and a
 *     function writes them only on success unless its comment says otherwise.
 *   - The library checks every pointer, length and number. A bad one is a status, never a crash.
 *     The library never aborts or exits, and it prints only if the host asks for the console.
 *   - A string with a length needs no NUL and may hold any byte. It may be NULL if the length is 0.
 *     A `const char *` without a length is NUL-terminated UTF-8.
 *   - A struct starts with struct_size, which the host sets to sizeof. Later versions may add
 *     members at the end. A function refuses a struct smaller than the first version's
 *     (CW_E_STRUCT_SIZE). It accepts a larger one if all bytes unknown to the library are zero
 *     (else CW_E_STRUCT_TAIL).
 *   - Any thread may call any function at any time, also in a forked child, unless the function's
 *     comment says otherwise. "Signals: safe" means that a signal handler may call it.
 *   - After cw_close, every handle of that engine answers CW_E_CLOSED and stays safe to use.
 *   - timeout_ms: 0 does not wait, UINT32_MAX waits forever. */
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

/* Severity. Any number from 1 to 24 (OpenTelemetry's) is valid. These have names. */
typedef uint32_t cw_level;
enum {
    CW_LEVEL_TRACE = 1,
    CW_LEVEL_DEBUG = 5,
    CW_LEVEL_INFO = 9,
    CW_LEVEL_NOTICE = 10,
    CW_LEVEL_WARN = 13,
    CW_LEVEL_ERROR = 17,
    CW_LEVEL_FATAL = 21,
    CW_LEVEL_OFF = 255 /* for thresholds only: disables every level */
};

/* Status. 0: done. Positive: not an error. Negative: an error. Numbers are never reused. */
typedef int32_t cw_status;
enum {
    CW_OK = 0,
    CW_DISABLED = 1, /* the record's level is below the logger's; nothing was written */
    CW_END = 2,      /* there are no more records, or nothing waits for upload */
    CW_AGAIN = 3,    /* a following reader has nothing now; call again later */

    CW_E_ARGUMENT = -1,      /* a pointer, length or enum is not valid */
    CW_E_LEVEL = -2,         /* a level is outside 1…24 (thresholds may also be 255) */
    CW_E_STRUCT_SIZE = -3,   /* struct_size is smaller than the first version of the struct */
    CW_E_STRUCT_TAIL = -4,   /* struct_size is larger than known and the unknown tail is not zero */
    CW_E_CLOSED = -5,        /* the engine of this handle was closed */
    CW_E_NO_DIRECTORY = -6,  /* neither options.directory nor CORDWOOD_DIR names a store */
    CW_E_NOT_DIRECTORY = -7, /* the path of the store is not a directory */
    CW_E_NOT_FOUND = -8,     /* there is no such file, store, target or archive */
    CW_E_PERMISSION = -9,    /* the system refused access, or other users may change the store */
    CW_E_IO = -10,           /* a read, write or sync failed */
    CW_E_FULL = -11,         /* there is no room: the disk is full, or a quota or a limit of the
                                process is reached. A record was not kept, and is counted.
                                cw_last_error and cw_stats say which limit */
    CW_E_MEMORY = -12,       /* memory, threads or descriptors ran out */
    CW_E_LIMIT = -13,        /* the call would exceed a documented limit */
    CW_E_TIMEOUT = -14,      /* time ran out; flushing and archiving go on, uploads are aborted */
    CW_E_BUSY = -15,         /* the same operation is already running */
    CW_E_VERSION = -16,      /* a store or file has a newer, incompatible format */
    CW_E_DAMAGED = -17,      /* data is damaged; the rest of the store is still readable */
    CW_E_CONSENT = -18,      /* the store has no consent to upload */
    CW_E_NO_TARGET = -19,    /* no target was added */
    CW_E_UPLOAD = -20,       /* something was not uploaded; see cw_upload_result */
    CW_E_UNSUPPORTED = -21,  /* this build or platform cannot do it (for example: no libcurl) */
    CW_E_EXISTS = -22,       /* a target of that name is already added */
    CW_E_INTERNAL = -23,     /* a broken invariant inside the library; please report it */
    CW_E_ENCRYPTED = -24,    /* an archive is encrypted, and no given identity opens it */
    CW_E_NOT_ENABLED = -25   /* a policy has disabled uploads */
};

typedef struct cw_str {
    const char *data;
    size_t length; /* bytes */
} cw_str;

/* The kinds of record. */
enum {
    CW_KIND_LOG = 0,
    CW_KIND_GAP = 1,       /* lost records: how many, and between which times */
    CW_KIND_LIFECYCLE = 2, /* start, unclean stop, clock step */
    CW_KIND_TRANSACTION = 3,
    CW_KIND_HTTP = 4
};

enum {
    CW_TYPE_INT = 1,
    CW_TYPE_UINT = 2,
    CW_TYPE_DOUBLE = 3,
    CW_TYPE_BOOL = 4,
    CW_TYPE_STRING = 5,
    CW_TYPE_JSON = 6
};

/* CW_TYPE_JSON: `value.s` is the text of one JSON value (RFC 8259, UTF-8). Readers show it as a
 * value with parts, and queries address it by path (docs/QUERY.md). It has at most 262,144 bytes
 * and at most 20 open brackets. Any other text is kept, too, byte for byte, and read as
 * CW_TYPE_STRING. Nothing inside is redacted, whatever its name. */

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

/* What making an archive may cost. DENSE takes about half the space of PLAIN and more processor
 * time, because it searches records for repetition. Archives are PLAIN with lz4 and none, and while
 * the helper is over four segments behind. `zstd -d` shows the messages of PLAIN ones as lines, and
 * those of DENSE ones in pieces. */
enum { CW_ARCHIVE_DENSE = 0, CW_ARCHIVE_PLAIN = 1 };

enum { CW_CONSENT_GRANTED = 0, CW_CONSENT_PENDING = 1, CW_CONSENT_DENIED = 2 };
typedef uint32_t cw_consent;

/* The overflow policies decide what happens to a record that needs a new segment:
 *
 *          no spare is ready yet                 disk full, or quota full of unarchived data
 *   GROW   waits up to 20 ms, then makes one     refuses and counts
 *          in line (slow_appends)
 *   DROP   refuses and counts                    refuses and counts
 *   BLOCK  waits; after 2 s makes one in line    waits; in a signal handler, a nested call, a
 *                                                forked child or a callback of the engine's own
 *                                                threads it refuses and counts
 *
 * If the caller must not wait (a nested call, an alternate stack, a forked child, the engine's own
 * threads), or segments are under 1 MiB, GROW and BLOCK make the segment at once.
 * A refusal makes no system call, except that an engine which writes by pwrite(2) makes one to keep
 * the count. The engine tries a full disk again every 100 ms. */
enum { CW_OVERFLOW_GROW = 0, CW_OVERFLOW_DROP = 1, CW_OVERFLOW_BLOCK = 2 };

/* The console echoes records on stderr. AUTO writes coloured text to a terminal and JSON lines
 * elsewhere. Text looks as in `cordwood cat`, which marks continuation lines of a message and
 * escapes control characters. */
enum { CW_CONSOLE_OFF = 0, CW_CONSOLE_TEXT = 1, CW_CONSOLE_JSON = 2, CW_CONSOLE_AUTO = 3 };

enum {
    CW_FLAG_SYNC_CONSOLE = 1, /* echo before the write returns: for debugging */
    CW_FLAG_COARSE_CLOCK = 2, /* round times to a kernel tick (1 to 10 ms): cheap without a TSC */
    CW_FLAG_TMPFS = 4,        /* keep segments in memory (/dev/shm, 128 MiB a process, beyond that
                                 on disk) until they are archived or the engine is closed, so that
                                 writers meet no writeback. A restart of the machine loses data that
                                 was neither archived nor flushed with CW_DURABLE_MACHINE */
    CW_FLAG_SIGBUS_GUARD = 8, /* survive SIGBUS. If another program truncates a file of the store,
                                 or its file system turns read-only after an error, a write to a
                                 mapped page would kill the process. cw_open then installs a SIGBUS
                                 handler, for the life of the process; the record is written
                                 elsewhere, and other faults go to the handler that was there */
    CW_FLAG_GROUP_READ = 16   /* the store's group may read what is made from now on: its directory
                                 gets mode 2750, which has that effect also without this flag */
};

/* The reasons for which the engine removes an archive that was never uploaded. */
enum { CW_REMOVED_QUOTA = 1, CW_REMOVED_COUNT = 2, CW_REMOVED_EXPIRED = 3, CW_REMOVED_CONSENT = 4 };

/* Called once per archive, also for what another process removed: on a thread of the engine, or in
 * cw_upload. The function may log. It must not close the engine. */
typedef void (*cw_archive_removed_fn)(void *user, const char *archive, uint32_t reason);

typedef struct cw_options {
    uint32_t struct_size;
    const char *directory;    /* the store; cw_open makes missing parents, 0700; ":memory:" keeps
                                 everything in memory; NULL: environment CORDWOOD_DIR */
    const char *process_name; /* readers show it beside records; NULL: the program's own name */
    uint32_t level;           /* root threshold, 1…24 or CW_LEVEL_OFF; default CW_LEVEL_INFO */
    uint64_t segment_bytes;   /* 64 KiB … 1 GiB, rounded up to 64 KiB; 0: 16 MiB (default); always
                                 at most an eighth of the quota */
    uint32_t roll_age_s;      /* age in s at which segments are sealed; 0: never; default 24 h */
    uint64_t quota_bytes;     /* disk space for all files; 0: unlimited; default 5 GiB */
    uint32_t archives_max;    /* archives kept; 0: unlimited (default) */
    uint32_t expiration_days; /* days after its newest record was written; 0: never; default 30 */
    uint32_t codec;           /* CW_CODEC_…; default zstd */
    int32_t codec_level;      /* 1…19 for zstd, 1…12 for lz4; 0: 3 for zstd, 1 for lz4; default 3 */
    uint32_t consent;         /* CW_CONSENT_… of a store that has none yet; default granted */
    uint32_t overflow;        /* CW_OVERFLOW_…; default grow */
    uint32_t console;         /* CW_CONSOLE_…; default off */
    uint32_t console_level;   /* threshold of the echo, 1…24; 0: every written record (default) */
    uint32_t flags;           /* CW_FLAG_… */
    uint32_t upload_interval_s;            /* between background uploads, s; 0: 30 (default) */
    cw_archive_removed_fn archive_removed; /* may be NULL */
    void *user;                            /* the engine passes it to archive_removed */
    const char *encrypt_to;    /* age recipients ("age1…"), separated by spaces or commas. Only one
                                  of their identities can read the archives that this engine
                                  writes; nothing of them stays plain. NULL: plain (default) */
    const char *identity_file; /* age identities, which cw_open reads and the engine keeps in
                                  memory. An encrypted archive that one of them opens goes to
                                  targets that need plain records; else it waits. NULL: none */
    const char *policy_url;     /* where the engine looks for a policy (upload.h); NULL: nowhere */
    const char *policy_headers; /* "Name: value" lines separated by \n; never logged or stored */
    const char *policy_ca_file; /* PEM; NULL: the system's certificates */
    uint32_t policy_interval_s; /* between looks for a policy, seconds; 0: an hour (default) */
    uint32_t archive_method;    /* CW_ARCHIVE_…; default dense */
    uint32_t archive_time_step_ns; /* times in archives are rounded down to a multiple of so many
                                      ns, 1…10,000; 0: 1 (default). Records keep their order and
                                      their ids; times that hosts give with a record stay exact */
    uint32_t policy_allow; /* what policies may do: CW_POLICY_… (upload.h); default 0 */
} cw_options;

/* Writes struct_size and the defaults named above. Does nothing if options is NULL or the size is
 * smaller than the first version of the struct. Blocks: no. Signals: safe. */
void cw_options_init(cw_options *options, size_t size_of_options);

/* Opens a store for writing and creates it if it is missing (directories 0700, files 0600). Starts
 * helper threads, which also archive what dead processes left in the store. One or many processes
 * may have several engines open, also on one directory. The caller owns *out until cw_close. The
 * engine copies the options and their strings.
 *
 * The environment fills options that the host left unset, except in a program with more rights than
 * its caller (docs/ABI.md): CORDWOOD_DIR, CORDWOOD_LEVEL, CORDWOOD_CONSOLE (off|text|json|auto) and
 * CORDWOOD_TARGET (a URL: kind collector). CORDWOOD_LEVEL looks like "info,app.db=debug". It takes
 * names in any case, also those of Python's logging, syslog and swift-log; 1…24; and 30, 40 and 50
 * as in Python. A level or console that is not understood is reported once on stderr, and ignored.
 * A wrong CORDWOOD_TARGET makes the call fail as cw_target_add would; cw_last_error names it.
 *
 * Threads: a process whose main thread ends by pthread_exit lives while an engine is open. Blocks:
 * for file creation, and up to 250 ms to archive if the store has over 64 lanes. Signals: not safe.
 * CW_OK · CW_E_ARGUMENT · CW_E_STRUCT_SIZE · CW_E_STRUCT_TAIL · CW_E_LEVEL · CW_E_LIMIT ·
 * CW_E_NO_DIRECTORY · CW_E_NOT_DIRECTORY · CW_E_PERMISSION · CW_E_IO · CW_E_FULL · CW_E_MEMORY ·
 * CW_E_VERSION · CW_E_UNSUPPORTED (with policy_url or CORDWOOD_TARGET: no libcurl) */
cw_status cw_open(const cw_options *options, cw_engine **out);

/* Sets an attribute of the program that logs, for the records that any thread begins after the
 * call: service.name, service.version, deployment.environment, user.id … An empty value removes it.
 * cw_open fills in host.name, host.arch, os.type, os.version, device.manufacturer and
 * device.model.identifier. Records do not grow, but each change ends the chunks of all threads, and
 * 4,096 of them begin a new lane: values that change with each request belong in the
 * context (cw_context_set). Copies both strings. Blocks: briefly. Signals: not safe.
 * CW_OK · CW_E_ARGUMENT (NULL or empty key, NULL value) · CW_E_LIMIT (key over 255 bytes, value
 * over 4,096, all of them over 65,536; too many changes) · CW_E_FULL · CW_E_CLOSED */
cw_status cw_resource_set(cw_engine *engine, const char *key, const char *value);

/* ── Loggers and writing ────────────────────────────────────────────────────────────────────── */

/* Gets the logger of that dotted name. "" is the root. The same name gives the same handle. The
 * library owns the logger, which stays valid for the life of the process. Blocks: briefly. Signals:
 * not safe.
 * CW_OK · CW_E_ARGUMENT · CW_E_LIMIT (name over 255 bytes, or 65,536 loggers) · CW_E_FULL ·
 * CW_E_MEMORY · CW_E_CLOSED */
cw_status cw_logger_get(cw_engine *engine, const char *name, cw_logger **out);

/* Writes one record of text. If it returns CW_OK, the record survives the death of the process. The
 * message may hold any bytes, and the library keeps them unchanged. The library cuts a record
 * larger than a segment can hold, and marks it with its original length. A call costs tens of
 * nanoseconds (docs/PERFORMANCE.md), in C mostly as a macro (append.h). It takes no lock, allocates
 * nothing, and makes a system call or waits only at the start of a chunk (CW_OVERFLOW_… says how
 * long). Signals: safe. Fork: safe, also in a child of a threaded parent.
 * CW_OK · CW_DISABLED · CW_E_ARGUMENT · CW_E_LEVEL · CW_E_FULL · CW_E_CLOSED */
cw_status cw_write(cw_logger *logger, cw_level level, const char *message, size_t length);

/* A record with every attribute. Set unused members to zero. cw_write_record copies everything. */
typedef struct cw_record {
    uint32_t struct_size;
    cw_level level;
    cw_str message;
    const cw_field *fields; /* typed; keys need not be unique; at most 4,096 */
    size_t field_count;
    cw_str file; /* the place in the source; line 0: unknown */
    cw_str function;
    uint32_t line;
    uint32_t trace_flags;    /* W3C trace flags; used if trace_id is set */
    const uint8_t *trace_id; /* 16 bytes, or NULL: the thread's (cw_trace_set) */
    const uint8_t *span_id;  /* 8 bytes, or NULL */
    uint64_t time_ns;        /* the event's own UTC time, ns since 1970, up to 2554; 0: now */
    cw_str exception_type;   /* empty: no exception */
    cw_str exception_message;
    cw_str exception_stacktrace;
} cw_record;

/* Writes one record with fields, place, trace ids, its own time or an exception. It behaves as
 * cw_write and costs a little more, in proportion to what the record carries. The library cuts and
 * marks a record that no segment can hold: first the stack trace, then the message, then fields
 * from the end. If the message and the fields are both too large, the message gets half of the
 * room. Blocks, signals, fork: as cw_write.
 * CW_OK · CW_DISABLED · CW_E_ARGUMENT · CW_E_STRUCT_SIZE · CW_E_STRUCT_TAIL · CW_E_LEVEL ·
 * CW_E_LIMIT · CW_E_FULL · CW_E_CLOSED */
cw_status cw_write_record(cw_logger *logger, const cw_record *record);

/* To format, a host uses the macros of log.h: CW_LOG(logger, level, "order %d at %f from %s", id,
 * price, who) and CW_TRACE … CW_FATAL(logger, "format", …). The compiler checks the format, the
 * call copies the raw arguments, and a reader makes the text. The macros and language bindings call
 * the functions below; hosts do not. */
typedef struct cw_site cw_site; /* one place in the source */
typedef union cw_arg cw_arg;    /* one argument */

/* Writes one record of a place, with the arguments that the place's list names. If the format does
 * not fit them, the library keeps the format unchanged (with CW_STYLE_BRACES followed by the
 * arguments), and the first call answers CW_E_ARGUMENT. Blocks, signals, fork: as cw_write.
 * CW_OK · CW_DISABLED · CW_E_ARGUMENT · CW_E_LEVEL · CW_E_FULL · CW_E_CLOSED */
cw_status cw_site_write(cw_logger *logger, cw_level level, cw_site *site, const cw_arg *arguments);

/* As cw_site_write, for hosts that have no static object for each place. The library finds the
 * place again by its line and the addresses of its strings, and keeps nothing of `place` itself.
 * place->count is the length of the format. place->arguments is zero up to a multiple of 8 bytes.
 */
cw_status cw_place_write(cw_logger *logger, cw_level level, const cw_site *place,
                         const cw_arg *arguments);

/* As cw_site_write, for bindings that have made the text themselves. The place has one argument, a
 * CW_ARG_TEXT, and text holds its bytes. The library cuts them at CW_STRING_MAX. NULL with length 0
 * is an empty text. Also answers CW_E_ARGUMENT if the place has another list of arguments. */
cw_status cw_site_text(cw_logger *logger, cw_level level, cw_site *site, const char *text,
                       uint32_t length);

/* Returns true if ms milliseconds have passed since it last returned true for that place. Signals:
 * safe. */
bool cw_site_every_ms(cw_site *site, uint32_t ms);

/* ── Flush and close ────────────────────────────────────────────────────────────────────────── */

/* The loss that a record must survive: the death of the process, or loss of power. Every record
 * survives the death of the process from the moment its call returns. */
typedef enum cw_durability { CW_DURABLE_PROCESS = 0, CW_DURABLE_MACHINE = 1 } cw_durability;

/* Makes every record whose call returned before this one began as durable as `durability` says.
 * PROCESS returns as soon as the console echo of those records is written. MACHINE syncs a journal:
 * it does not disturb running threads, and calls that wait together share one sync. After
 * CW_E_TIMEOUT the sync continues. Blocks: up to timeout_ms. Signals: not safe.
 * CW_OK · CW_E_ARGUMENT · CW_E_TIMEOUT · CW_E_IO · CW_E_FULL · CW_E_MEMORY · CW_E_CLOSED */
cw_status cw_flush(cw_engine *engine, cw_durability durability, uint32_t timeout_ms);

/* Seals the open segments. The helper thread then archives them in the background, and uploads can
 * send them. The call covers every record whose call returned before. Blocks: briefly; up to 5 s if
 * archiving and retention must make room first. Signals: not safe.
 * CW_OK (also if nothing was open) · CW_E_ARGUMENT · CW_E_IO · CW_E_FULL · CW_E_CLOSED */
cw_status cw_roll(cw_engine *engine);

/* Waits until the engine has archived everything sealed before the call. Blocks: up to timeout_ms.
 * Signals: not safe.
 * CW_OK · CW_E_ARGUMENT · CW_E_TIMEOUT · CW_E_IO · CW_E_FULL · CW_E_MEMORY · CW_E_CLOSED */
cw_status cw_archive_wait(cw_engine *engine, uint32_t timeout_ms);

typedef struct cw_stats {
    uint32_t struct_size;
    uint32_t lanes;            /* in this store now (a lane is one process's segments): this
                                  engine's, and those of dead processes not yet adopted */
    uint64_t records_written;  /* by this engine, including its own diagnostics */
    uint64_t records_dropped;  /* the host's calls that answered CW_E_FULL; exact */
    uint64_t bytes_written;    /* record bytes in segments, including headers */
    uint64_t slow_appends;     /* records that waited while the call made a segment in line */
    uint64_t segments_sealed;
    uint64_t segments_recovered; /* from dead processes */
    uint64_t archives_written;
    uint64_t archive_bytes_in;  /* segment bytes that were archived */
    uint64_t archive_bytes_out; /* bytes of the archives made from them */
    uint64_t archives_removed;  /* by quota, count, expiry or consent */
    uint64_t uploads_succeeded;
    uint64_t uploads_failed; /* attempts */
    uint64_t upload_bytes;   /* bytes of bodies that got a 2xx */
    uint64_t segments_reused; /* files of archived segments that the engine used again */
    uint64_t records_refused; /* by targets, in archives that they accepted */
    /* records_dropped by cause. These add up to it. */
    uint64_t dropped_disk_full;   /* ENOSPC */
    uint64_t dropped_disk_quota;  /* EDQUOT: the user's quota in the file system */
    uint64_t dropped_store_quota; /* cw_options.quota_bytes */
    uint64_t dropped_file_limit;  /* RLIMIT_FSIZE */
    uint64_t dropped_descriptors; /* EMFILE, ENFILE */
    uint64_t dropped_memory;      /* memory, or room in the engine's tables */
    uint64_t dropped_not_ready;   /* CW_OVERFLOW_DROP, or sealing that is far behind */
    uint64_t dropped_permission;  /* EACCES, EPERM, EROFS */
    uint64_t dropped_other;       /* any other error of the file system */
} cw_stats;

/* Reports counts since cw_open. size_of_stats: sizeof *out. Blocks: no.
 * CW_OK · CW_E_ARGUMENT · CW_E_STRUCT_SIZE · CW_E_CLOSED */
cw_status cw_stats_get(const cw_engine *engine, cw_stats *out, size_t size_of_stats);

/* Closes the engine: seals its segments, stops the helper thread and sets *engine to NULL.
 * Idempotent: *engine may be NULL. The store keeps every record whose call returned before; later
 * calls answer CW_E_CLOSED. What is not archived waits in the store for the next engine or
 * `cordwood archive`; with encrypt_to or denied consent, close archives it if there is time. A few
 * KiB of address space are never freed, so that old handles stay safe. Threads: not in a callback
 * (CW_E_BUSY). Blocks: up to timeout_ms, for the helper and threads in a call. Signals: not safe.
 * CW_OK · CW_E_ARGUMENT · CW_E_BUSY · CW_E_TIMEOUT (closed, but the helper is busy and ends by
 * itself or with the process; in a forked child without a helper nothing is closed) */
cw_status cw_close(cw_engine **engine, uint32_t timeout_ms);

/* ── Crashes ────────────────────────────────────────────────────────────────────────────────── */

/* Opt-in: installs a handler that writes a last record when the process crashes. The handler serves
 * SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP and SIGSYS. The record has level FATAL and
 * logger "Cordwood.Crash". It holds signal, code, address, program counter, thread and a backtrace.
 * The lines of the backtrace name module, offset and build id, so that another machine can resolve
 * them. The signal then takes its usual course: the handler installed before runs, or the process
 * ends by the same signal, with its core dump.
 *
 * A process has one such handler and keeps it. Every engine that asked gets the record until it is
 * closed, also in a forked child. The handler takes no lock, allocates nothing and runs on a stack
 * of its own. To survive stack overflows, the calling thread gets an alternate stack of 64 KiB of
 * address space if it has none; every other thread gets one from its next chunk of records on. The
 * previous handler, too, runs on the alternate stack. The handler writes at most 64 records if a
 * host's handler continues after faults. A handler installed later replaces this one, as usual. A
 * repeated call of this function reinstalls the handler only where the signal has its default
 * action. Blocks: briefly. Signals: not safe.
 * CW_OK (also if it was already installed) · CW_E_ARGUMENT · CW_E_LIMIT (64 engines) · CW_E_FULL ·
 * CW_E_MEMORY · CW_E_CLOSED */
cw_status cw_crash_handler_install(cw_engine *engine);

/* ── Levels ─────────────────────────────────────────────────────────────────────────────────── */

/* Returns true if the logger would write a record of that level. Costs one load and one branch. */
static inline bool cw_enabled(const cw_logger *logger, cw_level level) {
    /* The logger's first word is 256 - threshold, and 0 once closed. */
    return logger != NULL &&
           level + __atomic_load_n((const uint32_t *)(const void *)logger, __ATOMIC_RELAXED) > 255u;
}

/* Sets the threshold of a name and of all dotted names below it ("app.db" covers app.db.pool, never
 * app.dbx). "" is the root. The longest prefix wins. The threshold also holds for loggers created
 * later. The store does not keep it. level: 1…24 or CW_LEVEL_OFF. Blocks: briefly. Signals: not
 * safe.
 * CW_OK · CW_E_ARGUMENT · CW_E_LEVEL · CW_E_LIMIT (name over 255 bytes, or 4,096 prefixes) ·
 * CW_E_CLOSED */
cw_status cw_level_set(cw_engine *engine, const char *name_prefix, cw_level level);

/* ── Context of the calling thread ──────────────────────────────────────────────────────────── */

/* Sets a field that every later record of this thread carries, in all engines. A NULL value removes
 * it. The library copies both strings. Blocks: no. Signals: not safe.
 * CW_OK · CW_E_ARGUMENT · CW_E_LIMIT (over 4,096 bytes in all) · CW_E_MEMORY */
cw_status cw_context_set(const char *key, const char *value);

/* Sets the W3C trace id and span id that later records of this thread carry. span_id may be NULL.
 * Two NULLs remove both. Blocks: no. Signals: not safe.
 * CW_OK · CW_E_ARGUMENT (span without trace) · CW_E_MEMORY */
cw_status cw_trace_set(const uint8_t trace_id[16], const uint8_t span_id[8], uint8_t flags);

/* ── Reading, also while another process writes ─────────────────────────────────────────────── */

enum {
    CW_READ_FOLLOW = 1,     /* do not end: answer CW_AGAIN until there is more */
    CW_READ_FROM_END = 2    /* with FOLLOW: skip the records that exist already */
};

typedef struct cw_reader_options {
    uint32_t struct_size;
    uint32_t flags;     /* CW_READ_… */
    uint32_t level;     /* lowest level, 1…24; 0: all */
    uint32_t kinds;     /* set of 1u << CW_KIND_…; 0: all */
    uint64_t since_ns;  /* UTC, ns since 1970, inclusive; 0: from the first */
    uint64_t until_ns;  /* exclusive; 0: to the last */
    const char *logger; /* this name and those below it; NULL: all */
    const char *identity_file; /* age identities that open encrypted archives; NULL: none */
    const char *query; /* a condition that records must also meet (docs/QUERY.md); NULL: all */
} cw_reader_options;

enum {
    CW_VIEW_TRUNCATED = 1,  /* the message was cut; original_length is its full length */
    CW_VIEW_NOT_UTF8 = 2,   /* the message is kept byte for byte and is not UTF-8 */
    CW_VIEW_UNVERIFIED = 4, /* after loss of power: no sync covered it; may be incomplete */
    CW_VIEW_LATE = 8        /* a following reader showed later records before this one */
};

/* One record. The reader owns everything the pointers refer to, until the next call on it. Set
 * struct_size before the first call; the reader fills the struct as far as that goes.
 *
 * resource holds what cw_open and cw_resource_set recorded of the program that logs: service.name,
 * host.name, user.id and others, of type CW_TYPE_STRING. While it points to the same address as in
 * the record before, the attributes are the same.
 *
 * record_id identifies the record permanently: it is the same while the record is live, sealed or
 * archived, in every archive and copy of a store, and no other record has it. Its 24 bytes sort by
 * process, thread and sequence; `cat --json` and uploads show them as 48 hex digits. */
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
    uint8_t trace_id[16]; /* all zero: no trace */
    uint8_t span_id[8];
    uint32_t kind;            /* CW_KIND_… */
    uint32_t flags;           /* CW_VIEW_… */
    uint64_t original_length; /* of the message, bytes */
    cw_str process_name;
    uint32_t trace_flags;
    const cw_field *resource; /* attributes of the program that logs */
    size_t resource_count;
    uint8_t record_id[24];
} cw_record_view;

/* Opens a cursor over a store directory, or over a single segment or archive file. The cursor
 * merges records by time; within a thread the order is exact. It needs no engine. options may be
 * NULL. After CW_E_ARGUMENT for a query, cw_last_error says in which column it is wrong. The caller
 * owns *out until cw_reader_close. Threads: one at a time. Blocks: for file access. Signals: not
 * safe.
 * CW_OK · CW_E_ARGUMENT (NULL directory or out, a level over 24, unknown flags, a wrong query) ·
 * CW_E_STRUCT_SIZE · CW_E_STRUCT_TAIL · CW_E_NOT_FOUND · CW_E_PERMISSION · CW_E_IO · CW_E_MEMORY ·
 * CW_E_VERSION · CW_E_DAMAGED (a single file that is not Cordwood's) · CW_E_ENCRYPTED (a single
 * file that cannot be read without its key) */
cw_status cw_reader_open(const char *directory, const cw_reader_options *options, cw_reader **out);

/* Gives the next record. The reader owns the record until the next call on it. Threads: one at a
 * time. Blocks: for file access; never waits for new records.
 * CW_OK · CW_END · CW_AGAIN (with CW_READ_FOLLOW) · CW_E_ARGUMENT · CW_E_STRUCT_SIZE · CW_E_IO ·
 * CW_E_MEMORY · CW_E_DAMAGED (once per damaged place; call again for the records after it) ·
 * CW_E_ENCRYPTED (once per archive that no identity opens; call again likewise) */
cw_status cw_reader_next(cw_reader *reader, cw_record_view *out);

/* Closes the cursor and sets *reader to NULL. Idempotent.
 * CW_OK · CW_E_ARGUMENT */
cw_status cw_reader_close(cw_reader **reader);

/* ── Errors and version ─────────────────────────────────────────────────────────────────────── */

/* Returns the name of a status, such as "CW_E_FULL". Never NULL, also for unknown numbers. The
 * string is static. Signals: safe. */
const char *cw_status_name(cw_status status);

/* Returns one sentence about a status. Never NULL. The string is static. Signals: safe. */
const char *cw_strerror(cw_status status);

/* Writes the calling thread's last failure: path, value and cause. The text is NUL-terminated and
 * cut to n bytes. Returns the full length without the NUL. The text is one line: control characters
 * in a path are escaped as on the console. buffer may be NULL if n is 0. A success does not clear
 * the text. Signals: safe. */
size_t cw_last_error(char *buffer, size_t n);

/* Returns MAJOR << 16 | MINOR << 8 | PATCH of the library in use. */
uint32_t cw_version(void);

/* Returns "0.1.0". The string is static. */
const char *cw_version_string(void);

#include "log.h"
#include "upload.h"

/* ── Experimental until 1.0 ──
 * The declarations below are younger than the rest. A minor version may change or remove them, and
 * CHANGELOG then says so. The same holds for curl.h, curl_error.h and curl_transfer.h. */
#include "transaction.h"
#include "http.h"
#include "network.h"

#ifdef __cplusplus
}
#endif
#endif
