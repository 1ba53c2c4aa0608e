/* Parses JSON as RFC 8259 defines it (bytes from 0x80 on may be anything), in one pass and
 * without a copy. The parser hands out what redaction has to look at and only checks the rest.
 * Any thread. json.c */
#ifndef CORDWOOD_JSON_H
#define CORDWOOD_JSON_H
#include <stddef.h>
#include <stdint.h>

enum {
    CWI_JSON_DEPTH = 64, /* brackets that may be open */

    /* What cwi_json_next found. */
    CWI_JSON_WHOLE = 0, /* the value ends at `at` */
    CWI_JSON_BROKEN,    /* the text at `at` is not JSON, or ends there */
    CWI_JSON_NAME,      /* a member, [name_from, name_to), whose value begins at `at` */
    CWI_JSON_STRING,    /* a string that is a value: its inside is [from, to) */
    CWI_JSON_NUMBER,    /* one of three digits or more, below a secret: [from, to) */
    CWI_JSON_CLOSED     /* an object that `watched` has: it began at `from`, and ends at `at` */
};

/* Possible endings (cwi_may_end) of member names, of the names of members that name others, and of
 * the values of these. `pairs` has the first two side by side, by a name's last two bytes. It
 * treats a byte from 0xC0 on as a letter; in UTF-8 another one from 0x80 on follows it. */
enum { CWI_PAIRS = 1 << 12 };
typedef struct cwi_json_names {
    const uint32_t *members, *namings, *named;
    const uint64_t *pairs;
} cwi_json_names;

/* Fills CWI_PAIRS words from `members` and `namings`. */
void cwi_json_pairs(const cwi_json_names *names, uint64_t *pairs);

/* Words with one bit per depth: bit 0 is the value itself, bit 1 the contents of its bracket. */
typedef struct cwi_json {
    const uint8_t *text;
    size_t count, at;
    size_t end; /* after the last whole value, or after the bracket opened last */
    size_t from, to, name_from, name_to;
    /* The offset from which passing over is tried again, and the number of bytes passed over so
     * far. */
    size_t next_pass, wait, passed;
    uint64_t objects;  /* those whose bracket belongs to an object */
    uint64_t watched;  /* set by the caller: those whose end is handed out */
    uint64_t told[4];  /* the caller's own; cleared where a bracket opens */
    /* The caller sets these at a name to depth + 1, and they are cleared where its value ends.
     * Below `secret` the parser hands out all names, strings and numbers. */
    uint32_t secret, errors, schema;
    uint32_t depth, limit, state;
    uint8_t has_escapes, name_has_escapes;
    size_t begins[CWI_JSON_DEPTH];
} cwi_json;

/* Starts parsing the value that begins at `at`; `limit` bounds the depth. */
void cwi_json_begin(cwi_json *self, const uint8_t *text, size_t at, size_t count, uint32_t limit);
int cwi_json_next(cwi_json *self, const cwi_json_names *names);
/* Offset at which the object at that depth begins. */
static inline size_t cwi_json_start(const cwi_json *self, uint32_t depth) {
    return self->begins[depth & (CWI_JSON_DEPTH - 1)];
}
#endif
