/* Application transactions: a use case of a program (a checkout, a sign-in), the events that happen
 * in it, and one id that client and server share. They are records of kind CW_KIND_TRANSACTION in
 * the store's own segments: kept when the call returns, read, archived and sent as all others.
 * Included by cordwood.h, whose conventions hold here. docs/TRANSACTIONS.md is the guide.
 *                                                                                 C11 and C++17. */
#ifndef CORDWOOD_H
#include "cordwood.h" /* which includes this file in its turn */
#endif
#ifndef CORDWOOD_TRANSACTION_H
#define CORDWOOD_TRANSACTION_H

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cw_transaction cw_transaction; /* one use case under way in this process */

/* The header that carries the id to servers where the host names no other. */
#define CW_TRANSACTION_HEADER "X-Transaction-Id"

/* Begins a transaction: its id is "TXN<usecase>-<UUID in upper case>", the trace id of its records
 * the 16 bytes of that UUID, its span id random. Writes the record "begin", whatever the level of
 * its logger, "Transactions". The caller owns *out until cw_transaction_end; a handle may be used
 * by several threads, but not while one of them ends it. Blocks, signals: as cw_write_record, but
 * not safe in signal handlers.
 * CW_OK · CW_E_ARGUMENT · CW_E_MEMORY · CW_E_FULL (nothing began) · CW_E_CLOSED */
cw_status cw_transaction_begin(cw_engine *engine, int32_t usecase, cw_transaction **out);

/* Joins the transaction of that id, which another process or an earlier run began: events logged
 * here belong to it, also after it was sent (it is sent again, with these). The span id is a new
 * one. As cw_transaction_begin; CW_E_ARGUMENT also where the id is none. */
cw_status cw_transaction_join(cw_engine *engine, const char *id, cw_transaction **out);

/* "TXN17-586AB00B-…", NUL-terminated; NULL for NULL. Holds until cw_transaction_end. */
const char *cw_transaction_id(const cw_transaction *transaction);

/* The use case's number; 0 for NULL. */
int32_t cw_transaction_usecase(const cw_transaction *transaction);

/* Logs an event at the present time. err_code NULL: it is no error. err_desc may be NULL. Both are
 * copied, at most 4,096 bytes of each. When it returns CW_OK the event survives the death of the
 * process. Blocks, signals: as cw_transaction_begin.
 * CW_OK · CW_E_ARGUMENT (NULL, or err_desc without err_code) · CW_E_FULL · CW_E_CLOSED */
cw_status cw_transaction_event(cw_transaction *transaction, int32_t event, const char *err_code,
                               const char *err_desc);

/* The W3C header `traceparent` of a request made inside: 55 characters and a NUL.
 * CW_OK · CW_E_ARGUMENT */
cw_status cw_transaction_traceparent(const cw_transaction *transaction, char out[56]);

/* Reads a `traceparent` that a client sent, for cw_trace_set. Blocks: no. Signals: safe.
 * CW_OK · CW_E_ARGUMENT (it is none; nothing is written) */
cw_status cw_traceparent_parse(const char *traceparent, uint8_t out_trace_id[16],
                               uint8_t out_span_id[8], uint8_t *out_flags);

/* From here on every record of the calling thread, of whatever kind, carries the transaction's
 * trace and span id and the field "txn.id", until detach, which puts back what was in force before.
 * Attachments of a thread end in the opposite order; at most 16 at a time. A transaction may be
 * attached to several threads; it is detached from all of them before it ends.
 * CW_OK · CW_E_ARGUMENT (also: not the one attached last) · CW_E_LIMIT · CW_E_MEMORY ·
 * CW_E_CLOSED (attach) */
cw_status cw_transaction_attach(cw_transaction *transaction);
cw_status cw_transaction_detach(cw_transaction *transaction);

/* Writes the record "end", with the time since begin or join, frees the handle and sets
 * *transaction to NULL. *transaction may be NULL. The transaction goes on elsewhere, and may be
 * joined again. CW_OK · CW_E_ARGUMENT · CW_E_FULL, CW_E_CLOSED (freed, no record written) */
cw_status cw_transaction_end(cw_transaction **transaction);

/* What people read in the place of numbers. */
typedef struct cw_transaction_name {
    int32_t usecase;
    int32_t event; /* CW_EVENT_NONE: this is the use case's own name */
    const char *name;
} cw_transaction_name;
#define CW_EVENT_NONE INT32_MIN

/* Registers names of use cases and events with an engine; records made later carry them. A later
 * name replaces an earlier one; NULL removes it. Copied. Not stored but in those records.
 * CW_OK · CW_E_ARGUMENT · CW_E_LIMIT (a name over 255 bytes, or 4,096 names) · CW_E_CLOSED */
cw_status cw_transaction_names_set(cw_engine *engine, const cw_transaction_name *names,
                                   size_t count);

/* A transaction as the store has it. Strings hold during the call that hands it out. */
typedef struct cw_transaction_view {
    uint32_t struct_size; /* of the library's struct: fields beyond it are not there */
    int32_t usecase;
    const char *id;
    const char *usecase_name; /* "": none */
    uint64_t first_ns;        /* UTC, ns since 1970: of its first record in the store */
    uint64_t last_ns;         /* of its last */
    uint32_t events;
    uint32_t errors; /* events with an error code */
    bool is_ended;   /* its last record but for events of others is an "end" */
} cw_transaction_view;

/* false: no more are wanted. */
typedef bool (*cw_transaction_fn)(void *user, const cw_transaction_view *transaction);

/* Hands out the transactions of the engine's store, oldest first, those of other processes
 * included, without those that were deleted. Reads the store: not for a hot path. sink may log.
 * CW_OK · CW_END (none) · CW_E_ARGUMENT · CW_E_MEMORY · CW_E_IO · CW_E_DAMAGED (the rest was
 * handed out) · CW_E_CLOSED */
cw_status cw_transactions_list(cw_engine *engine, cw_transaction_fn sink, void *user);

/* Forgets a transaction (id NULL: all of the store, as at a logout): its records up to now are
 * neither listed nor sent any more, and leave the disk with their segments and archives. An event
 * that is logged to its id afterwards begins it anew. What a request that is under way carries is
 * sent. Blocks: for a file sync.
 * CW_OK · CW_E_ARGUMENT (the id is none) · CW_E_LIMIT (65,536 ids are remembered) · CW_E_IO ·
 * CW_E_FULL · CW_E_CLOSED */
cw_status cw_transactions_delete(cw_engine *engine, const char *id);

/* As cw_upload, to targets of the kind "transactions" only: what was logged before the call is
 * sent, or the answer says why it was not; out->records counts the events that were taken. */
cw_status cw_transactions_flush(cw_engine *engine, uint32_t timeout_ms, cw_upload_result *out,
                                size_t size_of_result);

#ifdef __cplusplus
}
#endif
#endif
