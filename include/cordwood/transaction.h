/* Application transactions: a transaction is one run of a use case (a checkout, a sign-in) with the
 * events that happen in it and one id that client and server share. Its records have the kind
 * CW_KIND_TRANSACTION and lie in the store's own segments. The engine keeps them when the call
 * returns, and readers, archives and uploads treat them as all other records. docs/TRANSACTIONS.md
 * is the guide.
 *
 *     cw_transaction *checkout;
 *     if (cw_transaction_begin(engine, 17, &checkout) == CW_OK) {
 *         cw_transaction_attach(checkout);          // this thread's records carry the id
 *         cw_transaction_event(checkout, 1, "42", "card declined");
 *         cw_transaction_detach(checkout);
 *         cw_transaction_end(&checkout);
 *     }
 *
 * cordwood.h includes this file, and its conventions hold here. C11 and C++17. */
#ifndef CORDWOOD_H
#include "cordwood.h" /* which in turn includes this file */
#endif
#ifndef CORDWOOD_TRANSACTION_H
#define CORDWOOD_TRANSACTION_H

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cw_transaction cw_transaction; /* one open transaction in this process */

/* The HTTP header that carries the id to servers, unless the host names another. */
#define CW_TRANSACTION_HEADER "X-Transaction-Id"

/* Begins a transaction and writes the record "begin" under the logger "Transactions", whatever that
 * logger's level. The id is "TXN<usecase>-<UUID in upper case>". The trace id of the transaction's
 * records is the 16 bytes of that UUID; their span id is random. The caller owns *out until
 * cw_transaction_end. Threads: several may use a handle, but none while one of them ends it.
 * Blocks: as cw_write_record. Signals: not safe.
 * CW_OK · CW_E_ARGUMENT · CW_E_MEMORY · CW_E_FULL (nothing began) · CW_E_CLOSED */
cw_status cw_transaction_begin(cw_engine *engine, int32_t usecase, cw_transaction **out);

/* Joins the transaction of that id, which another process or an earlier run began. Events logged
 * here belong to it. If the transaction was already sent, an upload sends these events under the
 * same id. The span id is a new one. Otherwise as cw_transaction_begin. Also answers CW_E_ARGUMENT
 * if the id is not valid. */
cw_status cw_transaction_join(cw_engine *engine, const char *id, cw_transaction **out);

/* Returns the id, "TXN17-586AB00B-…", NUL-terminated, or NULL for NULL. The string is valid until
 * cw_transaction_end. */
const char *cw_transaction_id(const cw_transaction *transaction);

/* Returns the number of the use case, or 0 for NULL. */
int32_t cw_transaction_usecase(const cw_transaction *transaction);

/* Logs an event at the present time. If it returns CW_OK, the event survives the death of the
 * process. err_code NULL means that the event is not an error. err_desc may be NULL. The library
 * copies both, at most 4,096 bytes of each. Blocks: as cw_transaction_begin. Signals: not safe.
 * CW_OK · CW_E_ARGUMENT (NULL, or err_desc without err_code) · CW_E_FULL · CW_E_CLOSED */
cw_status cw_transaction_event(cw_transaction *transaction, int32_t event, const char *err_code,
                               const char *err_desc);

/* Writes the W3C header `traceparent` for a request made inside the transaction: 55 characters and
 * a NUL.
 * CW_OK · CW_E_ARGUMENT */
cw_status cw_transaction_traceparent(const cw_transaction *transaction, char out[56]);

/* Parses a `traceparent` that a client sent, for cw_trace_set. Blocks: no. Signals: safe.
 * CW_OK · CW_E_ARGUMENT (not a valid traceparent; nothing is written) */
cw_status cw_traceparent_parse(const char *traceparent, uint8_t out_trace_id[16],
                               uint8_t out_span_id[8], uint8_t *out_flags);

/* Attach makes every later record of the calling thread, of any kind, carry the transaction's trace
 * id, its span id and the field "txn.id". Detach restores the ids and the field that the thread had
 * before. A thread detaches in the opposite order, and holds at most 16 attachments at a time.
 * Several threads may attach one transaction; all must detach it before it ends.
 * CW_OK · CW_E_ARGUMENT (also: not the one attached last) · CW_E_LIMIT (16 attachments, or over
 * 4,096 bytes of context) · CW_E_MEMORY · CW_E_CLOSED (attach) */
cw_status cw_transaction_attach(cw_transaction *transaction);
cw_status cw_transaction_detach(cw_transaction *transaction);

/* Writes the record "end" with the time since begin or join, frees the handle and sets *transaction
 * to NULL. *transaction may be NULL. The transaction itself may continue elsewhere, and a process
 * may join it again.
 * CW_OK · CW_E_ARGUMENT · CW_E_FULL, CW_E_CLOSED (freed, no record written) */
cw_status cw_transaction_end(cw_transaction **transaction);

/* A name that people read in place of a number. */
typedef struct cw_transaction_name {
    int32_t usecase;
    int32_t event; /* CW_EVENT_NONE: the name is the use case's own */
    const char *name;
} cw_transaction_name;
#define CW_EVENT_NONE INT32_MIN

/* Registers names of use cases and events with an engine. Records made later carry them. A later
 * name replaces an earlier one, and NULL removes it. The engine copies the names. Only those
 * records store them.
 * CW_OK · CW_E_ARGUMENT · CW_E_LIMIT (a name over 255 bytes, or 4,096 names) · CW_E_CLOSED */
cw_status cw_transaction_names_set(cw_engine *engine, const cw_transaction_name *names,
                                   size_t count);

/* A transaction as the store has it. Strings are valid during the callback that receives them. */
typedef struct cw_transaction_view {
    uint32_t struct_size; /* of the library's struct; do not read fields beyond it */
    int32_t usecase;
    const char *id;
    const char *usecase_name; /* "": no name */
    uint64_t first_ns;        /* UTC, ns since 1970: its first record in the store */
    uint64_t last_ns;         /* its last record */
    uint32_t events;
    uint32_t errors; /* events with an error code */
    bool is_ended;   /* its last record, apart from events of others, is an "end" */
} cw_transaction_view;

/* Receives one transaction. Returns false to stop. */
typedef bool (*cw_transaction_fn)(void *user, const cw_transaction_view *transaction);

/* Passes the transactions of the engine's store to sink, oldest first. Includes those of other
 * processes, and leaves out deleted ones. sink may log. Blocks: reads the store, so do not call it
 * in a hot path.
 * CW_OK · CW_END (no transactions) · CW_E_ARGUMENT · CW_E_MEMORY · CW_E_IO · CW_E_DAMAGED (sink got
 * the rest) · CW_E_CLOSED */
cw_status cw_transactions_list(cw_engine *engine, cw_transaction_fn sink, void *user);

/* Forgets a transaction, or every transaction of the store if id is NULL (as at a logout). The
 * engine no longer lists or sends its existing records, and they leave the disk with their segments
 * and archives. An event logged to the id afterwards begins it anew. A request already under way
 * still sends what it carries. Blocks: for a file sync.
 * CW_OK · CW_E_ARGUMENT (the id is not valid) · CW_E_LIMIT (65,536 ids are remembered) · CW_E_IO ·
 * CW_E_FULL · CW_E_CLOSED */
cw_status cw_transactions_delete(cw_engine *engine, const char *id);

/* As cw_upload, but only to targets of the kind "transactions". It sends the events logged before
 * the call, or its status says why it did not. out->records counts the events that targets
 * accepted. */
cw_status cw_transactions_flush(cw_engine *engine, uint32_t timeout_ms, cw_upload_result *out,
                                size_t size_of_result);

#ifdef __cplusplus
}
#endif
#endif
